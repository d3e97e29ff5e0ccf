//! For tests: the files of one partition, in memory. Every operation succeeds at once, and what is missing is empty.

use crate::disk::{DiskDone, DiskOp, FileName};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Files by name.
pub type Files = BTreeMap<FileName, Vec<u8>>;

pub fn carry_out(files: &mut Files, op: DiskOp) -> DiskDone {
    match op {
        DiskOp::List => {
            let files = files.iter().map(|(&name, bytes)| (name, bytes.len() as u64)).collect();
            DiskDone::Listed { files }
        }
        DiskOp::Append { file, bytes } => {
            files.entry(file).or_default().extend_from_slice(&bytes);
            DiskDone::Appended { file }
        }
        DiskOp::Sync { file } => DiskDone::Synced { file },
        DiskOp::Replace { file, bytes } => {
            files.insert(file, bytes.to_vec());
            DiskDone::Replaced { file }
        }
        DiskOp::Rewrite { file } => DiskDone::Rewritten { file },
        DiskOp::Overwrite { file, bytes } => {
            files.insert(file, bytes.to_vec());
            DiskDone::Replaced { file }
        }
        DiskOp::Read { file, offset, length } => {
            let bytes = files.get(&file).map_or(&[][..], Vec::as_slice);
            let start = bytes.len().min(usize::try_from(offset).unwrap_or(usize::MAX));
            let end = bytes.len().min(start + length as usize);
            DiskDone::Read { file, offset, bytes: Bytes::copy_from_slice(&bytes[start..end]) }
        }
        DiskOp::Truncate { file, length } => {
            files.entry(file).or_default().truncate(usize::try_from(length).unwrap_or(usize::MAX));
            DiskDone::Truncated { file }
        }
        DiskOp::Delete { file } => {
            files.remove(&file);
            DiskDone::Deleted { file }
        }
    }
}
