//! Disk work of one core's partitions: a [`DiskOp`] arrives, files are touched, a [`DiskDone`] leaves.
//!
//! Everything happens on the core's own thread except syncs, which a helper thread does ([`syncer`]). The order of a
//! partition's operations is kept: while one of its syncs runs, appends, reads and further syncs go on, and whatever
//! must not become durable before the sync (replace, truncate, delete) waits for it, with all that follows. Every
//! failure is reported as such and nothing is retried: what a failure means is the store's decision. But for a
//! replicated partition a failure is the end until its next start: what was asked for behind it rests on it.

mod keep;
pub(crate) mod syncer;

use crate::backup::Kept;
use crate::bounds::OPEN_FILES_MAX;
use bytes::{Bytes, BytesMut};
use ensue_store::disk::{DiskDone, DiskOp, FileName};
use ensue_types::PartitionId;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use syncer::{SyncDone, SyncJob, Syncer};

/// The disk of one core.
#[derive(Debug)]
pub(crate) struct Disk {
    root: PathBuf,
    syncer: Syncer,
    /// The partitions are replicated: after an operation that failed nothing is carried out.
    is_replicated: bool,
    partitions: HashMap<PartitionId, Folder, FixedState>,
    done: VecDeque<(PartitionId, DiskDone)>,
}

/// The folder of one partition.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Most recently used last.
    open: Vec<OpenFile>,
    /// Nothing is carried out before the next start lists the files.
    is_fenced: bool,
    syncs_running: u32,
    /// What waits for the running syncs.
    waiting: VecDeque<DiskOp>,
}

#[derive(Debug)]
struct OpenFile {
    name: FileName,
    file: Arc<File>,
    /// The directory has been synced since the file was opened, so its name will be found after a power cut.
    name_is_durable: bool,
}

impl Disk {
    /// Partitions live in folders of `root`; syncs are done by `syncer`, whose answers come back by [`Disk::synced`].
    pub(crate) fn new(root: PathBuf, syncer: Syncer, is_replicated: bool) -> Disk {
        Disk { root, syncer, is_replicated, partitions: HashMap::default(), done: VecDeque::new() }
    }

    /// Carries out an operation, or begins to. Answers come from [`Disk::next_done`].
    pub(crate) fn execute(&mut self, partition: PartitionId, op: DiskOp) {
        if let DiskOp::Overwrite { file, bytes } = op {
            return self.overwrite(partition, file, &bytes);
        }
        let folder = self.folder(partition);
        let barrier = matches!(
            op,
            DiskOp::Replace { .. } | DiskOp::Rewrite { .. } | DiskOp::Truncate { .. } | DiskOp::Delete { .. }
        );
        if !folder.waiting.is_empty() || (barrier && folder.syncs_running > 0) {
            folder.waiting.push_back(op);
            return;
        }
        self.carry_out(partition, op);
    }

    /// A sync has ended, and what waited for it goes on.
    pub(crate) fn synced(&mut self, partition: PartitionId, sync: SyncDone) {
        let SyncDone { file, result } = sync;
        let folder = self.folder(partition);
        folder.syncs_running = folder.syncs_running.saturating_sub(1);
        self.finish(partition, "sync", Some(file), result.map(|()| DiskDone::Synced { file }));
        while self.folder(partition).syncs_running == 0 {
            let Some(op) = self.folder(partition).waiting.pop_front() else { break };
            self.carry_out(partition, op);
        }
    }

    /// Gives the files of partitions second names below a folder, as they stand after every operation up to now: of
    /// those that run in a boot that is told.
    pub(crate) fn keep(
        &self,
        into: &Path,
        boot_id: impl Fn(PartitionId) -> Option<[u8; 16]>,
    ) -> io::Result<Vec<Kept>> {
        let mut kept = Vec::new();
        for (partition, folder) in &self.partitions {
            if let Some(boot_id) = boot_id(*partition) {
                kept.extend(folder.keep(*partition, boot_id, into)?);
            }
        }
        Ok(kept)
    }

