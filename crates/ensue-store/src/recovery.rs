//! Recovery of one partition's directory: superblock, checkpoint, log; what follows from them, in order.
//!
//! It is driven: carry out `next_op`, hand the answer to `on_done`, take all of `next_item`; until `Finished`.
//! It promises to hand out a prefix of what was appended that holds all that is known to have been durable, or to
//! name the file and the byte that break that promise. Nothing is deleted or cut before everything was read.
//!
//! On an invalid batch at log position x:
//! - if the superblock, the witness or the checkpoint says that the log was durable beyond x, it is damage: an error;
//! - if any later header, at any byte of this file or of a later segment, is whole, stands at its own place and says
//!   that the log was durable beyond x, it is damage: an error;
//! - otherwise the batch was never known to be durable: it and all after it is a torn tail, and is cut.
//!
//! The recovered log counts as synced what is known to be; `take_sync` of the log has the rest to sync. With
//! `fsync always` that sync must be done before the superblock is marked as running.

use crate::disk::{DiskDone, DiskOp, FileName};
use crate::layout::batch::Seal;
use crate::layout::checkpoint::CheckpointPlace;
use crate::layout::{LayoutError, decode_record};
use crate::log::{Log, LogError, LogOptions, LogState, Lsn, Segment};
use crate::record::Record;
use crate::scan::{self, Batch, Step};
use crate::superblock::{SUPERBLOCK_BYTES, Superblock};
use crate::window::Window;
use crate::witness::{self, WITNESS_BYTES};
use bytes::Bytes;
use checkpoint::CheckpointScan;
use ensue_types::Incarnation;
use std::collections::VecDeque;

mod checkpoint;

/// What is expected of the directory.
#[derive(Clone, Debug)]
pub struct RecoveryOptions {
    pub log: LogOptions,
    /// Written as it is into a fresh directory; the cluster, datacenter, partition and partition count of any other
    /// directory must be these.
    pub expected: Superblock,
}

/// What recovery hands out.
#[derive(Clone, Debug)]
pub enum Recovered {
    /// First of all: the superblock as it was found, or as it was made.
    Superblock(Superblock),
    Checkpoint(CheckpointPlace),
    CheckpointItem {
        kind: u8,
        bytes: Bytes,
    },
    Record(RecoveredRecord),
    /// The tail of the log was torn and is cut; it is told before it is done.
    Torn(Torn),
    Finished(Box<Finish>),
}

/// A record after the checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredRecord {
    pub lsn_end: Lsn,
    /// Where the batch begins that holds it.
    pub batch: Lsn,
    pub incarnation: Incarnation,
    pub record: Record,
}

/// Where the log was torn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    pub file: FileName,
    pub offset: u64,
    pub at: Lsn,
    pub dropped_bytes: u64,
    pub reason: String,
}

/// The end of a recovery.
#[derive(Clone, Debug)]
pub struct Finish {
    pub log: Log,
    pub superblock: Superblock,
    pub report: RecoveryReport,
}

/// What a recovery did, for a message to the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    pub fresh: bool,
    pub checkpoint: u64,
    pub checkpoint_items: u64,
    /// How far the witness knows the log to be durable; nothing if there is none, or if a power failure left a torn
    /// one.
    pub witnessed: Option<Lsn>,
    pub batches: u64,
    pub records: u64,
    pub log_bytes: u64,
    pub torn: Option<Torn>,
    pub leftovers_deleted: u64,
}

/// Why a partition cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecoveryError {
    #[error("{op} of {} failed: {reason}", .file.map_or("the directory".to_string(), |file| file.to_string()))]
    Disk { op: &'static str, file: Option<FileName>, reason: String },
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("the directory belongs to another {what}: {found} instead of {expected}")]
    Foreign { what: &'static str, expected: u128, found: u128 },
    #[error("{file}: {error}")]
    Format { file: FileName, error: LayoutError },
}

impl RecoveryError {
    /// Whether the files are not what was written: no disk that fails, no other format, no other configuration.
    pub fn is_damage(&self) -> bool {
        match self {
            RecoveryError::Log(_) => true,
            RecoveryError::Format { error, .. } => !matches!(error, LayoutError::UnknownFormat { .. }),
            RecoveryError::Disk { .. } | RecoveryError::Foreign { .. } => false,
        }
    }
}

