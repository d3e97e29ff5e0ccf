//! What is known of the other datacenters' time, and what every datacenter has.

pub(in crate::partition) mod globally_stable;
pub(in crate::partition) mod times;

use crate::partition::cx::Protocols;
use globally_stable::GloballyStable;
use times::Times;

/// What is known of the other datacenters' time, and what every datacenter has.
#[derive(Clone, Debug)]
pub(crate) struct StableTime {
    pub(in crate::partition) times: Times,
    /// A time has risen since those that wait for one were looked at.
    times_rose: bool,
    pub(in crate::partition) globally_stable: GloballyStable,
}

impl StableTime {
    pub(in crate::partition) fn new(protocols: &Protocols) -> StableTime {
        StableTime {
            times: Times::new(protocols),
            times_rose: false,
            globally_stable: GloballyStable::default(),
        }
    }
}
