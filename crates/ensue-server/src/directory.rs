//! The data directory of a datacenter's node: `<dir>/<datacenter>/`, with one folder a partition below it.
//!
//! Opening it takes a lock that lasts as long as the value, so that two processes never share a partition, and checks
//! that the data was written for this cluster. Its name is durable before a partition writes. It does not look into the
//! partitions.

use crate::config::Cluster;
use ensue_types::DatacenterId;
use ensue_wire::cluster_hash;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why the data directory cannot be used.
#[derive(Debug, Error)]
pub enum DirectoryError {
    #[error("cannot use the data directory {path}: {error}")]
    Machine { path: PathBuf, error: io::Error },
    #[error("{path} is in use by another process")]
    Locked { path: PathBuf },
    #[error("{path} holds other data: it says '{found}', the configuration says '{expected}'")]
    Other { path: PathBuf, found: String, expected: String },
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
}

pub(crate) const SHAPE: &str = "shape";
/// The names of all datacenters, one a line, in the order of their numbers: for whoever looks at the data without the
/// configuration. Nothing that runs reads it.
const NAMES: &str = "datacenters";

/// Reads the file `shape` of a datacenter's folder.
pub(crate) fn read_shape(folder: &Path) -> Result<Shape, ShapeError> {
    let path = folder.join(SHAPE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => return Err(ShapeError::Machine { path, error }),
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    parse_shape(&words).ok_or_else(|| {
        let found = text.trim().chars().take(200).collect();
        ShapeError::Unknown { path, found }
    })
}

fn parse_shape(words: &[&str]) -> Option<Shape> {
    match *words {
        [
            "ensue",
            "1",
            "cluster",
            cluster,
            "datacenter",
            datacenter,
            "number",
            number,
            "partitions",
            partitions,
        ] => Some(Shape {
            cluster: u128::from_le_bytes(cluster_hash(cluster)),
            datacenter: datacenter.to_owned(),
            number: DatacenterId(number.parse().ok()?),
            partitions: partitions.parse().ok()?,
        }),
        _ => None,
    }
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
    pub fn open(dir: &Path, cluster: &Cluster) -> Result<Directory, DirectoryError> {
        let path = dir.join(&cluster.own_datacenter().name);
        let fails = |error| DirectoryError::Machine { path: path.clone(), error };
        crate::disk::create_directory(&path).map_err(fails)?;
        let lock_path = path.join(format!("node{}.lock", cluster.node));
        let lock = open_lock(&lock_path).map_err(fails)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(DirectoryError::Locked { path }),
            Err(error) => return Err(fails(error.into())),
        }
        check_shape(&path, cluster)?;
        write_names(&path, cluster).map_err(fails)?;
        Ok(Directory { path, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).open(path)
}

/// Writes down at the first start what the data depends on, and compares it at every later one.
fn check_shape(path: &Path, cluster: &Cluster) -> Result<(), DirectoryError> {
    let fails = |error| DirectoryError::Machine { path: path.into(), error };
    let file = path.join(SHAPE);
    let expected = format!(
        "ensue 1 cluster {} datacenter {} number {} partitions {}",
        cluster.name,
        cluster.own_datacenter().name,
        cluster.own.0,
        cluster.partitions
    );
    match fs::read_to_string(&file) {
        Ok(found) if found.trim() == expected => Ok(()),
        Ok(found) => {
            let found = found.trim().chars().take(200).collect();
            Err(DirectoryError::Other { path: path.into(), found, expected })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => write_shape(&file, &expected).map_err(fails),
        Err(error) => Err(fails(error)),
    }
}

fn write_shape(path: &Path, text: &str) -> io::Result<()> {
    crate::disk::replace(path, format!("{text}\n").as_bytes())
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
