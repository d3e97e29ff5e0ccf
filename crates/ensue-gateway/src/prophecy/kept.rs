//! What a replica keeps in its directory: `blocks`, all that were decided, and `records`, the inputs of the height that
//! is being decided. In front of each entry stand its length, a checksum of this, and one of the entry. They hold all
//! requests of clients, so that nobody but their owner may read them.
//!
//! On an entry that is not whole: cut it off if it is the last one, which a process or a machine did not finish. In the
//! middle it is damage: without what follows, this replica would vote again where its votes are out, so it does not
//! start. Damage to the last entry cannot be told from an entry that was not finished.

use crate::limits::BLOCKS_BYTES_MAX;
use ensue_byzantine::message::MESSAGE_BYTES_MAX;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::Path;

const HEADER: usize = 16;
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
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let open = |name| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600).open(directory.join(name))
        };
        let lock = open("lock")?;
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| io::Error::other("another process uses this directory"))?;
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
    bytes.extend_from_slice(&sum::<4>(&bytes));
    bytes.extend_from_slice(&sum::<8>(entry));
    bytes.extend_from_slice(entry);
    bytes
}

fn sum<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut sum = [0; N];
    sum.copy_from_slice(&blake3::hash(bytes).as_bytes()[..N]);
    sum
}

/// Calls `found` with each whole entry and where it ends, and cuts off one that is not whole at the end.
fn read_all(file: &mut File, mut found: impl FnMut(u64, Vec<u8>)) -> io::Result<()> {
    let length = file.metadata()?.len();
    let mut end = 0;
    let mut reader = BufReader::with_capacity(1 << 16, &mut *file);
    while length - end >= HEADER as u64 {
        let mut header = [0; HEADER];
        reader.read_exact(&mut header)?;
        if header == [0; HEADER] {
            if is_empty(&mut reader)? {
                break;
            }
            return Err(damaged(end));
        }
        let (size, sums) = header.split_at(4);
        let size = u32::from_le_bytes([size[0], size[1], size[2], size[3]]) as usize;
        if sums[..4] != sum::<4>(&header[..4]) || size > ENTRY_MAX {
            return Err(damaged(end));
        }
        let next = end + (HEADER + size) as u64;
        if next > length {
            break;
        }
        let mut entry = vec![0; size];
        reader.read_exact(&mut entry)?;
        if sum::<8>(&entry) != sums[4..] {
            if next == length {
                break;
            }
            return Err(damaged(end));
        }
        end = next;
        found(end, entry);
    }
    file.set_len(end)?;
    file.seek(SeekFrom::Start(end))?;
    Ok(())
}

/// Whether the rest is what a file system leaves of bytes that it did not write.
fn is_empty(rest: &mut impl io::BufRead) -> io::Result<bool> {
    loop {
        let bytes = rest.fill_buf()?;
        if bytes.is_empty() {
            return Ok(true);
        }
        if bytes.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        let count = bytes.len();
        rest.consume(count);
    }
}

fn damaged(place: u64) -> io::Error {
    let what = format!(
        "the entry at byte {place} is damaged, and others follow it: this replica has lost what it kept"
    );
    io::Error::new(io::ErrorKind::InvalidData, what)
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

    #[test]
    fn damage_in_the_middle_cuts_nothing_off() {
        let directory = std::env::temp_dir().join(format!("ensue-damaged-{}", std::process::id()));
        let (mut kept, _) = Kept::open(&directory).unwrap();
        kept.decide(b"one").unwrap();
        for record in [b"first", b"secon", b"third"] {
            kept.log(record).unwrap();
        }
        kept.sync().unwrap();
        drop(kept);
        let path = directory.join("records");
        let whole = std::fs::read(&path).unwrap();
        let one = HEADER + 5;
        // A length, the sum of one, the sum of an entry, and an entry; each also of an entry that is long then.
        for place in [0, 1, 3, 4, 8, HEADER] {
            let mut bytes = whole.clone();
            bytes[one + place] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            assert!(Kept::open(&directory).is_err(), "byte {place} of the second of three");
            assert_eq!(std::fs::read(&path).unwrap(), bytes, "nothing is lost by a look");
        }
        for rest in [&[0; 40][..], &[0; 3], &whole[..HEADER + 2], &[&whole[..HEADER], b"xxxxx"].concat()] {
            std::fs::write(&path, [&whole, rest].concat()).unwrap();
            assert_eq!(Kept::open(&directory).unwrap().1.len(), 3, "{rest:?}");
            assert_eq!(std::fs::read(&path).unwrap(), whole);
        }
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn nobody_else_may_read_what_clients_wrote() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = std::env::temp_dir().join(format!("ensue-private-{}", std::process::id()));
        drop(Kept::open(&directory).unwrap());
        for name in [".", "lock", "blocks", "records"] {
            let mode = std::fs::metadata(directory.join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{name}: {mode:o}");
        }
        std::fs::remove_dir_all(directory).unwrap();
    }
}
