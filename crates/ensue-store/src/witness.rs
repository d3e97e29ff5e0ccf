//! The witness: how far the log was known to be durable, in a small file beside it.
//!
//! After each sync of the log its content is written over in place, and never synced. A killed process leaves it, so
//! a start
//! knows what was durable even if the newest segments are gone or cut. A power failure may leave any earlier content,
//! which
//! says less, or a torn one, which says nothing: it never says more than was durable, and so is never mistaken for
//! damage. The
//! file itself is made durable before the superblock says that there is one.
//!
//! ```text
//!          0        1        2        3        4        5        6        7
//!     +--------+--------+--------+--------+--------+--------+--------+--------+
//!   0 | magic "EnsueWit"                                                      |
//!   8 | synced: the log was durable up to here                                |
//!  16 | crc32 of the 16 bytes before      | 0                                 |
//!     +-----------------------------------+-----------------------------------+
//!  The checksum starts from the directory's seal.
//! ```

use crate::disk::{DiskOp, FileName};
use crate::layout::batch::Seal;
use crate::layout::{u32_at, u64_at};
use crate::log::Lsn;
use bytes::Bytes;

pub const WITNESS_BYTES: usize = 24;
const MAGIC: &[u8; 8] = b"EnsueWit";

/// Makes the file.
pub fn make(seal: Seal, synced: Lsn) -> DiskOp {
    DiskOp::Replace { file: FileName::Witness, bytes: Bytes::copy_from_slice(&encode(seal, synced)) }
}

/// Writes over the file that was made.
pub fn testify(seal: Seal, synced: Lsn) -> DiskOp {
    DiskOp::Overwrite { file: FileName::Witness, bytes: Bytes::copy_from_slice(&encode(seal, synced)) }
}

fn encode(seal: Seal, synced: Lsn) -> [u8; WITNESS_BYTES] {
    let mut out = [0; WITNESS_BYTES];
    out[..8].copy_from_slice(MAGIC);
    out[8..16].copy_from_slice(&synced.0.to_le_bytes());
    let checksum = seal.checksum(&out[..16]);
    out[16..20].copy_from_slice(&checksum.to_le_bytes());
    out
}

/// What the file says; nothing if the power failed while it was written.
pub(crate) fn decode(seal: Seal, bytes: &[u8]) -> Option<Lsn> {
    let whole = bytes.len() == WITNESS_BYTES
        && bytes[..8] == *MAGIC
        && seal.checksum(&bytes[..16]) == u32_at(bytes, 16)
        && u32_at(bytes, 20) == 0;
    whole.then(|| Lsn(u64_at(bytes, 8)))
}

#[cfg(test)]
mod tests;
