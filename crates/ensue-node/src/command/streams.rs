//! Commands on streams: rows whose columns are parts (`stream` of `ensue-types`).
//!
//! An entry is a column that is never written again. Each datacenter has a log of its own, and readers merge the logs
//! by id. A group has a position in each log, so that it does not skip an entry that arrives later with a lower id.

mod add;
mod groups;
mod info;
mod log;
mod pending;
mod read;
mod values;
pub(super) mod whole;

use crate::evaluate::{Evaluation, Halt};
use bytes::Bytes;
use ensue_resp::CommandError;
use ensue_resp::request::{Stream, WaitingPop};
use ensue_types::{Column, Reply, StreamId, StreamPart};
use log::Log;

pub(super) use groups::{no_group_of_key, no_group_to_read, no_stream, read as read_group};
pub(super) use pending::no_group;
pub(super) use read::read as read_streams;

/// About the bytes of a part beside its key, its value and the names in its name.
const NAME_BYTES: usize = 32;

/// The answer to a command that asks for help, which no key has a part in.
pub(super) fn help(request: &Stream) -> Option<Reply> {
    let text: &[&'static str] = match request {
        Stream::GroupHelp => &GROUP_HELP,
        Stream::InfoHelp => &INFO_HELP,
        _ => return None,
    };
    Some(Reply::Array(text.iter().map(|&line| Reply::Status(line.into())).collect()))
}

/// Whether a stream may have something for one that waits there: an entry behind the id from which it reads, or one
/// that its group has not been delivered; or the group is gone, which it is told.
pub(super) fn may_serve(
    pop: &WaitingPop,
    key: &Bytes,
    evaluation: &mut Evaluation<'_>,
) -> Result<bool, Halt> {
    match pop {
        WaitingPop::Entries(read) => {
            let top = log(evaluation, key)?.top()?;
            Ok(read.streams.iter().any(|(of, behind)| of == key && behind.is_none_or(|behind| behind < top)))
        }
        WaitingPop::Delivered(read) => {
            let log = log(evaluation, key)?;
            let Some(cursor) = log.cursor(&read.group)? else { return Ok(true) };
            let mut is_there = read.streams.iter().any(|(of, behind)| of == key && behind.is_some());
            for source in log.sources()? {
                is_there |= log.last_of(source)? > cursor.position(source);
            }
            Ok(is_there)
        }
        _ => Ok(true),
    }
}

pub(super) fn evaluate(request: &Stream, evaluation: &mut Evaluation<'_>) -> Result<Reply, Halt> {
    match request {
        Stream::Add { key, id, fields, trim, makes_stream } => {
            let added = add::Added { id: *id, fields, trim: *trim, makes_stream: *makes_stream };
            add::add(evaluation, key, &added)
        }
        Stream::Length { key } => Ok(super::integer(log(evaluation, key)?.length())),
        Stream::Range { key, from, to, count, reverse } => {
            read::range(evaluation, key, [*from, *to], *count, *reverse)
        }
        Stream::Delete { key, ids } => add::delete(evaluation, key, ids),
        Stream::Trim { key, trim } => Ok(super::integer(add::trim(evaluation, key, *trim)?)),
        Stream::SetId { key, last, added, deleted } => {
            add::set_id(evaluation, key, *last, (*added, *deleted))
        }
        Stream::Read(read) => read::read(evaluation, read),
        Stream::Latest { keys } => read::latest(evaluation, keys),
        Stream::Group { key, group, change } => groups::change(evaluation, key, group, change),
        Stream::ReadGroup(read) => groups::read(evaluation, read),
        Stream::Acknowledge { key, group, ids } => pending::acknowledge(evaluation, key, group, ids),
        Stream::Pending { key, group } => pending::summary(evaluation, key, group),
        Stream::PendingRange { key, group, range } => pending::list(evaluation, key, group, range),
        Stream::Claim(claim) => pending::claim(evaluation, claim),
        Stream::ClaimIdle { key, group, consumer, idle_ms_min, from, count, only_ids } => {
            let wanted = pending::Idle {
                key,
                group,
                consumer,
                idle_ms_min: *idle_ms_min,
                from: *from,
                count: *count,
                only_ids: *only_ids,
            };
            pending::claim_idle(evaluation, &wanted)
        }
        Stream::Info { key, full: None } => info::stream(evaluation, key),
        Stream::Info { key, full: Some(count) } => info::full(evaluation, key, *count),
        Stream::GroupHelp | Stream::InfoHelp => Ok(help(request).unwrap_or(Reply::Nil)),
        Stream::InfoGroups { key } => info::groups(evaluation, key),
        Stream::InfoConsumers { key, group } => info::consumers(evaluation, key, group),
    }
}

/// An entry of a whole row that is told to a client: its id, fields and values. Nothing of another part.
pub(crate) fn entry_reply(name: &Bytes, value: Bytes) -> Option<Reply> {
    match StreamPart::of(name)? {
        StreamPart::Entry(source, id) => Some(log::Entry { id, source, value }.reply()),
        _ => None,
    }
}

/// Whether a stream has a group.
pub(super) fn has_group(evaluation: &mut Evaluation<'_>, key: &[u8], group: &Bytes) -> Result<bool, Halt> {
    Ok(log(evaluation, key)?.cursor(group)?.is_some())
}

fn log<'e>(evaluation: &'e mut Evaluation<'_>, key: &[u8]) -> Result<Log<'e>, Halt> {
    evaluation.parts(key).map(Log)
}

fn id_reply(id: StreamId) -> Reply {
    Reply::Bulk(Bytes::from(id.to_string()))
}

fn error(words: String) -> Halt {
    Halt::Error(Reply::Error(words.into()))
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// What a part takes in an entry of the log.
fn part_bytes(key: &Bytes, names: usize, value: usize) -> usize {
    crate::evaluate::effect_bytes(key, &Column::Stream(Bytes::new()), NAME_BYTES + names + value)
}

fn no_such_key() -> Halt {
    CommandError::NoSuchKey.into()
}

const GROUP_HELP: [&str; 17] = [
    "XGROUP <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CREATE <key> <groupname> <id|$> [MKSTREAM] [ENTRIESREAD entries_read]",
    "    Make a group of consumers that begins behind this id; MKSTREAM makes the stream, too.",
    "CREATECONSUMER <key> <groupname> <consumer>",
    "    Make a consumer of a group.",
    "DELCONSUMER <key> <groupname> <consumer>",
    "    Remove a consumer of a group; answers how many entries it had not acknowledged.",
    "DESTROY <key> <groupname>",
    "    Remove a group.",
    "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
    "    Have a group go on behind this id.",
    "HELP",
    "    Print this help.",
    "Groups are of all datacenters together:",
    "    each datacenter goes on behind what it knows of the others' reading, and those that do not see each other's",
    "    reading deliver the same entries; where the key has a home, nobody does.",
    "See XREADGROUP, XACK, XPENDING, XCLAIM and XAUTOCLAIM.",
];

const INFO_HELP: [&str; 9] = [
    "XINFO <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CONSUMERS <key> <groupname>",
    "    The consumers of a group, what each has not acknowledged, and how long they have been idle.",
    "GROUPS <key>",
    "    The groups of a stream.",
    "STREAM <key> [FULL [COUNT <count>]]",
    "    The stream; FULL with its entries, groups and consumers.",
    "HELP",
    "    Print this help.",
];
