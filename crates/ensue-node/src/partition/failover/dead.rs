//! A datacenter that an operator declared dead: the survivors bring its stream to one end, the same everywhere.
//!
//! Its last entries may have reached one survivor only. On the declaration a partition takes nothing more from the dead
//! one, logs that, and when it is durable says how much of the stream it has (`Dead`), to the same partition of every
//! other survivor. Whoever hears of it declares it too. When all have spoken the longest is the end: who lacks entries
//! asks one that has them (`PassOn`) and takes them as if their origin had sent them. That they can be passed on rests
//! on everybody keeping what it received until every datacenter has it (`persistence`).
//!
//! If another one dies before that, it may have passed its share on to some survivors and not to others, after these
//! had spoken. So a word counts only if who says it had declared everybody dead whom its hearer has: nothing comes
//! beside what the living have then. On each further declaration all is said anew.
//!
//! The stream is *settled* here when it is received up to its end. That is logged before anything rests on it: after a
//! restart the others may be out of reach, and what is known need not be learned again.
//!
//! The dead datacenter is told, too, at once if it can be reached, else when it comes back. What it would acknowledge
//! from there on nobody would take: the partition that hears it tells the others of its datacenter, and all answer
//! everybody with an error that says what to do, reads included, since they show what the others may have discarded.
//! The process goes on, and the superblock remembers it.

use crate::partition::Partition;
use crate::partition::cx::Cx;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use crate::partition::visibility::Visibility;
use crate::trace::Trace;
use bytes::Bytes;
use ensue_store::layout;
use ensue_store::record::Record;
use ensue_types::{DatacenterId, LogicalTime, OperationId, PartitionId, Position, Reply, Rule};
use ensue_wire::{Address, Envelope, Message};
use std::collections::{BTreeMap, BTreeSet};

/// The datacenters that were declared dead.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dead {
    declared: BTreeMap<DatacenterId, Declared>,
    /// Transactions whose coordinators miss a part, until the stream that it would be in has its end here.
    awaited: BTreeSet<OperationId>,
    /// To whom a link of this partition is up.
    linked: BTreeSet<DatacenterId>,
}

/// How far a survivor has a dead datacenter's stream of this partition.
#[derive(Clone, Copy, Debug)]
struct Have {
    received: Position,
    /// Everything that it wrote up to then is among it.
    time: LogicalTime,
}

#[derive(Clone, Debug)]
struct Declared {
    /// What was known of its time when it was declared dead.
    time: LogicalTime,
    /// The end of the log behind the declaration: when that is durable, the others are told.
    logged: u64,
    told: bool,
    /// The survivors that have declared it, too.
    by: BTreeSet<DatacenterId>,
    /// What they have of it, as they said when they had declared all that are declared here.
    heard: BTreeMap<DatacenterId, Have>,
    /// Who was asked to pass on what is not here: nobody else's entries of it are taken.
    asked: Option<DatacenterId>,
    /// Once its stream is here up to the end: everything that it wrote up to then is here.
    whole: Option<LogicalTime>,
}

impl Dead {
    pub(crate) fn contains(&self, datacenter: DatacenterId) -> bool {
        !self.declared.is_empty() && self.declared.contains_key(&datacenter)
    }

    pub(in crate::partition) fn link_up(&mut self, datacenter: DatacenterId) {
        self.linked.insert(datacenter);
    }

    pub(in crate::partition) fn link_down(&mut self, datacenter: DatacenterId) {
        self.linked.remove(&datacenter);
    }

    /// Whether something waits to be durable before it is told.
    pub(in crate::partition) fn is_untold(&self) -> bool {
        self.declared.values().any(|declared| !declared.told)
    }

    pub(in crate::partition) fn is_settled(&self, datacenter: DatacenterId) -> bool {
        self.declared.get(&datacenter).is_some_and(|declared| declared.whole.is_some())
    }

    /// Up to when everything that it wrote is here, once its stream has its end.
    pub(crate) fn whole(&self, datacenter: DatacenterId) -> Option<LogicalTime> {
        self.declared.get(&datacenter)?.whole
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
            let ended = declared.whole.map(|whole| Record::Ended { datacenter, whole });
            [Record::Dead { datacenter, time: declared.time }].into_iter().chain(ended)
        })
    }

    /// What the log or a checkpoint says.
    pub(crate) fn restore(&mut self, datacenter: DatacenterId, time: LogicalTime) {
        self.declared.entry(datacenter).or_insert(Declared {
            time,
            logged: 0,
            told: false,
            by: BTreeSet::new(),
            heard: BTreeMap::new(),
            asked: None,
            whole: None,
        });
    }

    /// The same of the end of its stream.
    pub(in crate::partition) fn restore_end(&mut self, datacenter: DatacenterId, whole: LogicalTime) {
        if let Some(declared) = self.declared.get_mut(&datacenter) {
            declared.whole = Some(whole);
        }
    }
}

