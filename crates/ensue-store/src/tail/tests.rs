//! The window in memory, the index, and reading what fell out of the window.

use super::*;
use crate::entry::{Change, Entry};
use crate::layout::encode_entry;
use crate::memory_disk::{MemoryDisk, options};
use crate::recovery::Recovered;
use ensue_types::{Causes, KeyspaceId, PartitionId, Stamp};

fn entry(position: u64) -> Bytes {
    let participants = (0..position as u16 % 50).map(PartitionId).collect();
    let change = Change::Transaction { keyspace: KeyspaceId(0), begun_as: None, participants };
    encode_entry(&Entry {
        position: Position(position),
        stamp: Stamp::ZERO,
        dependencies: Causes::Nothing,
        change,
        previous: Vec::new(),
    })
}

fn tail() -> StreamTail {
    StreamTail::new(TailOptions { memory_bytes: 2000, index_spacing_bytes: 700 })
}

fn fill(
    disk: &mut MemoryDisk,
    log: &mut Log,
    tail: &mut StreamTail,
    positions: std::ops::RangeInclusive<u64>,
) {
    for position in positions {
        log.append_own(&entry(position));
        tail.push(Position(position), log.batch_start(), entry(position));
        if position % 3 == 0 {
            log.append_received(ensue_types::DatacenterId(0), Incarnation(1), &entry(position));
            disk.append_all(log);
        }
    }
    disk.append_all(log);
}

fn read(disk: &mut MemoryDisk, log: &Log, tail: &StreamTail, from: u64) -> Result<Vec<u64>, StreamReadError> {
    read_all(disk, StreamReader::new(log, tail.index(), Position(from)))
}

fn read_all(disk: &mut MemoryDisk, mut reader: StreamReader) -> Result<Vec<u64>, StreamReadError> {
    let mut found = vec![];
    while let Some(op) = reader.next_op() {
        for (position, bytes) in reader.on_done(disk.run(op))? {
            assert_eq!(bytes, entry(position.0));
            found.push(position.0);
        }
    }
    assert!(reader.is_finished());
    Ok(found)
}

#[test]
fn the_window_drops_the_oldest() {
    let mut tail = tail();
    for position in 1..=100 {
        tail.push(Position(position), Lsn(position * 100), entry(position));
    }
    let (first, next) = tail.range();
    assert_eq!(next, Position(101));
    assert!(first > Position(50) && first < Position(100));
    assert_eq!(tail.get(Position(first.0 - 1)), None);
    assert_eq!(tail.get(first), Some(&entry(first.0)));
    assert_eq!(tail.get(Position(100)), Some(&entry(100)));
    assert_eq!(tail.get(next), None);
}

#[test]
fn the_window_holds_what_fits_with_what_each_entry_costs_beside_its_bytes() {
    let of = |bytes: usize| Bytes::from(vec![0; bytes]);
    let mut tail = StreamTail::new(TailOptions { memory_bytes: 300, index_spacing_bytes: 1 });
    for position in 1..=5 {
        tail.push(Position(position), Lsn(position), of(100 - ENTRY_OVERHEAD_BYTES));
        assert_eq!(tail.range(), (Position(position.saturating_sub(2).max(1)), Position(position + 1)));
    }
    // What is larger than all of the window is kept alone: it is to be sent.
    tail.push(Position(6), Lsn(6), of(1_000));
    assert_eq!(tail.range(), (Position(6), Position(7)));
    assert_eq!(tail.get(Position(6)), Some(&of(1_000)));
    tail.push(Position(7), Lsn(7), of(301 - 2 * ENTRY_OVERHEAD_BYTES));
    tail.push(Position(8), Lsn(8), of(0));
    assert_eq!(tail.range(), (Position(8), Position(9)), "one byte more than fits");
    tail.begin_incarnation(Incarnation(2));
    let first = Position::before(Incarnation(2)).next().0;
    for position in first..first + 3 {
        tail.push(Position(position), Lsn(position), of(100 - ENTRY_OVERHEAD_BYTES));
    }
    assert_eq!(tail.range(), (Position(first), Position(first + 3)), "nothing of before is counted");
}

