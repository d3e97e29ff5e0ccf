//! Commands on groups of consumers, and what is told of streams.

use super::{Stream, count, first_id, id, id_or, ids, last_id, wrong_arity};
use crate::request::{integer, is_word};
use crate::{CommandError, number};
use bytes::Bytes;
use ensue_types::StreamId;

/// What `XGROUP` does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupChange {
    /// `CREATE`: `OK`.
    Create { start: GroupStart, makes_stream: bool },
    /// `SETID`: `OK`.
    Set(GroupStart),
    /// `DESTROY`: 1 or 0.
    Destroy,
    /// `CREATECONSUMER`: 1 or 0.
    CreateConsumer(Bytes),
    /// `DELCONSUMER`: how many were pending.
    DeleteConsumer(Bytes),
}

/// From where a group reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupStart {
    /// Behind this id; nothing is behind the last one.
    pub behind: Option<StreamId>,
    /// How many entries come before, if that is known.
    pub entries_read: Option<u64>,
}

/// What `XREADGROUP` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRead {
    pub group: Bytes,
    pub consumer: Bytes,
    /// Streams, and the ids behind which the consumer's pending entries are read; nothing stands for `>`, new entries.
    pub streams: Vec<(Bytes, Option<StreamId>)>,
    /// How many of each stream.
    pub count: Option<usize>,
    /// `NOACK`: what is delivered does not become pending.
    pub acknowledged: bool,
}

/// Which pending entries `XPENDING` lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingRange {
    pub idle_ms_min: u64,
    pub from: StreamId,
    pub to: StreamId,
    pub count: usize,
    pub consumer: Option<Bytes>,
}

/// What `XCLAIM` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub key: Bytes,
    pub group: Bytes,
    pub consumer: Bytes,
    pub idle_ms_min: u64,
    pub ids: Vec<StreamId>,
    pub delivered: ClaimTime,
    /// `RETRYCOUNT`.
    pub deliveries: Option<u64>,
    /// `FORCE`: also what is not pending.
    pub forced: bool,
    /// `JUSTID`.
    pub only_ids: bool,
    /// `LASTID`.
    pub last: Option<StreamId>,
}

/// When a claimed entry is said to have been delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimTime {
    /// `IDLE`: so many milliseconds ago.
    AgoMs(u64),
    /// `TIME`: milliseconds since 1970.
    AtMs(u64),
}

pub(super) fn parse(name: &'static str, args: &[Bytes]) -> Result<Option<Stream>, CommandError> {
    let key = args[1].clone();
    Ok(Some(match name {
        "xgroup" => group(args)?,
        "xinfo" => info(args)?,
        "xack" => Stream::Acknowledge { key, group: args[2].clone(), ids: ids(&args[3..])? },
        "xpending" => pending(key, &args[2..])?,
        "xclaim" => Stream::Claim(claim(args)?),
        "xautoclaim" => claim_idle(args)?,
        _ => return Ok(None),
    }))
}

fn group(args: &[Bytes]) -> Result<Stream, CommandError> {
    let word = args[1].to_ascii_lowercase();
    let arity = |name| wrong_arity("xgroup", name);
    if word == b"help"[..] {
        return if args.len() == 2 { Ok(Stream::GroupHelp) } else { Err(arity("help")) };
    }
    let [_, _, key, group, rest @ ..] = args else {
        return Err(match &word[..] {
            b"create" => arity("create"),
            b"setid" => arity("setid"),
            b"destroy" => arity("destroy"),
            b"createconsumer" => arity("createconsumer"),
            b"delconsumer" => arity("delconsumer"),
            _ => CommandError::unknown_subcommand("xgroup", &args[1]),
        });
    };
    let change = match (&word[..], rest) {
        (b"create", [behind, options @ ..]) => {
            let (start, makes_stream) = group_start(behind, options, true)?;
            GroupChange::Create { start, makes_stream }
        }
        (b"setid", [behind, options @ ..]) => GroupChange::Set(group_start(behind, options, false)?.0),
        (b"destroy", []) => GroupChange::Destroy,
        (b"createconsumer", [consumer]) => GroupChange::CreateConsumer(consumer.clone()),
        (b"delconsumer", [consumer]) => GroupChange::DeleteConsumer(consumer.clone()),
        (b"create", _) => return Err(arity("create")),
        (b"setid", _) => return Err(arity("setid")),
        (b"destroy", _) => return Err(arity("destroy")),
        (b"createconsumer", _) => return Err(arity("createconsumer")),
        (b"delconsumer", _) => return Err(arity("delconsumer")),
        _ => return Err(CommandError::unknown_subcommand("xgroup", &args[1])),
    };
    Ok(Stream::Group { key: key.clone(), group: group.clone(), change })
}

fn group_start(
    behind: &Bytes,
    mut options: &[Bytes],
    creates: bool,
) -> Result<(GroupStart, bool), CommandError> {
    let (mut entries_read, mut makes_stream) = (None, false);
    while let [word, rest @ ..] = options {
        options = match rest {
            rest if creates && is_word(word, "MKSTREAM") => {
                makes_stream = true;
                rest
            }
            [count, rest @ ..] if is_word(word, "ENTRIESREAD") => {
                let count = integer(count)?;
                if count < -1 {
                    return Err(CommandError::Argument("value for ENTRIESREAD must be positive or -1"));
                }
                entries_read = u64::try_from(count).ok();
                rest
            }
            _ => return Err(CommandError::Syntax),
        };
    }
    let behind = match &behind[..] {
        b"$" => None,
        text => Some(id(text)?),
    };
    Ok((GroupStart { behind, entries_read }, makes_stream))
}

