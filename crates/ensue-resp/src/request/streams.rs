//! Commands on streams.
//!
//! Arguments of the right number arrive, a request or Redis's error leaves. What `$` and `*` stand for is found out
//! where the stream is.

mod groups;

use super::blocking::{Blocking, WaitingPop};
use super::{Request, integer, is_word};
use crate::{CommandError, number};
use bytes::Bytes;
use ensue_types::{Reply, StreamId};
use std::borrow::Cow;

pub use groups::{Claim, ClaimTime, GroupChange, GroupRead, GroupStart, PendingRange};

/// What the owner of streams evaluates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stream {
    /// `XADD`: the id, or nil if the stream is not there and is not to be made.
    Add { key: Bytes, id: NewId, fields: Vec<Bytes>, trim: Option<Trim>, makes_stream: bool },
    /// `XLEN`.
    Length { key: Bytes },
    /// `XRANGE`, `XREVRANGE`: entries. None are asked for with `count` zero.
    Range { key: Bytes, from: StreamId, to: StreamId, count: Option<usize>, reverse: bool },
    /// `XDEL`: the number of entries removed.
    Delete { key: Bytes, ids: Vec<StreamId> },
    /// `XTRIM`: the number of entries removed.
    Trim { key: Bytes, trim: Trim },
    /// `XSETID`: `OK`.
    SetId { key: Bytes, last: StreamId, added: Option<i64>, deleted: Option<StreamId> },
    /// `XREAD`: entries by key, or nil.
    Read(StreamRead),
    /// The last id of each of these streams, for those who read what comes behind them.
    Latest { keys: Vec<Bytes> },
    /// `XGROUP`.
    Group { key: Bytes, group: Bytes, change: GroupChange },
    /// `XREADGROUP`: entries by key, or nil.
    ReadGroup(GroupRead),
    /// `XACK`: how many were pending.
    Acknowledge { key: Bytes, group: Bytes, ids: Vec<StreamId> },
    /// `XPENDING` of a group: how many are pending, the first, the last, and how many of each consumer.
    Pending { key: Bytes, group: Bytes },
    /// `XPENDING` of a range.
    PendingRange { key: Bytes, group: Bytes, range: PendingRange },
    /// `XCLAIM`: entries, or ids.
    Claim(Claim),
    /// `XAUTOCLAIM`: where to go on, entries or ids, and ids of removed entries.
    ClaimIdle {
        key: Bytes,
        group: Bytes,
        consumer: Bytes,
        idle_ms_min: u64,
        from: StreamId,
        count: usize,
        only_ids: bool,
    },
    /// `XINFO STREAM`; with a number, `FULL`, of which zero is all.
    Info { key: Bytes, full: Option<usize> },
    /// `XINFO GROUPS`.
    InfoGroups { key: Bytes },
    /// `XINFO CONSUMERS`.
    InfoConsumers { key: Bytes, group: Bytes },
    /// `XGROUP HELP`.
    GroupHelp,
    /// `XINFO HELP`.
    InfoHelp,
}

/// The id that an entry is added with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewId {
    /// `*`.
    Drawn,
    /// `ms-*`.
    DrawnAt(u64),
    Given(StreamId),
}

/// Which of the oldest entries are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    pub keeps: Kept,
    /// `~`: as many as are easily removed, at most so many; without `LIMIT` a bound of Redis, and all with zero.
    pub about: Option<Option<usize>>,
}

/// Which entries a trimmed stream keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// `MAXLEN`.
    Latest(usize),
    /// `MINID`.
    From(StreamId),
}

/// What `XREAD` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRead {
    /// Streams, and the ids behind which they are read; nothing stands for `$`, the last one.
    pub streams: Vec<(Bytes, Option<StreamId>)>,
    /// How many of each stream.
    pub count: Option<usize>,
}

pub(super) fn parse(name: &'static str, args: &[Bytes]) -> Result<Option<Request>, CommandError> {
    let key = args[1].clone();
    Ok(Some(Request::Streams(match name {
        "xadd" => add(args)?,
        "xlen" => Stream::Length { key },
        "xrange" => range(key, [&args[2], &args[3]], &args[4..], false)?,
        "xrevrange" => range(key, [&args[3], &args[2]], &args[4..], true)?,
        "xdel" => Stream::Delete { key, ids: ids(&args[2..])? },
        "xtrim" => {
            let (trim, _, rest) = trim_options(&args[2..], false)?;
            let trim = trim.filter(|_| rest.is_empty()).ok_or(CommandError::Argument(
                "syntax error, XTRIM must be called with a trimming strategy",
            ))?;
            Stream::Trim { key, trim }
        }
        "xsetid" => set_id(key, &args[2..])?,
        "xread" | "xreadgroup" => return read(name, args).map(Some),
        _ => match groups::parse(name, args)? {
            Some(request) => request,
            None => return Ok(None),
        },
    })))
}