#[test]
fn a_reader_knows_what_comes_next_and_what_it_needs() {
    let (mut disk, options) = (MemoryDisk::default(), options(2500));
    let (_, mut finish) = disk.recover(&options).unwrap();
    let mut tail = tail();
    fill(&mut disk, &mut finish.log, &mut tail, 1..=100);
    let mut reader = StreamReader::new(&finish.log, tail.index(), Position(50));
    assert_eq!(reader.next_position(), Position(50));
    let firsts: Vec<Lsn> = finish.log.segments().map(|segment| segment.first).collect();
    let holds = tail.index().batch_before(Position(50)).unwrap();
    let needed = firsts.iter().rev().find(|first| **first <= holds).copied();
    assert!(needed > Some(firsts[0]) && needed < firsts.last().copied(), "in the middle of the log");
    assert_eq!(reader.needs_from(), needed);
    let op = reader.next_op().expect("there is something to read");
    assert_eq!(reader.next_op(), None, "one read at a time");
    let mut found = reader.on_done(disk.run(op)).unwrap();
    assert!(!reader.is_finished());
    while let Some(op) = reader.next_op() {
        found.extend(reader.on_done(disk.run(op)).unwrap());
        assert_eq!(Some(reader.next_position()), found.last().map(|(position, _)| position.next()));
    }
    assert_eq!((reader.needs_from(), reader.is_finished(), found.len()), (None, true, 51));
}

#[test]
fn old_entries_are_read_from_every_position() {
    let (mut disk, options) = (MemoryDisk::default(), options(2500));
    let (_, mut finish) = disk.recover(&options).unwrap();
    let mut tail = tail();
    fill(&mut disk, &mut finish.log, &mut tail, 1..=200);
    for from in 1..=201 {
        let expected: Vec<u64> = (from..=200).collect();
        assert_eq!(read(&mut disk, &finish.log, &tail, from), Ok(expected));
    }
    // The same after a restart, whose index comes from the scanned records.
    let (items, finish) = disk.recover(&options).unwrap();
    let mut recovered = self::tail();
    for item in &items {
        if let Recovered::Record(record) = item {
            recovered.replay(record).unwrap();
        }
    }
    assert_eq!(recovered.range(), tail.range());
    assert_eq!(recovered.index(), tail.index());
    assert_eq!(read(&mut disk, &finish.log, &recovered, 5).unwrap().len(), 196);
}

/// What is written later may be half a batch by the time it is read.
#[test]
fn a_reader_goes_on_to_where_the_log_ended_when_it_was_made() {
    let (mut disk, options) = (MemoryDisk::default(), options(2500));
    let (_, mut finish) = disk.recover(&options).unwrap();
    let (mut tail, log) = (tail(), &mut finish.log);
    fill(&mut disk, log, &mut tail, 1..=202);
    let readers = [1, 202].map(|from| (from, StreamReader::new(log, tail.index(), Position(from))));
    let segments = log.segments().count();
    fill(&mut disk, log, &mut tail, 203..=203);
    assert_eq!(log.segments().count(), segments, "in the same file");
    for (from, reader) in readers {
        assert_eq!(read_all(&mut disk, reader), Ok((from..=202).collect()));
    }
}

#[test]
fn what_the_log_dropped_is_gone_and_said_so() {
    let (mut disk, options) = (MemoryDisk::default(), options(2500));
    let (_, mut finish) = disk.recover(&options).unwrap();
    let mut tail = tail();
    fill(&mut disk, &mut finish.log, &mut tail, 1..=200);
    disk.sync_all(&mut finish.log);
    let end = finish.log.end();
    finish.log.on_checkpoint(end);
    for op in finish.log.drop_before(Lsn(end.0 / 2)) {
        disk.run(op);
    }
    tail.drop_before(finish.log.first());
    let Err(StreamReadError::Gone { wanted, first }) = read(&mut disk, &finish.log, &tail, 1) else {
        panic!("gone")
    };
    assert_eq!(wanted, Position(1));
    for from in first.0..=200 {
        assert_eq!(read(&mut disk, &finish.log, &tail, from).unwrap().len() as u64, 201 - from);
    }
}

#[test]
fn damage_under_a_reader_is_named() {
    let (mut disk, options) = (MemoryDisk::default(), options(1 << 20));
    let (_, mut finish) = disk.recover(&options).unwrap();
    let mut tail = tail();
    fill(&mut disk, &mut finish.log, &mut tail, 1..=20);
    disk.files.get_mut(&crate::disk::FileName::Segment(0)).unwrap().data[300] ^= 1;
    assert!(matches!(read(&mut disk, &finish.log, &tail, 1), Err(StreamReadError::Log(_))));
}

