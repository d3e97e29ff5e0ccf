//! The files of one partition, in memory: every operation succeeds at once.

use bytes::Bytes;
use ensue_store::disk::{DiskDone, DiskOp, FileName};
use std::collections::BTreeMap;

/// Files by name.
#[derive(Clone, Debug, Default)]
pub struct Files(pub BTreeMap<FileName, Vec<u8>>);

impl Files {
    pub fn run(&mut self, op: DiskOp) -> DiskDone {
        match op {
            DiskOp::List => {
                let files = self.0.iter().map(|(&name, bytes)| (name, bytes.len() as u64)).collect();
                DiskDone::Listed { files }
            }
            DiskOp::Append { file, bytes } => {
                self.0.entry(file).or_default().extend_from_slice(&bytes);
                DiskDone::Appended { file }
            }
            DiskOp::Sync { file } => DiskDone::Synced { file },
            DiskOp::Replace { file, bytes } => {
                self.0.insert(file, bytes.to_vec());
                DiskDone::Replaced { file }
            }
            DiskOp::Rewrite { file } => DiskDone::Replaced { file },
            DiskOp::Overwrite { file, bytes } => {
                self.0.insert(file, bytes.to_vec());
                DiskDone::Replaced { file }
            }
            DiskOp::Read { file, offset, length } => {
                let bytes = self.0.get(&file).map_or(&[][..], Vec::as_slice);
                let start = bytes.len().min(usize::try_from(offset).unwrap_or(usize::MAX));
                let end = bytes.len().min(start + length as usize);
                DiskDone::Read { file, offset, bytes: Bytes::copy_from_slice(&bytes[start..end]) }
            }
            DiskOp::Truncate { file, length } => {
                self.0.entry(file).or_default().truncate(usize::try_from(length).unwrap_or(usize::MAX));
                DiskDone::Truncated { file }
            }
            DiskOp::Delete { file } => {
                self.0.remove(&file);
                DiskDone::Deleted { file }
            }
        }
    }
}
