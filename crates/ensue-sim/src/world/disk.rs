//! The files of one partition on a simulated disk: what the operating system holds, and what a power failure leaves.
//!
//! Assumed of the medium: an answered `Sync`, `Replace`, `Truncate` or `Delete` survives everything; of appended
//! bytes that were not synced, any 512-byte sectors may survive a power failure, the others read as zeroes or
//! are beyond the end. A killed process loses nothing that was carried out. What can go wrong beside that is told from
//! outside: see [`Trouble`].

mod harm;
mod trouble;
mod witness;

use crate::random::Random;
use crate::world::options::DiskOptions;
use bytes::Bytes;
use ensue_store::disk::{DiskDone, DiskOp, FileName};
pub use harm::Harm;
use harm::Known;
use std::collections::BTreeMap;
use std::ops::Range;
use trouble::Trouble;
use witness::Witnesses;

const SECTOR: usize = 512;
/// Of so many times that a file is written over the machine writes it back once, without being asked to.
const WRITTEN_BACK_EVERY: u32 = 8;

#[derive(Clone, Debug, Default)]
struct File {
    bytes: Vec<u8>,
    /// This much from the start survives a power failure.
    synced: usize,
    /// The name itself does.
    named: bool,
    /// What a failed sync has dropped: it can be read until the power fails, and later syncs say nothing of it (trap
    /// 55).
    dropped: Vec<Range<usize>>,
    /// What is durable of a file that was written over in place since.
    beneath: Option<Vec<u8>>,
    /// So many times since the machine last wrote it back by itself.
    overwritten: u32,
}

/// When an operation is carried out, and for a sync when it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    pub run_at: u64,
    pub synced_at: u64,
}

/// The directory of one partition.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    files: BTreeMap<FileName, File>,
    /// Operations are carried out in order.
    ready_at: u64,
    /// The last sync ends then.
    sync_ends_at: u64,
    /// Lengths that running syncs will make durable.
    syncing: Vec<(FileName, usize)>,
    /// For each file a time at which nothing of what is not synced now had been written: when it was made, or when the
    /// last sync that has ended began. With the beginnings of the syncs under way.
    loose_since: BTreeMap<FileName, u64>,
    sync_begins: Vec<(FileName, u64)>,
    /// A replacement that is under way: a crash may find it done.
    replacing: Option<(FileName, Bytes)>,
    trouble: Trouble,
    witnesses: Witnesses,
    known: Known,
}

impl Disk {
    /// Whether a replica has written something here.
    pub fn has_journal(&self) -> bool {
        self.files.keys().any(|file| matches!(file, FileName::Journal(_)))
    }

    /// Plans an operation: appends pass running syncs, everything else waits for them.
    pub fn plan(&mut self, now: u64, op: &DiskOp, options: &DiskOptions, random: &mut Random) -> Times {
        let (short, long) = match op {
            // Made once, when a partition begins, and in no time: the worlds of old seeds stay as they were.
            DiskOp::Replace { file: FileName::Witness, .. } => (0, 0),
            _ => {
                let short = random.between(options.append_us.0, options.append_us.1);
                (short, random.between(options.sync_us.0, options.sync_us.1))
            }
        };
        let mut run_at = self.ready_at.max(now + short);
        match op {
            DiskOp::Append { .. } => {}
            DiskOp::Sync { .. } => self.sync_ends_at = self.sync_ends_at.max(run_at + long),
            DiskOp::Replace { .. }
            | DiskOp::Rewrite { .. }
            | DiskOp::Truncate { .. }
            | DiskOp::Delete { .. } => {
                run_at = run_at.max(self.sync_ends_at) + long;
            }
            DiskOp::Overwrite { .. } => unreachable!("it is carried out at once"),
            DiskOp::List | DiskOp::Read { .. } => run_at = run_at.max(self.sync_ends_at),
        }
        if let DiskOp::Append { file: FileName::Segment(_), .. } = op {
            self.witnesses.planned();
        }
        if let DiskOp::Replace { file, bytes } = op {
            self.replacing = Some((*file, bytes.clone()));
        }
        match op {
            DiskOp::Append { file, .. } => {
                self.loose_since.entry(*file).or_insert(now);
            }
            DiskOp::Sync { file } => self.sync_begins.push((*file, now)),
            _ => {}
        }
        self.ready_at = run_at;
        Times { run_at, synced_at: self.sync_ends_at }
    }

