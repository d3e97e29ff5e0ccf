//! A datacenter that is removed in good order: what this partition knows of its own removal, and of that of others
//! (decision 53).
//!
//! An operator says so at the datacenter itself (`CAUSAL RETIRE`). From then on its partitions take no writes, which
//! the log remembers. They go on together, one step after the other; partition 0 gathers how far each one is, and
//! tells all when everybody has come to a step:
//!
//! - `CLOSED`: the word is durable, rights of bounded counters were given to others, and no transaction of this
//!   datacenter is open. When all are here, no stream grows.
//! - `COMPLETE`: every other datacenter has applied the own stream durably, up to its end.
//! - `SILENT`: no session is answered any more. So when all are here, the clock of each is above every time that any of
//!   them has handed out.
//!
//! Then each partition says to the same one of every other datacenter that its stream has ended, and that everything
//! which it wrote at any time is there: `DatacenterFailed` of itself, up to `LogicalTime::MAX`. Who hears that goes on
//! as after a death (`failed`), in which nothing was lost. When all have answered, which they do when that is durable,
//! the partition stops, as `RETIRED`.
//!
//! Everything but the word is found again after a restart. Who has stopped answers a partition that has yet to come to
//! the end that all have come to the last step.

pub(in crate::partition) use crate::partition::cx::words::SILENT;
use ensue_types::{DatacenterId, LogicalTime, PartitionId};
use std::collections::{BTreeMap, BTreeSet};

pub(in crate::partition) const CLOSED: u8 = 1;
pub(in crate::partition) const COMPLETE: u8 = 2;

/// Of one that was removed everything is here, whatever its time.
pub(in crate::partition) const EVERYTHING: LogicalTime = LogicalTime::MAX;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Retirement {
    /// This datacenter is being removed: the end of the log behind the word.
    logged: Option<u64>,
    /// All rights of bounded counters were given to others.
    has_given: bool,
    /// The step to which this partition has come, and the one to which all have.
    step: u8,
    all: u8,
    /// At partition 0: how far each one is.
    reported: BTreeMap<PartitionId, u8>,
    /// Who has answered that the own stream has ended.
    acknowledged_by: BTreeSet<DatacenterId>,
    /// Other datacenters that are being removed, as they say.
    others: BTreeSet<DatacenterId>,
    /// When everything is said again.
    next_us: u64,
}

impl Retirement {
    /// This datacenter is being removed, as the log says up to this end.
    pub(in crate::partition) fn begin(&mut self, log_end: u64) {
        self.logged.get_or_insert(log_end);
    }

    /// Whether it is time to say again how far this partition is; the next time is an interval later.
    pub(in crate::partition) fn take_due(&mut self, now_us: u64, interval_us: u64) -> bool {
        let is_due = now_us >= self.next_us;
        if is_due {
            self.next_us = now_us + interval_us;
        }
        is_due
    }

    pub(in crate::partition) fn is_begun(&self) -> bool {
        self.logged.is_some()
    }

    /// Whether the word is durable, when the log is up to here.
    pub(in crate::partition) fn is_durable(&self, synced: u64) -> bool {
        self.logged.is_some_and(|logged| logged <= synced)
    }

    pub(in crate::partition) fn has_given(&self) -> bool {
        self.has_given
    }

    /// What could be given of rights was.
    pub(in crate::partition) fn note_given(&mut self) {
        self.has_given = true;
    }

    /// Whether sessions are answered no more.
    pub(in crate::partition) fn is_silent(&self) -> bool {
        self.step >= SILENT
    }

    pub(in crate::partition) fn all(&self) -> u8 {
        self.all
    }

    pub(in crate::partition) fn note_step(&mut self, step: u8) {
        self.step = step;
    }

    /// At partition 0: how far a partition is.
    pub(in crate::partition) fn note_report(&mut self, from: PartitionId, step: u8, partitions: u16) {
        self.reported.insert(from, step);
        if self.reported.len() == usize::from(partitions) {
            let least = self.reported.values().copied().min();
            self.note_all(least.unwrap_or_default());
        }
    }

    /// All partitions have come to this step. None goes back behind it.
    pub(in crate::partition) fn note_all(&mut self, step: u8) {
        self.all = self.all.max(step.min(SILENT));
    }

    /// A datacenter knows that the own stream has ended, and that nothing of it is missing.
    pub(in crate::partition) fn note_acknowledged_by(&mut self, datacenter: DatacenterId) {
        self.note_all(SILENT);
        self.acknowledged_by.insert(datacenter);
    }

    pub(in crate::partition) fn is_acknowledged_by(&self, datacenter: DatacenterId) -> bool {
        self.acknowledged_by.contains(&datacenter)
    }

    /// Another datacenter says that it is being removed.
    pub(in crate::partition) fn note_other(&mut self, datacenter: DatacenterId) {
        self.others.insert(datacenter);
    }

    /// The other datacenters that are being removed, or were.
    pub(in crate::partition) fn others(&self) -> impl Iterator<Item = DatacenterId> + '_ {
        self.others.iter().copied()
    }
}
