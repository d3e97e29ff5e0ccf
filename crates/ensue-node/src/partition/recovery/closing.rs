//! A clean stop: everything is written and synced, and only then does the superblock say so.
//!
//! Nothing more is taken. If the disk refuses, the stop is not a clean one, and the next start reads what is there.

use crate::partition::cx::Cx;
use crate::partition::persistence::Persistence;
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

/// How a clean stop goes on.
pub(in crate::partition) enum Close {
    GoesOn,
    Done,
    Failed(String),
}

impl Closing {
    /// Begins to stop: the rest of the log is written.
    pub(in crate::partition) fn begin(cx: &mut Cx, durability: &mut Persistence) -> Closing {
        let mut closing = Closing { marking: false, deletes: 1 };
        cx.disk_ops.push_back(DiskOp::Delete { file: FileName::Reserve });
        closing.flush_log(cx, durability);
        closing
    }

    pub(in crate::partition) fn on_disk(
        &mut self,
        cx: &mut Cx,
        durability: &mut Persistence,
        done: DiskDone,
    ) -> Close {
        match done {
            // The superblock will say what the witness could not. A checkpoint that is not whole counts for nothing.
            DiskDone::Failed {
                file: Some(FileName::Witness | FileName::Checkpoint(_)), full: true, ..
            } => {}
            // A checkpoint was to be named. What the mark says is another matter.
            DiskDone::Failed { file: Some(FileName::Superblock), full: true, .. } if !self.marking => {}
            DiskDone::Failed { full: true, .. } => {
                cx.trace(Trace::DiskFull { partition: cx.id });
                return Close::Done;
            }
            DiskDone::Failed { op, file, reason, .. } => {
                let file = file.map(|file| file.to_string()).unwrap_or_default();
                return Close::Failed(format!("{op} of {file} failed while {SHUTTING_DOWN}: {reason}"));
            }
            DiskDone::Deleted { file: FileName::Reserve } => {
                self.deletes = self.deletes.saturating_sub(1);
                if self.marking && self.deletes == 0 {
                    return Close::Done;
                }
            }
            DiskDone::Appended { file: file @ FileName::Segment(_) } => {
                cx.journal.open().on_appended(file);
                cx.release();
                self.flush_log(cx, durability);
            }
            DiskDone::Synced { file: file @ FileName::Segment(_) } => {
                cx.journal.open().on_synced(file);
                durability.testify(cx);
                cx.release();
                self.flush_log(cx, durability);
            }
            _ => {}
        }
        Close::GoesOn
    }

    /// The next append or sync; after the last one, the mark.
    fn flush_log(&mut self, cx: &mut Cx, durability: &mut Persistence) {
        let log = cx.journal.open();
        let append = log.retry_append().or_else(|| log.take_append());
        let sync = log.take_sync();
        let (end, synced) = (log.end(), log.synced());
        cx.disk_ops.extend(append);
        cx.disk_ops.extend(sync);
        if synced < end {
            return;
        }
        if std::mem::replace(&mut self.marking, true) {
            return;
        }
        self.deletes += 1;
        cx.disk_ops.extend(durability.mark_clean(synced));
        cx.disk_ops.push_back(DiskOp::Delete { file: FileName::Reserve });
    }
}