#[derive(Clone, Debug)]
enum State {
    Listing,
    Fresh,
    ReadingSuperblock,
    ReadingWitness,
    Checkpoint(CheckpointScan),
    /// Reading the segment of this index.
    Segment {
        index: usize,
        window: Window,
    },
    Searching {
        broken: Broken,
        index: usize,
        window: Window,
    },
    Cleaning,
    Finished,
}

/// An invalid place, of which it is not yet known whether it is a torn tail.
#[derive(Clone, Debug)]
struct Broken {
    file: FileName,
    offset: u64,
    at: Lsn,
    reason: String,
    /// Segments up to here stay, the last of them cut.
    keep: usize,
}

impl Broken {
    fn corrupt(&self, why: &str) -> RecoveryError {
        corrupt(self.file, self.offset, format!("{}; {why}", self.reason))
    }
}

/// Whether a start takes a directory with these files for a new one: none was written, or there was no room for its
/// first superblock.
pub fn is_unused(files: &[(FileName, u64)]) -> bool {
    files.iter().all(|(file, _)| matches!(file, FileName::Reserve))
}

fn corrupt(file: FileName, offset: u64, reason: String) -> RecoveryError {
    LogError::Corrupt { file, offset, reason }.into()
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Recovery {
    options: RecoveryOptions,
    /// Reads from the oldest segment on and changes nothing.
    check_only: bool,
    superblock: Superblock,
    seal: Seal,
    state: State,
    ops: VecDeque<DiskOp>,
    /// Operations handed out and not answered.
    outstanding: usize,
    items: VecDeque<Recovered>,
    /// Files that no longer count.
    leftovers: Vec<FileName>,
    checkpoints: Vec<(u64, u64)>,
    /// Bytes of the witness.
    witness: Option<u64>,
    segments: Vec<Segment>,
    place: CheckpointPlace,
    /// The log was durable up to here at least, by superblock, witness and checkpoint.
    floor: Lsn,
    /// By the headers of batches too.
    synced: Lsn,
    /// The highest of the superblock and of all batches read: a start may have died between the two.
    incarnation: Incarnation,
    report: RecoveryReport,
}

impl Recovery {
    pub fn new(options: RecoveryOptions) -> Recovery {
        Recovery::with_mode(options, false)
    }

    pub(crate) fn check_only(options: RecoveryOptions) -> Recovery {
        Recovery::with_mode(options, true)
    }

    fn with_mode(options: RecoveryOptions, check_only: bool) -> Recovery {
        Recovery {
            superblock: options.expected.clone(),
            seal: options.expected.seal(),
            options,
            check_only,
            state: State::Listing,
            ops: VecDeque::from([DiskOp::List]),
            outstanding: 0,
            items: VecDeque::new(),
            leftovers: Vec::new(),
            checkpoints: Vec::new(),
            witness: None,
            segments: Vec::new(),
            place: CheckpointPlace::default(),
            floor: Lsn(0),
            synced: Lsn(0),
            incarnation: Incarnation(0),
            report: RecoveryReport::default(),
        }
    }

    /// The next operation to carry out; nothing until the ones before are answered, and nothing at the end.
    pub fn next_op(&mut self) -> Option<DiskOp> {
        let op = self.ops.pop_front()?;
        self.outstanding += 1;
        Some(op)
    }

    /// The next thing found, in order.
    pub fn next_item(&mut self) -> Option<Recovered> {
        self.items.pop_front()
    }

    /// Takes an answer. After an error nothing more comes.
    pub fn on_done(&mut self, done: DiskDone) -> Result<(), RecoveryError> {
        self.outstanding = self.outstanding.checked_sub(1).expect("every answer has its operation");
        match done {
            DiskDone::Failed { op, file, reason, .. } => {
                return Err(RecoveryError::Disk { op, file, reason });
            }
            DiskDone::Listed { files } => self.on_listed(files)?,
            DiskDone::Read { offset, bytes, .. } => match &mut self.state {
                State::ReadingSuperblock => self.on_superblock(&bytes)?,
                State::ReadingWitness => self.on_witness(&bytes)?,
                State::Checkpoint(scan) => scan.window.feed(offset, bytes),
                State::Segment { window, .. } | State::Searching { window, .. } => window.feed(offset, bytes),
                state => panic!("nothing was to be read in {state:?}"),
            },
            _ => {}
        }
        if self.outstanding == 0 && self.ops.is_empty() { self.advance() } else { Ok(()) }
    }

    /// Goes on until there is something to do on disk, or the end.
    fn advance(&mut self) -> Result<(), RecoveryError> {
        while self.ops.is_empty() && !matches!(self.state, State::Finished) {
            match std::mem::replace(&mut self.state, State::Finished) {
                State::Checkpoint(scan) => self.step_checkpoint(scan)?,
                State::Segment { index, window } => self.step_segment(index, window)?,
                State::Searching { broken, index, window } => self.step_search(broken, index, window)?,
                State::Fresh => {
                    self.items.push_back(Recovered::Superblock(self.superblock.clone()));
                    self.finish();
                }
                State::Cleaning => self.finish(),
                state => panic!("{state:?} waits for an answer"),
            }
        }
        Ok(())
    }

    fn on_listed(&mut self, files: Vec<(FileName, u64)>) -> Result<(), RecoveryError> {
        let unused = is_unused(&files);
        let mut superblock = false;
        for (file, size) in files {
            match file {
                FileName::Superblock => superblock = true,
                FileName::Reserve => self.leftovers.push(file),
                // Of a replica, whose partition does not see it.
                FileName::Journal(_) => {}
                FileName::Witness => self.witness = Some(size),
                FileName::Checkpoint(number) => self.checkpoints.push((number, size)),
                FileName::Segment(first) => {
                    self.segments.push(Segment { first: Lsn(first), end: Lsn(first.saturating_add(size)) });
                }
            }
        }
        self.segments.sort_by_key(|segment| segment.first);
        if superblock {
            let length = SUPERBLOCK_BYTES as u32 + 1;
            self.ops.push_back(DiskOp::Read { file: FileName::Superblock, offset: 0, length });
            self.state = State::ReadingSuperblock;
            return Ok(());
        }
        if !unused {
            let reason = "it is missing, though the directory is in use".to_string();
            return Err(corrupt(FileName::Superblock, 0, reason));
        }
        self.report.fresh = true;
        if !self.check_only {
            self.ops.push_back(self.superblock.replace());
        }
        self.state = State::Fresh;
        Ok(())
    }

    fn on_superblock(&mut self, bytes: &[u8]) -> Result<(), RecoveryError> {
        let file = FileName::Superblock;
        let found = match Superblock::decode(bytes) {
            Ok(found) => found,
            Err(error @ LayoutError::UnknownFormat { .. }) => {
                return Err(RecoveryError::Format { file, error });
            }
            Err(error) => return Err(corrupt(file, 0, error.to_string())),
        };
        let expected = &self.options.expected;
        for (what, expected, found) in [
            ("cluster", expected.cluster, found.cluster),
            ("datacenter", expected.datacenter.0.into(), found.datacenter.0.into()),
            ("partition", expected.partition.0.into(), found.partition.0.into()),
            ("number of partitions", expected.partitions.into(), found.partitions.into()),
        ] {
            if expected != found {
                return Err(RecoveryError::Foreign { what, expected, found });
            }
        }
        self.floor = found.synced;
        self.items.push_back(Recovered::Superblock(found.clone()));
        self.superblock = found;
        self.begin_witness()
    }

    fn begin_witness(&mut self) -> Result<(), RecoveryError> {
        if !self.superblock.witnessed {
            return self.begin_checkpoint();
        }
        let file = FileName::Witness;
        match self.witness {
            Some(size) if size == WITNESS_BYTES as u64 => {
                self.ops.push_back(DiskOp::Read { file, offset: 0, length: WITNESS_BYTES as u32 });
                self.state = State::ReadingWitness;
                Ok(())
            }
            Some(size) => Err(corrupt(file, 0, format!("it has {size} bytes instead of {WITNESS_BYTES}"))),
            None => Err(corrupt(file, 0, "the superblock names it, and it is missing".to_string())),
        }
    }

    fn on_witness(&mut self, bytes: &[u8]) -> Result<(), RecoveryError> {
        self.report.witnessed = witness::decode(self.seal, bytes);
        self.floor = self.floor.max(self.report.witnessed.unwrap_or_default());
        self.begin_checkpoint()
    }

    fn begin_checkpoint(&mut self) -> Result<(), RecoveryError> {
        let counts = self.superblock.checkpoint;
        let others = self.checkpoints.iter().filter(|(number, _)| *number != counts);
        self.leftovers.extend(others.map(|(number, _)| FileName::Checkpoint(*number)));
        if counts == 0 {
            return self.begin_segments();
        }
        let file = FileName::Checkpoint(counts);
        let Some(&(_, size)) = self.checkpoints.iter().find(|(number, _)| *number == counts) else {
            return Err(corrupt(file, 0, "the superblock names it, and it is missing".to_string()));
        };
        self.report.checkpoint = counts;
        self.state = State::Checkpoint(CheckpointScan::new(Window::new(file, 0, size), self.seal));
        Ok(())
    }

    fn step_checkpoint(&mut self, mut scan: CheckpointScan) -> Result<(), RecoveryError> {
        match scan.step(&mut self.items)? {
            Step::Read(op) => {
                self.ops.push_back(op);
                self.state = State::Checkpoint(scan);
                Ok(())
            }
            Step::Found((place, footer)) => {
                self.place = place;
                self.floor = self.floor.max(footer.synced);
                self.report.checkpoint_items = footer.items;
                self.begin_segments()
            }
            Step::End | Step::Invalid(_) => panic!("a checkpoint's scan fails with an error"),
        }
    }

    /// Chooses the segment that holds the end of the checkpoint; those before it only have to be whole.
    fn begin_segments(&mut self) -> Result<(), RecoveryError> {
        self.synced = self.floor;
        if !self.check_only {
            let unneeded =
                self.segments.windows(2).take_while(|pair| pair[1].first <= self.place.retain).count();
            self.leftovers.extend(self.segments.drain(..unneeded).map(|segment| segment.file()));
        }
        let start = self.segments.iter().rposition(|segment| segment.first <= self.place.log_start);
        for pair in self.segments[..start.map_or(0, |index| index + 1)].windows(2) {
            if pair[0].end != pair[1].first {
                let reason = format!("it should end where {} begins", pair[1].file());
                return Err(corrupt(pair[0].file(), pair[0].end.0 - pair[0].first.0, reason));
            }
        }
        match start {
            Some(index) => {
                let index = if self.check_only { 0 } else { index };
                let segment = self.segments[index];
                self.report.log_bytes = 0;
                self.open_segment(index, segment.first)
            }
            None => self.open_segment(0, self.place.log_start),
        }
    }

    /// Goes on with the segment of this index, which must begin at `at`.
    fn open_segment(&mut self, index: usize, at: Lsn) -> Result<(), RecoveryError> {
        let (file, offset) = match index.checked_sub(1).map(|before| self.segments[before]) {
            Some(before) => (before.file(), at.0 - before.first.0),
            None => (FileName::Segment(at.0), 0),
        };
        let Some(&segment) = self.segments.get(index) else {
            if at < self.floor {
                let reason = format!(
                    "the log ends here, but was durable up to {}: a file or its end is missing",
                    self.floor
                );
                return Err(corrupt(file, offset, reason));
            }
            return self.clean(None);
        };
        if segment.first == at {
            let window = Window::new(segment.file(), 0, segment.end.0 - segment.first.0);
            self.state = State::Segment { index, window };
            return Ok(());
        }
        if segment.first < at {
            return Err(corrupt(file, segment.first.0, format!("it overlaps {}", segment.file())));
        }
        let reason = format!(
            "the log goes on at {} in {}, a file or its end is missing",
            segment.first,
            segment.file()
        );
        let window = Window::new(segment.file(), 0, segment.end.0 - segment.first.0);
        self.on_broken(Broken { file, offset, at, reason, keep: index }, index, window)
    }

    fn step_segment(&mut self, index: usize, mut window: Window) -> Result<(), RecoveryError> {
        let segment = self.segments[index];
        match scan::next_batch(&mut window, segment.first, self.seal) {
            Step::Read(op) => {
                self.ops.push_back(op);
                self.state = State::Segment { index, window };
                Ok(())
            }
            Step::Found(batch) => {
                self.on_batch(segment, &batch)?;
                self.state = State::Segment { index, window };
                Ok(())
            }
            Step::End => {
                let end = Lsn(segment.first.0 + window.offset());
                self.segments[index].end = end;
                self.open_segment(index + 1, end)
            }
            Step::Invalid(reason) => {
                let offset = window.offset();
                let at = Lsn(segment.first.0 + offset);
                let rest = Window::new(segment.file(), offset + 1, offset + window.left());
                self.on_broken(
                    Broken { file: segment.file(), offset, at, reason, keep: index + 1 },
                    index,
                    rest,
                )
            }
        }
    }

    fn on_batch(&mut self, segment: Segment, batch: &Batch) -> Result<(), RecoveryError> {
        let header = batch.header;
        let failed = |error: LayoutError| {
            let reason = format!("the batch is whole, but: {error}");
            corrupt(segment.file(), header.lsn.0 - segment.first.0, reason)
        };
        self.synced = self.synced.max(header.synced);
        self.incarnation = self.incarnation.max(header.incarnation);
        self.report.batches += 1;
        self.report.log_bytes += header.end().0 - header.lsn.0;
        for (lsn_end, bytes) in scan::records(batch).map_err(failed)? {
            if lsn_end > self.place.log_start || self.check_only {
                let record = decode_record(&bytes).map_err(failed)?;
                let (batch, incarnation) = (header.lsn, header.incarnation);
                self.report.records += 1;
                self.items.push_back(Recovered::Record(RecoveredRecord {
                    lsn_end,
                    batch,
                    incarnation,
                    record,
                }));
            }
        }
        Ok(())
    }

    fn on_broken(&mut self, broken: Broken, index: usize, window: Window) -> Result<(), RecoveryError> {
        if broken.at < self.floor {
            return Err(broken.corrupt(&format!("the log was durable up to {}", self.floor)));
        }
        self.state = State::Searching { broken, index, window };
        Ok(())
    }

    fn step_search(&mut self, broken: Broken, index: usize, mut window: Window) -> Result<(), RecoveryError> {
        let segment = self.segments[index];
        match scan::find_testimony(&mut window, segment.first, self.seal, broken.at) {
            Step::Read(op) => {
                self.ops.push_back(op);
                self.state = State::Searching { broken, index, window };
                Ok(())
            }
            Step::Found(header) => {
                let (place, synced) = (header.lsn.0 - segment.first.0, header.synced);
                let why = format!(
                    "a later batch, {} byte {place}, knows the log durable up to {synced}",
                    segment.file()
                );
                Err(broken.corrupt(&why))
            }
            Step::End | Step::Invalid(_) => match self.segments.get(index + 1) {
                Some(next) => {
                    let window = Window::new(next.file(), 0, next.end.0 - next.first.0);
                    self.state = State::Searching { broken, index: index + 1, window };
                    Ok(())
                }
                None => self.clean(Some(broken)),
            },
        }
    }

    /// Cuts a torn tail and deletes what no longer counts.
    fn clean(&mut self, torn: Option<Broken>) -> Result<(), RecoveryError> {
        if let Some(Broken { file, offset, at, reason, keep }) = torn {
            let dropped = self.segments.split_off(keep);
            let mut dropped_bytes: u64 = dropped.iter().map(|segment| segment.end.0 - segment.first.0).sum();
            let deletes = dropped.iter().rev().map(|segment| DiskOp::Delete { file: segment.file() });
            self.ops.extend(deletes);
            if let Some(last) = self.segments.last_mut().filter(|last| last.end > at) {
                dropped_bytes += last.end.0 - at.0;
                last.end = at;
                self.ops.push_back(DiskOp::Truncate { file, length: offset });
            }
            let torn = Torn { file, offset, at, dropped_bytes, reason };
            self.report.torn = Some(torn.clone());
            self.items.push_back(Recovered::Torn(torn));
        }
        self.report.leftovers_deleted = self.leftovers.len() as u64;
        self.ops.extend(self.leftovers.drain(..).map(|file| DiskOp::Delete { file }));
        if self.check_only {
            self.ops.clear();
        }
        self.state = State::Cleaning;
        Ok(())
    }

    fn finish(&mut self) {
        let end = self.segments.last().map_or(self.place.log_start, |segment| segment.end);
        let state = LogState {
            segments: self.segments.drain(..).collect(),
            end,
            synced: self.synced.min(end),
            incarnation: self.incarnation.max(self.superblock.incarnation),
            checkpointed: self.place.log_start,
        };
        let log = Log::new(self.options.log, self.seal, state);
        let (superblock, report) = (self.superblock.clone(), std::mem::take(&mut self.report));
        self.items.push_back(Recovered::Finished(Box::new(Finish { log, superblock, report })));
        self.state = State::Finished;
    }
}

#[cfg(test)]
mod tests;
