//! Crashes, torn tails and damage at every bit. See `memory_disk` for what a crash may do.

use super::*;
use crate::checkpoint::{CheckpointWriter, Items};
use crate::memory_disk::{MemoryDisk, Random, options};
use ensue_types::LogicalTime;

const SEGMENT: u64 = 3000;

fn record(n: u64, bytes: usize) -> Record {
    let mut entry = n.to_le_bytes().to_vec();
    entry.resize(8 + bytes, n as u8);
    Record::Own { entry: Bytes::from(entry) }
}

fn number(record: &Record) -> u64 {
    let Record::Own { entry } = record else { panic!("only own records are written here") };
    crate::layout::u64_at(entry, 0)
}

fn numbers(items: &[Recovered]) -> Vec<u64> {
    items
        .iter()
        .filter_map(|item| if let Recovered::Record(r) = item { Some(number(&r.record)) } else { None })
        .collect()
}

/// Appends batches of records with rising numbers; the answer has the count of records at the end of each batch.
fn append(
    disk: &mut MemoryDisk,
    log: &mut Log,
    next: &mut u64,
    random: &mut Random,
    batches: usize,
) -> Vec<u64> {
    let mut ends = vec![];
    for _ in 0..batches {
        for _ in 0..=random.below(4) {
            log.append(&record(*next, random.below(300)));
            *next += 1;
        }
        disk.append_all(log);
        ends.push(*next);
    }
    ends
}

fn checkpoint(
    disk: &mut MemoryDisk,
    log: &mut Log,
    superblock: &mut Superblock,
    items: u64,
    stop_after: usize,
) {
    let mut writer = CheckpointWriter::begin(superblock, log.end(), Lsn(0));
    for item in 0..items {
        writer.item((item % 5) as u8, &vec![item as u8; 1000]);
    }
    disk.sync_all(log);
    writer.finish(log.synced());
    let mut done = 0;
    while let Some(op) = writer.take_op().filter(|_| done < stop_after) {
        done += 1;
        let answer = disk.run(op);
        if writer.on_done(&answer, superblock) {
            log.on_checkpoint(writer.place().log_start);
        }
    }
}

fn check(disk: &mut MemoryDisk, options: &RecoveryOptions) -> crate::fsck::FsckReport {
    let mut fsck = crate::fsck::check(options.clone());
    while let Some(op) = fsck.next_op() {
        fsck.on_done(disk.run(op));
    }
    fsck.report().expect("the check is done").clone()
}

#[test]
fn a_fresh_directory_gets_a_superblock() {
    let (mut disk, options) = (MemoryDisk::default(), options(SEGMENT));
    let (items, finish) = disk.recover(&options).unwrap();
    assert!(finish.report.fresh);
    assert!(matches!(&items[..], [Recovered::Superblock(made)] if *made == options.expected));
    assert!(disk.files.contains_key(&FileName::Superblock));
    assert!(!disk.recover(&options).unwrap().1.report.fresh);
}

#[test]
fn the_report_counts_what_was_read() {
    let (mut disk, options) = (MemoryDisk::default(), options(1 << 20));
    let (_, mut finish) = disk.recover(&options).unwrap();
    let (begin, mut records) = (finish.log.end(), 0);
    for batch in 1..=3 {
        for number in 0..batch {
            finish.log.append(&record(number, 10));
        }
        disk.append_all(&mut finish.log);
        records += batch;
    }
    let bytes = finish.log.end().0 - begin.0;
    let (items, finish) = disk.recover(&options).unwrap();
    let report = finish.report;
    assert_eq!((report.batches, report.records, report.log_bytes), (3, records, bytes));
    assert_eq!(numbers(&items), [0, 0, 1, 0, 1, 2]);
}

#[test]
fn a_crash_leaves_a_prefix_with_all_that_was_synced() {
    for seed in 0..400 {
        let mut random = Random(seed);
        let (mut disk, options) = (MemoryDisk::default(), options(SEGMENT));
        let mut next = 0;
        for _life in 0..4 {
            let (items, mut finish) = disk.recover(&options).unwrap();
            assert_eq!(numbers(&items), (0..next).collect::<Vec<_>>(), "seed {seed}");
            let log = &mut finish.log;
            let mut ends = vec![next];
            let batches = random.below(12);
            ends.extend(append(&mut disk, log, &mut next, &mut random, batches));
            if random.below(3) == 0 {
                disk.sync_all(log)
            } else if let Some(DiskOp::Sync { file }) = log.take_sync() {
                disk.run(DiskOp::Sync { file });
                log.on_synced(file);
            }
            let synced = log.synced();
            let batches = random.below(12);
            ends.extend(append(&mut disk, log, &mut next, &mut random, batches));
            disk.crash(&mut random);
            let (items, finish) =
                disk.recover(&options).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            let found = numbers(&items);
            assert_eq!(found, (0..found.len() as u64).collect::<Vec<_>>(), "seed {seed}");
            assert!(ends.contains(&(found.len() as u64)), "seed {seed}: part of a batch");
            assert!(finish.log.end() >= synced, "seed {seed}: {} is below {synced}", finish.log.end());
            next = found.len() as u64;
        }
    }
}

