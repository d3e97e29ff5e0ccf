//! Generated envelopes, for the properties of this crate and of those that take messages; and one fixed sample of
//! every message.

pub mod generated;
#[cfg(test)]
mod golden;
#[cfg(test)]
pub(crate) mod samples;
