//! The frame around what one append writes to the log: a header of 40 bytes, then the records.
//!
//! ```text
//!          0        1        2        3        4        5        6        7
//!     +--------+--------+--------+--------+--------+--------+--------+--------+
//!   0 | magic "EnsB"                      | format |  zero  | incarnation     |
//!   8 | lsn: the log position of this header's first byte                     |
//!  16 | synced: the log was known durable up to here when this was written    |
//!  24 | body bytes                        | records                           |
//!  32 | crc32 of the body                 | crc32 of the 36 bytes before      |
//!     +-----------------------------------+-----------------------------------+
//!  40 | body: `records` times { length u32, record of that length }           |
//!     +-----------------------------------------------------------------------+
//! ```
//!
//! Both checksums begin with the log's seal (`Seal`), so that neither a stray file of another partition nor a value
//! that a client made to look like a header can pass for a batch of this log.

use super::{LayoutError, u16_at, u32_at, u64_at};
use crate::log::Lsn;
use ensue_types::Incarnation;

/// The first bytes of every batch, which a search for later batches looks for.
pub const BATCH_MAGIC: [u8; 4] = *b"EnsB";
pub const BATCH_HEADER_BYTES: usize = 40;
/// The only format of a batch so far.
const FORMAT: u8 = 1;

/// The start value of all checksums of one partition's directory: a hash of the directory's identity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seal(pub u32);

impl Seal {
    /// The checksum of bytes under this seal.
    pub fn checksum(self, bytes: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new_with_initial(self.0);
        hasher.update(bytes);
        hasher.finalize()
    }
}

/// What the header of a batch says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    pub incarnation: Incarnation,
    pub lsn: Lsn,
    pub synced: Lsn,
    pub body_bytes: u32,
    pub records: u32,
    pub body_checksum: u32,
}

impl BatchHeader {
    /// The log position after the batch.
    pub fn end(&self) -> Lsn {
        Lsn(self.lsn.0 + BATCH_HEADER_BYTES as u64 + u64::from(self.body_bytes))
    }

    pub fn encode(&self, seal: Seal) -> [u8; BATCH_HEADER_BYTES] {
        let mut out = [0; BATCH_HEADER_BYTES];
        out[..4].copy_from_slice(&BATCH_MAGIC);
        out[4] = FORMAT;
        out[6..8].copy_from_slice(&self.incarnation.0.to_le_bytes());
        out[8..16].copy_from_slice(&self.lsn.0.to_le_bytes());
        out[16..24].copy_from_slice(&self.synced.0.to_le_bytes());
        out[24..28].copy_from_slice(&self.body_bytes.to_le_bytes());
        out[28..32].copy_from_slice(&self.records.to_le_bytes());
        out[32..36].copy_from_slice(&self.body_checksum.to_le_bytes());
        let checksum = seal.checksum(&out[..36]);
        out[36..].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Reads the header at `lsn`; a whole header of another place is refused too.
    pub fn decode(bytes: &[u8], seal: Seal, lsn: Lsn) -> Result<BatchHeader, LayoutError> {
        let what = "batch header";
        if bytes.len() < BATCH_HEADER_BYTES {
            let needed = BATCH_HEADER_BYTES as u64;
            return Err(LayoutError::TooShort { what, at: 0, needed, left: bytes.len() });
        }
        let unknown = |what, at, value| Err(LayoutError::Unknown { what, at, value });
        if bytes[..4] != BATCH_MAGIC {
            return unknown("batch magic", 0, u64::from(u32_at(bytes, 0)));
        }
        if seal.checksum(&bytes[..36]) != u32_at(bytes, 36) {
            return Err(LayoutError::Checksum { what });
        }
        if bytes[4] != FORMAT || bytes[5] != 0 {
            let format = u16_at(bytes, 4);
            return Err(LayoutError::UnknownFormat { what: "batch", format, known: u16::from(FORMAT) });
        }
        let header = BatchHeader {
            incarnation: Incarnation(u16_at(bytes, 6)),
            lsn: Lsn(u64_at(bytes, 8)),
            synced: Lsn(u64_at(bytes, 16)),
            body_bytes: u32_at(bytes, 24),
            records: u32_at(bytes, 28),
            body_checksum: u32_at(bytes, 32),
        };
        if header.lsn != lsn {
            return unknown("log position of the batch", 8, header.lsn.0);
        }
        if header.synced > header.lsn {
            return unknown("synced position of the batch", 16, header.synced.0);
        }
        Ok(header)
    }
}
