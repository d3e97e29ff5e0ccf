//! The stream of one partition to and from the same partition of every other datacenter.
//!
//! A stream is FIFO and survives disconnects: positions are dense, the receiver says where to go on, and drops what it
//! has. A sender holds nothing that the log does not hold; memory keeps a window of the log's tail.

pub mod receiver;
pub mod sender;
