//! Checks the data directory of a stopped node: every partition's superblock, checkpoint and log. It changes nothing.
//!
//! What may be read is what the node's lock says: while a process serves the data, its files move under the reader.

use crate::directory::{self, Shape, ShapeError};
use bytes::{Bytes, BytesMut};
use ensue_store::disk::{DiskDone, DiskOp, FileName};
use ensue_store::fsck::{Fsck, FsckReport, check};
use ensue_store::layout::decode_entry;
use ensue_store::log::LogOptions;
use ensue_store::recovery::{RecoveryOptions, is_unused};
use ensue_store::superblock::{FORMAT, Superblock};
use ensue_types::{DirectoryId, Incarnation, PartitionId, Position};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What was found in one partition's folder.
#[derive(Clone, Debug)]
pub struct Checked {
    pub datacenter: String,
    pub partition: PartitionId,
    pub report: FsckReport,
}

/// What a check tells, one after another.
#[derive(Clone, Debug)]
pub enum Finding {
    Partition(Box<Checked>),
    /// Partitions hold data in this folder, and the file that says what it is, is missing: nothing in it can be
    /// checked, or served.
    NoShape {
        folder: PathBuf,
    },
}

/// Why nothing could be checked.
#[derive(Debug, Error)]
pub enum FsckError {
    #[error("cannot read {path}: {error}")]
    Machine { path: PathBuf, error: io::Error },
    #[error("{path} holds no data of a node: neither it nor a folder in it has a file `shape`")]
    NoData { path: PathBuf },
    #[error("{path} is in use by another process; stop the node first")]
    Locked { path: PathBuf },
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

/// Checks a node's `dir`, or the folder of one datacenter in it; `found` is told of each partition.
pub fn run(path: &Path, mut found: impl FnMut(Finding)) -> Result<(), FsckError> {
    for folder in datacenters(path)? {
        let _locks = lock(&folder, FlockOperation::NonBlockingLockShared)?;
        if !folder.join(directory::SHAPE).is_file() {
            found(Finding::NoShape { folder });
            continue;
        }
        let shape = directory::read_shape(&folder)?;
        for (partition, path) in partitions(&folder)? {
            let report = check_partition(path, &shape, partition);
            let datacenter = shape.datacenter.clone();
            found(Finding::Partition(Box::new(Checked { datacenter, partition, report })));
        }
    }
    Ok(())
}

/// The folders of datacenters at a path.
pub(crate) fn datacenters(path: &Path) -> Result<Vec<PathBuf>, FsckError> {
    // A folder that has lost its `shape` is one all the same, if partitions hold data in it.
    let is_one = |folder: &Path| {
        folder.join(directory::SHAPE).is_file() || folder.is_dir() && holds_data(folder).unwrap_or(false)
    };
    if is_one(path) {
        return Ok(vec![path.into()]);
    }
    let mut folders = entries(path)?;
    folders.retain(|folder| is_one(folder));
    if folders.is_empty() {
        return Err(FsckError::NoData { path: path.into() });
    }
    Ok(folders)
}

/// What lies in a folder, by name.
fn entries(path: &Path) -> Result<Vec<PathBuf>, FsckError> {
    let list = || -> io::Result<Vec<PathBuf>> {
        fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path())).collect()
    };
    let mut entries = list().map_err(|error| FsckError::Machine { path: path.into(), error })?;
    entries.sort();
    Ok(entries)
}

/// Keeps every node of a datacenter from starting; fails if one runs. No lock is made that was not there.
pub(crate) fn lock(folder: &Path, how: FlockOperation) -> Result<Vec<File>, FsckError> {
    let mut locks = Vec::new();
    for path in entries(folder)?.into_iter().filter(|path| path.extension().is_some_and(|e| e == "lock")) {
        let fails = |error| FsckError::Machine { path: path.clone(), error };
        let file = File::open(&path).map_err(fails)?;
        match flock(&file, how) {
            Ok(()) => locks.push(file),
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(FsckError::Locked { path: folder.into() }),
            Err(error) => return Err(fails(error.into())),
        }
    }
    Ok(locks)
}

