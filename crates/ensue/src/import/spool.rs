//! What the source has sent and the target does not have yet, in files: however long the import of the snapshot takes,
//! the source need not keep its stream for it.
//!
//! `snapshot.rdb` is the snapshot, and `stream-OFFSET` the stream from that offset on, in files of some megabytes,
//! which are removed once they are applied. `times` says when which part of the stream arrived, in steps of a second.
//! A thread that receives appends, and one that applies reads behind it. Only the user of the process reads the folder.

use anyhow::{Context, bail};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A file of the stream is ended when it has so many bytes.
const SEGMENT_BYTES: u64 = 64 << 20;

pub(crate) struct Spool {
    folder: PathBuf,
    progress: Mutex<Progress>,
    changed: Condvar,
    times: Mutex<Times>,
}

/// When the stream arrived.
#[derive(Debug, Default)]
struct Times {
    file: Option<File>,
    /// From which offset on it arrived at which time, in milliseconds since 1970, the earliest first.
    begun: Vec<(u64, u64)>,
}

/// A pair of a file of times.
const TIME_BYTES: usize = 16;
/// What arrives within it has one time.
const TIME_STEP_MS: u64 = 1_000;

/// What the two threads tell each other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// The name of the stream; empty before the first contact.
    pub(crate) id: String,
    /// The offset of the snapshot.
    pub(crate) base: u64,
    /// Bytes of the snapshot that have arrived, and how many there are if it is known.
    pub(crate) snapshot_bytes: u64,
    pub(crate) snapshot_total: Option<u64>,
    pub(crate) has_snapshot: bool,
    /// The offset up to which the stream has arrived, and up to which it is applied.
    pub(crate) received: u64,
    pub(crate) applied: u64,
    /// The source cannot be reached at present.
    pub(crate) is_cut: bool,
    /// Why nothing more will come.
    pub(crate) failure: Option<String>,
    pub(crate) is_stopped: bool,
}

/// Appends to the stream.
pub(crate) struct Appender {
    file: File,
    bytes: u64,
}