#[test]
fn torn_at_every_byte_of_the_last_batch() {
    let mut random = Random(5);
    let (mut disk, options) = (MemoryDisk::default(), options(1 << 20));
    let (_, mut finish) = disk.recover(&options).unwrap();
    let mut next = 0;
    append(&mut disk, &mut finish.log, &mut next, &mut random, 3);
    disk.sync_all(&mut finish.log);
    let (kept, start) = (next, finish.log.end().0 as usize);
    append(&mut disk, &mut finish.log, &mut next, &mut random, 1);
    let end = finish.log.end().0 as usize;
    for length in start..end {
        for zeros in [0, 700] {
            let mut torn = disk.clone();
            let data = &mut torn.files.get_mut(&FileName::Segment(0)).unwrap().data;
            data.truncate(length);
            data.resize(length + zeros, 0);
            let (items, finish) = torn.recover(&options).unwrap();
            assert_eq!(numbers(&items).len() as u64, kept);
            assert_eq!(finish.log.end().0 as usize, start);
            assert_eq!(torn.files[&FileName::Segment(0)].data.len(), start);
            assert_eq!(finish.report.torn.is_some(), length + zeros > start);
            let (_, again) = torn.recover(&options).unwrap();
            assert_eq!(again.report.torn, None);
        }
    }
}

/// A recovery that has read everything, with what it asks of the disk then.
fn cleaning(disk: &mut MemoryDisk, options: &RecoveryOptions) -> (Recovery, Vec<DiskOp>) {
    let mut recovery = Recovery::new(options.clone());
    loop {
        let ops: Vec<DiskOp> = std::iter::from_fn(|| recovery.next_op()).collect();
        assert!(!ops.is_empty(), "it has something to clean up");
        if !matches!(ops[0], DiskOp::List | DiskOp::Read { .. }) {
            return (recovery, ops);
        }
        ops.into_iter().for_each(|op| recovery.on_done(disk.run(op)).unwrap());
    }
}

/// Segments that follow a gap or a broken batch are deleted from the last one on, so that a crash in between leaves no
/// other gap. Only then is the segment of the broken batch cut.
#[test]
fn a_torn_end_is_deleted_from_the_last_segment_on_and_counted() {
    let (mut disk, options) = (MemoryDisk::default(), options(SEGMENT));
    let (_, mut finish) = disk.recover(&options).unwrap();
    let (mut next, mut random) = (0, Random(7));
    let mut batch_ends = Vec::new();
    for _ in 0..40 {
        append(&mut disk, &mut finish.log, &mut next, &mut random, 1);
        batch_ends.push(finish.log.end());
    }
    let (segments, end) = (finish.log.segments().collect::<Vec<_>>(), finish.log.end().0);
    assert!(segments.len() > 4);
    let second = segments[1];
    for is_missing in [false, true] {
        let mut disk = disk.clone();
        let expected_at = if is_missing {
            disk.files.remove(&segments[2].file());
            second.end
        } else {
            // The last batch of the second segment is broken.
            *disk.files.get_mut(&second.file()).unwrap().data.last_mut().unwrap() ^= 1;
            *batch_ends.iter().rfind(|end| **end < second.end).unwrap()
        };
        let (mut recovery, ops) = cleaning(&mut disk, &options);
        let deleted = segments[if is_missing { 3 } else { 2 }..].iter().rev();
        let mut expected: Vec<_> = deleted.map(|segment| DiskOp::Delete { file: segment.file() }).collect();
        if !is_missing {
            let length = expected_at.0 - second.first.0;
            assert!(length > 0, "something of the segment is left");
            expected.push(DiskOp::Truncate { file: second.file(), length });
        }
        assert_eq!(ops, expected);

        let is_finished = |recovery: &mut Recovery| {
            std::iter::from_fn(|| recovery.next_item()).any(|item| matches!(item, Recovered::Finished(_)))
        };
        let torn = std::iter::from_fn(|| recovery.next_item()).find_map(|item| match item {
            Recovered::Torn(torn) => Some(torn),
            _ => None,
        });
        let torn = torn.expect("it is told before it is done");
        let dropped_from = if is_missing { segments[3].first } else { expected_at };
        assert_eq!((torn.at, torn.dropped_bytes), (expected_at, end - dropped_from.0));
        for op in ops {
            assert!(!is_finished(&mut recovery), "{op:?} is not done");
            recovery.on_done(disk.run(op)).unwrap();
        }
        assert!(is_finished(&mut recovery));
        let (_, again) = disk.recover(&options).unwrap();
        assert_eq!((again.report.torn, again.log.end()), (None, expected_at));
    }
}

