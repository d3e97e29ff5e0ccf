//! What `CAUSAL BACKUP` asks for, in words, and what its client is answered: read and made where the client is, or at
//! the node that does it.

use super::{BackupDone, BackupErrand, ErrandDone, Held};
use bytes::Bytes;
use ensue_resp::{CommandError, number};
use ensue_types::Reply;

/// Longest name of a backup.
const NAME_BYTES_MAX: usize = 64;
/// Bytes of a file that one answer holds at most.
const READ_BYTES_MAX: u64 = 1 << 20;
/// How long the cores of a node are kept still at most: replicas elect others when a leader is silent for longer.
const HOLD_MS_MAX: u64 = 200;

/// Reads the words behind `CAUSAL BACKUP`, and behind the node that is to do it.
pub(crate) fn errand(words: &[Bytes]) -> Result<BackupErrand, Reply> {
    let (word, rest) = words.split_first().ok_or(USAGE)?;
    let count = |word| {
        let count = number::parse_i64(word).and_then(|count| u64::try_from(count).ok());
        count.ok_or(CommandError::NotInteger.reply())
    };
    match (word.to_ascii_lowercase().as_slice(), rest) {
        (b"begin", [name]) => Ok(BackupErrand::Begin { name: name_of(name)?, hold_ms: 0 }),
        (b"begin", [name, hold, ms]) if hold.eq_ignore_ascii_case(b"hold") => {
            let (name, hold_ms) = (name_of(name)?, count(ms)?);
            if !(1..=HOLD_MS_MAX).contains(&hold_ms) {
                return Err(TOO_STILL);
            }
            Ok(BackupErrand::Begin { name, hold_ms })
        }
        (b"list", [name]) => Ok(BackupErrand::List(name_of(name)?)),
        (b"end", [name]) => Ok(BackupErrand::End(name_of(name)?)),
        (b"read", [name, file, offset, length]) => {
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

/// What a client is answered, here or at another node.
pub(crate) fn reply(done: ErrandDone) -> Reply {
    match done {
        ErrandDone::Backup(Ok(BackupDone::Done)) => Reply::OK,
        ErrandDone::Backup(Ok(BackupDone::Held(held))) => steps(held),
        ErrandDone::Backup(Ok(BackupDone::Files(files))) => {
            Reply::Array(files.into_iter().map(file).collect())
        }
        ErrandDone::Backup(Ok(BackupDone::Bytes(bytes))) => Reply::Bulk(bytes),
        ErrandDone::Backup(Err(why)) => Reply::Error(format!("ERR {why}").into()),
        ErrandDone::BackupTold(reply) => reply,
        ErrandDone::Busy => BUSY,
        _ => UNEXPECTED,
    }
}

fn steps(held: Held) -> Reply {
    let us = |us| Reply::Integer(i64::try_from(us).unwrap_or(i64::MAX));
    Reply::Array(vec![us(held.before_us), us(held.held_us), us(held.after_us)])
}

/// A file's name, its length, and the checksum of its last bytes.
fn file((name, length, checksum): (String, u64, u32)) -> Reply {
    let length = Reply::Integer(i64::try_from(length).unwrap_or(i64::MAX));
    Reply::Array(vec![Reply::bulk(name), length, Reply::Integer(i64::from(checksum))])
}

pub(crate) const USAGE: Reply = Reply::error(
    "ERR syntax error: CAUSAL BACKUP NODES | [NODE <number>] BEGIN <name> [HOLD <ms>] | LIST <name> | \
     READ <name> <file> <offset> <length> | END <name>",
);
const NO_NAME: Reply = Reply::error("ERR the name of a backup has 1 to 64 letters, digits and hyphens");
const TOO_LONG: Reply = Reply::error("ERR one READ is of 1048576 bytes at most");
const TOO_STILL: Reply = Reply::error("ERR cores are held for 1 to 200 ms");
/// There is no link to the node that is to do it.
pub(crate) const NOT_REACHED: Reply =
    Reply::error("UNAVAILABLE there is no link to that node; nothing was kept there");
const BUSY: Reply = Reply::error("BUSY other backups are being read; try again later");
const UNEXPECTED: Reply = Reply::error("ERR the backup was answered with something else");
