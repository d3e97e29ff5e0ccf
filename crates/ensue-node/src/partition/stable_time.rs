//! What is known of the other datacenters' time, and what every datacenter has.

pub(in crate::partition) mod everywhere;
pub(in crate::partition) mod times;

use everywhere::Everywhere;
use times::Times;

/// What is known of the other datacenters' time, and what every datacenter has.
#[derive(Clone, Debug)]
pub(crate) struct StableTime {
    pub(in crate::partition) times: Times,
    /// A time has risen since those that wait for one were looked at.
    pub(in crate::partition) times_rose: bool,
    pub(in crate::partition) everywhere: Everywhere,
}
