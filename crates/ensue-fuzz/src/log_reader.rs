//! Bytes of a disk: files as a stranger would write them, or those of a node with some bytes changed.
//!
//! Whatever they are, recovery and check end, and no record comes out of a batch whose checksums are wrong. A node that
//! starts on them serves or says why not.

use crate::client_port::started;
use crate::cursor::Cursor;
use crate::lone::Lone;
use ensue_store::disk::FileName;
use ensue_store::fsck;
use ensue_store::layout::batch::{BATCH_HEADER_BYTES, BatchHeader, Seal};
use ensue_store::log::{LogOptions, Lsn};
use ensue_store::recovery::{Recovered, Recovery, RecoveryOptions};
use ensue_store::superblock::Superblock;
use ensue_store::testing::{Files, carry_out};
use ensue_types::PartitionId;
use std::cell::RefCell;
use std::collections::BTreeMap;

const PARTITION: PartitionId = PartitionId(0);

thread_local! {
    static WRITTEN: RefCell<Option<Files>> = const { RefCell::new(None) };
}

/// The first byte says whether the others are files or changes to the files of a node.
pub fn run(data: &[u8]) {
    let mut cursor = Cursor::new(data);
    let mut files = written();
    if cursor.byte() % 2 == 0 {
        files.retain(|name, _| *name == FileName::Superblock);
        add_files(&mut cursor, &mut files);
    } else {
        change_files(&mut cursor, &mut files);
    }
    let superblock = files.get(&FileName::Superblock).and_then(|bytes| Superblock::decode(bytes).ok());
    if let Some(superblock) = superblock {
        recover(files.clone(), &superblock);
        check(files.clone(), &superblock);
    }
    start(files);
}

/// Files of strangers; batches among them may be given their checksums.
fn add_files(cursor: &mut Cursor<'_>, files: &mut Files) {
    while !cursor.is_empty() {
        let kind = cursor.byte();
        let name = match kind % 4 {
            0 => FileName::Superblock,
            1 => FileName::Checkpoint(u64::from(cursor.byte())),
            _ => FileName::Segment(u64::from(cursor.short())),
        };
        let length = usize::from(cursor.short());
        let mut bytes = cursor.take(length).to_vec();
        if let (true, FileName::Segment(first)) = (kind & 64 != 0, name) {
            seal_batch(&mut bytes, first, files);
        }
        files.insert(name, bytes);
    }
}

/// Puts a right header before a body, so that what is inside is read too.
fn seal_batch(body: &mut Vec<u8>, first: u64, files: &Files) {
    let Some(Ok(superblock)) = files.get(&FileName::Superblock).map(|bytes| Superblock::decode(bytes)) else {
        return;
    };
    let seal = superblock.seal();
    let header = BatchHeader {
        incarnation: superblock.incarnation,
        lsn: Lsn(first),
        synced: Lsn(0),
        body_bytes: body.len() as u32,
        records: 1,
        body_checksum: seal.checksum(body),
    };
    let mut bytes = header.encode(seal).to_vec();
    bytes.append(body);
    *body = bytes;
}

/// Bytes of a node's own files overwritten, cut off or added.
fn change_files(cursor: &mut Cursor<'_>, files: &mut Files) {
    let names: Vec<FileName> = files.keys().copied().collect();
    while !cursor.is_empty() {
        let name = names[usize::from(cursor.byte()) % names.len()];
        let (action, at) = (cursor.byte(), usize::from(cursor.short()));
        let Some(bytes) = files.get_mut(&name) else { continue };
        match action % 4 {
            0 => bytes.truncate(at),
            1 => {
                let length = usize::from(cursor.byte() % 16);
                bytes.extend_from_slice(cursor.take(length));
            }
            2 => {
                files.remove(&name);
            }
            _ => {
                let value = cursor.byte();
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = value;
                }
            }
        }
    }
}

fn recover(mut files: Files, superblock: &Superblock) {
    let before = files.clone();
    let options = RecoveryOptions { log: LogOptions::default(), expected: superblock.clone() };
    let mut recovery = Recovery::new(options);
    while let Some(op) = recovery.next_op() {
        if recovery.on_done(carry_out(&mut files, op)).is_err() {
            return;
        }
        while let Some(item) = recovery.next_item() {
            match item {
                Recovered::Record(record) => check_batch(&before, superblock.seal(), record.batch),
                Recovered::Finished(_) => return,
                _ => {}
            }
        }
    }
}

/// The batch at a place of the log has both of its checksums, by this function's own reading.
fn check_batch(files: &Files, seal: Seal, batch: Lsn) {
    let holds = |first: u64, bytes: &[u8]| (first..first + bytes.len() as u64).contains(&batch.0);
    let segment = files.iter().find_map(|(name, bytes)| match name {
        FileName::Segment(first) if holds(*first, bytes) => Some(&bytes[(batch.0 - first) as usize..]),
        _ => None,
    });
    let bytes = segment.expect("a record comes from a segment");
    let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let checksum = |bytes: &[u8]| {
        let mut hasher = crc32fast::Hasher::new_with_initial(seal.0);
        hasher.update(bytes);
        hasher.finalize()
    };
    assert_eq!(checksum(&bytes[..36]), number(36), "a header with a wrong checksum was believed");
    let body = &bytes[BATCH_HEADER_BYTES..BATCH_HEADER_BYTES + number(24) as usize];
    assert_eq!(checksum(body), number(32), "a batch with a wrong checksum was believed");
}

fn check(mut files: Files, superblock: &Superblock) {
    let options = RecoveryOptions { log: LogOptions::default(), expected: superblock.clone() };
    let before = files.clone();
    let mut fsck = fsck::check(options);
    while let Some(op) = fsck.next_op() {
        fsck.on_done(carry_out(&mut files, op));
    }
    assert!(fsck.report().is_some(), "the check has no end");
    assert_eq!(files, before, "the check changes nothing");
}

fn start(files: Files) {
    let mut lone = Lone::new(1, BTreeMap::from([(PARTITION, files)]));
    lone.connect();
    lone.say(vec![["CAUSAL", "DIGEST"].map(Into::into).to_vec()]);
    lone.await_answers(1);
    assert_eq!(lone.check_replies(), 1, "a node on strange files says nothing");
}

/// The files of a partition of a node that has done some work.
fn written() -> Files {
    WRITTEN.with_borrow_mut(|written| written.get_or_insert_with(write).clone())
}

fn write() -> Files {
    let mut lone = started();
    lone.connect();
    for number in 0..8 {
        for text in
            [format!("SET k{number} value{number}"), format!("MSET a{number} 1 b{number} 2 c{number} 3")]
        {
            lone.say(vec![text.split(' ').map(|word| word.to_owned().into()).collect()]);
        }
    }
    lone.disks.remove(&PARTITION).unwrap_or_default()
}
