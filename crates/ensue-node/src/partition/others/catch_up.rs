//! After a lost tail: what must be here again before sessions are served.
//!
//! The log also held what was received of the other datacenters, and votes and parts of transactions. Sessions of this
//! datacenter, on other cores, may have seen all of that. So before a session is served: every datacenter's stream is
//! applied up to where it stood after the restart, which is at least what may have been shown before; and every other
//! partition of this datacenter has told again of the transactions that this one takes part in (trap 17). The same goes
//! for what was known of the others' time: what was whole before must not wait for it anew (trap 32). Meanwhile the
//! partition speaks with partitions as always, but executes no part of a local transaction before all that it would
//! read has come.

use super::Others;
use crate::partition::cx::Cx;
use crate::partition::failover::is_given_up;
use crate::partition::journal::open::Open;
use ensue_types::{DatacenterId, KeyspaceId, LogicalTime, OperationId, Part, PartitionId, Position, Rule};
use ensue_wire::{Address, Envelope, Message};
use std::collections::{BTreeMap, BTreeSet};

/// What is still missing.
#[derive(Clone, Debug, Default)]
pub(in crate::partition) struct CatchUp {
    records: u64,
    /// Datacenters that have not said where their stream ends.
    unheard: BTreeSet<DatacenterId>,
    ends: BTreeMap<DatacenterId, Position>,
    /// When they said so.
    ended_at: BTreeMap<DatacenterId, LogicalTime>,
    /// Partitions of this datacenter that have not told again of their transactions, and the question's number.
    silent: BTreeSet<PartitionId>,
    number: u64,
    /// The directory was empty. Each partition of it may have been filled by a copy of another moment, and what one has
    /// may rest on what came to another one's stream since: where the streams end counts from this time on, which is
    /// above all that the copies have. It is known when all partitions have told.
    filled: bool,
    since: Option<LogicalTime>,
    /// Votes for local transactions that the log still has.
    prepared: BTreeMap<OperationId, (KeyspaceId, LogicalTime, Part)>,
    /// What coordinators of this datacenter said meanwhile, until it is taken up.
    notifications: Vec<Message>,
    placed: bool,
}

impl CatchUp {
    /// Panics if what is missing contradicts itself. Answers at how many datacenters it looked.
    pub(in crate::partition) fn check_invariants(&self) -> usize {
        for datacenter in &self.unheard {
            assert!(!self.ends.contains_key(datacenter), "{datacenter:?} has said where its stream ends");
        }
        let has_end = |datacenter: &DatacenterId| self.ends.contains_key(datacenter);
        assert!(self.ended_at.keys().all(has_end), "a time without an end: {self:?}");
        assert!(!self.placed || self.prepared.is_empty(), "parts have their places, and wait: {self:?}");
        self.unheard.len() + self.ended_at.len()
    }

    /// When each datacenter said where its stream ends.
    pub(in crate::partition) fn ended_at(&self) -> impl Iterator<Item = (DatacenterId, LogicalTime)> {
        self.ended_at.iter().map(|(datacenter, time)| (*datacenter, *time))
    }
}

/// Votes for local transactions, by name: the keyspace, when it was voted, and what for.
pub(in crate::partition) type Prepared = BTreeMap<OperationId, (KeyspaceId, LogicalTime, Part)>;

impl Others {
    /// The parts of local transactions are about to get their places: what the log has of them, and what their
    /// coordinators have said since.
    pub(in crate::partition) fn place_local_parts(&mut self) -> Option<(Prepared, Vec<Message>)> {
        let catch_up = self.catch_up.as_mut()?;
        catch_up.placed = true;
        Some((std::mem::take(&mut catch_up.prepared), std::mem::take(&mut catch_up.notifications)))
    }

    /// Whether the directory was empty when this process, or one before it, began to fill it.
    pub(in crate::partition) fn is_filled(&self) -> bool {
        self.is_filled
    }

    /// Another partition of this datacenter begins with an empty directory.
    pub(in crate::partition) fn answer_fill(&self, cx: &mut Cx, from: Address) {
        let fills = self.is_filled && self.is_catching_up();
        cx.send(from, Message::FillAnswer { fills });
    }

    /// Nothing is missing any more.
    pub(in crate::partition) fn end_catching_up(&mut self) {
        self.catch_up = None;
    }

    pub(in crate::partition) fn is_catching_up(&self) -> bool {
        self.catch_up.is_some()
    }

