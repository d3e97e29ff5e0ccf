//! Every kind of record and of checkpoint item is gone through, and nothing but times changes.

use super::*;
use crate::checkpoint::{CheckpointWriter, Items};
use crate::image::{Bounds, StreamImage};
use crate::layout::tests as samples;
use crate::memory_disk::{MemoryDisk, options};
use crate::recovery::Recovered;
use ensue_types::{Causes, KeyspaceId, PartitionId, Position};
use std::collections::BTreeSet;

const OWN: DatacenterId = DatacenterId(1);

/// Moves every time by so much, and notes which there were.
struct Shift {
    by: i64,
    seen: BTreeSet<u64>,
}

impl Restamp for Shift {
    fn time(&mut self, _: Option<DatacenterId>, time: LogicalTime) -> LogicalTime {
        if time == LogicalTime::ZERO || time == LogicalTime::MAX {
            return time;
        }
        self.seen.insert(time.0);
        LogicalTime(time.0.wrapping_add_signed(self.by))
    }

    fn causes(&mut self, _: DatacenterId, causes: &Causes) -> Result<Causes, RestampError> {
        Ok(causes.clone())
    }
}

fn stamp(time: u64) -> Stamp {
    Stamp { time: LogicalTime(time), datacenter: OWN, partition: PartitionId(2) }
}

/// A directory with a checkpoint of every kind of item with a time, and every kind of record behind it.
fn directory() -> (MemoryDisk, Seal) {
    let (mut disk, options) = (MemoryDisk::default(), options(100_000));
    let (_, mut finish) = disk.recover(&options).unwrap();
    let log = &mut finish.log;
    disk.append_all(log);
    disk.sync_all(log);
    let mut writer = CheckpointWriter::begin(&finish.superblock, log.end(), Lsn(0));
    let stream = StreamImage {
        datacenter: DatacenterId(2),
        lost: vec![(Position(1), Position(2))],
        ..Default::default()
    };
    let bounds = Bounds { flushed: stamp(7_001), collected: stamp(7_002), forgotten: stamp(7_003) };
    let image = PartitionImage {
        clock: LogicalTime(7_004),
        streams: vec![stream],
        bounds: vec![bounds],
        ..PartitionImage::default()
    };
    writer.item(image::PARTITION, &image.encode());
    let floor = [LogicalTime(7_005), LogicalTime(7_006)].into_iter().collect();
    writer.item(image::FLOOR, &image::floor_item(KeyspaceId(1), &floor));
    let dead = Record::Dead { datacenter: DatacenterId(2), time: LogicalTime(7_007) };
    writer.item(image::RECORD, &image::record_item(&dead));
    let mut effect = 7_008u64.to_le_bytes().to_vec();
    effect.extend_from_slice(&layout::encode_entry(&samples::entries()[1]));
    writer.item(image::EFFECT, &effect);
    writer.item(image::BRANCH_KEY, b"whatever it is");
    writer.finish(log.synced());
    while let Some(op) = writer.take_op() {
        let answer = disk.run(op);
        writer.on_done(&answer, &mut finish.superblock);
    }
    for record in samples::records() {
        log.append(&record);
    }
    disk.append_all(log);
    for entry in
        samples::entries().into_iter().chain([samples::entry_with_previous(), samples::entry_over_several()])
    {
        log.append(&Record::Own { entry: layout::encode_entry(&entry) });
    }
    disk.append_all(log);
    disk.sync_all(log);
    (disk, options.expected.seal())
}

fn shifted(disk: &MemoryDisk, seal: Seal, by: i64) -> (MemoryDisk, BTreeSet<u64>) {
    let mut shift = Shift { by, seen: BTreeSet::new() };
    let mut disk = disk.clone();
    for (name, file) in &mut disk.files {
        let bytes = Bytes::from(file.data.clone());
        let rewritten = super::file(*name, &bytes, seal, OWN, &mut shift).expect("a whole file");
        assert_eq!(rewritten.len(), bytes.len(), "{name}");
        file.data = rewritten;
    }
    (disk, shift.seen)
}

fn files(disk: &MemoryDisk) -> Vec<(FileName, Vec<u8>)> {
    disk.files.iter().map(|(name, file)| (*name, file.data.clone())).collect()
}

#[test]
fn the_same_times_are_the_same_files_and_others_come_back() {
    let (disk, seal) = directory();
    assert!(files(&shifted(&disk, seal, 0).0) == files(&disk), "nothing but times changes");
    let (moved, seen) = shifted(&disk, seal, 1_000);
    assert!(files(&moved) != files(&disk));
    let (back, seen_again) = shifted(&moved, seal, -1_000);
    assert!(files(&back) == files(&disk));
    assert_eq!(seen.len(), seen_again.len());
    // The checkpoint's own, the records' at 99, and the stamps of entries, of tallies and of what was replaced.
    let expected = (7_001..=7_008).chain([99]).chain([8, 9, 10, 1_700_000_000_000].map(|n: u64| n << 16 | 5));
    assert_eq!(seen, expected.collect::<BTreeSet<u64>>());
}

#[test]
fn what_was_given_other_times_is_read_as_before() {
    let (disk, seal) = directory();
    let (mut moved, _) = shifted(&disk, seal, 1_000);
    let (items, finish) = moved.recover(&options(100_000)).expect("it is whole");
    assert_eq!(finish.report.torn, None);
    let bounds = items.iter().filter_map(|item| match item {
        Recovered::Record(recovered) => match recovered.record {
            Record::ClockBound { bound } => Some(bound),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(bounds.collect::<Vec<_>>(), [LogicalTime(1_099)]);
}

#[test]
fn damage_is_found_and_named() {
    let (disk, seal) = directory();
    for (name, file) in &disk.files {
        if matches!(name, FileName::Segment(_) | FileName::Checkpoint(_)) {
            let mut shift = Shift { by: 0, seen: BTreeSet::new() };
            for at in (0..file.data.len()).step_by(7) {
                let mut data = file.data.clone();
                data[at] ^= 0x10;
                let result = super::file(*name, &Bytes::from(data), seal, OWN, &mut shift);
                assert!(result.is_err(), "{name} byte {at}");
            }
        }
    }
}