/// Everything here is known to be durable: by the checkpoint, by a later batch, or by a clean stop.
#[test]
fn every_flipped_bit_of_the_synced_area_is_found_and_named() {
    for clean in [false, true] {
        let mut random = Random(6);
        let (mut disk, options) = (MemoryDisk::default(), options(900));
        let (_, mut finish) = disk.recover(&options).unwrap();
        let mut next = 0;
        append(&mut disk, &mut finish.log, &mut next, &mut random, 2);
        checkpoint(&mut disk, &mut finish.log, &mut finish.superblock, 3, usize::MAX);
        let checkpointed = finish.log.end();
        append(&mut disk, &mut finish.log, &mut next, &mut random, 5);
        disk.sync_all(&mut finish.log);
        let synced = finish.log.synced();
        if clean {
            disk.run(finish.superblock.mark_clean(synced));
        } else {
            append(&mut disk, &mut finish.log, &mut next, &mut random, 1);
        }
        let whole = numbers(&disk.clone().recover(&options).unwrap().0);
        for (file, size) in disk.files.iter().map(|(name, file)| (*name, file.data.len())).collect::<Vec<_>>()
        {
            let known = match file {
                FileName::Segment(first) => size.min((synced.0 - first.min(synced.0)) as usize),
                _ => size,
            };
            for bit in 0..known * 8 {
                let mut damaged = disk.clone();
                damaged.files.get_mut(&file).unwrap().data[bit / 8] ^= 1 << (bit % 8);
                match damaged.recover(&options) {
                    Err(RecoveryError::Log(LogError::Corrupt { file: named, offset, .. })) => {
                        assert_eq!(named, file);
                        assert!(offset as usize <= bit / 8);
                    }
                    Err(RecoveryError::Format { file: named, .. }) => assert_eq!(named, file),
                    Err(other) => panic!("{file} bit {bit}: {other}"),
                    Ok((items, finish)) => {
                        // A segment before the checkpoint's end is only read by those who need old entries.
                        let before =
                            |segment: &Segment| segment.file() == file && segment.end <= checkpointed;
                        assert!(finish.log.segments().any(|segment| before(&segment)), "{file} bit {bit}");
                        assert_eq!(numbers(&items), whole);
                        let error = check(&mut damaged, &options).error.expect("the check reads everything");
                        assert!(error.to_string().contains(&file.to_string()), "{error}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_missing_middle_segment_is_damage() {
    let mut random = Random(7);
    let (mut disk, options) = (MemoryDisk::default(), options(500));
    let (_, mut finish) = disk.recover(&options).unwrap();
    let mut next = 0;
    for _ in 0..3 {
        append(&mut disk, &mut finish.log, &mut next, &mut random, 4);
        disk.sync_all(&mut finish.log);
    }
    let segments: Vec<_> = finish.log.segments().collect();
    assert!(segments.len() > 3);
    for (index, segment) in segments[..3].iter().enumerate() {
        let mut damaged = disk.clone();
        damaged.files.remove(&segment.file());
        let error = damaged.recover(&options).unwrap_err();
        assert!(error.to_string().contains("missing"), "{error}");
        let Some(before) = index.checked_sub(1).map(|before| segments[before]) else { continue };
        let RecoveryError::Log(LogError::Corrupt { file, offset, .. }) = error else { panic!("{error}") };
        assert_eq!((file, offset), (before.file(), before.end.0 - before.first.0));
    }
}

/// The segment behind the gap may be the only one to know that what is missing was durable.
#[test]
fn the_last_segment_alone_testifies_to_the_one_before_it() {
    let (mut disk, options) = (MemoryDisk::default(), options(500));
    let (_, mut finish) = disk.recover(&options).unwrap();
    let (mut next, mut random) = (0, Random(7));
    for _ in 0..12 {
        append(&mut disk, &mut finish.log, &mut next, &mut random, 1);
        disk.sync_all(&mut finish.log);
    }
    let segments: Vec<_> = finish.log.segments().collect();
    let [.., before, missing, last] = &segments[..] else { panic!("{segments:?}") };
    disk.files.remove(&missing.file());
    let Err(RecoveryError::Log(LogError::Corrupt { file, offset, reason })) = disk.recover(&options) else {
        panic!("what was durable is missing, and nobody says so")
    };
    assert_eq!((file, offset), (before.file(), before.end.0 - before.first.0));
    assert!(reason.contains(&format!("a later batch, {} byte 0, knows", last.file())), "{reason}");
}

#[test]
fn a_gap_before_the_checkpoint_is_told_by_its_place() {
    let mut random = Random(7);
    let (mut disk, options) = (MemoryDisk::default(), options(500));
    let (_, mut finish) = disk.recover(&options).unwrap();
    append(&mut disk, &mut finish.log, &mut 0, &mut random, 12);
    checkpoint(&mut disk, &mut finish.log, &mut finish.superblock, 3, usize::MAX);
    let segments: Vec<_> = finish.log.segments().collect();
    assert!(segments.len() > 3, "the checkpoint ends in the last of several");
    for pair in segments[..segments.len() - 1].windows(2) {
        let (before, missing) = (pair[0], pair[1]);
        let mut damaged = disk.clone();
        damaged.files.remove(&missing.file());
        match damaged.recover(&options) {
            Err(RecoveryError::Log(LogError::Corrupt { file, offset, .. })) => {
                assert_eq!((file, offset), (before.file(), before.end.0 - before.first.0));
            }
            other => panic!("{:?}", other.map(|(items, _)| items)),
        }
    }
}

/// A crash after each step of a checkpoint leaves the state whole: items and records together say everything.
#[test]
fn a_crash_at_each_step_of_a_checkpoint() {
    for seed in 0..20 {
        for steps in 0..10 {
            let mut random = Random(seed);
            let (mut disk, options) = (MemoryDisk::default(), options(900));
            let (_, mut finish) = disk.recover(&options).unwrap();
            let mut next = 0;
            append(&mut disk, &mut finish.log, &mut next, &mut random, 6);
            checkpoint(&mut disk, &mut finish.log, &mut finish.superblock, next, usize::MAX);
            let first = next;
            append(&mut disk, &mut finish.log, &mut next, &mut random, 6);
            disk.sync_all(&mut finish.log);
            checkpoint(&mut disk, &mut finish.log, &mut finish.superblock, next + 600, steps);
            disk.crash(&mut random);
            let (items, finish) = disk.recover(&options).unwrap();
            let made =
                items.iter().filter(|item| matches!(item, Recovered::CheckpointItem { .. })).count() as u64;
            match finish.report.checkpoint {
                1 => assert_eq!((made, numbers(&items)), (first, (first..next).collect())),
                2 => assert_eq!((made, numbers(&items)), (next + 600, vec![])),
                other => panic!("checkpoint {other}"),
            }
            assert_eq!(made, finish.report.checkpoint_items);
            let left = disk.files.keys().filter(|file| matches!(file, FileName::Checkpoint(_))).count();
            assert_eq!(left, 1, "leftovers are deleted");
        }
    }
}

#[test]
fn segments_below_the_retained_floor_are_leftovers() {
    let mut random = Random(8);
    let (mut disk, options) = (MemoryDisk::default(), options(500));
    let (_, mut finish) = disk.recover(&options).unwrap();
    let mut next = 0;
    append(&mut disk, &mut finish.log, &mut next, &mut random, 12);
    disk.sync_all(&mut finish.log);
    let end = finish.log.end();
    let mut writer = CheckpointWriter::begin(&finish.superblock, end, end);
    writer.finish(end);
    while let Some(op) = writer.take_op() {
        writer.on_done(&disk.run(op), &mut finish.superblock);
    }
    assert!(writer.is_durable());
    let (items, recovered) = disk.recover(&options).unwrap();
    assert!(recovered.report.leftovers_deleted > 2);
    assert_eq!(recovered.log.segments().count(), 1);
    assert_eq!((numbers(&items), recovered.log.end()), (vec![], end));
}

#[test]
fn a_missing_superblock_is_not_a_fresh_directory() {
    let mut random = Random(9);
    let (mut disk, options) = (MemoryDisk::default(), options(500));
    let (_, mut finish) = disk.recover(&options).unwrap();
    append(&mut disk, &mut finish.log, &mut 0, &mut random, 1);
    disk.files.remove(&FileName::Superblock);
    assert!(matches!(disk.recover(&options), Err(RecoveryError::Log(_))));
}

#[test]
fn a_whole_batch_that_holds_no_record_is_told_by_its_place() {
    use crate::layout::batch::BatchHeader;
    let (mut disk, options) = (MemoryDisk::default(), options(500));
    let (_, mut finish) = disk.recover(&options).unwrap();
    append(&mut disk, &mut finish.log, &mut 0, &mut Random(7), 12);
    let (lsn, seal) = (finish.log.end(), options.expected.seal());
    let last = finish.log.segments().last().unwrap();
    assert!(last.first > Lsn(0));
    let body = [1, 0, 0, 0, 0xff];
    let (incarnation, synced, body_checksum) = (Incarnation(1), Lsn(0), seal.checksum(&body));
    let header = BatchHeader { incarnation, lsn, synced, body_bytes: 5, records: 1, body_checksum };
    let data = &mut disk.files.get_mut(&last.file()).unwrap().data;
    data.extend_from_slice(&header.encode(seal));
    data.extend_from_slice(&body);
    match disk.recover(&options) {
        Err(RecoveryError::Log(LogError::Corrupt { file, offset, reason })) => {
            assert_eq!((file, offset), (last.file(), lsn.0 - last.first.0));
            assert!(reason.starts_with("the batch is whole, but: "), "{reason}");
        }
        other => panic!("{:?}", other.map(|(items, _)| items)),
    }
}

#[test]
fn a_superblock_with_something_behind_it_is_damaged() {
    let (mut disk, options) = (MemoryDisk::default(), options(500));
    disk.recover(&options).unwrap();
    disk.files.get_mut(&FileName::Superblock).unwrap().data.push(0);
    let text = disk.recover(&options).unwrap_err().to_string();
    assert_eq!(text, "superblock is damaged at byte 0: 1 bytes after the end of the superblock");
}

#[test]
fn another_partitions_directory_is_refused() {
    let (mut disk, mut options) = (MemoryDisk::default(), options(500));
    disk.recover(&options).unwrap();
    options.expected.partition.0 += 1;
    assert!(matches!(disk.recover(&options), Err(RecoveryError::Foreign { what: "partition", .. })));
}

/// A client's value that looks like a batch header must not turn a torn tail into damage.
#[test]
fn a_forged_header_in_a_value_is_no_testimony() {
    use crate::layout::batch::BatchHeader;
    let (mut disk, options) = (MemoryDisk::default(), options(1 << 20));
    let (_, mut finish) = disk.recover(&options).unwrap();
    let mut entry = vec![0; 10];
    let lsn = Lsn(40 + 4 + 1 + 10);
    let (incarnation, synced) = (Incarnation(1), lsn);
    let forged = BatchHeader { incarnation, lsn, synced, body_bytes: 0, records: 0, body_checksum: 0 };
    entry.extend_from_slice(&forged.encode(Seal(0)));
    entry.extend_from_slice(&[1; 100]);
    finish.log.append_own(&entry);
    disk.append_all(&mut finish.log);
    disk.files.get_mut(&FileName::Segment(0)).unwrap().data.pop();
    assert!(disk.recover(&options).unwrap().1.report.torn.is_some());
}

#[test]
fn batches_larger_than_a_chunk_come_back() {
    let (mut disk, options) = (MemoryDisk::default(), options(1 << 20));
    let (_, mut finish) = disk.recover(&options).unwrap();
    for n in 0..4 {
        finish.log.append(&record(n, 3 << 20));
        finish.log.append(&Record::ClockBound { bound: LogicalTime(n) });
        disk.append_all(&mut finish.log);
    }
    let (items, recovered) = disk.recover(&options).unwrap();
    assert_eq!((items.len(), recovered.log.end()), (9, finish.log.end()));
}

/// `cargo test --release -p ensue-store recovery_speed -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
#[allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]
fn recovery_speed() {
    let (mut disk, options) = (MemoryDisk::default(), options(64 << 20));
    let (_, mut finish) = disk.recover(&options).unwrap();
    for n in 0..1_000_000 {
        finish.log.append(&record(n, 150));
        if n % 100 == 0 {
            disk.append_all(&mut finish.log);
        }
    }
    disk.append_all(&mut finish.log);
    let mut recovery = Recovery::new(options);
    let (begin, mut records) = (std::time::Instant::now(), 0);
    while let Some(op) = recovery.next_op() {
        recovery.on_done(disk.run(op)).unwrap();
        while let Some(item) = recovery.next_item() {
            records += u64::from(matches!(item, Recovered::Record(_)));
        }
    }
    let (took, bytes) = (begin.elapsed(), finish.log.end().0);
    println!("{records} records, {bytes} bytes in {took:?}");
}

/// A log of several segments, synced but for its last batches, beside a witness and without a checkpoint.
fn witnessed(random: &mut Random) -> (MemoryDisk, RecoveryOptions, Lsn, Lsn) {
    let (mut disk, options) = (MemoryDisk::default(), options(SEGMENT));
    let (_, mut finish) = disk.recover(&options).unwrap();
    let seal = finish.superblock.seal();
    disk.run(witness::make(seal, finish.log.synced()));
    disk.run(finish.superblock.mark_running([1; 16], false));
    let mut next = 0;
    append(&mut disk, &mut finish.log, &mut next, random, 30);
    disk.sync_all(&mut finish.log);
    let synced = finish.log.synced();
    disk.run(witness::testify(seal, synced));
    append(&mut disk, &mut finish.log, &mut next, random, 2);
    (disk, options, synced, finish.log.end())
}

fn segments(disk: &MemoryDisk) -> Vec<FileName> {
    disk.files.keys().copied().filter(|file| matches!(file, FileName::Segment(_))).collect()
}

#[test]
fn a_log_that_ends_before_its_witness_is_damaged_wherever_it_was_cut() {
    let (disk, options, synced, end) = witnessed(&mut Random(9));
    assert!(segments(&disk).len() > 3, "several segments");
    let (_, finish) = disk.clone().recover(&options).unwrap();
    assert_eq!((finish.log.synced(), finish.log.end()), (synced, end));
    for file in segments(&disk) {
        let FileName::Segment(first) = file else { continue };
        let whole = disk.files[&file].data.len() as u64;
        let mut gone = disk.clone();
        gone.files.remove(&file);
        let error = gone.recover(&options).expect_err("a deleted segment is missed");
        assert!(matches!(error, RecoveryError::Log(LogError::Corrupt { .. })), "{file}: {error}");
        assert!(!check(&mut gone, &options).is_sound(), "{file}");
        for length in 0..whole {
            let mut cut = disk.clone();
            cut.files.get_mut(&file).unwrap().data.truncate(length as usize);
            let outcome = cut.recover(&options);
            let is_last = first + whole == end.0;
            let expected = first + length < synced.0 || !is_last;
            assert_eq!(outcome.is_err(), expected, "{file} at {length} of {whole}: {outcome:?}");
        }
    }
}

#[test]
fn without_its_witness_the_same_log_would_be_taken_for_whole() {
    let (disk, options, _, _) = witnessed(&mut Random(9));
    let mut old = disk.clone();
    let superblock = Superblock { witnessed: false, ..options.expected.clone() };
    old.run(superblock.replace());
    let newest = *segments(&old).last().unwrap();
    old.files.remove(&newest);
    assert!(old.recover(&options).is_ok());
}

#[test]
fn a_witness_that_is_gone_or_cut_is_damage_and_a_torn_one_says_nothing() {
    let (disk, options, synced, _) = witnessed(&mut Random(3));
    let mut gone = disk.clone();
    gone.files.remove(&FileName::Witness);
    let text = gone.recover(&options).unwrap_err().to_string();
    assert_eq!(text, "witness is damaged at byte 0: the superblock names it, and it is missing");
    let mut cut = disk.clone();
    cut.files.get_mut(&FileName::Witness).unwrap().data.truncate(10);
    let text = cut.recover(&options).unwrap_err().to_string();
    assert_eq!(text, "witness is damaged at byte 0: it has 10 bytes instead of 24");
    for content in [vec![0; WITNESS_BYTES], vec![0xff; WITNESS_BYTES]] {
        let mut torn = disk.clone();
        torn.files.get_mut(&FileName::Witness).unwrap().data = content;
        let (_, finish) = torn.recover(&options).unwrap();
        assert_eq!(finish.report.witnessed, None);
        assert!(finish.log.synced() <= synced);
    }
}
