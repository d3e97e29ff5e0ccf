//! TCP options: the four that are spliced, and the rest as bytes.

use super::{PacketError, double_word, word};
use crate::seq::Seq;

/// Most blocks that a SACK option can hold.
pub const SACK_BLOCKS_MAX: usize = 4;

const KIND_END: u8 = 0;
const KIND_NOTHING: u8 = 1;
const KIND_SEGMENT_SIZE: u8 = 2;
const KIND_WINDOW_SCALE: u8 = 3;
const KIND_SACK_PERMITTED: u8 = 4;
const KIND_SACK: u8 = 5;
const KIND_TIMESTAMPS: u8 = 8;

/// The timestamp option of RFC 7323.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// The sender's clock.
    pub value: u32,
    /// The last clock value that the sender received.
    pub echo: u32,
}

/// The options of a TCP header.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Options {
    /// Largest segment that the sender receives, in bytes of payload.
    pub segment_size: Option<u16>,
    /// Shift count of the sender's window.
    pub window_scale: Option<u8>,
    /// Whether the sender understands SACK.
    pub sack_permitted: bool,
    /// Blocks that the sender received beyond its acknowledgment, as first byte and byte after the last.
    pub sacks: Vec<(Seq, Seq)>,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// Options of other kinds, as bytes.
    pub others: Vec<u8>,
}

/// One option: its kind, where it starts, and its bytes with kind and length.
pub struct Item<'a> {
    pub kind: u8,
    pub at: usize,
    pub bytes: &'a [u8],
}

/// Calls `each` with every option but padding.
pub fn walk<'a>(bytes: &'a [u8], mut each: impl FnMut(Item<'a>)) -> Result<(), PacketError> {
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            KIND_END => break,
            KIND_NOTHING => at += 1,
            kind => {
                let length = bytes.get(at + 1).copied().map_or(0, usize::from);
                if length < 2 || at + length > bytes.len() {
                    return Err(PacketError::Option);
                }
                each(Item { kind, at, bytes: &bytes[at..at + length] });
                at += length;
            }
        }
    }
    Ok(())
}

pub fn is_timestamps(item: &Item<'_>) -> bool {
    item.kind == KIND_TIMESTAMPS && item.bytes.len() == 10
}

pub fn is_sack(item: &Item<'_>) -> bool {
    item.kind == KIND_SACK && (item.bytes.len() - 2) % 8 == 0
}

impl Options {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, PacketError> {
        let mut options = Self::default();
        walk(bytes, |item| options.take(&item))?;
        Ok(options)
    }

    fn take(&mut self, item: &Item<'_>) {
        let body = &item.bytes[2..];
        match item.kind {
            KIND_SEGMENT_SIZE if body.len() == 2 => self.segment_size = Some(word(body, 0)),
            KIND_WINDOW_SCALE if body.len() == 1 => self.window_scale = Some(body[0]),
            KIND_SACK_PERMITTED if body.is_empty() => self.sack_permitted = true,
            _ if is_timestamps(item) => {
                self.timestamps =
                    Some(Timestamps { value: double_word(body, 0), echo: double_word(body, 4) });
            }
            _ if is_sack(item) => {
                let block = |at: &[u8]| (Seq(double_word(at, 0)), Seq(double_word(at, 4)));
                self.sacks = body.chunks_exact(8).map(block).collect();
            }
            _ => self.others.extend_from_slice(item.bytes),
        }
    }

    /// Appends the options, padded to a multiple of four bytes.
    pub(super) fn build(&self, out: &mut Vec<u8>) {
        if let Some(size) = self.segment_size {
            out.extend_from_slice(&[KIND_SEGMENT_SIZE, 4]);
            out.extend_from_slice(&size.to_be_bytes());
        }
        if self.sack_permitted {
            out.extend_from_slice(&[KIND_SACK_PERMITTED, 2]);
        }
        if let Some(stamps) = self.timestamps {
            out.extend_from_slice(&[KIND_TIMESTAMPS, 10]);
            out.extend_from_slice(&stamps.value.to_be_bytes());
            out.extend_from_slice(&stamps.echo.to_be_bytes());
        }
        if let Some(shift) = self.window_scale {
            out.extend_from_slice(&[KIND_WINDOW_SCALE, 3, shift]);
        }
        if !self.sacks.is_empty() {
            let length = u8::try_from(2 + 8 * self.sacks.len()).expect("at most four blocks");
            out.extend_from_slice(&[KIND_SACK, length]);
            for (first, after) in &self.sacks {
                out.extend_from_slice(&first.0.to_be_bytes());
                out.extend_from_slice(&after.0.to_be_bytes());
            }
        }
        out.extend_from_slice(&self.others);
        while out.len() % 4 != 0 {
            out.push(KIND_NOTHING);
        }
    }
}
