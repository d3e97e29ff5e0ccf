//! Tests of the executor on a real directory: every operation, their order, and failures.

use super::*;
use crate::temporary::Temporary;
use ensue_store::log::Lsn;
use ensue_store::superblock::{FORMAT, Superblock};
use ensue_types::{DatacenterId, DirectoryId, Incarnation};
use std::sync::mpsc::{Receiver, channel};

const P: PartitionId = PartitionId(7);
const LOG: FileName = FileName::Segment(0);

struct Bench {
    disk: Disk,
    synced: Receiver<(PartitionId, SyncDone)>,
    folder: Temporary,
}

impl Bench {
    fn new() -> Bench {
        Bench::of(false)
    }

    fn of(is_replicated: bool) -> Bench {
        let folder = Temporary::new();
        let (sender, synced) = channel();
        let syncer = Syncer::start("test-sync".into(), move |partition, done| {
            sender.send((partition, done)).unwrap();
        });
        Bench { disk: Disk::new(folder.path().into(), syncer.unwrap(), is_replicated), synced, folder }
    }

    fn run(&mut self, op: DiskOp) -> Option<DiskDone> {
        self.disk.execute(P, op);
        self.disk.next_done().map(|(_, done)| done)
    }

    fn wait_for_sync(&mut self) {
        let (partition, done) = self.synced.recv().unwrap();
        self.disk.synced(partition, done);
    }
}

fn append(text: &'static str) -> DiskOp {
    DiskOp::Append { file: LOG, bytes: Bytes::from_static(text.as_bytes()) }
}

#[test]
fn a_log_is_appended_read_cut_and_deleted() {
    let mut bench = Bench::new();
    assert_eq!(bench.run(DiskOp::List), Some(DiskDone::Listed { files: vec![] }));
    assert_eq!(bench.run(append("hello ")), Some(DiskDone::Appended { file: LOG }));
    assert_eq!(bench.run(append("world")), Some(DiskDone::Appended { file: LOG }));
    let read = DiskOp::Read { file: LOG, offset: 6, length: 100 };
    let bytes = Bytes::from_static(b"world");
    assert_eq!(bench.run(read), Some(DiskDone::Read { file: LOG, offset: 6, bytes }));
    assert_eq!(bench.run(DiskOp::Truncate { file: LOG, length: 5 }), Some(DiskDone::Truncated { file: LOG }));
    assert_eq!(bench.run(append("!")), Some(DiskDone::Appended { file: LOG }));
    assert_eq!(bench.run(DiskOp::List), Some(DiskDone::Listed { files: vec![(LOG, 6)] }));
    assert_eq!(bench.run(DiskOp::Delete { file: LOG }), Some(DiskDone::Deleted { file: LOG }));
    assert_eq!(bench.run(DiskOp::Delete { file: LOG }), Some(DiskDone::Deleted { file: LOG }));
    assert_eq!(bench.run(DiskOp::List), Some(DiskDone::Listed { files: vec![] }));
}

#[test]
fn a_replaced_file_has_only_the_new_content() {
    let mut bench = Bench::new();
    bench.run(DiskOp::List);
    let file = FileName::Superblock;
    for text in ["first, and long", "second"] {
        let op = DiskOp::Replace { file, bytes: Bytes::from_static(text.as_bytes()) };
        assert_eq!(bench.run(op), Some(DiskDone::Replaced { file }));
        let read = DiskOp::Read { file, offset: 0, length: 4096 };
        let bytes = Bytes::from_static(text.as_bytes());
        assert_eq!(bench.run(read), Some(DiskDone::Read { file, offset: 0, bytes }));
    }
}

#[test]
fn what_must_not_overtake_a_sync_waits_for_it() {
    let mut bench = Bench::new();
    bench.run(DiskOp::List);
    bench.run(append("a"));
    assert_eq!(bench.run(DiskOp::Sync { file: LOG }), None);
    assert_eq!(bench.run(append("b")), Some(DiskDone::Appended { file: LOG }), "appends go on");
    let file = FileName::Superblock;
    assert_eq!(bench.run(DiskOp::Replace { file, bytes: Bytes::from_static(b"mark") }), None);
    assert_eq!(bench.run(append("c")), None, "order is kept behind what waits");
    bench.wait_for_sync();
    let done: Vec<DiskDone> = std::iter::from_fn(|| bench.disk.next_done()).map(|(_, done)| done).collect();
    let expected =
        vec![DiskDone::Synced { file: LOG }, DiskDone::Replaced { file }, DiskDone::Appended { file: LOG }];
    assert_eq!(done, expected);
    let log = bench.folder.path().join("p0007").join(LOG.to_string());
    assert_eq!(fs::read(log).unwrap(), b"abc");
}

