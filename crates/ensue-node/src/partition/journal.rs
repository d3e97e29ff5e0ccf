//! The partition's log as its parts use it: what is appended, what of it a restart still needs, and what is kept for
//! others.
//!
//! Records of a turn gather here; `persistence` writes and syncs them. A record that began something is *needed* until
//! that is done: checkpoints begin their replay at the oldest one.

pub(in crate::partition) mod open;
pub(in crate::partition) mod outbox;

use crate::config::Tuning;
use bytes::Bytes;
use ensue_store::disk::{DiskDone, DiskOp};
use ensue_store::entry::Entry;
use ensue_store::layout::{EntryArena, LayoutError};
use ensue_store::log::{Log, Lsn};
use ensue_store::record::Record;
use ensue_store::recovery::RecoveredRecord;
use ensue_store::tail::{
    INDEX_SPACING_BYTES, StreamReadError, StreamReader, StreamTail, TailOptions, Wanted,
};
use ensue_types::{DatacenterId, Incarnation, LogicalTime, OperationId, Position, Rule};
use std::collections::{BTreeMap, VecDeque};

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
pub(super) enum ReadFor {
    /// A datacenter that lags.
    Stream(DatacenterId),
    /// A datacenter that lost the tail of its own stream, after this position.
    TailFetch(DatacenterId, Position),
    /// A survivor that lacks the end of a dead datacenter's stream: the first lacks what the second wrote.
    PassOn(DatacenterId, DatacenterId),
    /// Comparing an own entry with the time of the one that a datacenter has received.
    Compare(DatacenterId, Position, LogicalTime),
}

/// Entries as they were read from the log, or why they were not.
pub(super) type OldEntries = Result<Vec<(Position, Bytes)>, StreamReadError>;

/// What old entries need next.
#[derive(Debug)]
pub(super) enum NextRead {
    Disk(DiskOp),
    Unwritten(ReadFor),
}

/// The log, and what is known of its records.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    log: Option<Log>,
    tail: StreamTail,
    /// Where new entries of the own stream are encoded.
    arena: EntryArena,
    needed: BTreeMap<Needed, Lsn>,
    /// For each origin where its entries stand that some datacenter may still want from here, itself after it lost
    /// power or another after it is lost for good: some positions, and their batches.
    retained: BTreeMap<DatacenterId, VecDeque<(Position, Lsn)>>,
    /// Log bytes between two batches that are remembered of a stream.
    retained_spacing: u64,
    /// No time at or above this has been shown.
    bound: LogicalTime,
    /// Where the first own entry stands that some datacenter has not synced.
    stream_floor: Lsn,
    /// Every own entry after this is in the log: no floor was moved beyond it.
    kept_after: Position,
    /// Readers of old entries, one a purpose, with their numbers; the first one reads.
    readers: VecDeque<(u64, ReadFor, StreamReader)>,
    /// The reader whose read is in flight. It may have been given up since.
    reading: Option<u64>,
    readers_made: u64,
}

impl Journal {
    pub(crate) fn new(tuning: &Tuning) -> Journal {
        let memory_bytes = tuning.stream_memory_bytes;
        // As close as what is kept in memory asks for, so that where little is kept, reading back begins near what is
        // wanted, too.
        let index_spacing_bytes = INDEX_SPACING_BYTES.min(memory_bytes as u64 / 4);
        let options = TailOptions { memory_bytes, index_spacing_bytes };
        Journal {
            log: None,
            tail: StreamTail::new(options),
            arena: EntryArena::default(),
            needed: BTreeMap::new(),
            retained: BTreeMap::new(),
            retained_spacing: index_spacing_bytes,
            bound: LogicalTime::ZERO,
            stream_floor: Lsn(0),
            kept_after: Position(0),
            readers: VecDeque::new(),
            reading: None,
            readers_made: 0,
        }
    }

    /// Takes the log that recovery has read, up to this position of the own stream.
    pub(in crate::partition) fn restore(&mut self, log: Log, position: Position) {
        self.stream_floor = log.first();
        let first = self.tail.index().first();
        self.kept_after = first.map_or(position, |first| Position(first.0 - 1));
        self.log = Some(log);
    }

    /// Takes one record that recovery has read.
    pub(in crate::partition) fn replay(&mut self, recovered: &RecoveredRecord) -> Result<(), LayoutError> {
        self.tail.replay(recovered)
    }

    /// The log, once it has been read.
    pub(in crate::partition) fn opened(&self) -> Option<&Log> {
        self.log.as_ref()
    }

    /// The own stream goes on in a new incarnation, unless the log is there already.
    pub(in crate::partition) fn begin_incarnation(&mut self, incarnation: Incarnation) {
        if self.open().incarnation() < incarnation {
            self.open().begin_incarnation(incarnation);
        }
        self.tail.begin_incarnation(incarnation);
    }