    /// When everything planned so far has been carried out.
    pub fn idle_at(&self) -> u64 {
        self.ready_at.max(self.sync_ends_at)
    }

    /// Carries an operation out. A sync only begins here and has no answer yet.
    pub fn run(&mut self, op: DiskOp) -> Option<DiskDone> {
        Some(match op {
            DiskOp::List => DiskDone::Listed {
                files: self.files.iter().map(|(&name, file)| (name, file.bytes.len() as u64)).collect(),
            },
            DiskOp::Append { file, bytes } => self.append(file, &bytes),
            DiskOp::Sync { file } => {
                let length = self.files.get(&file).map_or(0, |f| f.bytes.len());
                self.syncing.push((file, length));
                return None;
            }
            DiskOp::Replace { file, bytes } => self.replace(file, &bytes),
            DiskOp::Rewrite { file } => {
                let bytes = Bytes::from(self.files.get(&file).map_or(Vec::new(), |f| f.bytes.clone()));
                self.write_anew("rewrite", file, &bytes).unwrap_or(DiskDone::Rewritten { file })
            }
            DiskOp::Overwrite { file, bytes } => {
                self.overwrite(file, &bytes);
                return None;
            }
            DiskOp::Read { file, offset, length } => self.read(file, offset, length),
            DiskOp::Truncate { file, length } => {
                let entry = self.files.entry(file).or_default();
                self.trouble.freed(entry.bytes.len().saturating_sub(length as usize));
                self.trouble.cut(file, length as usize);
                self.witnesses.cut(file, length as usize);
                self.known.cut(file, length);
                entry.bytes.truncate(length as usize);
                entry.synced = entry.bytes.len();
                entry.named = true;
                for dropped in &mut entry.dropped {
                    *dropped = dropped.start.min(entry.synced)..dropped.end.min(entry.synced);
                }
                DiskDone::Truncated { file }
            }
            DiskOp::Delete { file } => {
                let gone = self.files.remove(&file).unwrap_or_default();
                self.trouble.freed(gone.bytes.len());
                self.trouble.cut(file, 0);
                self.witnesses.cut(file, 0);
                self.known.cut(file, 0);
                DiskDone::Deleted { file }
            }
        })
    }

    /// All files, as they are read.
    pub fn contents(&self) -> Vec<(FileName, Bytes)> {
        let contents = self.files.iter();
        contents.map(|(name, file)| (*name, Bytes::copy_from_slice(&file.bytes))).collect()
    }

    /// A file gets other bytes, durably, while no process uses the disk.
    pub fn write_over(&mut self, name: FileName, bytes: Vec<u8>) {
        let synced = bytes.len();
        self.files.insert(name, File { bytes, synced, named: true, ..File::default() });
    }

    fn append(&mut self, file: FileName, bytes: &Bytes) -> DiskDone {
        let write = self.trouble.write(bytes.len());
        if write.failure.is_some() {
            self.known.partial(file, self.files.get(&file).map_or(0, |file| file.bytes.len()));
        }
        // A file that nothing could be written to was not even made.
        if write.taken > 0 || write.failure.is_none() {
            self.files.entry(file).or_default().bytes.extend_from_slice(&bytes[..write.taken]);
        }
        if let FileName::Segment(_) = file {
            let end = self.files.get(&file).map_or(0, |file| file.bytes.len());
            self.witnesses.written(file, write.failure.is_none().then_some(end));
        }
        write.answer("append", file).unwrap_or(DiskDone::Appended { file })
    }

    fn replace(&mut self, file: FileName, bytes: &Bytes) -> DiskDone {
        self.replacing = None;
        let failed = self.write_anew("replace", file, bytes);
        if failed.is_none() {
            self.trouble.cut(file, 0);
        }
        failed.unwrap_or(DiskDone::Replaced { file })
    }

    /// Now and then the machine writes back what stands in memory.
    fn overwrite(&mut self, name: FileName, bytes: &Bytes) {
        let Some(file) = self.files.get_mut(&name) else { return };
        assert_eq!(file.bytes.len(), bytes.len(), "{name} is written over as a whole");
        let old = std::mem::replace(&mut file.bytes, bytes.to_vec());
        file.overwritten += 1;
        match file.overwritten % WRITTEN_BACK_EVERY {
            0 => file.beneath = None,
            _ => file.beneath = file.beneath.take().or(Some(old)),
        }
    }

