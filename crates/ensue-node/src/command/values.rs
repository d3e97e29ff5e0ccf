//! Commands on values as a whole: copies, dumps, and what `OBJECT` tells.
//!
//! A value is read with all of its elements, and written as a new one: what was seen at the target is deleted. How
//! Redis would keep it in memory is told by its size, since clients and tools ask for it; it is not how it is kept
//! here.

use super::dump::{self, Dumped, Value};
use super::fields::field_bytes;
use super::keys::{put_deadline, set_deadline_or_delete};
use super::sorted_sets::store as store_sorted;
use super::streams::whole as streams;
use super::{flag, lists, name_of, text_of};
use crate::evaluate::{Evaluation, Halt, Scored, effect_bytes, element_bytes};
use bytes::Bytes;
use ensue_resp::request::{Deadline, Property, Whole};
use ensue_resp::{CommandError, number};
use ensue_store::row::Kind;
use ensue_types::{Column, Reply, Score};
use std::num::NonZeroUsize;

pub(super) fn evaluate(request: &Whole, evaluation: &mut Evaluation<'_>) -> Result<Reply, Halt> {
    match request {
        Whole::Copy { source, target, replace } => copy(evaluation, source, target, *replace),
        Whole::Dump { key } => {
            if evaluation.kind(key)? == Some(Kind::Stream) {
                return Ok(Reply::Bulk(dump::write_stream(&streams::dumped(evaluation, key)?)));
            }
            let value = read(evaluation, key)?;
            Ok(value.map_or(Reply::Nil, |value| Reply::Bulk(dump::write(&value))))
        }
        Whole::Restore { key, deadline, dump, replace } => {
            restore(evaluation, key, deadline.clone(), dump, *replace)
        }
        Whole::Describe { key, property } => describe(evaluation, key, *property),
        Whole::MemoryUsage { key, samples } => memory_usage(evaluation, key, *samples),
        Whole::DescribeHelp | Whole::MemoryHelp => Ok(help(request).unwrap_or(Reply::Nil)),
        Whole::Sort(sort) => super::sort::evaluate(evaluation, sort),
    }
}

/// The answer to a command that asks for help, which no key has a part in.
pub(super) fn help(request: &Whole) -> Option<Reply> {
    let text: &[&'static str] = match request {
        Whole::DescribeHelp => &HELP,
        Whole::MemoryHelp => &MEMORY_HELP,
        _ => return None,
    };
    Some(Reply::Array(text.iter().map(|&line| Reply::Status(line.into())).collect()))
}

/// The value of a key, whole; streams are read otherwise.
fn read(evaluation: &mut Evaluation<'_>, key: &Bytes) -> Result<Option<Value>, Halt> {
    let Some(kind) = evaluation.kind(key)? else { return Ok(None) };
    let named = |columns: Vec<(Column, _)>| columns.into_iter().map(|(column, _)| name_of(column)).collect();
    Ok(Some(match kind {
        Kind::Text => Value::Text(text_of(evaluation.content(key, &Column::Text)?).unwrap_or_default()),
        Kind::Set => Value::Set(named(evaluation.columns(key, kind)?)),
        Kind::Hash => {
            let pair = |(column, content)| (name_of(column), text_of(content).unwrap_or_default());
            let pairs: Vec<_> = evaluation.columns(key, kind)?.into_iter().map(pair).collect();
            let mut dated = Vec::with_capacity(pairs.len());
            for (name, value) in &pairs {
                dated.push((name.clone(), value.clone(), evaluation.field_deadline(key, name)?));
            }
            match dated.iter().any(|(.., deadline)| deadline.is_some()) {
                true => Value::DatedHash(dated),
                false => Value::Hash(pairs),
            }
        }
        Kind::SortedSet => {
            let all = evaluation.ordered(key)?;
            Value::Sorted(all.members(0..all.len()))
        }
        Kind::List => {
            let elements = evaluation.elements(key, |len| 0..len)?.0;
            Value::List(elements.into_iter().map(|element| element.value).collect())
        }
        Kind::Stream => return Err(Halt::Error(STREAMS)),
        Kind::Bounded => return Err(Halt::Error(BOUNDED)),
    }))
}

