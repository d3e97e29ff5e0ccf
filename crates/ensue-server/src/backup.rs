//! What the disks of a node hold at one moment, kept for whoever copies it.
//!
//! The cores of a node stop between two turns until all have ([`Gate`]). Each then gives the files of its partitions
//! second names in a folder of the backup: a segment of the log is written at its end only, and a checkpoint that
//! counts is not written any more, so what stands in them up to now stays. The superblock and the witness, which are
//! replaced and overwritten, are copied. So the moment costs a few system calls a file, whatever the files hold, and
//! the room of what is deleted meanwhile.
//!
//! Because all cores stop, nothing that one of them did before its moment can have been answered, sent or read after
//! another one's: the copies are closed under every causality, that of clients who talk to each other too. It is the
//! plainest of the consistent cuts of Chandy and Lamport ("Distributed Snapshots", 1985), and needs no marker.
//!
//! Of several nodes each does that for itself, and holds its cores for some milliseconds. If there was a time at which
//! all of them stood still, it is as if one node had: what every one of them has is of that time. Whoever asked them
//! can tell by how long the steps took.
//!
//! Of a replicated partition the files of its owner are kept: everything that a majority has was first written there.
//! What each replica was to its group is told in a file, so that a copy of an owner that had been replaced is noticed.

mod gate;

use crate::bounds::{BACKUP_CHECKED_BYTES, BACKUP_GATE_MS, BACKUP_KEPT_S, BACKUP_WRITTEN_MS};
use crate::directory::{KEPT, SHAPE};
use crate::inbox::{Inbox, Mail};
use crate::log;
use bytes::Bytes;
use ensue_node::{BackupDone, BackupErrand, Held, Standing};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) use gate::Gate;

/// What every core of a node is asked at once.
#[derive(Debug)]
pub(crate) struct Moment {
    /// Where the cores stop; until it opens nothing is kept.
    pub(crate) gate: Gate,
    /// The machine's boot in which the partitions run.
    pub(crate) boot_id: [u8; 16],
    /// The folder that the second names go to.
    pub(crate) folder: PathBuf,
    /// Takes what each core has kept.
    pub(crate) kept: Sender<io::Result<OfCore>>,
}

/// What a core has kept.
#[derive(Debug, Default)]
pub(crate) struct OfCore {
    pub(crate) files: Vec<Kept>,
    /// What its replicas are to their groups, if partitions are replicated.
    pub(crate) standings: Option<Vec<Standing>>,
}

/// A file that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Below the folder of the datacenter.
    pub(crate) name: String,
    /// How much of it counts, in bytes. It may grow beyond, since it is the file that is being written.
    pub(crate) length: u64,
}

/// The backups of a node: one at a time.
#[derive(Debug)]
pub(crate) struct Backups {
    /// Of the datacenter.
    folder: PathBuf,
    /// The configuration, as a file would have it, without secrets.
    configuration: String,
    boot_id: [u8; 16],
    cores: Vec<Arc<Inbox>>,
    present: Option<Backup>,
}

#[derive(Debug)]
struct Backup {
    name: String,
    files: Vec<Kept>,
    used: Instant,
}

impl Backups {
    pub(crate) fn new(
        folder: PathBuf,
        configuration: String,
        boot_id: [u8; 16],
        cores: Vec<Arc<Inbox>>,
    ) -> Backups {
        Backups { folder, configuration, boot_id, cores, present: None }
    }

    pub(crate) fn carry_out(&mut self, errand: BackupErrand) -> Result<BackupDone, String> {
        match errand {
            BackupErrand::Begin { name, hold_ms } => self.begin(name, Duration::from_millis(hold_ms)),
            BackupErrand::List(name) => self.list(&name).map(BackupDone::Files),
            BackupErrand::Read { name, file, offset, length } => {
                self.read(&name, &file, offset, length).map(BackupDone::Bytes)
            }
            BackupErrand::End(name) => {
                self.present(&name)?;
                self.let_go();
                Ok(BackupDone::Done)
            }
        }
    }

