//! A partition's own stream, for sending: its newest entries in memory, and the way to the older ones on disk.
//!
//! Entries arrive as they are logged. The window keeps the newest up to a number of bytes; the index remembers, for
//! some positions, the batch of the log that holds them; a reader goes from there. Nothing here knows who the
//! receivers are, nor when the log may be dropped.

use crate::disk::{DiskDone, DiskOp};
use crate::layout::batch::Seal;
use crate::layout::{LayoutError, decode_record, entry_position};
use crate::log::{Log, LogError, Lsn, Segment};
use crate::record::Record;
use crate::recovery::RecoveredRecord;
use crate::scan::{self, Batch, Step};
use crate::window::Window;
use bytes::Bytes;
use ensue_types::{DatacenterId, Incarnation, Position, limits};
use std::collections::{BTreeMap, VecDeque};

/// Log bytes between two points of the index.
pub const INDEX_SPACING_BYTES: u64 = 256 << 10;
/// What an entry costs in memory beside its bytes.
const ENTRY_OVERHEAD_BYTES: usize = 64;

/// Limits of the window.
#[derive(Clone, Copy, Debug)]
pub struct TailOptions {
    pub memory_bytes: usize,
    pub index_spacing_bytes: u64,
}

impl Default for TailOptions {
    fn default() -> TailOptions {
        TailOptions { memory_bytes: limits::STREAM_MEMORY_BYTES, index_spacing_bytes: INDEX_SPACING_BYTES }
    }
}

/// The entry of the own stream that a record holds.
pub fn own_entry(record: &Record) -> Option<&Bytes> {
    match record {
        Record::Own { entry } | Record::Decided { entry: Some(entry), .. } => Some(entry),
        _ => None,
    }
}

/// The newest entries of the own stream, and the index of all that the log holds.
#[derive(Clone, Debug)]
pub struct StreamTail {
    options: TailOptions,
    /// Position of the oldest entry in memory.
    first: Position,
    entries: VecDeque<Bytes>,
    bytes: usize,
    index: StreamIndex,
}

impl StreamTail {
    pub fn new(options: TailOptions) -> StreamTail {
        StreamTail {
            options,
            first: Position(1),
            entries: VecDeque::new(),
            bytes: 0,
            index: StreamIndex::default(),
        }
    }

    /// Adds the next entry of the stream; `batch` is the log's `batch_start` after the entry was appended.
    pub fn push(&mut self, position: Position, batch: Lsn, entry: Bytes) {
        if self.entries.is_empty() {
            self.first = position;
        }
        assert_eq!(position, self.next_position(), "a stream has no gaps");
        self.index.note(position, batch, self.options.index_spacing_bytes);
        self.bytes += entry.len() + ENTRY_OVERHEAD_BYTES;
        self.entries.push_back(entry);
        while self.bytes > self.options.memory_bytes && self.entries.len() > 1 {
            let oldest = self.entries.pop_front().expect("there is more than one");
            self.bytes -= oldest.len() + ENTRY_OVERHEAD_BYTES;
            self.first = self.first.next();
        }
    }

    fn next_position(&self) -> Position {
        Position(self.first.0 + self.entries.len() as u64)
    }

    /// Takes a recovered record, if it is of the own stream. The entry is copied out of the chunk it was read in.
    pub fn replay(&mut self, recovered: &RecoveredRecord) -> Result<(), LayoutError> {
        let Some(entry) = own_entry(&recovered.record) else {
            return Ok(());
        };
        let position = entry_position(entry)?;
        if position.incarnation() > self.first.incarnation() {
            self.begin_incarnation(position.incarnation());
        }
        self.push(position, recovered.batch, Bytes::copy_from_slice(entry));
        Ok(())
    }

    /// The stream goes on at the first position of a new incarnation. The index keeps the way to the entries of earlier
    /// incarnations.
    pub fn begin_incarnation(&mut self, incarnation: Incarnation) {
        self.first = Position::before(incarnation).next();
        self.entries.clear();
        self.bytes = 0;
    }

    /// An entry of the present incarnation, if it is in memory.
    pub fn get(&self, position: Position) -> Option<&Bytes> {
        let index = position.0.checked_sub(self.first.0)?;
        self.entries.get(usize::try_from(index).ok()?)
    }

    /// The positions in memory: the first, and the one after the last.
    pub fn range(&self) -> (Position, Position) {
        (self.first, self.next_position())
    }

    pub fn index(&self) -> &StreamIndex {
        &self.index
    }

    /// Forgets what the log has dropped.
    pub fn drop_before(&mut self, first: Lsn) {
        self.index.drop_before(first);
    }
}

/// Where to begin reading for a position: some positions, which name their incarnations, and the batches that hold
/// them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamIndex {
    points: BTreeMap<Position, Lsn>,
}

impl StreamIndex {
    fn note(&mut self, position: Position, batch: Lsn, spacing: u64) {
        let far = self.points.last_key_value().is_none_or(|(&last, &lsn)| {
            let far = batch.0.saturating_sub(lsn.0) >= spacing;
            last < position && (far || last.incarnation() < position.incarnation())
        });
        if far {
            self.points.insert(position, batch);
        }
    }

    /// The first position that is known.
    pub fn first(&self) -> Option<Position> {
        self.points.first_key_value().map(|(position, _)| *position)
    }

    /// A batch at or before the one that holds the position. Without one, everything the log has may hold it.
    pub fn batch_before(&self, position: Position) -> Option<Lsn> {
        self.points.range(..=position).next_back().map(|(_, &lsn)| lsn)
    }

    /// Forgets what is below the log's first position.
    fn drop_before(&mut self, first: Lsn) {
        while self.points.first_key_value().is_some_and(|(_, &lsn)| lsn < first) {
            self.points.pop_first();
        }
    }
}

