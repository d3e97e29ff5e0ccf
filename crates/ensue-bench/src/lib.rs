//! Branch on conflict against locking and against optimistic control, on the same storage code (TARDiS, section 7.1).
//!
//! Clients are interactive: every operation of a transaction is a round trip of its own, the same for all. One thread
//! serves all clients in real time, so that what an operation costs is what it costs; a client that waits for a lock
//! waits, one that aborts begins its transaction again. What is reported are the transactions of clients that
//! committed: merges, aborts and waits are costs.

pub mod contest;
pub mod driver;
mod engine;
mod load;
pub mod plot;
pub mod soak;

pub use driver::Outcome;
pub use engine::{Control, Setting, Terms};
pub use load::{Access, FOLLOWERS, Keys, Mix};

#[cfg(test)]
mod tests;