impl Spool {
    /// The one in this folder, which is made if it is not there.
    pub(crate) fn open(folder: &Path, progress: Progress) -> anyhow::Result<Spool> {
        let cannot = || format!("cannot make {}", folder.display());
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let found = fs::symlink_metadata(folder).with_context(cannot)?;
                if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
                    bail!("{} is there already, and no folder of this user", folder.display());
                }
            }
            made => made.with_context(cannot)?,
        }
        Spool::begin(folder.into(), progress)
    }

    /// One in a folder of its own for what is temporary: nobody else can have made it.
    pub(crate) fn temporary(progress: Progress) -> anyhow::Result<Spool> {
        loop {
            let name = format!("ensue-import-{:016x}", RandomState::new().hash_one(std::process::id()));
            let folder = std::env::temp_dir().join(name);
            match DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => return Spool::begin(folder, progress),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_context(|| format!("cannot make {}", folder.display())),
            }
        }
    }

    fn begin(folder: PathBuf, progress: Progress) -> anyhow::Result<Spool> {
        let (progress, times) = (Mutex::new(progress), Mutex::default());
        let spool = Spool { folder, progress, changed: Condvar::new(), times };
        spool.read_times()?;
        if spool.progress().has_snapshot {
            let received = spool.found_end(spool.progress().applied)?;
            spool.change(|progress| progress.received = received);
        } else {
            spool.clear()?;
        }
        Ok(spool)
    }

    pub(crate) fn progress(&self) -> Progress {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.locked());
        self.changed.notify_all();
    }

    /// Waits for a change, but not for long.
    pub(crate) fn wait(&self, longest: Duration) {
        drop(self.changed.wait_timeout(self.locked(), longest));
    }

    pub(crate) fn snapshot(&self) -> PathBuf {
        self.folder.join("snapshot.rdb")
    }

    pub(crate) fn clear(&self) -> anyhow::Result<()> {
        for (_, path) in self.segments()? {
            fs::remove_file(path)?;
        }
        if self.snapshot().exists() {
            fs::remove_file(self.snapshot())?;
        }
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        *times = Times::default();
        if self.times_path().exists() {
            fs::remove_file(self.times_path())?;
        }
        Ok(())
    }

    fn times_path(&self) -> PathBuf {
        self.folder.join("times")
    }

    /// What the file of times says; an end that was not written whole says nothing.
    fn read_times(&self) -> anyhow::Result<()> {
        let bytes = match fs::read(self.times_path()) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            read => read.with_context(|| format!("cannot read {}", self.times_path().display()))?,
        };
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("it has 8 bytes"));
        let pairs = bytes.chunks_exact(TIME_BYTES).map(|pair| (number(&pair[..8]), number(&pair[8..])));
        self.times.lock().unwrap_or_else(PoisonError::into_inner).begun = pairs.collect();
        Ok(())
    }

    /// What arrives from this offset on arrives now.
    fn note_time(&self, offset: u64, now_ms: u64) -> anyhow::Result<()> {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        if times.begun.last().is_some_and(|(_, last_ms)| now_ms.saturating_sub(*last_ms) < TIME_STEP_MS) {
            return Ok(());
        }
        times.begun.push((offset, now_ms));
        if times.file.is_none() {
            // Whole pairs are written anew: the last one may not be.
            let mut file =
                private(self.times_path(), OpenOptions::new().create(true).write(true).truncate(true))?;
            for (offset, ms) in &times.begun {
                file.write_all(&[offset.to_le_bytes(), ms.to_le_bytes()].concat())?;
            }
            times.file = Some(file);
        } else if let Some(file) = &mut times.file {
            file.write_all(&[offset.to_le_bytes(), now_ms.to_le_bytes()].concat())?;
        }
        Ok(())
    }

    /// When the byte before this offset arrived; now where nothing is known of it.
    pub(crate) fn received_at(&self, offset: u64) -> u64 {
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let index = times.begun.partition_point(|(begin, _)| *begin < offset);
        index.checked_sub(1).map_or_else(now_ms, |index| times.begun[index].1)
    }

    pub(crate) fn create_snapshot(&self) -> anyhow::Result<File> {
        private(self.snapshot(), OpenOptions::new().create(true).write(true).truncate(true))
    }

    /// Removes everything.
    pub(crate) fn remove(&self) -> anyhow::Result<()> {
        self.clear()?;
        fs::remove_dir(&self.folder).with_context(|| format!("cannot remove {}", self.folder.display()))
    }

    /// The files of the stream, each with the offset before its first byte, in their order.
    fn segments(&self) -> anyhow::Result<Vec<(u64, PathBuf)>> {
        let mut segments = Vec::new();
        for entry in
            fs::read_dir(&self.folder).with_context(|| format!("cannot read {}", self.folder.display()))?
        {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if let Some(offset) = name.strip_prefix("stream-").and_then(|digits| digits.parse().ok()) {
                segments.push((offset, path));
            }
        }
        segments.sort();
        Ok(segments)
    }

    /// The offset up to which files follow each other from this one on.
    fn found_end(&self, applied: u64) -> anyhow::Result<u64> {
        let mut end = applied;
        for (begin, path) in self.segments()? {
            let length = fs::metadata(&path)?.len();
            if begin > end {
                fs::remove_file(path)?;
            } else {
                end = end.max(begin + length);
            }
        }
        Ok(end)
    }

    pub(crate) fn appender(&self) -> anyhow::Result<Appender> {
        let path = self.folder.join(format!("stream-{:020}", self.progress().received));
        Ok(Appender { file: private(path, OpenOptions::new().create(true).append(true))?, bytes: 0 })
    }

    pub(crate) fn append(&self, appender: &mut Appender, bytes: &[u8]) -> anyhow::Result<()> {
        self.note_time(self.progress().received, now_ms())?;
        appender.file.write_all(bytes).context("cannot keep the stream of the source")?;
        appender.bytes += bytes.len() as u64;
        self.change(|progress| progress.received += bytes.len() as u64);
        if appender.bytes >= SEGMENT_BYTES {
            *appender = self.appender()?;
        }
        Ok(())
    }

    /// Some bytes of the stream from this offset on, none if they have not arrived.
    pub(crate) fn read(&self, offset: u64, most: usize) -> anyhow::Result<Vec<u8>> {
        let received = self.progress().received;
        if received <= offset {
            return Ok(Vec::new());
        }
        for (begin, path) in self.segments()?.into_iter().rev().filter(|(begin, _)| *begin <= offset) {
            let length = fs::metadata(&path)?.len();
            if begin + length <= offset {
                continue;
            }
            let mut file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
            file.seek(SeekFrom::Start(offset - begin))?;
            let mut bytes = Vec::new();
            file.take((most as u64).min(received - offset)).read_to_end(&mut bytes)?;
            return Ok(bytes);
        }
        anyhow::bail!("the stream of the source is no longer kept from offset {offset} on")
    }

    /// What is before this offset is of no more use.
    pub(crate) fn applied(&self, offset: u64) -> anyhow::Result<()> {
        self.change(|progress| progress.applied = offset);
        {
            let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
            let past = times.begun.partition_point(|(begin, _)| *begin <= offset).saturating_sub(1);
            times.begun.drain(..past);
        }
        let segments = self.segments()?;
        for pair in segments.windows(2) {
            if pair[1].0 <= offset {
                fs::remove_file(&pair[0].1)?;
            }
        }
        Ok(())
    }
}

/// A file that only this user reads.
fn private(path: PathBuf, options: &mut OpenOptions) -> anyhow::Result<File> {
    options.mode(0o600).open(&path).with_context(|| format!("cannot write {}", path.display()))
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}

#[cfg(test)]
mod tests;