    /// Encodes an entry of the own stream.
    pub(in crate::partition) fn encode(&mut self, entry: &Entry) -> Bytes {
        self.arena.encode(entry)
    }

    /// No time at or above this has been shown.
    pub(in crate::partition) fn bound(&self) -> LogicalTime {
        self.bound
    }

    pub(in crate::partition) fn raise_bound(&mut self, bound: LogicalTime) {
        self.bound = self.bound.max(bound);
    }

    /// Every datacenter has synced the own stream up to here, which ends at `end`.
    pub(in crate::partition) fn move_stream_floor(&mut self, synced: Position, end: Position) {
        let Some(log) = &self.log else { return };
        let floor = if synced >= end {
            log.batch_start()
        } else {
            self.tail.index().batch_before(synced.next()).unwrap_or(log.first())
        };
        self.stream_floor = self.stream_floor.max(floor);
        self.kept_after = self.kept_after.max(synced.min(end));
    }

    /// A datacenter lacks what it had synced: the log is kept from its beginning.
    pub(in crate::partition) fn keep_all(&mut self) {
        if let Some(log) = &self.log {
            self.stream_floor = log.first();
        }
    }

    /// Where a checkpoint that begins now lets the log begin. Nothing if the log is not open.
    pub(in crate::partition) fn checkpoint_start(&self, keeps_all: bool) -> Option<Lsn> {
        let log = self.log.as_ref()?;
        let here = log.batch_start();
        let needed = self.oldest_needed().filter(|_| Rule::KeepNeededRecords.holds());
        let start = needed.unwrap_or(here).min(self.stream_floor).min(here);
        Some(if keeps_all { start.min(log.first()) } else { start })
    }

    /// A checkpoint is named that lets the log begin here: what can be deleted of it.
    pub(in crate::partition) fn on_checkpoint(&mut self, log_start: Lsn) -> Vec<DiskOp> {
        let oldest_read = self.oldest_read().unwrap_or(log_start);
        let Some(log) = &mut self.log else { return Vec::new() };
        log.on_checkpoint(log_start);
        let deleted = log.drop_before(log_start.min(oldest_read)).into_iter().collect();
        self.tail.drop_before(log.first());
        deleted
    }

    pub(crate) fn open(&mut self) -> &mut Log {
        self.log.as_mut().expect("a partition serves only after its log was read")
    }

    /// Panics if more is durable than was logged, or a restart needs what was never logged.
    pub(in crate::partition) fn check_invariants(&self) -> usize {
        let Some(log) = &self.log else { return 0 };
        assert!(
            log.synced() <= log.end(),
            "{:?} is durable of a log that ends at {:?}",
            log.synced(),
            log.end()
        );
        let needed = self.needed.values().max();
        assert!(
            needed.is_none_or(|lsn| *lsn <= log.end()),
            "a restart needs {needed:?}, and the log ends at {:?}",
            log.end()
        );
        let rises = self.readers.iter().zip(self.readers.iter().skip(1)).all(|(one, next)| one.0 < next.0);
        assert!(rises, "readers of old entries are out of order");
        self.needed.len() + self.readers.len()
    }

