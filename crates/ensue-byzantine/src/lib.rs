//! A replica of a Byzantine-replicated service, as a machine without input or output: requests of clients and messages
//! of other replicas arrive, and requests leave in one order that all correct replicas share, while at most a third of
//! the replicas, less one, lie, collude, are silent, or lag.
//!
//! Which block of requests is next is decided by an engine that others maintain: the round machine, the vote counts and
//! the proposals of Malachite (`malachitebft-core-driver`), which is Tendermint's algorithm. [`replica::Replica`] is
//! what an engine needs around it: which messages reach it, signatures, what must be durable before a vote leaves,
//! which requests a block may have, blocks for replicas that lag, and the answers of sessions.
//!
//! It opens no socket and no file, reads no clock, executes no request, and knows nothing of Prophecy or of the store.

pub mod block;
mod codec;
mod context;
pub mod keys;
pub mod limits;
pub mod message;
pub mod replica;

pub use codec::Malformed;
