//! What is removed when nobody can need it any more, and the metrics of a partition.

pub(in crate::partition) mod collect;
pub(in crate::partition) mod metrics;

use collect::Collector;

/// What is removed when nobody can need it any more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Maintenance {
    pub(in crate::partition) collector: Collector,
}