impl Cx {
    /// Answers with the entries read, as many as fit into one message.
    pub(in crate::partition) fn pass_on(
        &mut self,
        to: DatacenterId,
        origin: DatacenterId,
        read: Vec<(Position, Bytes)>,
    ) {
        let most = self.config.tuning.stream_batch_entries;
        let entries = read.into_iter().map(|(_, entry)| entry).take(most).collect();
        self.send(
            Address::Partition { datacenter: to, partition: self.id },
            Message::PassedOn { origin, entries },
        );
    }

    /// What everybody is answered from here on.
    pub(in crate::partition) fn word_of_death(&self, by: &str) -> String {
        let own = &self.config.topology.datacenters[usize::from(self.datacenter.0)].name;
        format!(
            "{DECLARED_DEAD} {own} was declared dead, says {by}: the others go on without it and take nothing from it, \
             so that nothing is read or written here any more. Use another datacenter; stop the nodes of {own} and put \
             their data away"
        )
    }
}

impl Others {
    /// The other datacenters that were not declared dead.
    pub(crate) fn living(&self) -> impl Iterator<Item = DatacenterId> {
        self.replication
            .senders
            .keys()
            .copied()
            .filter(|datacenter| !self.failover.dead.contains(*datacenter))
    }

    /// A hash of what was received of a datacenter, whether a link to it is up, and whether it was declared dead.
    pub(in crate::partition) fn state_of(&self, cx: &Cx, datacenter: DatacenterId) -> Reply {
        let received = self
            .replication
            .receivers
            .get(&datacenter)
            .map(|receiver| receiver.received())
            .unwrap_or_default();
        let time = self.stable_time.times.received.at(datacenter);
        let state =
            state_hash([&cx.id.0.to_le_bytes()[..], &received.0.to_le_bytes(), &time.0.to_le_bytes()]);
        let linked = self.failover.dead.linked.contains(&datacenter);
        let flags =
            [linked, self.failover.dead.contains(datacenter)].map(|flag| Reply::Integer(i64::from(flag)));
        Reply::Array([Reply::bulk(format!("{state:016x}"))].into_iter().chain(flags).collect())
    }

    /// Of several the deaths are said first, and then how much there is of each: that counts only from who is known to
    /// know of all.
    fn tell_all_dead(&self, cx: &mut Cx, survivor: DatacenterId) {
        let told = self.failover.dead.declared.iter().filter(|(_, declared)| declared.told);
        let told: Vec<DatacenterId> = told.map(|(datacenter, _)| *datacenter).collect();
        let times = told.len().min(2);
        for datacenter in told.repeat(times) {
            self.tell_dead(cx, survivor, datacenter);
        }
    }

    fn tell_dead(&self, cx: &mut Cx, to: DatacenterId, datacenter: DatacenterId) {
        let Some(have) = self.have_of(datacenter) else { return };
        let to = Address::Partition { datacenter: to, partition: cx.id };
        cx.send(to, Message::Dead { datacenter, received: have.received, time: have.time });
    }

    fn have_of(&self, datacenter: DatacenterId) -> Option<Have> {
        let declared = self.failover.dead.declared.get(&datacenter)?;
        // What one said that is dead now counts for those whom it did not reach.
        let time = declared.whole.unwrap_or(declared.time);
        let received = self.replication.receivers.get(&datacenter)?.received();
        Some(Have { received, time })
    }

    /// A survivor lacks the end of a dead datacenter's stream.
    pub(in crate::partition) fn on_pass_on(
        &mut self,
        cx: &mut Cx,
        to: DatacenterId,
        origin: DatacenterId,
        after: Position,
    ) {
        if !self.failover.dead.contains(origin) {
            return;
        }
        cx.journal.read_to_pass_on(to, origin, after);
        self.replication.read_old_entries(cx);
    }

    /// Whatever a dead datacenter still says is not heard; it is told what it is.
    pub(in crate::partition) fn is_from_the_dead(&self, cx: &mut Cx, envelope: &Envelope) -> bool {
        let from = envelope.from.datacenter();
        if !self.failover.dead.contains(from) {
            return false;
        }
        let is_told = matches!(
            envelope.message,
            Message::StreamResume { .. }
                | Message::Regain { .. }
                | Message::StreamEntries { .. }
                | Message::Introduce(_)
        );
        if is_told {
            self.tell_dead(cx, from, from);
        }
        true
    }
}