    /// Writes aside and renames; the answer if that fails.
    fn write_anew(&mut self, op: &'static str, file: FileName, bytes: &Bytes) -> Option<DiskDone> {
        let write = self.trouble.write(bytes.len());
        let failed = write.answer(op, file);
        let gone = match failed {
            Some(_) => write.taken,
            None => self.files.get(&file).map_or(0, |file| file.bytes.len()),
        };
        self.trouble.freed(gone);
        if failed.is_none() {
            self.put(file, bytes);
        }
        failed
    }

    fn put(&mut self, file: FileName, bytes: &Bytes) {
        let (bytes, synced) = (bytes.to_vec(), bytes.len());
        self.files.insert(file, File { bytes, synced, named: true, ..File::default() });
    }

    fn read(&mut self, file: FileName, offset: u64, length: u32) -> DiskDone {
        let bytes = self.files.get(&file).map_or(&[][..], |f| f.bytes.as_slice());
        let start = bytes.len().min(offset as usize);
        let end = bytes.len().min(start + length as usize);
        if let Some(failed) = self.trouble.read(file, start..end) {
            return failed;
        }
        DiskDone::Read { file, offset, bytes: Bytes::copy_from_slice(&bytes[start..end]) }
    }

    /// The oldest running sync of this file is over.
    pub fn sync_done(&mut self, file: FileName) -> DiskDone {
        let is_missing = !self.files.contains_key(&file);
        let failed = self.trouble.sync(file).or_else(|| {
            let reason = "no such file".to_owned();
            is_missing.then_some(DiskDone::Failed { op: "sync", file: Some(file), full: false, reason })
        });
        if let Some(index) = self.syncing.iter().position(|(name, _)| *name == file) {
            let (_, length) = self.syncing.remove(index);
            if let Some(begin) = self.sync_begins.iter().position(|(name, _)| *name == file) {
                let (_, since) = self.sync_begins.remove(begin);
                if failed.is_none() {
                    self.loose_since.insert(file, since);
                }
            }
            if let Some(entry) = self.files.get_mut(&file) {
                let length = length.min(entry.bytes.len());
                if failed.is_some() && length > entry.synced {
                    entry.dropped.push(entry.synced..length);
                }
                entry.synced = entry.synced.max(length);
                entry.named = true;
                if failed.is_none() && matches!(file, FileName::Segment(_)) {
                    self.witnesses.synced(file, entry.synced);
                }
            }
        }
        failed.unwrap_or(DiskDone::Synced { file })
    }

    /// The process is gone; what was not carried out never will be.
    pub fn kill(&mut self, now: u64) {
        self.ready_at = now;
        self.sync_ends_at = now;
        self.syncing.clear();
        self.sync_begins.clear();
        self.replacing = None;
        self.trouble.on_death();
        self.witnesses.on_death();
    }

    /// Since when something may have been written that a power failure now could take; nothing if all is synced.
    pub fn loose_since(&self) -> Option<u64> {
        // What a failed sync dropped is read until the power fails, and counts as synced to whoever reads it.
        let is_loose =
            |file: &File| file.synced < file.bytes.len() || !file.named || !file.dropped.is_empty();
        let loose = self.files.iter().filter(|(_, file)| is_loose(file));
        loose.map(|(name, _)| self.loose_since.get(name).copied().unwrap_or(0)).min()
    }

