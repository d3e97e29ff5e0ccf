//! Checks a partition's directory without changing it: recovery's own reading, from the oldest segment on, and a look
//! into every record.
//!
//! Driven like recovery: carry out `next_op` (only `List` and `Read`), hand the answer to `on_done`, until `report`.

use crate::disk::{DiskDone, DiskOp};
use crate::layout::{decode_entry, entry_position};
use crate::record::Record;
use crate::recovery::{Recovered, RecoveredRecord, Recovery, RecoveryError, RecoveryOptions, RecoveryReport};
use crate::tail::own_entry;
use ensue_types::{Incarnation, Position};

/// Problems told in full; more are only counted.
pub const PROBLEMS_MAX: usize = 100;

/// What the check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FsckReport {
    /// What was read, unless an error ended it.
    pub recovery: Option<RecoveryReport>,
    pub entries: u64,
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
    /// The latest place of the own stream.
    own: Option<(Incarnation, Position)>,
}

/// A check of the directory that should be as expected.
pub fn check(options: RecoveryOptions) -> Fsck {
    Fsck {
        recovery: Recovery::check_only(options),
        report: FsckReport::default(),
        finished: false,
        own: None,
    }
}

impl Fsck {
    pub fn next_op(&mut self) -> Option<DiskOp> {
        if self.finished { None } else { self.recovery.next_op() }
    }

    pub fn on_done(&mut self, done: DiskDone) {
        let outcome = self.recovery.on_done(done);
        while let Some(item) = self.recovery.next_item() {
            match item {
                Recovered::Record(record) => self.check_record(&record),
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

    fn check_record(&mut self, recovered: &RecoveredRecord) {
        let entry = match (own_entry(&recovered.record), &recovered.record) {
            (Some(entry), _) => {
                self.check_position(recovered, entry_position(entry).unwrap_or_default());
                entry
            }
            (None, Record::Received { entry, .. }) => entry,
            _ => return,
        };
        self.report.entries += 1;
        if let Err(error) = decode_entry(entry) {
            self.problem(format!("record that ends at log position {}: {error}", recovered.lsn_end));
        }
    }

    fn check_position(&mut self, recovered: &RecoveredRecord, position: Position) {
        let incarnation = recovered.incarnation;
        let expected = match self.own {
            Some((latest, last)) if latest == incarnation => Some(last.next()),
            Some((latest, _)) if latest < incarnation => Some(Position::before(incarnation).next()),
            Some(_) => None,
            None => Some(position),
        };
        if expected != Some(position) {
            let (at, life) = (recovered.lsn_end, incarnation.0);
            self.problem(format!(
                "record that ends at log position {at}: position {life}.{position} is out of order"
            ));
        }
        self.own = Some((incarnation, position));
    }

    fn problem(&mut self, text: String) {
        self.report.problem_count += 1;
        if self.report.problems.len() < PROBLEMS_MAX {
            self.report.problems.push(text);
        }
    }
}

#[cfg(test)]
mod tests;
