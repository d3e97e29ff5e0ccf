//! Which commands of a batch are writes, one bit a command: after a timeout their answers differ.

/// Commands of one batch.
pub(super) const BATCH_COMMANDS_MAX: usize = 512;
const WORDS: usize = BATCH_COMMANDS_MAX / 64;

/// A bit a command of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WriteMarks([u64; WORDS]);

impl WriteMarks {
    pub(super) fn mark(&mut self, index: usize) {
        self.0[index / 64] |= 1 << (index % 64);
    }

    pub(super) fn is_marked(&self, index: usize) -> bool {
        self.0[index / 64] >> (index % 64) & 1 == 1
    }
}
