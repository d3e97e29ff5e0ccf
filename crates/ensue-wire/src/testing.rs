//! What the tests of this crate share: one fixed sample of every message, and generated envelopes.

pub(crate) mod generated;
mod golden;
pub(crate) mod samples;
