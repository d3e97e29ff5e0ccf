//! Batches, segments and the three marks of the log.

use super::*;
use crate::memory_disk::MemoryDisk;
use ensue_types::LogicalTime;

fn empty(segment_bytes: u64) -> Log {
    Log::new(LogOptions { segment_bytes }, Seal(9), LogState::default())
}

fn record(n: u64) -> Record {
    Record::ClockBound { bound: LogicalTime(n) }
}

#[test]
fn one_batch_a_turn() {
    let mut log = empty(1 << 20);
    let first = log.append(&record(1));
    let second = log.append_own(b"not looked into");
    assert_eq!(first, Lsn(40 + 4 + 9));
    assert_eq!(second, Lsn(first.0 + 4 + 1 + 15));
    assert_eq!(log.end(), second);
    let Some(DiskOp::Append { file, bytes }) = log.take_append() else { panic!("an append") };
    assert_eq!((file, bytes.len() as u64), (FileName::Segment(0), second.0));
    assert_eq!(log.take_append(), None);
    assert_eq!(log.written(), Lsn(0));
    assert_eq!(log.on_appended(file), second);
    assert_eq!(log.written(), second);
}

#[test]
fn segments_are_synced_in_order_and_one_sync_at_a_time() {
    let mut log = empty(100);
    for n in 0..6 {
        log.append(&record(n));
        let Some(DiskOp::Append { file, .. }) = log.take_append() else { panic!("an append") };
        log.on_appended(file);
    }
    assert_eq!(log.segments().count(), 3);
    for segment in log.segments().collect::<Vec<_>>() {
        assert_eq!(log.take_sync(), Some(DiskOp::Sync { file: segment.file() }));
        assert_eq!(log.take_sync(), None);
        assert_eq!(log.on_synced(segment.file()), segment.end);
    }
    assert_eq!(log.take_sync(), None);
    assert_eq!(log.synced(), log.end());
}

#[test]
fn appends_after_a_sync_began_are_not_covered_by_it() {
    let mut log = empty(1 << 20);
    log.append(&record(0));
    log.take_append();
    assert_eq!((log.take_sync(), log.is_sync_held_back()), (None, true), "its file may not exist");
    log.on_appended(FileName::Segment(0));
    let covered = log.append(&record(1));
    log.take_append();
    let sync = log.take_sync();
    assert!(sync.is_some() && !log.is_sync_held_back());
    log.append(&record(2));
    assert_eq!(log.take_append(), None, "one append at a time");
    assert!(log.is_held_back());
    log.on_appended(FileName::Segment(0));
    assert!(log.take_append().is_some() && !log.is_held_back());
    log.on_appended(FileName::Segment(0));
    assert_eq!(log.on_synced(FileName::Segment(0)), covered);
    assert_eq!(log.take_sync(), sync);
}

#[test]
fn segments_are_dropped_only_below_checkpoint_and_sync() {
    let mut disk = MemoryDisk::default();
    let mut log = empty(100);
    for n in 0..6 {
        log.append(&record(n));
        disk.append_all(&mut log);
    }
    let end = log.end();
    assert_eq!(log.drop_before(end), vec![]);
    log.on_checkpoint(end);
    assert_eq!(log.drop_before(end), vec![]);
    disk.sync_all(&mut log);
    assert_eq!(log.drop_before(end).len(), 2);
    assert_eq!(log.segments().count(), 1);
}

#[test]
fn a_new_incarnation_begins_a_batch() {
    let mut log = empty(1 << 20);
    log.append(&record(1));
    log.begin_incarnation(Incarnation(4));
    log.append(&record(2));
    let mut incarnations = vec![];
    let mut lsn = Lsn(0);
    while let Some(DiskOp::Append { file, bytes }) = log.take_append() {
        log.on_appended(file);
        let header = BatchHeader::decode(&bytes, Seal(9), lsn).unwrap();
        incarnations.push(header.incarnation.0);
        lsn = header.end();
    }
    assert_eq!(incarnations, [0, 4]);
}

#[test]
fn an_append_that_found_no_room_is_cut_off_and_tried_again_as_it_was() {
    let mut log = empty(60);
    let first = log.append(&record(1));
    let Some(DiskOp::Append { file, .. }) = log.take_append() else { panic!("an append") };
    log.on_appended(file);
    log.append(&record(2));
    let again = log.take_append();
    log.append(&record(3));
    // The sync was ordered behind the append that fails, and proves nothing about it.
    let sync = log.take_sync();
    let cut = log.on_append_refused(FileName::Segment(0));
    assert_eq!(cut, DiskOp::Truncate { file: FileName::Segment(0), length: first.0 });
    assert!(log.is_refused() && log.take_append().is_none() && sync.is_some());
    assert_eq!((log.on_synced(FileName::Segment(0)), log.written()), (first, first));
    assert_eq!(log.take_sync(), None);
    assert_eq!(log.retry_append(), again);
    let full = log.on_appended(FileName::Segment(0));
    let Some(DiskOp::Sync { file }) = log.take_sync() else { panic!("a sync") };
    log.on_synced(file);
    // A segment that could not even be begun is not kept, nor was its file to be synced.
    assert!(
        matches!(log.take_append(), Some(DiskOp::Append { file: FileName::Segment(at), .. }) if at == full.0)
    );
    assert_eq!(log.take_sync(), None);
    assert_eq!(
        log.on_append_refused(FileName::Segment(full.0)),
        DiskOp::Delete { file: FileName::Segment(full.0) }
    );
    assert_eq!(log.segments().count(), 1);
    assert!(log.retry_append().is_some());
    assert_eq!(log.on_appended(FileName::Segment(full.0)), log.end());
    assert_eq!(log.segments().count(), 2);
    assert!(log.is_sync_held_back() && log.take_sync().is_some());
}
