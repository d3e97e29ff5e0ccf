//! Every interleaving of a tiny world: two datacenters, two keys on two partitions, a handful of operations.
//!
//! The nodes are real. A state is all of them, what is on its way on each ordered connection, the disks, and what each
//! client has seen; a choice is what happens next. The search visits every state that any order of choices leads to,
//! once, and judges every complete execution with the oracle of the seeded runs. Time stands still while there is a
//! choice: timers run only where nothing else can happen.
//!
//! Not explored: two inputs in one turn, parts of a message, lost power, a process that stays away for long (its crash
//! and its start are one step), and other orders of what follows once only timers can go on.

pub mod case;
pub mod cli;
mod client;
mod line;
mod machine;
mod print;
mod reaction;
mod search;
mod state;
mod verdict;

pub use case::{CASES, Case};
pub use search::{Census, Found, explore};
