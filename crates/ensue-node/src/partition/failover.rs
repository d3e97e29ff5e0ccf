//! Datacenters that failed permanently, and what was discarded with them.

pub(in crate::partition) mod dead;
pub(in crate::partition) mod discarded;
pub(in crate::partition) mod issued;

use dead::Dead;
use discarded::Discarded;

/// Datacenters that failed permanently, and what was discarded with them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failover {
    pub(in crate::partition) dead: Dead,
    pub(in crate::partition) discarded: Discarded,
}