/// Makes a row this value and nothing else.
pub(super) fn write(evaluation: &mut Evaluation<'_>, key: &Bytes, value: Value) -> Result<(), Halt> {
    if let Value::Sorted(members) = value {
        store_sorted(evaluation, key, members)?;
        return Ok(());
    }
    let (effects, bytes) = match &value {
        Value::Text(text) => (1, effect_bytes(key, &Column::Text, text.len())),
        Value::List(values) => {
            (values.len(), values.iter().map(|one| lists::pushed_bytes(key, one)).sum::<usize>())
        }
        Value::Set(members) => {
            (members.len(), members.iter().map(|one| element_bytes(key, one, 0)).sum::<usize>())
        }
        Value::Hash(pairs) => {
            (pairs.len(), pairs.iter().map(|(name, one)| element_bytes(key, name, one.len())).sum())
        }
        Value::DatedHash(fields) => {
            (2 * fields.len(), fields.iter().map(|(name, one, _)| field_bytes(key, name, one.len())).sum())
        }
        Value::Sorted(_) => (0, 0),
    };
    evaluation.check_room_of(key, effects, bytes.saturating_add(evaluation.bytes_to_clear(key)))?;
    evaluation.begin_write(key)?;
    // What is put again covers what it replaces.
    let text = matches!(value, Value::Text(_));
    evaluation.clear_row(key, |column| !text || *column != Column::Text)?;
    match value {
        Value::Text(text) => evaluation.put(key, Column::Text, text),
        Value::List(values) => lists::fill(evaluation, key, &values)?,
        Value::Set(members) => {
            for name in members {
                evaluation.put(key, Column::Member(name), Bytes::new());
            }
        }
        Value::Hash(pairs) => {
            for (name, value) in pairs {
                evaluation.put(key, Column::Field(name), value);
            }
        }
        Value::DatedHash(fields) => {
            for (name, value, deadline) in fields {
                evaluation.put(key, Column::Field(name.clone()), value);
                if let Some(ms) = deadline {
                    evaluation.put_field_deadline(key, &name, ms)?;
                }
            }
        }
        Value::Sorted(_) => {}
    }
    Ok(())
}

/// `COPY`. The deadlines go along.
fn copy(
    evaluation: &mut Evaluation<'_>,
    source: &Bytes,
    target: &Bytes,
    replace: bool,
) -> Result<Reply, Halt> {
    if source == target {
        return Err(CommandError::Argument("source and destination objects are the same").into());
    }
    let Some(kind) = evaluation.kind(source)? else { return Ok(flag(false)) };
    let deadline = evaluation.deadline(source)?;
    if evaluation.kind(target)?.is_some() && !replace {
        return Ok(flag(false));
    }
    if kind == Kind::Stream {
        let parts = streams::parts(evaluation, source)?;
        streams::write(evaluation, target, parts)?;
    } else if let Some(value) = read(evaluation, source)? {
        write(evaluation, target, value)?;
    }
    if let Some(deadline) = deadline {
        put_deadline(evaluation, target, i64::try_from(deadline).unwrap_or(i64::MAX));
    }
    Ok(flag(true))
}

/// `RESTORE`.
fn restore(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    deadline: Result<Option<Deadline>, CommandError>,
    dump: &Bytes,
    replace: bool,
) -> Result<Reply, Halt> {
    let is_there = evaluation.kind(key)?.is_some();
    if is_there && !replace {
        return Err(Halt::Error(BUSY_KEY));
    }
    let deadline = deadline?;
    match dump::read(dump).map_err(Halt::Error)? {
        Dumped::Value(value) => write(evaluation, key, value)?,
        Dumped::Stream(stream) => streams::restore(evaluation, key, stream)?,
    }
    let now_ms = super::keys::now_ms(evaluation);
    match deadline {
        None => {}
        Some(Deadline::InMs(ms)) => put_deadline(evaluation, key, now_ms.saturating_add(ms)),
        Some(Deadline::AtMs(ms)) => set_deadline_or_delete(evaluation, key, ms)?,
    }
    Ok(Reply::OK)
}

/// `OBJECT`.
fn describe(evaluation: &mut Evaluation<'_>, key: &Bytes, property: Property) -> Result<Reply, Halt> {
    let Some(kind) = evaluation.kind(key)? else { return Ok(Reply::Nil) };
    Ok(match property {
        Property::Encoding => Reply::bulk(encoding(evaluation, key, kind)?),
        Property::Frequency => return Err(Halt::Error(NO_FREQUENCY)),
        Property::IdleTime => Reply::Integer(0),
        Property::References => Reply::Integer(1),
    })
}

/// `MEMORY USAGE`.
fn memory_usage(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    samples: Option<NonZeroUsize>,
) -> Result<Reply, Halt> {
    if evaluation.kind(key)?.is_none() {
        return Ok(Reply::Nil);
    }
    let bytes = evaluation.keyspace().counted_bytes(key, samples);
    Ok(bytes.map_or(Reply::Nil, |bytes| Reply::Integer(i64::try_from(bytes).unwrap_or(i64::MAX))))
}

