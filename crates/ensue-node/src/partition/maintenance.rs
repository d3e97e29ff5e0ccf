//! What is removed when nobody can need it any more, rights that are moved to other datacenters,
//! the metrics of a partition, and the checks of its invariants.

pub(in crate::partition) mod balance;
pub(in crate::partition) mod collect;
mod deadlines;
pub(in crate::partition) mod invariants;
pub(in crate::partition) mod metrics;

use balance::Balancer;
use collect::Collector;
use invariants::{Checks, Parts};

/// What a partition does for itself, beside its work.
#[derive(Clone, Debug, Default)]
pub(crate) struct Maintenance {
    collector: Collector,
    balancer: Balancer,
    checks: Checks,
}

impl Maintenance {
    /// Checks what always holds, if it is the turn for that.
    pub(in crate::partition) fn on_turn_end(&mut self, parts: &Parts<'_>) {
        let Maintenance { collector, checks, .. } = self;
        checks.on_turn_end(|| parts.check(collector));
    }

    /// Panics if a part contradicts itself, or another one. It does not look at the rows.
    pub(in crate::partition) fn check_invariants(&self, parts: &Parts<'_>) {
        parts.check(&self.collector);
    }
}
