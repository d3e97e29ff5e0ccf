//! SHA-1, by which clients name scripts. It guards nothing here: who can name a script can also send one.

use std::fmt;

/// The digest of a text, as the forty lower-case digits that clients know.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha1([u8; 40]);

const DIGITS: &[u8; 16] = b"0123456789abcdef";
const INITIAL: [u32; 5] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0];
const BLOCK: usize = 64;

impl Sha1 {
    /// The digest of these bytes.
    pub fn of(text: &[u8]) -> Sha1 {
        let mut state = INITIAL;
        let blocks = text.chunks_exact(BLOCK);
        let rest = blocks.remainder();
        for block in blocks {
            compress(&mut state, block);
        }
        let mut last = [0; 2 * BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        last[rest.len()] = 0x80;
        let end = if rest.len() < BLOCK - 8 { BLOCK } else { 2 * BLOCK };
        last[end - 8..end].copy_from_slice(&(text.len() as u64 * 8).to_be_bytes());
        for block in last[..end].chunks_exact(BLOCK) {
            compress(&mut state, block);
        }
        let bytes = state.into_iter().flat_map(u32::to_be_bytes);
        let mut digits = [0; 40];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
            pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        Sha1(digits)
    }

    /// A digest as a client writes it, in either case.
    pub fn parse(text: &[u8]) -> Option<Sha1> {
        let digits: [u8; 40] = text.to_ascii_lowercase().try_into().ok()?;
        digits.iter().all(|digit| DIGITS.contains(digit)).then_some(Sha1(digits))
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("digits are ASCII")
    }
}

impl fmt::Display for Sha1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Sha1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn compress(state: &mut [u32; 5], block: &[u8]) {
    let mut words = [0_u32; 80];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes.iter().fold(0, |word, &byte| word << 8 | u32::from(byte));
    }
    for at in 16..80 {
        words[at] = (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (at, word) in words.into_iter().enumerate() {
        let (mixed, constant) = match at {
            0..20 => ((b & c) | (!b & d), 0x5A82_7999),
            20..40 => (b ^ c ^ d, 0x6ED9_EBA1),
            40..60 => ((b & c) | (b & d) | (c & d), 0x8F1B_BCDC),
            _ => (b ^ c ^ d, 0xCA62_C1D6),
        };
        let next =
            a.rotate_left(5).wrapping_add(mixed).wrapping_add(e).wrapping_add(constant).wrapping_add(word);
        (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
    }
    for (sum, value) in state.iter_mut().zip([a, b, c, d, e]) {
        *sum = sum.wrapping_add(value);
    }
}

#[cfg(test)]
mod tests;
