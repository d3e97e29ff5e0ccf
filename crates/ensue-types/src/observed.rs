//! What a removal had seen of a location: by it every datacenter knows which puts the removal ends.
//!
//! One owner takes all writes of a location in a datacenter, one after another, and each stamps above those before it.
//! So of a datacenter the last put that was seen says all: what it had put there before is replaced.

use crate::{LogicalTime, PartitionId, Stamp};

/// A set of puts at one location. Joining sets is commutative, associative and idempotent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// The last put of each datacenter that was seen, in the order of the datacenters; it stands for all before it.
    puts: Vec<Stamp>,
    /// Whatever has a stamp up to this: the remover had applied all of that, and forgotten what had lost.
    through: Stamp,
}

impl Observed {
    /// Every put with a stamp up to this one.
    pub fn all_through(through: Stamp) -> Observed {
        Observed { puts: Vec::new(), through }
    }

    /// Adds a put, and what its datacenter had put there before.
    pub fn see(&mut self, put: Stamp) {
        match self.puts.binary_search_by_key(&put.datacenter, |known| known.datacenter) {
            Ok(at) => self.puts[at] = self.puts[at].max(put),
            Err(at) => {
                // Mostly it is the only one.
                self.puts.reserve_exact(1);
                self.puts.insert(at, put);
            }
        }
    }

    /// Adds every put with a stamp up to this one.
    pub fn see_all_through(&mut self, through: Stamp) {
        self.through = self.through.max(through);
    }

    /// Takes the remover's own put out again, if it is in: what the same write puts next is not removed. What its
    /// datacenter had put there before stays in.
    pub fn leave_out(&mut self, own: Stamp) {
        for put in self.puts.iter_mut().filter(|put| **put == own) {
            let (time, partition) = match own.partition.0 {
                0 => (LogicalTime(own.time.0.saturating_sub(1)), PartitionId(u16::MAX)),
                number => (own.time, PartitionId(number - 1)),
            };
            *put = Stamp { time, partition, ..own };
        }
    }

    /// Takes out what has a higher stamp than this; what the same datacenters had put before stays in.
    pub fn leave_out_above(&mut self, stamp: Stamp) {
        for put in self.puts.iter_mut().filter(|put| **put > stamp) {
            *put = stamp.last_through(put.datacenter);
        }
        self.through = self.through.min(stamp);
    }

    /// Whether joining the other would change nothing.
    pub fn includes(&self, other: &Observed) -> bool {
        let is_known = |put: &Stamp| {
            let known = self.puts.binary_search_by_key(&put.datacenter, |known| known.datacenter);
            known.is_ok_and(|at| *put <= self.puts[at])
        };
        other.through <= self.through && other.puts.iter().all(is_known)
    }

    pub fn join(&mut self, other: &Observed) {
        other.puts.iter().for_each(|put| self.see(*put));
        self.see_all_through(other.through);
    }

    pub fn covers(&self, put: Stamp) -> bool {
        let of_its_datacenter = self.puts.iter().find(|known| known.datacenter == put.datacenter);
        put <= self.through || of_its_datacenter.is_some_and(|last| put <= *last)
    }

    /// The last put of each datacenter.
    pub fn puts(&self) -> &[Stamp] {
        &self.puts
    }

    /// The stamp up to which everything was seen.
    pub fn through(&self) -> Stamp {
        self.through
    }

    /// The same with other stamps, which keep the order of each datacenter's.
    pub fn map(&self, mut stamp: impl FnMut(Stamp) -> Stamp) -> Observed {
        let puts = self.puts.iter().map(|put| stamp(*put)).collect();
        Observed { puts, through: stamp(self.through) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DatacenterId;

    fn stamp(time: u64, datacenter: u8) -> Stamp {
        Stamp { time: LogicalTime(time), datacenter: DatacenterId(datacenter), partition: PartitionId(0) }
    }

    #[test]
    fn what_was_seen_of_one_datacenter_says_nothing_of_another() {
        let mut observed = Observed::default();
        assert!(!observed.covers(stamp(1, 0)));
        observed.see(stamp(5, 1));
        observed.see(stamp(3, 1));
        let covered =
            [(5, 1), (4, 1), (6, 1), (4, 0), (4, 2)].map(|(time, dc)| observed.covers(stamp(time, dc)));
        assert_eq!(covered, [true, true, false, false, false]);
        observed.see_all_through(stamp(4, 1));
        let covered = [(4, 0), (4, 1), (4, 2), (5, 2)].map(|(time, dc)| observed.covers(stamp(time, dc)));
        assert_eq!(covered, [true, true, false, false]);
    }

    #[test]
    fn what_the_remover_itself_has_put_is_left_out_and_nothing_before_it() {
        for partition in [PartitionId(0), PartitionId(3)] {
            let own = Stamp { partition, ..stamp(5, 1) };
            let mut observed = Observed::default();
            observed.see(own);
            observed.see(stamp(7, 2));
            observed.leave_out(own);
            let before = Stamp { partition: PartitionId(9), ..stamp(4, 1) };
            assert_eq!([own, before, stamp(7, 2)].map(|put| observed.covers(put)), [false, true, true]);
            assert_eq!(observed.puts()[0].datacenter, own.datacenter);
        }
    }

    #[test]
    fn what_is_left_out_above_a_stamp_is_covered_up_to_it() {
        let own = Stamp { partition: PartitionId(2), ..stamp(5, 1) };
        let mut observed = Observed::all_through(stamp(6, 3));
        [stamp(4, 0), stamp(7, 1), stamp(8, 2)].into_iter().for_each(|put| observed.see(put));
        let before = observed.clone();
        observed.leave_out_above(own);
        for (time, datacenter) in (0..10).flat_map(|time| (0..4).map(move |datacenter| (time, datacenter))) {
            let put = stamp(time, datacenter);
            assert_eq!(observed.covers(put), before.covers(put) && put <= own, "{put}");
        }
        let known = observed.clone();
        observed.leave_out_above(stamp(9, 3));
        assert_eq!(observed, known);
    }

    #[test]
    fn a_join_covers_what_either_covers() {
        let (mut one, mut other) = (Observed::all_through(stamp(2, 0)), Observed::default());
        one.see(stamp(7, 0));
        other.see(stamp(5, 0));
        other.see(stamp(9, 3));
        let mut joined = one.clone();
        joined.join(&other);
        assert_eq!([joined.includes(&one), joined.includes(&other)], [true; 2]);
        assert_eq!([one.includes(&joined), other.includes(&joined)], [false; 2]);
        for (time, datacenter) in (0..11).flat_map(|time| (0..4).map(move |datacenter| (time, datacenter))) {
            let put = stamp(time, datacenter);
            assert_eq!(joined.covers(put), one.covers(put) || other.covers(put), "{put:?}");
        }
        other.join(&one);
        assert_eq!(joined, other);
    }
}
