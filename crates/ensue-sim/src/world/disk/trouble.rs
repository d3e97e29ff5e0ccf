//! What goes wrong on a disk, by order from outside: failing writes, syncs and reads, no room, bytes that rot.
//!
//! Each order is for the next operation of its kind, or until it is taken back. A disk remembers that it has answered
//! an error, so that a partition that stops can be told from one that has no reason to.

use super::{Disk, FileName};
use crate::random::Random;
use ensue_store::disk::DiskDone;
use std::ops::Range;

/// What is wrong now.
#[derive(Clone, Debug, Default)]
pub(super) struct Trouble {
    fail_sync: bool,
    /// The next write fails, after this many of a thousand of its bytes.
    fail_write: Option<u64>,
    fail_read: bool,
    /// Bytes that still fit; nothing is no bound.
    room: Option<u64>,
    /// What is given up is taken by others.
    crowded: bool,
    /// An error other than a full disk was answered to the present process.
    wounded: bool,
    /// Bits that are flipped.
    rot: Vec<Rot>,
    /// The present process was given a flipped bit. It may find that out when the bit is right again.
    misread: bool,
}

/// One flipped bit.
#[derive(Clone, Copy, Debug)]
struct Rot {
    file: FileName,
    offset: usize,
    mask: u8,
}

/// What became of a write.
pub(super) struct Write {
    /// So many bytes were written.
    pub(super) taken: usize,
    /// Full, or broken.
    pub(super) failure: Option<bool>,
}

impl Write {
    pub(super) fn answer(&self, op: &'static str, file: FileName) -> Option<DiskDone> {
        let full = self.failure?;
        let reason = if full { "no space left on device" } else { "input/output error" }.to_owned();
        Some(DiskDone::Failed { op, file: Some(file), full, reason })
    }
}

impl Trouble {
    pub(super) fn write(&mut self, length: usize) -> Write {
        if let Some(share) = self.fail_write.take() {
            self.wounded = true;
            return Write { taken: length * share as usize / 1_000, failure: Some(false) };
        }
        let Some(room) = &mut self.room else { return Write { taken: length, failure: None } };
        let taken = length.min(usize::try_from(*room).unwrap_or(usize::MAX));
        *room -= taken as u64;
        Write { taken, failure: (taken < length).then_some(true) }
    }

    pub(super) fn freed(&mut self, bytes: usize) {
        if let (Some(room), false) = (&mut self.room, self.crowded) {
            *room += bytes as u64;
        }
    }

    pub(super) fn read(&mut self, file: FileName, bytes: Range<usize>) -> Option<DiskDone> {
        self.misread |= self.rot.iter().any(|rot| rot.file == file && bytes.contains(&rot.offset));
        std::mem::take(&mut self.fail_read).then(|| self.broken("read", file))
    }

    pub(super) fn sync(&mut self, file: FileName) -> Option<DiskDone> {
        std::mem::take(&mut self.fail_sync).then(|| self.broken("sync", file))
    }

    fn broken(&mut self, op: &'static str, file: FileName) -> DiskDone {
        self.wounded = true;
        DiskDone::Failed { op, file: Some(file), full: false, reason: "input/output error".to_owned() }
    }

    /// A file has new content from here on.
    pub(super) fn cut(&mut self, file: FileName, length: usize) {
        self.rot.retain(|rot| rot.file != file || rot.offset < length);
    }

    /// Failing writes and syncs that were ordered and not met die with the process.
    pub(super) fn on_death(&mut self) {
        self.fail_sync = false;
        self.fail_write = None;
        self.wounded = false;
        self.misread = false;
    }
}

impl Disk {
    /// The next sync to end fails; what it should have made durable is dropped, though it can still be read.
    pub fn fail_next_sync(&mut self) {
        self.trouble.fail_sync = true;
    }

    /// The next append or replacement fails, after so many of a thousand of its bytes.
    pub fn fail_next_write(&mut self, share: u64) {
        self.trouble.fail_write = Some(share.min(1_000));
    }

    /// The next read fails.
    pub fn fail_next_read(&mut self) {
        self.trouble.fail_read = true;
    }

    /// Only so many bytes more fit. On a crowded disk others take what is given up.
    pub fn fill(&mut self, room: u64, crowded: bool) {
        self.trouble.room = Some(room);
        self.trouble.crowded = crowded;
    }

    /// There is room again.
    pub fn free(&mut self) {
        self.trouble.room = None;
    }

    /// Flips one bit, until [`Disk::restore`], in the superblock, the checkpoint, or what the log proves to be durable:
    /// where it cannot be taken for a torn tail. Says where.
    pub fn rot(&mut self, random: &mut Random) -> Option<(FileName, u64)> {
        if self.is_harmed() {
            return None;
        }
        let whole = self.files.iter().filter(|(name, _)| !matches!(name, FileName::Segment(_)));
        let whole = whole.map(|(&name, file)| (name, file.synced)).filter(|(name, length)| {
            // Nobody reads the reserve, and a witness that cannot be read says nothing.
            *length > 0 && !matches!(name, FileName::Reserve | FileName::Witness)
        });
        let places: Vec<(FileName, usize)> = self.witnesses.proven().chain(whole).collect();
        let &(name, length) = places.get(random.index(places.len().max(1)))?;
        let (offset, mask) = (random.index(length), 1 << random.below(8));
        *self.files.get_mut(&name)?.bytes.get_mut(offset)? ^= mask;
        self.trouble.rot.push(Rot { file: name, offset, mask });
        Some((name, offset as u64))
    }

    /// The bits that were flipped are read as they were written again.
    pub fn restore(&mut self) {
        for rot in std::mem::take(&mut self.trouble.rot) {
            if let Some(byte) = self.files.get_mut(&rot.file).and_then(|file| file.bytes.get_mut(rot.offset))
            {
                *byte ^= rot.mask;
            }
        }
    }

    /// Whether a partition has a reason to stop: an error was answered to it, or its files are or were rotten.
    pub fn is_wounded(&self) -> bool {
        self.trouble.wounded || self.is_rotten() || self.is_harmed()
    }

    /// Whether its files are read wrongly, or were by the present process.
    pub(super) fn is_rotten(&self) -> bool {
        self.trouble.misread || !self.trouble.rot.is_empty()
    }

    /// Whether writes may be refused now.
    pub fn is_full(&self) -> bool {
        self.trouble.room.is_some()
    }

    /// Whether the partition keeps a reserve of so many bytes.
    pub fn has_reserve(&self, bytes: usize) -> bool {
        self.files.get(&FileName::Reserve).is_some_and(|file| file.bytes.len() == bytes)
    }

    /// Whether others take what is given up on the full disk.
    pub fn is_crowded(&self) -> bool {
        self.is_full() && self.trouble.crowded
    }

    /// Every order is taken back, and nothing is rotten; what a failed sync dropped stays so.
    pub fn calm(&mut self) {
        self.mend();
        self.restore();
        let Trouble { wounded, misread, .. } = self.trouble;
        self.trouble = Trouble { wounded, misread, ..Trouble::default() };
    }
}
