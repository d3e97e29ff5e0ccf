//! What a directory holds after an entry of the replicated log: lengths of what is appended to, and what is replaced as
//! a whole.

use crate::codec::{Fields, Malformed, put_bytes, put_file};
use crate::operation::Operation;
use bytes::{BufMut, Bytes};
use ensue_store::disk::FileName;
use std::collections::BTreeMap;

/// A file that grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grown {
    pub length: u64,
    /// The checksum of all of it, unless it was cut.
    pub checksum: Option<u32>,
}

impl Grown {
    /// The file with more bytes at its end.
    pub fn grow(&mut self, bytes: &[u8]) {
        self.grow_by(crc32fast::hash(bytes), bytes.len() as u64);
    }

    /// The same, of which the checksum is known.
    pub fn grow_by(&mut self, checksum: u32, length: u64) {
        let before = if self.length == 0 { Some(0) } else { self.checksum };
        self.checksum = before.map(|before| {
            let mut all = crc32fast::Hasher::new_with_initial_len(before, self.length);
            all.combine(&crc32fast::Hasher::new_with_initial_len(checksum, length));
            all.finalize()
        });
        self.length += length;
    }
}

/// The directory after an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    pub grown: BTreeMap<FileName, Grown>,
    /// Small files that are replaced as a whole.
    pub small: BTreeMap<FileName, Bytes>,
    /// How often what was committed may have been lost.
    pub epoch: u64,
}

impl Contents {
    /// The directory after one more entry.
    pub fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Append { file, bytes, .. } => {
                self.grown.entry(*file).or_default().grow(bytes);
            }
            Operation::Sync { .. } => {}
            Operation::Replace { file, bytes } => {
                self.small.insert(*file, bytes.clone());
            }
            Operation::Truncate { file, length } => {
                self.grown.insert(*file, Grown { length: *length, checksum: None });
            }
            Operation::Delete { file } => {
                self.grown.remove(file);
                self.small.remove(file);
            }
            Operation::Epoch(epoch) => self.epoch = self.epoch.max(*epoch),
        }
    }

    /// The directory after one more entry that is written: one that is not committed takes nothing away yet.
    pub fn write(&mut self, operation: &Operation, is_committed: bool) {
        if is_committed || matches!(operation, Operation::Append { .. }) {
            self.apply(operation);
        }
    }

    pub fn length(&self, file: FileName) -> u64 {
        self.grown.get(&file).map_or(0, |grown| grown.length)
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.put_u64_le(self.epoch);
        out.put_u32_le(self.grown.len() as u32);
        for (file, grown) in &self.grown {
            put_file(out, *file);
            out.put_u64_le(grown.length);
            out.put_u8(u8::from(grown.checksum.is_some()));
            out.put_u32_le(grown.checksum.unwrap_or(0));
        }
        out.put_u32_le(self.small.len() as u32);
        for (file, bytes) in &self.small {
            put_file(out, *file);
            put_bytes(out, bytes);
        }
    }

    pub(crate) fn take(fields: &mut Fields) -> Result<Contents, Malformed> {
        let epoch = fields.u64()?;
        let grown = fields.many(22, |fields| {
            let (file, length) = (fields.file()?, fields.u64()?);
            let (is_known, checksum) = (fields.bool()?, fields.u32()?);
            Ok((file, Grown { length, checksum: is_known.then_some(checksum) }))
        })?;
        let small = fields.many(13, |fields| Ok((fields.file()?, fields.bytes()?)))?;
        let (grown, small) = (grown.into_iter().collect(), small.into_iter().collect());
        Ok(Contents { grown, small, epoch })
    }
}
