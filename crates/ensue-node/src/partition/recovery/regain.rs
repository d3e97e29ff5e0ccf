//! A log that may have lost its tail with the power takes back what the other datacenters have of it (trap 15).
//!
//! On a start after an unclean stop on an earlier boot of the machine: ask the same partition of every other datacenter
//! what it has of the own stream beyond the end of this log, take these entries back as own ones, begin a new
//! incarnation whose first entry says where the old one ended, and sync all that. Everybody must have answered: one
//! that did not might hold an entry that was declared lost, and nobody could take that back. Whoever the operator gave
//! up (`ensue recover`) is not asked. Positions of the old incarnation are never used again.
//!
//! An old copy of a directory comes here, too, when others have proved that they received more. They may have trimmed
//! what it lacks: they say whether they can send all of it, of its own stream and of theirs. If not, it is not served,
//! and says `REJOIN`. What nobody received is gone in all its partitions, whether they noticed or not: those that did
//! not are told when one catches up (`catch_up`), and end their incarnations, too.

use super::joining::REQUEST_INTERVAL_US;
use super::recover::Stage;
use crate::partition::Partition;
use crate::partition::cx::Cx;
use crate::partition::failover::dead::Dead;
use crate::partition::journal::Needed;
use crate::partition::journal::open::Open;
use crate::trace::Trace;
use bytes::Bytes;
use ensue_store::disk::{DiskDone, FileName};
use ensue_store::entry::Change;
use ensue_store::layout;
use ensue_types::{DatacenterId, Position, Rule};
use ensue_wire::{Address, Envelope, Introduction, Message};
use std::collections::BTreeMap;

/// Incarnations beyond what the superblock knows that are believed to be this partition's own: it began them, and lost
/// that. More than so many are a mistake of whoever names them.
const FORGOTTEN_INCARNATIONS_MAX: u16 = 16;

/// The others are being asked.
#[derive(Clone, Debug)]
pub struct Regaining {
    /// Datacenters that the operator gave up, one bit each.
    without: u16,
    /// How far each datacenter has received the own stream.
    received: BTreeMap<DatacenterId, Position>,
    /// What a datacenter last said of what it can send.
    offers: BTreeMap<DatacenterId, Offer>,
    /// Others have proved that the end is missing, though no power failed: more may be gone than a power failure takes.
    is_old_copy: bool,
    /// Why it cannot go on though all have answered.
    refusal: Option<String>,
    taken: u64,
    /// Everything is logged, and being synced.
    logged: bool,
    records: u64,
    open: Open,
}

/// What another datacenter says to one that has lost the end of its log.
#[derive(Clone, Copy, Debug)]
struct Offer {
    /// It can send everything that is lacking.
    is_whole: bool,
    /// It has applied all that it received of the own stream: no transaction waits for a part.
    has_applied: bool,
}

/// Whether the operator gave a datacenter up.
pub(in crate::partition) fn is_given_up(without: u16, datacenter: DatacenterId) -> bool {
    datacenter.0 < 16 && without >> datacenter.0 & 1 == 1
}

impl Dead {
    /// The datacenters that have trimmed what is lacking here, or wait for what may be lost for good.
    fn who_cannot_send(&self, cx: &Cx, regaining: &Regaining) -> Vec<DatacenterId> {
        if !Rule::RecoverOnlyWhatCanBeHad.holds() {
            return Vec::new();
        }
        let is_asked = |d: &&DatacenterId| !is_given_up(regaining.without, **d) && !self.contains(**d);
        // A decision is synced before it is told, so a power failure takes no transaction that others have heard of. An
        // old copy may lack the part of a partition, or the decision, that others wait for: nobody has it any more.
        let transactions =
            regaining.is_old_copy && cx.protocols.iter().any(|p| p.capabilities().write_transactions);
        let lacks = |offer: &Offer| !offer.is_whole || transactions && !offer.has_applied;
        let cannot =
            regaining.offers.iter().filter(|(_, offer)| lacks(offer)).map(|(datacenter, _)| datacenter);
        cannot.filter(is_asked).copied().collect()
    }
}

impl Partition {
    /// The log was read, and may have lost its end.
    pub(in crate::partition) fn begin_to_regain(&mut self, without: u16, records: u64, open: Open) {
        self.cx.trace(Trace::TailLost { partition: self.cx.id });
        let is_old_copy = self.durability.is_marked_short(&self.cx);
        let regaining = Regaining {
            without,
            received: BTreeMap::new(),
            offers: BTreeMap::new(),
            is_old_copy,
            refusal: None,
            taken: 0,
            logged: false,
            records,
            open,
        };
        self.enter(Stage::Regaining(Box::new(regaining)));
        self.peers.identity.next_request_us = self.cx.now.monotonic_us + REQUEST_INTERVAL_US;
        self.cx.disk_ops.extend(self.durability.opening.front().cloned());
        let others: Vec<DatacenterId> = self.others.replication.receivers.keys().copied().collect();
        for datacenter in others {
            self.peering().introduce(datacenter, true);
            self.cx.ask_to_regain(datacenter);
        }
        self.go_on_when_all_is_back();
        self.take_early();
    }