#[test]
fn failures_are_answers() {
    let mut bench = Bench::new();
    bench.run(DiskOp::List);
    let read = DiskOp::Read { file: LOG, offset: 0, length: 1 };
    assert!(matches!(bench.run(read), Some(DiskDone::Failed { op: "read", file: Some(LOG), .. })));
    let sync = DiskOp::Sync { file: LOG };
    assert!(matches!(bench.run(sync), Some(DiskDone::Failed { op: "sync", .. })));
    fs::remove_dir_all(bench.folder.path().join("p0007")).unwrap();
    assert!(matches!(bench.run(append("x")), Some(DiskDone::Failed { op: "append", .. })));
}

#[test]
fn many_files_stay_usable_with_few_open() {
    let mut bench = Bench::new();
    bench.run(DiskOp::List);
    for round in 0..2 {
        for number in 0..3 * OPEN_FILES_MAX as u64 {
            let op = DiskOp::Append { file: FileName::Segment(number), bytes: Bytes::from_static(b"x") };
            assert!(matches!(bench.run(op), Some(DiskDone::Appended { .. })), "round {round}");
        }
    }
    assert_eq!(bench.disk.folder(P).open.len(), OPEN_FILES_MAX);
    let Some(DiskDone::Listed { files }) = bench.run(DiskOp::List) else { panic!("no list") };
    assert!(files.iter().all(|&(_, length)| length == 2));
}

/// A device that takes nothing stands for a full disk.
fn full_device_at(bench: &Bench, name: &str) {
    let folder = bench.folder.path().join("p0007");
    std::os::unix::fs::symlink("/dev/full", folder.join(name)).unwrap();
}

#[test]
fn no_room_is_told_from_a_broken_disk() {
    let mut bench = Bench::new();
    bench.run(DiskOp::List);
    full_device_at(&bench, "log-0000000000000000");
    assert!(matches!(bench.run(append("x")), Some(DiskDone::Failed { op: "append", full: true, .. })));
    bench.run(DiskOp::Sync { file: LOG });
    // A character device cannot be synced: that is an error like any other.
    let (partition, done) = bench.synced.recv().unwrap();
    bench.disk.synced(partition, done);
    let done = bench.disk.next_done().map(|(_, done)| done);
    assert!(matches!(done, Some(DiskDone::Failed { op: "sync", full: false, .. })), "{done:?}");
}

/// The journal of a replica would name bytes that are not there.
#[test]
fn nothing_is_written_behind_an_append_that_found_no_room_in_a_replicated_partition() {
    for is_replicated in [false, true] {
        let mut bench = Bench::of(is_replicated);
        bench.run(DiskOp::List);
        full_device_at(&bench, "log-0000000000000000");
        assert!(matches!(bench.run(append("x")), Some(DiskDone::Failed { op: "append", full: true, .. })));
        let file = FileName::Journal(1);
        let behind = || DiskOp::Append { file, bytes: Bytes::from_static(b"x") };
        assert_eq!(bench.run(behind()) == Some(DiskDone::Appended { file }), !is_replicated);
        let Some(DiskDone::Listed { files }) = bench.run(DiskOp::List) else { panic!("no list") };
        assert_eq!(files.iter().any(|(name, _)| *name == file), !is_replicated);
        assert_eq!(bench.run(behind()), Some(DiskDone::Appended { file }), "a start goes on");
    }
}

#[test]
fn a_replacement_without_room_leaves_the_old_content_and_nothing_aside() {
    let mut bench = Bench::new();
    bench.run(DiskOp::List);
    let file = FileName::Superblock;
    bench.run(DiskOp::Replace { file, bytes: Bytes::from_static(b"old") });
    full_device_at(&bench, "superblock.tmp");
    let replace = || DiskOp::Replace { file, bytes: Bytes::from_static(b"new") };
    assert!(matches!(bench.run(replace()), Some(DiskDone::Failed { op: "replace", full: true, .. })));
    assert!(!bench.folder.path().join("p0007/superblock.tmp").exists());
    let read = DiskOp::Read { file, offset: 0, length: 9 };
    let bytes = Bytes::from_static(b"old");
    assert_eq!(bench.run(read), Some(DiskDone::Read { file, offset: 0, bytes }));
    assert_eq!(bench.run(replace()), Some(DiskDone::Replaced { file }), "there is room again");
}

#[test]
fn no_room_after_the_rename_is_a_broken_disk() {
    let error = io::Error::from(io::ErrorKind::StorageFull);
    assert!(is_full(&error) && !is_full(&after_rename(error)));
}