    /// Whether nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        let rests = |folder: &Folder| folder.syncs_running == 0 && folder.waiting.is_empty();
        self.done.is_empty() && self.partitions.values().all(rests)
    }

    /// The next answer, oldest first.
    pub(crate) fn next_done(&mut self) -> Option<(PartitionId, DiskDone)> {
        self.done.pop_front()
    }

    fn folder(&mut self, partition: PartitionId) -> &mut Folder {
        let root = &self.root;
        self.partitions.entry(partition).or_insert_with(|| Folder {
            path: root.join(folder_name(partition)),
            open: Vec::new(),
            is_fenced: false,
            syncs_running: 0,
            waiting: VecDeque::new(),
        })
    }

    fn carry_out(&mut self, partition: PartitionId, op: DiskOp) {
        let folder = self.folder(partition);
        folder.is_fenced &= op != DiskOp::List;
        if folder.is_fenced {
            let error = io::Error::other("an operation before it failed");
            return self.finish(partition, "operation", None, Err(error));
        }
        let (name, file, result) = match op {
            DiskOp::List => ("list", None, folder.list().map(|files| DiskDone::Listed { files })),
            DiskOp::Append { file, bytes } => {
                ("append", Some(file), folder.append(file, &bytes).map(|()| DiskDone::Appended { file }))
            }
            DiskOp::Replace { file, bytes } => {
                ("replace", Some(file), folder.replace(file, &bytes).map(|()| DiskDone::Replaced { file }))
            }
            DiskOp::Rewrite { file } => {
                ("rewrite", Some(file), folder.rewrite(file).map(|()| DiskDone::Rewritten { file }))
            }
            DiskOp::Overwrite { .. } => unreachable!("it waits for nothing"),
            DiskOp::Read { file, offset, length } => {
                let read = folder.read(file, offset, length);
                ("read", Some(file), read.map(|bytes| DiskDone::Read { file, offset, bytes }))
            }
            DiskOp::Truncate { file, length } => {
                ("truncate", Some(file), folder.truncate(file, length).map(|()| DiskDone::Truncated { file }))
            }
            DiskOp::Delete { file } => {
                ("delete", Some(file), folder.delete(file).map(|()| DiskDone::Deleted { file }))
            }
            DiskOp::Sync { file } => match folder.begin_sync(partition, file) {
                Ok(job) => {
                    folder.syncs_running += 1;
                    self.syncer.submit(job);
                    return;
                }
                Err(error) => ("sync", Some(file), Err(error)),
            },
        };
        self.finish(partition, name, file, result);
    }

    /// Neither waits for what waits for a sync, nor is answered: what it says was durable before.
    fn overwrite(&mut self, partition: PartitionId, file: FileName, bytes: &Bytes) {
        if let Err(error) = self.folder(partition).overwrite(file, bytes) {
            self.finish(partition, "overwrite", Some(file), Err(error));
        }
    }

    fn finish(
        &mut self,
        partition: PartitionId,
        op: &'static str,
        file: Option<FileName>,
        result: io::Result<DiskDone>,
    ) {
        // The journal of a replica says what stands in the files: it may not go on behind bytes that are missing.
        let is_replicated = self.is_replicated;
        self.folder(partition).is_fenced |=
            is_replicated && result.is_err() && !matches!(op, "list" | "read");
        let done = result.unwrap_or_else(|error| {
            let full = matches!(op, "append" | "overwrite" | "replace" | "rewrite") && is_full(&error);
            DiskDone::Failed { op, file, full, reason: error.to_string() }
        });
        self.done.push_back((partition, done));
    }
}

