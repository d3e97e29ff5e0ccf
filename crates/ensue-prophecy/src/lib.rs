//! Prophecy and D-Prophecy: reads of a Byzantine-replicated service at nearly the cost of one replica, by a history of
//! what it answered ("Prophecy: Using History for High-Throughput Fault Tolerance", Sen, Lloyd, Freedman).
//!
//! Requests, answers of replicas and the time arrive as values; what is to be sent leaves as values. The machines are
//! [`sketcher::Sketcher`] for Prophecy, [`distributed`] for D-Prophecy, and [`replica_client::ReplicaClient`] below
//! both. [`history::judge`] decides whether a history is delay-once linearizable, [`sim`] runs the machines against a
//! modelled replica group with liars, and [`study`] measures how often responses of web sites change.
//!
//! It opens no socket, orders no requests among replicas, and knows nothing of the store.

pub mod distributed;
pub mod handler;
pub mod limits;
pub mod lists;
pub mod outcomes;
pub mod random;
pub mod regions;
pub mod replica_client;
pub mod rule;
pub mod scale;
pub mod sessions;
pub mod sim;
pub mod sketch;
pub mod sketcher;
pub mod statistics;
pub mod study;
pub mod table;

/// Histories of this crate's clients, and their judge, which is the checker's.
pub use ensue_check::delay_once as history;