/// Whether a partition's folder below this one has been written to.
pub(crate) fn holds_data(folder: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && partition_of(&path).is_some() && !is_unused(&list(&path)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Which partition's folder this is, by its name.
fn partition_of(path: &Path) -> Option<PartitionId> {
    path.file_name()?.to_str()?.strip_prefix('p')?.parse().ok().map(PartitionId)
}

pub(crate) fn partitions(folder: &Path) -> Result<Vec<(PartitionId, PathBuf)>, FsckError> {
    let all = entries(folder)?.into_iter().filter(|path| path.is_dir());
    Ok(all.filter_map(|path| Some((partition_of(&path)?, path))).collect())
}

/// Hands out, as a line of JSON each, what a partition wrote after a position of its own stream, for an operator who
/// gives a directory
/// up that was written to.
pub fn writes_after(
    path: &Path,
    partition: u16,
    position: Position,
    mut found: impl FnMut(String),
) -> Result<(), FsckError> {
    for folder in datacenters(path)? {
        let _locks = lock(&folder, FlockOperation::NonBlockingLockShared)?;
        let shape = directory::read_shape(&folder)?;
        for (number, path) in partitions(&folder)?.into_iter().filter(|(number, _)| number.0 == partition) {
            let mut check = begin(&shape, number).listing_after(position);
            let mut reader = Reader { path, open: None };
            while let Some(op) = check.next_op() {
                check.on_done(reader.carry_out(&op));
                let entries = check.take_listed().into_iter();
                let entries = entries.filter_map(|entry| decode_entry(&entry).ok());
                entries.filter_map(|entry| ensue_node::describe_write(&entry)).for_each(&mut found);
            }
        }
    }
    Ok(())
}

pub(crate) fn check_partition(path: PathBuf, shape: &Shape, partition: PartitionId) -> FsckReport {
    let mut check = begin(shape, partition);
    let mut reader = Reader { path, open: None };
    while let Some(op) = check.next_op() {
        check.on_done(reader.carry_out(&op));
    }
    check.report().cloned().unwrap_or_default()
}

fn begin(shape: &Shape, partition: PartitionId) -> Fsck {
    let expected = Superblock {
        format: FORMAT,
        cluster: shape.cluster,
        datacenter: shape.number,
        partition,
        partitions: shape.partitions,
        incarnation: Incarnation(1),
        boot_id: [0; 16],
        clean: true,
        fsync_always: false,
        witnessed: false,
        synced: Default::default(),
        checkpoint: 0,
        without: 0,
        directory: DirectoryId::UNKNOWN,
        not_admitted: false,
        filling: false,
    };
    check(RecoveryOptions { log: LogOptions::default(), expected })
}

/// Whether these are the files of one of several replicas of a partition.
pub(crate) fn is_replica(files: &[(FileName, u64)]) -> bool {
    files.iter().any(|(file, _)| matches!(file, FileName::Journal(_)))
}

/// The files of a partition's folder.
pub(crate) fn list(folder: &Path) -> io::Result<Vec<(FileName, u64)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if let Some(file) = entry.file_name().to_str().and_then(FileName::parse) {
            files.push((file, entry.metadata()?.len()));
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// The reading half of a disk.
#[derive(Debug)]
struct Reader {
    path: PathBuf,
    open: Option<(FileName, File)>,
}

impl Reader {
    fn carry_out(&mut self, op: &DiskOp) -> DiskDone {
        let (op, file, result) = match *op {
            DiskOp::List => ("list", None, list(&self.path).map(|files| DiskDone::Listed { files })),
            DiskOp::Read { file, offset, length } => {
                let read = self.read(file, offset, length);
                ("read", Some(file), read.map(|bytes| DiskDone::Read { file, offset, bytes }))
            }
            _ => unreachable!("a check only lists and reads"),
        };
        result.unwrap_or_else(|error| DiskDone::Failed { op, file, full: false, reason: error.to_string() })
    }

    fn read(&mut self, name: FileName, offset: u64, length: u32) -> io::Result<Bytes> {
        let file = match &self.open {
            Some((open, file)) if *open == name => file,
            _ => {
                let file = File::open(self.path.join(name.to_string()))?;
                &self.open.insert((name, file)).1
            }
        };
        let rest = file.metadata()?.len().saturating_sub(offset);
        let mut bytes = BytesMut::zeroed(rest.min(u64::from(length)) as usize);
        file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes.freeze())
    }
}

#[cfg(test)]
mod tests;
