//! The log of one partition: one long sequence of bytes, cut into segment files, appended a batch at a time.
//!
//! Records arrive; they gather in a pending batch until `take_append` emits them as one append. The log then learns
//! what was written (`on_appended`) and what is durable (`on_synced`). It promises that a segment is synced no later
//! than the one after it, and that each batch says what was known to be durable when it was taken, which is what
//! lets recovery tell a torn tail from damage. It reads nothing and recovers nothing (`recovery`), and never retries:
//! after a failed append or sync the partition must stop (trap 55).

use crate::disk::{DiskOp, FileName};
use crate::layout::batch::{BATCH_HEADER_BYTES, BatchHeader, Seal};
use crate::layout::{OWN, RECEIVED, encode_record, received_prefix};
use crate::record::Record;
use bytes::Bytes;
use ensue_types::{DatacenterId, Incarnation, limits};
use std::collections::VecDeque;
use std::fmt;

/// A place in the log: bytes since the log began, batch headers included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Bytes of a pending batch above which it is closed, so that a reader never needs much more than this at once.
pub const BATCH_BYTES: usize = 64 << 20;
/// Longest record. The caller refuses larger transactions before they get here.
pub const RECORD_BYTES_MAX: usize = 1 << 30;

/// How a log is laid out.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// A new segment begins with the first batch after this many bytes.
    pub segment_bytes: u64,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions { segment_bytes: limits::SEGMENT_BYTES }
    }
}

/// The files do not hold what was once durable, or hold what nobody wrote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    #[error("{file} is damaged at byte {offset}: {reason}")]
    Corrupt { file: FileName, offset: u64, reason: String },
}

/// One file of the log and the positions it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub first: Lsn,
    pub end: Lsn,
}

impl Segment {
    pub fn file(&self) -> FileName {
        FileName::Segment(self.first.0)
    }
}

/// What recovery found out, from which a log goes on.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogState {
    pub(crate) segments: VecDeque<Segment>,
    pub(crate) end: Lsn,
    pub(crate) synced: Lsn,
    pub(crate) incarnation: Incarnation,
    pub(crate) checkpointed: Lsn,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Log {
    options: LogOptions,
    seal: Seal,
    incarnation: Incarnation,
    segments: VecDeque<Segment>,
    /// Room for a header, then records; empty if there are none.
    pending: Vec<u8>,
    pending_records: u32,
    /// Full batches that were pending, oldest first.
    closed: VecDeque<ClosedBatch>,
    /// Where the pending batch begins.
    batch_start: Lsn,
    /// The end of what was emitted as appends.
    emitted: Lsn,
    written: Lsn,
    synced: Lsn,
    append: Option<Append>,
    /// Something was to be appended while another append was in flight.
    held_back: bool,
    /// A sealed batch that found no room.
    refused: Option<Bytes>,
    sync: Option<(FileName, Lsn)>,
    /// A sync was asked for while the append in flight was the first to its file.
    sync_held_back: bool,
    checkpointed: Lsn,
}

/// An append in flight.
#[derive(Clone, Debug)]
struct Append {
    file: FileName,
    start: Lsn,
    bytes: Bytes,
}

#[derive(Clone, Debug)]
struct ClosedBatch {
    bytes: Vec<u8>,
    records: u32,
    incarnation: Incarnation,
}

impl Log {
    pub(crate) fn new(options: LogOptions, seal: Seal, state: LogState) -> Log {
        Log {
            options,
            seal,
            incarnation: state.incarnation,
            segments: state.segments,
            pending: Vec::new(),
            pending_records: 0,
            closed: VecDeque::new(),
            batch_start: state.end,
            emitted: state.end,
            written: state.end,
            synced: state.synced,
            append: None,
            held_back: false,
            refused: None,
            sync: None,
            sync_held_back: false,
            checkpointed: state.checkpointed,
        }
    }

    /// Adds a record to the pending batch; the answer is the log position of its end.
    pub fn append(&mut self, record: &Record) -> Lsn {
        let start = self.begin_record();
        encode_record(record, &mut self.pending);
        self.end_record(start)
    }