    /// A session meets a partition that catches up.
    pub(in crate::partition) fn refuse_for_now(&self, cx: &mut Cx, envelope: &Envelope) {
        match self.catch_up.as_ref().is_some_and(|catch_up| catch_up.filled) {
            true => {
                let reason = format!(
                    "LOADING partition {} had an empty directory and takes what the other datacenters hold",
                    cx.id
                );
                cx.refuse(envelope, &reason);
            }
            false => cx.refuse_without_tail(envelope, &[]),
        }
    }

    /// Whether parts of local transactions that were lost may yet be given back: they are stamped at the time of their
    /// decision. Where no write takes several partitions there are none.
    pub(in crate::partition) fn awaits_lost_parts(&self, cx: &Cx) -> bool {
        Rule::LostPartsHoldTheTime.holds()
            && self.catch_up.as_ref().is_some_and(|catch_up| !catch_up.placed)
            && cx.protocols.iter().any(|protocol| protocol.capabilities().write_transactions)
    }

    pub(in crate::partition) fn begin_to_catch_up(
        &mut self,
        cx: &mut Cx,
        without: u16,
        records: u64,
        open: &mut Open,
    ) {
        let local = |transaction: &OperationId| transaction.datacenter == cx.datacenter;
        let (prepared, replicated) =
            std::mem::take(&mut open.prepared).into_iter().partition(|(transaction, _)| local(transaction));
        open.prepared = replicated;
        let wait = Rule::CatchUpBeforeServing.holds();
        let others = self
            .replication
            .datacenters()
            .filter(|d| wait && !is_given_up(without, *d) && !self.failover.failed.is_settled(*d));
        let partitions = (0..cx.config.topology.partitions).map(PartitionId);
        let unheard: BTreeSet<DatacenterId> = others.collect();
        cx.homes.await_words(unheard.iter().copied());
        let silent = partitions.filter(|partition| wait && *partition != cx.id).collect();
        let (number, filled) = (cx.number(), self.is_filled);
        let catch_up = CatchUp { records, unheard, silent, number, filled, prepared, ..CatchUp::default() };
        self.catch_up = Some(catch_up);
        self.note_reported_by_all(cx);
        self.request_repeats_again(cx, &|_| true);
    }

    /// Asks those that have not told yet.
    pub(in crate::partition) fn request_repeats_again(
        &self,
        cx: &mut Cx,
        owns: &dyn Fn(PartitionId) -> bool,
    ) {
        let Some(catch_up) = &self.catch_up else { return };
        let number = catch_up.number;
        let silent: Vec<PartitionId> = catch_up.silent.iter().copied().filter(|p| owns(*p)).collect();
        for partition in silent {
            cx.send_local(partition, Message::Repeat { number });
        }
    }

    pub(in crate::partition) fn on_repeated(&mut self, cx: &Cx, from: Address, number: u64) {
        let Address::Partition { partition, .. } = from else { return };
        if let Some(catch_up) = self.catch_up.as_mut().filter(|catch_up| catch_up.number == number) {
            catch_up.silent.remove(&partition);
        }
        self.note_reported_by_all(cx);
    }

    fn note_reported_by_all(&mut self, cx: &Cx) {
        if let Some(catch_up) = self.catch_up.as_mut().filter(|catch_up| catch_up.silent.is_empty()) {
            catch_up.since.get_or_insert(cx.clock.latest());
        }
    }

    /// A datacenter said where its stream ends: the first time counts. It said when, too, and that is as good as a
    /// heartbeat: its clock has passed all that was known of its time before, on which what is taken back of the own
    /// stream may rest.
    pub(in crate::partition) fn note_end(
        &mut self,
        cx: &Cx,
        datacenter: DatacenterId,
        end: Position,
        time: LogicalTime,
    ) {
        if time == LogicalTime::ZERO && self.will_close_later(cx, datacenter) {
            return;
        }
        let Some(catch_up) = &mut self.catch_up else { return };
        // Who says no time may wait for this one.
        let is_late = |since| time == LogicalTime::ZERO || time >= since;
        if catch_up.filled && !catch_up.since.is_some_and(is_late) && Rule::EndsAfterTheCopies.holds() {
            return;
        }
        if !catch_up.unheard.remove(&datacenter) {
            return;
        }
        catch_up.ends.insert(datacenter, end);
        // A time that is not believed has not moved the clock.
        if time <= cx.clock.latest() {
            catch_up.ended_at.insert(datacenter, time);
            self.on_heartbeat(datacenter, end, time);
        }
    }

