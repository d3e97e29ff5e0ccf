//! The partition's side of its log: what is appended, when it is synced, and what rests on it.
//!
//! All records of a turn share one append, and under `appendfsync always` one sync. What another datacenter is told to be
//! synced or durably applied is a snapshot taken when a sync began, reported when it ended.

use super::Partition;
use crate::config::{AppendFsync, Tuning};
use crate::stream::receiver::Receiver;
use crate::trace::Trace;
use bytes::Bytes;
use ensue_store::checkpoint::CheckpointWriter;
use ensue_store::disk::{DiskDone, DiskOp, FileName};
use ensue_store::log::{Log, Lsn};
use ensue_store::record::Record;
use ensue_store::superblock::Superblock;
use ensue_store::tail::{
    INDEX_SPACING_BYTES, StreamReadError, StreamReader, StreamTail, TailOptions, Wanted,
};
use ensue_store::witness;
use ensue_types::{DatacenterId, Incarnation, LogicalTime, OperationId, Position, Rule, limits};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const EVERY_SECOND_US: u64 = 1_000_000;
/// The clock's bound is moved when it is as near as this.
const CLOCK_MARGIN_MS: u64 = 8;
/// How often time alone is given a chance to do something.
const TIMER_INTERVAL_US: u64 = 50_000;
/// Without news, an acknowledgement still follows after this many intervals: it carries the clock, which tells others
/// that a deadline has passed here too.
const HEARTBEAT_INTERVALS: u64 = 20;

/// A record that a restart needs until what it began is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Needed {
    Received(DatacenterId, Position),
    Begun(OperationId),
    Prepared(OperationId),
    /// A part that was executed, until its coordinator will not ask for it again.
    Executed(OperationId),
}

/// What old entries are read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadFor {
    /// A datacenter that lags.
    Stream(DatacenterId),
    /// A datacenter that lost the tail of its own stream, after this position.
    Regain(DatacenterId, Position),
    /// A survivor that lacks the end of a dead datacenter's stream: the first lacks what the second wrote.
    PassOn(DatacenterId, DatacenterId),
    /// Comparing an own entry with the time of the one that a datacenter has received.
    Compare(DatacenterId, LogicalTime),
}

/// What was true of the log when a sync began.
#[derive(Clone, Debug)]
struct SyncSnapshot {
    end: Lsn,
    applied: Vec<(DatacenterId, Incarnation, Position)>,
    received: Vec<(DatacenterId, Position)>,
}

/// The log and everything that follows it.
#[derive(Clone, Debug)]
pub(crate) struct Persistence {
    pub(super) log: Option<Log>,
    pub(super) superblock: Option<Superblock>,
    pub(super) tail: StreamTail,
    pub(super) writer: Option<(CheckpointWriter, super::checkpoint::Walk)>,
    pub(super) checkpointed_end: Lsn,
    /// Readers of old entries, one a purpose, with their numbers; the first one reads.
    readers: VecDeque<(u64, ReadFor, StreamReader)>,
    /// The reader whose read is in flight. It may have been given up since.
    reading: Option<u64>,
    readers_made: u64,
    needed: BTreeMap<Needed, Lsn>,
    /// For each origin where its entries stand that some datacenter may still want from here, itself after it lost power or another
    /// after it is lost for good: some positions, and their batches.
    retained: BTreeMap<DatacenterId, VecDeque<(Position, Lsn)>>,
    snapshot: Option<SyncSnapshot>,
    durable: BTreeMap<DatacenterId, (Incarnation, Position)>,
    acknowledge_now: BTreeSet<DatacenterId>,
    acknowledge_all: bool,
    next_acknowledge_us: u64,
    next_sync_us: u64,
    next_timer_us: u64,
    pub(super) bound: LogicalTime,
    pub(super) stream_floor: Lsn,
    /// What must be carried out before anything is appended or synced, one after the other.
    pub(super) opening: VecDeque<DiskOp>,
    /// After a lost tail all has been caught up with: the superblock says so when the log has been written up to here.
    pub(super) caught_up: Option<Lsn>,
    pub(super) room: super::space::Room,
    /// There is a witness, which is written over after each sync of the log.
    pub(super) has_witness: bool,
}

