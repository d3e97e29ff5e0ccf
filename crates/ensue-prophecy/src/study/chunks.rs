//! A response as chunks that are cut where its content says so, so that an insertion moves no other cut.
//!
//! A cut is where the hash of the last 48 bytes, a polynomial over them as in Rabin's fingerprints, is 0 modulo the
//! expected length of a chunk. No chunk is shorter than a quarter of that, which bounds the number of chunks.

use super::Change;
use crate::limits::STUDY_CHUNKS_MAX;
use std::collections::BTreeMap;

const WINDOW: usize = 48;
const FACTOR: u64 = 0x0000_0100_0000_01b3;
const CHUNK_BYTES: usize = 1024;
const CHUNKS_MIN: usize = 20;

/// A response cut into chunks.
#[derive(Clone, Debug)]
pub(super) struct Chunks {
    /// Of the whole response, also of what is too long to be cut.
    whole: [u8; 32],
    chunk_bytes: usize,
    sketches: Vec<[u8; 16]>,
}

impl Chunks {
    /// Cut into chunks of 1 KB in expectation, or smaller ones if there would be fewer than 20.
    pub(super) fn of(kept: &[u8], whole: &[u8]) -> Chunks {
        let chunk_bytes = CHUNK_BYTES.min(kept.len() / CHUNKS_MIN).max(kept.len() / STUDY_CHUNKS_MAX).max(1);
        Chunks::cut(kept, whole, chunk_bytes)
    }

    /// Cut as another response was, to be compared with it.
    pub(super) fn like(other: &Chunks, kept: &[u8], whole: &[u8]) -> Chunks {
        Chunks::cut(kept, whole, other.chunk_bytes.max(kept.len() / STUDY_CHUNKS_MAX))
    }

    pub(super) fn whole(&self) -> &[u8; 32] {
        &self.whole
    }

    fn cut(kept: &[u8], whole: &[u8], chunk_bytes: usize) -> Chunks {
        let leaving = (0..WINDOW).fold(1u64, |power, _| power.wrapping_mul(FACTOR));
        let (mut sketches, mut start, mut hash) = (Vec::new(), 0, 0u64);
        for (at, byte) in kept.iter().enumerate() {
            hash = hash.wrapping_mul(FACTOR).wrapping_add(u64::from(*byte) + 1);
            if let Some(gone) = at.checked_sub(WINDOW) {
                hash = hash.wrapping_sub(leaving.wrapping_mul(u64::from(kept[gone]) + 1));
            }
            // The high bits depend on all bytes of the window.
            let is_cut = at + 1 - start >= chunk_bytes / 4 && (hash >> 32) % chunk_bytes as u64 == 0;
            if is_cut || at + 1 == kept.len() {
                sketches.push(sketch(&kept[start..=at]));
                start = at + 1;
            }
        }
        Chunks { whole: *blake3::hash(whole).as_bytes(), chunk_bytes, sketches }
    }

    /// What a transition from this response to the new one changed.
    pub(super) fn compare(&self, new: &Chunks) -> Change {
        let (old, new) = (&self.sketches[..], &new.sketches[..]);
        let mut left: BTreeMap<&[u8; 16], usize> = BTreeMap::new();
        new.iter().for_each(|chunk| *left.entry(chunk).or_default() += 1);
        let is_missing = |chunk: &&[u8; 16]| match left.get_mut(*chunk) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        };
        let missing = old.iter().filter(is_missing).count();
        let head = old.iter().zip(new).take_while(|(one, other)| one == other).count();
        let most = old.len().min(new.len()) - head;
        let tail =
            old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(one, other)| one == other).count();
        let kept = head + tail;
        Change {
            differing: missing as f64 / old.len().max(1) as f64,
            edited_chunks: old.len().max(new.len()) - kept,
            is_single_edit: 2 * kept >= old.len() && new.len() <= 2 * old.len() && !old.is_empty(),
        }
    }
}

fn sketch(chunk: &[u8]) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&blake3::hash(chunk).as_bytes()[..16]);
    bytes
}
