//! A datacenter that an operator declared dead: the survivors bring its stream to one end, the same everywhere.
//!
//! Its last entries may have reached one survivor only. On the declaration a partition takes nothing more from the dead
//! one, logs that, and when it is durable says how much of the stream it has (`FailedDatacenters`), to the same
//! partition of every other survivor. Whoever hears of it declares it too. When all have spoken the longest is the end:
//! who lacks entries asks one that has them (`PassOn`) and takes them as if their origin had sent them. That they can
//! be passed on rests on everybody keeping what it received until every datacenter has it (`persistence`).
//!
//! If another one dies before that, it may have passed its share on to some survivors and not to others, after these
//! had spoken. So a word counts only if who says it had declared everybody dead whom its hearer has: nothing comes
//! beside what the living have then. On each further declaration all is said anew.
//!
//! The stream is *settled* here when it is received up to its end. That is logged before anything rests on it: after a
//! restart the others may be out of reach, and what is known need not be learned again. It is told to the survivors,
//! and with it who had been declared dead by then (`StreamEnd`). They all name the same: whoever settles a stream after
//! another one has heard of that one's end, because a word counts only from who knows of all the dead. Who of these was
//! not heard may have had more of the stream than its end. Nothing is decided about what was lost before every survivor
//! has settled it (`everywhere`): one that decided alone and died would leave writes that rest on what only it had.
//!
//! The dead datacenter is told, too, at once if it can be reached, else when it comes back. What it would acknowledge
//! from there on nobody would take: the partition that hears it tells the others of its datacenter, and all answer
//! everybody with an error that says what to do, reads included, since they show what the others may have discarded.
//! The process goes on, and the superblock remembers it.

use super::retirement::EVERYTHING;
use ensue_store::record::Record;
use ensue_types::{DatacenterId, DatacenterSet, LogicalTime, OperationId, Position};
use std::collections::{BTreeMap, BTreeSet};

/// The datacenters that were declared dead.
#[derive(Clone, Debug, Default)]
pub(crate) struct FailedDatacenters {
    declared: BTreeMap<DatacenterId, Declared>,
    /// Transactions whose coordinators miss a part, until the stream that it would be in has its end here.
    awaited: BTreeSet<OperationId>,
    /// To whom a link of this partition is up.
    linked: BTreeSet<DatacenterId>,
}

/// How far a survivor has a dead datacenter's stream of this partition.
#[derive(Clone, Copy, Debug)]
pub(in crate::partition) struct Have {
    pub(in crate::partition) received: Position,
    /// Everything that it wrote up to then is among it.
    pub(in crate::partition) time: LogicalTime,
    /// If that is the end: who had been declared dead before it was found.
    pub(in crate::partition) ended: Option<DatacenterSet>,
}

/// A dead datacenter's stream is here up to its end.
#[derive(Clone, Copy, Debug)]
pub(in crate::partition) struct StreamEnd {
    /// Everything that it wrote up to then is here.
    pub(in crate::partition) whole: LogicalTime,
    /// Who had been declared dead before the end was found, itself among them.
    pub(in crate::partition) failed: DatacenterSet,
    /// Every survivor has it.
    pub(in crate::partition) everywhere: bool,
}

#[derive(Clone, Debug)]
struct Declared {
    /// What was known of its time when it was declared dead.
    time: LogicalTime,
    /// The end of the log behind the declaration: when that is durable, the others are told.
    logged: u64,
    reported: bool,
    /// The survivors that have declared it, too.
    by: BTreeSet<DatacenterId>,
    /// What they have of it, as they said when they had declared all that are declared here.
    heard: BTreeMap<DatacenterId, Have>,
    /// Who was asked to pass on what is not here: nobody else's entries of it are taken.
    asked: Option<DatacenterId>,
    /// Once its stream is here up to the end.
    end: Option<StreamEnd>,
}

impl FailedDatacenters {
    pub(crate) fn contains(&self, datacenter: DatacenterId) -> bool {
        !self.declared.is_empty() && self.declared.contains_key(&datacenter)
    }

    pub(in crate::partition) fn link_up(&mut self, datacenter: DatacenterId) {
        self.linked.insert(datacenter);
    }

    pub(in crate::partition) fn link_down(&mut self, datacenter: DatacenterId) {
        self.linked.remove(&datacenter);
    }

    /// The directory is read anew, and the links stay.
    pub(in crate::partition) fn take_over_links(&mut self, before: &FailedDatacenters) {
        self.linked.clone_from(&before.linked);
    }

    pub(in crate::partition) fn is_linked(&self, datacenter: DatacenterId) -> bool {
        self.linked.contains(&datacenter)
    }

    /// One more is declared dead, behind this end of the log: what is here of each is said anew, and heard anew.
    pub(in crate::partition) fn declare(
        &mut self,
        datacenter: DatacenterId,
        time: LogicalTime,
        log_end: u64,
    ) {
        self.restore(datacenter, time);
        for declared in self.declared.values_mut() {
            declared.logged = log_end;
            declared.reported = false;
            declared.heard.clear();
        }
    }

    /// Everything up to here is durable. Whether that is news for the others.
    pub(in crate::partition) fn mark_reported(&mut self, synced: u64) -> bool {
        let due =
            self.declared.values_mut().filter(|declared| !declared.reported && declared.logged <= synced);
        due.map(|declared| declared.reported = true).count() > 0
    }

    /// Those of which the others were told.
    pub(in crate::partition) fn reported(&self) -> Vec<DatacenterId> {
        let reported = self.declared.iter().filter(|(_, declared)| declared.reported);
        reported.map(|(datacenter, _)| *datacenter).collect()
    }

