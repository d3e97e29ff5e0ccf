//! Gives the data of a stopped datacenter other times, after its clock was too far ahead of the others' (decision 18).
//!
//! Every time beyond a bound becomes one just above it, in the same order over all partitions. The bound lies so far
//! ahead of this machine's clock, which must be right by now, that no other datacenter can have taken a time beyond it.
//! The new files stand beside the old ones until all are durable; then folders change their names, and a mark keeps
//! nodes from starting until all have. A recovery that was interrupted is finished by the next one. The old folders
//! stay.
//!
//! Where the partitions of a datacenter lie on several machines, each tells its times in a file, and gets those of all.

use crate::directory::{self, RECOVERING};
use crate::disk;
use crate::fsck::{self, FsckError};
use bytes::Bytes;
use ensue_node::restamp::{CannotRestamp, Gather, Replace};
use ensue_store::disk::FileName;
use ensue_store::layout::LayoutError;
use ensue_store::layout::batch::Seal;
use ensue_store::recovery::is_unused;
use ensue_store::superblock::Superblock;
use ensue_types::{DatacenterId, LogicalTime, PartitionId, limits};
use rustix::fs::FlockOperation;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What a partition's folder is called while it is written, and what the old one is called then.
const NEW: &str = "new";
const BEFORE: &str = "before-clock";

/// Why nothing was changed.
#[derive(Debug, Error)]
pub enum ClockError {
    #[error(transparent)]
    Directory(#[from] FsckError),
    #[error("cannot use {path}: {error}")]
    Machine { path: PathBuf, error: io::Error },
    #[error("{path}: {error}")]
    Superblock { path: PathBuf, error: LayoutError },
    #[error("{path} holds the data of several datacenters: name the folder of one, as {path}/NAME")]
    Several { path: PathBuf },
    #[error("{path} is a replica: times of replicated partitions cannot be taken back")]
    Replica { path: PathBuf },
    #[error("{path}: the partition did not stop cleanly: start the node, and stop it by SIGTERM, first")]
    NotClean { path: PathBuf },
    #[error("{path}: {error}")]
    Cannot { path: PathBuf, error: CannotRestamp },
    #[error("{path} is not what `--write-times` writes for {datacenter}")]
    Times { path: PathBuf, datacenter: String },
    #[error(
        "{} of {partitions} partitions are on other nodes: run this with `--write-times FILE` on every node of the datacenter, and then \
         with `--with FILE` for the files of all of them, on every node",
        .missing.len()
    )]
    Missing { missing: Vec<PartitionId>, partitions: u16 },
}

/// A partition of this node.
#[derive(Debug)]
struct Home {
    partition: PartitionId,
    path: PathBuf,
    seal: Seal,
}

/// What will be done. As long as it lives, no node starts on the data.
#[derive(Debug)]
pub struct Plan {
    pub datacenter: String,
    /// How far the latest time is ahead of this machine's clock.
    pub ahead_ms: u64,
    /// How many times beyond the bound there are, in all partitions that are known.
    pub count: usize,
    /// An earlier recovery was interrupted when all was written; it is finished.
    pub is_interrupted: bool,
    folder: PathBuf,
    own: DatacenterId,
    partitions: u16,
    bound: LogicalTime,
    known: BTreeSet<PartitionId>,
    homes: Vec<Home>,
    gather: Gather,
    _locks: Vec<File>,
}

/// Looks at the folder of a datacenter, or a node's `dir` that holds one. `times` are what the other nodes have told,
/// and this one.
pub fn plan(path: &Path, wall_ms: u64, times: &[PathBuf]) -> Result<Plan, ClockError> {
    let folders = fsck::datacenters(path)?;
    let [folder] = &folders[..] else { return Err(ClockError::Several { path: path.into() }) };
    let locks = fsck::lock(folder, FlockOperation::NonBlockingLockExclusive)?;
    let shape = directory::read_shape(folder).map_err(FsckError::from)?;
    let told: Vec<Told> =
        times.iter().map(|path| read_times(path, &shape.datacenter)).collect::<Result<_, _>>()?;
    // What this machine believes, unless the nodes have agreed on a bound.
    let believed = LogicalTime::from_ms(wall_ms + 2 * limits::CLOCK_AHEAD_MS_MAX);
    let bound = told.iter().map(|told| told.bound).max().unwrap_or(believed);
    let mut plan = Plan {
        datacenter: shape.datacenter,
        ahead_ms: 0,
        count: 0,
        is_interrupted: folder.join(RECOVERING).exists(),
        folder: folder.clone(),
        own: shape.number,
        partitions: shape.partitions,
        bound,
        known: BTreeSet::new(),
        homes: Vec::new(),
        gather: Gather::new(shape.number, bound),
        _locks: locks,
    };
    if !plan.is_interrupted {
        for (partition, path) in fsck::partitions(folder)? {
            plan.take(partition, path)?;
        }
    }
    for told in told {
        plan.known.extend(told.partitions);
        plan.gather.extend(told.times);
    }
    plan.count = plan.gather.times().len();
    plan.ahead_ms = plan.gather.times().last().map_or(0, |last| last.ms().saturating_sub(wall_ms));
    Ok(plan)
}

