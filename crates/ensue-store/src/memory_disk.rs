//! A disk in memory for tests, with crashes: what was not synced may be lost by the sector, by the end or by the file.

use crate::disk::{DiskDone, DiskOp, FileName};
use crate::log::Log;
use crate::recovery::{Finish, Recovered, Recovery, RecoveryError, RecoveryOptions};
use crate::superblock::{FORMAT, Superblock};
use bytes::Bytes;
use ensue_types::{DatacenterId, DirectoryId, Incarnation, PartitionId};
use std::collections::BTreeMap;

pub(crate) const SECTOR: usize = 512;

#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryFile {
    pub(crate) data: Vec<u8>,
    pub(crate) synced: usize,
    /// Whether the name itself is durable.
    pub(crate) named: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryDisk {
    pub(crate) files: BTreeMap<FileName, MemoryFile>,
}

/// A small generator for tests (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

impl MemoryDisk {
    pub(crate) fn run(&mut self, op: DiskOp) -> DiskDone {
        match op {
            DiskOp::List => {
                let files = self.files.iter().map(|(name, file)| (*name, file.data.len() as u64)).collect();
                DiskDone::Listed { files }
            }
            DiskOp::Append { file, bytes } => {
                self.files.entry(file).or_default().data.extend_from_slice(&bytes);
                DiskDone::Appended { file }
            }
            DiskOp::Sync { file } => {
                let found = self.files.get_mut(&file).expect("sync of a file");
                found.synced = found.data.len();
                found.named = true;
                DiskDone::Synced { file }
            }
            DiskOp::Replace { file, bytes } => {
                let synced = bytes.len();
                self.files.insert(file, MemoryFile { data: bytes.to_vec(), synced, named: true });
                DiskDone::Replaced { file }
            }
            DiskOp::Rewrite { file } => {
                let found = self.files.get_mut(&file).expect("rewriting of a file");
                found.synced = found.data.len();
                DiskDone::Rewritten { file }
            }
            DiskOp::Overwrite { file, bytes } => {
                let found = self.files.get_mut(&file).expect("overwriting of a file");
                assert_eq!(found.data.len(), bytes.len(), "a file is overwritten as a whole");
                found.data = bytes.to_vec();
                // Only a failure is answered.
                DiskDone::Replaced { file }
            }
            DiskOp::Read { file, offset, length } => {
                let Some(found) = self.files.get(&file) else {
                    let reason = "no such file".into();
                    return DiskDone::Failed { op: "read", file: Some(file), full: false, reason };
                };
                let start = (offset as usize).min(found.data.len());
                let end = (start + length as usize).min(found.data.len());
                DiskDone::Read { file, offset, bytes: Bytes::copy_from_slice(&found.data[start..end]) }
            }
            DiskOp::Truncate { file, length } => {
                let found = self.files.get_mut(&file).expect("truncate of a file");
                found.data.truncate(length as usize);
                found.synced = found.synced.min(found.data.len());
                DiskDone::Truncated { file }
            }
            DiskOp::Delete { file } => {
                self.files.remove(&file);
                DiskDone::Deleted { file }
            }
        }
    }

    /// The power fails.
    pub(crate) fn crash(&mut self, random: &mut Random) {
        self.files.retain(|_, file| file.named || random.below(2) == 0);
        for file in self.files.values_mut() {
            let unsynced = file.data.len() - file.synced;
            file.data.truncate(file.synced + random.below(unsynced + 1));
            let lost = random.below(4);
            for sector in file.synced / SECTOR..file.data.len().div_ceil(SECTOR) {
                if random.below(8) < lost {
                    let start = (sector * SECTOR).max(file.synced);
                    let end = ((sector + 1) * SECTOR).min(file.data.len());
                    file.data[start..end].fill(0);
                }
            }
            file.synced = file.data.len();
            file.named = true;
        }
    }

    pub(crate) fn append_all(&mut self, log: &mut Log) {
        while let Some(DiskOp::Append { file, bytes }) = log.take_append() {
            self.run(DiskOp::Append { file, bytes });
            log.on_appended(file);
        }
    }

    pub(crate) fn sync_all(&mut self, log: &mut Log) {
        while let Some(DiskOp::Sync { file }) = log.take_sync() {
            self.run(DiskOp::Sync { file });
            log.on_synced(file);
        }
    }

    pub(crate) fn recover(
        &mut self,
        options: &RecoveryOptions,
    ) -> Result<(Vec<Recovered>, Finish), RecoveryError> {
        let mut recovery = Recovery::new(options.clone());
        let mut items = Vec::new();
        while let Some(op) = recovery.next_op() {
            let done = self.run(op);
            recovery.on_done(done)?;
            while let Some(item) = recovery.next_item() {
                if let Recovered::Finished(finish) = item {
                    return Ok((items, *finish));
                }
                items.push(item);
            }
        }
        panic!("recovery stopped without an end");
    }
}

pub(crate) fn options(segment_bytes: u64) -> RecoveryOptions {
    let expected = Superblock {
        format: FORMAT,
        cluster: 0x1234_5678_9abc_def0,
        datacenter: DatacenterId(1),
        partition: PartitionId(7),
        partitions: 16,
        incarnation: Incarnation(1),
        boot_id: [3; 16],
        clean: false,
        fsync_always: false,
        witnessed: false,
        synced: crate::log::Lsn(0),
        checkpoint: 0,
        without: 0,
        directory: DirectoryId(7),
        not_admitted: false,
        filling: false,
    };
    RecoveryOptions { log: crate::log::LogOptions { segment_bytes }, expected }
}
