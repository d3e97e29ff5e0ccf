//! What a write replaced where it was written: by it every datacenter sees whether the writer knew what it replaces
//! there.

use crate::{OperationId, Stamp};

/// The value or tombstone of a location that a write replaced at its writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Previous {
    /// That of this write.
    Operation(OperationId),
    /// None. Tombstones up to this stamp may have been forgotten there, and values up to it flushed: they were known.
    Nothing { forgotten: Stamp },
    /// Those of these writes, which stood beside each other, at most one of each datacenter; and whatever is at or
    /// below this stamp.
    Several { operations: Vec<OperationId>, forgotten: Stamp },
}

impl Previous {
    /// The writes that are named.
    pub fn operations(&self) -> &[OperationId] {
        match self {
            Previous::Operation(operation) => std::slice::from_ref(operation),
            Previous::Several { operations, .. } => operations,
            Previous::Nothing { .. } => &[],
        }
    }

    /// The stamp up to which everything was known.
    pub fn forgotten(&self) -> Stamp {
        match self {
            Previous::Operation(_) => Stamp::ZERO,
            Previous::Several { forgotten, .. } | Previous::Nothing { forgotten } => *forgotten,
        }
    }
}
