//! The directory of a partition, replicated inside a datacenter: what a partition writes is there when a majority of
//! its replicas has it.
//!
//! A partition knows a directory and nothing of replicas. The requests that change its files (`DiskOp`) are the entries
//! of a replicated log, by raft-rs; each replica carries them out on the files of its own node, and answers go to the
//! partition when they are committed. The partition runs beside the leader only. When another replica becomes the
//! leader, the partition starts there as it would after a kill on its old machine: it finds everything that was
//! acknowledged. So nothing above this crate needs another protocol for a change of leader than for a restart.
//!
//! - A `Replica` is a state machine: inputs go in, outputs are drained. It reads no clock and no file.
//! - Bytes that are appended to files are written once, where the partition wants them; the journal of the replica says
//!   where ([`journal`]).
//! - A replica whose power failed is not counted on before a leader has made it whole ([`trust`]); one that lost its
//!   directory becomes a member by a new name ([`beginning`]).
//! - A replica moves to another node as a new member that takes the place of the old one ([`moving`]).
//! - A replica that lacks much is sent what is missing of each file ([`transfer`], [`serving`]).
//!
//! `sim` runs groups of replicas against crashes, power failures, lost directories and cuts, and judges them.

mod beginning;
mod codec;
mod config;
mod contents;
mod disk;
mod engine;
mod held;
mod journal;
mod leading;
mod member;
mod members;
mod message;
mod moving;
mod operation;
mod question;
mod replica;
mod serving;
pub mod sim;
mod starting;
mod transfer;
mod trust;
mod writer;

pub use config::{Config, Tuning, plan};
pub use moving::{MemberReport, Move, Refusal, Report};
pub use replica::{Absent, Output, Replica, Role, on_message_to_nobody};