impl Persistence {
    pub(super) fn new(tuning: &Tuning) -> Persistence {
        let memory_bytes = tuning.stream_memory_bytes;
        // As close as what is kept in memory asks for, so that where little is kept, reading back begins near what is wanted, too.
        let index_spacing_bytes = INDEX_SPACING_BYTES.min(memory_bytes as u64 / 4);
        let options = TailOptions { memory_bytes, index_spacing_bytes };
        Persistence {
            log: None,
            superblock: None,
            tail: StreamTail::new(options),
            writer: None,
            checkpointed_end: Lsn(0),
            readers: VecDeque::new(),
            reading: None,
            readers_made: 0,
            needed: BTreeMap::new(),
            retained: BTreeMap::new(),
            snapshot: None,
            durable: BTreeMap::new(),
            acknowledge_now: BTreeSet::new(),
            acknowledge_all: false,
            next_acknowledge_us: 0,
            next_sync_us: 0,
            next_timer_us: 0,
            bound: LogicalTime::ZERO,
            stream_floor: Lsn(0),
            opening: VecDeque::new(),
            caught_up: None,
            room: Default::default(),
            has_witness: false,
        }
    }

    pub(super) fn open(&mut self) -> &mut Log {
        self.log.as_mut().expect("a partition serves only after its log was read")
    }

    /// Before the log goes on for the first time a witness is made.
    pub(super) fn make_witness(&mut self) {
        if let (Some(superblock), Some(log), false) = (&self.superblock, &self.log, self.has_witness) {
            self.opening.push_back(witness::make(superblock.seal(), log.synced()));
        }
    }

    /// What the log has been synced to is written into the witness, before anything leaves that rests on it.
    pub(super) fn testify(&self) -> Option<DiskOp> {
        let (superblock, log) = (self.superblock.as_ref()?, self.log.as_ref()?);
        self.has_witness.then(|| witness::testify(superblock.seal(), log.synced()))
    }

