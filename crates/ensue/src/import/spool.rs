//! What the source has sent and the target does not have yet, in files: however long the import of the snapshot takes,
//! the source need not keep its stream for it.
//!
//! `snapshot.rdb` is the snapshot, and `stream-OFFSET` the stream from that offset on, in files of some megabytes,
//! which are removed once they are applied. A thread that receives appends, and one that applies reads behind it.

use anyhow::Context;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A file of the stream is ended when it has so many bytes.
const SEGMENT_BYTES: u64 = 64 << 20;

pub(crate) struct Spool {
    folder: PathBuf,
    progress: Mutex<Progress>,
    changed: Condvar,
}

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
    pub(crate) fn open(folder: &Path, progress: Progress) -> anyhow::Result<Spool> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let spool = Spool { folder: folder.into(), progress: Mutex::new(progress), changed: Condvar::new() };
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
        Ok(())
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
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Appender { file, bytes: 0 })
    }

    pub(crate) fn append(&self, appender: &mut Appender, bytes: &[u8]) -> anyhow::Result<()> {
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
        let segments = self.segments()?;
        for pair in segments.windows(2) {
            if pair[1].0 <= offset {
                fs::remove_file(&pair[0].1)?;
            }
        }
        Ok(())
    }
}