fn info(args: &[Bytes]) -> Result<Stream, CommandError> {
    let word = args[1].to_ascii_lowercase();
    let arity = |name| wrong_arity("xinfo", name);
    Ok(match (&word[..], &args[2..]) {
        (b"stream", [key, options @ ..]) => {
            let full = match options {
                [] => None,
                [word] if is_word(word, "FULL") => Some(INFO_COUNT),
                [word, limit, number] if is_word(word, "FULL") && is_word(limit, "COUNT") => {
                    // Of a negative number Redis makes its default.
                    Some(usize::try_from(integer(number)?).unwrap_or(INFO_COUNT))
                }
                _ => return Err(CommandError::unknown_subcommand("xinfo", &args[1])),
            };
            Stream::Info { key: key.clone(), full }
        }
        (b"help", []) => Stream::InfoHelp,
        (b"help", _) => return Err(arity("help")),
        (b"groups", [key]) => Stream::InfoGroups { key: key.clone() },
        (b"consumers", [key, group]) => Stream::InfoConsumers { key: key.clone(), group: group.clone() },
        (b"stream", _) => return Err(arity("stream")),
        (b"groups", _) => return Err(arity("groups")),
        (b"consumers", _) => return Err(arity("consumers")),
        _ => return Err(CommandError::unknown_subcommand("xinfo", &args[1])),
    })
}

fn pending(key: Bytes, args: &[Bytes]) -> Result<Stream, CommandError> {
    let group = args[0].clone();
    let (idle, rest) = match &args[1..] {
        [] => return Ok(Stream::Pending { key, group }),
        [word, idle, rest @ ..] if is_word(word, "IDLE") => (integer(idle)?, rest),
        rest => (0, rest),
    };
    let (from, to, number, consumer) = match rest {
        [from, to, number] => (from, to, number, None),
        [from, to, number, consumer] => (from, to, number, Some(consumer.clone())),
        _ => return Err(CommandError::Syntax),
    };
    let count = count(number)?;
    let (from, to) = (first_id(from)?, last_id(to)?);
    let idle_ms_min = u64::try_from(idle).unwrap_or(0);
    Ok(Stream::PendingRange { key, group, range: PendingRange { idle_ms_min, from, to, count, consumer } })
}

fn claim(args: &[Bytes]) -> Result<Claim, CommandError> {
    let idle = number::parse_i64(&args[4])
        .ok_or(CommandError::Argument("Invalid min-idle-time argument for XCLAIM"))?;
    let found = args[5..].iter().map_while(|text| id_or(text, 0));
    let mut claim = Claim {
        key: args[1].clone(),
        group: args[2].clone(),
        consumer: args[3].clone(),
        idle_ms_min: u64::try_from(idle).unwrap_or(0),
        ids: found.collect(),
        delivered: ClaimTime::AgoMs(0),
        deliveries: None,
        forced: false,
        only_ids: false,
        last: None,
    };
    let mut rest = &args[5 + claim.ids.len()..];
    let positive = |text: &Bytes, otherwise| {
        number::parse_i64(text)
            .map(|value| u64::try_from(value).unwrap_or(0))
            .ok_or(CommandError::Argument(otherwise))
    };
    while let [word, more @ ..] = rest {
        rest = match more {
            more if is_word(word, "FORCE") => {
                claim.forced = true;
                more
            }
            more if is_word(word, "JUSTID") => {
                claim.only_ids = true;
                more
            }
            [value, more @ ..] if is_word(word, "IDLE") => {
                claim.delivered =
                    ClaimTime::AgoMs(positive(value, "Invalid IDLE option argument for XCLAIM")?);
                more
            }
            [value, more @ ..] if is_word(word, "TIME") => {
                claim.delivered =
                    ClaimTime::AtMs(positive(value, "Invalid TIME option argument for XCLAIM")?);
                more
            }
            [value, more @ ..] if is_word(word, "RETRYCOUNT") => {
                claim.deliveries = Some(positive(value, "Invalid RETRYCOUNT option argument for XCLAIM")?);
                more
            }
            [value, more @ ..] if is_word(word, "LASTID") => {
                claim.last = Some(id(value)?);
                more
            }
            _ => {
                let word = String::from_utf8_lossy(word).into_owned();
                return Err(CommandError::UnsupportedClaim(word));
            }
        };
    }
    Ok(claim)
}

fn claim_idle(args: &[Bytes]) -> Result<Stream, CommandError> {
    let idle = number::parse_i64(&args[4])
        .ok_or(CommandError::Argument("Invalid min-idle-time argument for XAUTOCLAIM"))?;
    let from = first_id(&args[5])?;
    let (mut count, mut only_ids) = (CLAIM_COUNT, false);
    let mut rest = &args[6..];
    while let [word, more @ ..] = rest {
        rest = match more {
            [value, more @ ..] if is_word(word, "COUNT") => {
                // What Redis allocates for each of them must have a size that it can write.
                const COUNT_MAX: i64 = i64::MAX / 16;
                let number = number::parse_i64(value).filter(|number| (1..=COUNT_MAX).contains(number));
                let number = number.and_then(|number| usize::try_from(number).ok());
                count = number.ok_or(CommandError::Argument("COUNT must be > 0"))?;
                more
            }
            more if is_word(word, "JUSTID") => {
                only_ids = true;
                more
            }
            _ => return Err(CommandError::Syntax),
        };
    }
    Ok(Stream::ClaimIdle {
        key: args[1].clone(),
        group: args[2].clone(),
        consumer: args[3].clone(),
        idle_ms_min: u64::try_from(idle).unwrap_or(0),
        from,
        count,
        only_ids,
    })
}

/// How many entries `XAUTOCLAIM` claims unless told.
const CLAIM_COUNT: usize = 100;
/// How many entries `XINFO STREAM FULL` lists unless told.
const INFO_COUNT: usize = 10;