    /// Lets go what nobody has asked for in a long time: it takes the room of files that are deleted.
    pub(crate) fn tend(&mut self) {
        if self.present.as_ref().is_some_and(|backup| backup.used.elapsed().as_secs() > BACKUP_KEPT_S) {
            log::notice("a backup that nobody reads was let go");
            self.let_go();
        }
    }

    fn begin(&mut self, name: String, hold: Duration) -> Result<BackupDone, String> {
        let asked = Instant::now();
        self.let_go();
        let folder = self.folder_of(&name);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        match self.keep(&folder, hold) {
            Ok((mut files, still)) => {
                files.sort_unstable_by(|one, other| one.name.cmp(&other.name));
                self.present = Some(Backup { name, files, used: Instant::now() });
                let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
                Ok(match hold.is_zero() {
                    true => BackupDone::Done,
                    false => BackupDone::Held(Held {
                        before_us: us(still.saturating_duration_since(asked)),
                        held_us: us(hold),
                        after_us: us((still + hold).elapsed()),
                    }),
                })
            }
            Err(why) => {
                self.remove_folders();
                Err(why)
            }
        }
    }

    /// Has all cores keep their files at one moment, and keeps what belongs to all of them. Since when they stood still
    /// is told beside the files.
    fn keep(&self, folder: &Path, hold: Duration) -> Result<(Vec<Kept>, Instant), String> {
        let (sender, answers) = channel();
        let gate = Gate::new(self.cores.len(), Duration::from_millis(BACKUP_GATE_MS)).holding(hold);
        let moment = Arc::new(Moment { gate, boot_id: self.boot_id, folder: folder.into(), kept: sender });
        for core in &self.cores {
            core.post(Mail::Moment(Arc::clone(&moment)));
        }
        let still = moment.gate.wait_for_all().ok_or_else(|| {
            format!("not all cores came to a stop within {BACKUP_GATE_MS} ms; nothing was kept, try again")
        })?;
        let (mut files, mut standings) = (Vec::new(), None);
        for _ in &self.cores {
            let patience = hold + Duration::from_millis(BACKUP_GATE_MS);
            let kept =
                answers.recv_timeout(patience).map_err(|_| "a core did not say what it kept".to_owned())?;
            let kept = kept.map_err(|error| format!("the files cannot be kept: {error}"))?;
            files.extend(kept.files);
            if let Some(more) = kept.standings {
                standings.get_or_insert_with(Vec::new).extend(more);
            }
        }
        let texts = self.texts(folder, standings.as_deref());
        files.extend(texts.map_err(|error| format!("the files cannot be kept: {error}"))?);
        wait_until_written(folder, &files, Duration::from_millis(BACKUP_WRITTEN_MS))?;
        Ok((files, still))
    }

    /// What says what the data is.
    fn texts(&self, folder: &Path, standings: Option<&[Standing]>) -> io::Result<Vec<Kept>> {
        let mut names = vec![CONFIGURATION, SHAPE, crate::directory::NAMES];
        fs::write(folder.join(CONFIGURATION), &self.configuration)?;
        for name in [SHAPE, crate::directory::NAMES] {
            fs::copy(self.folder.join(name), folder.join(name))?;
        }
        if let Some(standings) = standings {
            fs::write(folder.join(STANDINGS), standings.iter().map(line_of).collect::<String>())?;
            names.push(STANDINGS);
        }
        let kept =
            |name: &str| Ok(Kept { name: name.into(), length: fs::metadata(folder.join(name))?.len() });
        names.into_iter().map(kept).collect()
    }

    fn list(&mut self, name: &str) -> Result<Vec<(String, u64, u32)>, String> {
        let folder = self.folder_of(name);
        let backup = self.present(name)?;
        let checked = |kept: &Kept| {
            let begin = kept.length.saturating_sub(BACKUP_CHECKED_BYTES);
            let bytes = read(&folder.join(&kept.name), begin, kept.length - begin)?;
            Ok((kept.name.clone(), kept.length, crc32fast::hash(&bytes)))
        };
        backup.files.iter().map(checked).collect::<io::Result<_>>().map_err(|error| error.to_string())
    }