    /// Nothing of a datacenter's stream will ever come behind this place, whatever it said of it before: what it wrote
    /// there was lost with it, and so with whoever had seen it.
    pub(in crate::partition) fn note_last(&mut self, datacenter: DatacenterId, last: Position) {
        let catch_up = self.catch_up.as_mut();
        if let Some(end) = catch_up.and_then(|catch_up| catch_up.ends.get_mut(&datacenter)) {
            *end = last.min(*end);
        }
    }

    /// A datacenter that nobody has met begins: nothing of it can be missing, and it waits for those that serve.
    pub(in crate::partition) fn note_nothing_to_come(&mut self, cx: &mut Cx, datacenter: DatacenterId) {
        let is_new = self.is_unmet(datacenter);
        let Some(catch_up) = self.catch_up.as_mut().filter(|_| is_new) else { return };
        // Nor does it know of homes that have moved.
        cx.homes.hear(datacenter, &[]);
        if catch_up.unheard.remove(&datacenter) {
            catch_up.ends.insert(datacenter, Position(0));
        }
    }

    /// Whether a datacenter that promises no time will soon: it has just been started, and its directory may be an old
    /// copy. Times that are refused are another matter, and where lost parts are given back two may wait for each
    /// other.
    fn will_close_later(&self, cx: &Cx, datacenter: DatacenterId) -> bool {
        let is_refused = self.ahead.refuses().any(|refused| refused == datacenter);
        self.stable_time.times.has_heartbeats() && !is_refused && !self.awaits_lost_parts(cx)
    }

    /// Whether somebody has not said yet what is missing.
    pub(in crate::partition) fn awaits_words(&self) -> bool {
        let open = |catch_up: &CatchUp| !catch_up.unheard.is_empty() || !catch_up.silent.is_empty();
        self.catch_up.as_ref().is_some_and(open)
    }

    /// Whether all that local transactions would read has come, and they have not been taken up.
    pub(in crate::partition) fn may_place_local_parts(&self) -> bool {
        let received = |(datacenter, end): (&DatacenterId, &Position)| {
            self.replication.receiver(*datacenter).is_none_or(|receiver| receiver.received() >= *end)
        };
        self.catch_up.as_ref().is_some_and(|catch_up| !catch_up.placed && catch_up.ends.iter().all(received))
    }

    /// How many records were read, if all that was missing is applied.
    pub(in crate::partition) fn caught_up(&self) -> Option<(&CatchUp, u64)> {
        let applied = |(datacenter, end): (&DatacenterId, &Position)| {
            self.replication.applied_through(*datacenter) >= *end
        };
        let catch_up = self.catch_up.as_ref()?;
        (catch_up.placed && catch_up.ends.iter().all(applied)).then_some((catch_up, catch_up.records))
    }

    /// What a coordinator of this datacenter says of a local transaction before it can be taken up is kept.
    pub(in crate::partition) fn keep_notification(
        &mut self,
        cx: &Cx,
        envelope: Envelope,
    ) -> Option<Envelope> {
        let of_local = match &envelope.message {
            Message::Prepare { transaction, .. } | Message::Commit { transaction, .. } => {
                transaction.datacenter == cx.datacenter
            }
            _ => false,
        };
        match &mut self.catch_up {
            Some(catch_up) if of_local && !catch_up.placed => {
                catch_up.notifications.push(envelope.message);
                None
            }
            _ => Some(envelope),
        }
    }

    /// Their coordinator needs nothing more of these: what it said before is not executed again.
    pub(crate) fn drop_notifications(&mut self, operations: &[OperationId]) {
        let Some(catch_up) = &mut self.catch_up else { return };
        let done: BTreeSet<OperationId> = catch_up
            .notifications
            .iter()
            .filter_map(|message| match message {
                Message::Commit { transaction, decision } if operations.contains(&decision.operation) => {
                    Some(*transaction)
                }
                _ => None,
            })
            .collect();
        catch_up.prepared.retain(|transaction, _| !done.contains(transaction));
        catch_up.notifications.retain(|message| match message {
            Message::Prepare { transaction, .. } | Message::Commit { transaction, .. } => {
                !done.contains(transaction)
            }
            _ => true,
        });
    }
}
