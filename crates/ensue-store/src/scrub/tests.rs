//! Whatever byte of a file changes, and wherever it ends, that is found; what was written is sound.

use super::*;
use crate::checkpoint::{CheckpointWriter, Items};
use crate::entry::{Change, Entry};
use crate::layout::encode_entry;
use crate::memory_disk::{MemoryDisk, options};
use ensue_types::{Causes, KeyspaceId, Position, Stamp};

/// What the file is, read in pieces of so many bytes at most.
fn scrub(file: FileName, length: u64, bytes: &[u8], seal: Seal) -> Result<(), (u64, String)> {
    let mut scrub = Scrub::new(file, length, seal).expect("it has checksums");
    loop {
        match scrub.step() {
            Scrubbed::Sound => return Ok(()),
            Scrubbed::Damaged { offset, reason } => return Err((offset, reason)),
            Scrubbed::Read(DiskOp::Read { offset, length, .. }) => {
                let begin = (offset as usize).min(bytes.len());
                let end = (begin + length as usize).min(bytes.len());
                scrub.on_read(offset, Bytes::copy_from_slice(&bytes[begin..end]));
            }
            Scrubbed::Read(op) => panic!("it reads only: {op:?}"),
        }
    }
}

/// A directory with a checkpoint and some segments, and its seal.
fn written() -> (MemoryDisk, Seal) {
    let mut disk = MemoryDisk::default();
    let options = options(500);
    let (_, mut finish) = disk.recover(&options).unwrap();
    for position in 1..=9 {
        let change = Change::Flush { keyspace: KeyspaceId(1), effects: vec![] };
        let (position, dependencies) = (Position(position), Causes::Nothing);
        let entry = Entry { position, stamp: Stamp::ZERO, dependencies, change, previous: Vec::new() };
        finish.log.append_own(&encode_entry(&entry));
        disk.append_all(&mut finish.log);
        disk.sync_all(&mut finish.log);
    }
    let mut superblock = finish.superblock;
    let mut writer = CheckpointWriter::begin(&superblock, Lsn(0), Lsn(0));
    for number in 0..40_u8 {
        writer.item(number, &vec![number; 10_000]);
    }
    writer.finish(Lsn(0));
    while let Some(op) = writer.take_op() {
        writer.on_done(&disk.run(op), &mut superblock);
    }
    (disk, superblock.seal())
}

fn files(disk: &MemoryDisk) -> Vec<(FileName, Vec<u8>)> {
    let with_sums = |file: &FileName| matches!(file, FileName::Segment(_) | FileName::Checkpoint(_));
    let files = disk.files.iter().filter(|(file, _)| with_sums(file));
    files.map(|(file, found)| (*file, found.data.to_vec())).collect()
}

#[test]
fn what_was_written_is_sound_and_no_byte_may_change() {
    let (disk, seal) = written();
    let files = files(&disk);
    assert!(
        files.iter().any(|(file, _)| matches!(file, FileName::Checkpoint(_))) && files.len() > 2,
        "{files:?}"
    );
    for (file, mut bytes) in files {
        let length = bytes.len() as u64;
        assert_eq!(scrub(file, length, &bytes, seal), Ok(()), "{file}");
        // The blocks are long, and all of their bytes are alike to a checksum.
        let step = if length > 10_000 { 997 } else { 1 };
        for at in (0..bytes.len()).step_by(step) {
            bytes[at] ^= 4;
            let (offset, reason) = scrub(file, length, &bytes, seal).expect_err("a byte has changed");
            assert!(offset <= at as u64, "{file}: byte {at}, and {reason} at byte {offset}");
            bytes[at] ^= 4;
        }
        for end in (0..bytes.len()).step_by(step) {
            assert!(scrub(file, length, &bytes[..end], seal).is_err(), "{file} of {end} bytes");
        }
        assert!(scrub(file, length, &bytes, Seal(seal.0 ^ 1)).is_err(), "{file} of another partition");
    }
}

#[test]
fn a_checkpoint_under_another_number_is_none() {
    let (disk, seal) = written();
    let files = files(&disk);
    let (_, bytes) =
        files.iter().find(|(file, _)| matches!(file, FileName::Checkpoint(1))).expect("there is one");
    let (offset, reason) = scrub(FileName::Checkpoint(2), bytes.len() as u64, bytes, seal).unwrap_err();
    assert_eq!((offset, reason.as_str()), (0, "it says that it is checkpoint 1"));
    assert!(Scrub::new(FileName::Superblock, 92, seal).is_none());
}