    /// The power is gone, and with it any part of what was not synced, or, without chance, all of it. True if a tail
    /// was torn.
    pub fn lose_power(&mut self, now: u64, mut random: Option<&mut Random>) -> bool {
        let replacing = self.replacing.take();
        // What a power failure leaves of a log that was cut by hand nobody can tell from a torn end: the files are put
        // back before.
        self.mend();
        self.kill(now);
        self.witnesses.on_power_loss();
        self.known.on_power_loss();
        let mut kept = || random.as_mut().is_some_and(|random| random.chance(500));
        if let Some((file, bytes)) = replacing.filter(|_| kept()) {
            self.trouble.cut(file, 0);
            self.put(file, &bytes);
        }
        let mut torn = false;
        let mut gone = Vec::new();
        for (&name, file) in &mut self.files {
            if !file.named && random.as_mut().is_none_or(|random| random.chance(500)) {
                gone.push(name);
                continue;
            }
            for dropped in std::mem::take(&mut file.dropped) {
                let end = dropped.end.min(file.bytes.len());
                file.bytes[dropped.start.min(end)..end].fill(0);
            }
            if let Some(beneath) = file.beneath.take() {
                file.bytes = overwritten(beneath, &file.bytes, file.overwritten, random.is_none());
            }
            match &mut random {
                Some(random) => torn |= tear(file, random),
                None => file.bytes.truncate(file.synced),
            }
            file.synced = file.bytes.len();
            file.named = true;
        }
        for name in gone {
            self.files.remove(&name);
        }
        torn
    }

    /// Cuts the last bytes off a file, as a power failure in the middle of a write would, which tears the witness,
    /// too: for scripts.
    pub fn tear_last(&mut self, bytes: usize) {
        if let Some(witness) = self.files.get_mut(&FileName::Witness) {
            witness.bytes.fill(0);
            witness.beneath = None;
        }
        let newest = self.files.iter_mut().rev().find(|(name, _)| matches!(name, FileName::Segment(_)));
        if let Some((_, file)) = newest {
            let length = file.bytes.len().saturating_sub(bytes);
            file.bytes.truncate(length);
            file.synced = file.synced.min(length);
        }
    }

    /// Everything is gone. Whether there is room on the medium stays as it is.
    pub fn wipe(&mut self) {
        self.become_copy_of(Disk::default());
    }

    /// Takes the files of another directory in the place of its own, all of them durable.
    pub fn become_copy_of(&mut self, other: Disk) {
        for &name in self.files.keys() {
            self.trouble.cut(name, 0);
        }
        let Disk { files, witnesses, .. } = other.copy();
        let trouble = std::mem::take(&mut self.trouble);
        *self = Disk {
            files,
            witnesses,
            trouble,
            ready_at: self.ready_at,
            sync_ends_at: self.sync_ends_at,
            ..Disk::default()
        };
    }

    /// The files as they can be read now, and as they were before bits rotted or files were cut by hand; every byte of
    /// them will be durable.
    pub fn copy(&self) -> Disk {
        let mut whole = self.clone();
        whole.restore();
        whole.mend();
        for file in whole.files.values_mut() {
            *file = File {
                synced: file.bytes.len(),
                named: true,
                bytes: std::mem::take(&mut file.bytes),
                ..File::default()
            };
        }
        let mut witnesses = whole.witnesses;
        witnesses.on_death();
        witnesses.on_power_loss();
        Disk { files: whole.files, witnesses, ..Disk::default() }
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> usize {
        self.files.values().map(|file| file.bytes.len()).sum()
    }
}

/// What a power failure leaves of a file that was written over so many times: what was there before, what is there
/// now, some bytes
/// of each, or nothing that anybody wrote. Without chance it is what was there before.
fn overwritten(beneath: Vec<u8>, bytes: &[u8], times: u32, all_is_lost: bool) -> Vec<u8> {
    match times % 4 {
        _ if all_is_lost => beneath,
        0 => beneath,
        1 => bytes.to_vec(),
        2 => vec![0; bytes.len()],
        _ => {
            let new = times as usize % (bytes.len() + 1);
            bytes[..new].iter().chain(&beneath[new..]).copied().collect()
        }
    }
}

/// Decides what remains of the bytes that were not synced.
fn tear(file: &mut File, random: &mut Random) -> bool {
    let loose = file.bytes.len() - file.synced;
    if loose == 0 {
        return false;
    }
    let kept = file.synced + random.index(loose + 1);
    match random.below(4) {
        0 => file.bytes.truncate(file.synced),
        1 => {}
        2 => file.bytes.truncate(kept),
        _ => {
            file.bytes.truncate(kept);
            let mut start = file.synced;
            while start < kept {
                let end = kept.min((start / SECTOR + 1) * SECTOR);
                if random.chance(400) {
                    file.bytes[start..end].fill(0);
                }
                start = end;
            }
        }
    }
    file.bytes.len() > file.synced
}

#[cfg(test)]
mod tests;