    pub(crate) fn log_end(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| log.end().0)
    }

    pub(crate) fn log_synced(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| log.synced().0)
    }

    /// Appends an entry of the own stream.
    pub(crate) fn log_own(&mut self, position: Position, entry: &Bytes) {
        self.open().append_own(entry);
        let batch = self.open().batch_start();
        self.tail.push(position, batch, entry.clone());
    }

    /// Appends a decision. The entry, if there is one, is of the own stream.
    pub(crate) fn log_decided(
        &mut self,
        transaction: OperationId,
        at: LogicalTime,
        position: Position,
        entry: &Bytes,
    ) {
        self.log(&Record::Decided { transaction, at, entry: Some(entry.clone()) });
        let batch = self.open().batch_start();
        self.tail.push(position, batch, entry.clone());
    }

    pub(crate) fn log_received(
        &mut self,
        origin: DatacenterId,
        incarnation: Incarnation,
        position: Position,
        entry: &[u8],
    ) {
        self.open().append_received(origin, incarnation, entry);
        self.note_needed(Needed::Received(origin, position));
        let batch = self.open().batch_start();
        self.retain(origin, position, batch);
    }

    /// An entry of another stream stands in this batch; it is kept until every datacenter has it durably.
    pub(super) fn retain(&mut self, origin: DatacenterId, position: Position, batch: Lsn) {
        let places = self.retained.entry(origin).or_default();
        if places.back().is_none_or(|&(last, lsn)| lsn != batch && last < position) {
            places.push_back((position, batch));
        }
    }

    /// The origins of which something is kept for others.
    pub(super) fn retained_of(&self) -> Vec<DatacenterId> {
        self.retained.iter().filter(|(_, places)| !places.is_empty()).map(|(origin, _)| *origin).collect()
    }

    /// Every datacenter has everything of a stream up to here durably.
    pub(crate) fn durable_everywhere(&mut self, origin: DatacenterId, durable: Position, received: Position) {
        let Some(places) = self.retained.get_mut(&origin) else { return };
        while places.get(1).is_some_and(|&(position, _)| position <= durable.next()) {
            places.pop_front();
        }
        if received <= durable {
            places.clear();
        }
    }

    pub(crate) fn log_applied(
        &mut self,
        origin: DatacenterId,
        incarnation: Incarnation,
        position: Position,
        at: LogicalTime,
    ) {
        self.log(&Record::Applied { origin, incarnation, position, at });
        self.needed.remove(&Needed::Received(origin, position));
        self.acknowledge_all = true;
    }

    /// Appends any record.
    pub(crate) fn log(&mut self, record: &Record) {
        self.open().append(record);
        match record {
            Record::Prepared { transaction, .. } => self.note_needed(Needed::Prepared(*transaction)),
            Record::Completed { transaction } => {
                self.needed.remove(&Needed::Begun(*transaction));
            }
            _ => {}
        }
    }

    /// Keeps the record just appended until what it began is done.
    pub(crate) fn note_needed(&mut self, needed: Needed) {
        let batch = self.open().batch_start();
        self.needed.insert(needed, batch);
    }

    pub(super) fn restore_needed(&mut self, needed: Needed, batch: Lsn) {
        self.needed.insert(needed, batch);
    }

    /// The same record is needed for something else from now on.
    pub(crate) fn needed_as(&mut self, before: Needed, after: Needed) {
        if let Some(batch) = self.needed.remove(&before) {
            self.needed.insert(after, batch);
        }
    }

    pub(crate) fn no_longer_needed(&mut self, needed: Needed) {
        self.needed.remove(&needed);
    }

    /// The place from which a restart must read: the oldest record that is still needed.
    pub(super) fn oldest_needed(&self) -> Option<Lsn> {
        let retained = self.retained.values().filter_map(|places| places.front().map(|(_, lsn)| *lsn));
        self.needed.values().copied().chain(retained).min()
    }

    pub(crate) fn entry_in_memory(&self, position: Position) -> Option<Bytes> {
        self.tail.get(position).cloned()
    }

    /// Begins to read old entries for a datacenter that lags.
    pub(crate) fn read_entries_from(&mut self, datacenter: DatacenterId, first: Position) {
        let Some(log) = &self.log else { return };
        let reader = StreamReader::new(log, self.tail.index(), first);
        self.add_reader(ReadFor::Stream(datacenter), reader);
    }

    /// Begins to read what was received of a datacenter's own stream after a position.
    pub(super) fn read_received_after(&mut self, origin: DatacenterId, after: Position) {
        if let Some(reader) = self.received_reader(origin, after) {
            self.add_reader(ReadFor::Regain(origin, after), reader);
        }
    }

    /// Begins to read what was received of a dead datacenter's stream, for a survivor that lacks it.
    pub(super) fn read_to_pass_on(&mut self, to: DatacenterId, origin: DatacenterId, after: Position) {
        if let Some(reader) = self.received_reader(origin, after) {
            self.add_reader(ReadFor::PassOn(to, origin), reader);
        }
    }

    /// Begins to read an own entry, to compare it with the one that a datacenter has received.
    pub(super) fn read_to_compare(
        &mut self,
        datacenter: DatacenterId,
        position: Position,
        last: LogicalTime,
    ) {
        let Some(log) = &self.log else { return };
        let reader = StreamReader::new(log, self.tail.index(), position);
        self.add_reader(ReadFor::Compare(datacenter, last), reader);
    }

    fn received_reader(&self, origin: DatacenterId, after: Position) -> Option<StreamReader> {
        let log = self.log.as_ref()?;
        let places = self.retained.get(&origin).into_iter().flatten();
        let start = places.take_while(|(position, _)| *position <= after.next()).last();
        let start = start.map_or(log.first(), |(_, lsn)| *lsn);
        Some(StreamReader::of(log, Wanted::Received(origin), start, after.next()))
    }

    fn add_reader(&mut self, purpose: ReadFor, reader: StreamReader) {
        let same = |one: &ReadFor| match (one, purpose) {
            (ReadFor::Stream(a), ReadFor::Stream(b)) => *a == b,
            (ReadFor::Regain(a, _), ReadFor::Regain(b, _)) => *a == b,
            (ReadFor::Compare(a, _), ReadFor::Compare(b, _)) => *a == b,
            (ReadFor::PassOn(..), _) => *one == purpose,
            _ => false,
        };
        self.readers.retain(|(_, one, _)| !same(one));
        self.readers_made += 1;
        self.readers.push_back((self.readers_made, purpose, reader));
    }

    /// The place from which the log is being read for a datacenter that lags. It may have got all of that another way
    /// meanwhile, and the log go on without it, but a file must not go under its reader.
    pub(super) fn oldest_read(&self) -> Option<Lsn> {
        self.readers.iter().filter_map(|(_, _, reader)| reader.needs_from()).min()
    }

    /// The log still begins at its beginning.
    pub(super) fn is_whole(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.first() == Lsn(0))
    }

    /// Log bytes that some datacenter has not synced yet.
    pub(crate) fn backlog_bytes(&self) -> u64 {
        self.log_end()
            .saturating_sub(self.stream_floor.0.max(self.log.as_ref().map_or(0, |log| log.first().0)))
    }

    pub(crate) fn log_bytes(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| log.end().0 - log.first().0)
    }

    /// What has been durably applied of every stream, the own one included.
    pub(crate) fn applied_durably(&self) -> impl Iterator<Item = (DatacenterId, Incarnation, Position)> + '_ {
        self.durable
            .iter()
            .map(|(datacenter, (incarnation, position))| (*datacenter, *incarnation, *position))
    }

    pub(crate) fn acknowledge_soon(&mut self, datacenter: DatacenterId) {
        self.acknowledge_now.insert(datacenter);
    }
}

