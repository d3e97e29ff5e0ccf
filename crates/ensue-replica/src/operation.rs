//! What a partition asks of its directory, as an entry of the replicated log: every change of a file, in order.

use crate::codec::{Fields, Malformed, put_bytes, put_file};
use bytes::{BufMut, Bytes};
use ensue_store::disk::{DiskDone, DiskOp, FileName};

/// One change of the directory that every replica carries out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    Append {
        file: FileName,
        bytes: Bytes,
        /// Of a long append this is not the last part: the partition is answered with that one.
        more: bool,
    },
    /// Before this entry is acknowledged, the file and all entries before are durable there.
    Sync {
        file: FileName,
    },
    Replace {
        file: FileName,
        bytes: Bytes,
    },
    Truncate {
        file: FileName,
        length: u64,
    },
    Delete {
        file: FileName,
    },
    /// What was committed may have been lost with the power of several machines: for the partition it is as if its
    /// machine had booted again.
    Epoch(u64),
}

impl Operation {
    /// The change that a request of the partition makes, if it makes one that is replicated.
    pub fn of(op: &DiskOp) -> Option<Operation> {
        match op {
            // Room for a full disk is each machine's own.
            DiskOp::Append { file: FileName::Reserve, .. } | DiskOp::Delete { file: FileName::Reserve } => {
                None
            }
            DiskOp::Append { file, bytes } => {
                Some(Operation::Append { file: *file, bytes: bytes.clone(), more: false })
            }
            DiskOp::Sync { file } => Some(Operation::Sync { file: *file }),
            DiskOp::Replace { file, bytes } => Some(Operation::Replace { file: *file, bytes: bytes.clone() }),
            DiskOp::Truncate { file, length } => Some(Operation::Truncate { file: *file, length: *length }),
            DiskOp::Delete { file } => Some(Operation::Delete { file: *file }),
            DiskOp::List | DiskOp::Read { .. } | DiskOp::Rewrite { .. } | DiskOp::Overwrite { .. } => None,
        }
    }

    /// What the partition is answered when the change is committed.
    pub fn done(&self) -> Option<DiskDone> {
        match *self {
            Operation::Append { more: true, .. } | Operation::Epoch(_) => None,
            Operation::Append { file, .. } => Some(DiskDone::Appended { file }),
            Operation::Sync { file } => Some(DiskDone::Synced { file }),
            Operation::Replace { file, .. } => Some(DiskDone::Replaced { file }),
            Operation::Truncate { file, .. } => Some(DiskDone::Truncated { file }),
            Operation::Delete { file } => Some(DiskDone::Deleted { file }),
        }
    }

    /// The file whose bytes this may take away: it is carried out when it is committed, and nothing is appended to the
    /// file before.
    pub fn takes_away(&self) -> Option<FileName> {
        match *self {
            Operation::Replace { file, .. }
            | Operation::Truncate { file, .. }
            | Operation::Delete { file } => Some(file),
            _ => None,
        }
    }

    /// The file that it names.
    pub fn file(&self) -> Option<FileName> {
        match *self {
            Operation::Append { file, .. }
            | Operation::Sync { file }
            | Operation::Replace { file, .. }
            | Operation::Truncate { file, .. }
            | Operation::Delete { file } => Some(file),
            Operation::Epoch(_) => None,
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Operation::Append { file, bytes, more } => {
                out.reserve_exact(15 + bytes.len());
                out.put_u8(0);
                put_file(&mut out, *file);
                out.put_u8(u8::from(*more));
                put_bytes(&mut out, bytes);
            }
            Operation::Sync { file } => {
                out.put_u8(1);
                put_file(&mut out, *file);
            }
            Operation::Replace { file, bytes } => {
                out.put_u8(2);
                put_file(&mut out, *file);
                put_bytes(&mut out, bytes);
            }
            Operation::Truncate { file, length } => {
                out.put_u8(3);
                put_file(&mut out, *file);
                out.put_u64_le(*length);
            }
            Operation::Delete { file } => {
                out.put_u8(4);
                put_file(&mut out, *file);
            }
            Operation::Epoch(epoch) => {
                out.put_u8(5);
                out.put_u64_le(*epoch);
            }
        }
        out
    }

    pub fn decode(bytes: Bytes) -> Result<Operation, Malformed> {
        let mut fields = Fields(bytes);
        let operation = match fields.u8()? {
            0 => {
                let (file, more) = (fields.file()?, fields.bool()?);
                Operation::Append { file, bytes: fields.bytes()?, more }
            }
            1 => Operation::Sync { file: fields.file()? },
            2 => Operation::Replace { file: fields.file()?, bytes: fields.bytes()? },
            3 => Operation::Truncate { file: fields.file()?, length: fields.u64()? },
            4 => Operation::Delete { file: fields.file()? },
            5 => Operation::Epoch(fields.u64()?),
            _ => return Err(Malformed),
        };
        fields.end()?;
        Ok(operation)
    }
}