/// A file that was cut where one of its batches ends has nothing wrong with it but that it is too short.
#[test]
fn a_file_that_ends_early_under_a_reader_is_named() {
    let (mut disk, options) = (MemoryDisk::default(), options(1 << 20));
    let (_, mut finish) = disk.recover(&options).unwrap();
    let (mut tail, log) = (tail(), &mut finish.log);
    fill(&mut disk, log, &mut tail, 1..=20);
    let cut = log.end().0;
    fill(&mut disk, log, &mut tail, 21..=30);
    let file = crate::disk::FileName::Segment(0);
    disk.files.get_mut(&file).unwrap().data.truncate(cut as usize);
    let reason = format!("the file ends, the log was written up to {}", log.end());
    let error = LogError::Corrupt { file, offset: cut, reason };
    assert_eq!(read(&mut disk, log, &tail, 1), Err(StreamReadError::Log(error)));
}

#[test]
fn an_earlier_incarnation_stays_readable() {
    let (mut disk, options) = (MemoryDisk::default(), options(2500));
    let (_, mut finish) = disk.recover(&options).unwrap();
    let mut tail = tail();
    fill(&mut disk, &mut finish.log, &mut tail, 1..=60);
    finish.log.begin_incarnation(Incarnation(2));
    tail.begin_incarnation(Incarnation(2));
    let first = Position::before(Incarnation(2)).next().0;
    fill(&mut disk, &mut finish.log, &mut tail, first..=first + 29);
    assert_eq!(read(&mut disk, &finish.log, &tail, first + 6).unwrap().len(), 24);
    // Reading goes on from the end of one incarnation to the beginning of the next.
    let found = read(&mut disk, &finish.log, &tail, 9).unwrap();
    assert_eq!(found.len(), 52 + 30);
    assert_eq!((found[51], found[52]), (60, first));
}

#[test]
fn entries_of_another_stream_are_read_back() {
    let (mut disk, options) = (MemoryDisk::default(), options(2500));
    let (_, mut finish) = disk.recover(&options).unwrap();
    for position in 1..=40 {
        finish.log.append_own(&entry(900 + position));
        finish.log.append_received(DatacenterId(1), Incarnation(1), &entry(position));
        finish.log.append_received(DatacenterId(2), Incarnation(1), &entry(500 + position));
        disk.append_all(&mut finish.log);
    }
    let wanted = Wanted::Received(DatacenterId(1));
    let mut reader = StreamReader::of(&finish.log, wanted, Lsn(0), Position(7));
    let mut found = vec![];
    while let Some(op) = reader.next_op() {
        found.extend(reader.on_done(disk.run(op)).unwrap().into_iter().map(|(position, _)| position.0));
    }
    assert_eq!(found, (7..=40).collect::<Vec<u64>>());
}

/// Nothing of the incarnation stood in what was read again, so that its first entry came after a restart.
#[test]
fn a_tail_that_begins_within_a_later_incarnation_finds_its_entries() {
    let (mut disk, options) = (MemoryDisk::default(), options(2500));
    let (_, mut finish) = disk.recover(&options).unwrap();
    finish.log.begin_incarnation(Incarnation(2));
    let mut tail = tail();
    let first = Position::before(Incarnation(2)).next().0 + 1;
    fill(&mut disk, &mut finish.log, &mut tail, first..=first + 59);
    assert_eq!(read(&mut disk, &finish.log, &tail, first).unwrap().len(), 60);
    let before = tail.index().batch_before(Position(first)).unwrap();
    assert!(before < tail.index().batch_before(Position(first + 59)).unwrap());
}

#[test]
fn the_index_names_batches_that_are_far_apart() {
    let mut index = StreamIndex::default();
    for (position, batch) in [(1, 0), (2, 99), (3, 100), (2, 300), (3, 300), (4, 150)] {
        index.note(Position(position), Lsn(batch), 100);
    }
    let again = Position::before(Incarnation(2)).next();
    index.note(again, Lsn(151), 100);
    let points: Vec<(u64, u64)> = index.points.iter().map(|(position, lsn)| (position.0, lsn.0)).collect();
    assert_eq!(points, [(1, 0), (3, 100), (again.0, 151)], "a new incarnation is named wherever it begins");
    assert_eq!(index.first(), Some(Position(1)));
    index.drop_before(Lsn(100));
    assert_eq!(index.first(), Some(Position(3)), "the log still holds the batch that begins where it does");
    assert_eq!(index.batch_before(Position(2)), None);
    assert_eq!(index.batch_before(Position(9)), Some(Lsn(100)));
    index.drop_before(Lsn(152));
    assert_eq!(index.first(), None);
}
