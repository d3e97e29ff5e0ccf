//! Where a value that was read comes from: what a session must remember of it, and who may see it.
//!
//! What a reader may see is its protocol's decision; the store only asks.

use crate::{Causes, DatacenterId, LogicalTime, OperationId, Stamp, TimeVector};
use std::sync::Arc;

/// The write that made a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub operation: OperationId,
    pub stamp: Stamp,
    /// What the write carries; nothing in keyspaces that keep no versions.
    pub dependencies: Option<Arc<Carried>>,
}

static NOTHING: Causes = Causes::Nothing;

impl Source {
    /// What the write carries, as far as it is kept.
    pub fn carried(&self) -> &Causes {
        self.dependencies.as_deref().map_or(&NOTHING, |carried| &carried.causes)
    }
}

/// What a write carries, with the size that is counted for it, which takes a walk through long lists to find out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    causes: Causes,
    bytes: usize,
}

impl Carried {
    pub fn new(causes: Causes) -> Carried {
        // Never none: what is counted is looked for when it may be forgotten.
        Carried { bytes: causes.encoded_bytes().max(1), causes }
    }

    pub fn causes(&self) -> &Causes {
        &self.causes
    }

    /// Bytes of its encoding, at least one.
    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }
}

/// Which writes a reader may see.
pub trait Visibility {
    /// The answer for one write, which has been here since a time, does not change while something is read or settled
    /// by it.
    fn is_visible(&self, source: &Source, since: LogicalTime) -> bool;

    /// Whether it is known to show every write within these bounds.
    fn shows_all(&self, _within: &Within) -> bool {
        false
    }

    /// Whether it is known to hide every write from this one on.
    fn hides_all(&self, _beyond: &Beyond) -> bool {
        false
    }
}

/// Writes none of which is beyond these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Within {
    /// Their own times, and all times that they carry, are at or below these.
    pub times: TimeVector,
    /// They have been here since then or longer.
    pub since: LogicalTime,
}

/// Writes of one datacenter none of which is before these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beyond {
    pub datacenter: DatacenterId,
    /// Their own times are at or above.
    pub time: LogicalTime,
    /// They have been here since then or later.
    pub since: LogicalTime,
}

impl<F: Fn(&Source) -> bool> Visibility for F {
    fn is_visible(&self, source: &Source, _since: LogicalTime) -> bool {
        self(source)
    }
}

/// What has been here since then or longer.
#[derive(Clone, Copy, Debug)]
pub struct HereSince(pub LogicalTime);

impl Visibility for HereSince {
    fn is_visible(&self, _source: &Source, since: LogicalTime) -> bool {
        since <= self.0
    }

    fn shows_all(&self, within: &Within) -> bool {
        within.since <= self.0
    }

    fn hides_all(&self, beyond: &Beyond) -> bool {
        beyond.since > self.0
    }
}
