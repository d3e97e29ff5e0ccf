//! The total order of writes: last writer wins by stamp, ties by datacenter, then partition.

use crate::{DatacenterId, LogicalTime, PartitionId};
use std::fmt;

/// When and where a write was accepted. Unique a write, or a write transaction.
///
/// The order of the fields is the order of comparison, and it is the same in every datacenter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    pub time: LogicalTime,
    pub datacenter: DatacenterId,
    pub partition: PartitionId,
}

impl Stamp {
    /// Below every stamp of a real write.
    pub const ZERO: Stamp =
        Stamp { time: LogicalTime::ZERO, datacenter: DatacenterId(0), partition: PartitionId(0) };
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}/{}", self.time, self.datacenter, self.partition)
    }
}
