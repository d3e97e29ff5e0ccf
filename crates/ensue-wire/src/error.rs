//! What can be wrong with bytes between nodes, grouped by who is to blame.
//!
//! The group says what to do: a peer that sends malformed bytes is another program or a broken one, damage calls for a
//! new connection, and what cannot be sent is answered to whoever asked for it. No variant is a bug of this crate.

use crate::limits::Bound;
use thiserror::Error;

/// Why bytes did not become an envelope, or an envelope bytes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// The peer: no sound peer of this version sends this. Close the connection and say so.
    #[error("the peer sent what this version does not: {0}")]
    Peer(#[from] Malformed),
    /// The way: the bytes changed between the peers. Connect again.
    #[error("bytes were damaged on the way: {0}")]
    Way(#[from] Damaged),
    /// Our side: this envelope has no encoding within the limits. Nothing was written; refuse the request behind it.
    #[error("this message cannot be sent: {0}")]
    Ours(#[from] Unsendable),
}

/// A count or a length beyond its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{found} {what}, {max} at most")]
pub struct Excess {
    pub what: &'static str,
    pub found: usize,
    pub max: usize,
}

impl Excess {
    pub(crate) fn of(bound: Bound, found: usize) -> Excess {
        Excess { what: bound.what, found, max: bound.max }
    }
}

/// What a peer did wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    #[error("wire version {theirs}, we read {min} to {max}")]
    Version { theirs: u16, min: u16, max: u16 },
    #[error("a message with the unknown tag {tag:#06x}")]
    UnknownMessage { tag: u16 },
    /// A byte that chooses between alternatives chose none of them.
    #[error("{value} is no {what}")]
    UnknownKind { what: &'static str, value: u8 },
    /// The body ends inside a value, or announces more items than it has bytes for.
    #[error("{needed} more bytes announced, {remaining} there")]
    Truncated { needed: usize, remaining: usize },
    #[error("{count} bytes after the end of the message")]
    Trailing { count: usize },
    #[error("text that is not UTF-8")]
    NotText,
    #[error("a context of no layout")]
    NoContext,
    #[error("a command without a name")]
    NoCommand,
    #[error(transparent)]
    OverBound(#[from] Excess),
}

/// What the way did wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Damaged {
    #[error("frame {sequence} is not what its sender sent: it was forged, changed, repeated or moved")]
    Tag { sequence: u64 },
}

/// Why an envelope has no encoding.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unsendable {
    #[error(transparent)]
    OverBound(#[from] Excess),
}