/// How Redis 7.2 would keep the value, with its default bounds of sizes.
pub(super) fn encoding(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    kind: Kind,
) -> Result<&'static str, Halt> {
    // What has too many elements for the other encodings need not be looked at.
    let elements_max = match kind {
        Kind::Stream => return Ok("stream"),
        Kind::Bounded => return Ok("int"),
        Kind::Text => usize::MAX,
        Kind::List => LIST_BYTES_MAX / LISTED_BYTES,
        Kind::Set => INTEGERS_MAX,
        Kind::Hash | Kind::SortedSet => LISTED_MAX,
    };
    if evaluation.count(key, kind)? > elements_max {
        return Ok(match kind {
            Kind::List => "quicklist",
            Kind::SortedSet => "skiplist",
            _ => "hashtable",
        });
    }
    Ok(match read(evaluation, key)? {
        None => "none",
        Some(Value::Text(text)) if number::parse_i64(&text).is_some() => "int",
        Some(Value::Text(text)) if text.len() <= EMBEDDED_BYTES_MAX => "embstr",
        Some(Value::Text(_)) => "raw",
        Some(Value::List(values)) => {
            let bytes: usize = values.iter().map(|value| value.len() + LISTED_BYTES).sum();
            if bytes <= LIST_BYTES_MAX { "listpack" } else { "quicklist" }
        }
        Some(Value::Set(members)) => {
            if members.len() <= INTEGERS_MAX && members.iter().all(|one| number::parse_i64(one).is_some()) {
                "intset"
            } else if members.len() <= LISTED_MAX && members.iter().all(is_short) {
                "listpack"
            } else {
                "hashtable"
            }
        }
        Some(Value::Hash(pairs)) => {
            let is_listed = |(name, value): &(Bytes, Bytes)| is_short(name) && is_short(value);
            if pairs.len() <= LISTED_MAX && pairs.iter().all(is_listed) { "listpack" } else { "hashtable" }
        }
        Some(Value::DatedHash(fields)) => {
            let is_listed =
                |(name, value, _): &(Bytes, Bytes, Option<u64>)| is_short(name) && is_short(value);
            let is_listed = fields.len() <= LISTED_MAX && fields.iter().all(is_listed);
            if is_listed { "listpackex" } else { "hashtable" }
        }
        Some(Value::Sorted(members)) => {
            let is_listed = |(_, name): &(Score, Bytes)| is_short(name);
            if members.len() <= LISTED_MAX && members.iter().all(is_listed) { "listpack" } else { "skiplist" }
        }
    })
}

fn is_short(text: &Bytes) -> bool {
    text.len() <= LISTED_BYTES_MAX
}

/// Members with their scores, for `SORT`.
pub(super) fn scored_names(members: Vec<Scored>) -> Vec<Bytes> {
    members.into_iter().map(|(_, name)| name).collect()
}

/// The bounds of Redis 7.2, as it is configured by default.
const EMBEDDED_BYTES_MAX: usize = 44;
const LIST_BYTES_MAX: usize = 8_192;
/// What an element of a list takes beside its text, about.
const LISTED_BYTES: usize = 2;
const INTEGERS_MAX: usize = 512;
const LISTED_MAX: usize = 128;
const LISTED_BYTES_MAX: usize = 64;

const STREAMS: Reply = Reply::error("ERR a stream is no value of its own here: it is read entry by entry");
const BOUNDED: Reply = Reply::error(
    "ERR a bounded counter is not copied, dumped or renamed: rights to change it are in every datacenter; BCREATE makes \
     another one",
);
const BUSY_KEY: Reply = Reply::error("BUSYKEY Target key name already exists.");
const NO_FREQUENCY: Reply = Reply::error(
    "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching \
     between policies at runtime LRU and LFU data will take some time to adjust.",
);

const HELP: [&str; 13] = [
    "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ENCODING <key>",
    "    Return the kind of internal representation used in order to store the value",
    "    associated with a <key>.",
    "FREQ <key>",
    "    Return the access frequency index of the <key>. The returned integer is",
    "    proportional to the logarithm of the recent access frequency of the key.",
    "IDLETIME <key>",
    "    Return the idle time of the <key>, that is the approximated number of",
    "    seconds elapsed since the last access to the key.",
    "REFCOUNT <key>",
    "    Return the number of references of the value associated with the specified",
    "    <key>.",
];

const MEMORY_HELP: [&str; 15] = [
    "MEMORY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "DOCTOR",
    "    Return what is remarkable about the memory of this datacenter's nodes.",
    "MALLOC-STATS",
    "    Return what the allocators of this datacenter's nodes say of themselves.",
    "PURGE",
    "    Have the allocator of this node give back memory that is free.",
    "STATS",
    "    Return figures about the memory of this datacenter's nodes.",
    "USAGE <key> [SAMPLES <count>]",
    "    Return the bytes that the store counts for the key: its name, its value and what is kept",
    "    beside it. Of a key of more than 128 fields or members <count> are looked at, 5 by default,",
    "    or all with 0.",
    "HELP",
    "    Print this help.",
];