impl Persistence {
    fn note_applied(&mut self, datacenter: DatacenterId, mark: (Incarnation, Position)) {
        let before = self.durable.insert(datacenter, mark);
        self.acknowledge_all |= before != Some(mark);
    }

    fn note_received(&mut self, datacenter: DatacenterId, receiver: &mut Receiver, position: Position) {
        if receiver.synced() < position {
            receiver.synced_at(position);
            self.acknowledge_now.insert(datacenter);
        }
    }
}

impl Partition {
    /// Ends a turn: streams and acknowledgements are said, everything logged goes to disk as one append.
    pub fn on_turn_end(&mut self) {
        if self.persistence.log.is_none() || !matches!(self.stage, super::Stage::Serving) {
            return;
        }
        self.bound_clock();
        self.send_streams();
        self.say_acknowledgements();
        self.say_times();
        self.continue_checkpoint();
        self.log_times();
        let appended = self.write_log();
        if self.config.append_fsync == AppendFsync::Always || (appended && self.needs_sync_now()) {
            self.begin_sync();
        }
        self.read_old_entries();
    }

    /// Emits the append that is due, if none is in flight; says whether it did.
    pub(super) fn write_log(&mut self) -> bool {
        if !self.persistence.opening.is_empty() {
            return false;
        }
        let op = self.persistence.open().take_append();
        let appended = op.is_some();
        self.disk.extend(op);
        appended
    }

