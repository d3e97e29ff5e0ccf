//! What a replica keeps in its directory: `blocks`, all that were decided, and `records`, the inputs of the height that
//! is being decided. Each entry has its length and a checksum in front; an entry that is not whole is the last one, of
//! a process that ended while it wrote, and is cut off.

use crate::limits::BLOCKS_BYTES_MAX;
use ensue_byzantine::message::MESSAGE_BYTES_MAX;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

const HEADER: usize = 12;
const ENTRY_MAX: usize = 2 * MESSAGE_BYTES_MAX;

pub(super) struct Kept {
    blocks: File,
    /// Where each block begins, and where the next one will.
    places: Vec<u64>,
    records: File,
    is_dirty: bool,
    /// It is locked while this process uses the directory.
    _lock: File,
}

impl Kept {
    /// Opens a directory, or makes it. Answers the records too; blocks are read one by one.
    pub(super) fn open(directory: &Path) -> io::Result<(Kept, Vec<Vec<u8>>)> {
        std::fs::create_dir_all(directory)?;
        let lock = File::create(directory.join("lock"))?;
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| io::Error::other("another process uses this directory"))?;
        let open = |name| {
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(directory.join(name))
        };
        let (mut blocks, mut records) = (open("blocks")?, open("records")?);
        let mut places = vec![0];
        read_all(&mut blocks, |end, _| places.push(end))?;
        let mut kept = Vec::new();
        read_all(&mut records, |_, entry| kept.push(entry))?;
        blocks.sync_data()?;
        File::open(directory)?.sync_all()?;
        Ok((Kept { blocks, places, records, is_dirty: false, _lock: lock }, kept))
    }

    /// How many blocks there are: the last one has this height.
    pub(super) fn blocks(&self) -> u64 {
        self.places.len() as u64 - 1
    }

    /// The block of a height, from 1.
    pub(super) fn block(&self, height: u64) -> io::Result<Option<Vec<u8>>> {
        let Some(place) = usize::try_from(height).ok().and_then(|height| height.checked_sub(1)) else {
            return Ok(None);
        };
        let (Some(begin), Some(end)) = (self.places.get(place), self.places.get(place + 1)) else {
            return Ok(None);
        };
        let mut entry = vec![0; usize::try_from(end - begin).map_err(io::Error::other)? - HEADER];
        self.blocks.read_exact_at(&mut entry, begin + HEADER as u64)?;
        Ok(Some(entry))
    }

    /// Keeps a record, which is durable after [`Kept::sync`].
    pub(super) fn log(&mut self, record: &[u8]) -> io::Result<()> {
        self.is_dirty = true;
        self.records.write_all(&framed(record))
    }

    /// What was logged is durable now.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if self.is_dirty {
            self.records.sync_data()?;
            self.is_dirty = false;
        }
        Ok(())
    }

    /// Keeps the next block, at once for good. Records are of no use after it.
    pub(super) fn decide(&mut self, block: &[u8]) -> io::Result<()> {
        let begin = self.places[self.places.len() - 1];
        let entry = framed(block);
        let end = begin + entry.len() as u64;
        if end > BLOCKS_BYTES_MAX {
            return Err(io::Error::other("the blocks have reached their bound"));
        }
        self.blocks.write_all_at(&entry, begin)?;
        self.blocks.sync_data()?;
        self.places.push(end);
        self.records.set_len(0)?;
        self.records.seek(SeekFrom::Start(0))?;
        self.is_dirty = false;
        Ok(())
    }
}

fn framed(entry: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(entry.len()).expect("no entry has 4 GiB").to_le_bytes().to_vec();
    bytes.extend_from_slice(&sum(entry));
    bytes.extend_from_slice(entry);
    bytes
}

fn sum(entry: &[u8]) -> [u8; 8] {
    let mut sum = [0; 8];
    sum.copy_from_slice(&blake3::hash(entry).as_bytes()[..8]);
    sum
}

/// Calls `found` with each whole entry and where it ends, and cuts off the rest.
fn read_all(file: &mut File, mut found: impl FnMut(u64, Vec<u8>)) -> io::Result<()> {
    let mut end = 0;
    let mut reader = BufReader::with_capacity(1 << 16, &mut *file);
    loop {
        let mut header = [0; HEADER];
        if reader.read_exact(&mut header).is_err() {
            break;
        }
        let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
        if length > ENTRY_MAX {
            break;
        }
        let mut entry = vec![0; length];
        if reader.read_exact(&mut entry).is_err() || sum(&entry) != header[4..] {
            break;
        }
        end += (HEADER + length) as u64;
        found(end, entry);
    }
    file.set_len(end)?;
    file.seek(SeekFrom::Start(end))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_read_again_and_a_torn_end_is_cut_off() {
        let directory = std::env::temp_dir().join(format!("ensue-kept-{}", std::process::id()));
        let (mut kept, records) = Kept::open(&directory).unwrap();
        assert!(records.is_empty());
        assert!(Kept::open(&directory).is_err(), "one process at a time");
        kept.log(b"old").unwrap();
        kept.decide(b"one").unwrap();
        kept.decide(b"two!").unwrap();
        kept.log(b"a").unwrap();
        kept.log(b"b").unwrap();
        kept.sync().unwrap();
        drop(kept);
        for name in ["blocks", "records"] {
            let mut file = OpenOptions::new().append(true).open(directory.join(name)).unwrap();
            file.write_all(&framed(b"torn")[..14]).unwrap();
        }
        let (mut kept, records) = Kept::open(&directory).unwrap();
        assert_eq!(records, [b"a", b"b"], "records of a decided height are gone, and so is the torn one");
        assert_eq!(kept.blocks(), 2);
        assert_eq!(kept.block(1).unwrap().unwrap(), b"one");
        assert_eq!((kept.block(0).unwrap(), kept.block(3).unwrap()), (None, None));
        kept.decide(b"three").unwrap();
        drop(kept);
        let (kept, records) = Kept::open(&directory).unwrap();
        assert_eq!((kept.blocks(), records.len()), (3, 0));
        assert_eq!(kept.block(3).unwrap().unwrap(), b"three");
        std::fs::remove_dir_all(directory).unwrap();
    }
}