    fn read(&mut self, name: &str, file: &[u8], offset: u64, length: u32) -> Result<Bytes, String> {
        let folder = self.folder_of(name);
        let backup = self.present(name)?;
        let kept = backup.files.iter().find(|kept| kept.name.as_bytes() == file);
        let kept = kept.ok_or("the backup has no file of this name")?;
        let length = kept.length.saturating_sub(offset).min(u64::from(length));
        read(&folder.join(&kept.name), offset, length).map(Bytes::from).map_err(|error| error.to_string())
    }

    /// The backup of this name, which is in use now.
    fn present(&mut self, name: &str) -> Result<&Backup, String> {
        match &mut self.present {
            Some(backup) if backup.name == name => {
                backup.used = Instant::now();
                Ok(backup)
            }
            _ => Err("no backup of this name is kept: it was let go, or another one was begun".into()),
        }
    }

    fn let_go(&mut self) {
        if self.present.take().is_some() {
            self.remove_folders();
        }
    }

    /// A folder that stays takes room until the next start, which removes it.
    fn remove_folders(&self) {
        if let Err(error) = fs::remove_dir_all(self.folder.join(KEPT)) {
            log::warning(format_args!("{}: {error}", self.folder.join(KEPT).display()));
        }
    }

    fn folder_of(&self, name: &str) -> PathBuf {
        self.folder.join(KEPT).join(name)
    }
}

impl Drop for Backups {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// What waited for a sync at the moment is written when the sync has ended: until then a file is shorter than what
/// counts of it.
fn wait_until_written(folder: &Path, files: &[Kept], patience: Duration) -> Result<(), String> {
    let until = Instant::now() + patience;
    for kept in files {
        let path = folder.join(&kept.name);
        while fs::metadata(&path).is_ok_and(|found| found.len() < kept.length) {
            if Instant::now() > until {
                return Err(format!(
                    "the disk was too slow to write {}; nothing was kept, try again",
                    kept.name
                ));
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
    Ok(())
}

fn read(path: &Path, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length as usize];
    File::open(path)?.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

/// `partition term role`, and the nodes that have votes, as the owner knows them: `3 17 leads 0,1,2`, `4 17 follows`,
/// `5 - starts`.
fn line_of(standing: &Standing) -> String {
    let partition = standing.partition.0;
    match (standing.term, &standing.leads) {
        (Some(term), Some(leading)) => {
            let voters: Vec<String> = leading.voters.iter().map(usize::to_string).collect();
            format!("{partition} {term} leads {}\n", voters.join(","))
        }
        (Some(term), None) => format!("{partition} {term} follows\n"),
        (None, _) => format!("{partition} - starts\n"),
    }
}

/// The configuration that the node ran with.
const CONFIGURATION: &str = "configuration";
/// What the replicas of the node were to their groups.
const STANDINGS: &str = "standings";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporary::Temporary;
    use std::io::Write;

    #[test]
    fn a_file_is_read_when_what_waited_for_a_sync_is_in_it() {
        let folder = Temporary::new();
        let path = folder.path().join("log");
        fs::write(&path, "first").unwrap();
        let files = [Kept { name: "log".into(), length: 11 }];
        let late = wait_until_written(folder.path(), &files, Duration::ZERO).unwrap_err();
        assert!(late.contains("too slow to write log"), "{late}");
        thread::scope(|scope| {
            let waits = scope.spawn(|| wait_until_written(folder.path(), &files, Duration::from_secs(60)));
            fs::File::options().append(true).open(&path).unwrap().write_all(b"second").unwrap();
            assert_eq!(waits.join().unwrap(), Ok(()));
        });
    }
}
