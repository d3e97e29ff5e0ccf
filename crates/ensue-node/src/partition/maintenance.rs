//! What is removed when nobody can need it any more, the metrics of a partition, and the checks of its invariants.

pub(in crate::partition) mod collect;
pub(in crate::partition) mod invariants;
pub(in crate::partition) mod metrics;

use collect::Collector;
use invariants::Checks;

/// What a partition does for itself, beside its work.
#[derive(Clone, Debug, Default)]
pub(crate) struct Maintenance {
    collector: Collector,
    pub(in crate::partition) checks: Checks,
}