    pub(in crate::partition) fn on_message_regaining(&mut self, envelope: Envelope) {
        let from = envelope.from.datacenter();
        // What is given back counts whatever the giver's clock says.
        self.others.take_time(&mut self.cx, &envelope);
        match envelope.message {
            Message::Regain { after } => {
                // What waits here of its lost life is not in the answer, and so may be declared lost.
                let is_entries = |message: &Message| matches!(message, Message::StreamEntries { .. });
                self.peers.early.retain(|early| early.from != envelope.from || !is_entries(&early.message));
                self.others.replication.on_regain(&mut self.cx, from, after);
            }
            Message::Regained { received, entries, .. } => self.on_regained(from, received, entries),
            Message::Introduce(introduction) => {
                let envelope = Envelope { message: Message::Introduce(introduction.clone()), ..envelope };
                self.on_introduce_regaining(envelope, &introduction);
            }
            Message::Dead { datacenter, .. } => {
                // It need not be asked; the rest is taken up when this partition has its own stream.
                self.do_without(datacenter);
                self.keep_early(envelope);
            }
            _ if matches!(envelope.from, Address::Core { .. })
                && !is_about_dependencies(&envelope.message) =>
            {
                self.refuse_for_now(&envelope);
            }
            // Partitions wait.
            _ => self.keep_early(envelope),
        }
    }

    /// It is judged when this partition has its own stream; but what it can send is asked now, and answered.
    fn on_introduce_regaining(&mut self, envelope: Envelope, introduction: &Introduction) {
        let from = envelope.from.datacenter();
        self.peers.keep_the_log_for(&mut self.cx, &self.others, from, introduction);
        if introduction.asks {
            self.peering().introduce(from, false);
        }
        if let Stage::Regaining(regaining) = &mut self.stage {
            let has_applied = introduction.applied >= introduction.received;
            regaining.offers.insert(from, Offer { is_whole: introduction.is_whole, has_applied });
        }
        self.keep_early(envelope);
        self.go_on_when_all_is_back();
    }

    /// What another datacenter cannot send may be in a checkpoint that is just being written, or come from an operator.
    pub(in crate::partition) fn ask_again_what_can_be_had(&mut self) {
        let Stage::Regaining(regaining) = &self.stage else { return };
        if self.cx.now.monotonic_us < self.peers.identity.next_request_us {
            return;
        }
        let lacking = if regaining.logged {
            Vec::new()
        } else {
            self.others.failover.dead.who_cannot_send(&self.cx, regaining)
        };
        self.peers.identity.next_request_us = self.cx.now.monotonic_us + REQUEST_INTERVAL_US;
        self.say_what_cannot_be_had(&lacking);
        lacking.into_iter().for_each(|datacenter| self.peering().introduce(datacenter, true));
    }

    /// The link to a datacenter is down: what it said was said before.
    pub(in crate::partition) fn forget_offer(&mut self, datacenter: DatacenterId) {
        if let Stage::Regaining(regaining) = &mut self.stage {
            regaining.offers.remove(&datacenter);
        }
    }

    fn on_regained(&mut self, from: DatacenterId, received: Position, entries: Vec<Bytes>) {
        let Stage::Regaining(regaining) = &mut self.stage else { return };
        if regaining.logged {
            return;
        }
        regaining.received.insert(from, received);
        for bytes in entries {
            if !self.take_back(&bytes) {
                break;
            }
        }
        // Whatever is said from here on rests on what came back.
        self.durability.write_log(&mut self.cx);
        if received > self.cx.position {
            self.cx.ask_to_regain(from);
        }
        self.go_on_when_all_is_back();
    }