    fn needs_sync_now(&self) -> bool {
        let synced = self.persistence.log.as_ref().map_or(Lsn(0), |log| log.synced());
        let walked = self
            .persistence
            .writer
            .as_ref()
            .is_some_and(|(_, walk)| walk.done && !walk.finished && synced < walk.end);
        walked || self.transactions.has_unsynced_decisions() || self.dead.is_untold()
    }

    /// The clock shows no time that a restart could show again (trap 30).
    fn bound_clock(&mut self) {
        let latest_ms = self.clock.latest().ms();
        if latest_ms + CLOCK_MARGIN_MS <= self.persistence.bound.ms() {
            return;
        }
        // A clock ahead of the wall moves only by counting: little is enough for it, and a partition that restarts again
        // and again must not run away from the wall.
        let ahead_ms = self.now.wall_ms + self.config.tuning.clock_persist_ahead_ms;
        let bound = LogicalTime::from_ms(ahead_ms.max(latest_ms + 2 * CLOCK_MARGIN_MS));
        self.persistence.bound = bound;
        self.log_bound();
    }

    /// The same within a turn, where the wall or another datacenter has moved the clock past its bound at once: what is said now
    /// rests on the next bound.
    pub(super) fn cover_clock(&mut self) {
        let serving = self.persistence.log.is_some() && matches!(self.stage, super::Stage::Serving);
        if serving && self.clock.latest().ms() >= self.persistence.bound.ms() {
            self.bound_clock();
        }
    }

    pub(super) fn log_bound(&mut self) {
        let bound = self.persistence.bound;
        self.persistence.log(&Record::ClockBound { bound });
    }

    fn say_acknowledgements(&mut self) {
        let due_us = self.persistence.next_acknowledge_us;
        let interval = self.config.tuning.acknowledge_interval_ms * 1_000;
        let silent_too_long = self.now.monotonic_us >= due_us + HEARTBEAT_INTERVALS * interval;
        if (self.persistence.acknowledge_all && self.now.monotonic_us >= due_us) || silent_too_long {
            self.persistence.acknowledge_all = false;
            self.persistence.next_acknowledge_us = self.now.monotonic_us + interval;
            let everyone: Vec<DatacenterId> = self.receivers.keys().copied().collect();
            self.persistence.acknowledge_now.extend(everyone);
        }
        for datacenter in std::mem::take(&mut self.persistence.acknowledge_now) {
            self.acknowledge(datacenter);
        }
    }

    /// Begins a sync of everything appended, unless one is under way.
    pub(super) fn begin_sync(&mut self) {
        if !self.persistence.opening.is_empty() {
            return;
        }
        let log = self.persistence.open();
        let op = log.take_sync();
        let (end, synced) = (log.end(), log.synced());
        if op.is_none() && synced < end {
            return; // One is under way, or the append is yet to come.
        }
        if op.is_none() && self.persistence.snapshot.is_none() {
            return self.all_is_durable();
        }
        if self.persistence.snapshot.is_none() {
            let applied =
                self.applied.sets().map(|(d, set)| (d, set.watermark.incarnation(), set.watermark)).collect();
            let received = self.receivers.iter().map(|(d, receiver)| (*d, receiver.received())).collect();
            self.persistence.snapshot = Some(SyncSnapshot { end, applied, received });
        }
        match op {
            Some(op) => self.disk.push_back(op),
            None => self.take_snapshot(synced),
        }
    }

    /// What the snapshot holds is durable, if the log is synced up to its end.
    fn take_snapshot(&mut self, synced: Lsn) {
        let Some(snapshot) = self.persistence.snapshot.take_if(|snapshot| snapshot.end <= synced) else {
            return;
        };
        for (datacenter, incarnation, position) in snapshot.applied {
            self.persistence.note_applied(datacenter, (incarnation, position));
        }
        for (datacenter, position) in snapshot.received {
            let Some(receiver) = self.receivers.get_mut(&datacenter) else { continue };
            self.persistence.note_received(datacenter, receiver, position);
        }
    }

