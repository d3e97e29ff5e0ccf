//! The machines composed: sessions, router, partitions, streams, visibility, transactions and recovery.
//!
//! One `Node` a core, the same value in the server and in the simulator. Inputs go in by `Node::on_input`, outputs
//! come out by `Node::next_output`; nothing here does I/O, reads a clock, or waits.

mod admission;
pub mod audit;
mod command;
pub mod config;
mod cpu;
pub mod errand;
mod evaluate;
mod gate;
pub mod handlers;
mod held;
pub mod homes;
pub mod host;
mod host_parameters;
pub mod input;
pub mod link_rule;
pub mod links;
mod memory;
pub mod node;
pub mod observation;
pub mod output;
mod partition;
mod placement;
mod replicas;
pub mod restamp;
mod router;
mod scrub;
mod session;
pub mod size;
mod statistics;
pub mod trace;
mod view;

pub use audit::{Audit, AuditOutcome};
pub use config::POLICIES;
pub use config::{
    AppendFsync, BranchingOptions, DatacenterTopology, FirstStart, NodeConfig, TokenKey, Topology, Tuning,
};
pub use cpu::CpuReport;
pub use ensue_acl as acl;
pub use ensue_branch::Collection;
pub use ensue_replica::Tuning as ReplicaTuning;
pub use errand::{BackupDone, BackupErrand, CertificateFiles, Errand, ErrandDone, Held, Rewritten};
pub use handlers::{Handler, HandlerRefused, HandlerWarning, LuaHandler};
pub use homes::Home;
pub use host::{Host, Leading, ReplicaOptions, Standing};
pub use host_parameters::{HostParameters, OutputLimit, OutputLimits};
pub use input::{Dropped, Input};
pub use links::LinkReport;
pub use memory::MemoryReport;
pub use node::{Node, UnknownProtocol};
pub use observation::{Observation, ObservedLink, Scope};
pub use output::Output;
pub use partition::describe_write;
pub use scrub::ScrubReport;
pub use session::read_parameter;
pub use trace::{Trace, TransactionStep};