    /// Adds an entry of this partition's own stream, already encoded.
    pub fn append_own(&mut self, entry: &[u8]) -> Lsn {
        let start = self.begin_record();
        self.pending.push(OWN);
        self.pending.extend_from_slice(entry);
        self.end_record(start)
    }

    /// Adds an entry of another datacenter's stream, already encoded.
    pub fn append_received(&mut self, origin: DatacenterId, incarnation: Incarnation, entry: &[u8]) -> Lsn {
        let start = self.begin_record();
        self.pending.push(RECEIVED);
        self.pending.extend_from_slice(&received_prefix(origin, incarnation));
        self.pending.extend_from_slice(entry);
        self.end_record(start)
    }

    fn begin_record(&mut self) -> usize {
        if self.pending.len() >= BATCH_BYTES {
            self.close_batch();
        }
        if self.pending.is_empty() {
            self.pending.resize(BATCH_HEADER_BYTES, 0);
        }
        let start = self.pending.len();
        self.pending.extend_from_slice(&[0; 4]);
        start
    }

    fn end_record(&mut self, start: usize) -> Lsn {
        let length = self.pending.len() - start - 4;
        assert!(length <= RECORD_BYTES_MAX, "a record of {length} bytes was not refused");
        self.pending[start..start + 4].copy_from_slice(&(length as u32).to_le_bytes());
        self.pending_records += 1;
        self.end()
    }

    fn close_batch(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        self.batch_start = self.end();
        let bytes = std::mem::take(&mut self.pending);
        let records = std::mem::take(&mut self.pending_records);
        self.closed.push_back(ClosedBatch { bytes, records, incarnation: self.incarnation });
    }

    /// The end of the log, pending records included.
    pub fn end(&self) -> Lsn {
        Lsn(self.batch_start.0 + self.pending.len() as u64)
    }

    /// Where the batch begins that holds the record appended last: a reader can begin there.
    pub fn batch_start(&self) -> Lsn {
        self.batch_start
    }

    /// The operating system has everything before this.
    pub fn written(&self) -> Lsn {
        self.written
    }

    /// Everything before this is durable.
    pub fn synced(&self) -> Lsn {
        self.synced
    }

    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    pub(crate) fn seal(&self) -> Seal {
        self.seal
    }

