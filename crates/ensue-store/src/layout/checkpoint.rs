//! The frames of a checkpoint file: one header, blocks of items, one footer.
//!
//! ```text
//!  header, 40 bytes:  magic "EnsK", format u8, zero 3, number u64, log start u64, retain u64, zero u32, crc32
//!  block header, 20:  magic "EnsI", body bytes u32, items u32, crc32 of the body, crc32 of the 16 bytes before
//!  block body:        `items` times { length u32, kind u8, bytes }
//!  footer, 40 bytes:  magic "EnsF", zero u32, items u64, blocks u64, synced u64, crc32 of all block checksums, crc32
//! ```
//!
//! The last crc32 of header and footer covers all that stands before it; every checksum begins with the seal.

use super::batch::Seal;
use super::{LayoutError, u32_at, u64_at};
use crate::log::Lsn;

pub const CHECKPOINT_HEADER_BYTES: usize = 40;
pub const BLOCK_HEADER_BYTES: usize = 20;
pub const FOOTER_BYTES: usize = 40;
/// Format 1 knew no items of versions; otherwise they are the same.
const FORMAT: u8 = 2;

/// Which checkpoint it is and what of the log goes with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointPlace {
    pub number: u64,
    /// The checkpoint holds the effect of every record that ends here or before, and of none after.
    pub log_start: Lsn,
    /// Whole segments below this were no longer needed by anyone.
    pub retain: Lsn,
}

/// What the header of a block says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    pub body_bytes: u32,
    pub items: u32,
    pub body_checksum: u32,
}

/// What the footer says; it makes the file complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footer {
    pub items: u64,
    pub blocks: u64,
    /// The log was durable up to here, which is at or after the log start.
    pub synced: Lsn,
    pub blocks_checksum: u32,
}

impl CheckpointPlace {
    pub fn encode(&self, seal: Seal) -> [u8; CHECKPOINT_HEADER_BYTES] {
        let mut out = [0; CHECKPOINT_HEADER_BYTES];
        out[..4].copy_from_slice(b"EnsK");
        out[4] = FORMAT;
        out[8..16].copy_from_slice(&self.number.to_le_bytes());
        out[16..24].copy_from_slice(&self.log_start.0.to_le_bytes());
        out[24..32].copy_from_slice(&self.retain.0.to_le_bytes());
        finish(&mut out, seal);
        out
    }

    pub fn decode(bytes: &[u8], seal: Seal) -> Result<CheckpointPlace, LayoutError> {
        check(bytes, seal, "checkpoint header", b"EnsK", CHECKPOINT_HEADER_BYTES)?;
        if !(1..=FORMAT).contains(&bytes[4]) {
            let format = u16::from(bytes[4]);
            return Err(LayoutError::UnknownFormat { what: "checkpoint", format, known: u16::from(FORMAT) });
        }
        let (log_start, retain) = (Lsn(u64_at(bytes, 16)), Lsn(u64_at(bytes, 24)));
        Ok(CheckpointPlace { number: u64_at(bytes, 8), log_start, retain })
    }
}

impl BlockHeader {
    pub fn encode(&self, seal: Seal) -> [u8; BLOCK_HEADER_BYTES] {
        let mut out = [0; BLOCK_HEADER_BYTES];
        out[..4].copy_from_slice(b"EnsI");
        out[4..8].copy_from_slice(&self.body_bytes.to_le_bytes());
        out[8..12].copy_from_slice(&self.items.to_le_bytes());
        out[12..16].copy_from_slice(&self.body_checksum.to_le_bytes());
        finish(&mut out, seal);
        out
    }

    pub fn decode(bytes: &[u8], seal: Seal) -> Result<BlockHeader, LayoutError> {
        check(bytes, seal, "block header", b"EnsI", BLOCK_HEADER_BYTES)?;
        let (body_bytes, items) = (u32_at(bytes, 4), u32_at(bytes, 8));
        Ok(BlockHeader { body_bytes, items, body_checksum: u32_at(bytes, 12) })
    }
}

impl Footer {
    pub fn encode(&self, seal: Seal) -> [u8; FOOTER_BYTES] {
        let mut out = [0; FOOTER_BYTES];
        out[..4].copy_from_slice(b"EnsF");
        out[8..16].copy_from_slice(&self.items.to_le_bytes());
        out[16..24].copy_from_slice(&self.blocks.to_le_bytes());
        out[24..32].copy_from_slice(&self.synced.0.to_le_bytes());
        out[32..36].copy_from_slice(&self.blocks_checksum.to_le_bytes());
        finish(&mut out, seal);
        out
    }

    pub fn decode(bytes: &[u8], seal: Seal) -> Result<Footer, LayoutError> {
        check(bytes, seal, "checkpoint footer", b"EnsF", FOOTER_BYTES)?;
        let (items, blocks) = (u64_at(bytes, 8), u64_at(bytes, 16));
        Ok(Footer { items, blocks, synced: Lsn(u64_at(bytes, 24)), blocks_checksum: u32_at(bytes, 32) })
    }
}

/// The checksum of all block checksums so far, and one more.
pub(crate) fn chain(so_far: u32, block_checksum: u32) -> u32 {
    Seal(so_far).checksum(&block_checksum.to_le_bytes())
}

fn finish(out: &mut [u8], seal: Seal) {
    let end = out.len() - 4;
    let checksum = seal.checksum(&out[..end]);
    out[end..].copy_from_slice(&checksum.to_le_bytes());
}

fn check(
    bytes: &[u8],
    seal: Seal,
    what: &'static str,
    magic: &[u8; 4],
    length: usize,
) -> Result<(), LayoutError> {
    if bytes.len() < length {
        return Err(LayoutError::TooShort { what, at: 0, needed: length as u64, left: bytes.len() });
    }
    if bytes[..4] != *magic || seal.checksum(&bytes[..length - 4]) != u32_at(bytes, length - 4) {
        return Err(LayoutError::Checksum { what });
    }
    Ok(())
}
