//! What two sides compare to know that they belong together: the cluster's name and its secret.
//!
//! It computes no proof. Whoever reads the configuration derives one, with a cryptographic hash keyed by the secret
//! over the cluster's name, and never puts the secret itself here.

use std::fmt;

/// The cluster's name in 16 bytes (FNV-1a), the same on every machine and in every release.
///
/// It keeps apart clusters that meet by accident. It is no protection from anybody who means it.
pub fn cluster_hash(name: &str) -> [u8; 16] {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let hash = name.bytes().fold(OFFSET, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
    hash.to_le_bytes()
}

/// What shows that a side knows the cluster's secret. It is never printed, and compared in constant time.
#[derive(Clone, Copy, Eq)]
pub struct SecretProof(pub [u8; 32]);

impl PartialEq for SecretProof {
    fn eq(&self, other: &SecretProof) -> bool {
        let differing =
            self.0.iter().zip(other.0).fold(0, |differing, (ours, theirs)| differing | (ours ^ theirs));
        // Hidden from the optimizer, which could otherwise stop at the first difference and so tell where it is.
        std::hint::black_box(differing) == 0
    }
}

impl fmt::Debug for SecretProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretProof(hidden)")
    }
}
