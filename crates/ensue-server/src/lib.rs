//! The shell around the nodes of one process: configuration, sockets, links, disks, clocks and threads.
//!
//! Clients, peers, files and signals arrive; inputs of [`ensue_node::Node`] leave, and its outputs are carried out. It
//! holds no logic of the store: what a command means, what is replicated and when an answer is true are the node's
//! decisions. One thread a core, one that syncs its disk, and one a node for passwords; they share inboxes, and the
//! certificates, which may be read again.

pub mod admin;
mod audit;
mod backup;
pub mod bootstrap;
mod bounds;
mod client;
mod clients;
pub mod clock;
pub mod config;
mod cpu;
mod descriptors;
mod directory;
mod disk;
mod errands;
pub mod fsck;
mod inbox;
mod link;
mod listener;
pub mod log;
mod metrics;
mod peers;
mod pump;
pub mod recover;
mod scrubber;
pub mod secret;
mod settings;
pub mod shaper;
pub mod shutdown;
#[cfg(test)]
mod temporary;
mod tls;
mod transport;
mod users;
mod visitors;

pub use bootstrap::{Machine, MemoryGauge, Running, StartError, start};
pub use config::{Config, ConfigError};
pub use ensue_node::MemoryReport;
pub use ensue_types::DatacenterId;
pub use shaper::{Shape, Shaper};
pub use tls::{TlsError, revocation};
pub use users::UsersError;
