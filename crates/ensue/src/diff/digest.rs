//! Digests of values: short numbers that are equal where the values are, and in no other case that will be met.
//!
//! Each element is hashed by BLAKE3 under a key that this run draws, to 256 bits. What has an order is one hash of its
//! elements; what has none is the sum of the hashes of its elements, as two sums modulo 2^128. Two different values
//! have one digest with a chance of about 2^-256. A sum is weaker than a hash where somebody looks for collisions, but
//! that needs the key: nobody knows it when the values are written, and it is forgotten at the end.

use bytes::Bytes;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// The key of a run.
#[derive(Clone)]
pub(crate) struct Secret([u8; blake3::KEY_LEN]);

impl Secret {
    pub(crate) fn draw() -> Secret {
        let mut key = [0; blake3::KEY_LEN];
        for (number, bytes) in key.chunks_mut(8).enumerate() {
            // Its keys are of the system's source of random numbers.
            bytes.copy_from_slice(&RandomState::new().hash_one(number).to_le_bytes());
        }
        Secret(key)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digest(pub(crate) [u8; blake3::OUT_LEN]);

/// A digest of elements in their order.
pub(crate) struct Sequence(blake3::Hasher);

impl Sequence {
    pub(crate) fn new(secret: &Secret) -> Sequence {
        Sequence(blake3::Hasher::new_keyed(&secret.0))
    }

    /// Adds bytes that continue those before them.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Adds an element, which is another one than its pieces would be.
    pub(crate) fn add(&mut self, parts: &[&[u8]]) {
        add_parts(&mut self.0, parts);
    }

    pub(crate) fn digest(&self) -> Digest {
        Digest(*self.0.finalize().as_bytes())
    }
}

/// A digest of elements in any order. The same element twice counts twice.
pub(crate) struct Sum {
    secret: Secret,
    halves: [u128; 2],
}

impl Sum {
    pub(crate) fn new(secret: &Secret) -> Sum {
        Sum { secret: secret.clone(), halves: [0; 2] }
    }

    pub(crate) fn add(&mut self, parts: &[&[u8]]) {
        let mut hasher = blake3::Hasher::new_keyed(&self.secret.0);
        add_parts(&mut hasher, parts);
        let hash = hasher.finalize();
        for (half, bytes) in self.halves.iter_mut().zip(hash.as_bytes().chunks_exact(16)) {
            let mut number = [0; 16];
            number.copy_from_slice(bytes);
            *half = half.wrapping_add(u128::from_le_bytes(number));
        }
    }

    pub(crate) fn digest(&self) -> Digest {
        let mut bytes = [0; blake3::OUT_LEN];
        for (half, bytes) in self.halves.iter().zip(bytes.chunks_mut(16)) {
            bytes.copy_from_slice(&half.to_le_bytes());
        }
        Digest(bytes)
    }
}

/// With the length of each part before it: `ab` and `c` are others than `a` and `bc`.
fn add_parts(hasher: &mut blake3::Hasher, parts: &[&[u8]]) {
    hasher.update(&(parts.len() as u64).to_le_bytes());
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
}

/// The parts of an element that stand in a list of their own.
pub(crate) fn slices(parts: &[Bytes]) -> Vec<&[u8]> {
    parts.iter().map(|part| &part[..]).collect()
}

#[cfg(test)]
mod tests;
