//! What a write replaced where it was written: by it every datacenter sees whether the writer knew what it replaces there.

use crate::{OperationId, Stamp};

/// The value or tombstone of a location that a write replaced at its writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Previous {
    /// That of this write.
    Operation(OperationId),
    /// None. Tombstones up to this stamp may have been forgotten there, and values up to it flushed: they were known.
    Nothing { forgotten: Stamp },
}
