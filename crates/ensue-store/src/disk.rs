//! Disk work as data: what the store asks of a file system, and what it is told back. Nothing here touches a disk.
//!
//! Operations of one partition are carried out in the order in which they were emitted, except that a `Sync` may
//! finish after later `Append`s. Files are named relative to the partition's own directory. What a failure means is
//! decided here, not by who carries an operation out: nothing is retried unasked.

use bytes::Bytes;
use std::fmt;

/// A file of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileName {
    Superblock,
    /// A log segment, by the log position of its first byte.
    Segment(u64),
    /// A checkpoint, by its number.
    Checkpoint(u64),
    /// How far the log was known to be durable, written after each of its syncs.
    Witness,
    /// Zeroes: room that is given up for the log when the disk is full.
    Reserve,
    /// What a replica knows of the replicated log, by its number; no partition reads or writes it.
    Journal(u64),
}

/// One request to the disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DiskOp {
    /// All files of the partition's directory, which is created if it is missing.
    List,
    /// Appends at the end of a file, creating it; the answer comes when the operating system has the bytes.
    Append { file: FileName, bytes: Bytes },
    /// Makes everything appended to the file before durable, and the file's name too.
    Sync { file: FileName },
    /// Replaces a small file as a whole, atomically and durably: write aside, sync, rename, sync the directory.
    Replace { file: FileName, bytes: Bytes },
    /// Writes a file anew under its name, atomically and durably. What an earlier process wrote may be readable and yet
    /// dropped by a sync that failed, which no later sync of the same bytes would tell.
    Rewrite { file: FileName },
    /// Writes over a file that exists and is as long as these bytes, in place and without a sync: a killed process
    /// leaves it, a
    /// power failure may leave the old bytes, the new ones or neither. Carried out before anything that is asked for
    /// later, and
    /// answered only if it failed.
    Overwrite { file: FileName, bytes: Bytes },
    /// Reads up to `length` bytes; fewer only at the end of the file.
    Read { file: FileName, offset: u64, length: u32 },
    /// Cuts a file to a length, durably.
    Truncate { file: FileName, length: u64 },
    /// Removes a file, durably; missing is fine.
    Delete { file: FileName },
}

/// The answer to one request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DiskDone {
    Listed {
        files: Vec<(FileName, u64)>,
    },
    Appended {
        file: FileName,
    },
    Synced {
        file: FileName,
    },
    Replaced {
        file: FileName,
    },
    Rewritten {
        file: FileName,
    },
    Read {
        file: FileName,
        offset: u64,
        bytes: Bytes,
    },
    Truncated {
        file: FileName,
    },
    Deleted {
        file: FileName,
    },
    /// The request failed.
    Failed {
        op: &'static str,
        file: Option<FileName>,
        /// There was no room for an append, a replacement or a rewriting: a beginning of the bytes may stand at the end
        /// of the file, all else is as before. Any other failure leaves unknown what is durable, and is never retried
        /// (trap 55).
        full: bool,
        reason: String,
    },
}

/// What is said of a request that failed (`DiskDone::Failed`).
pub fn failure_words(op: &str, file: Option<FileName>, reason: &str) -> String {
    let file = file.map(|file| file.to_string()).unwrap_or_default();
    format!("{op} of {file} failed: {reason}")
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileName::Superblock => write!(f, "superblock"),
            FileName::Segment(first) => write!(f, "log-{first:016x}"),
            FileName::Checkpoint(number) => write!(f, "checkpoint-{number:08}"),
            FileName::Witness => write!(f, "witness"),
            FileName::Reserve => write!(f, "reserve"),
            FileName::Journal(number) => write!(f, "replica-{number:08}"),
        }
    }
}

impl FileName {
    /// The file of this name, if the store could have made it.
    pub fn parse(name: &str) -> Option<FileName> {
        FileName::of(name).filter(|file| file.to_string() == name)
    }

    /// The file that a name might be a form of: `log-0` is none that the store made.
    fn of(name: &str) -> Option<FileName> {
        match name {
            "superblock" => return Some(FileName::Superblock),
            "witness" => return Some(FileName::Witness),
            "reserve" => return Some(FileName::Reserve),
            _ => {}
        }
        if let Some(hex) = name.strip_prefix("log-") {
            return u64::from_str_radix(hex, 16).ok().map(FileName::Segment);
        }
        if let Some(number) = name.strip_prefix("replica-") {
            return number.parse().ok().map(FileName::Journal);
        }
        name.strip_prefix("checkpoint-")?.parse().ok().map(FileName::Checkpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_the_store_does_not_make_is_none_of_its_files() {
        for name in [
            "superblock",
            "witness",
            "reserve",
            "log-00000000000000f0",
            "checkpoint-00000003",
            "replica-00000001",
        ] {
            assert_eq!(FileName::parse(name).map(|file| file.to_string()).as_deref(), Some(name));
        }
        for name in
            ["checkpoint-3", "log-0", "log-+5", "log-00000000000000F0", "replica-1", "checkpoint-", "log"]
        {
            assert_eq!(FileName::parse(name), None, "{name}");
        }
    }

    #[test]
    fn a_file_is_known_by_the_name_that_it_was_given() {
        let fixed = [FileName::Superblock, FileName::Witness, FileName::Reserve];
        for file in
            fixed.into_iter().chain([FileName::Segment(0xab), FileName::Checkpoint(12), FileName::Journal(3)])
        {
            assert_eq!(FileName::parse(&file.to_string()), Some(file));
        }
        for stranger in
            ["", "superblock.new", "log-", "log-xyz", "checkpoint-", "checkpoint-1a", "lost+found"]
        {
            assert_eq!(FileName::parse(stranger), None, "{stranger}");
        }
    }
}
