//! Reads that wait: for coordinators, for shares of a snapshot, for times, for something to pop.

pub(in crate::partition) mod blocked;
pub(in crate::partition) mod changes;
pub(in crate::partition) mod pops;
mod ready;
pub(in crate::partition) mod snapshot;
pub(in crate::partition) mod snapshot_reads;
pub(in crate::partition) mod times;

use crate::partition::keyspaces::Keyspaces;
use blocked::BlockedReads;
use changes::Changes;
use pops::WaitingPops;
use snapshot::Snapshots;
use snapshot_reads::SnapshotReads;

/// Reads that wait: for coordinators, for their slices, for times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads {
    pub(in crate::partition) snapshots: Snapshots,
    pub(in crate::partition) blocked: BlockedReads,
    pub(in crate::partition) pops: WaitingPops,
    pub(in crate::partition) snapshot_reads: SnapshotReads,
    pub(in crate::partition) changes: Changes,
}

impl Reads {
    /// How much waits, by name.
    pub(in crate::partition) fn add_waiting(&self, add: &mut impl FnMut(&str, u64)) {
        add("waiting_reads", self.snapshots.waiting_reads() as u64);
        add("waiting_for_times", self.blocked.len() as u64);
        add("waiting_pops", self.pops.len() as u64);
        let (rows, ending) = self.pops.rows_counts();
        add("total_blocking_keys", rows as u64);
        add("total_blocking_keys_on_nokey", ending as u64);
    }
}

impl Reads {
    /// Panics if a read waits that nobody would resume. Answers at how many things it looked.
    pub(in crate::partition) fn check_invariants(&self, keyspaces: &Keyspaces) -> usize {
        self.snapshots.check_invariants()
            + self.snapshot_reads.check_invariants()
            + self.pops.check_invariants(keyspaces)
    }
}
