//! Datacenters that failed permanently, and what was discarded with them.

pub(in crate::partition) mod discarded;
pub(in crate::partition) mod failed;
pub(in crate::partition) mod issued;
pub(in crate::partition) mod retirement;

use discarded::Discarded;
use ensue_types::DatacenterId;
use failed::FailedDatacenters;
use retirement::Retirement;

/// Datacenters that failed permanently, and what was discarded with them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failover {
    pub(in crate::partition) failed: FailedDatacenters,
    pub(in crate::partition) discarded: Discarded,
    pub(in crate::partition) retirement: Retirement,
}

impl Failover {
    /// Panics if something is known of a datacenter that lives. Answers at how many things it looked.
    pub(in crate::partition) fn check_invariants(&self) -> usize {
        for loss in self.discarded.losses() {
            let datacenter = loss.datacenter;
            assert!(self.failed.contains(datacenter), "writes were lost with {datacenter}, which lives");
        }
        self.failed.check_invariants() + self.discarded.losses().count()
    }
}

/// Whether the operator gave a datacenter up.
pub(in crate::partition) fn is_given_up(without: u16, datacenter: DatacenterId) -> bool {
    datacenter.0 < 16 && without >> datacenter.0 & 1 == 1
}