    /// The files, oldest first, with what was emitted to them.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = Segment> + '_ {
        self.segments.iter().copied()
    }

    /// Records from here on belong to a new life of the partition.
    pub fn begin_incarnation(&mut self, incarnation: Incarnation) {
        assert!(incarnation > self.incarnation, "incarnations only grow");
        self.close_batch();
        self.incarnation = incarnation;
    }

    /// The oldest batch that was not emitted, as one append; nothing while another is in flight, or was refused.
    pub fn take_append(&mut self) -> Option<DiskOp> {
        if self.append.is_some() || self.refused.is_some() {
            self.held_back |= !self.closed.is_empty() || !self.pending.is_empty();
            return None;
        }
        if self.closed.is_empty() {
            self.close_batch();
        }
        let batch = self.closed.pop_front()?;
        let last_bytes = batch.bytes.len();
        self.held_back = !self.closed.is_empty();
        let bytes = self.seal_batch(batch);
        if self.pending.capacity() == 0 {
            // The next turn's batch is likely as large as this one's.
            self.pending.reserve(last_bytes.min(1 << 20));
        }
        Some(self.emit(bytes))
    }

    fn emit(&mut self, bytes: Bytes) -> DiskOp {
        let file = self.segment_for_next_batch();
        let start = self.emitted;
        self.emitted = Lsn(start.0 + bytes.len() as u64);
        self.segments.back_mut().expect("a segment was chosen above").end = self.emitted;
        self.append = Some(Append { file, start, bytes: bytes.clone() });
        DiskOp::Append { file, bytes }
    }

    /// Whether `take_append` was called in vain: it has something as soon as the append in flight is answered.
    pub fn is_held_back(&self) -> bool {
        self.held_back
    }

    /// The append in flight found no room. What of it stands in the file is to be cut off by the operation returned,
    /// before anything else is written there; nothing is appended until `retry_append`.
    pub fn on_append_refused(&mut self, file: FileName) -> DiskOp {
        let append = self.append.take().expect("an append was emitted for every answer");
        assert_eq!(append.file, file, "one append is in flight at a time");
        let segment = self.segments.back_mut().expect("the append was for it");
        let first = segment.first;
        segment.end = append.start;
        if first == append.start {
            self.segments.pop_back();
        }
        self.emitted = append.start;
        self.refused = Some(append.bytes);
        if let Some((_, end)) = &mut self.sync {
            *end = append.start.min(*end);
        }
        match append.start.0 - first.0 {
            0 => DiskOp::Delete { file },
            length => DiskOp::Truncate { file, length },
        }
    }

    /// Whether a batch waits for room.
    pub fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// The batch that found no room, once more.
    pub fn retry_append(&mut self) -> Option<DiskOp> {
        let bytes = self.refused.take()?;
        Some(self.emit(bytes))
    }

    fn segment_for_next_batch(&mut self) -> FileName {
        let full = |segment: &Segment| segment.end.0 - segment.first.0 >= self.options.segment_bytes;
        if self.segments.back().is_none_or(full) {
            self.segments.push_back(Segment { first: self.emitted, end: self.emitted });
        }
        self.segments.back().expect("just made, if there was none").file()
    }

    fn seal_batch(&self, batch: ClosedBatch) -> Bytes {
        let ClosedBatch { mut bytes, records, incarnation } = batch;
        let body = &bytes[BATCH_HEADER_BYTES..];
        let header = BatchHeader {
            incarnation,
            lsn: self.emitted,
            synced: self.synced,
            body_bytes: u32::try_from(body.len()).expect("BATCH_BYTES and one record more are below 4 GiB"),
            records,
            body_checksum: self.seal.checksum(body),
        };
        bytes[..BATCH_HEADER_BYTES].copy_from_slice(&header.encode(self.seal));
        Bytes::from(bytes)
    }

    /// The append in flight has reached the operating system.
    pub fn on_appended(&mut self, file: FileName) -> Lsn {
        let append = self.append.take().expect("an append was emitted for every answer");
        assert_eq!(append.file, file, "one append is in flight at a time");
        self.written = self.emitted;
        self.written
    }

    /// A sync of the oldest segment that needs one, unless one is in flight, or the first append to that segment is: an
    /// append that finds no room may not even make its file, and to sync what does not exist is an error for which the
    /// partition would stop.
    pub fn take_sync(&mut self) -> Option<DiskOp> {
        if self.sync.is_some() || self.synced == self.emitted {
            return None;
        }
        let segment = *self.segments.iter().find(|segment| segment.end > self.synced)?;
        self.sync_held_back = segment.first == self.written;
        if self.sync_held_back {
            return None;
        }
        self.sync = Some((segment.file(), segment.end));
        Some(DiskOp::Sync { file: segment.file() })
    }

    /// Whether `take_sync` was called in vain: it has something as soon as the append in flight is answered.
    pub fn is_sync_held_back(&self) -> bool {
        self.sync_held_back
    }

    /// The sync in flight is done: what was emitted to the file before it is durable, and so is all before the file.
    pub fn on_synced(&mut self, file: FileName) -> Lsn {
        let (expected, end) = self.sync.take().expect("a sync was emitted for every answer");
        assert_eq!(expected, file, "one sync is in flight at a time");
        self.synced = end;
        end
    }

    /// A checkpoint that begins its replay here has become durable.
    pub fn on_checkpoint(&mut self, log_start: Lsn) {
        self.checkpointed = self.checkpointed.max(log_start);
    }

    /// Forgets whole segments below a position, oldest first; never what the latest checkpoint needs.
    pub fn drop_before(&mut self, lsn: Lsn) -> Vec<DiskOp> {
        let floor = lsn.min(self.checkpointed).min(self.synced);
        let mut deletes = Vec::new();
        while self.segments.len() > 1 && self.segments.front().is_some_and(|segment| segment.end <= floor) {
            let segment = self.segments.pop_front().expect("just looked at");
            deletes.push(DiskOp::Delete { file: segment.file() });
        }
        deletes
    }

    /// The log position from which records are still on disk.
    pub fn first(&self) -> Lsn {
        self.segments.front().map_or(self.emitted, |segment| segment.first)
    }
}

#[cfg(test)]
mod tests;