    /// Everything logged is synced, so what stands now is durable: the end of most turns under `always`.
    fn all_is_durable(&mut self) {
        for (datacenter, set) in self.applied.sets() {
            self.persistence.note_applied(datacenter, (set.watermark.incarnation(), set.watermark));
        }
        for (datacenter, receiver) in &mut self.receivers {
            let received = receiver.received();
            self.persistence.note_received(*datacenter, receiver, received);
        }
    }

    /// The periodic sync of `everysec` and `no`.
    pub(super) fn sync_in_time(&mut self) {
        let interval = match self.config.append_fsync {
            AppendFsync::Always => return,
            AppendFsync::EverySecond => EVERY_SECOND_US,
            AppendFsync::No => self.config.tuning.relaxed_sync_interval_ms * 1_000,
        };
        if self.now.monotonic_us >= self.persistence.next_sync_us {
            self.persistence.next_sync_us = self.now.monotonic_us + interval;
            self.begin_sync();
        }
    }

    /// The disk answered.
    pub fn on_disk(&mut self, now: ensue_types::Now, done: DiskDone) {
        self.now = now;
        match self.stage {
            super::Stage::Reading(_) => return self.on_recovery_disk(done),
            super::Stage::Closing(_) => return self.on_closing_disk(done),
            super::Stage::Stopped(_) => return,
            super::Stage::Joining(_) => return,
            super::Stage::Regaining(_) => return self.on_disk_regaining(done),
            super::Stage::Serving => {}
        }
        match done {
            DiskDone::Failed { file: Some(file), full: true, .. } => self.on_no_room(file),
            DiskDone::Failed { op: "sync", file: Some(file @ FileName::Segment(_)), .. }
                if !self.config.rules.hold(Rule::StopAfterAFailedSync) =>
            {
                self.on_log_synced(file);
            }
            DiskDone::Failed { op, file, reason, .. } => {
                let file = file.map(|file| file.to_string()).unwrap_or_default();
                return self.stop(format!("{op} of {file} failed: {reason}"));
            }
            DiskDone::Appended { file: file @ FileName::Segment(_) } => self.on_log_written(file),
            DiskDone::Appended { file: FileName::Reserve } => self.on_reserve_made(),
            DiskDone::Deleted { file: FileName::Reserve } => self.on_reserve_gone(),
            DiskDone::Synced { file: file @ FileName::Segment(_) } => self.on_log_synced(file),
            DiskDone::Read { .. } => return self.on_old_entries(done),
            DiskDone::Rewritten { .. } | DiskDone::Replaced { .. }
                if !self.persistence.opening.is_empty() =>
            {
                self.on_opened();
            }
            _ => self.on_checkpoint_disk(&done),
        }
        self.settle();
        self.finish_catching_up();
        self.mark_caught_up();
    }

    fn on_log_written(&mut self, file: FileName) {
        let log = self.persistence.open();
        log.on_appended(file);
        let always = self.config.append_fsync == AppendFsync::Always;
        let (append, sync) = (log.is_held_back(), log.is_sync_held_back());
        let appended = append && self.write_log();
        if sync || appended && (always || self.needs_sync_now()) {
            self.begin_sync();
        }
        self.release();
    }

    /// The next thing that had to be on disk before the log goes on is there.
    fn on_opened(&mut self) {
        let opened = self.persistence.opening.pop_front();
        self.persistence.has_witness |=
            matches!(opened, Some(DiskOp::Replace { file: FileName::Witness, .. }));
        match self.persistence.opening.front() {
            Some(next) => self.disk.push_back(next.clone()),
            None => {
                self.begin_sync();
                self.make_reserve();
            }
        }
    }

