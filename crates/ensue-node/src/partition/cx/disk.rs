//! What rests on the disk: what is let go of when it has been written, and what is written anew.

use super::Cx;
use crate::config::AppendFsync;
use ensue_store::disk::DiskOp;
use ensue_store::layout;
use ensue_store::log::Log;
use ensue_store::superblock::Superblock;
use ensue_types::{LogicalTime, Position, Reply, RequestId, Rule};
use ensue_wire::{Address, Envelope, Message};
use std::collections::VecDeque;

impl Cx {
    /// Lets go of what rested on records that are durable now.
    pub(crate) fn release(&mut self) {
        let Some(log) = self.journal.opened() else { return };
        let durable = match self.config.append_fsync {
            AppendFsync::Always if Rule::SyncBeforeAnswering.holds() => log.synced(),
            _ => log.written(),
        };
        self.outbox.release(durable.0);
    }

    /// What the reserve took is free, be it spent or never quite made.
    pub(in crate::partition) fn on_reserve_gone(&mut self) {
        let again = self.journal.open().retry_append();
        self.disk_ops.extend(again);
    }

    /// What an earlier process of this boot wrote may be in memory only, dropped by a sync that failed: a sync of today
    /// would not tell. It is written anew before anything rests on it (trap 55).
    pub(in crate::partition) fn opening(&self, superblock: &Superblock, log: &Log) -> VecDeque<DiskOp> {
        // After a loss the boot that the superblock names is the lost one until all has caught up, however many
        // processes of this boot have tried.
        let may_be_of_this_boot =
            superblock.boot_id == self.config.boot_id || !superblock.tail_complete(self.config.boot_id);
        if superblock.clean || !may_be_of_this_boot || !Rule::RewriteTheUnsyncedTail.holds() {
            return VecDeque::new();
        }
        let unsynced = log.segments().filter(|segment| segment.end > log.synced());
        unsynced.map(|segment| DiskOp::Rewrite { file: segment.file() }).collect()
    }

    /// Answers, instead of with what rested on records that are not durable, that the partition has stopped. Only
    /// sessions are told; partitions wait.
    pub(in crate::partition) fn disavow(&mut self, answer: Envelope) {
        let (Message::Executed { request, .. }
        | Message::ExecutedInPart { request, .. }
        | Message::TimedOut { request, .. }
        | Message::SnapshotRead { request, .. }
        | Message::Transacted { request, .. }) = answer.message
        else {
            return;
        };
        self.disavow_request(answer.to, request);
    }

    /// The same of a request that has no answer yet.
    pub(in crate::partition) fn disavow_request(&mut self, to: Address, request: RequestId) {
        let words =
            format!("STOPPED partition {} has stopped; it is not known whether a write was kept", self.id);
        self.send_refusal(to, Message::Refused { request, reply: Reply::Error(words.into()) });
    }

    /// The time of the own entry at a position, if it is in memory.
    pub(in crate::partition) fn own_time_at(&self, position: Position) -> Option<LogicalTime> {
        let bytes = self.journal.entry_in_memory(position)?;
        layout::decode_entry(&bytes).ok().map(|entry| entry.stamp.time)
    }
}
