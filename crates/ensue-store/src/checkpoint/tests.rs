//! Checkpoints come back whole. Crashes in between are tested with recovery.

use super::*;
use crate::memory_disk::{MemoryDisk, options};
use crate::recovery::Recovered;

#[test]
fn items_come_back_in_order() {
    let (mut disk, options) = (MemoryDisk::default(), options(1 << 20));
    let (_, finish) = disk.recover(&options).unwrap();
    let mut superblock = finish.superblock;
    for round in 1..=3u64 {
        let mut writer = CheckpointWriter::begin(&superblock, Lsn(0), Lsn(0));
        let items: Vec<(u8, Vec<u8>)> = (0..2000u32)
            .map(|n| (n as u8, vec![n as u8; (n * 7 % 1500) as usize]))
            .chain([(1, vec![7; 3 << 20])])
            .collect();
        for (kind, bytes) in &items {
            writer.item(*kind, bytes);
        }
        assert!(writer.queued_bytes() > BLOCK_BYTES);
        writer.finish(Lsn(0));
        while let Some(op) = writer.take_op() {
            writer.on_done(&disk.run(op), &mut superblock);
        }
        assert!(writer.is_durable());
        assert_eq!(writer.queued_bytes(), 0);
        let (found, finish) = disk.recover(&options).unwrap();
        assert_eq!(finish.report.checkpoint, round);
        let found: Vec<(u8, Vec<u8>)> = found
            .into_iter()
            .filter_map(|item| match item {
                Recovered::CheckpointItem { kind, bytes } => Some((kind, bytes.to_vec())),
                _ => None,
            })
            .collect();
        assert!(found == items);
        assert_eq!(disk.files.len(), 2, "superblock and one checkpoint");
    }
}

#[test]
fn what_a_checkpoint_replaces_is_deleted() {
    let (mut disk, options) = (MemoryDisk::default(), options(1 << 20));
    let (_, finish) = disk.recover(&options).unwrap();
    let mut superblock = finish.superblock;
    let mut deleted = Vec::new();
    for _ in 0..3 {
        let mut writer = CheckpointWriter::begin(&superblock, Lsn(0), Lsn(0));
        writer.finish(Lsn(0));
        while let Some(op) = writer.take_op() {
            // What an earlier attempt may have left under its own name goes first.
            let own = FileName::Checkpoint(writer.place().number);
            if let Some(file) = deletes(&op).filter(|file| *file != own) {
                deleted.push((writer.place().number, file));
            }
            writer.on_done(&disk.run(op), &mut superblock);
        }
    }
    assert_eq!(
        deleted,
        [(2, FileName::Checkpoint(1)), (3, FileName::Checkpoint(2))],
        "the first replaces none"
    );
}

fn deletes(op: &DiskOp) -> Option<FileName> {
    match op {
        DiskOp::Delete { file } => Some(*file),
        _ => None,
    }
}
