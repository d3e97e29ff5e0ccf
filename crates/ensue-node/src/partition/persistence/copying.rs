//! The checkpoint that another datacenter sends to an empty directory.
//!
//! It is written as an own one would be, and counts when the superblock names it. In the same moment the directory
//! becomes one of the identity that was lost, and is known to be behind: a process that is killed before begins again
//! with an empty directory, and one that is killed behind it recovers as from an old copy.

use super::Persistence;
use crate::partition::cx::Cx;
use ensue_store::checkpoint::{CheckpointWriter, Items};
use ensue_store::disk::{DiskDone, DiskOp, FileName, failure_words};
use ensue_store::log::Lsn;
use ensue_types::{DirectoryId, Incarnation};

/// Where the log behind a copy begins. Not at zero: it does not hold what the copy does, and others are told so.
const LOG_START: Lsn = Lsn(1);

/// What a disk answer means for the copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::partition) enum Copied {
    GoesOn,
    /// The directory holds it.
    Durable,
    /// There is no room.
    NoRoom,
    Failed(String),
}

/// Appends that the disk may owe before no further part is asked for: each has a block or more.
const UNANSWERED_MAX: usize = 16;

/// The checkpoint that is written.
#[derive(Clone, Debug)]
pub(in crate::partition::persistence) struct CopyWriter {
    writer: CheckpointWriter,
    /// Appends that the disk has not answered.
    unanswered: usize,
}

impl CopyWriter {
    fn hand_on(&mut self, cx: &mut Cx) {
        while let Some(op) = self.writer.take_op() {
            self.unanswered += usize::from(matches!(op, DiskOp::Append { .. }));
            cx.disk_ops.push_back(op);
        }
    }
}

impl Persistence {
    /// Begins to write what another datacenter sends.
    pub(in crate::partition) fn begin_copying(&mut self) {
        self.copying = self.superblock.as_ref().map(|superblock| {
            let writer = CheckpointWriter::begin(superblock, LOG_START, LOG_START);
            CopyWriter { writer, unanswered: 0 }
        });
    }

    /// Whether the disk has kept up with what came of a copy: what waits for it is in memory.
    pub(in crate::partition) fn keeps_up_with_the_copy(&self) -> bool {
        self.copying.as_ref().is_none_or(|copying| copying.unanswered <= UNANSWERED_MAX)
    }

    /// An item came.
    pub(in crate::partition) fn copy_item(&mut self, cx: &mut Cx, kind: u8, bytes: &[u8]) {
        let Some(copying) = &mut self.copying else { return };
        copying.writer.item(kind, bytes);
        copying.hand_on(cx);
    }

    /// Everything came.
    pub(in crate::partition) fn finish_copying(&mut self, cx: &mut Cx) {
        let Some(copying) = &mut self.copying else { return };
        copying.writer.finish(LOG_START);
        copying.hand_on(cx);
    }

    /// The copy will not be whole: what was written of it goes.
    pub(in crate::partition) fn abandon_copying(&mut self, cx: &mut Cx) {
        if let (Some(copying), Some(superblock)) = (self.copying.take(), &mut self.superblock) {
            cx.disk_ops.push_back(copying.writer.abandon(superblock));
        }
    }

    /// The disk answered while a copy is written, into a directory that is to take over this identity, and whose own
    /// stream had come to this incarnation.
    pub(in crate::partition) fn on_copy_disk(
        &mut self,
        cx: &mut Cx,
        done: &DiskDone,
        (directory, incarnation): (DirectoryId, Incarnation),
    ) -> Copied {
        match done {
            DiskDone::Failed { file: Some(FileName::Checkpoint(_)), full: true, .. } => {
                return Copied::NoRoom;
            }
            DiskDone::Failed { op, file, reason, .. } => {
                return Copied::Failed(failure_words(op, *file, reason));
            }
            _ => {}
        }
        let (Some(copying), Some(superblock)) = (&mut self.copying, &mut self.superblock) else {
            return Copied::GoesOn;
        };
        if matches!(done, DiskDone::Synced { file: FileName::Checkpoint(_) }) {
            // Named together with the checkpoint.
            superblock.incarnation = superblock.incarnation.max(incarnation);
            let _ = superblock.mark_filling(directory, cx.config.boot_id);
        }
        if matches!(done, DiskDone::Appended { file: FileName::Checkpoint(_) }) {
            // One that was given up may have left answers of its own.
            copying.unanswered = copying.unanswered.saturating_sub(1);
        }
        let is_durable = copying.writer.on_done(done, superblock);
        copying.hand_on(cx);
        if is_durable { Copied::Durable } else { Copied::GoesOn }
    }
}
