//! A log that may have lost its tail with the power takes back what the other datacenters have of it (trap 15).
//!
//! On a start after an unclean stop on an earlier boot of the machine: ask the same partition of every other datacenter
//! what it has of the own stream beyond the end of this log, take these entries back as own ones, begin a new incarnation
//! whose first entry says where the old one ended, and sync all that. Everybody must have answered: one that did not might
//! hold an entry that was declared lost, and nobody could take that back. Whoever the operator gave up (`ensue recover`)
//! is not asked. Positions of the old incarnation are never used again.

use super::recover::Open;
use super::{Needed, Partition, Stage};
use crate::trace::Trace;
use bytes::Bytes;
use ensue_store::disk::{DiskDone, FileName};
use ensue_store::entry::Change;
use ensue_store::layout;
use ensue_types::{DatacenterId, Incarnation, Opaque, Position, Rule};
use ensue_wire::{Address, Envelope, Message};
use std::collections::BTreeMap;

/// The others are being asked.
#[derive(Clone, Debug)]
pub struct Regaining {
    /// Datacenters that the operator gave up, one bit each.
    without: u16,
    /// How far each datacenter has received the own stream.
    received: BTreeMap<DatacenterId, Position>,
    taken: u64,
    /// Everything is logged, and being synced.
    logged: bool,
    records: u64,
    open: Open,
}

/// Whether the operator gave a datacenter up.
pub(super) fn is_given_up(without: u16, datacenter: DatacenterId) -> bool {
    datacenter.0 < 16 && without >> datacenter.0 & 1 == 1
}

impl Partition {
    /// The log was read, and may have lost its end.
    pub(super) fn begin_to_regain(&mut self, without: u16, records: u64, open: Open) {
        self.trace(Trace::TailLost { partition: self.id });
        let received = BTreeMap::new();
        let regaining = Regaining { without, received, taken: 0, logged: false, records, open };
        self.stage = Stage::Regaining(Box::new(regaining));
        self.disk.extend(self.persistence.opening.front().cloned());
        let others: Vec<DatacenterId> = self.receivers.keys().copied().collect();
        for datacenter in others {
            self.introduce(datacenter, false);
            self.ask_to_regain(datacenter);
        }
        self.go_on_when_all_is_back();
        self.take_early();
    }

    /// Asks a datacenter what it has beyond the end of this log.
    pub(super) fn ask_to_regain(&mut self, datacenter: DatacenterId) {
        let to = Address::Partition { datacenter, partition: self.id };
        let after = self.position;
        self.send(to, Message::Regain { after });
    }

