//! Reads that wait: for coordinators, for shares of a snapshot, for times.

pub(in crate::partition) mod cuts;
pub(in crate::partition) mod snapshot;
pub(in crate::partition) mod times;
pub(in crate::partition) mod waits;

use cuts::Cuts;
use snapshot::Snapshots;
use waits::Waits;

/// Reads that wait: for coordinators, for their slices, for times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads {
    pub(in crate::partition) snapshots: Snapshots,
    pub(in crate::partition) waits: Waits,
    pub(in crate::partition) cuts: Cuts,
}