    /// An own entry came back. It is what it was: same position, same stamp, same name.
    fn take_back(&mut self, bytes: &Bytes) -> bool {
        let Ok(entry) = layout::decode_entry(bytes) else {
            self.cx.trace(Trace::Refused { what: "a returned entry that cannot be read" });
            return false;
        };
        if entry.position <= self.cx.position {
            return true;
        }
        let declares = match entry.change {
            // Where an earlier incarnation ended, in a directory that has none of it.
            Change::Lost { after } => {
                let incarnation = entry.position.incarnation();
                let is_first = entry.position == Position::before(incarnation).next();
                // One of which this log has no entry, and that is over: the next is begun when all is back.
                let begun = self.cx.journal.open().incarnation();
                let known = self.cx.incarnation.0.saturating_add(FORGOTTEN_INCARNATIONS_MAX);
                let is_over = self.cx.position.incarnation() < incarnation
                    && begun <= incarnation
                    && incarnation.0 <= known;
                (is_first && is_over && after == self.cx.position).then_some((after, incarnation))
            }
            _ => None,
        };
        let follows = entry.position == self.cx.position.next() || declares.is_some();
        if !follows || entry.stamp.datacenter != self.cx.datacenter {
            self.cx.trace(Trace::Refused { what: "a returned entry that does not follow" });
            return false;
        }
        if let Err(what) = self.cx.judge_own(&entry) {
            self.cx.trace(Trace::Refused { what });
            return false;
        }
        if let Some((_, incarnation)) = declares {
            if self.cx.journal.open().incarnation() < incarnation {
                self.cx.journal.open().begin_incarnation(incarnation);
            }
            self.cx.journal.tail.begin_incarnation(incarnation);
            self.cx.incarnation = self.cx.incarnation.max(incarnation);
        }
        self.cx.position = entry.position;
        self.cx.clock.observe(entry.stamp.time);
        self.cx.journal.log_own(entry.position, bytes);
        if let Change::Effects { transaction: Some(operation), .. } = entry.change {
            // Its coordinator has no answer to rest on, whatever `appendfsync` says: it is told when the part is
            // synced.
            self.cx.journal.note_needed(Needed::Executed(operation));
            self.transactions.report_when_synced(operation, None, self.cx.journal.log_end());
        }
        self.keyspaces.merge_own(&self.cx, &mut self.others, entry);
        self.others.replication.own_entry_applied(&self.cx);
        self.others.replication.losses.taken_back += 1;
        if let Stage::Regaining(regaining) = &mut self.stage {
            regaining.taken += 1;
        }
        true
    }

    /// Another survivor says that a datacenter is lost for good.
    fn do_without(&mut self, datacenter: DatacenterId) {
        if let Stage::Regaining(regaining) = &mut self.stage {
            if datacenter.0 < 16 {
                regaining.without |= 1 << datacenter.0;
            }
        }
        self.go_on_when_all_is_back();
    }

    fn go_on_when_all_is_back(&mut self) {
        let Stage::Regaining(regaining) = &self.stage else { return };
        let has_all = |datacenter: &DatacenterId| {
            is_given_up(regaining.without, *datacenter)
                || self.others.failover.dead.contains(*datacenter)
                || regaining.received.get(datacenter).is_some_and(|received| *received <= self.cx.position)
        };
        let complete = self.others.replication.receivers.keys().all(has_all);
        let complete = complete && self.others.failover.dead.who_cannot_send(&self.cx, regaining).is_empty();
        if !regaining.logged && (complete || !Rule::TakeBackTheTail.holds()) {
            self.begin_incarnation();
        }
    }

    fn say_what_cannot_be_had(&mut self, cannot: &[DatacenterId]) {
        let names: Vec<String> = cannot.iter().map(|datacenter| self.cx.name_of(*datacenter)).collect();
        let names = names.join(" and ");
        let reason = format!(
            "the directory is an old copy, or lost the end of its log, and what followed cannot be had again from \
             {names}: it was trimmed there, or waits for a part of a transaction that nobody has. Put the newest \
             directory back; if it is lost, say `CAUSAL DEAD` for this datacenter on another one, and the others go on \
             without it"
        );
        let Stage::Regaining(regaining) = &mut self.stage else { return };
        let refusal = (!cannot.is_empty()).then(|| reason.clone());
        if regaining.refusal != refusal {
            regaining.refusal = refusal;
            if !cannot.is_empty() {
                self.cx.trace(Trace::CannotRejoin { partition: self.cx.id, reason });
            }
        }
    }

    /// Nobody has more: the rest of the old incarnation is lost, and a new one begins by saying so.
    fn begin_incarnation(&mut self) {
        let Stage::Regaining(regaining) = &mut self.stage else { return };
        regaining.logged = true;
        regaining.refusal = None;
        let taken = regaining.taken;
        if taken > 0 {
            self.cx.trace(Trace::TailTakenBack { partition: self.cx.id, entries: taken });
        }
        self.visibility().end_incarnation();
        self.durability.write_what_came_back(&mut self.cx);
    }

