//! Reads the checkpoint that the superblock names. It counts, so anything wrong with it is damage.

use super::{Recovered, RecoveryError, corrupt};
use crate::disk::FileName;
use crate::layout::batch::Seal;
use crate::layout::checkpoint::{
    BLOCK_HEADER_BYTES, BlockHeader, CHECKPOINT_HEADER_BYTES, CheckpointPlace, FOOTER_BYTES, Footer, chain,
};
use crate::layout::u32_at;
use crate::scan::Step;
use crate::window::Window;
use bytes::Bytes;
use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub(super) struct CheckpointScan {
    pub(super) window: Window,
    seal: Seal,
    place: Option<CheckpointPlace>,
    /// What the footer must say, from what was read.
    seen: Footer,
}

impl CheckpointScan {
    pub(super) fn new(window: Window, seal: Seal) -> CheckpointScan {
        CheckpointScan { window, seal, place: None, seen: Footer::default() }
    }

    fn corrupt(&self, reason: impl ToString) -> RecoveryError {
        corrupt(self.window.file(), self.window.offset(), reason.to_string())
    }

    /// The read that is needed for so many bytes to be held, if one is.
    fn missing(&self, bytes: u64) -> Result<Option<Step<(CheckpointPlace, Footer)>>, RecoveryError> {
        if bytes > self.window.left() {
            return Err(self.corrupt(format!("{bytes} bytes needed, {} are left", self.window.left())));
        }
        if self.window.held().len() as u64 >= bytes {
            return Ok(None);
        }
        Ok(self.window.read().map(Step::Read))
    }

    /// Goes on to the next read, or to the end of the file: place and footer.
    pub(super) fn step(
        &mut self,
        items: &mut VecDeque<Recovered>,
    ) -> Result<Step<(CheckpointPlace, Footer)>, RecoveryError> {
        loop {
            let Some(place) = self.place else {
                if let Some(read) = self.missing(CHECKPOINT_HEADER_BYTES as u64)? {
                    return Ok(read);
                }
                self.read_header(items)?;
                continue;
            };
            if let Some(read) = self.missing(BLOCK_HEADER_BYTES as u64)? {
                return Ok(read);
            }
            if self.window.held().starts_with(b"EnsF") {
                if let Some(read) = self.missing(FOOTER_BYTES as u64)? {
                    return Ok(read);
                }
                return self.read_footer(place).map(|footer| Step::Found((place, footer)));
            }
            let block =
                BlockHeader::decode(self.window.held(), self.seal).map_err(|error| self.corrupt(error))?;
            if let Some(read) = self.missing(BLOCK_HEADER_BYTES as u64 + u64::from(block.body_bytes))? {
                return Ok(read);
            }
            self.read_block(block, items)?;
        }
    }

    fn read_header(&mut self, items: &mut VecDeque<Recovered>) -> Result<(), RecoveryError> {
        let place =
            CheckpointPlace::decode(self.window.held(), self.seal).map_err(|error| self.corrupt(error))?;
        if FileName::Checkpoint(place.number) != self.window.file() {
            return Err(self.corrupt(format!("it says that it is checkpoint {}", place.number)));
        }
        self.window.skip(CHECKPOINT_HEADER_BYTES);
        self.place = Some(place);
        items.push_back(Recovered::Checkpoint(place));
        Ok(())
    }

    fn read_block(
        &mut self,
        block: BlockHeader,
        items: &mut VecDeque<Recovered>,
    ) -> Result<(), RecoveryError> {
        let end = BLOCK_HEADER_BYTES + block.body_bytes as usize;
        if self.seal.checksum(&self.window.held()[BLOCK_HEADER_BYTES..end]) != block.body_checksum {
            return Err(self.corrupt("checksum of the block's items does not match"));
        }
        self.seen.items += u64::from(block.items);
        self.seen.blocks += 1;
        self.seen.blocks_checksum = chain(self.seen.blocks_checksum, block.body_checksum);
        let parsed = parse_items(&self.window.held()[BLOCK_HEADER_BYTES..end], block.items);
        let Some(ranges) = parsed else {
            return Err(self.corrupt("the block is whole, but its items do not fill it"));
        };
        self.window.skip(BLOCK_HEADER_BYTES);
        let body: Bytes = self.window.take(block.body_bytes as usize);
        items.extend(ranges.into_iter().map(|(start, end)| Recovered::CheckpointItem {
            kind: body[start],
            bytes: body.slice(start + 1..end),
        }));
        Ok(())
    }

    fn read_footer(&mut self, place: CheckpointPlace) -> Result<Footer, RecoveryError> {
        let footer = Footer::decode(self.window.held(), self.seal).map_err(|error| self.corrupt(error))?;
        if self.window.left() != FOOTER_BYTES as u64 {
            return Err(self.corrupt("there is something after the footer"));
        }
        if footer != (Footer { synced: footer.synced, ..self.seen }) || footer.synced < place.log_start {
            return Err(self.corrupt("the footer does not match what stands before it"));
        }
        Ok(footer)
    }
}

/// Where each item's kind and bytes lie, if the items fill the body exactly.
fn parse_items(body: &[u8], items: u32) -> Option<Vec<(usize, usize)>> {
    let mut ranges = Vec::with_capacity((items as usize).min(body.len() / 5));
    let mut at = 0;
    while at < body.len() {
        if body.len() - at < 5 {
            return None;
        }
        let length = u32_at(body, at) as usize;
        if length > body.len() - at - 5 {
            return None;
        }
        ranges.push((at + 4, at + 5 + length));
        at += 5 + length;
    }
    (ranges.len() == items as usize).then_some(ranges)
}

#[cfg(test)]
mod tests;
