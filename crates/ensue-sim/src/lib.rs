//! A whole cluster in one thread: seeded worlds with virtual time, networks, disks, clocks, faults and workloads.
//!
//! The nodes are the very values that the server runs. What clients see is judged by an oracle that knows the true
//! causal order of everything they did. A failing seed is one line to replay; a rule of the protocol can be broken
//! by name to see that the oracle notices. Nothing here reads a clock or a hash map's order, except `cli`.

pub mod agreement;
pub mod audit;
pub mod branching;
pub mod cli;
pub mod clock;
pub mod compare;
pub mod disk;
pub mod event;
pub mod exhaust;
pub mod faults;
pub mod history;
pub mod marks;
pub mod network;
pub mod nonsense;
pub mod oracle;
pub mod protocols;
pub mod random;
pub mod recording;
pub mod reply;
pub mod rules;
pub mod run;
pub mod said;
pub mod script;
pub mod seed;
pub mod settings;
pub mod shape;
pub mod shrink;
pub mod staleness;
pub mod stopwatch;
pub mod traffic;
pub mod trial;
pub mod workload;
pub mod world;

pub use run::{Report, run};
pub use seed::Options;