impl Keyspaces {
    /// From now on nothing is taken from this datacenter itself.
    pub(in crate::partition) fn declare_dead(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        datacenter: DatacenterId,
    ) {
        if others.failover.dead.contains(datacenter) || !others.replication.senders.contains_key(&datacenter)
        {
            return;
        }
        let time = others.stable_time.times.received.at(datacenter);
        cx.journal.log(&Record::Dead { datacenter, time });
        others.failover.dead.restore(datacenter, time);
        for declared in others.failover.dead.declared.values_mut() {
            declared.logged = cx.journal.log_end();
            declared.told = false;
            declared.heard.clear();
        }
        self.branching.hear_again();
        if let Some(sender) = others.replication.senders.get_mut(&datacenter) {
            sender.on_link_down();
        }
        others.replication.paused.remove(&datacenter);
        cx.trace(Trace::DeclaredDead { partition: cx.id, datacenter });
        others.let_go_of_received(cx);
        others.answer_replica_waits(cx);
    }

    /// An operator asks what is known of a datacenter, or confirms that it is lost for good.
    pub(in crate::partition) fn execute_dead(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        name: &Bytes,
        confirmed: bool,
    ) -> Reply {
        let Some(datacenter) = cx.config.topology.datacenter_named(name) else {
            return Reply::error("ERR there is no datacenter of this name");
        };
        if !confirmed {
            return others.state_of(cx, datacenter);
        }
        self.declare_dead(cx, others, datacenter);
        Reply::OK
    }
}

impl Visibility<'_> {
    /// Says to the other survivors what is here, as soon as no power failure can take it away again.
    pub(in crate::partition) fn tell_of_the_dead(&mut self) {
        let synced = self.cx.journal.log.as_ref().map_or(0, |log| log.synced().0);
        let untold =
            self.others.failover.dead.declared.values_mut().filter(|d| !d.told && d.logged <= synced);
        if untold.map(|declared| declared.told = true).count() == 0 {
            return;
        }
        // Itself first: it may be alive, and acknowledge what nobody takes.
        self.others
            .failover
            .dead
            .datacenters()
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|dead| self.others.tell_dead(self.cx, dead, dead));
        self.others
            .living()
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|survivor| self.others.tell_all_dead(self.cx, survivor));
        // Those who had to speak for the others' streams are fewer now.
        self.others
            .failover
            .dead
            .datacenters()
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|dead| self.settle_stream(dead));
    }

    /// A link is up: whatever was said or asked over an earlier one is said and asked again.
    pub(in crate::partition) fn tell_of_the_dead_again(&mut self, survivor: DatacenterId) {
        self.others.tell_all_dead(self.cx, survivor);
        self.others
            .failover
            .dead
            .datacenters()
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|dead| self.settle_stream(dead));
    }

    /// Another survivor says how much it has.
    pub(in crate::partition) fn on_dead(
        &mut self,
        from: DatacenterId,
        datacenter: DatacenterId,
        received: Position,
        time: LogicalTime,
    ) {
        self.keyspaces.declare_dead(self.cx, self.others, datacenter);
        let Some(declared) = self.others.failover.dead.declared.get_mut(&datacenter) else { return };
        declared.by.insert(from);
        if !self.others.failover.dead.declared.values().all(|declared| declared.by.contains(&from)) {
            return; // It says so again when it knows of them all.
        }
        let Some(declared) = self.others.failover.dead.declared.get_mut(&datacenter) else { return };
        let have = declared.heard.entry(from).or_insert(Have { received, time });
        have.received = have.received.max(received);
        have.time = have.time.max(time);
        self.settle_stream(datacenter);
    }

    /// When all survivors have spoken, the longest is the end; asks for what is not here.
    pub(in crate::partition) fn settle_stream(&mut self, datacenter: DatacenterId) {
        let Some(own) = self.others.have_of(datacenter) else { return };
        let Some(declared) = self.others.failover.dead.declared.get(&datacenter) else { return };
        if !declared.told || declared.whole.is_some() {
            return;
        }
        let heard: Option<Vec<(DatacenterId, Have)>> =
            self.others.living().map(|other| declared.heard.get(&other).map(|have| (other, *have))).collect();
        let Some(heard) = heard else { return };
        let longest = heard.iter().max_by_key(|(_, have)| have.received);
        match longest {
            Some(&(holder, have)) if have.received > own.received && Rule::PassOnTheLast.holds() => {
                if let Some(declared) = self.others.failover.dead.declared.get_mut(&datacenter) {
                    declared.asked = Some(holder);
                }
                let message = Message::PassOn { origin: datacenter, after: own.received };
                self.cx.send(Address::Partition { datacenter: holder, partition: self.cx.id }, message);
            }
            _ => {
                let whole = heard.iter().fold(own.time, |time, (_, have)| time.max(have.time));
                self.cx.journal.log(&Record::Ended { datacenter, whole });
                self.others.failover.dead.restore_end(datacenter, whole);
                self.on_settled(datacenter, own.received, whole);
            }
        }
    }

    /// What was settled before a restart is so without a word of the others: they may be out of reach.
    pub(in crate::partition) fn settle_again(&mut self) {
        for datacenter in self.others.failover.dead.datacenters().collect::<Vec<_>>() {
            if let (Some(whole), Some(have)) =
                (self.others.failover.dead.whole(datacenter), self.others.have_of(datacenter))
            {
                self.on_settled(datacenter, have.received, whole);
            }
        }
    }

    /// Nothing of its stream will ever come beside what is here.
    fn on_settled(&mut self, datacenter: DatacenterId, end: Position, whole: LogicalTime) {
        self.cx.trace(Trace::StreamSettled { partition: self.cx.id, datacenter, end });
        self.others.stable_time.times_rose |= self.others.stable_time.times.received.raise(datacenter, whole);
        self.others.note_end(self.cx, datacenter, end, whole);
        self.end_stream(datacenter, end);
        self.others.failover.dead.say_ended(self.cx, datacenter);
    }
}

