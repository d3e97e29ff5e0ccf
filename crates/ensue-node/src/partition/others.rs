//! The other datacenters: their streams, their time, and which of them failed.

pub(in crate::partition) mod ahead;
pub(in crate::partition) mod catch_up;
pub(in crate::partition) mod failed;
pub(in crate::partition) mod globally_stable;
pub(in crate::partition) mod replicas;
pub(in crate::partition) mod retired;
pub(in crate::partition) mod times;

use crate::config::NodeConfig;
use crate::partition::cx::{Cx, Protocols};
use crate::partition::failover::Failover;
use crate::partition::replication::Replication;
use crate::partition::replication::sender::Sender;
use crate::partition::stable_time::StableTime;
use ahead::Ahead;
use catch_up::CatchUp;
use ensue_types::{Causes, DatacenterId, KeyspaceId, OperationId, PartitionId, Rule, Source};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// What was read: of the writes that made it, those to be remembered, and the others.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    remembered: Vec<Source>,
    settled: Vec<Source>,
}

/// The other datacenters: their streams, their time, and which of them failed.
#[derive(Clone, Debug)]
pub(crate) struct Others {
    pub(in crate::partition) replication: Replication,
    pub(in crate::partition) stable_time: StableTime,
    pub(in crate::partition) failover: Failover,
    /// Times too far ahead, of others and of this datacenter.
    pub(in crate::partition) ahead: Ahead,
    /// What is still missing of theirs before sessions are served, after a lost tail.
    catch_up: Option<CatchUp>,
    /// The directory was empty when this process, or one before it, began to fill it.
    is_filled: bool,
    /// All others have said to this process that they know no directory of this partition.
    is_new: bool,
    /// Datacenters whose directories this partition knows.
    met: BTreeSet<DatacenterId>,
    /// Refused datacenters that an operator wants to be looked at again.
    readmitted: Vec<DatacenterId>,
}

impl Others {
    /// Panics if what is known of other datacenters contradicts itself. Answers at how many things it looked.
    pub(in crate::partition) fn check_invariants(&self) -> usize {
        self.failover.check_invariants()
            + self.replication.check_invariants()
            + self.catch_up.as_ref().map_or(0, CatchUp::check_invariants)
    }

    pub(in crate::partition) fn new(id: PartitionId, config: &NodeConfig, protocols: &Protocols) -> Others {
        Others {
            replication: Replication::new(id, config, protocols),
            stable_time: StableTime::new(protocols),
            failover: Failover::default(),
            ahead: Default::default(),
            catch_up: None,
            is_filled: false,
            is_new: false,
            met: BTreeSet::new(),
            readmitted: Vec::new(),
        }
    }

    /// The directory is one that was empty, and is filled.
    pub(in crate::partition) fn note_filled(&mut self, is_filled: bool) {
        self.is_filled = is_filled;
    }

    /// All others have said that they know no directory of this partition.
    pub(in crate::partition) fn note_new(&mut self) {
        self.is_new = true;
    }

    /// Whether nobody can have anything that was written here before this process.
    pub(in crate::partition) fn is_new(&self) -> bool {
        self.is_new
    }

    /// The directory of a datacenter is known: it has served, or is about to.
    pub(in crate::partition) fn note_met(&mut self, datacenter: DatacenterId) {
        self.met.insert(datacenter);
    }

    /// Tells apart what was read and must be remembered, and what nobody need remember any more.
    pub(crate) fn split_settled(&self, cx: &Cx, keyspace: KeyspaceId, mut sources: Vec<Source>) -> Read {
        if cx.protocol(keyspace).family().goes_by_times() {
            self.with_bounds(cx, &mut sources);
        }
        let remembers_settled = cx.protocol(keyspace).needs().remembers_settled;
        let is_settled = |source: &&Source| self.is_settled(cx, keyspace, &source.operation);
        let settled_count = if remembers_settled { 0 } else { sources.iter().filter(is_settled).count() };
        // Mostly all are, or none is.
        if settled_count == 0 {
            return Read { remembered: sources, settled: Vec::new() };
        }
        if settled_count == sources.len() {
            return Read { remembered: Vec::new(), settled: sources };
        }
        let (settled, remembered) = sources.into_iter().partition(|source| is_settled(&source));
        Read { remembered, settled }
    }

    /// Makes what was read the past of a context.
    pub(crate) fn record_reads(&self, cx: &Cx, keyspace: KeyspaceId, causes: &mut Causes, read: &Read) {
        let protocol = cx.protocol(keyspace);
        let is_nothing = read.remembered.is_empty() && read.settled.is_empty();
        if is_nothing || (self.replication.is_alone() && !protocol.needs().versions) {
            return;
        }
        protocol.record_reads(causes, &read.remembered, &read.settled);
    }

    /// What a write must carry that rests on what was read, and goes on from other writes.
    pub(crate) fn to_carry<'r>(
        &self,
        cx: &Cx,
        keyspace: KeyspaceId,
        read: &'r Read,
        continued: Vec<Source>,
    ) -> Cow<'r, [Source]> {
        if continued.is_empty() {
            return Cow::Borrowed(&read.remembered);
        }
        let mut all = read.remembered.clone();
        all.extend(self.split_settled(cx, keyspace, continued).remembered);
        Cow::Owned(all)
    }

    /// What a write of this session carries.
    pub(crate) fn dependencies(
        &self,
        cx: &Cx,
        keyspace: KeyspaceId,
        context: &mut Causes,
        observed: &[Source],
    ) -> Causes {
        let protocol = cx.protocol(keyspace);
        match protocol.needs().keeps_for_reads() {
            true => protocol.forget(context, &|one| self.stable_time.globally_stable.contains(one)),
            false => protocol.forget(context, &|one| self.is_stable(cx, one)),
        }
        protocol.dependencies(context, observed)
    }

    /// Whether nobody need remember an operation any more.
    pub(crate) fn is_settled(&self, cx: &Cx, keyspace: KeyspaceId, operation: &OperationId) -> bool {
        match cx.protocol(keyspace).needs().keeps_for_reads() {
            true => self.stable_time.globally_stable.contains(operation),
            false => self.is_stable(cx, operation),
        }
    }

    /// Whether every other datacenter has durably applied an operation, as far as this partition knows.
    pub(crate) fn is_stable(&self, cx: &Cx, operation: &OperationId) -> bool {
        if operation.partition != cx.id {
            return false;
        }
        let has = |sender: &Sender| {
            let (_, position) = sender.applied(operation.datacenter);
            position >= operation.position
        };
        match Rule::DropWhatAllHave.holds() {
            true => self.living_senders().all(has),
            false => self.replication.senders().any(|(_, sender)| has(sender)),
        }
    }

    /// What the protocol wants remembered of what was read.
    pub(crate) fn causes_of(&self, cx: &Cx, keyspace: KeyspaceId, sources: Vec<Source>) -> Causes {
        let mut causes = Causes::Nothing;
        self.record_reads(cx, keyspace, &mut causes, &self.split_settled(cx, keyspace, sources));
        self.failover.discarded.strip_lost(cx, keyspace, &mut causes);
        causes
    }

    /// The session has read this; it counts as its past from now on.
    pub(crate) fn remember(&self, cx: &Cx, keyspace: KeyspaceId, causes: &mut Causes, sources: Vec<Source>) {
        self.record_reads(cx, keyspace, causes, &self.split_settled(cx, keyspace, cx.observed(sources)));
    }
}