impl Plan {
    /// Takes the times of a partition of this node.
    fn take(&mut self, partition: PartitionId, path: PathBuf) -> Result<(), ClockError> {
        let fails = |error| ClockError::Machine { path: path.clone(), error };
        self.known.insert(partition);
        let files = fsck::list(&path).map_err(fails)?;
        if fsck::is_replica(&files) {
            return Err(ClockError::Replica { path });
        }
        if is_unused(&files) {
            return Ok(());
        }
        let superblock = fs::read(path.join(FileName::Superblock.to_string())).map_err(fails)?;
        let superblock = Superblock::decode(&superblock)
            .map_err(|error| ClockError::Superblock { path: path.clone(), error })?;
        if !superblock.clean {
            return Err(ClockError::NotClean { path });
        }
        let seal = superblock.seal();
        for (file, _) in files {
            let bytes = Bytes::from(fs::read(path.join(file.to_string())).map_err(fails)?);
            self.gather
                .file(file, &bytes, seal)
                .map_err(|error| ClockError::Cannot { path: path.clone(), error })?;
        }
        self.homes.push(Home { partition, path, seal });
        Ok(())
    }

    /// Tells the other nodes of the datacenter which times there are here.
    pub fn write_times(&self, path: &Path) -> Result<(), ClockError> {
        let partitions: Vec<String> = self.known.iter().map(|partition| partition.0.to_string()).collect();
        let mut text =
            format!("ensue clock 1 {} {} {}\n", self.datacenter, self.bound.0, partitions.join(","));
        for time in self.gather.times() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}", time.0);
        }
        let fails = |error| ClockError::Machine { path: path.into(), error };
        disk::replace(path, text.as_bytes()).map_err(fails)
    }

    /// Does it. The last time that there is then.
    pub fn carry_out(self) -> Result<LogicalTime, ClockError> {
        if self.is_interrupted {
            self.change_names()?;
            return Ok(self.bound);
        }
        let missing: Vec<PartitionId> = (0..self.partitions)
            .map(PartitionId)
            .filter(|partition| !self.known.contains(partition))
            .collect();
        if !missing.is_empty() {
            return Err(ClockError::Missing { missing, partitions: self.partitions });
        }
        let mut replace = self.gather.clone().replace();
        let latest = replace.latest();
        if replace.is_empty() {
            return Ok(latest);
        }
        // What an attempt left that was given up is of no partition now.
        for number in 0..self.partitions {
            let rest = self.folder.join(format!("p{number:04}")).with_extension(NEW);
            if rest.exists() {
                let fails = |error| ClockError::Machine { path: rest.clone(), error };
                fs::remove_dir_all(&rest).map_err(fails)?;
            }
        }
        for home in &self.homes {
            self.write_anew(home, &mut replace)?;
        }
        let mark = self.folder.join(RECOVERING);
        let fails = |error| ClockError::Machine { path: mark.clone(), error };
        disk::replace(&mark, b"ensue recover --clock was interrupted: run it again\n").map_err(fails)?;
        self.change_names()?;
        Ok(latest)
    }

    /// Writes a partition with other times beside the one that there is.
    fn write_anew(&self, home: &Home, replace: &mut Replace) -> Result<(), ClockError> {
        let new = home.path.with_extension(NEW);
        let fails = |error| ClockError::Machine { path: new.clone(), error };
        disk::create_directory(&new).map_err(fails)?;
        for entry in fs::read_dir(&home.path).map_err(fails)? {
            let name = entry.map_err(fails)?.file_name();
            let bytes = Bytes::from(fs::read(home.path.join(&name)).map_err(fails)?);
            let bytes = match name.to_str().and_then(FileName::parse) {
                Some(FileName::Reserve) => continue,
                Some(file) => replace
                    .file(file, &bytes, home.seal, self.own)
                    .map_err(|error| ClockError::Cannot { path: home.path.clone(), error })?,
                None => bytes.to_vec(),
            };
            disk::replace(&new.join(&name), &bytes).map_err(fails)?;
        }
        Ok(())
    }

    /// All is written: the new folders take the names of the old ones. Whatever of that was done before stays done.
    fn change_names(&self) -> Result<(), ClockError> {
        let fails = |error| ClockError::Machine { path: self.folder.clone(), error };
        for number in 0..self.partitions {
            let path = self.folder.join(format!("p{number:04}"));
            let (new, before) = (path.with_extension(NEW), path.with_extension(BEFORE));
            if !new.exists() {
                continue;
            }
            if path.exists() {
                if before.exists() {
                    fs::remove_dir_all(&before).map_err(fails)?;
                }
                fs::rename(&path, &before).map_err(fails)?;
            }
            fs::rename(&new, &path).map_err(fails)?;
            disk::sync_parent(&path).map_err(fails)?;
        }
        let mark = self.folder.join(RECOVERING);
        fs::remove_file(&mark).and_then(|()| disk::sync_parent(&mark)).map_err(fails)
    }

    /// The partitions of this node whose old folders stay, under another name.
    pub fn old_folders(&self) -> Vec<PathBuf> {
        let mut homes: Vec<&Home> = self.homes.iter().collect();
        homes.sort_by_key(|home| home.partition);
        homes.into_iter().map(|home| home.path.with_extension(BEFORE)).collect()
    }
}