#[test]
fn a_file_written_anew_is_another_file_of_the_same_content() {
    use std::os::unix::fs::MetadataExt;
    let mut bench = Bench::new();
    bench.run(DiskOp::List);
    let text = "x".repeat(REWRITE_BYTES + 7);
    bench.run(DiskOp::Append { file: LOG, bytes: Bytes::from(text.clone()) });
    let path = bench.folder.path().join("p0007/log-0000000000000000");
    let before = fs::metadata(&path).unwrap().ino();
    assert_eq!(bench.run(DiskOp::Rewrite { file: LOG }), Some(DiskDone::Rewritten { file: LOG }));
    assert_ne!(fs::metadata(&path).unwrap().ino(), before);
    assert_eq!(bench.run(append("!")), Some(DiskDone::Appended { file: LOG }), "appends go to the new file");
    assert_eq!(fs::read_to_string(&path).unwrap(), text + "!");
}

const BOOT: [u8; 16] = [3; 16];

fn superblock(checkpoint: u64) -> DiskOp {
    let superblock = Superblock {
        format: FORMAT,
        cluster: 1,
        datacenter: DatacenterId(0),
        partition: P,
        partitions: 8,
        incarnation: Incarnation(1),
        boot_id: BOOT,
        clean: false,
        fsync_always: false,
        witnessed: true,
        synced: Lsn(0),
        checkpoint,
        without: 0,
        directory: DirectoryId(1),
        not_admitted: false,
        filling: false,
    };
    DiskOp::Replace { file: FileName::Superblock, bytes: Bytes::copy_from_slice(&superblock.encode()) }
}

fn kept(bench: &Bench, into: &Temporary, file: FileName) -> Vec<u8> {
    let kept = bench.disk.keep(into.path(), |_| Some(BOOT)).unwrap();
    let name = format!("{}/{file}", folder_name(P));
    let length = kept.iter().find(|kept| kept.name == name).expect("it is kept").length;
    let mut bytes = fs::read(into.path().join(name)).unwrap();
    bytes.truncate(length as usize);
    bytes
}

/// A bench whose partition has a superblock, a witness, and the log `first`.
fn running() -> Bench {
    let mut bench = Bench::new();
    bench.run(DiskOp::List);
    bench.run(superblock(0));
    let file = FileName::Witness;
    bench.run(DiskOp::Replace { file, bytes: Bytes::from_static(b"witness") });
    bench.run(append("first"));
    bench
}

#[test]
fn what_is_kept_is_what_stood_there() {
    let mut bench = running();
    let into = Temporary::new();
    assert_eq!(kept(&bench, &into, LOG), b"first");
    bench.run(append(", and later"));
    bench
        .disk
        .execute(P, DiskOp::Overwrite { file: FileName::Witness, bytes: Bytes::from_static(b"WITNESS") });
    bench.run(DiskOp::Delete { file: LOG });
    let folder = into.path().join(folder_name(P));
    assert_eq!(fs::read(folder.join(FileName::Witness.to_string())).unwrap(), b"witness");
    assert_eq!(&fs::read(folder.join(LOG.to_string())).unwrap()[..5], b"first");
    let superblock =
        Superblock::decode(&fs::read(folder.join(FileName::Superblock.to_string())).unwrap()).unwrap();
    assert!(superblock.clean && superblock.synced == Lsn(5), "as of a stopped partition: {superblock:?}");
}

/// While a sync runs, a superblock that names a new checkpoint waits, and so do appends behind it.
#[test]
fn what_waits_for_a_sync_is_kept_too() {
    let mut bench = running();
    bench.disk.execute(P, DiskOp::Sync { file: LOG });
    bench.disk.execute(P, superblock(9));
    let next = FileName::Segment(1_000);
    bench.disk.execute(P, append(", second"));
    bench.disk.execute(P, DiskOp::Append { file: next, bytes: Bytes::from_static(b"third") });
    let into = Temporary::new();
    let files = bench.disk.keep(into.path(), |_| Some(BOOT)).unwrap();
    let length = |file: FileName| {
        let name = format!("{}/{file}", folder_name(P));
        files.iter().find(|kept| kept.name == name).map(|kept| kept.length)
    };
    assert_eq!((length(LOG), length(next)), (Some(13), Some(5)));
    assert_eq!(length(FileName::Checkpoint(9)), None, "the superblock that counts does not name it yet");
    bench.wait_for_sync();
    let folder = into.path().join(folder_name(P));
    assert_eq!(fs::read(folder.join(LOG.to_string())).unwrap(), b"first, second");
    assert_eq!(fs::read(folder.join(next.to_string())).unwrap(), b"third");
}

#[test]
fn nothing_is_kept_of_a_partition_that_does_not_serve_yet() {
    let bench = running();
    let into = Temporary::new();
    let error = bench.disk.keep(into.path(), |_| Some([4; 16])).unwrap_err();
    assert!(error.to_string().contains("does not serve yet"), "another boot: {error}");
}

#[test]
fn nothing_is_kept_of_a_partition_that_lives_elsewhere() {
    let bench = running();
    let into = Temporary::new();
    assert_eq!(bench.disk.keep(into.path(), |_| None).unwrap(), []);
    assert!(!into.path().join(folder_name(P)).exists());
}
