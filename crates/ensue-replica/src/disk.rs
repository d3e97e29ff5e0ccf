//! The disk work of a replica: what each operation is for, so that its answer finds who waits for it.

use ensue_store::disk::{DiskDone, DiskOp, FileName};
use std::collections::VecDeque;

/// What an operation is carried out for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Nobody waits for it.
    Nothing,
    /// The start of the replica.
    Starting,
    /// A step that is acknowledged when it is durable, by its number.
    Step(u64),
    /// The partition, which asked for it.
    Partition,
    /// Another node, which has not got that state of the directory.
    Fetch { node: u16, index: u64, file: FileName, offset: u64 },
    /// This replica, which compares it with what was written.
    Verifying,
    /// The good end of the replica.
    Closing,
}

/// Operations that were emitted and not answered.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    /// Answered in this order.
    under_way: VecDeque<Purpose>,
    /// Answered in this order, too, but later than others that were emitted after them.
    syncs: VecDeque<Purpose>,
    pub(crate) emitted: VecDeque<DiskOp>,
}

impl Disk {
    pub(crate) fn emit(&mut self, op: DiskOp, purpose: Purpose) {
        match op {
            DiskOp::Overwrite { .. } => {}
            DiskOp::Sync { .. } => self.syncs.push_back(purpose),
            _ => self.under_way.push_back(purpose),
        }
        self.emitted.push_back(op);
    }

    /// What an answer is for.
    pub(crate) fn answered(&mut self, done: &DiskDone) -> Option<Purpose> {
        match done {
            DiskDone::Synced { .. } => self.syncs.pop_front(),
            DiskDone::Failed { op: "sync", .. } => self.syncs.pop_front(),
            _ => self.under_way.pop_front(),
        }
    }
}

/// A partition sees its own files.
pub(crate) fn hide(done: DiskDone) -> DiskDone {
    match done {
        DiskDone::Listed { mut files } => {
            files.retain(|(file, _)| !matches!(file, FileName::Journal(_) | FileName::Reserve));
            DiskDone::Listed { files }
        }
        done => done,
    }
}