/// What a node has told of its times.
struct Told {
    bound: LogicalTime,
    partitions: Vec<PartitionId>,
    times: Vec<LogicalTime>,
}

fn read_times(path: &Path, datacenter: &str) -> Result<Told, ClockError> {
    let text = fs::read_to_string(path).map_err(|error| ClockError::Machine { path: path.into(), error })?;
    parse_times(&text, datacenter)
        .ok_or_else(|| ClockError::Times { path: path.into(), datacenter: datacenter.into() })
}

fn parse_times(text: &str, datacenter: &str) -> Option<Told> {
    let mut lines = text.lines();
    let words: Vec<&str> = lines.next()?.split(' ').collect();
    let ["ensue", "clock", "1", name, bound, partitions] = words[..] else { return None };
    if name != datacenter || !text.ends_with('\n') {
        return None;
    }
    let partitions = partitions.split(',').map(|number| number.parse().ok().map(PartitionId));
    Some(Told {
        bound: LogicalTime(bound.parse().ok()?),
        partitions: partitions.collect::<Option<_>>()?,
        times: lines.map(|line| line.parse().ok().map(LogicalTime)).collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporary::Temporary;

    fn folder() -> Temporary {
        let folder = Temporary::new();
        let shape = "cluster\tcluster-name\tc\ndatacenter\tdatacenter\tdc2\ndatacenter\tnumber\t1\ncluster\tpartitions\t2\n";
        fs::write(folder.path().join(directory::SHAPE), format!("ensue 2\n{shape}")).unwrap();
        fs::write(folder.path().join("node0.lock"), "").unwrap();
        folder
    }

    #[test]
    fn a_recovery_that_was_interrupted_is_finished() {
        let folder = folder();
        let path = |name: &str| folder.path().join(name);
        for (name, text) in
            [("p0000.before-clock", "old"), ("p0000", "new"), ("p0001", "old"), ("p0001.new", "new")]
        {
            fs::create_dir(path(name)).unwrap();
            fs::write(path(name).join("superblock"), text).unwrap();
        }
        fs::write(path(RECOVERING), "").unwrap();
        let plan = plan(folder.path(), 0, &[]).unwrap();
        assert!(plan.is_interrupted);
        plan.carry_out().unwrap();
        let content = |name: &str| fs::read_to_string(path(name).join("superblock")).unwrap();
        let names = ["p0000", "p0001", "p0000.before-clock", "p0001.before-clock"];
        assert_eq!(names.map(content), ["new", "new", "old", "old"]);
        assert!(!path(RECOVERING).exists() && !path("p0001.new").exists());
    }

    #[test]
    fn partitions_of_other_nodes_are_asked_for() {
        let folder = folder();
        fs::create_dir(folder.path().join("p0000")).unwrap();
        let alone = plan(folder.path(), 1_000, &[]).unwrap();
        assert!(
            matches!(alone.carry_out(), Err(ClockError::Missing { missing, .. }) if missing == [PartitionId(1)])
        );

        let (here, there) = (folder.path().join("here"), folder.path().join("there"));
        plan(folder.path(), 1_000, &[]).unwrap().write_times(&here).unwrap();
        let bound = LogicalTime::from_ms(1_000 + 2 * limits::CLOCK_AHEAD_MS_MAX).0;
        assert_eq!(fs::read_to_string(&here).unwrap(), format!("ensue clock 1 dc2 {bound} 0\n"));
        fs::write(&there, format!("ensue clock 1 dc2 {} 1\n{}\n{}\n", bound + 5, bound + 5, bound + 9))
            .unwrap();
        let both = plan(folder.path(), 2_000, &[here, there.clone()]).unwrap();
        assert_eq!((both.count, both.bound), (1, LogicalTime(bound + 5)), "the highest bound counts for all");
        both.carry_out().unwrap();

        for wrong in ["", "ensue clock 1 dc1 5 1\n", "ensue clock 1 dc2 5 1\nx\n", "ensue clock 1 dc2 5 1\n7"]
        {
            fs::write(&there, wrong).unwrap();
            let refused = plan(folder.path(), 2_000, std::slice::from_ref(&there));
            assert!(matches!(refused, Err(ClockError::Times { .. })), "{wrong:?}");
        }
    }
}
