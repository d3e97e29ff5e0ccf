//! A whole cluster in one thread: seeded worlds with virtual time, networks, disks, clocks, faults and workloads.
//!
//! The nodes are the very values that the server runs. What clients see is judged by an oracle that knows the true
//! causal order of everything they did. A failing seed is one line to replay; a rule of the protocol can be broken
//! by name to see that the oracle notices. Nothing here reads a clock or a hash map's order, except `cli`.
//!
//! The modules are layers (`ARCHITECTURE.md`): the oracle knows no world, the world no fault and no client, and nothing
//! below `cli` knows scripts or shrinking. Exhaustive search and comparison are crates above this one.

pub mod branching;
pub mod cli;
pub mod faults;
pub mod oracle;
pub mod protocols;
pub mod random;
pub mod resp;
pub mod rules;
pub mod run;
pub mod script;
pub mod seed;
pub mod shrink;
pub mod stopwatch;
pub mod workload;
pub mod world;

pub use run::{Report, run};
pub use world::options::Options;
