//! How far a partition knows each datacenter's time, and how far a read may look.

use ensue_types::{DatacenterId, LogicalTime, TimeVector};

/// What a partition knows when a session asks it for a value.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
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

impl Standing<'_> {
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

/// What a datacenter that is lost for good took with it, as far as times tell. The same in every survivor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    pub datacenter: DatacenterId,
    /// What it wrote up to then is everywhere.
    pub whole: LogicalTime,
    /// The first of its writes that are left and may depend on later ones that are not.
    pub doubtful: LogicalTime,
}

impl Loss {
    /// Whether a past of these times may hold something that was lost. What holds all that is left, and nothing more,
    /// counts the dead one's
    /// time as here for ever, which no write has.
    pub fn may_be_in(&self, past: &TimeVector) -> bool {
        let time = past.at(self.datacenter);
        time > self.whole && time < LogicalTime::MAX
    }
}

/// How far a read looks: a version is shown whose whole past lies at or below these times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sight {
    /// The datacenter that looks.
    pub datacenter: DatacenterId,
    pub times: TimeVector,
    /// The times bound what the own datacenter wrote, too: a cut through several partitions. Otherwise the rules for a
    /// read of one partition hold.
    pub whole: bool,
}
