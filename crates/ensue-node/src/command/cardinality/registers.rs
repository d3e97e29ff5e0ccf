//! The registers of a HyperLogLog, and their two layouts in a string.
//!
//! ```text
//! "HYLL" | layout: 0 dense, 1 sparse | 3 zeros | 7 bytes | 128: the estimate is not cached | registers
//! dense:   6 bits a register, the first in the lowest bits of the first byte
//! sparse:  00xxxxxx            x + 1 registers are zero
//!          01xxxxxx yyyyyyyy   xy + 1 registers are zero
//!          1vvvvvxx            x + 1 registers are v + 1
//! ```
//!
//! A sparse one becomes dense when a register is above 32, or it would take more than 3,000 bytes, and stays so.

use bytes::Bytes;
use ensue_types::Reply;
use std::fmt::Write as _;

pub(super) const REGISTERS: usize = 1 << PLACE_BITS;
/// The highest value of a register: all of the bits are zero that are looked at, and the one that ends them.
pub(super) const RANK_MAX: u8 = 64 - PLACE_BITS as u8 + 1;
const PLACE_BITS: u32 = 14;
const HEADER_BYTES: usize = 16;
const DENSE_BYTES: usize = REGISTERS * 6 / 8;
/// Redis' `hll-sparse-max-bytes`.
const SPARSE_BYTES_MAX: usize = 3_000;
const SPARSE_VALUE_MAX: u8 = 32;
const MAGIC: &[u8] = b"HYLL";
const NOT_CACHED: [u8; 8] = [0, 0, 0, 0, 0, 0, 0, 0x80];

/// How registers stand in a string. A union with a dense one is dense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Encoding {
    Sparse,
    Dense,
}

impl Encoding {
    pub(super) fn word(self) -> &'static str {
        match self {
            Encoding::Sparse => "sparse",
            Encoding::Dense => "dense",
        }
    }
}

/// One value a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Registers(Vec<u8>);

impl Default for Registers {
    fn default() -> Registers {
        Registers(vec![0; REGISTERS])
    }
}

impl Registers {
    pub(super) fn values(&self) -> impl Iterator<Item = u8> + '_ {
        self.0.iter().copied()
    }

    /// Whether the element was not seen before, as far as the registers know.
    pub(super) fn add(&mut self, element: &[u8]) -> bool {
        let (place, rank) = seen(element);
        let rises = rank > self.0[place];
        if rises {
            self.0[place] = rank;
        }
        rises
    }

    /// Takes the higher of each two.
    pub(super) fn rise_to(&mut self, other: &Registers) {
        for (value, other) in self.0.iter_mut().zip(&other.0) {
            *value = (*value).max(*other);
        }
    }

    /// The registers in a string, or Redis' error.
    pub(super) fn read(text: &[u8]) -> Result<(Registers, Encoding), Reply> {
        let (header, body) = text.split_at_checked(HEADER_BYTES).ok_or(NO_HLL)?;
        match (header.strip_prefix(MAGIC).and_then(|rest| rest.first()), body.len()) {
            (Some(0), DENSE_BYTES) => Ok((dense(body), Encoding::Dense)),
            (Some(1), _) => Ok((sparse(body).ok_or(CORRUPTED)?, Encoding::Sparse)),
            _ => Err(NO_HLL),
        }
    }

    /// The string, sparse if it may be.
    pub(super) fn write(&self, encoding: Encoding) -> Bytes {
        let mut text = Vec::with_capacity(HEADER_BYTES + SPARSE_BYTES_MAX);
        let body = if encoding == Encoding::Sparse { self.as_sparse() } else { None };
        text.extend_from_slice(MAGIC);
        text.extend_from_slice(&[u8::from(body.is_some()), 0, 0, 0]);
        text.extend_from_slice(&NOT_CACHED);
        text.extend_from_slice(&body.unwrap_or_else(|| self.as_dense()));
        text.into()
    }

    /// Equal neighbours, with how many there are.
    fn runs(&self) -> impl Iterator<Item = (u8, usize)> + '_ {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || {
            let value = *rest.first()?;
            // Most of a sparse one are long runs of zeros.
            let eights = rest.chunks_exact(8).take_while(|eight| **eight == [value; 8]).count();
            let others = rest[8 * eights..].iter().take_while(|other| **other == value).count();
            let count = 8 * eights + others;
            rest = &rest[count..];
            Some((value, count))
        })
    }

    fn as_sparse(&self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        for (value, mut count) in self.runs() {
            while count > 0 {
                let taken = match (value, count) {
                    (0, ..=64) => {
                        out.push(count as u8 - 1);
                        count
                    }
                    (0, _) => {
                        out.extend_from_slice(&((count - 1) as u16 | 0x4000).to_be_bytes());
                        count
                    }
                    (1..=SPARSE_VALUE_MAX, _) => {
                        let taken = count.min(4);
                        out.push(0x80 | (value - 1) << 2 | (taken as u8 - 1));
                        taken
                    }
                    _ => return None,
                };
                count -= taken;
            }
        }
        (out.len() + HEADER_BYTES <= SPARSE_BYTES_MAX).then_some(out)
    }

    fn as_dense(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(DENSE_BYTES);
        for four in self.0.chunks_exact(4) {
            let bits = four.iter().rev().fold(0_u32, |bits, value| bits << 6 | u32::from(*value));
            out.extend_from_slice(&bits.to_le_bytes()[..3]);
        }
        out
    }

    /// The runs of a sparse one, as `PFDEBUG DECODE` shows them.
    pub(super) fn runs_in_words(&self) -> String {
        let mut words = String::new();
        for (value, count) in self.runs() {
            // Writing to a string does not fail.
            let _ = match (value, count) {
                (0, ..=64) => write!(words, "z:{count} "),
                (0, _) => write!(words, "Z:{count} "),
                _ => write!(words, "v:{value},{count} "),
            };
        }
        words.truncate(words.trim_end().len());
        words
    }
}