    pub(super) fn on_message_regaining(&mut self, envelope: Envelope) {
        let from = envelope.from.datacenter();
        // What is given back counts whatever the giver's clock says.
        self.take_time(&envelope);
        match envelope.message {
            Message::Regain { after } => {
                // What waits here of its lost life is not in the answer, and so may be declared lost.
                let is_entries = |message: &Message| matches!(message, Message::StreamEntries { .. });
                self.early.retain(|early| early.from != envelope.from || !is_entries(&early.message));
                self.on_regain(from, after);
            }
            Message::Regained { received, entries, .. } => self.on_regained(from, received, entries),
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

    /// Another datacenter lost the tail of its stream. It is told how far it was received here, and given what follows.
    pub(super) fn on_regain(&mut self, origin: DatacenterId, after: Position) {
        let Some(receiver) = self.receivers.get(&origin) else { return };
        if receiver.received() <= after {
            return self.give_back(origin, after, Vec::new());
        }
        self.persistence.read_received_after(origin, after);
        self.read_old_entries();
    }

    /// Answers with the entries read, as many as fit into one message.
    pub(super) fn give_back(&mut self, origin: DatacenterId, after: Position, read: Vec<(Position, Bytes)>) {
        let received = self.receivers.get(&origin).map(|receiver| receiver.received()).unwrap_or_default();
        let most = self.config.tuning.stream_batch_entries;
        let entries = read.into_iter().map(|(_, entry)| entry).take(most).collect();
        let to = Address::Partition { datacenter: origin, partition: self.id };
        self.send(to, Message::Regained { after, received, entries });
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
        self.write_log();
        if received > self.position {
            self.ask_to_regain(from);
        }
        self.go_on_when_all_is_back();
    }

    /// An own entry came back. It is what it was: same position, same stamp, same name.
    fn take_back(&mut self, bytes: &Bytes) -> bool {
        let Ok(entry) = layout::decode_entry(bytes) else {
            self.trace(Trace::Refused { what: "a returned entry that cannot be read" });
            return false;
        };
        if entry.position <= self.position {
            return true;
        }
        let declares = match entry.change {
            // Where an earlier incarnation ended, in a directory that has none of it.
            Change::Lost { after } => {
                let incarnation = entry.position.incarnation();
                let is_first = entry.position == Position::before(incarnation).next();
                // One that this log has not begun, and that is over: the next is begun when all is back.
                let begun = self.persistence.open().incarnation();
                let is_over = begun < incarnation && incarnation <= self.incarnation;
                (is_first && is_over && after == self.position).then_some((after, incarnation))
            }
            _ => None,
        };
        let follows = entry.position == self.position.next() || declares.is_some();
        if !follows || entry.stamp.datacenter != self.datacenter {
            self.trace(Trace::Refused { what: "a returned entry that does not follow" });
            return false;
        }
        if let Err(what) = self.judge_own(&entry) {
            self.trace(Trace::Refused { what });
            return false;
        }
        if let Some((_, incarnation)) = declares {
            self.persistence.open().begin_incarnation(incarnation);
            self.persistence.tail.begin_incarnation(incarnation);
        }
        self.position = entry.position;
        self.clock.observe(entry.stamp.time);
        self.persistence.log_own(entry.position, bytes);
        if let Change::Effects { transaction: Some(operation), .. } = entry.change {
            // Its coordinator has no answer to rest on, whatever `appendfsync` says: it is told when the part is
            // synced.
            self.persistence.note_needed(Needed::Executed(operation));
            self.report_when_synced(operation, None, self.persistence.log_end());
        }
        self.merge_own(entry);
        self.own_entry_applied();
        self.losses.taken_back += 1;
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
                || self.dead.contains(*datacenter)
                || regaining.received.get(datacenter).is_some_and(|received| *received <= self.position)
        };
        let complete = self.receivers.keys().all(has_all);
        if !regaining.logged && (complete || !self.config.rules.hold(Rule::TakeBackTheTail)) {
            self.begin_incarnation();
        }
    }

    /// Nobody has more: the rest of the old incarnation is lost, and a new one begins by saying so.
    fn begin_incarnation(&mut self) {
        let after = self.position;
        let incarnation =
            Incarnation(self.incarnation.0.checked_add(1).expect("65535 lost tails of one partition"));
        let Stage::Regaining(regaining) = &mut self.stage else { return };
        regaining.logged = true;
        let taken = regaining.taken;
        if taken > 0 {
            self.trace(Trace::TailTakenBack { partition: self.id, entries: taken });
        }
        self.persistence.open().begin_incarnation(incarnation);
        self.persistence.tail.begin_incarnation(incarnation);
        self.incarnation = incarnation;
        self.position = Position::before(incarnation);
        self.lose(self.datacenter, after, self.position);
        let time = self.clock.tick(self.now);
        self.log_own(self.stamp(time), Opaque::default(), Change::Lost { after }, Vec::new());
        self.write_what_came_back();
    }

    /// One append is in flight at a time; when all are done, everything is synced.
    fn write_what_came_back(&mut self) {
        if !self.write_log() && !self.persistence.open().is_held_back() {
            let log = self.persistence.open();
            self.disk.extend(log.take_sync());
        }
    }

    pub(super) fn on_disk_regaining(&mut self, done: DiskDone) {
        match &done {
            DiskDone::Failed { file: Some(file), full: true, .. } => self.on_no_room(*file),
            DiskDone::Appended { file: FileName::Reserve } => self.on_reserve_made(),
            DiskDone::Deleted { file: FileName::Reserve } => self.on_reserve_gone(),
            DiskDone::Rewritten { .. } => {
                self.persistence.opening.pop_front();
                match self.persistence.opening.front() {
                    Some(next) => self.disk.push_back(next.clone()),
                    None => self.write_what_came_back(),
                }
            }
            DiskDone::Failed { op, file, reason, .. } => {
                let file = file.map(|file| file.to_string()).unwrap_or_default();
                self.stop(format!("{op} of {file} failed: {reason}"));
            }
            DiskDone::Appended { file: file @ FileName::Segment(_) } => {
                self.persistence.open().on_appended(*file);
                self.release();
                self.write_what_came_back();
            }
            DiskDone::Synced { file: file @ FileName::Segment(_) } => {
                self.persistence.open().on_synced(*file);
                self.testify();
                // Under `always` what is asked of the others rests on what was read, and that may not have been known
                // to be synced.
                self.release();
                let log = self.persistence.open();
                match log.take_sync() {
                    Some(op) => self.disk.push_back(op),
                    None if log.synced() == log.end() => self.serve_when_logged(),
                    None => {}
                }
            }
            DiskDone::Read { .. } => self.on_old_entries(done),
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

    /// A session meets a partition that has lost its tail.
    pub(super) fn refuse_for_now(&mut self, envelope: &Envelope) {
        let waits: Vec<String> = match &self.stage {
            Stage::Regaining(regaining) => {
                let open = |d: &&DatacenterId| {
                    !regaining.received.contains_key(d)
                        && !is_given_up(regaining.without, **d)
                        && !self.dead.contains(**d)
                };
                self.receivers.keys().filter(open).map(|d| self.name_of(*d).to_owned()).collect()
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
            self.id
        );
        self.refuse(envelope, &reason);
    }
}

/// A token that is merged waits like a partition does.
pub(super) fn is_about_dependencies(message: &Message) -> bool {
    matches!(message, Message::CheckDependencies { .. } | Message::AwaitTimes { .. })
}