impl Partition {
    /// Entries of a dead datacenter's stream. Only who was asked may speak for it, and only until its end is here.
    pub(in crate::partition) fn on_passed_on(
        &mut self,
        from: DatacenterId,
        origin: DatacenterId,
        entries: Vec<Bytes>,
    ) {
        let declared = self.others.failover.dead.declared.get(&origin);
        if !declared.is_some_and(|declared| declared.asked == Some(from) && declared.whole.is_none()) {
            return self
                .cx
                .trace(Trace::Refused { what: "entries of another's stream that were not asked for" });
        }
        if self.cx.is_out_of_room() {
            return self.others.replication.pause(origin);
        }
        let before = self.others.replication.receivers.get(&origin).map(|receiver| receiver.received());
        // Who has said how much it has, and that it is more than there is here, may have been asked.
        let declared = self.others.failover.dead.declared.get(&origin);
        let holds = declared.and_then(|declared| declared.heard.get(&from)).map(|have| have.received);
        if holds <= before {
            return self.cx.trace(Trace::Refused { what: "entries passed on by who was not asked for them" });
        }
        for bytes in entries {
            let Ok(position) = layout::entry_position(&bytes) else {
                self.cx.trace(Trace::Refused { what: "an entry passed on that cannot be read" });
                break;
            };
            if !self.take_entry(origin, position, bytes) {
                break;
            }
        }
        match self.others.replication.receivers.get(&origin).map(|receiver| receiver.received()) == before {
            // It is asked for again a little later.
            true => self.others.replication.pause(origin),
            false => self.visibility().settle_stream(origin),
        }
    }

    /// The others go on without this datacenter: what it would write from here on nobody would take.
    pub(in crate::partition) fn stop_as_dead(&mut self, by: DatacenterId) {
        // Who names a place that is none is broken, and says nothing about us.
        let Some(survivor) = self.cx.config.topology.datacenters.get(usize::from(by.0)) else {
            return self.cx.trace(Trace::Refused { what: "a word of death from no datacenter" });
        };
        let reason = self.cx.word_of_death(&survivor.name);
        // A checkpoint under way must not be named before it is whole; then the next start is told again.
        let marked = match (&mut self.durability.superblock, &self.durability.writer) {
            (Some(superblock), None) => Some(superblock.mark_dead()),
            _ => None,
        };
        self.stop(reason);
        self.cx.disk_ops.extend(marked);
        // Another partition may have no link to anybody who knows.
        let (own, datacenter) = (self.cx.id, self.cx.datacenter);
        let others =
            (0..self.cx.config.topology.partitions).map(PartitionId).filter(|partition| *partition != own);
        for partition in others {
            let to = Address::Partition { datacenter, partition };
            let message = Message::Dead { datacenter, received: Position(0), time: LogicalTime::ZERO };
            self.cx.send_refusal(to, message);
        }
    }
}

/// The code of that answer.
pub(in crate::partition) const DECLARED_DEAD: &str = "DECLAREDDEAD";

/// FNV-1a of some bytes: tells apart what was known at two times.
pub(crate) fn state_hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    parts.into_iter().flatten().fold(0xcbf2_9ce4_8422_2325, step)
}
