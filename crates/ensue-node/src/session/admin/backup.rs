//! `CAUSAL BACKUP`: a copy of what this datacenter's disks hold at one moment, which a client reads file by file.
//!
//! The node's threads stop between two turns, all at once, and give the files second names; a moment later they go on.
//! What is read afterwards is what a machine that died in that moment would have left, so it is closed under causality
//! whatever carried it: nothing that happened in one partition before the moment is missing in another one.

use super::errand::{Outcome, Then, Waiting};
use crate::errand::{BackupDone, BackupErrand, Errand, ErrandDone};
use crate::session::cx::Cx;
use crate::session::step::Step;
use bytes::Bytes;
use ensue_resp::{CommandError, number};
use ensue_types::{Args, Reply};

/// Longest name of a backup.
const NAME_BYTES_MAX: usize = 64;
/// Bytes of a file that one answer holds at most.
const READ_BYTES_MAX: u64 = 1 << 20;

/// Whether this is a command of a backup.
pub(crate) fn is_command(args: &Args) -> bool {
    args.get(1).is_some_and(|word| word.eq_ignore_ascii_case(b"backup"))
}

/// `CAUSAL BACKUP` and its words.
pub(crate) fn on_command(cx: &mut Cx<'_>, args: &Args) -> Step<Outcome> {
    let topology = &cx.core.config.topology;
    if topology.datacenters[usize::from(topology.datacenter.0)].cores != cx.core.config.node_cores {
        return Step::answer(SEVERAL_NODES);
    }
    match errand(&args[2..]) {
        Ok(errand) => Step::Waits(Outcome::Waits(Waiting::begin(cx, Errand::Backup(errand), Then::Backup))),
        Err(refusal) => Step::answer(refusal),
    }
}

fn errand(words: &[Bytes]) -> Result<BackupErrand, Reply> {
    let (word, rest) = words.split_first().ok_or(USAGE)?;
    match (word.to_ascii_lowercase().as_slice(), rest) {
        (b"begin", [name]) => Ok(BackupErrand::Begin(name_of(name)?)),
        (b"list", [name]) => Ok(BackupErrand::List(name_of(name)?)),
        (b"end", [name]) => Ok(BackupErrand::End(name_of(name)?)),
        (b"read", [name, file, offset, length]) => {
            let count = |word| {
                let count = number::parse_i64(word).and_then(|count| u64::try_from(count).ok());
                count.ok_or(CommandError::NotInteger.reply())
            };
            let (name, offset, length) = (name_of(name)?, count(offset)?, count(length)?);
            if length > READ_BYTES_MAX {
                return Err(TOO_LONG);
            }
            Ok(BackupErrand::Read { name, file: file.clone(), offset, length: length as u32 })
        }
        _ => Err(USAGE),
    }
}

/// It becomes the name of a folder.
fn name_of(name: &Bytes) -> Result<String, Reply> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.iter().all(is_name) {
        return Err(NO_NAME);
    }
    Ok(String::from_utf8_lossy(name).into_owned())
}

pub(super) fn on_done(done: ErrandDone) -> Step<Outcome> {
    Step::answer(match done {
        ErrandDone::Backup(Ok(BackupDone::Done)) => Reply::OK,
        ErrandDone::Backup(Ok(BackupDone::Files(files))) => {
            Reply::Array(files.into_iter().map(file).collect())
        }
        ErrandDone::Backup(Ok(BackupDone::Bytes(bytes))) => Reply::Bulk(bytes),
        ErrandDone::Backup(Err(why)) => Reply::Error(format!("ERR {why}").into()),
        ErrandDone::Busy => BUSY,
        _ => UNEXPECTED,
    })
}

/// A file's name, its length, and the checksum of its last bytes.
fn file((name, length, checksum): (String, u64, u32)) -> Reply {
    let length = Reply::Integer(i64::try_from(length).unwrap_or(i64::MAX));
    Reply::Array(vec![Reply::bulk(name), length, Reply::Integer(i64::from(checksum))])
}

const USAGE: Reply = Reply::error(
    "ERR syntax error: CAUSAL BACKUP BEGIN <name> | LIST <name> | READ <name> <file> <offset> <length> | END <name>",
);
const NO_NAME: Reply = Reply::error("ERR the name of a backup has 1 to 64 letters, digits and hyphens");
const TOO_LONG: Reply = Reply::error("ERR one READ is of 1048576 bytes at most");
const SEVERAL_NODES: Reply = Reply::error(
    "ERR this datacenter has several nodes, and a backup is of the disks of one node: there is none of all of them at \
     one moment yet",
);
const BUSY: Reply = Reply::error("BUSY other backups are being read; try again later");
/// What was begun may be kept all the same, until another one is begun.
pub(super) const TIMEOUT: Reply = Reply::error(
    "TIMEOUT the disk did not answer in time; what was asked for may happen later, begin the backup again",
);
const UNEXPECTED: Reply = Reply::error("ERR the backup was answered with something else");