fn dense(body: &[u8]) -> Registers {
    let values = body.chunks_exact(3).flat_map(|three| {
        let bits = u32::from_le_bytes([three[0], three[1], three[2], 0]);
        [0, 6, 12, 18].map(|shift| (bits >> shift & 0x3f) as u8)
    });
    // What no hash makes counts as the highest.
    Registers(values.map(|value| value.min(RANK_MAX)).collect())
}

/// Whether a string is dense, by its header and length.
pub(super) fn is_dense(text: &[u8]) -> bool {
    text.len() == HEADER_BYTES + DENSE_BYTES && text.starts_with(MAGIC) && text[MAGIC.len()] == 0
}

/// Adds an element to a dense string where it stands; whether it was not seen before.
pub(super) fn add_to_dense(text: &mut [u8], element: &[u8]) -> bool {
    let (place, rank) = seen(element);
    let three = &mut text[HEADER_BYTES + place / 4 * 3..][..3];
    let shift = place % 4 * 6;
    let bits = u32::from_le_bytes([three[0], three[1], three[2], 0]);
    let rises = u32::from(rank) > bits >> shift & 0x3f;
    if rises {
        let bits = bits & !(0x3f << shift) | u32::from(rank) << shift;
        three.copy_from_slice(&bits.to_le_bytes()[..3]);
        text[HEADER_BYTES - NOT_CACHED.len()..HEADER_BYTES].copy_from_slice(&NOT_CACHED);
    }
    rises
}

/// The register of an element, and the value that it has at the least with it.
fn seen(element: &[u8]) -> (usize, u8) {
    let hash = hash(element);
    let place = (hash & (REGISTERS as u64 - 1)) as usize;
    (place, ((hash >> PLACE_BITS) | 1 << (64 - PLACE_BITS)).trailing_zeros() as u8 + 1)
}

/// Nothing if the runs are not those of all registers.
fn sparse(body: &[u8]) -> Option<Registers> {
    let mut values = Vec::with_capacity(REGISTERS);
    let mut rest = body;
    while let [first, others @ ..] = rest {
        let (value, count, others) = match first >> 6 {
            0 => (0, usize::from(first & 0x3f) + 1, others),
            1 => {
                let (second, others) = others.split_first()?;
                (0, (usize::from(first & 0x3f) << 8 | usize::from(*second)) + 1, others)
            }
            _ => ((first >> 2 & 0x1f) + 1, usize::from(first & 3) + 1, others),
        };
        values.resize(values.len() + count, value);
        if values.len() > REGISTERS {
            return None;
        }
        rest = others;
    }
    (values.len() == REGISTERS).then_some(Registers(values))
}

/// MurmurHash2, 64 bits for 64-bit machines, by Austin Appleby, with the seed of Redis.
fn hash(bytes: &[u8]) -> u64 {
    const SEED: u64 = 0xadc8_3b19;
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let mut hash = SEED ^ (bytes.len() as u64).wrapping_mul(FACTOR);
    let words = bytes.chunks_exact(8);
    let rest = words.remainder();
    for word in words {
        let mut word = word.iter().rev().fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
        word = word.wrapping_mul(FACTOR);
        word ^= word >> SHIFT;
        hash = (hash ^ word.wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        let word = rest.iter().rev().fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
        hash = (hash ^ word).wrapping_mul(FACTOR);
    }
    hash ^= hash >> SHIFT;
    hash = hash.wrapping_mul(FACTOR);
    hash ^ hash >> SHIFT
}

const NO_HLL: Reply = Reply::error("WRONGTYPE Key is not a valid HyperLogLog string value.");
const CORRUPTED: Reply = Reply::error("INVALIDOBJ Corrupted HLL object detected");

#[cfg(test)]
mod tests;
