//! Which slots hold a row: so that a walk passes over free ones, and a row can be drawn with the same chance as any
//! other, however many slots are free.

/// Slots that one block counts.
const BLOCK: usize = 4_096;
const WORD: usize = 64;

/// One bit a slot, and how many are set in each block.
#[derive(Clone, Debug, Default)]
pub(super) struct Filled {
    words: Vec<u64>,
    blocks: Vec<u16>,
    count: usize,
}

impl Filled {
    /// A slot that was free holds a row.
    pub(super) fn insert(&mut self, slot: usize) {
        let (word, bit) = (slot / WORD, 1 << (slot % WORD));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
            self.blocks.resize(slot / BLOCK + 1, 0);
        }
        assert_eq!(self.words[word] & bit, 0, "a slot is filled twice");
        self.words[word] |= bit;
        self.blocks[slot / BLOCK] += 1;
        self.count += 1;
    }

    /// A slot that held a row is free.
    pub(super) fn remove(&mut self, slot: usize) {
        let (word, bit) = (slot / WORD, 1 << (slot % WORD));
        assert_ne!(self.words[word] & bit, 0, "a slot is freed twice");
        self.words[word] &= !bit;
        self.blocks[slot / BLOCK] -= 1;
        self.count -= 1;
    }

    pub(super) fn contains(&self, slot: usize) -> bool {
        self.words.get(slot / WORD).is_some_and(|word| word & (1 << (slot % WORD)) != 0)
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The first filled slot from this one on.
    pub(super) fn next(&self, slot: usize) -> Option<usize> {
        let mut word = slot / WORD;
        let mut bits = *self.words.get(word)? & (u64::MAX << (slot % WORD));
        while bits == 0 {
            word += 1;
            while (word * WORD) % BLOCK == 0 && *self.blocks.get(word * WORD / BLOCK)? == 0 {
                word += BLOCK / WORD;
            }
            bits = *self.words.get(word)?;
        }
        Some(word * WORD + bits.trailing_zeros() as usize)
    }

    /// The filled slot that has so many filled ones before it.
    pub(super) fn nth(&self, mut before: usize) -> Option<usize> {
        let mut block = 0;
        while usize::from(*self.blocks.get(block)?) <= before {
            before -= usize::from(self.blocks[block]);
            block += 1;
        }
        let mut word = block * BLOCK / WORD;
        while self.words.get(word)?.count_ones() as usize <= before {
            before -= self.words[word].count_ones() as usize;
            word += 1;
        }
        let mut bits = self.words[word];
        for _ in 0..before {
            bits &= bits - 1;
        }
        Some(word * WORD + bits.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests;
