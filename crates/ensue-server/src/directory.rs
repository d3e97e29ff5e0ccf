//! The data directory of a datacenter's node: `<dir>/<datacenter>/`, with one folder a partition below it.
//!
//! Opening it takes a lock that lasts as long as the value, so that two processes never share a partition, and checks
//! by
//! the file `shape` that the data was written under this configuration, as far as it must be. That file is durable
//! before a
//! partition writes. It does not look into the partitions, but for whether they hold anything.

mod checks;

use crate::config::Cluster;
use crate::disk::{folder_name, partition_named};
use crate::fsck;
use crate::settings::PARTITIONS;
use checks::{check_others, check_shape, is_new};
use ensue_store::disk::FileName;
use ensue_types::{DatacenterId, PartitionId};
use ensue_wire::{Scope, Settings, cluster_hash};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why the data directory cannot be used. The words say what to do.
#[derive(Debug, Error)]
pub enum DirectoryError {
    #[error("cannot use the data directory {path}: {error}")]
    Machine { path: PathBuf, error: io::Error },
    #[error("{path} is in use by another process")]
    Locked { path: PathBuf },
    #[error(transparent)]
    Shape(#[from] ShapeError),
    #[error("{path} holds data of another shape: {reason}")]
    Other { path: PathBuf, reason: String },
    #[error(
        "{found} holds data of this cluster and {why}, and {path} holds nothing: a datacenter keeps its name; \
         put it back in the `node` lines and `self`, or move {found} elsewhere to begin with nothing"
    )]
    Renamed { path: PathBuf, found: PathBuf, why: String },
    #[error(
        "the file {path} is missing, and partitions beside it hold data: it says what the data is, so without it nothing \
         is served. Put it back from a backup, or from another node of this datacenter; if the configuration is certainly \
         the one that the data was written with, `ensue recover DIR --shape CONFIG` writes it anew"
    )]
    NoShape { path: PathBuf },
    #[error("{path}: `ensue recover --clock` was interrupted here: run it again before the node starts")]
    Recovering { path: PathBuf },
}

/// Why the file `shape` says nothing.
#[derive(Debug, Error)]
pub enum ShapeError {
    #[error("cannot read {path}: {error}")]
    Machine { path: PathBuf, error: io::Error },
    #[error("{path} is not what a node writes: '{found}'")]
    Unknown { path: PathBuf, found: String },
}

/// What the data of a directory depends on, by its file `shape`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The hash of the cluster's name.
    pub(crate) cluster: u128,
    pub(crate) datacenter: String,
    pub(crate) number: DatacenterId,
    pub(crate) partitions: u16,
    /// Everything that it says.
    settings: Settings,
}

pub(crate) const SHAPE: &str = "shape";
/// The first line of the file; a setting a line follows.
const SHAPE_TITLE: &str = "ensue 2";
const CLUSTER: &str = "cluster-name";
const DATACENTER: &str = "datacenter";
const NUMBER: &str = "number";
/// Stands there while the folders of partitions change their names (`recover/clock.rs`).
pub(crate) const RECOVERING: &str = "clock-recovery";
/// Second names of files that a backup is made of (`backup.rs`). What an earlier process left is removed.
pub(crate) const KEPT: &str = "kept";
/// The names of all datacenters, one a line, in the order of their numbers: for whoever looks at the data without the
/// configuration. Nothing that runs reads it.
pub(crate) const NAMES: &str = "datacenters";

/// Reads the file `shape` of a datacenter's folder.
pub(crate) fn read_shape(folder: &Path) -> Result<Shape, ShapeError> {
    let path = folder.join(SHAPE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => return Err(ShapeError::Machine { path, error }),
    };
    parse_shape(&text).ok_or_else(|| {
        let found = text.trim().chars().take(200).map(|c| if c.is_control() { ' ' } else { c }).collect();
        ShapeError::Unknown { path, found }
    })
}

fn parse_shape(text: &str) -> Option<Shape> {
    let settings = Settings::parse(text.strip_prefix(SHAPE_TITLE)?.strip_prefix('\n')?)?;
    Some(Shape {
        cluster: u128::from_le_bytes(cluster_hash(settings.value(CLUSTER)?)),
        datacenter: settings.value(DATACENTER)?.to_owned(),
        number: DatacenterId(settings.value(NUMBER)?.parse().ok()?),
        partitions: settings.value(PARTITIONS)?.parse().ok()?,
        settings,
    })
}

