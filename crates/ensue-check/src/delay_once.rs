//! Delay-once linearizability, which Prophecy promises of the reads of a service; a history of its own form arrives,
//! and what its [`judge`] says of it leaves.
//!
//! A history says which client read or wrote which value of which object, and between which times.
//!
//! An object is what one read request returns. Section 4.2 argues about one order of all states; but the history table
//! knows of each request only its own latest response, so that reads of two different requests may show two states in
//! the other order than they came to be. What is promised, and judged, is promised of each request by itself.

/// What one read request returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u64);

/// What was written, each value once. It stands for the state that a response reflects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(pub u64);

/// What an object is before the first write.
pub const INITIAL: Value = Value(0);

/// Read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The client received the value.
    Read,
    /// The client sent the value.
    Write,
}

/// One operation. Times are microseconds of one clock that all clients share, as in a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Which client.
    pub process: u32,
    /// Of which object.
    pub object: ObjectId,
    /// Read or write.
    pub kind: Kind,
    /// Read or written.
    pub value: Value,
    /// When the client sent the request.
    pub invoked_us: u64,
    /// When the client received the response. A write may never have been answered; a read without an answer is no
    /// operation.
    pub returned_us: Option<u64>,
}

/// Operations in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The operations.
    pub operations: Vec<Operation>,
}

pub mod judge;
