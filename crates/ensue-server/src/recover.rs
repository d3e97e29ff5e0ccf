//! Tells the partitions of a stopped node which datacenters are gone for good.
//!
//! A partition that lost the tail of its log waits for every other datacenter before it serves: one that does not answer
//! may hold what would be declared lost. Whom the operator gives up is written into the partition's superblock. It counts
//! for the next start with a lost tail, and is forgotten when that one has caught up. Nothing else is changed.

use crate::directory;
use crate::disk;
use crate::fsck::{self, FsckError};
use ensue_store::disk::FileName;
use ensue_store::layout::LayoutError;
use ensue_store::recovery::is_unused;
use ensue_store::superblock::Superblock;
use ensue_types::PartitionId;
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
    #[error("{path}: {error}")]
    Superblock { path: PathBuf, error: LayoutError },
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
            if is_unused(&fsck::list(&path).map_err(fails)?) {
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
