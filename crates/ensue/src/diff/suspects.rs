//! Keys that differed when they were read, and are read again: a bounded number of them.

use super::fingerprint::{Seen, Verdict};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Keys, and bytes of their names.
const KEYS_MAX: usize = 100_000;
const BYTES_MAX: usize = 64 << 20;

#[derive(Clone, Debug)]
pub(crate) struct Suspect {
    pub(crate) left: Seen,
    pub(crate) right: Seen,
    pub(crate) verdict: Verdict,
    /// It was not the same on a side in two readings.
    pub(crate) is_changing: bool,
}

#[derive(Default)]
pub(crate) struct Suspects {
    keys: BTreeMap<Bytes, Suspect>,
    bytes: usize,
    /// Keys that differed, and for which there was no room.
    pub(crate) left_out: u64,
}

impl Suspects {
    pub(crate) fn is_full(&self) -> bool {
        self.keys.len() >= KEYS_MAX || self.bytes >= BYTES_MAX
    }

    pub(crate) fn len(&self) -> u64 {
        self.keys.len() as u64
    }

    pub(crate) fn add(&mut self, key: &[u8], suspect: Suspect) {
        if self.is_full() && !self.keys.contains_key(key) {
            self.left_out += 1;
            return;
        }
        // A copy: what arrived with the key is not held with it.
        if self.keys.insert(Bytes::copy_from_slice(key), suspect).is_none() {
            self.bytes += key.len();
        }
    }

    pub(crate) fn names(&self) -> Vec<Bytes> {
        self.keys.keys().cloned().collect()
    }

    /// What was read of a key in another round. One that is equal now is none any more.
    pub(crate) fn read_again(&mut self, key: &Bytes, again: Suspect, tolerance_ms: u64) {
        let Some(suspect) = self.keys.get_mut(key) else { return };
        if again.verdict == Verdict::Equal {
            self.keys.remove(key);
            return;
        }
        let is_as_before = again.left.is_as_before(&suspect.left, tolerance_ms)
            && again.right.is_as_before(&suspect.right, tolerance_ms);
        *suspect = Suspect { is_changing: suspect.is_changing || !is_as_before, ..again };
    }

    pub(crate) fn into_iter(self) -> impl Iterator<Item = (Bytes, Suspect)> {
        self.keys.into_iter()
    }
}

#[cfg(test)]
mod tests;
