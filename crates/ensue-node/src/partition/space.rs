//! What a partition does while its disk is full (trap 56).
//!
//! It keeps a reserve, a file of zeroes. The first append that finds no room gives the reserve up and goes on in its
//! place: what was promised, the clock's bound, votes, decisions and what has been received can still be logged, so reads
//! are answered and transactions end. New writes are refused and no more is taken of the other datacenters' streams,
//! which send it again later. The reserve is made again as soon as there is room for it, and then all goes on.
//!
//! If even the reserve does not help, the batch that found no room waits, and everything that rests on it.

use super::Partition;
use crate::trace::Trace;
use bytes::Bytes;
use ensue_store::disk::{DiskOp, FileName};
use ensue_types::{Rule, limits};

/// What is known of the room on the disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Room {
    /// Writes are refused until there is a reserve again.
    full: bool,
    reserve: Reserve,
    /// What must be done before the log goes on found no room.
    opening_failed: bool,
    next_try_us: u64,
    /// A checkpoint that was given up, until its rest is deleted.
    pub(super) given_up: Option<FileName>,
    pub(super) next_checkpoint_us: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reserve {
    #[default]
    Missing,
    Making,
    Kept,
}

impl Partition {
    /// Whether writes are refused and streams wait for room on the disk.
    pub(crate) fn is_out_of_room(&self) -> bool {
        self.persistence.room.full && self.config.rules.hold(Rule::RefuseWhenFull)
    }

    /// Something was to be written, and there was no room.
    pub(super) fn on_no_room(&mut self, file: FileName) {
        if let Some(DiskOp::Rewrite { file: due } | DiskOp::Replace { file: due, .. }) =
            self.persistence.opening.front()
            && *due == file
        {
            self.persistence.room.opening_failed = true;
            return self.run_short();
        }
        match file {
            FileName::Segment(_) => {
                let cut = self.persistence.open().on_append_refused(file);
                if self.config.rules.hold(Rule::CutAPartialAppend) {
                    self.disk.push_back(cut);
                }
                self.run_short();
                self.spend_reserve();
            }
            FileName::Checkpoint(_) | FileName::Superblock => self.give_up_checkpoint(),
            // Where files are never written in place, there may be no room for that: the next sync says more.
            FileName::Witness => {}
            FileName::Reserve => {
                self.disk.push_back(DiskOp::Delete { file });
                self.persistence.room.reserve = Reserve::Missing;
                self.run_short();
            }
        }
    }

    fn run_short(&mut self) {
        if std::mem::replace(&mut self.persistence.room.full, true) {
            return;
        }
        self.persistence.room.next_try_us = self.now.monotonic_us + limits::FULL_DISK_RETRY_US;
        self.trace(Trace::DiskFull { partition: self.id });
        // It would eat what the log needs, and its rest takes room.
        if self.persistence.writer.as_ref().is_some_and(|(writer, _)| !writer.is_being_named()) {
            self.give_up_checkpoint();
        }
    }

    /// Lets a batch that waits for room have that of the reserve.
    fn spend_reserve(&mut self) {
        if self.persistence.room.reserve == Reserve::Kept && self.persistence.open().is_refused() {
            self.persistence.room.reserve = Reserve::Missing;
            self.disk.push_back(DiskOp::Delete { file: FileName::Reserve });
        }
    }

    /// What the reserve took is free, be it spent or never quite made.
    pub(super) fn on_reserve_gone(&mut self) {
        let again = self.persistence.open().retry_append();
        self.disk.extend(again);
    }

    pub(super) fn make_reserve(&mut self) {
        match self.persistence.room.reserve {
            Reserve::Missing => {
                self.persistence.room.reserve = Reserve::Making;
                let bytes = Bytes::from(vec![0; self.config.tuning.reserve_bytes]);
                self.disk.push_back(DiskOp::Append { file: FileName::Reserve, bytes });
            }
            Reserve::Making => {}
            // What found no room was not of the log, so the reserve was never given up.
            Reserve::Kept => self.on_reserve_made(),
        }
    }

    pub(super) fn on_reserve_made(&mut self) {
        self.persistence.room.reserve = Reserve::Kept;
        self.spend_reserve();
        if self.persistence.room.reserve == Reserve::Kept && std::mem::take(&mut self.persistence.room.full) {
            self.trace(Trace::RoomAgain { partition: self.id });
        }
    }

    /// Tries again, now and then, what found no room.
    pub(super) fn look_for_room(&mut self) {
        let room = &mut self.persistence.room;
        if !room.full || self.now.monotonic_us < room.next_try_us {
            return;
        }
        room.next_try_us = self.now.monotonic_us + limits::FULL_DISK_RETRY_US;
        if std::mem::take(&mut room.opening_failed) {
            let again = self.persistence.opening.front().cloned();
            return self.disk.extend(again);
        }
        if !self.persistence.opening.is_empty() {
            return;
        }
        let again = self.persistence.open().retry_append();
        if again.is_some() {
            self.disk.extend(again);
        } else if self.persistence.room.reserve == Reserve::Missing {
            self.make_reserve();
        }
    }

    /// Gives up the checkpoint under way; another begins later.
    fn give_up_checkpoint(&mut self) {
        let Some((writer, walk)) = self.persistence.writer.take() else { return };
        let Some(superblock) = &mut self.persistence.superblock else { return };
        self.persistence.checkpointed_end = walk.checkpointed_before();
        self.persistence.room.given_up = Some(FileName::Checkpoint(writer.place().number));
        self.persistence.room.next_checkpoint_us = self.now.monotonic_us + limits::FULL_DISK_RETRY_US;
        self.disk.push_back(writer.give_up(superblock));
    }
}
