//! The files of one node: what the operating system holds, and what a power failure leaves of it.

use crate::sim::random::Random;
use bytes::Bytes;
use ensue_store::disk::{DiskDone, DiskOp, FileName};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct File {
    bytes: Vec<u8>,
    /// So much from the start survives a power failure.
    synced: usize,
    /// The name does.
    named: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    files: BTreeMap<FileName, File>,
    /// Lengths that syncs under way make durable.
    syncing: Vec<(FileName, usize)>,
    /// So many bytes can be written until it is full.
    room: Option<usize>,
    /// Something failed: nothing is carried out before the next start.
    is_fenced: bool,
    /// The system gives an error when it is read.
    unreadable: Option<FileName>,
    /// When everything before is carried out, and when the syncs under way end.
    pub(crate) ready_at: u64,
    pub(crate) syncs_end_at: u64,
}

impl Disk {
    /// Whether a replica has a directory here.
    pub(crate) fn has_journal(&self) -> bool {
        self.files.keys().any(|file| matches!(file, FileName::Journal(_)))
    }

    /// When an operation is carried out, and when a sync that begins then is over.
    pub(crate) fn plan(&mut self, now: u64, op: &DiskOp, random: &mut Random) -> (u64, u64) {
        let mut run_at = self.ready_at.max(now + random.between(1, 60));
        match op {
            DiskOp::Sync { .. } => {
                self.syncs_end_at = self.syncs_end_at.max(run_at + random.between(100, 3_000));
            }
            DiskOp::Append { .. } | DiskOp::Read { .. } | DiskOp::List | DiskOp::Overwrite { .. } => {}
            _ => run_at = run_at.max(self.syncs_end_at) + random.between(50, 1_500),
        }
        self.ready_at = run_at;
        (run_at, self.syncs_end_at)
    }

    /// Carries an operation out; a sync only begins.
    pub(crate) fn run(&mut self, op: DiskOp) -> Option<DiskDone> {
        self.is_fenced &= op != DiskOp::List;
        if self.is_fenced {
            return Some(failed("operation", None, false));
        }
        Some(match op {
            DiskOp::List => DiskDone::Listed {
                files: self.files.iter().map(|(name, file)| (*name, file.bytes.len() as u64)).collect(),
            },
            DiskOp::Append { file, bytes } if self.room.is_some_and(|room| room < bytes.len()) => {
                let written = bytes.slice(..self.room.replace(0).unwrap_or(0));
                self.files.entry(file).or_default().bytes.extend_from_slice(&written);
                self.is_fenced = true;
                failed("append", Some(file), true)
            }
            DiskOp::Append { file, bytes } => {
                self.room = self.room.map(|room| room - bytes.len());
                self.files.entry(file).or_default().bytes.extend_from_slice(&bytes);
                DiskDone::Appended { file }
            }
            DiskOp::Sync { file } => {
                let length = self.files.get(&file).map_or(0, |file| file.bytes.len());
                self.syncing.push((file, length));
                return None;
            }
            DiskOp::Replace { file, bytes } => {
                let synced = bytes.len();
                self.files.insert(file, File { bytes: bytes.to_vec(), synced, named: true });
                DiskDone::Replaced { file }
            }
            DiskOp::Rewrite { file } => DiskDone::Rewritten { file },
            DiskOp::Overwrite { .. } => return None,
            DiskOp::Read { file, .. } if self.unreadable == Some(file) => failed("read", Some(file), false),
            DiskOp::Read { file, offset, length } => {
                let bytes = self.files.get(&file).map_or(&[][..], |file| &file.bytes);
                let start = bytes.len().min(offset as usize);
                let end = bytes.len().min(start + length as usize);
                DiskDone::Read { file, offset, bytes: Bytes::copy_from_slice(&bytes[start..end]) }
            }
            DiskOp::Truncate { file, length } => {
                let found = self.files.entry(file).or_default();
                found.bytes.truncate(length as usize);
                (found.synced, found.named) = (found.bytes.len(), true);
                DiskDone::Truncated { file }
            }
            DiskOp::Delete { file } => {
                self.files.remove(&file);
                DiskDone::Deleted { file }
            }
        })
    }

    /// The oldest sync of a file is over.
    pub(crate) fn synced(&mut self, file: FileName) -> DiskDone {
        if let Some(at) = self.syncing.iter().position(|(syncing, _)| *syncing == file) {
            let (_, length) = self.syncing.remove(at);
            if let Some(file) = self.files.get_mut(&file) {
                (file.synced, file.named) = (file.synced.max(length.min(file.bytes.len())), true);
            }
        }
        DiskDone::Synced { file }
    }

    /// The process is gone.
    pub(crate) fn kill(&mut self, now: u64) {
        self.syncing.clear();
        (self.ready_at, self.syncs_end_at) = (now, now);
    }

    /// The machine is: of what was not synced some is left.
    pub(crate) fn lose_power(&mut self, now: u64, random: &mut Random) {
        self.kill(now);
        for file in self.files.values_mut() {
            let loose = file.bytes.len() - file.synced;
            let left = random.between(0, loose as u64) as usize;
            file.bytes.truncate(file.synced + left);
            if left > 8 && random.permille(300) {
                // A sector that was not written between ones that were.
                let at = file.synced + random.between(0, left as u64 - 8) as usize;
                file.bytes[at..at + 8].fill(0);
            }
        }
        self.files.retain(|_, file| file.named || random.permille(500));
        self.files.values_mut().for_each(|file| (file.synced, file.named) = (file.bytes.len(), true));
    }

    /// A bit of a file rots.
    #[cfg(test)]
    pub(crate) fn rot(&mut self, name: FileName, at: usize) {
        let byte = self.files.get_mut(&name).and_then(|file| file.bytes.get_mut(at));
        *byte.expect("a byte to rot") ^= 1;
    }

    /// A bit rots in the middle of the newest journal.
    #[cfg(test)]
    pub(crate) fn rot_journal(&mut self) {
        let mut journals = self.files.iter().filter(|(name, _)| matches!(name, FileName::Journal(_)));
        let (name, at) =
            journals.next_back().map(|(name, file)| (*name, file.bytes.len() / 2)).expect("a journal");
        self.rot(name, at);
    }

    /// There is room for so many bytes, or for all.
    pub(crate) fn make_room(&mut self, room: Option<usize>) {
        self.room = room;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.room.is_some()
    }

    /// A file cannot be read any more.
    #[cfg(test)]
    pub(crate) fn spoil(&mut self, name: FileName) {
        self.unreadable = Some(name);
    }

    /// The directory is lost, and what was bad is replaced.
    pub(crate) fn empty(&mut self) {
        self.files.clear();
        self.unreadable = None;
    }

    /// The files of the partition, as they are read.
    pub(crate) fn contents(&self) -> BTreeMap<FileName, Vec<u8>> {
        let own = self.files.iter().filter(|(name, _)| !matches!(name, FileName::Journal(_)));
        own.map(|(name, file)| (*name, file.bytes.clone())).collect()
    }
}

fn failed(op: &'static str, file: Option<FileName>, full: bool) -> DiskDone {
    DiskDone::Failed { op, file, full, reason: "it is bad".to_owned() }
}