/// Why old entries cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamReadError {
    #[error("reading old entries failed: {reason}")]
    Disk { reason: String },
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("the log begins after position {wanted}: the first one left is {first}")]
    Gone { wanted: Position, first: Position },
}

/// Whose stream's entries a reader wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// This partition's own.
    Own,
    /// Those received from this datacenter.
    Received(DatacenterId),
}

impl Wanted {
    fn entry_of(self, record: &Record) -> Option<&Bytes> {
        match (self, record) {
            (Wanted::Own, record) => own_entry(record),
            (Wanted::Received(from), Record::Received { origin, entry, .. }) if *origin == from => {
                Some(entry)
            }
            (Wanted::Received(_), _) => None,
        }
    }
}

/// Reads old entries of a stream from the log, in order.
///
/// It sees the log as it was written when the reader was made. The log must not be dropped under it: see `needs_from`.
#[derive(Clone, Debug)]
pub struct StreamReader {
    seal: Seal,
    wanted: Wanted,
    /// The next position to hand out.
    next: Position,
    segments: VecDeque<Segment>,
    window: Option<Window>,
    /// A read is in flight.
    reading: bool,
}

impl StreamReader {
    /// A reader of the entries of the own stream from a position on, up to what is written now.
    pub fn new(log: &Log, index: &StreamIndex, from: Position) -> StreamReader {
        let start = index.batch_before(from).unwrap_or(log.first());
        StreamReader::of(log, Wanted::Own, start, from)
    }

    /// A reader of any stream's entries from a position on, which stands in the batch that begins at `start` or later.
    pub fn of(log: &Log, wanted: Wanted, start: Lsn, from: Position) -> StreamReader {
        let (first, written) = (log.first(), log.written());
        let start = start.max(first);
        let mut segments: VecDeque<Segment> = log
            .segments()
            .filter(|segment| segment.end > start && segment.first < written)
            .map(|segment| Segment { first: segment.first, end: segment.end.min(written) })
            .collect();
        let window = segments.pop_front().map(|segment| {
            // The first segment stays at the front for as long as its window is read.
            let (skipped, length) =
                (start.0.max(segment.first.0) - segment.first.0, segment.end.0 - segment.first.0);
            segments.push_front(segment);
            Window::new(segment.file(), skipped, length)
        });
        StreamReader { seal: log.seal(), wanted, next: from, segments, window, reading: false }
    }

    /// The position that comes next.
    pub fn next_position(&self) -> Position {
        self.next
    }

    /// The log must be kept from here on; nothing when all is read.
    pub fn needs_from(&self) -> Option<Lsn> {
        self.segments.front().map(|segment| segment.first)
    }

    /// The next read, unless one is in flight or all is read.
    pub fn next_op(&mut self) -> Option<DiskOp> {
        if self.reading {
            return None;
        }
        while let Some(window) = &self.window {
            if let Some(op) = window.read() {
                self.reading = true;
                return Some(op);
            }
            self.next_segment();
        }
        None
    }

    fn next_segment(&mut self) {
        self.segments.pop_front();
        let next = self.segments.front();
        self.window = next.map(|segment| Window::new(segment.file(), 0, segment.end.0 - segment.first.0));
    }

    /// Whether everything was handed out.
    pub fn is_finished(&self) -> bool {
        self.window.is_none()
    }

    /// Takes the answer of a read: the entries that are whole now.
    pub fn on_done(&mut self, done: DiskDone) -> Result<Vec<(Position, Bytes)>, StreamReadError> {
        self.reading = false;
        let mut found = Vec::new();
        let (offset, bytes) = match done {
            DiskDone::Read { offset, bytes, .. } => (offset, bytes),
            DiskDone::Failed { reason, .. } => return Err(StreamReadError::Disk { reason }),
            other => panic!("a reader only reads, and was told {other:?}"),
        };
        let (Some(window), Some(&segment)) = (&mut self.window, self.segments.front()) else {
            return Ok(found);
        };
        window.feed(offset, bytes);
        loop {
            let window = self.window.as_mut().expect("it stays until the segment's end");
            let (file, offset) = (window.file(), window.offset());
            let corrupt = |reason: String| LogError::Corrupt { file, offset, reason };
            match scan::next_batch(window, segment.first, self.seal) {
                Step::Found(batch) => self.take_entries(&batch, &mut found, corrupt)?,
                Step::Read(_) => return Ok(found),
                Step::Invalid(reason) => return Err(corrupt(reason).into()),
                Step::End if segment.first.0 + offset < segment.end.0 => {
                    return Err(
                        corrupt(format!("the file ends, the log was written up to {}", segment.end)).into()
                    );
                }
                Step::End => {
                    self.next_segment();
                    return Ok(found);
                }
            }
        }
    }

    fn take_entries(
        &mut self,
        batch: &Batch,
        found: &mut Vec<(Position, Bytes)>,
        corrupt: impl Fn(String) -> LogError,
    ) -> Result<(), StreamReadError> {
        for (_, bytes) in scan::records(batch).map_err(|error| corrupt(error.to_string()))? {
            let record = decode_record(&bytes).map_err(|error| corrupt(error.to_string()))?;
            let Some(entry) = self.wanted.entry_of(&record) else {
                continue;
            };
            let position = entry_position(entry).map_err(|error| corrupt(error.to_string()))?;
            // Where an incarnation ended, the stream goes on at the first place of the next.
            let begins = position == Position::before(position.incarnation()).next();
            if begins && position.incarnation() > self.next.incarnation() {
                self.next = position;
            }
            if position > self.next {
                return Err(StreamReadError::Gone { wanted: self.next, first: position });
            }
            if position == self.next {
                self.next = position.next();
                found.push((position, entry.clone()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
