//! Tells the partitions of a stopped node which datacenters have failed permanently.
//!
//! A partition that lost the tail of its log waits for every other datacenter before it serves: one that does not
//! answer may hold what would be declared lost. Whom the operator gives up is written into the partition's superblock.
//! It counts for the next start with a lost tail, and is forgotten when that one has caught up. Nothing else is
//! changed.

pub mod clock;
pub mod rebuild;

use crate::config::{Config, ConfigError};
use crate::directory;
use crate::disk;
use crate::fsck::{self, FsckError};
use crate::settings::settings;
use ensue_store::disk::FileName;
use ensue_store::layout::LayoutError;
use ensue_store::recovery::is_unused;
use ensue_store::superblock::Superblock;
use ensue_types::PartitionId;
use ensue_wire::cluster_hash;
use rustix::fs::FlockOperation;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why nothing was changed.
#[derive(Debug, Error)]
pub enum RecoverError {
    #[error(transparent)]
    Directory(#[from] FsckError),
    #[error(
        "{path} does not say which datacenters there are: it was never opened by a server of this version"
    )]
    NoNames { path: PathBuf },
    #[error("there is no datacenter {name}, but {}", .known.join(", "))]
    Unknown { name: String, known: Vec<String> },
    #[error("{name} is the datacenter of this data: it cannot do without itself")]
    Own { name: String },
    #[error("there is no datacenter beside {name} that could have its data: put it back from a backup")]
    Alone { name: String },
    #[error("{path}: {error}")]
    Superblock { path: PathBuf, error: LayoutError },
    #[error("{path} has its file `shape`: nothing is to be written anew")]
    HasShape { path: PathBuf },
    #[error("{path} holds no data of a datacenter")]
    NoData { path: PathBuf },
    #[error(
        "{path} is partition {found}, and the configuration makes it {expected}: it is not the one that the data was written with"
    )]
    OtherConfig { path: PathBuf, found: String, expected: String },
    #[error(
        "{path} is a replica, of which the other nodes of its datacenter have more: to have it filled again, empty it and start \
         its node"
    )]
    Replica { path: PathBuf },
    #[error(
        "{path} cannot be checked, which is no damage of it: {reason}; to set it aside all the same, give its number"
    )]
    Unreadable { path: PathBuf, reason: String },
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("cannot use {path}: {error}")]
    Machine { path: PathBuf, error: io::Error },
}

/// What will be done to one partition.
#[derive(Debug)]
pub struct Step {
    pub datacenter: String,
    pub partition: PartitionId,
    /// Its last stop was a clean one, or its log was synced before every answer: it waits for nobody anyhow.
    pub has_its_tail: bool,
    path: PathBuf,
    superblock: Superblock,
}

/// What will be done. As long as it lives, no node starts on the data.
#[derive(Debug)]
pub struct Plan {
    pub steps: Vec<Step>,
    _locks: Vec<File>,
}

/// Looks at a node's `dir`, or the folder of one datacenter in it, and plans to start without these datacenters.
pub fn plan(path: &Path, without: &[String]) -> Result<Plan, RecoverError> {
    let mut plan = Plan { steps: Vec::new(), _locks: Vec::new() };
    for folder in fsck::datacenters(path)? {
        plan._locks.extend(fsck::lock(&folder, FlockOperation::NonBlockingLockExclusive)?);
        let shape = directory::read_shape(&folder).map_err(FsckError::from)?;
        let mask = mask_of(&folder, &shape.datacenter, without)?;
        for (partition, path) in fsck::partitions(&folder)? {
            let fails = |error| RecoverError::Machine { path: path.clone(), error };
            let files = fsck::list(&path).map_err(fails)?;
            if fsck::is_replica(&files) {
                return Err(RecoverError::Replica { path });
            }
            if is_unused(&files) {
                // It has no tail to lose, and no superblock to write in.
                continue;
            }
            let path = path.join(FileName::Superblock.to_string());
            let mut superblock = read_superblock(&path)?;
            superblock.without |= mask;
            let has_its_tail = superblock.clean || superblock.fsync_always;
            let datacenter = shape.datacenter.clone();
            plan.steps.push(Step { datacenter, partition, has_its_tail, path, superblock });
        }
    }
    Ok(plan)
}

