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

    /// The highest stamp of a datacenter that is not above this one.
    pub fn last_through(self, datacenter: DatacenterId) -> Stamp {
        let time = match self.datacenter < datacenter {
            true => LogicalTime(self.time.0.saturating_sub(1)),
            false => self.time,
        };
        let partition = if self.datacenter == datacenter { self.partition } else { PartitionId(u16::MAX) };
        Stamp { time, datacenter, partition }
    }

    /// The next lower stamp; `ZERO` has none and stays.
    pub fn before(self) -> Stamp {
        let Stamp { time, datacenter, partition } = self;
        match (time.0, datacenter.0, partition.0) {
            (_, _, 1..) => Stamp { partition: PartitionId(partition.0 - 1), ..self },
            (_, 1.., 0) => {
                Stamp { datacenter: DatacenterId(datacenter.0 - 1), partition: PartitionId(u16::MAX), time }
            }
            (1.., 0, 0) => Stamp {
                time: LogicalTime(time.0 - 1),
                datacenter: DatacenterId(u8::MAX),
                partition: PartitionId(u16::MAX),
            },
            (0, 0, 0) => self,
        }
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}/{}", self.time, self.datacenter, self.partition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_stamp_of_a_datacenter_through_another_lies_above_every_lower_one_of_it() {
        let all = || {
            let parts = [0, 1, u16::MAX].map(PartitionId);
            let of = move |time, datacenter| parts.map(|partition| Stamp { time, datacenter, partition });
            (0..4)
                .flat_map(|time| (0..4).map(move |datacenter| (LogicalTime(time), DatacenterId(datacenter))))
                .flat_map(move |(time, datacenter)| of(time, datacenter))
        };
        for through in all().filter(|stamp| stamp.time > LogicalTime::ZERO) {
            for datacenter in (0..4).map(DatacenterId) {
                let last = through.last_through(datacenter);
                assert_eq!(last.datacenter, datacenter);
                for stamp in all().filter(|stamp| stamp.datacenter == datacenter) {
                    assert_eq!(stamp <= last, stamp <= through, "{stamp} {last} {through}");
                }
            }
        }
    }

    #[test]
    fn nothing_lies_between_a_stamp_and_the_one_before() {
        let stamp = |time, datacenter, partition| Stamp {
            time: LogicalTime(time),
            datacenter: DatacenterId(datacenter),
            partition: PartitionId(partition),
        };
        let (most, none) = (u16::MAX, Stamp::ZERO);
        assert_eq!(stamp(7, 2, 3).before(), stamp(7, 2, 2));
        assert_eq!(stamp(7, 2, 0).before(), stamp(7, 1, most));
        assert_eq!(stamp(7, 0, 0).before(), stamp(6, u8::MAX, most));
        assert_eq!(none.before(), none);
    }
}