    pub(crate) fn log_end(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| log.end().0)
    }

    pub(crate) fn log_synced(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| log.synced().0)
    }

    /// Appends an entry of the own stream.
    pub(super) fn log_own(&mut self, position: Position, entry: &Bytes) {
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

    pub(super) fn log_received(
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

    /// An entry of another stream stands in this batch; it is kept until every datacenter has it durably. Batches are
    /// remembered at the distances of the own stream's index.
    pub(crate) fn retain(&mut self, origin: DatacenterId, position: Position, batch: Lsn) {
        let spacing = self.retained_spacing;
        let places = self.retained.entry(origin).or_default();
        let is_far = |lsn: Lsn| batch.0.saturating_sub(lsn.0) >= spacing;
        if places.back().is_none_or(|&(last, lsn)| is_far(lsn) && last < position) {
            places.push_back((position, batch));
        }
    }

    /// The origins of which something is kept for others.
    pub(super) fn retained_of(&self) -> Vec<DatacenterId> {
        self.retained.iter().filter(|(_, places)| !places.is_empty()).map(|(origin, _)| *origin).collect()
    }

    /// Every datacenter has everything of a stream up to here durably.
    pub(super) fn durable_at_all(&mut self, origin: DatacenterId, durable: Position, received: Position) {
        let Some(places) = self.retained.get_mut(&origin) else { return };
        while places.get(1).is_some_and(|&(position, _)| position <= durable.next()) {
            places.pop_front();
        }
        if received <= durable {
            places.clear();
        }
    }

    pub(super) fn log_applied(
        &mut self,
        origin: DatacenterId,
        incarnation: Incarnation,
        position: Position,
        at: LogicalTime,
    ) {
        self.log(&Record::Applied { origin, incarnation, position, at });
        self.needed.remove(&Needed::Received(origin, position));
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
    fn oldest_needed(&self) -> Option<Lsn> {
        let retained = self.retained.values().filter_map(|places| places.front().map(|(_, lsn)| *lsn));
        self.needed.values().copied().chain(retained).min()
    }

    pub(super) fn entry_in_memory(&self, position: Position) -> Option<Bytes> {
        self.tail.get(position).cloned()
    }

    fn received_reader(&self, origin: DatacenterId, after: Position) -> Option<StreamReader> {
        let log = self.log.as_ref()?;
        let places = self.retained.get(&origin);
        let start = places.and_then(|places| {
            let count = places.partition_point(|(position, _)| *position <= after.next());
            places.get(count.checked_sub(1)?)
        });
        let start = start.map_or(log.first(), |(_, lsn)| *lsn);
        Some(StreamReader::of(log, Wanted::Received(origin), start, after.next()))
    }

    /// Whether the log, or memory, certainly has what was written after a position.
    pub(super) fn has_own_after(&self, position: Position, next: Position) -> bool {
        let is_kept = self.is_whole() || position >= self.kept_after;
        is_kept || self.tail.index().batch_before(next).is_some() || self.tail.get(next).is_some()
    }

    /// Whether the log certainly has what was received of a datacenter after a position.
    pub(super) fn has_received_after(&self, origin: DatacenterId, next: Position) -> bool {
        let oldest = self.retained.get(&origin).and_then(|places| places.front());
        self.is_whole() || oldest.is_some_and(|(oldest, _)| *oldest <= next)
    }

    /// The log still begins at its beginning.
    pub(crate) fn is_whole(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.first() == Lsn(0))
    }

    /// Log bytes that some datacenter has not synced yet.
    pub(super) fn backlog_bytes(&self) -> u64 {
        self.log_end()
            .saturating_sub(self.stream_floor.0.max(self.log.as_ref().map_or(0, |log| log.first().0)))
    }

    pub(super) fn log_bytes(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| log.end().0 - log.first().0)
    }

    /// Begins to read old entries for a datacenter that lags.
    pub(super) fn read_entries_from(&mut self, datacenter: DatacenterId, first: Position) {
        let Some(log) = &self.log else { return };
        let reader = StreamReader::new(log, self.tail.index(), first);
        self.add_reader(ReadFor::Stream(datacenter), reader);
    }

    /// Begins to read what was received of a datacenter's own stream after a position.
    pub(super) fn read_received_after(&mut self, origin: DatacenterId, after: Position) {
        if let Some(reader) = self.received_reader(origin, after) {
            self.add_reader(ReadFor::TailFetch(origin, after), reader);
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
        self.add_reader(ReadFor::Compare(datacenter, position, last), reader);
    }

    /// What old entries need next: a read of the disk, or nothing, for what was asked for is not written yet. Nothing
    /// at all while a read is in flight, or nobody wants any.
    pub(super) fn next_read(&mut self) -> Option<NextRead> {
        if self.reading.is_some() {
            return None;
        }
        let (number, purpose, reader) = self.readers.front_mut()?;
        if let Some(op) = reader.next_op() {
            self.reading = Some(*number);
            return Some(NextRead::Disk(op));
        }
        let purpose = *purpose;
        self.readers.pop_front();
        Some(NextRead::Unwritten(purpose))
    }

    /// The disk has answered a read: the entries, and what they are for. Nothing if they were given up, or if more must
    /// be read.
    pub(super) fn on_read(&mut self, done: DiskDone) -> Option<(ReadFor, OldEntries)> {
        let number = self.reading.take()?;
        self.readers.front().filter(|(front, ..)| *front == number)?;
        let (number, purpose, mut reader) = self.readers.pop_front()?;
        match reader.on_done(done) {
            Ok(entries) if entries.is_empty() && !reader.is_finished() => {
                self.readers.push_front((number, purpose, reader));
                None
            }
            read => Some((purpose, read)),
        }
    }

    fn add_reader(&mut self, purpose: ReadFor, reader: StreamReader) {
        let same = |one: &ReadFor| match (one, purpose) {
            (ReadFor::Stream(a), ReadFor::Stream(b)) => *a == b,
            (ReadFor::TailFetch(a, _), ReadFor::TailFetch(b, _)) => *a == b,
            (ReadFor::Compare(a, ..), ReadFor::Compare(b, ..)) => *a == b,
            (ReadFor::PassOn(..), _) => *one == purpose,
            _ => false,
        };
        self.readers.retain(|(_, one, _)| !same(one));
        self.readers_made += 1;
        self.readers.push_back((self.readers_made, purpose, reader));
    }

    /// The place from which the log is being read for a datacenter that lags. It may have got all of that another way
    /// meanwhile, and the log go on without it, but a file must not go under its reader.
    fn oldest_read(&self) -> Option<Lsn> {
        self.readers.iter().filter_map(|(_, _, reader)| reader.needs_from()).min()
    }
}
