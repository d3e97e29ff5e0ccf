//! Checks a partition's directory without changing it: recovery's own reading, from the oldest segment on, and a look
//! into every record.
//!
//! Driven like recovery: carry out `next_op` (only `List` and `Read`), hand the answer to `on_done`, until `report`.

use crate::disk::{DiskDone, DiskOp, FileName};
use crate::image;
use crate::layout::{decode_entry, entry_position};
use crate::record::Record;
use crate::recovery::{Recovered, RecoveredRecord, Recovery, RecoveryError, RecoveryOptions, RecoveryReport};
use crate::tail::own_entry;
use bytes::Bytes;
use ensue_types::{Incarnation, Position};

/// Problems told in full; more are only counted.
pub const PROBLEMS_MAX: usize = 100;

/// A place in the own stream.
pub type Place = (Incarnation, Position);

/// What the check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FsckReport {
    /// What was read, unless an error ended it.
    pub recovery: Option<RecoveryReport>,
    /// Files of the log, and the bytes in them.
    pub segments: u64,
    pub log_bytes: u64,
    /// Entries in the log, of the own stream and received ones.
    pub entries: u64,
    /// The first and the last place of the own stream in the log.
    pub own: Option<(Place, Place)>,
    /// One line a problem. Damage comes from `error`; a torn tail is none.
    pub problems: Vec<String>,
    pub problem_count: u64,
    pub error: Option<RecoveryError>,
}

impl FsckReport {
    /// Whether a start would succeed and everything makes sense.
    pub fn is_sound(&self) -> bool {
        self.problem_count == 0 && self.error.is_none()
    }
}

/// See the module.
#[derive(Debug)]
pub struct Fsck {
    recovery: Recovery,
    report: FsckReport,
    finished: bool,
    /// Where the log's files begin.
    firsts: Vec<u64>,
    /// The checkpoint that counts, and how many of its items were read.
    checkpoint: u64,
    items: u64,
    /// Entries of the own stream after this position are handed out.
    listed_after: Option<Position>,
    listed: Vec<Bytes>,
}

/// A check of the directory that should be as expected.
pub fn check(options: RecoveryOptions) -> Fsck {
    Fsck {
        recovery: Recovery::check_only(options),
        report: FsckReport::default(),
        finished: false,
        firsts: Vec::new(),
        checkpoint: 0,
        items: 0,
        listed_after: None,
        listed: Vec::new(),
    }
}

impl Fsck {
    /// Hands out the entries of the own stream after a position, too.
    pub fn listing_after(self, position: Position) -> Fsck {
        Fsck { listed_after: Some(position), ..self }
    }

    /// Those that were read since the last call.
    pub fn take_listed(&mut self) -> Vec<Bytes> {
        std::mem::take(&mut self.listed)
    }

    pub fn next_op(&mut self) -> Option<DiskOp> {
        if self.finished { None } else { self.recovery.next_op() }
    }

    pub fn on_done(&mut self, done: DiskDone) {
        if let DiskDone::Listed { files } = &done {
            self.note_segments(files);
        }
        let outcome = self.recovery.on_done(done);
        while let Some(item) = self.recovery.next_item() {
            match item {
                Recovered::Record(record) => self.check_record(&record),
                Recovered::Checkpoint(place) => self.checkpoint = place.number,
                Recovered::CheckpointItem { kind, bytes } => self.check_item(kind, &bytes),
                Recovered::Finished(finish) => {
                    self.report.recovery = Some(finish.report);
                    self.finished = true;
                }
                _ => {}
            }
        }
        if let Err(error) = outcome {
            self.report.error = Some(error);
            self.finished = true;
        }
    }

    /// The report, once the check is done.
    pub fn report(&self) -> Option<&FsckReport> {
        self.finished.then_some(&self.report)
    }

    fn note_segments(&mut self, files: &[(FileName, u64)]) {
        for &(file, bytes) in files {
            if let FileName::Segment(first) = file {
                self.firsts.push(first);
                self.report.segments += 1;
                self.report.log_bytes += bytes;
            }
        }
        self.firsts.sort_unstable();
    }

    fn check_item(&mut self, kind: u8, bytes: &Bytes) {
        self.items += 1;
        if let Err(error) = image::check_item(kind, bytes) {
            let (file, item) = (FileName::Checkpoint(self.checkpoint), self.items);
            self.note_problem(|| format!("{file}, item {item}: {error}"));
        }
    }

    fn check_record(&mut self, recovered: &RecoveredRecord) {
        let entry = match (own_entry(&recovered.record), &recovered.record) {
            (Some(entry), _) => {
                let position = entry_position(entry).unwrap_or_default();
                self.check_position(recovered, position);
                if self.listed_after.is_some_and(|after| position > after) {
                    self.listed.push(entry.clone());
                }
                entry
            }
            (None, Record::Received { entry, .. }) => entry,
            _ => return,
        };
        self.report.entries += 1;
        if let Err(error) = decode_entry(entry) {
            self.problem(recovered, &error.to_string());
        }
    }

    fn check_position(&mut self, recovered: &RecoveredRecord, position: Position) {
        let incarnation = recovered.incarnation;
        let expected = match self.report.own {
            Some((_, (latest, last))) if latest == incarnation => Some(last.next()),
            Some((_, (latest, _))) if latest < incarnation => Some(Position::before(incarnation).next()),
            Some(_) => None,
            None => Some(position),
        };
        if expected != Some(position) {
            self.problem(
                recovered,
                &format!("position {}.{} is out of order", incarnation.0, position.number()),
            );
        }
        let place = (incarnation, position);
        self.report.own = Some((self.report.own.map_or(place, |(first, _)| first), place));
    }

    fn problem(&mut self, recovered: &RecoveredRecord, what: &str) {
        let end = recovered.lsn_end.0;
        // A record ends in the file that begins before it, at the latest with that file's last byte.
        let first = self.firsts.iter().rfind(|first| **first < end).copied().unwrap_or_default();
        let (file, offset) = (FileName::Segment(first), end - first);
        self.note_problem(|| format!("{file}, the record that ends at byte {offset}: {what}"));
    }

    fn note_problem(&mut self, words: impl FnOnce() -> String) {
        self.report.problem_count += 1;
        if self.report.problems.len() < PROBLEMS_MAX {
            self.report.problems.push(words());
        }
    }
}

#[cfg(test)]
mod tests;
