//! How far a partition knows each datacenter's time, and how far a read may look.

use ensue_types::{DatacenterId, LogicalTime, TimeVector};

/// What a partition knows when a session asks it for a value.
#[derive(Clone, Copy, Debug)]
pub struct StabilityState<'a> {
    /// The datacenter of the partition.
    pub datacenter: DatacenterId,
    /// How many there are.
    pub datacenters: usize,
    /// The present; everything that will be written here is above it.
    pub now: LogicalTime,
    /// Up to when everything that each other datacenter wrote in this partition has been received here.
    pub received: &'a TimeVector,
    /// Up to when it has been applied here.
    pub applied: &'a TimeVector,
    /// Up to when every partition of this datacenter has received it.
    pub stable: &'a TimeVector,
}

impl StabilityState<'_> {
    /// Every datacenter but the partition's own.
    pub fn others(&self) -> impl Iterator<Item = DatacenterId> + use<> {
        let own = self.datacenter;
        (0..self.datacenters as u8).map(DatacenterId).filter(move |datacenter| *datacenter != own)
    }

    /// A vector with the present as the own datacenter's entry.
    pub fn with_present(&self, times: &TimeVector) -> TimeVector {
        let mut times = times.clone();
        times.raise(self.datacenter, self.now);
        times
    }
}

/// How far a read looks: a version is shown whose whole past lies at or below these times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct VisibilityPredicate {
    /// The datacenter that looks.
    pub datacenter: DatacenterId,
    pub times: TimeVector,
    /// The times bound what the own datacenter wrote, too: a cut through several partitions. Otherwise the rules for a
    /// read of one partition hold.
    pub whole: bool,
}
