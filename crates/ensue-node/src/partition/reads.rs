//! Reads that wait: for coordinators, for shares of a snapshot, for times.

pub(in crate::partition) mod blocked;
pub(in crate::partition) mod snapshot;
pub(in crate::partition) mod snapshot_reads;
pub(in crate::partition) mod times;

use blocked::BlockedReads;
use snapshot::Snapshots;
use snapshot_reads::SnapshotReads;

/// Reads that wait: for coordinators, for their slices, for times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads {
    pub(in crate::partition) snapshots: Snapshots,
    pub(in crate::partition) blocked: BlockedReads,
    pub(in crate::partition) snapshot_reads: SnapshotReads,
}
