//! Damage on a disk is found while nothing is stopped, told once, and gone when the file is.

use super::*;
use crate::temporary::Temporary;
use ensue_store::checkpoint::{CheckpointWriter, Items};
use ensue_store::layout::batch::BatchHeader;
use ensue_store::log::Lsn;
use ensue_types::{DatacenterId, DirectoryId, Incarnation};
use std::io::Write;

const P: PartitionId = PartitionId(3);

fn superblock() -> Superblock {
    Superblock {
        format: ensue_store::superblock::FORMAT,
        cluster: 7,
        datacenter: DatacenterId(0),
        partition: P,
        partitions: 4,
        incarnation: Incarnation(1),
        boot_id: [9; 16],
        clean: false,
        fsync_always: false,
        witnessed: true,
        synced: Lsn(0),
        checkpoint: 0,
        without: 0,
        directory: DirectoryId(1),
        not_admitted: false,
        filling: false,
    }
}

/// A batch of one record at a place of the log.
fn batch(seal: Seal, lsn: u64) -> Vec<u8> {
    let body = b"\x05\0\0\0hello";
    let header = BatchHeader {
        incarnation: Incarnation(1),
        lsn: Lsn(lsn),
        synced: Lsn(0),
        body_bytes: body.len() as u32,
        records: 1,
        body_checksum: seal.checksum(body),
    };
    [&header.encode(seal)[..], body].concat()
}

fn append(path: &Path, file: FileName, bytes: &[u8]) {
    let file = File::options().append(true).create(true).open(path.join(file.to_string()));
    file.unwrap().write_all(bytes).unwrap();
}

/// A partition with two segments and a checkpoint, and where the second segment begins.
fn written(folder: &Temporary) -> (PathBuf, u64) {
    let path = folder.path().join(folder_name(P));
    fs::create_dir_all(&path).unwrap();
    let mut superblock = superblock();
    let seal = superblock.seal();
    let first = [batch(seal, 0), batch(seal, 49)].concat();
    let next = first.len() as u64;
    append(&path, FileName::Segment(0), &first);
    append(&path, FileName::Segment(next), &batch(seal, next));
    let mut writer = CheckpointWriter::begin(&superblock, Lsn(0), Lsn(0));
    writer.item(1, &[5; 300_000]);
    writer.finish(Lsn(0));
    while let Some(op) = writer.take_op() {
        if let DiskOp::Append { file, bytes } = op {
            append(&path, file, &bytes);
        }
    }
    superblock.checkpoint = 1;
    fs::write(path.join(FileName::Superblock.to_string()), superblock.encode()).unwrap();
    (path, next)
}

fn reader(folder: &Temporary) -> Reader {
    Reader {
        folder: folder.path().into(),
        bytes_per_second: 1 << 40,
        second_look: Duration::ZERO,
        shared: Arc::default(),
        next: Instant::now(),
        damage: Damage::default(),
    }
}

fn flip(path: &Path, file: FileName, at: usize) {
    let path = path.join(file.to_string());
    let mut bytes = fs::read(&path).unwrap();
    bytes[at] ^= 1;
    fs::write(&path, bytes).unwrap();
}

#[test]
fn damage_is_found_for_as_long_as_it_is_there() {
    let folder = Temporary::new();
    let (path, next) = written(&folder);
    let mut reader = reader(&folder);
    let found = |reader: &mut Reader| {
        reader.round().expect("it goes on");
        let report = reader.shared.lock().report.clone();
        (report.rounds, report.damaged)
    };
    assert_eq!(found(&mut reader), (1, vec![]));
    let read = reader.shared.lock().report.bytes;
    assert!(read > 300_000, "{read} bytes");
    flip(&path, FileName::Segment(0), 60);
    flip(&path, FileName::Checkpoint(1), 1_000);
    assert_eq!(found(&mut reader), (2, vec![(3, 2)]));
    let words: Vec<&str> = reader.damage.values().map(String::as_str).collect();
    assert!(words.iter().any(|words| words.starts_with("at byte 49: checksum of the batch")), "{words:?}");
    assert!(words.iter().any(|words| words.contains("checksum of the block")), "{words:?}");
    flip(&path, FileName::Checkpoint(1), 1_000);
    fs::write(path.join(FileName::Segment(0).to_string()), b"").unwrap();
    assert_eq!(found(&mut reader), (3, vec![(3, 1)]), "it is too short");
    fs::remove_file(path.join(FileName::Segment(0).to_string())).unwrap();
    assert_eq!(found(&mut reader), (4, vec![(3, 1)]), "a start needs the log from there on");
    append(
        &path,
        FileName::Segment(0),
        &[batch(superblock().seal(), 0), batch(superblock().seal(), 49)].concat(),
    );
    // What is written now may be anything: only a start knows where it ends.
    flip(&path, FileName::Segment(next), 45);
    assert_eq!(found(&mut reader), (5, vec![]));
    fs::remove_file(path.join(FileName::Checkpoint(1).to_string())).unwrap();
    assert_eq!(found(&mut reader), (6, vec![(3, 1)]));
    assert!(reader.damage.values().all(|words| words.contains("superblock names it")), "{:?}", reader.damage);
}

#[test]
fn it_ends_when_it_is_told_to() {
    let folder = Temporary::new();
    let (path, _) = written(&folder);
    flip(&path, FileName::Segment(0), 60);
    let mut reader = reader(&folder);
    let seal = superblock().seal();
    let place = Place { folder: &path, file: FileName::Segment(0), length: 98, seal };
    assert!(reader.look(&place).expect("it goes on").is_some());
    reader.shared.lock().ends = true;
    assert_eq!(reader.look(&place), None, "the thread is to end");
}

#[test]
fn a_file_that_is_written_to_meanwhile_is_not_damaged() {
    let now = SystemTime::now();
    assert!(is_left_alone(Some(now), Some(now)));
    assert!(!is_left_alone(Some(now), Some(now + Duration::from_millis(1))), "a replica is getting it");
    assert!(!is_left_alone(Some(now), None), "it was deleted");
    assert!(!is_left_alone(None, None));
}
