//! What a partition does while its disk is full (trap 56).
//!
//! It keeps a reserve, a file of bytes that no file system makes smaller. The first append that finds no room gives the
//! reserve up and goes on in its place: what was promised, the clock's bound, votes, decisions and what has been
//! received can still be logged, so reads are answered and transactions end. New writes are refused and no more is
//! taken of the other datacenters' streams, which send it again later. The reserve is made again as soon as there is
//! room for it, and then all goes on.
//!
//! If even the reserve does not help, the batch that found no room waits, and everything that rests on it.

use super::Persistence;
use crate::partition::cx::Cx;
use crate::trace::Trace;
use bytes::Bytes;
use ensue_store::disk::{DiskOp, FileName};
use ensue_types::{Rule, limits};

/// What is known of the room on the disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Room {
    reserve: Reserve,
    /// What must be done before the log goes on found no room.
    opening_failed: bool,
    next_try_us: u64,
    /// A checkpoint that was given up, until its rest is deleted.
    pub(in crate::partition::persistence) abandoned: Option<FileName>,
    pub(in crate::partition::persistence) next_checkpoint_us: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reserve {
    #[default]
    Missing,
    Making,
    Kept,
}

/// Bytes without a pattern: zeroes take no room where a file system compresses, and so would give none. The generator
/// is SplitMix64.
fn incompressible(count: usize) -> Bytes {
    let mut state = 0u64;
    let words = (0..count.div_ceil(8)).flat_map(|_| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)).to_le_bytes()
    });
    words.take(count).collect()
}

impl Persistence {
    /// Something was to be written, and there was no room.
    pub(in crate::partition) fn on_no_room(&mut self, cx: &mut Cx, file: FileName) {
        let is_due = |op: &DiskOp| match op {
            DiskOp::Rewrite { file: due } | DiskOp::Replace { file: due, .. } => *due == file,
            _ => false,
        };
        if self.awaits_opening() && self.opening.front().is_some_and(is_due) {
            self.room.opening_failed = true;
            return self.run_short(cx);
        }
        match file {
            FileName::Segment(_) => {
                let cut = cx.journal.open().on_append_refused(file);
                if Rule::CutAPartialAppend.holds() {
                    cx.disk_ops.push_back(cut);
                }
                self.run_short(cx);
                self.spend_reserve(cx);
            }
            FileName::Checkpoint(_) | FileName::Superblock => self.abandon_checkpoint(cx),
            // Where files are never written in place, there may be no room for that: the next sync says more.
            FileName::Witness | FileName::Journal(_) => {}
            FileName::Reserve => {
                cx.disk_ops.push_back(DiskOp::Delete { file });
                self.room.reserve = Reserve::Missing;
                self.run_short(cx);
            }
        }
    }

    fn run_short(&mut self, cx: &mut Cx) {
        if cx.disk_is_full() {
            return;
        }
        cx.note_disk_full(true);
        self.room.next_try_us = cx.now.monotonic_us + limits::FULL_DISK_RETRY_US;
        cx.trace(Trace::DiskFull { partition: cx.id });
        // It would eat what the log needs, and its rest takes room.
        if self.writer.as_ref().is_some_and(|(writer, _)| !writer.is_being_named()) {
            self.abandon_checkpoint(cx);
        }
    }

    /// Lets a batch that waits for room have that of the reserve.
    fn spend_reserve(&mut self, cx: &mut Cx) {
        if self.room.reserve == Reserve::Kept && cx.journal.open().is_refused() {
            self.room.reserve = Reserve::Missing;
            cx.disk_ops.push_back(DiskOp::Delete { file: FileName::Reserve });
        }
    }

    pub(in crate::partition) fn make_reserve(&mut self, cx: &mut Cx) {
        match self.room.reserve {
            Reserve::Missing => {
                self.room.reserve = Reserve::Making;
                let bytes = incompressible(cx.config.tuning.reserve_bytes);
                cx.disk_ops.push_back(DiskOp::Append { file: FileName::Reserve, bytes });
            }
            Reserve::Making => {}
            // What found no room was not of the log, so the reserve was never given up.
            Reserve::Kept => self.on_reserve_made(cx),
        }
    }

    pub(in crate::partition) fn on_reserve_made(&mut self, cx: &mut Cx) {
        self.room.reserve = Reserve::Kept;
        self.spend_reserve(cx);
        if self.room.reserve == Reserve::Kept && cx.disk_is_full() {
            cx.note_disk_full(false);
            cx.trace(Trace::RoomAgain { partition: cx.id });
        }
    }

    /// Tries again, now and then, what found no room.
    pub(in crate::partition) fn retry_for_room(&mut self, cx: &mut Cx) {
        let room = &mut self.room;
        if !cx.disk_is_full() || cx.now.monotonic_us < room.next_try_us {
            return;
        }
        room.next_try_us = cx.now.monotonic_us + limits::FULL_DISK_RETRY_US;
        if std::mem::take(&mut room.opening_failed) {
            let again = self.opening.front().cloned();
            return cx.disk_ops.extend(again);
        }
        if !self.opening.is_empty() {
            return;
        }
        let again = cx.journal.open().retry_append();
        if again.is_some() {
            cx.disk_ops.extend(again);
        } else if self.room.reserve == Reserve::Missing {
            self.make_reserve(cx);
        }
    }

    /// Gives up the checkpoint under way; another begins later.
    fn abandon_checkpoint(&mut self, cx: &mut Cx) {
        let Some((writer, walk)) = self.writer.take() else { return };
        cx.note_checkpointing(self.is_walking());
        cx.saving.note_given_up();
        let Some(superblock) = &mut self.superblock else { return };
        self.checkpointed_end = walk.checkpointed_before();
        self.room.abandoned = Some(FileName::Checkpoint(writer.place().number));
        self.room.next_checkpoint_us = cx.now.monotonic_us + limits::FULL_DISK_RETRY_US;
        let was_being_named = writer.is_being_named();
        cx.disk_ops.push_back(writer.abandon(superblock));
        self.checkpoint_synced = None;
        if was_being_named {
            cx.disk_ops.extend(self.opening.front().cloned());
        }
    }
}