impl Stream {
    pub(super) fn is_write(&self) -> bool {
        use Stream::*;
        match self {
            Length { .. } | Range { .. } | Read(_) | Latest { .. } => false,
            Pending { .. } | PendingRange { .. } => false,
            Info { .. } | InfoGroups { .. } | InfoConsumers { .. } | GroupHelp | InfoHelp => false,
            Add { .. } | Delete { .. } | Trim { .. } | SetId { .. } => true,
            Group { .. } | ReadGroup(_) | Acknowledge { .. } | Claim(_) | ClaimIdle { .. } => true,
        }
    }

    pub(super) fn key(&self) -> Option<&Bytes> {
        use Stream::*;
        match self {
            Add { key, .. } | Length { key } | Range { key, .. } | Delete { key, .. } => Some(key),
            Trim { key, .. } | SetId { key, .. } | Acknowledge { key, .. } => Some(key),
            Pending { key, .. } | PendingRange { key, .. } | ClaimIdle { key, .. } => Some(key),
            Claim(claim) => Some(&claim.key),
            Read(_) | ReadGroup(_) | Latest { .. } => None,
            // Their key stands behind a subcommand.
            Group { .. } | Info { .. } | InfoGroups { .. } | InfoConsumers { .. } => None,
            GroupHelp | InfoHelp => None,
        }
    }
}

pub(super) const INVALID_ID: CommandError =
    CommandError::Argument("Invalid stream ID specified as stream command argument");

