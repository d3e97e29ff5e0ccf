//! The hash of everything that happened in a run: two runs of one seed must agree on it to the last event.
//!
//! Events are hashed by structure, not as text, which took more than half of a run. The hash is the same on every
//! machine with little-endian numbers: whatever the width of `usize`, a length and a variant's number count as 64 bits.

use std::fmt;
use std::hash::{Hash, Hasher};

/// The fractional part of the golden ratio, made odd: its bits look like chance.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash of words of 64 bits: each is mixed in, and the 128 bits of a product are folded into 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Audit {
    hash: u64,
    events: u64,
}

impl Default for Audit {
    fn default() -> Audit {
        Audit { hash: 0x2545_f491_4f6c_dd1d, events: 0 }
    }
}

impl Audit {
    /// One event: when, where, and what.
    pub fn event(&mut self, at: u64, place: u64, what: &impl Hash) {
        self.events += 1;
        self.write_u64(at);
        self.write_u64(place);
        what.hash(self);
    }

    pub fn hash(&self) -> u64 {
        self.hash
    }

    pub fn events(&self) -> u64 {
        self.events
    }
}

impl Hasher for Audit {
    fn finish(&self) -> u64 {
        self.hash
    }

    fn write_u64(&mut self, word: u64) {
        // Rotated, so that a word that meets its own value does not make all that came before forgotten.
        let product = u128::from(self.hash ^ word) * u128::from(SPREAD);
        self.hash = (product as u64 ^ (product >> 64) as u64).wrapping_add(self.hash.rotate_left(23));
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    // The defaults of all these would go through `write`, with the machine's own width and order of bytes.
    fn write_u8(&mut self, number: u8) {
        self.write_u64(number.into());
    }

    fn write_u16(&mut self, number: u16) {
        self.write_u64(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u128(&mut self, number: u128) {
        self.write_u64(number as u64);
        self.write_u64((number >> 64) as u64);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_i8(&mut self, number: i8) {
        self.write_u64(number as u64);
    }

    fn write_i16(&mut self, number: i16) {
        self.write_u64(number as u64);
    }

    fn write_i32(&mut self, number: i32) {
        self.write_u64(number as u64);
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number as u64);
    }

    fn write_i128(&mut self, number: i128) {
        self.write_u128(number as u128);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.hash)
    }
}

#[cfg(test)]
mod tests;
