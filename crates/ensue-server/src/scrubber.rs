//! Reads what lies on the disk of a node that serves, round after round and at a bounded rate, and compares it with its
//! checksums: closed segments of the log, and the checkpoint that counts.
//!
//! A thread of its own that changes nothing and stops nothing: damage is told in the log with its place, once, and
//! counted for as long as it is there. Files come and go under the reader, and a replica may be getting a file just
//! then: what is damaged is looked at again, and counts only if nobody has written to the file meanwhile. Pages that
//! the system holds in memory are dropped first, so that the disk is read and not memory.

use crate::bounds::{SCRUB_PAUSE, SCRUB_READ_BYTES, SCRUB_SECOND_LOOK};
use crate::disk::folder_name;
use crate::fsck;
use crate::log;
use bytes::{Bytes, BytesMut};
use ensue_node::ScrubReport;
use ensue_store::disk::{DiskOp, FileName};
use ensue_store::layout::batch::Seal;
use ensue_store::layout::checkpoint::{CHECKPOINT_HEADER_BYTES, CheckpointPlace};
use ensue_store::log::Lsn;
use ensue_store::scrub::{Scrub, Scrubbed};
use ensue_store::superblock::Superblock;
use ensue_types::PartitionId;
use rustix::fs::{Advice, fadvise};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Scrubber {
    shared: Arc<Shared>,
}

/// What has been read, for whoever shows it.
#[derive(Clone, Debug)]
pub(crate) struct Figures(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    ends: bool,
    report: ScrubReport,
}

/// What is known to be damaged, and the words for it.
type Damage = BTreeMap<(PartitionId, FileName), String>;

struct Reader {
    folder: PathBuf,
    bytes_per_second: u64,
    /// How long what looks damaged is left alone before it is looked at again.
    second_look: Duration,
    shared: Arc<Shared>,
    /// No byte is read before.
    next: Instant,
    damage: Damage,
}

/// A file as it is looked at.
struct Place<'a> {
    folder: &'a Path,
    file: FileName,
    length: u64,
    seal: Seal,
}

impl Scrubber {
    /// Reads the folder of a datacenter, at this rate.
    pub(crate) fn start(folder: &Path, bytes_per_second: u64) -> io::Result<Scrubber> {
        let shared = Arc::new(Shared::default());
        let mut reader = Reader {
            folder: folder.into(),
            bytes_per_second,
            second_look: SCRUB_SECOND_LOOK,
            shared: Arc::clone(&shared),
            next: Instant::now(),
            damage: Damage::default(),
        };
        thread::Builder::new().name("ensue-scrubber".into()).spawn(move || {
            while reader.shared.rest(SCRUB_PAUSE) {
                if reader.round().is_none() {
                    return;
                }
            }
        })?;
        Ok(Scrubber { shared })
    }

    pub(crate) fn figures(&self) -> Figures {
        Figures(Arc::clone(&self.shared))
    }
}

impl Drop for Scrubber {
    fn drop(&mut self) {
        self.shared.lock().ends = true;
        self.shared.changed.notify_all();
    }
}

impl Figures {
    pub(crate) fn report(&self) -> ScrubReport {
        self.0.lock().report.clone()
    }
}

