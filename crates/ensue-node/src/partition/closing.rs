//! A clean stop: everything is written and synced, and only then does the superblock say so.
//!
//! Nothing more is taken. If the disk refuses, the stop is not a clean one, and the next start
//! reads what is there.

use super::{Partition, Stage};
use ensue_store::disk::{DiskDone, DiskOp, FileName};

/// How far a clean stop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// Records are being written and synced.
    Flushing,
    /// The superblock is being marked; the operation after that one ends the stop.
    Marking,
}

pub(super) const SHUTTING_DOWN: &str = "the server is shutting down";

impl Partition {
    /// Everything is synced and the superblock says so.
    pub fn shut_down(&mut self) {
        match self.stage {
            Stage::Serving if self.persistence.opening.is_empty() => {
                self.stage = Stage::Closing(Closing::Flushing);
                self.flush_log();
            }
            Stage::Serving | Stage::Reading(_) => self.stage = Stage::Stopped(SHUTTING_DOWN.to_owned()),
            Stage::Closing(_) | Stage::Stopped(_) => {}
        }
    }

    /// Whether nothing more comes of this partition.
    pub fn is_closed(&self) -> bool {
        matches!(self.stage, Stage::Stopped(_))
    }

    pub(super) fn on_closing_disk(&mut self, done: DiskDone) {
        match (self.stage.closing(), done) {
            (_, DiskDone::Failed { op, file, reason, .. }) => {
                let file = file.map(|file| file.to_string()).unwrap_or_default();
                return self.stop(format!("{op} of {file} failed while {SHUTTING_DOWN}: {reason}"));
            }
            (Some(Closing::Marking), DiskDone::Deleted { file: FileName::Reserve }) => {
                self.stage = Stage::Stopped(SHUTTING_DOWN.to_owned());
                return;
            }
            (_, DiskDone::Appended { file: file @ FileName::Segment(_) }) => {
                self.persistence.open().on_appended(file);
                self.release();
            }
            (_, DiskDone::Synced { file: file @ FileName::Segment(_) }) => {
                self.persistence.open().on_synced(file);
                self.release();
            }
            _ => {}
        }
        if self.stage.closing() == Some(Closing::Flushing) {
            self.flush_log();
        }
    }

    /// The next append or sync; after the last one, the mark.
    fn flush_log(&mut self) {
        let log = self.persistence.open();
        let append = log.retry_append().or_else(|| log.take_append());
        let sync = log.take_sync();
        let (end, synced) = (log.end(), log.synced());
        self.disk.extend(append);
        self.disk.extend(sync);
        if synced < end {
            return;
        }
        if let Some(superblock) = &mut self.persistence.superblock {
            self.disk.push_back(superblock.mark_clean(synced));
        }
        // It has no use while nothing runs, and its answer comes after the mark's.
        self.disk.push_back(DiskOp::Delete { file: FileName::Reserve });
        self.stage = Stage::Closing(Closing::Marking);
    }
}