impl Plan {
    /// Does it. Each superblock is replaced as a whole; after an error the ones before it are changed.
    pub fn carry_out(self) -> Result<(), RecoverError> {
        for Step { path, superblock, .. } in self.steps {
            disk::replace(&path, &superblock.encode())
                .map_err(|error| RecoverError::Machine { path, error })?;
        }
        Ok(())
    }
}

/// A file `shape` that can be written anew. As long as it lives, no node starts on the data.
#[derive(Debug)]
pub struct LostShape {
    folder: PathBuf,
    text: String,
    _locks: Vec<File>,
}

/// Looks at a folder of data whose `shape` is lost, and makes it of a configuration, if the partitions are of that
/// one: of
/// its cluster, its datacenter and its number of partitions. Of the protocols they say nothing.
pub fn lost_shape(dir: &Path, config: &Config) -> Result<LostShape, RecoverError> {
    let cluster = config.cluster()?;
    let below = dir.join(&cluster.own_datacenter().name);
    let folder = if below.is_dir() { below } else { dir.to_path_buf() };
    if folder.join(directory::SHAPE).exists() {
        return Err(RecoverError::HasShape { path: folder });
    }
    let locks = fsck::lock(&folder, FlockOperation::NonBlockingLockExclusive)?;
    let mut is_empty = true;
    for (partition, path) in fsck::partitions(&folder)? {
        let files = fsck::list(&path).map_err(|error| RecoverError::Machine { path: path.clone(), error })?;
        if is_unused(&files) {
            continue;
        }
        let path = path.join(FileName::Superblock.to_string());
        let found = read_superblock(&path)?;
        let words = |cluster: u128, datacenter: u8, partition: u16, partitions: u16| {
            format!("{partition} of {partitions} in datacenter {datacenter} of cluster {cluster:032x}")
        };
        let found = words(found.cluster, found.datacenter.0, found.partition.0, found.partitions);
        let hash = u128::from_le_bytes(cluster_hash(&cluster.name));
        let expected = words(hash, cluster.own.0, partition.0, cluster.partitions);
        if found != expected {
            return Err(RecoverError::OtherConfig { path, found, expected });
        }
        is_empty = false;
    }
    if is_empty {
        return Err(RecoverError::NoData { path: folder });
    }
    let text = directory::shape_text(&cluster, &settings(config, &cluster));
    Ok(LostShape { folder, text, _locks: locks })
}

impl LostShape {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn path(&self) -> PathBuf {
        self.folder.join(directory::SHAPE)
    }

    pub fn write(&self) -> Result<(), RecoverError> {
        let path = self.path();
        disk::replace(&path, self.text.as_bytes()).map_err(|error| RecoverError::Machine { path, error })
    }
}

/// One bit a datacenter, by the names that the data knows.
fn mask_of(folder: &Path, own: &str, without: &[String]) -> Result<u16, RecoverError> {
    let Some(known) = directory::read_names(folder)
        .map_err(|error| RecoverError::Machine { path: folder.into(), error })?
    else {
        return Err(RecoverError::NoNames { path: folder.into() });
    };
    let mut mask = 0;
    for name in without {
        if name == own {
            return Err(RecoverError::Own { name: name.clone() });
        }
        let Some(number) = known.iter().position(|one| one == name) else {
            return Err(RecoverError::Unknown { name: name.clone(), known });
        };
        mask |= 1 << number;
    }
    Ok(mask)
}

fn read_superblock(path: &Path) -> Result<Superblock, RecoverError> {
    let bytes = fs::read(path).map_err(|error| RecoverError::Machine { path: path.into(), error })?;
    Superblock::decode(&bytes).map_err(|error| RecoverError::Superblock { path: path.into(), error })
}

#[cfg(test)]
mod tests;
