//! The witness comes back, and no torn one does.

use super::*;
use crate::memory_disk::options;

#[test]
fn comes_back_and_nothing_else_does() {
    let seal = options(1).expected.seal();
    let bytes = encode(seal, Lsn(0x1234_5678));
    assert_eq!(decode(seal, &bytes), Some(Lsn(0x1234_5678)));
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes;
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(decode(seal, &damaged), None, "bit {bit}");
    }
    for length in 0..bytes.len() {
        assert_eq!(decode(seal, &bytes[..length]), None, "{length} bytes");
    }
    assert_eq!(decode(seal, &[0; WITNESS_BYTES]), None);
    let other = crate::superblock::Superblock { cluster: 1, ..options(1).expected };
    assert_eq!(decode(other.seal(), &bytes), None, "of another directory");
}

#[test]
fn encoding_has_not_changed() {
    let bytes = encode(options(1).expected.seal(), Lsn(99));
    assert_eq!(format!("{:08x}", crc32fast::hash(&bytes)), "e6de75f6");
}