    /// Another partition of this datacenter has lost the end of its log. If that was an old copy of a directory, this
    /// partition runs on one, too, unless nobody has noticed because nobody has received what is missing. Others may
    /// have received what depends on it: it is declared lost. One incarnation is enough for one start.
    pub(crate) fn lose_with_a_sibling(&mut self) {
        let has_ended = self.cx.incarnation > self.peers.identity.read_in;
        if has_ended || self.others.replication.receivers.is_empty() || !Rule::LoseTailsTogether.holds() {
            return;
        }
        let lost = self.cx.position.next();
        self.visibility().end_incarnation();
        self.keyspaces.branching.branches_live_on(&self.cx);
        // Before anything of it is appended, and so before anything of it leaves: a power failure may take the log's
        // end, and an incarnation is never begun twice.
        if let Some(superblock) = &mut self.durability.superblock {
            superblock.incarnation = self.cx.incarnation;
            let marked = superblock.replace();
            self.durability.opening.push_back(marked.clone());
            if self.durability.opening.len() == 1 {
                self.cx.disk_ops.push_back(marked);
            }
        }
        let first = self.cx.position;
        self.others.replication.senders.values_mut().for_each(|sender| sender.on_incarnation(lost, first));
        self.visibility().replicate();
    }

    pub(in crate::partition) fn on_disk_regaining(&mut self, done: DiskDone) {
        match &done {
            DiskDone::Failed { file: Some(file), full: true, .. } => {
                self.durability.on_no_room(&mut self.cx, *file)
            }
            DiskDone::Appended { file: FileName::Reserve } => self.durability.on_reserve_made(&mut self.cx),
            DiskDone::Deleted { file: FileName::Reserve } => self.cx.on_reserve_gone(),
            DiskDone::Rewritten { .. } => {
                self.durability.opening.pop_front();
                match self.durability.opening.front() {
                    Some(next) => self.cx.disk_ops.push_back(next.clone()),
                    None => self.durability.write_what_came_back(&mut self.cx),
                }
            }
            DiskDone::Failed { op, file, reason, .. } => {
                let file = file.map(|file| file.to_string()).unwrap_or_default();
                self.stop(format!("{op} of {file} failed: {reason}"));
            }
            DiskDone::Appended { file: file @ FileName::Segment(_) } => {
                self.cx.journal.open().on_appended(*file);
                self.cx.release();
                self.durability.write_what_came_back(&mut self.cx);
            }
            DiskDone::Synced { file: file @ FileName::Segment(_) } => {
                self.cx.journal.open().on_synced(*file);
                self.durability.testify(&mut self.cx);
                // Under `always` what is asked of the others rests on what was read, and that may not have been known
                // to be synced.
                self.cx.release();
                let log = self.cx.journal.open();
                match log.take_sync() {
                    Some(op) => self.cx.disk_ops.push_back(op),
                    None if log.synced() == log.end() => self.serve_when_logged(),
                    None => {}
                }
            }
            DiskDone::Read { .. } => {
                self.peering().on_old_entries(done);
                self.halt_if_found();
            }
            _ => {}
        }
    }

    fn serve_when_logged(&mut self) {
        let Stage::Regaining(regaining) = &mut self.stage else { return };
        if !regaining.logged {
            return;
        }
        let Regaining { without, records, .. } = **regaining;
        let open = std::mem::take(&mut regaining.open);
        self.serve(records, open, Some(without));
    }

    fn regain_refusal(&self) -> Option<&String> {
        match &self.stage {
            Stage::Regaining(regaining) => regaining.refusal.as_ref(),
            _ => None,
        }
    }

    /// A session meets a partition that has lost its tail.
    pub(in crate::partition) fn refuse_for_now(&mut self, envelope: &Envelope) {
        if let Some(refusal) = self.regain_refusal() {
            return self.refuse(envelope, &format!("REJOIN partition {}: {refusal}", self.cx.id));
        }
        let waits: Vec<String> = match &self.stage {
            Stage::Regaining(regaining) => {
                let open = |d: &&DatacenterId| {
                    !regaining.received.contains_key(d)
                        && !is_given_up(regaining.without, **d)
                        && !self.others.failover.dead.contains(**d)
                };
                self.others
                    .replication
                    .receivers
                    .keys()
                    .filter(open)
                    .map(|d| self.cx.name_of(*d).to_owned())
                    .collect()
            }
            _ => Vec::new(),
        };
        let whom = if waits.is_empty() {
            "it catches up".to_owned()
        } else {
            format!("waits for {}", waits.join(", "))
        };
        let reason = format!(
            "TAILLOST partition {} lost power under appendfsync everysec or no and takes back what others have: {whom}",
            self.cx.id
        );
        self.refuse(envelope, &reason);
    }
}

/// A token that is merged waits like a partition does.
pub(in crate::partition) fn is_about_dependencies(message: &Message) -> bool {
    matches!(message, Message::CheckDependencies { .. } | Message::AwaitTimes { .. })
}