impl Folder {
    fn list(&self) -> io::Result<Vec<(FileName, u64)>> {
        fs::create_dir_all(&self.path)?;
        sync_parent(&self.path)?;
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if let Some(file) = FileName::parse(name) {
                files.push((file, entry.metadata()?.len()));
            } else if name.ends_with(TEMPORARY) {
                fs::remove_file(entry.path())?;
            }
        }
        files.sort_unstable();
        Ok(files)
    }

    fn append(&mut self, name: FileName, bytes: &Bytes) -> io::Result<()> {
        let mut file: &File = &self.open(name, true)?.file;
        file.write_all(bytes)
    }

    fn overwrite(&mut self, name: FileName, bytes: &Bytes) -> io::Result<()> {
        self.open(name, false)?.file.write_all_at(bytes, 0)
    }

    fn replace(&mut self, name: FileName, bytes: &[u8]) -> io::Result<()> {
        self.close(name);
        replace(&self.path_of(name), bytes)
    }

    fn rewrite(&mut self, name: FileName) -> io::Result<()> {
        self.close(name);
        let path = self.path_of(name);
        let mut old = File::open(&path)?;
        // Read and written through memory: a file system that shares blocks between copies would share the bad ones.
        replace_with(&path, |new| {
            let mut buffer = vec![0; REWRITE_BYTES];
            loop {
                match old.read(&mut buffer)? {
                    0 => return Ok(()),
                    length => new.write_all(&buffer[..length])?,
                }
            }
        })
    }

    fn read(&mut self, name: FileName, offset: u64, length: u32) -> io::Result<Bytes> {
        let file = self.open(name, false)?.file.clone();
        let rest = file.metadata()?.len().saturating_sub(offset);
        let length = rest.min(u64::from(length)) as usize;
        let mut bytes = BytesMut::zeroed(length);
        file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes.freeze())
    }

    fn truncate(&mut self, name: FileName, length: u64) -> io::Result<()> {
        let file = &self.open(name, false)?.file;
        file.set_len(length)?;
        file.sync_all()
    }

    fn delete(&mut self, name: FileName) -> io::Result<()> {
        self.close(name);
        let path = self.path_of(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(()) => sync_parent(&path),
        }
    }

    fn begin_sync(&mut self, partition: PartitionId, name: FileName) -> io::Result<SyncJob> {
        let folder = self.path.clone();
        let open = self.open(name, false)?;
        let sync_folder = (!open.name_is_durable).then_some(folder);
        open.name_is_durable = true;
        Ok(SyncJob { partition, name, file: Arc::clone(&open.file), sync_folder })
    }

    /// The open file of this name; few are kept open, the longest unused one is closed for a new one.
    fn open(&mut self, name: FileName, create: bool) -> io::Result<&mut OpenFile> {
        let known = match self.open.iter().position(|open| open.name == name) {
            Some(at) => self.open.remove(at),
            None => {
                let path = self.path_of(name);
                let mut options = OpenOptions::new();
                // A file that is open for appending is written at its end, wherever it is to be written.
                if name == FileName::Witness {
                    options.write(true)
                } else {
                    options.append(true)
                };
                let file = options.read(true).create(create).open(path)?;
                if self.open.len() == OPEN_FILES_MAX {
                    self.open.remove(0);
                }
                OpenFile { name, file: Arc::new(file), name_is_durable: false }
            }
        };
        self.open.push(known);
        Ok(self.open.last_mut().expect("pushed above"))
    }

    fn close(&mut self, name: FileName) {
        self.open.retain(|open| open.name != name);
    }

    fn path_of(&self, name: FileName) -> PathBuf {
        self.path.join(name.to_string())
    }
}

/// Whether an error says that there is no room, for anybody or for this user.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// What a file is called until it is complete.
const TEMPORARY: &str = ".tmp";

/// A partition's folder in that of its datacenter.
pub(crate) fn folder_name(partition: PartitionId) -> String {
    format!("p{:04}", partition.0)
}

/// The partition whose folder has this name.
pub(crate) fn partition_named(name: &str) -> Option<PartitionId> {
    let partition = name.strip_prefix('p').and_then(|number| number.parse().ok()).map(PartitionId);
    partition.filter(|partition| folder_name(*partition) == name)
}

/// Bytes of a file that are rewritten at a time.
const REWRITE_BYTES: usize = 1 << 20;

/// Replaces a file as a whole: after a crash it has the old content or the new one.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(path, |file| file.write_all(bytes))
}

fn replace_with(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(TEMPORARY);
    let mut file = File::create(&temporary)?;
    let write = write(&mut file).and_then(|()| file.sync_all());
    if let Err(error) = write.and_then(|()| fs::rename(&temporary, path)) {
        // What was written of it takes room that may be needed; the first error is the one to tell.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    sync_parent(path).map_err(after_rename)
}

/// An error of any kind after the rename is one of a broken disk: the new content stands under the name, so not all is
/// as before.
fn after_rename(error: io::Error) -> io::Error {
    io::Error::other(error)
}

/// Makes a directory and those above it that are missing, so that its name will be found after a power cut.
pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
    let is_missing = |above: &&Path| !above.as_os_str().is_empty() && !above.exists();
    let missing: Vec<&Path> = path.ancestors().take_while(is_missing).collect();
    fs::create_dir_all(path)?;
    missing.into_iter().try_for_each(sync_parent)
}

/// Makes the names in the directory that holds this path durable.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

#[cfg(test)]
mod tests;
