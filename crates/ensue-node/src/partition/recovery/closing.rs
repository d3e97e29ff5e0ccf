//! A clean stop: everything is written and synced, and only then does the superblock say so.
//!
//! Nothing more is taken. If the disk refuses, the stop is not a clean one, and the next start
//! reads what is there.

use super::recover::Stage;
use crate::partition::Partition;
use crate::trace::Trace;
use ensue_store::disk::{DiskDone, DiskOp, FileName};

/// How far a clean stop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closing {
    /// The superblock is being marked: all else is synced.
    marking: bool,
    /// The reserve is deleted at the beginning, to make room for the rest, and again behind the mark, for the answer.
    deletes: u8,
}

pub(in crate::partition) const SHUTTING_DOWN: &str = "the server is shutting down";

impl Partition {
    /// Everything is synced and the superblock says so.
    pub fn shut_down(&mut self) {
        match self.stage {
            // One that is catching up must catch up again: its stop is not a clean one.
            Stage::Serving if self.durability.opening.is_empty() && !self.others.is_catching_up() => {
                self.enter(Stage::Closing(Closing { marking: false, deletes: 1 }));
                self.cx.disk_ops.push_back(DiskOp::Delete { file: FileName::Reserve });
                self.flush_log();
            }
            Stage::Serving | Stage::Reading(_) | Stage::Joining(_) | Stage::Regaining(_) => {
                self.enter(Stage::Stopped(SHUTTING_DOWN.to_owned()));
            }
            Stage::Closing(_) | Stage::Stopped(_) => {}
        }
    }

    /// Whether nothing more comes of this partition.
    pub fn is_closed(&self) -> bool {
        matches!(self.stage, Stage::Stopped(_))
    }

    pub(in crate::partition) fn on_closing_disk(&mut self, done: DiskDone) {
        match done {
            // The superblock will say what the witness could not.
            DiskDone::Failed { file: Some(FileName::Witness), full: true, .. } => {}
            DiskDone::Failed { full: true, .. } => {
                self.cx.trace(Trace::DiskFull { partition: self.cx.id });
                self.enter(Stage::Stopped(SHUTTING_DOWN.to_owned()));
            }
            DiskDone::Failed { op, file, reason, .. } => {
                let file = file.map(|file| file.to_string()).unwrap_or_default();
                self.stop(format!("{op} of {file} failed while {SHUTTING_DOWN}: {reason}"));
            }
            DiskDone::Deleted { file: FileName::Reserve } => self.on_closing_delete(),
            DiskDone::Appended { file: file @ FileName::Segment(_) } => {
                self.cx.journal.open().on_appended(file);
                self.cx.release();
                self.flush_log();
            }
            DiskDone::Synced { file: file @ FileName::Segment(_) } => {
                self.cx.journal.open().on_synced(file);
                self.durability.testify(&mut self.cx);
                self.cx.release();
                self.flush_log();
            }
            _ => {}
        }
    }

    fn on_closing_delete(&mut self) {
        let Stage::Closing(closing) = &mut self.stage else { return };
        closing.deletes = closing.deletes.saturating_sub(1);
        if closing.marking && closing.deletes == 0 {
            self.enter(Stage::Stopped(SHUTTING_DOWN.to_owned()));
        }
    }

    /// The next append or sync; after the last one, the mark.
    fn flush_log(&mut self) {
        let log = self.cx.journal.open();
        let append = log.retry_append().or_else(|| log.take_append());
        let sync = log.take_sync();
        let (end, synced) = (log.end(), log.synced());
        self.cx.disk_ops.extend(append);
        self.cx.disk_ops.extend(sync);
        if synced < end {
            return;
        }
        let Stage::Closing(closing) = &mut self.stage else { return };
        if std::mem::replace(&mut closing.marking, true) {
            return;
        }
        closing.deletes += 1;
        if let Some(superblock) = &mut self.durability.superblock {
            self.cx.disk_ops.push_back(superblock.mark_clean(synced));
        }
        self.cx.disk_ops.push_back(DiskOp::Delete { file: FileName::Reserve });
    }
}
