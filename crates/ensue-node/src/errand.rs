//! Work that a session has somebody else do: it takes long, or needs chance or a file, which a node does not have.
//!
//! An [`Errand`] leaves as `Output::Errand`; whoever owns the threads does it ([`Errand::run`] where that is all it
//! takes) and brings what came of it back as `Input::ErrandDone`, in any order. A session has one at a time, and
//! answers with an error if it takes too long, or if too many wait.

pub(crate) mod backup;

use bytes::Bytes;
use ensue_acl::{Prepared, Salt, Verifier, Work};
use ensue_types::{Args, CoreId, PartitionId, Reply};
use std::fmt;
use std::hash::{Hash, Hasher};

/// What is to be done.
#[derive(Clone, PartialEq, Eq)]
pub enum Errand {
    /// Says whether one of these is of the password: 20 to 30 ms each.
    Compare { verifiers: Vec<Verifier>, password: Bytes },
    /// Makes what rules with passwords need: as slow.
    Hash(Work),
    /// Draws so many random bytes.
    Draw(usize),
    /// Reads the file of users, where new users may use all channels, or may not.
    LoadUsers { opens_channels: bool },
    /// Replaces the file of users by this text, whole or not at all.
    SaveUsers(Bytes),
    /// Does something for a copy of what the disks hold.
    Backup(BackupErrand),
    /// Has the node of another core do that: the words behind `CAUSAL BACKUP`.
    BackupElsewhere { core: CoreId, words: Args },
    /// Reads certificates from these files and uses them from then on, all or none; a file that is not named is the
    /// present one.
    Certificates(CertificateFiles),
    /// Writes these settings into the configuration file, and these users in the place of those in it.
    Rewrite { settings: Vec<Rewritten>, users: Option<Vec<Bytes>> },
    /// Gives memory that is free back to the machine.
    Purge,
    /// Says who replicates a partition, and moves a replica from one core to another, if that is wished.
    Group { partition: PartitionId, wish: Option<(CoreId, CoreId)> },
}

/// What is to be done for a copy of what the disks of the node hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackupErrand {
    /// Keeps what the disks hold now, under this name; an earlier one that was kept is let go. The cores stand still
    /// for so long, in which those of other nodes come to a stop, too.
    Begin { name: String, hold_ms: u64 },
    /// Says which files that is.
    List(String),
    /// Reads of one of them.
    Read { name: String, file: Bytes, offset: u64, length: u32 },
    /// Lets it go.
    End(String),
}

/// What came of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackupDone {
    Done,
    Held(Held),
    /// Each file's name, its length in bytes, and the CRC-32 of its last bytes.
    Files(Vec<(String, u64, u32)>),
    Bytes(Bytes),
}

/// How long the steps of a moment took, one after the other, by the clock of the node: whoever knows when it asked and
/// when it was answered can tell when the cores certainly stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// From the question until all cores stood still.
    pub before_us: u64,
    /// How long they stood still at least.
    pub held_us: u64,
    /// From the end of that until the answer.
    pub after_us: u64,
}

/// Files in PEM; an empty name is no file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateFiles {
    pub certificate: Option<String>,
    pub key: Option<String>,
    pub authorities: Option<String>,
    /// Lists of certificates that are not believed any more.
    pub revocations: Option<String>,
}

/// A setting that was made while the server runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewritten {
    pub name: &'static str,
    /// What older versions of Redis call it.
    pub alias: Option<&'static str>,
    pub value: String,
    /// It is what it would be without a line.
    pub is_default: bool,
}

/// What came of it.
#[derive(Clone)]
pub enum ErrandDone {
    Compared(bool),
    Hashed(Prepared),
    Drawn(Vec<u8>),
    /// The text, or why there is none.
    Loaded(Result<Bytes, String>),
    Saved(Result<(), String>),
    Backup(Result<BackupDone, String>),
    /// What another node answers.
    BackupTold(Reply),
    /// What is in the place of `Saved` for certificates and for the configuration file.
    Configured(Result<(), String>),
    Purged,
    /// Lines of text, or why not.
    Group(Result<Bytes, Bytes>),
    /// Too many wait, and it was not done.
    Busy,
}

impl Errand {
    /// Does it, with random bytes from there. What is about files or the process comes back.
    pub fn run(self, mut draw: impl FnMut(&mut [u8])) -> Result<ErrandDone, Errand> {
        match self {
            Errand::Compare { verifiers, password } => {
                Ok(ErrandDone::Compared(verifiers.iter().any(|verifier| verifier.matches(&password))))
            }
            Errand::Hash(work) => Ok(ErrandDone::Hashed(work.run(|| {
                let mut salt = [0; 16];
                draw(&mut salt);
                Salt(salt)
            }))),
            Errand::Draw(count) => {
                let mut bytes = vec![0; count];
                draw(&mut bytes);
                Ok(ErrandDone::Drawn(bytes))
            }
            other @ (Errand::LoadUsers { .. }
            | Errand::SaveUsers(_)
            | Errand::Backup(_)
            | Errand::BackupElsewhere { .. }
            | Errand::Certificates(_)
            | Errand::Rewrite { .. }
            | Errand::Purge
            | Errand::Group { .. }) => Err(other),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Errand::Compare { .. } => "Compare",
            Errand::Hash(_) => "Hash",
            Errand::Draw(_) => "Draw",
            Errand::LoadUsers { .. } => "LoadUsers",
            Errand::SaveUsers(_) => "SaveUsers",
            Errand::Backup(_) => "Backup",
            Errand::BackupElsewhere { .. } => "BackupElsewhere",
            Errand::Certificates(_) => "Certificates",
            Errand::Rewrite { .. } => "Rewrite",
            Errand::Purge => "Purge",
            Errand::Group { .. } => "Group",
        }
    }
}

impl ErrandDone {
    fn name(&self) -> &'static str {
        match self {
            ErrandDone::Compared(true) => "Right",
            ErrandDone::Compared(false) => "Wrong",
            ErrandDone::Hashed(_) => "Hashed",
            ErrandDone::Drawn(_) => "Drawn",
            ErrandDone::Loaded(_) => "Loaded",
            ErrandDone::Saved(_) => "Saved",
            ErrandDone::Backup(_) => "Backup",
            ErrandDone::BackupTold(_) => "BackupTold",
            ErrandDone::Configured(_) => "Configured",
            ErrandDone::Purged => "Purged",
            ErrandDone::Group(_) => "Group",
            ErrandDone::Busy => "Busy",
        }
    }
}

/// Names it only: passwords do not belong into a log.
impl fmt::Debug for Errand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for ErrandDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Of an event in a simulated world: nothing that happens there depends on more.
impl Hash for Errand {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl Hash for ErrandDone {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}
