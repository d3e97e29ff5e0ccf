//! Writes one checkpoint. What an item is, its caller knows.
//!
//! The order is: all blocks, the footer, a sync, then the superblock that names this checkpoint, then the older one
//! is deleted. Only the superblock makes it count, so a crash anywhere leaves one whole checkpoint that does.

use crate::disk::{DiskDone, DiskOp, FileName};
use crate::layout::batch::Seal;
use crate::layout::checkpoint::{BLOCK_HEADER_BYTES, BlockHeader, CheckpointPlace, Footer, chain};
use crate::log::{Lsn, RECORD_BYTES_MAX};
use crate::superblock::Superblock;
use bytes::Bytes;
use std::collections::VecDeque;

/// Where the items of a checkpoint go, one after the other.
pub trait Items {
    /// Takes an item of a kind, and its bytes.
    fn item(&mut self, kind: u8, bytes: &[u8]);
}

/// A block is closed when it has grown to this.
pub const BLOCK_BYTES: usize = 256 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Writing,
    Syncing,
    /// The superblock is being replaced.
    Naming,
    Durable,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct CheckpointWriter {
    place: CheckpointPlace,
    seal: Seal,
    state: State,
    /// Room for the header, then items; empty if there are none.
    block: Vec<u8>,
    block_items: u32,
    footer: Footer,
    ops: VecDeque<DiskOp>,
    queued_bytes: usize,
}

impl CheckpointWriter {
    /// Begins a checkpoint of the state that the log has up to `place.log_start`, which is the end of a record. Its
    /// number is the superblock's plus one.
    pub fn begin(superblock: &Superblock, log_start: Lsn, retain: Lsn) -> CheckpointWriter {
        let number = superblock.checkpoint + 1;
        let place = CheckpointPlace { number, log_start, retain: retain.min(log_start) };
        let seal = superblock.seal();
        let file = FileName::Checkpoint(number);
        // A file of this number can only be the rest of an attempt that failed.
        let mut ops = VecDeque::from([DiskOp::Delete { file }]);
        ops.push_back(DiskOp::Append { file, bytes: Bytes::copy_from_slice(&place.encode(seal)) });
        CheckpointWriter {
            place,
            seal,
            state: State::Writing,
            block: Vec::new(),
            block_items: 0,
            footer: Footer::default(),
            ops,
            queued_bytes: 0,
        }
    }

    pub fn place(&self) -> CheckpointPlace {
        self.place
    }

    fn close_block(&mut self) {
        if self.block.is_empty() {
            return;
        }
        let mut block = std::mem::take(&mut self.block);
        let items = std::mem::take(&mut self.block_items);
        let body_checksum = self.seal.checksum(&block[BLOCK_HEADER_BYTES..]);
        let body_bytes = u32::try_from(block.len() - BLOCK_HEADER_BYTES).expect("items are bounded");
        let header = BlockHeader { body_bytes, items, body_checksum };
        block[..BLOCK_HEADER_BYTES].copy_from_slice(&header.encode(self.seal));
        self.footer.items += u64::from(items);
        self.footer.blocks += 1;
        self.footer.blocks_checksum = chain(self.footer.blocks_checksum, body_checksum);
        self.push_append(Bytes::from(block));
    }

    fn push_append(&mut self, bytes: Bytes) {
        self.queued_bytes += bytes.len();
        self.ops.push_back(DiskOp::Append { file: FileName::Checkpoint(self.place.number), bytes });
    }

    /// Ends the checkpoint. `synced` is how far the log is durable: it must have reached whatever the items hold,
    /// or a crash would leave a state that is newer than the log.
    pub fn finish(&mut self, synced: Lsn) {
        assert!(self.state == State::Writing, "a checkpoint ends once");
        assert!(synced >= self.place.log_start, "the log must be durable up to the checkpoint's log start");
        self.close_block();
        self.footer.synced = synced;
        let footer = Bytes::copy_from_slice(&self.footer.encode(self.seal));
        self.push_append(footer);
        self.ops.push_back(DiskOp::Sync { file: FileName::Checkpoint(self.place.number) });
        self.state = State::Syncing;
    }

    /// The next operation to carry out.
    pub fn take_op(&mut self) -> Option<DiskOp> {
        let op = self.ops.pop_front()?;
        if let DiskOp::Append { bytes, .. } = &op {
            self.queued_bytes = self.queued_bytes.saturating_sub(bytes.len());
        }
        Some(op)
    }

    /// Bytes that wait in `take_op`: the caller makes no more items while this is large.
    pub fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    /// Takes an answer for the checkpoint's file, or for the superblock. When the file is durable, the superblock is
    /// made to name it and its replacement is queued; when that is durable too, the answer is true, once, and the
    /// deletion of the older checkpoint is queued. A later `Replace` of the same superblock only repeats the name.
    pub fn on_done(&mut self, done: &DiskDone, superblock: &mut Superblock) -> bool {
        let file = FileName::Checkpoint(self.place.number);
        match (self.state, done) {
            (State::Syncing, DiskDone::Synced { file: synced }) if *synced == file => {
                superblock.checkpoint = self.place.number;
                superblock.synced = superblock.synced.max(self.footer.synced);
                self.ops.push_back(superblock.replace());
                self.state = State::Naming;
                false
            }
            (State::Naming, DiskDone::Replaced { file: FileName::Superblock }) => {
                if self.place.number > 1 {
                    self.ops.push_back(DiskOp::Delete { file: FileName::Checkpoint(self.place.number - 1) });
                }
                self.state = State::Durable;
                true
            }
            _ => false,
        }
    }

    /// There is no room for the checkpoint. The superblock names the one before again, if it was to name this one, and
    /// the operation returned takes away what was written; another attempt may begin when it is answered.
    pub fn abandon(self, superblock: &mut Superblock) -> DiskOp {
        assert!(self.state != State::Durable, "a checkpoint that counts is not given up");
        superblock.checkpoint = self.place.number - 1;
        DiskOp::Delete { file: FileName::Checkpoint(self.place.number) }
    }

    /// Whether the superblock is being made to name it, which cannot be taken back.
    pub fn is_being_named(&self) -> bool {
        self.state == State::Naming
    }

    /// Whether the checkpoint counts.
    pub fn is_durable(&self) -> bool {
        self.state == State::Durable
    }
}

impl Items for CheckpointWriter {
    fn item(&mut self, kind: u8, bytes: &[u8]) {
        assert!(self.state == State::Writing, "an item after the end of the checkpoint");
        assert!(bytes.len() <= RECORD_BYTES_MAX, "an item of {} bytes", bytes.len());
        if self.block.is_empty() {
            self.block.reserve(BLOCK_BYTES + bytes.len().min(BLOCK_BYTES));
            self.block.resize(BLOCK_HEADER_BYTES, 0);
        }
        self.block.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.block.push(kind);
        self.block.extend_from_slice(bytes);
        self.block_items += 1;
        if self.block.len() >= BLOCK_BYTES {
            self.close_block();
        }
    }
}

#[cfg(test)]
mod tests;