/// What the file says of a node with these settings.
fn shape_of(cluster: &Cluster, settings: &Settings) -> Settings {
    let mut all = Settings::default();
    all.add(Scope::Cluster, CLUSTER, &cluster.name);
    all.add(Scope::Datacenter, DATACENTER, &cluster.own_datacenter().name);
    all.add(Scope::Datacenter, NUMBER, cluster.own.0.to_string());
    all.extend(settings);
    all
}

/// The names of all datacenters, as the server that opened the folder last knew them; nothing if it wrote none.
pub(crate) fn read_names(folder: &Path) -> io::Result<Option<Vec<String>>> {
    match fs::read_to_string(folder.join(NAMES)) {
        Ok(text) => Ok(Some(text.lines().map(str::to_owned).collect())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A locked data directory.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// Holds the lock until it is closed, also when the process is killed.
    _lock: File,
}

impl Directory {
    pub fn open(dir: &Path, cluster: &Cluster, settings: &Settings) -> Result<Directory, DirectoryError> {
        let path = dir.join(&cluster.own_datacenter().name);
        let fails = |error| DirectoryError::Machine { path: path.clone(), error };
        let is_new = is_new(&path)?;
        if is_new {
            check_others(dir, &path, cluster)?;
        }
        crate::disk::create_directory(&path).map_err(fails)?;
        let lock_path = path.join(format!("node{}.lock", cluster.node));
        let lock = open_lock(&lock_path).map_err(fails)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(DirectoryError::Locked { path }),
            Err(error) => return Err(fails(error.into())),
        }
        if path.join(RECOVERING).exists() {
            return Err(DirectoryError::Recovering { path });
        }
        if !is_new {
            let found = read_shape(&path)?;
            check_shape(&path, cluster, &found.settings, &shape_of(cluster, settings))?;
        }
        match fs::remove_dir_all(path.join(KEPT)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fails(error)),
            _ => {}
        }
        write_shape(&path, &shape_text(cluster, settings)).map_err(fails)?;
        write_names(&path, cluster).map_err(fails)?;
        Ok(Directory { path, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The partitions of which a replica has written something here. What cannot be read is not taken for nothing:
    /// others rest on what this node says that it has.
    pub(crate) fn replicas(&self) -> Result<Vec<PartitionId>, DirectoryError> {
        let fails = |error| DirectoryError::Machine { path: self.path.clone(), error };
        let mut partitions = Vec::new();
        for folder in fs::read_dir(&self.path).map_err(fails)? {
            let name = folder.map_err(fails)?.file_name();
            let Some(partition) = name.to_str().and_then(partition_named) else { continue };
            let files = fsck::list(&self.path.join(folder_name(partition))).map_err(fails)?;
            if files.iter().any(|(file, _)| matches!(file, FileName::Journal(_))) {
                partitions.push(partition);
            }
        }
        partitions.sort_unstable();
        Ok(partitions)
    }
}

fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).open(path)
}

/// The whole file, of a node with these settings.
pub(crate) fn shape_text(cluster: &Cluster, settings: &Settings) -> String {
    format!("{SHAPE_TITLE}\n{}", shape_of(cluster, settings).text())
}

fn write_shape(folder: &Path, text: &str) -> io::Result<()> {
    let path = folder.join(SHAPE);
    if fs::read(&path).is_ok_and(|found| found == text.as_bytes()) {
        return Ok(());
    }
    crate::disk::replace(&path, text.as_bytes())
}

fn write_names(path: &Path, cluster: &Cluster) -> io::Result<()> {
    let names: String =
        cluster.datacenters.iter().map(|datacenter| format!("{}\n", datacenter.name)).collect();
    let file = path.join(NAMES);
    if fs::read(&file).is_ok_and(|found| found == names.as_bytes()) {
        return Ok(());
    }
    crate::disk::replace(&file, names.as_bytes())
}

#[cfg(test)]
mod tests;
