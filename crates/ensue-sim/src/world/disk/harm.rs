//! What a careless operator does to the files of a partition that is not running: they are deleted or shortened by
//! hand, until
//! they are put back from a copy.
//!
//! Only what the stopped process knew to be durable is taken, so a partition that starts on the rest and serves is
//! wrong. What
//! it knew is told from the answers to its syncs; a power failure takes that knowledge, as it may take a witness.

use super::{Disk, File};
use ensue_store::disk::FileName;
use ensue_store::layout::checkpoint::CheckpointPlace;
use ensue_store::superblock::Superblock;
use std::collections::BTreeMap;
use std::fmt;

/// What is done to the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// The newest segment is deleted, or that of this number among those that a restart reads, counted from the start
    /// again if
    /// there are fewer.
    DeleteNewest,
    Delete(u64),
    /// Of the newest segment only so many of a thousand bytes stay.
    ShortenNewest(u64),
    DeleteSuperblock,
    DeleteCheckpoint,
    DeleteWitness,
}

impl Harm {
    /// Whether a number follows these words of a line.
    pub fn has_number(words: &[&str]) -> bool {
        matches!(words, ["shortens", _] | [_, "segment"])
    }

    /// Reads what `Display` shows.
    pub fn parse(words: &[&str]) -> Result<Harm, String> {
        let number = |word: &str| word.parse().map_err(|_| format!("no number: `{word}`"));
        Ok(match words {
            ["deletes", "newest"] => Harm::DeleteNewest,
            ["deletes", "segment", index] => Harm::Delete(number(index)?),
            ["shortens", "newest", share] => Harm::ShortenNewest(number(share)?),
            ["deletes", "superblock"] => Harm::DeleteSuperblock,
            ["deletes", "checkpoint"] => Harm::DeleteCheckpoint,
            ["deletes", "witness"] => Harm::DeleteWitness,
            _ => return Err(format!("nobody does that to a file: `{}`", words.join(" "))),
        })
    }
}

impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Harm::DeleteNewest => write!(f, "deletes newest"),
            Harm::Delete(index) => write!(f, "deletes segment {index}"),
            Harm::ShortenNewest(share) => write!(f, "shortens newest {share}"),
            Harm::DeleteSuperblock => write!(f, "deletes superblock"),
            Harm::DeleteCheckpoint => write!(f, "deletes checkpoint"),
            Harm::DeleteWitness => write!(f, "deletes witness"),
        }
    }
}

/// What processes know of the log.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// It is durable up to this log position, says the last answer to a sync.
    synced: u64,
    /// What stands behind this length of the file was refused, and no process counts on it.
    partial: Option<(FileName, usize)>,
    /// The files as they were before they were harmed.
    saved: Option<BTreeMap<FileName, File>>,
}

impl Known {
    pub(super) fn partial(&mut self, file: FileName, length: usize) {
        self.partial = Some((file, length));
    }

    /// A file is only so long any more; 0 is gone.
    pub(super) fn cut(&mut self, file: FileName, length: u64) {
        self.partial.take_if(|(partial, whole)| *partial == file && *whole as u64 >= length);
    }

    pub(super) fn on_power_loss(&mut self) {
        self.synced = 0;
    }
}

impl Disk {
    /// A process was told that a sync of this segment has ended well, and goes on from there.
    pub fn note_known(&mut self, file: FileName) {
        let (FileName::Segment(first), Some(entry)) = (file, self.files.get(&file)) else { return };
        let whole = self.known.partial.filter(|(partial, _)| *partial == file).map(|(_, length)| length);
        let length = entry.synced.min(whole.unwrap_or(usize::MAX));
        self.known.synced = self.known.synced.max(first + length as u64);
    }

    /// Takes away something that the partition must miss. False if it has nothing of that kind.
    pub fn harm(&mut self, harm: Harm) -> bool {
        if self.is_harmed() || self.is_rotten() {
            return false;
        }
        let Some((superblock, log_start)) = self.place() else { return false };
        // One that has never been served takes everything from the others, whatever is missing of it.
        if !superblock.witnessed {
            return false;
        }
        let saved = self.files.clone();
        let done = match harm {
            Harm::DeleteNewest => self.cut_segment(u64::MAX, 0, log_start),
            Harm::Delete(chance) => self.cut_segment(chance, 0, log_start),
            Harm::ShortenNewest(share) => self.cut_segment(u64::MAX, share, log_start),
            Harm::DeleteSuperblock => self.take_away(FileName::Superblock),
            Harm::DeleteCheckpoint if superblock.checkpoint == 0 => false,
            Harm::DeleteCheckpoint => self.take_away(FileName::Checkpoint(superblock.checkpoint)),
            Harm::DeleteWitness => self.take_away(FileName::Witness),
        };
        if done {
            self.known.saved = Some(saved);
        }
        done
    }

    /// The files are put back. True if something was missing.
    pub fn mend(&mut self) -> bool {
        let Some(saved) = self.known.saved.take() else { return false };
        self.files = saved;
        true
    }

    pub fn is_harmed(&self) -> bool {
        self.known.saved.is_some()
    }

    /// The superblock, and where a restart begins to read the log.
    fn place(&self) -> Option<(Superblock, u64)> {
        let superblock = Superblock::decode(&self.files.get(&FileName::Superblock)?.bytes).ok()?;
        if superblock.checkpoint == 0 {
            return Some((superblock, 0));
        }
        let checkpoint = self.files.get(&FileName::Checkpoint(superblock.checkpoint))?;
        let place = CheckpointPlace::decode(&checkpoint.bytes, superblock.seal()).ok()?;
        Some((superblock, place.log_start.0))
    }

    fn take_away(&mut self, name: FileName) -> bool {
        self.files.remove(&name).is_some()
    }

    /// Leaves so many of a thousand bytes of one of the segments that are read at a start, if some that are known go
    /// with the rest.
    fn cut_segment(&mut self, chance: u64, share: u64, log_start: u64) -> bool {
        let read = |(&name, file): (&FileName, &File)| match name {
            FileName::Segment(first) if first + file.bytes.len() as u64 > log_start => Some((name, first)),
            _ => None,
        };
        let segments: Vec<(FileName, u64)> = self.files.iter().filter_map(read).collect();
        let Some(last) = segments.len().checked_sub(1) else { return false };
        let index = if chance == u64::MAX { last } else { (chance % segments.len() as u64) as usize };
        let (name, first) = segments[index];
        let Some(file) = self.files.get_mut(&name) else { return false };
        let length = file.bytes.len() * share as usize / 1_000;
        if first + length as u64 >= self.known.synced {
            return false;
        }
        match share {
            0 => drop(self.files.remove(&name)),
            _ => {
                file.bytes.truncate(length);
                file.synced = file.synced.min(length);
            }
        }
        true
    }
}