    fn on_log_synced(&mut self, file: FileName) {
        let synced = self.persistence.open().on_synced(file);
        self.testify();
        self.take_snapshot(synced);
        self.on_decisions_synced(synced.0);
        self.tell_of_the_dead();
        self.answer_replica_waits();
        self.release();
        let always = self.config.append_fsync == AppendFsync::Always;
        if always
            || self.persistence.snapshot.is_some()
            || self.transactions.has_unsynced_decisions()
            || self.dead.is_untold()
        {
            self.begin_sync();
        }
    }

    /// The log was synced: the witness says so.
    pub(super) fn testify(&mut self) {
        if self.config.rules.hold(Rule::TheWitnessFollowsTheLog) {
            self.disk.extend(self.persistence.testify());
        }
    }

    /// Lets go of what rested on records that are durable now.
    pub(super) fn release(&mut self) {
        let Some(log) = &self.persistence.log else { return };
        let durable = match self.config.append_fsync {
            AppendFsync::Always if self.config.rules.hold(Rule::SyncBeforeAnswering) => log.synced(),
            _ => log.written(),
        };
        self.outbox.release(durable.0);
    }

    pub(super) fn read_old_entries(&mut self) {
        if self.persistence.reading.is_some() {
            return;
        }
        while let Some((number, purpose, reader)) = self.persistence.readers.front_mut() {
            let (number, purpose) = (*number, *purpose);
            if let Some(op) = reader.next_op() {
                self.persistence.reading = Some(number);
                self.disk.push_back(op);
                return;
            }
            self.persistence.readers.pop_front();
            // What was asked for is not written yet: it is asked for again.
            match purpose {
                ReadFor::Stream(datacenter) => {
                    if let Some(sender) = self.senders.get_mut(&datacenter) {
                        sender.reading = false;
                    }
                }
                ReadFor::Regain(datacenter, after) => self.give_back(datacenter, after, Vec::new()),
                ReadFor::PassOn(to, origin) => self.pass_on(to, origin, Vec::new()),
                ReadFor::Compare(..) => {}
            }
        }
    }

    pub(super) fn on_old_entries(&mut self, done: DiskDone) {
        let number = self.persistence.reading.take();
        let front = self.persistence.readers.front().map(|(number, ..)| *number);
        if number.is_none() || number != front {
            return self.read_old_entries();
        }
        let Some((number, purpose, mut reader)) = self.persistence.readers.pop_front() else { return };
        match reader.on_done(done) {
            Ok(entries) if entries.is_empty() && !reader.is_finished() => {
                self.persistence.readers.push_front((number, purpose, reader));
            }
            Ok(mut entries) => {
                entries.truncate(frame_holds(entries.iter().map(|(_, entry)| entry.len())));
                match purpose {
                    ReadFor::Stream(datacenter) => self.on_entries_read(datacenter, entries),
                    ReadFor::Regain(datacenter, after) => self.give_back(datacenter, after, entries),
                    ReadFor::PassOn(to, origin) => self.pass_on(to, origin, entries),
                    ReadFor::Compare(datacenter, last) => self.compare_with(datacenter, last, &entries),
                }
            }
            Err(StreamReadError::Gone { wanted, first }) => self.refuse_what_is_gone(purpose, wanted, first),
            Err(error) => return self.stop(format!("{error}{}", super::recover::ADVICE)),
        }
        self.read_old_entries();
    }

    /// What was requested is no longer in the log. Nobody whose word is true requests that: it was trimmed when every
    /// datacenter
    /// had said that it has it durably.
    fn refuse_what_is_gone(&mut self, purpose: ReadFor, wanted: Position, first: Position) {
        let (datacenter, whose) = match purpose {
            ReadFor::Stream(datacenter) => (datacenter, "this datacenter's"),
            ReadFor::Regain(datacenter, _) => (datacenter, "its own"),
            ReadFor::PassOn(datacenter, _) => (datacenter, "a dead datacenter's"),
            // What it has received was acknowledged, and trimmed for that: there is nothing to compare with.
            ReadFor::Compare(..) => return,
        };
        let name = self.name_of(datacenter);
        self.refuse_peer(
            datacenter,
            format!(
                "{name} requests {whose} stream from position {wanted}, and the log here begins at {first}: it was trimmed when \
                 {name} had acknowledged all before. {name} runs on an old or empty directory, or one of its disks lost what was \
                 synced: put the right one back, or say CAUSAL DEAD for it"
            ),
        );
    }

