//! Sets damaged partitions of a stopped node aside, so that the next start takes them back from other datacenters.
//!
//! A partition whose directory is empty is filled again by itself, from the others' logs or by a copy
//! (`docs/failures.md`). So all that is to be done to a damaged one is to take its files out of the way. They stay,
//! under another name: what no other datacenter had received is in them only.

use super::RecoverError;
use crate::directory;
use crate::disk;
use crate::fsck::{self, FsckError};
use ensue_types::PartitionId;
use rustix::fs::FlockOperation;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// A partition that will be taken back from the others.
#[derive(Debug)]
pub struct Aside {
    pub datacenter: String,
    pub partition: PartitionId,
    /// What is wrong with it; nothing if it was named and is sound.
    pub damage: Option<String>,
    from: PathBuf,
    /// Where its files will be.
    pub to: PathBuf,
}

/// What will be done. As long as it lives, no node starts on the data.
#[derive(Debug)]
pub struct Rebuilding {
    pub partitions: Vec<Aside>,
    _locks: Vec<File>,
}

/// Looks at a node's `dir`, or the folder of one datacenter in it, and plans to take back the partitions that are
/// damaged, or those of these numbers.
pub fn plan(path: &Path, named: &[u16]) -> Result<Rebuilding, RecoverError> {
    let mut plan = Rebuilding { partitions: Vec::new(), _locks: Vec::new() };
    for folder in fsck::datacenters(path)? {
        plan._locks.extend(fsck::lock(&folder, FlockOperation::NonBlockingLockExclusive)?);
        let shape = directory::read_shape(&folder).map_err(FsckError::from)?;
        let others = directory::read_names(&folder)
            .map_err(|error| RecoverError::Machine { path: folder.clone(), error })?
            .ok_or_else(|| RecoverError::NoNames { path: folder.clone() })?;
        if others.len() < 2 {
            return Err(RecoverError::Alone { name: shape.datacenter });
        }
        for (partition, from) in fsck::partitions(&folder)? {
            let report = fsck::check_partition(from.clone(), &shape, partition);
            let first =
                || report.error.as_ref().map(ToString::to_string).or(report.problems.first().cloned());
            let damage = (!report.is_sound()).then(|| first().unwrap_or_else(|| "damaged".into()));
            // A disk that cannot be read, a directory of a later version or of other settings: its files are whole.
            let is_damage = !matches!(&report.error, Some(error) if !error.is_damage());
            if named.is_empty() && !is_damage {
                let reason = damage.unwrap_or_default();
                return Err(RecoverError::Unreadable { path: from, reason });
            }
            if if named.is_empty() { damage.is_some() } else { named.contains(&partition.0) } {
                let to = free_name(&from);
                plan.partitions.push(Aside {
                    datacenter: shape.datacenter.clone(),
                    partition,
                    damage,
                    from,
                    to,
                });
            }
        }
    }
    Ok(plan)
}

impl Rebuilding {
    /// Does it. After an error the partitions before it are set aside.
    pub fn carry_out(self) -> Result<(), RecoverError> {
        for Aside { from, to, .. } in self.partitions {
            fs::rename(&from, &to)
                .and_then(|()| disk::sync_parent(&from))
                .map_err(|error| RecoverError::Machine { path: from, error })?;
        }
        Ok(())
    }
}

/// A name beside it that nothing has, and that no partition's folder has.
fn free_name(folder: &Path) -> PathBuf {
    let named = |number: u32| {
        let mut name = folder.as_os_str().to_owned();
        name.push(format!(".aside-{number}"));
        PathBuf::from(name)
    };
    (1..).map(named).find(|path| !path.exists()).expect("a folder has fewer entries than there are numbers")
}
