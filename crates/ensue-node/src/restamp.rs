//! The way back of a datacenter whose clock was too far ahead: its times beyond a bound become others just above it,
//! in the same order
//! (decision 18).
//!
//! All partitions of the stopped datacenter are gone through twice. First every time beyond the bound is gathered
//! (`Gather`), then
//! each is replaced by its rank above the bound (`Replace`). One order for all partitions: a transaction keeps one
//! stamp, and what is
//! after something stays after it. Whoever chooses the bound answers for it: no other datacenter has taken a time of
//! this one that
//! lies beyond it.

use ensue_store::disk::FileName;
use ensue_store::layout::batch::Seal;
use ensue_store::restamp::{self, Restamp, RestampError};
use ensue_types::{Causes, DatacenterId, LogicalTime};
use std::collections::BTreeSet;

/// Why a datacenter cannot be given other times.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotRestamp {
    #[error("{0}")]
    File(#[from] RestampError),
    #[error(
        "it holds a time of datacenter {}, {time}, beyond the bound: the clock there was ahead, too; recover that one \
         first, or wait until the time has passed (datacenters are counted from 1, as the configuration names them)",
        u16::from(origin.0) + 1
    )]
    Foreign { origin: DatacenterId, time: LogicalTime },
    #[error(
        "datacenter {} has seen a time of this one beyond the bound, {time}: it cannot be changed any more, wait until it \
         has passed (datacenters are counted from 1, as the configuration names them)",
        u16::from(by.0) + 1
    )]
    Known { by: DatacenterId, time: LogicalTime },
}

/// The times of a datacenter beyond a bound.
#[derive(Clone, Debug)]
pub struct Gather {
    own: DatacenterId,
    bound: LogicalTime,
    times: BTreeSet<LogicalTime>,
    problem: Option<CannotRestamp>,
}

impl Gather {
    pub fn new(own: DatacenterId, bound: LogicalTime) -> Gather {
        Gather { own, bound, times: BTreeSet::new(), problem: None }
    }

    /// Takes the times of one file.
    pub fn file(&mut self, file: FileName, bytes: &bytes::Bytes, seal: Seal) -> Result<(), CannotRestamp> {
        restamp::file(file, bytes, seal, self.own, self)?;
        self.problem.clone().map_or(Ok(()), Err)
    }

    /// Takes times that were gathered elsewhere.
    pub fn extend(&mut self, times: impl IntoIterator<Item = LogicalTime>) {
        let bound = self.bound;
        self.times.extend(times.into_iter().filter(|&time| time > bound));
    }

    pub fn times(&self) -> &BTreeSet<LogicalTime> {
        &self.times
    }

    /// What becomes of each.
    pub fn replace(self) -> Replace {
        Replace { bound: self.bound, times: self.times.into_iter().collect(), is_reversed: false }
    }

    fn is_beyond(&self, time: LogicalTime) -> bool {
        time > self.bound && time < LogicalTime::MAX
    }
}

impl Restamp for Gather {
    fn time(&mut self, of: Option<DatacenterId>, time: LogicalTime) -> LogicalTime {
        if self.is_beyond(time) {
            match of.filter(|origin| *origin != self.own) {
                Some(origin) => self.problem = Some(CannotRestamp::Foreign { origin, time }),
                None => drop(self.times.insert(time)),
            }
        }
        time
    }

    fn causes(&mut self, origin: DatacenterId, causes: &Causes) -> Result<Causes, RestampError> {
        Ok(causes.map_times(|of, time| {
            if origin != self.own && of.is_none_or(|of| of == self.own) && self.is_beyond(time) {
                self.problem = Some(CannotRestamp::Known { by: origin, time });
                return time;
            }
            self.time(of, time)
        }))
    }
}

/// Replaces each time beyond the bound by its rank above it.
#[derive(Clone, Debug)]
pub struct Replace {
    bound: LogicalTime,
    times: Vec<LogicalTime>,
    is_reversed: bool,
}

impl Replace {
    /// The same file with other times.
    pub fn file(
        &mut self,
        file: FileName,
        bytes: &bytes::Bytes,
        seal: Seal,
        own: DatacenterId,
    ) -> Result<Vec<u8>, CannotRestamp> {
        Ok(restamp::file(file, bytes, seal, own, self)?)
    }

    /// The last time that there will be.
    pub fn latest(&self) -> LogicalTime {
        LogicalTime(self.bound.0 + self.times.len() as u64)
    }

    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The last becomes the first: what a simulator does to show what the order is for.
    pub fn reverse(&mut self) {
        self.is_reversed = true;
    }
}

impl Restamp for Replace {
    fn time(&mut self, _: Option<DatacenterId>, time: LogicalTime) -> LogicalTime {
        if time <= self.bound || time == LogicalTime::MAX {
            return time;
        }
        let mut below = self.times.partition_point(|&known| known < time) as u64;
        if self.is_reversed {
            below = (self.times.len() as u64).saturating_sub(below + 1);
        }
        LogicalTime(self.bound.0 + 1 + below)
    }

    fn causes(&mut self, _: DatacenterId, causes: &Causes) -> Result<Causes, RestampError> {
        Ok(causes.map_times(|of, time| self.time(of, time)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: DatacenterId = DatacenterId(1);

    fn gathered(times: &[u64]) -> Gather {
        let mut gather = Gather::new(OWN, LogicalTime(100));
        for &time in times {
            gather.time(Some(OWN), LogicalTime(time));
        }
        gather
    }

    #[test]
    fn times_beyond_the_bound_keep_their_order_and_the_others_stay() {
        let mut replace = gathered(&[900, 7_000, 50, 100, 101, 900]).replace();
        let mapped =
            [0, 50, 100, 101, 900, 7_000, u64::MAX].map(|time| replace.time(None, LogicalTime(time)).0);
        assert_eq!(mapped, [0, 50, 100, 101, 102, 103, u64::MAX]);
        assert_eq!(replace.latest(), LogicalTime(103));
        assert!(gathered(&[3, 100]).replace().is_empty());
    }

    #[test]
    fn what_others_have_told_or_seen_beyond_the_bound_is_not_changed() {
        let mut gather = gathered(&[]);
        gather.time(Some(DatacenterId(0)), LogicalTime(101));
        assert!(matches!(gather.problem, Some(CannotRestamp::Foreign { .. })));

        let vector = |time: u64| {
            let protocol = ensue_protocol::by_name("cure", Default::default()).unwrap();
            let stamp = ensue_types::Stamp { time: LogicalTime(time), datacenter: OWN, ..Default::default() };
            let source = ensue_types::Source { operation: Default::default(), stamp, dependencies: None };
            let mut causes = Causes::Nothing;
            protocol.record_reads(&mut causes, &[source], &[]);
            causes
        };
        let mut gather = gathered(&[]);
        gather.causes(DatacenterId(0), &vector(100)).unwrap();
        gather.causes(OWN, &vector(200)).unwrap();
        assert_eq!((gather.problem.clone(), gather.times().len()), (None, 1));
        gather.causes(DatacenterId(0), &vector(101)).unwrap();
        assert!(matches!(gather.problem, Some(CannotRestamp::Known { by: DatacenterId(0), .. })));
    }
}
