//! What survives a kill, what survives a power failure, and the order of operations.

use super::{Disk, SECTOR};
use crate::random::Random;
use crate::world::options::DiskOptions;
use bytes::Bytes;
use ensue_store::disk::{DiskDone, DiskOp, FileName};

const LOG: FileName = FileName::Segment(0);

fn append(text: &[u8]) -> DiskOp {
    DiskOp::Append { file: LOG, bytes: Bytes::copy_from_slice(text) }
}

fn content(disk: &mut Disk, file: FileName) -> Vec<u8> {
    match disk.run(DiskOp::Read { file, offset: 0, length: 1 << 20 }) {
        Some(DiskDone::Read { bytes, .. }) => bytes.to_vec(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_kill_keeps_what_was_carried_out() {
    let mut disk = Disk::default();
    disk.run(append(b"one"));
    disk.kill(5);
    assert_eq!(content(&mut disk, LOG), b"one");
}

#[test]
fn a_power_failure_keeps_what_was_synced_and_any_sectors_after_it() {
    let mut kinds = [0; 3];
    for seed in 0..300 {
        let mut disk = Disk::default();
        disk.run(append(&[7; 1000]));
        assert_eq!(disk.run(DiskOp::Sync { file: LOG }), None);
        disk.run(append(&[8; 2000]));
        assert_eq!(disk.sync_done(LOG), DiskDone::Synced { file: LOG });
        disk.lose_power(9, Some(&mut Random::stream(seed, "disk")));
        let bytes = content(&mut disk, LOG);
        assert_eq!(&bytes[..1000], &[7; 1000]);
        assert!(bytes.len() <= 3000);
        for sector in bytes.get(2 * SECTOR..).unwrap_or_default().chunks(SECTOR) {
            assert!(sector.iter().all(|&b| b == sector[0]) && [0, 8].contains(&sector[0]));
        }
        kinds[0] += u32::from(bytes.len() == 1000);
        kinds[1] += u32::from(bytes.len() == 3000);
        kinds[2] += u32::from(bytes[1000..].contains(&0));
    }
    assert!(kinds.iter().all(|&k| k > 10), "{kinds:?}");
}

#[test]
fn a_sync_that_did_not_end_promises_nothing() {
    let lost = (0..50).any(|seed| {
        let mut disk = Disk::default();
        disk.run(append(b"text"));
        disk.run(DiskOp::Sync { file: LOG });
        disk.lose_power(1, Some(&mut Random::stream(seed, "disk")));
        content(&mut disk, LOG).is_empty()
    });
    assert!(lost);
}

#[test]
fn replace_is_atomic_and_durable_and_waits_for_syncs() {
    let options = DiskOptions { append_us: (1, 3), sync_us: (100, 200) };
    let mut random = Random::stream(1, "disk");
    let mut disk = Disk::default();
    let sync = disk.plan(0, &DiskOp::Sync { file: LOG }, &options, &mut random);
    let passing = disk.plan(0, &append(b"x"), &options, &mut random);
    let replace = DiskOp::Replace { file: FileName::Superblock, bytes: Bytes::from_static(b"s") };
    let waiting = disk.plan(0, &replace, &options, &mut random);
    assert!(passing.run_at < sync.synced_at && waiting.run_at > sync.synced_at);
    disk.run(replace);
    disk.lose_power(1, Some(&mut random));
    assert_eq!(content(&mut disk, FileName::Superblock), b"s");
}

#[test]
fn what_a_failed_sync_dropped_is_read_until_the_power_fails() {
    let mut disk = Disk::default();
    disk.run(append(b"one"));
    disk.fail_next_sync();
    for fails in [true, false] {
        disk.run(DiskOp::Sync { file: LOG });
        let done = disk.sync_done(LOG);
        assert_eq!(matches!(done, DiskDone::Failed { full: false, .. }), fails, "{done:?}");
    }
    assert!(disk.is_wounded());
    assert!(disk.loose_since().is_some());
    disk.kill(1);
    assert!(!disk.is_wounded(), "another process has seen no error");
    assert_eq!(content(&mut disk, LOG), b"one");
    disk.lose_power(2, Some(&mut Random::stream(1, "disk")));
    assert_eq!(content(&mut disk, LOG), [0; 3]);
}

#[test]
fn a_full_disk_takes_a_beginning_and_what_is_given_up_makes_room() {
    let mut disk = Disk::default();
    let reserve = FileName::Reserve;
    disk.run(DiskOp::Append { file: reserve, bytes: Bytes::from_static(&[0; 8]) });
    disk.fill(3, false);
    let full = |done| matches!(done, Some(DiskDone::Failed { op: "append", full: true, .. }));
    assert!(full(disk.run(append(b"long"))));
    assert_eq!(content(&mut disk, LOG), b"lon");
    assert!(full(disk.run(DiskOp::Append { file: FileName::Segment(9), bytes: Bytes::from_static(b"x") })));
    let Some(DiskDone::Listed { files }) = disk.run(DiskOp::List) else { panic!() };
    assert_eq!(files.len(), 2, "a file that does not fit is not made");
    disk.run(DiskOp::Truncate { file: LOG, length: 0 });
    disk.run(DiskOp::Delete { file: reserve });
    assert_eq!(disk.run(append(b"eleven byte")), Some(DiskDone::Appended { file: LOG }));
    assert!(full(disk.run(append(b"x"))) && disk.is_full() && !disk.is_wounded());
    disk.free();
    assert_eq!(disk.run(append(b"x")), Some(DiskDone::Appended { file: LOG }));
}

#[test]
fn a_write_or_a_read_fails_once() {
    let mut disk = Disk::default();
    disk.fail_next_write(500);
    assert!(matches!(disk.run(append(b"long")), Some(DiskDone::Failed { full: false, .. })));
    assert_eq!(content(&mut disk, LOG), b"lo");
    disk.fail_next_read();
    let read = || DiskOp::Read { file: LOG, offset: 0, length: 9 };
    assert!(matches!(disk.run(read()), Some(DiskDone::Failed { op: "read", .. })));
}

#[test]
fn rot_is_one_bit_where_the_log_proves_that_it_was_durable() {
    let mut random = Random::stream(1, "rot");
    let options = DiskOptions { append_us: (1, 3), sync_us: (100, 200) };
    let mut disk = Disk::default();
    let sync = |disk: &mut Disk, text: &[u8]| {
        disk.plan(0, &append(text), &options, &mut Random::stream(1, "plan"));
        disk.run(append(text));
        disk.run(DiskOp::Sync { file: LOG });
        disk.sync_done(LOG);
    };
    sync(&mut disk, b"one");
    assert_eq!(disk.rot(&mut random), None, "nothing tells that this is durable");
    sync(&mut disk, b"two");
    let before = content(&mut disk, LOG);
    let (file, offset) = disk.rot(&mut random).unwrap();
    assert!(file == LOG && offset < 3 && disk.is_wounded());
    let bit = content(&mut disk, LOG)[offset as usize] ^ before[offset as usize];
    assert_eq!(bit.count_ones(), 1);
    disk.restore();
    assert_eq!(content(&mut disk, LOG), before);
    assert!(disk.is_wounded(), "the bit was read, and may be found wrong only now");
    disk.kill(1);
    assert!(!disk.is_wounded());
}

#[test]
fn what_found_no_room_tells_later_what_it_told_at_first() {
    let options = DiskOptions { append_us: (1, 1), sync_us: (1, 1) };
    let mut random = Random::stream(1, "disk");
    let mut disk = Disk::default();
    let mut write = |disk: &mut Disk| {
        disk.plan(0, &append(b"one"), &options, &mut random);
        disk.run(append(b"one"));
    };
    let sync = |disk: &mut Disk| {
        disk.run(DiskOp::Sync { file: LOG });
        disk.sync_done(LOG);
    };
    write(&mut disk);
    disk.fill(0, false);
    write(&mut disk);
    sync(&mut disk);
    disk.free();
    write(&mut disk);
    sync(&mut disk);
    assert_eq!(disk.rot(&mut Random::stream(2, "bit")), None, "it was made before anything was synced");
    write(&mut disk);
    sync(&mut disk);
    assert!(matches!(disk.rot(&mut Random::stream(2, "bit")), Some((LOG, 0..6))));
}