    /// The partition cannot go on: it says why, and answers with an error from now on. Nothing that rested on
    /// unwritten records leaves (trap 55).
    pub(super) fn stop(&mut self, reason: String) {
        let held = self.outbox.clear();
        self.disk.clear();
        self.trace(Trace::PartitionStopped { partition: self.id, reason: reason.clone() });
        self.stage = super::Stage::Stopped(reason);
        held.into_iter().for_each(|envelope| self.disavow(envelope));
        self.take_early();
    }

    /// When time alone will have something to do.
    pub fn next_timer(&self) -> Option<u64> {
        if matches!(self.stage, super::Stage::Joining(_)) {
            return Some(self.identity.next_request_us);
        }
        if !matches!(self.stage, super::Stage::Serving | super::Stage::Regaining(_)) {
            return None;
        }
        let waits = self.next_give_up();
        let first = waits.into_iter().fold(self.persistence.next_timer_us, u64::min);
        if !matches!(self.stage, super::Stage::Serving) {
            return Some(first); // Others are told nothing yet.
        }
        let acknowledge = self.persistence.acknowledge_all.then_some(self.persistence.next_acknowledge_us);
        Some(acknowledge.into_iter().chain(self.times.next_due()).fold(first, u64::min))
    }

    /// What time alone brings.
    pub fn on_timer(&mut self, now: ensue_types::Now) {
        self.now = now;
        if matches!(self.stage, super::Stage::Joining(_)) && now.monotonic_us >= self.identity.next_request_us
        {
            return self.request_introductions();
        }
        if !matches!(self.stage, super::Stage::Serving | super::Stage::Regaining(_)) {
            return;
        }
        self.give_up_waits();
        if now.monotonic_us < self.persistence.next_timer_us {
            return; // The rest has its own, slower time.
        }
        // A moment that inputs in between do not move: a busy partition needs its syncs most.
        self.persistence.next_timer_us = now.monotonic_us + TIMER_INTERVAL_US;
        self.look_for_room();
        if matches!(self.stage, super::Stage::Regaining(_)) {
            return;
        }
        self.sync_in_time();
        // What was synced before it began to wait for that is told of no other way.
        let synced = self.persistence.log.as_ref().map_or(Lsn(0), |log| log.synced());
        self.on_decisions_synced(synced.0);
        self.tell_of_the_dead();
        self.collect();
        self.look_after_branches();
        self.sweep_marks();
        self.forget_unused_contexts();
        self.forget_old_reads();
        self.forget_old_cuts();
        self.resume_paused();
        self.begin_checkpoint_in_time();
    }
}

/// How many of these entries, by their lengths, a frame has room for; at least one. A batch of the log may hold more. Whoever
/// wanted them asks again for the rest.
fn frame_holds(lengths: impl Iterator<Item = usize>) -> usize {
    let mut bytes = 0;
    let fits = |(place, length): &(usize, usize)| {
        bytes += length;
        *place == 0 || bytes <= limits::ENTRY_BYTES_MAX
    };
    lengths.enumerate().take_while(fits).count()
}

#[test]
fn a_frame_holds_one_entry_at_least_and_no_more_than_fit() {
    let most = limits::ENTRY_BYTES_MAX;
    let cases = [(vec![], 0), (vec![most + 1, 1], 1), (vec![1, most - 1, 1], 2), (vec![1, 2, 3], 3)];
    for (lengths, expected) in cases {
        assert_eq!(frame_holds(lengths.iter().copied()), expected, "{lengths:?}");
    }
}
