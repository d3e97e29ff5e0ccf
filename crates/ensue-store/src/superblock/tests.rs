//! The superblock comes back, and no damaged one does.

use super::*;
use crate::memory_disk::options;

#[test]
fn comes_back() {
    let mut superblock = options(1).expected;
    superblock.mark_clean(Lsn(99));
    assert_eq!(Superblock::decode(&superblock.encode()), Ok(superblock.clone()));
    superblock.mark_running([8; 16], true);
    assert_eq!(Superblock::decode(&superblock.encode()), Ok(superblock));
}

#[test]
fn a_directory_is_being_filled_until_it_has_caught_up() {
    let mut superblock = options(1).expected;
    superblock.mark_not_admitted();
    superblock.mark_filling(DirectoryId(7), [1; 16]);
    let again = Superblock::decode(&superblock.encode()).unwrap();
    assert_eq!((again.filling, again.not_admitted, again.directory), (true, false, DirectoryId(7)));
    assert!(!again.tail_complete([1; 16]) && again.is_marked_short([1; 16]));
    superblock.mark_running([1; 16], true);
    assert!(!superblock.filling);
}

#[test]
fn every_flipped_bit_and_every_cut_is_refused() {
    let bytes = options(1).expected.encode();
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes;
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(Superblock::decode(&damaged).is_err(), "bit {bit}");
    }
    for length in 0..bytes.len() {
        assert!(Superblock::decode(&bytes[..length]).is_err(), "{length} bytes");
    }
    // As soon as it is known to be one, what is missing is said.
    let short = |left| LayoutError::TooShort { what: "superblock", at: 0, needed: bytes.len() as u64, left };
    assert_eq!(Superblock::decode(&bytes[..10]), Err(short(10)));
    assert_eq!(Superblock::decode(&bytes[..bytes.len() - 1]), Err(short(bytes.len() - 1)));
}

#[test]
fn the_tail_is_complete_after_the_same_boot_a_clean_stop_or_always() {
    let mut superblock = options(1).expected;
    superblock.mark_running([1; 16], false);
    assert!(superblock.tail_complete([1; 16]));
    assert!(!superblock.tail_complete([2; 16]));
    superblock.mark_clean(Lsn(0));
    assert!(superblock.tail_complete([2; 16]));
    superblock.mark_running([2; 16], true);
    assert!(superblock.tail_complete([3; 16]));
}

#[test]
fn encoding_has_not_changed() {
    let mut superblock = options(1).expected;
    for (format, golden) in
        [(7, "8024c937"), (8, "35eec1f4"), (9, "29c959e1"), (10, "0da1f1de"), (FORMAT, "118669cb")]
    {
        superblock.format = format;
        let bytes = superblock.encode_in(format);
        assert_eq!(format!("{:08x}", crc32fast::hash(&bytes[..88])), golden);
        assert_eq!(Superblock::decode(&bytes), Ok(superblock.clone()));
    }
    // Up to format 5 there was no identity, and the checksum stood where the field before it ended.
    superblock.directory = DirectoryId::UNKNOWN;
    for (format, golden) in [(1, "a1428aa0"), (2, "25471f70")] {
        superblock.format = format;
        let mut bytes = superblock.encode_in(format)[..68].to_vec();
        let checksum = crc32fast::hash(&bytes);
        assert_eq!(format!("{checksum:08x}"), golden);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        assert_eq!(Superblock::decode(&bytes), Ok(superblock.clone()));
        let rewritten = Superblock { format: FORMAT, ..superblock.clone() };
        assert_eq!(
            Superblock::decode(&superblock.encode()),
            Ok(rewritten),
            "it is written in the present one"
        );
    }
}

#[test]
fn a_directory_takes_the_format_of_the_version_that_runs_in_it() {
    let mut superblock = Superblock { format: 1, ..options(1).expected };
    superblock.mark_running([1; 16], true);
    assert_eq!(superblock.format, FORMAT);
}

#[test]
fn a_later_format_is_refused_by_name() {
    for format in [0, FORMAT + 1] {
        let bytes = options(1).expected.encode_in(format);
        let unknown = LayoutError::UnknownFormat { what: "superblock", format, known: FORMAT };
        assert_eq!(Superblock::decode(&bytes), Err(unknown));
    }
}
