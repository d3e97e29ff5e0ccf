//! The cluster's name as the bytes that data carries.

/// The cluster's name in 16 bytes (FNV-1a), the same on every machine and in every release.
///
/// It keeps apart clusters that meet by accident. It is no protection from anybody who means it.
pub fn cluster_hash(name: &str) -> [u8; 16] {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let hash = name.bytes().fold(OFFSET, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
    hash.to_le_bytes()
}