impl Shared {
    /// Waits that long; false if the thread is to end.
    fn rest(&self, time: Duration) -> bool {
        let state = self.lock();
        let waited = self.changed.wait_timeout_while(state, time, |state| !state.ends);
        !waited.unwrap_or_else(PoisonError::into_inner).0.ends
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader {
    /// Reads everything once; nothing if the thread is to end.
    fn round(&mut self) -> Option<()> {
        let mut found = Damage::default();
        // What cannot be listed now is read in the next round.
        for (partition, path) in fsck::partitions(&self.folder).unwrap_or_default() {
            let Ok(files) = files_of(&path) else { continue };
            for (file, length, seal) in files {
                let place = Place { folder: &path, file, length, seal };
                if let Some(words) = self.look(&place)? {
                    self.note(&mut found, &path, (partition, file), words);
                }
            }
            for (file, words) in self.look_for_missing(&path)? {
                self.note(&mut found, &path, (partition, file), words);
            }
        }
        self.damage = found;
        self.show(1);
        Some(())
    }

    fn note(&mut self, found: &mut Damage, folder: &Path, file: (PartitionId, FileName), words: String) {
        if !self.damage.contains_key(&file) {
            tell(folder, file, &words);
        }
        found.insert(file, words.clone());
        self.damage.insert(file, words);
        self.show(0);
    }

    /// What a start would miss, after a second look if need be; nothing if the thread is to end.
    fn look_for_missing(&mut self, path: &Path) -> Option<Missing> {
        // What cannot be read now is read in the next round.
        let first = missing(path).unwrap_or_default();
        if first.is_empty() {
            return Some(first);
        }
        if !self.shared.rest(self.second_look) {
            return None;
        }
        let again = missing(path).unwrap_or_default();
        Some(again.into_iter().filter(|found| first.contains(found)).collect())
    }

    fn show(&self, rounds: u64) {
        let mut damaged: BTreeMap<u16, u64> = BTreeMap::new();
        for (partition, _) in self.damage.keys() {
            *damaged.entry(partition.0).or_default() += 1;
        }
        let mut state = self.shared.lock();
        state.report.rounds += rounds;
        state.report.damaged = damaged.into_iter().collect();
    }

    /// What is wrong with a file, after a second look if need be; the outer nothing if the thread is to end.
    fn look(&mut self, place: &Place<'_>) -> Option<Option<String>> {
        let before = place.written();
        if self.read(place)?.is_none() {
            return Some(None);
        }
        if !self.shared.rest(self.second_look) {
            return None;
        }
        let again = self.read(place)?;
        Some(again.filter(|_| is_left_alone(before, place.written())))
    }

    fn read(&mut self, place: &Place<'_>) -> Option<Option<String>> {
        let Some(mut scrub) = Scrub::new(place.file, place.length, place.seal) else { return Some(None) };
        // It was deleted, as what a checkpoint replaces is.
        let Ok(file) = File::open(place.path()) else { return Some(None) };
        // Without it memory is read where the system has the file there.
        let _ = fadvise(&file, 0, None, Advice::DontNeed);
        loop {
            match scrub.step() {
                Scrubbed::Sound => return Some(None),
                Scrubbed::Damaged { offset, reason } => {
                    return Some(Some(format!("at byte {offset}: {reason}")));
                }
                Scrubbed::Read(DiskOp::Read { offset, length, .. }) => {
                    match self.read_slowly(&file, offset, u64::from(length))? {
                        Ok(bytes) => scrub.on_read(offset, bytes),
                        Err(error) => return Some(Some(format!("at byte {offset}: {error}"))),
                    }
                }
                Scrubbed::Read(_) => unreachable!("a scrub only reads"),
            }
        }
    }

    /// Reads so many bytes, or up to the end of the file, no faster than is allowed.
    fn read_slowly(&mut self, file: &File, offset: u64, length: u64) -> Option<io::Result<Bytes>> {
        let mut bytes = BytesMut::with_capacity(length as usize);
        while (bytes.len() as u64) < length {
            if !self.shared.rest(self.next.saturating_duration_since(Instant::now())) {
                return None;
            }
            let (at, left) = (bytes.len(), length - bytes.len() as u64);
            bytes.resize(at + left.min(SCRUB_READ_BYTES) as usize, 0);
            let count = match file.read_at(&mut bytes[at..], offset + at as u64) {
                Ok(count) => count,
                Err(error) => return Some(Err(error)),
            };
            bytes.truncate(at + count);
            let takes = Duration::from_secs_f64(count as f64 / self.bytes_per_second as f64);
            // Time in which nothing was read is not made up for.
            self.next = self.next.max(Instant::now()) + takes;
            self.shared.lock().report.bytes += count as u64;
            if count == 0 {
                break;
            }
        }
        Some(Ok(bytes.freeze()))
    }
}

impl Place<'_> {
    fn path(&self) -> PathBuf {
        self.folder.join(self.file.to_string())
    }

    /// When it was last written to, if it is there.
    fn written(&self) -> Option<SystemTime> {
        fs::metadata(self.path()).and_then(|metadata| metadata.modified()).ok()
    }
}

/// Files and what is said of them.
type Missing = Vec<(FileName, String)>;

/// Whether nobody has written to a file, or deleted it, between two looks at when that was last done.
fn is_left_alone(before: Option<SystemTime>, after: Option<SystemTime>) -> bool {
    before.is_some() && before == after
}

/// The files of a partition that are not written any more, with the lengths that they must have.
fn files_of(path: &Path) -> io::Result<Vec<(FileName, u64, Seal)>> {
    let superblock = fs::read(path.join(FileName::Superblock.to_string()))?;
    // One that is damaged is told by the next start; without it nothing can be compared.
    let superblock = Superblock::decode(&superblock).map_err(io::Error::other)?;
    let (seal, checkpoint) = (superblock.seal(), FileName::Checkpoint(superblock.checkpoint));
    let files = fsck::list(path)?;
    let mut segments: Vec<u64> = files
        .iter()
        .filter_map(|(file, _)| match file {
            FileName::Segment(first) => Some(*first),
            _ => None,
        })
        .collect();
    segments.sort_unstable();
    let closed = segments.windows(2).map(|pair| (FileName::Segment(pair[0]), pair[1] - pair[0], seal));
    let counted = files.iter().filter(|(file, _)| *file == checkpoint);
    Ok(closed.chain(counted.map(|(file, length)| (*file, *length, seal))).collect())
}

/// Files that a start would miss: the checkpoint that counts, and the segment at which the log begins for it.
fn missing(path: &Path) -> io::Result<Missing> {
    let superblock = fs::read(path.join(FileName::Superblock.to_string()))?;
    let superblock = Superblock::decode(&superblock).map_err(io::Error::other)?;
    let files = fsck::list(path)?;
    let mut log_start = Lsn(0);
    if superblock.checkpoint != 0 {
        let checkpoint = FileName::Checkpoint(superblock.checkpoint);
        if !files.iter().any(|(file, _)| *file == checkpoint) {
            return Ok(vec![(checkpoint, "is missing, and the superblock names it".to_owned())]);
        }
        let mut head = [0; CHECKPOINT_HEADER_BYTES];
        File::open(path.join(checkpoint.to_string()))?.read_exact_at(&mut head, 0)?;
        // One that is damaged is told as that.
        let place = CheckpointPlace::decode(&head, superblock.seal()).map_err(io::Error::other)?;
        log_start = place.log_start;
    }
    let begins = files.iter().filter_map(|(file, _)| match file {
        FileName::Segment(first) => Some(*first),
        _ => None,
    });
    Ok(match begins.min() {
        Some(first) if first > log_start.0 => {
            let words = format!("is the first one, and a start needs the log from place {} on", log_start.0);
            vec![(FileName::Segment(first), words)]
        }
        _ => Vec::new(),
    })
}

fn tell(folder: &Path, (partition, file): (PartitionId, FileName), words: &str) {
    let folder = folder.parent().and_then(Path::file_name).unwrap_or_default();
    log::warning(format_args!(
        "DAMAGE on the disk: {}/{}/{} {words}. The partition goes on serving; its next start would refuse the file. See \
         'Damage that is found while a node serves' in docs/failures.md",
        folder.to_string_lossy(),
        folder_name(partition),
        file,
    ));
}

#[cfg(test)]
mod tests;
