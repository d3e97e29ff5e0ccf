//! A 64-bit hash of byte strings that is the same in every version, datacenter and process.
//!
//! Names and values arrive; numbers leave that are compared between datacenters and stand in the cursors of clients,
//! so the function is fixed for good. It does not resist an attacker who looks for collisions.

/// The hash while parts are fed into it: FNV-1a over eight bytes at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    pub(crate) const fn new() -> Fingerprint {
        Fingerprint(0xcbf2_9ce4_8422_2325)
    }

    /// Feeds a part; its length is fed too, so that no two lists of parts run together.
    pub(crate) fn part(self, bytes: &[u8]) -> Fingerprint {
        let mut chunks = bytes.chunks_exact(8);
        let mut hash = self.word(bytes.len() as u64);
        for chunk in &mut chunks {
            let mut word = [0; 8];
            word.copy_from_slice(chunk);
            hash = hash.word(u64::from_le_bytes(word));
        }
        let rest = chunks.remainder();
        if rest.is_empty() {
            return hash;
        }
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        hash.word(u64::from_le_bytes(word))
    }

    /// Feeds a number.
    pub(crate) fn word(self, word: u64) -> Fingerprint {
        // FNV's multiplication moves bits upwards only; the turn brings them back down.
        Fingerprint((self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
    }

    /// Every bit of the result depends on every bit fed (the finalizer of MurmurHash3).
    pub(crate) fn finish(self) -> u64 {
        let mut hash = self.0;
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        hash ^ (hash >> 33)
    }
}