/// A number without a sign.
fn unsigned(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// `ms-seq`, or `ms` with this in place of the second number.
fn id_or(text: &[u8], sequence: u64) -> Option<StreamId> {
    let Some(dash) = text.iter().position(|byte| *byte == b'-') else {
        return unsigned(text).map(|ms| StreamId { ms, sequence });
    };
    Some(StreamId { ms: unsigned(&text[..dash])?, sequence: unsigned(&text[dash + 1..])? })
}

/// An id, of which the second number may be left out as zero.
fn id(text: &[u8]) -> Result<StreamId, CommandError> {
    id_or(text, 0).ok_or(INVALID_ID)
}

fn ids(args: &[Bytes]) -> Result<Vec<StreamId>, CommandError> {
    args.iter().map(|text| id(text)).collect()
}

/// The first id of a range.
fn first_id(text: &[u8]) -> Result<StreamId, CommandError> {
    match text {
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        [b'(', rest @ ..] if !rest.is_empty() => {
            id(rest)?.next().ok_or(CommandError::Argument("invalid start ID for the interval"))
        }
        _ => id(text),
    }
}

/// The last id of a range.
fn last_id(text: &[u8]) -> Result<StreamId, CommandError> {
    match text {
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        [b'(', rest @ ..] if !rest.is_empty() => id_or(rest, u64::MAX)
            .ok_or(INVALID_ID)?
            .previous()
            .ok_or(CommandError::Argument("invalid end ID for the interval")),
        _ => id_or(text, u64::MAX).ok_or(INVALID_ID),
    }
}

/// A count, of which what is negative is none.
fn count(argument: &[u8]) -> Result<usize, CommandError> {
    Ok(usize::try_from(integer(argument)?.max(0)).unwrap_or(usize::MAX))
}

fn add(args: &[Bytes]) -> Result<Stream, CommandError> {
    let (trim, makes_stream, rest) = trim_options(&args[2..], true)?;
    let [id_text, fields @ ..] = rest else { return Err(CommandError::wrong_arity("xadd")) };
    let id = match &id_text[..] {
        b"*" => NewId::Drawn,
        text => match text.strip_suffix(b"-*") {
            Some(ms) => NewId::DrawnAt(unsigned(ms).ok_or(INVALID_ID)?),
            None => NewId::Given(id(text)?),
        },
    };
    if fields.is_empty() || fields.len() % 2 == 1 {
        return Err(CommandError::wrong_arity("xadd"));
    }
    if id == NewId::Given(StreamId::MIN) {
        return Err(CommandError::Argument("The ID specified in XADD must be greater than 0-0"));
    }
    Ok(Stream::Add { key: args[1].clone(), id, fields: fields.to_vec(), trim, makes_stream })
}

/// How to trim, whether the stream may be made, and what follows. Of `XADD` that begins with the id.
fn trim_options(mut args: &[Bytes], adds: bool) -> Result<(Option<Trim>, bool, &[Bytes]), CommandError> {
    let (mut keeps, mut is_about, mut limit, mut makes_stream) = (None, false, None, true);
    while let [word, rest @ ..] = args {
        let of_length = is_word(word, "MAXLEN");
        if (of_length || is_word(word, "MINID")) && !rest.is_empty() {
            if keeps.is_some() {
                return Err(CommandError::Argument(
                    "syntax error, MAXLEN and MINID options at the same time are not compatible",
                ));
            }
            let (about, rest) = match rest {
                [mark, rest @ ..] if mark == "~" && !rest.is_empty() => (true, rest),
                [mark, rest @ ..] if mark == "=" && !rest.is_empty() => (false, rest),
                rest => (false, rest),
            };
            is_about = about;
            keeps = Some(match of_length {
                true => Kept::Latest(at_least_zero(&rest[0], "The MAXLEN argument must be >= 0.")?),
                false => Kept::From(id(&rest[0])?),
            });
            args = &rest[1..];
        } else if is_word(word, "LIMIT") && !rest.is_empty() {
            limit = Some(at_least_zero(&rest[0], "The LIMIT argument must be >= 0.")?);
            args = &rest[1..];
        } else if adds && is_word(word, "NOMKSTREAM") {
            makes_stream = false;
            args = rest;
        } else if adds {
            break;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    match (keeps, limit) {
        (None, Some(_)) => Err(CommandError::Argument(
            "syntax error, LIMIT cannot be used without specifying a trimming strategy",
        )),
        (Some(_), Some(_)) if !is_about => {
            Err(CommandError::Argument("syntax error, LIMIT cannot be used without the special ~ option"))
        }
        _ => {
            let about = is_about.then_some(limit);
            Ok((keeps.map(|keeps| Trim { keeps, about }), makes_stream, args))
        }
    }
}

fn at_least_zero(argument: &[u8], otherwise: &'static str) -> Result<usize, CommandError> {
    usize::try_from(integer(argument)?).map_err(|_| CommandError::Argument(otherwise))
}

fn range(
    key: Bytes,
    [from, to]: [&Bytes; 2],
    options: &[Bytes],
    reverse: bool,
) -> Result<Stream, CommandError> {
    let (from, to) = (first_id(from)?, last_id(to)?);
    let mut limit = None;
    for option in options.chunks(2) {
        match option {
            [word, argument] if is_word(word, "COUNT") => limit = Some(count(argument)?),
            _ => return Err(CommandError::Syntax),
        }
    }
    Ok(Stream::Range { key, from, to, count: limit, reverse })
}

fn set_id(key: Bytes, args: &[Bytes]) -> Result<Stream, CommandError> {
    let last = id(&args[0])?;
    let (mut added, mut deleted) = (None, None);
    for option in args[1..].chunks(2) {
        match option {
            [word, argument] if is_word(word, "ENTRIESADDED") => {
                let count = Some(integer(argument)?).filter(|count| *count >= 0);
                added = Some(count.ok_or(CommandError::Argument("entries_added must be positive"))?);
            }
            [word, argument] if is_word(word, "MAXDELETEDID") => {
                let id = id(argument)?;
                if id > last {
                    return Err(CommandError::Argument(
                        "The ID specified in XSETID is smaller than the provided max_deleted_entry_id",
                    ));
                }
                deleted = Some(id);
            }
            _ => return Err(CommandError::Syntax),
        }
    }
    Ok(Stream::SetId { key, last, added, deleted })
}

/// What stands before the keys of `XREAD` and `XREADGROUP`, and those with their ids.
struct ReadOptions<'a> {
    count: Option<usize>,
    /// How long to wait, if that is wanted; nothing in it is for ever.
    block: Option<Option<u64>>,
    acknowledged: bool,
    group: Option<(Bytes, Bytes)>,
    named: &'a [Bytes],
}

/// `XREAD` and `XREADGROUP`.
fn read(name: &'static str, args: &[Bytes]) -> Result<Request, CommandError> {
    let of_group = name == "xreadgroup";
    let ReadOptions { count, block, acknowledged, group, named } = read_options(&args[1..], of_group)?;
    if named.len() % 2 == 1 {
        return Err(CommandError::Argument(match of_group {
            true => {
                "Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified."
            }
            false => {
                "Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be specified."
            }
        }));
    }
    if of_group && group.is_none() {
        return Err(CommandError::Argument("Missing GROUP option for XREADGROUP"));
    }
    let (keys, ids) = named.split_at(named.len() / 2);
    let ids = ids.iter().map(|text| place(text, of_group)).collect::<Result<Vec<_>, _>>()?;
    let streams: Vec<(Bytes, Option<StreamId>)> = keys.iter().cloned().zip(ids).collect();
    let Some((group, consumer)) = group else {
        let read = StreamRead { streams, count };
        return Ok(match block {
            Some(timeout_ms) => Request::Blocking(Blocking { pop: WaitingPop::Entries(read), timeout_ms }),
            None => Request::Streams(Stream::Read(read)),
        });
    };
    let waits = streams.iter().all(|(_, place)| place.is_none());
    let read = GroupRead { group, consumer, streams, count, acknowledged };
    Ok(match block.filter(|_| waits) {
        Some(timeout_ms) => Request::Blocking(Blocking { pop: WaitingPop::Delivered(read), timeout_ms }),
        None => Request::Streams(Stream::ReadGroup(read)),
    })
}

/// The keys up to that of the first id that is wrong, and the group that reads them; nothing if no id is.
pub(super) fn keys_before_error(name: &'static str, args: &[Bytes]) -> Option<(Vec<Bytes>, Option<Bytes>)> {
    let of_group = name == "xreadgroup";
    let ReadOptions { group, named, .. } = read_options(&args[1..], of_group).ok()?;
    if named.len() % 2 == 1 || of_group && group.is_none() {
        return None;
    }
    let (keys, ids) = named.split_at(named.len() / 2);
    let wrong = ids.iter().position(|text| place(text, of_group).is_err())?;
    Some((keys[..=wrong].to_vec(), group.map(|(group, _)| group)))
}

fn read_options(mut rest: &[Bytes], of_group: bool) -> Result<ReadOptions<'_>, CommandError> {
    let mut options = ReadOptions { count: None, block: None, acknowledged: false, group: None, named: &[] };
    loop {
        rest = match rest {
            [word, argument, rest @ ..] if is_word(word, "BLOCK") => {
                options.block = Some(block_ms(argument)?);
                rest
            }
            [word, argument, rest @ ..] if is_word(word, "COUNT") => {
                options.count = Some(count(argument)?).filter(|count| *count > 0);
                rest
            }
            [word, named @ ..] if is_word(word, "STREAMS") && !named.is_empty() => {
                return Ok(ReadOptions { named, ..options });
            }
            [word, group, consumer, rest @ ..] if is_word(word, "GROUP") => {
                if !of_group {
                    return Err(CommandError::Argument(
                        "The GROUP option is only supported by XREADGROUP. You called XREAD instead.",
                    ));
                }
                options.group = Some((group.clone(), consumer.clone()));
                rest
            }
            [word, rest @ ..] if is_word(word, "NOACK") => {
                if !of_group {
                    return Err(CommandError::Argument(
                        "The NOACK option is only supported by XREADGROUP. You called XREAD instead.",
                    ));
                }
                options.acknowledged = true;
                rest
            }
            _ => return Err(CommandError::Syntax),
        };
    }
}

/// Behind which id a stream is read: nothing is behind the last one, or of a group behind what was delivered.
fn place(text: &[u8], of_group: bool) -> Result<Option<StreamId>, CommandError> {
    match (text, of_group) {
        (b"$", false) | (b">", true) => Ok(None),
        (b"$", true) => Err(CommandError::Argument(
            "The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.",
        )),
        (b">", false) => Err(CommandError::Argument(
            "The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.",
        )),
        _ => id(text).map(Some),
    }
}

/// How long a reader waits, in milliseconds; for ever if it is zero.
fn block_ms(argument: &[u8]) -> Result<Option<u64>, CommandError> {
    let ms = number::parse_i64(argument)
        .ok_or(CommandError::Argument("timeout is not an integer or out of range"))?;
    let ms = u64::try_from(ms).map_err(|_| CommandError::Argument("timeout is negative"))?;
    Ok(Some(ms).filter(|ms| *ms > 0))
}

impl StreamRead {
    /// The command that reads the same, with these ids in place of `$`.
    pub fn with_latest(args: &[Bytes], latest: &[Reply]) -> Vec<Bytes> {
        let mut args = args.to_vec();
        let first = args.len().saturating_sub(latest.len());
        for (argument, latest) in args[first..].iter_mut().zip(latest) {
            if let (b"$", Reply::Bulk(latest)) = (&argument[..], latest) {
                *argument = latest.clone();
            }
        }
        args
    }
}

fn wrong_arity(name: &'static str, subcommand: &str) -> CommandError {
    CommandError::WrongArity(Cow::Owned(format!("{name}|{subcommand}")))
}