    pub(in crate::partition) fn is_reported(&self, datacenter: DatacenterId) -> bool {
        self.declared.get(&datacenter).is_some_and(|declared| declared.reported)
    }

    /// A survivor says how much it has of a dead datacenter's stream. Whether that counts: until it has declared all
    /// that are declared here, it does not, and is said again.
    pub(in crate::partition) fn hear(
        &mut self,
        from: DatacenterId,
        datacenter: DatacenterId,
        said: Have,
    ) -> bool {
        let Some(declared) = self.declared.get_mut(&datacenter) else { return false };
        declared.by.insert(from);
        if !self.declared.values().all(|declared| declared.by.contains(&from)) {
            return false;
        }
        let Some(declared) = self.declared.get_mut(&datacenter) else { return false };
        let have = declared.heard.entry(from).or_insert(said);
        have.received = have.received.max(said.received);
        have.time = have.time.max(said.time);
        have.ended = have.ended.or(said.ended);
        true
    }

    /// What a survivor has said.
    pub(in crate::partition) fn heard(&self, datacenter: DatacenterId, from: DatacenterId) -> Option<Have> {
        self.declared.get(&datacenter)?.heard.get(&from).copied()
    }

    /// A survivor is asked to pass on what is not here. Nobody else's entries of that stream are taken.
    pub(in crate::partition) fn ask(&mut self, datacenter: DatacenterId, holder: DatacenterId) {
        if let Some(declared) = self.declared.get_mut(&datacenter) {
            declared.asked = Some(holder);
        }
    }

    /// Whether a survivor may pass on entries of a dead datacenter's stream, which has no end here yet.
    pub(in crate::partition) fn may_pass_on(&self, datacenter: DatacenterId, from: DatacenterId) -> bool {
        let declared = self.declared.get(&datacenter);
        declared.is_some_and(|declared| declared.asked == Some(from) && declared.end.is_none())
    }

    /// Up to when everything is known to be here that a dead datacenter wrote.
    pub(in crate::partition) fn known_until(&self, datacenter: DatacenterId) -> Option<LogicalTime> {
        let declared = self.declared.get(&datacenter)?;
        // What one said that is dead now counts for those whom it did not reach.
        Some(declared.end.map_or(declared.time, |end| end.whole))
    }

    /// Panics if a survivor is counted that has not declared a datacenter dead.
    pub(super) fn check_invariants(&self) -> usize {
        for (datacenter, declared) in &self.declared {
            let counted = declared.heard.keys().find(|survivor| !declared.by.contains(survivor));
            assert!(counted.is_none(), "{counted:?} counts for {datacenter}, which it takes for alive");
        }
        self.declared.len()
    }

    /// Whether something waits to be durable before it is told.
    pub(in crate::partition) fn has_unreported(&self) -> bool {
        self.declared.values().any(|declared| !declared.reported)
    }

    pub(in crate::partition) fn is_settled(&self, datacenter: DatacenterId) -> bool {
        self.declared.get(&datacenter).is_some_and(|declared| declared.end.is_some())
    }

    /// Whether it was removed in good order, so that nothing of it is missing.
    pub(in crate::partition) fn is_retired(&self, datacenter: DatacenterId) -> bool {
        self.known_until(datacenter) == Some(EVERYTHING)
    }

    pub(in crate::partition) fn end(&self, datacenter: DatacenterId) -> Option<StreamEnd> {
        self.declared.get(&datacenter)?.end
    }

    pub(in crate::partition) fn await_end(&mut self, transaction: OperationId) {
        self.awaited.insert(transaction);
    }

    pub(in crate::partition) fn take_awaited(&mut self, datacenter: DatacenterId) -> Vec<OperationId> {
        let of_it = self.awaited.iter().copied().filter(|t| t.datacenter == datacenter).collect();
        self.awaited.retain(|transaction| transaction.datacenter != datacenter);
        of_it
    }

    pub(crate) fn datacenters(&self) -> impl Iterator<Item = DatacenterId> {
        self.declared.keys().copied()
    }

    /// What a checkpoint must hold of it.
    pub(crate) fn records(&self) -> impl Iterator<Item = Record> {
        self.declared.iter().flat_map(|(&datacenter, declared)| {
            let ended = declared.end.map(|end| end.record(datacenter));
            [Record::Dead { datacenter, time: declared.time }].into_iter().chain(ended)
        })
    }

    /// What the log or a checkpoint says.
    pub(crate) fn restore(&mut self, datacenter: DatacenterId, time: LogicalTime) {
        self.declared.entry(datacenter).or_insert(Declared {
            time,
            logged: 0,
            reported: false,
            by: BTreeSet::new(),
            heard: BTreeMap::new(),
            asked: None,
            end: None,
        });
    }

    /// The same of the end of its stream.
    pub(in crate::partition) fn restore_end(&mut self, datacenter: DatacenterId, end: StreamEnd) {
        if let Some(declared) = self.declared.get_mut(&datacenter) {
            declared.end = Some(end);
        }
    }
}

impl StreamEnd {
    pub(in crate::partition) fn record(self, datacenter: DatacenterId) -> Record {
        let StreamEnd { whole, failed, everywhere } = self;
        Record::Ended { datacenter, whole, failed, everywhere }
    }
}

/// FNV-1a of some bytes: tells apart what was known at two times.
pub(crate) fn state_hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    parts.into_iter().flatten().fold(0xcbf2_9ce4_8422_2325, step)
}
