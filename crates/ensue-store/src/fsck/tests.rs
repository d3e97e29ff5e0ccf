//! The check reports and changes nothing.

use super::*;
use crate::checkpoint::{CheckpointWriter, Items};
use crate::entry::{Change, Entry};
use crate::layout::encode_entry;
use crate::log::Lsn;
use crate::memory_disk::{MemoryDisk, options};
use ensue_types::{Causes, KeyspaceId, Stamp, TimeVector};

fn run(disk: &mut MemoryDisk) -> FsckReport {
    let mut fsck = check(options(500));
    while let Some(op) = fsck.next_op() {
        assert!(matches!(op, DiskOp::List | DiskOp::Read { .. }), "{op:?}");
        fsck.on_done(disk.run(op));
    }
    fsck.report().expect("the check is done").clone()
}

fn filled(positions: &[u64]) -> MemoryDisk {
    let mut disk = MemoryDisk::default();
    let (_, mut finish) = disk.recover(&options(500)).unwrap();
    for &position in positions {
        let change = Change::Flush { keyspace: KeyspaceId(1), effects: vec![] };
        let (position, dependencies) = (Position(position), Causes::Nothing);
        let entry = Entry { position, stamp: Stamp::ZERO, dependencies, change, previous: Vec::new() };
        finish.log.append_own(&encode_entry(&entry));
        disk.append_all(&mut finish.log);
        disk.sync_all(&mut finish.log);
    }
    disk
}

#[test]
fn a_sound_directory() {
    let report = run(&mut filled(&[1, 2, 3, 4, 5, 6, 7, 8, 9]));
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.entries, 9);
    let place = |position| (Incarnation(1), Position(position));
    assert_eq!(report.own, Some((place(1), place(9))));
    assert!(report.segments > 1 && report.log_bytes > 500, "{report:?}");
}

#[test]
fn a_torn_tail_is_told_and_left() {
    let mut disk = filled(&[1, 2, 3]);
    let file = disk.files.values_mut().last().unwrap();
    file.data.pop();
    let before = file.data.len();
    let report = run(&mut disk);
    assert!(report.is_sound());
    assert!(report.recovery.unwrap().torn.is_some());
    assert_eq!(disk.files.values().last().unwrap().data.len(), before);
}

#[test]
fn a_gap_and_damage_are_told() {
    let gap = run(&mut filled(&[1, 2, 4]));
    assert_eq!(gap.problem_count, 1);
    assert!(gap.problems[0].starts_with("log-0000000000000000, the record that ends at byte "), "{gap:?}");
    assert!(gap.problems[0].ends_with("position 1.4 is out of order"), "{gap:?}");
    let mut disk = filled(&[1, 2, 3]);
    disk.files.values_mut().last().unwrap().data[50] ^= 4;
    assert!(run(&mut disk).error.is_some());
}

#[test]
fn an_empty_directory_is_sound_as_a_start_would_use_it() {
    let mut disk = MemoryDisk::default();
    let report = run(&mut disk);
    assert!(report.is_sound() && report.recovery.unwrap().fresh);
    assert!(disk.files.is_empty());
    let mut disk = filled(&[1]);
    disk.files.remove(&FileName::Superblock);
    assert!(run(&mut disk).error.is_some(), "without its superblock alone it is damaged");
}

#[test]
fn an_item_of_a_checkpoint_that_a_start_would_refuse_is_told() {
    let mut disk = filled(&[1, 2]);
    let (_, finish) = disk.recover(&options(500)).unwrap();
    let mut superblock = finish.superblock.clone();
    let mut writer = CheckpointWriter::begin(&superblock, Lsn(0), Lsn(0));
    writer.item(image::FLOOR, &image::floor_item(KeyspaceId(0), &TimeVector::default()));
    writer.item(99, b"of a kind that nobody knows");
    writer.finish(finish.log.synced());
    while !writer.is_durable() {
        let op = writer.take_op().expect("the checkpoint comes to its end");
        let done = disk.run(op);
        writer.on_done(&done, &mut superblock);
    }
    let report = run(&mut disk);
    assert_eq!((report.problem_count, &report.error), (1, &None), "{report:?}");
    assert!(report.problems[0].starts_with("checkpoint-00000001, item 2: "), "{:?}", report.problems);
}
