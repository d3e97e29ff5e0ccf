//! Commands with their options read: what the owner of a key evaluates.
//!
//! The arguments of one command arrive as the client sent them; a [`Request`] leaves, or the error that Redis would
//! answer for the same words. Arguments are kept as cheap clones. Times stay as the client gave them, from now or
//! since 1970: who evaluates knows the time. It does not look at data, so an error that depends on a stored value is
//! the evaluator's; where Redis looks at a key before it reads an option that is wrong, the request says so
//! ([`Refused`]).

mod bits;
mod blocking;
mod bounded;
mod cardinality;
mod fields;
mod geo;
mod hashes;
mod keys;
mod lists;
mod refused;
mod sets;
mod sorted_sets;
mod streams;
mod strings;
mod values;

use crate::{CommandError, CommandSpec, Flags, command, glob, number};
use bytes::Bytes;
use ensue_types::{Decimal, limits};

pub use bits::{BitField, BitOperator, BitRange, BitUnit, Bits, FieldStep, Overflow};
pub use blocking::{Awaited, Blocking, WaitingPop};
pub use bounded::Bounded;
pub use cardinality::{Cardinality, Inspection};
pub use fields::{FieldCondition, Fields};
pub use geo::{Geo, GeoFields, GeoLimit, GeoOrigin, GeoSearch};
pub use lists::{End, List, ListSearch};
pub use refused::{Absent, Refused, Sought};
pub use sets::{SetAlgebra, SetOperator};
pub use sorted_sets::{
    AddCondition, Aggregate, LexBound, RankRange, ScoreBound, SetOperation, SortedRange, SortedSelection,
    SortedSet,
};
pub use streams::{
    Claim, ClaimTime, GroupChange, GroupRead, GroupStart, Kept, NewId, PendingRange, Stream, StreamRead, Trim,
};
pub use strings::CommonPart;
pub use values::{Property, Sort, Whole};

/// A command that owners of keys evaluate, by group in the order of the table's documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// `DEL`, `UNLINK`: the number of keys that existed.
    Delete { keys: Vec<Bytes> },
    /// `EXISTS`: the number of keys that exist, counting repetitions.
    Exists { keys: Vec<Bytes> },
    /// `TOUCH`: as `EXISTS`.
    Touch { keys: Vec<Bytes> },
    /// `TYPE`: a status.
    Type { key: Bytes },
    /// `EXPIRE`, `PEXPIRE`, `EXPIREAT`, `PEXPIREAT`: 1 or 0. A deadline in the past deletes.
    Expire { key: Bytes, deadline: Deadline, condition: ExpireCondition },
    /// `TTL`, `PTTL`, `EXPIRETIME`, `PEXPIRETIME`: -2 without the key, -1 without a deadline.
    Lifetime { key: Bytes, form: LifetimeForm },
    /// `PERSIST`: 1 or 0.
    Persist { key: Bytes },
    /// `RENAME`.
    Rename { key: Bytes, target: Bytes },
    /// `SCAN`: the next cursor and keys.
    Scan { options: ScanOptions, type_name: Option<Bytes> },
    /// `KEYS`.
    Keys { pattern: Bytes },
    /// `RANDOMKEY`.
    RandomKey,
    /// `DBSIZE`.
    Size,
    /// `WATCH`, of its owner: for each key the number under which it is watched.
    Watch { keys: Vec<Bytes> },
    /// `FLUSHALL`, `FLUSHDB`.
    Flush { every_keyspace: bool },

    /// `GET`.
    Get { key: Bytes },
    /// `SET`, `SETEX`, `PSETEX`, and `GETSET` with `get`: `OK` or nil; with `get`, the value before.
    Set { key: Bytes, value: Bytes, condition: SetCondition, expiry: SetExpiry, get: bool },
    /// `SETNX`: 1 or 0.
    SetIfAbsent { key: Bytes, value: Bytes },
    /// `GETDEL`.
    GetDelete { key: Bytes },
    /// `DELEX`: 1 or 0.
    DeleteIf { key: Bytes, comparison: Option<Comparison> },
    /// `DIGEST`: that of a string, as text, or nil.
    Digest { key: Bytes },
    /// `GETEX`.
    GetExpire { key: Bytes, expiry: GetExpiry },
    /// `MGET`: a value or nil for each key; nil also for a key of another type.
    GetMany { keys: Vec<Bytes> },
    /// `MSET`.
    SetMany { pairs: Vec<(Bytes, Bytes)> },
    /// `MSETNX`: 1, or 0 if a key is there.
    SetManyIfAbsent { pairs: Vec<(Bytes, Bytes)> },
    /// A command on bits.
    Bits(Bits),
    /// `LCS`: the longest common subsequence of two strings. Their types are looked at before its options are.
    Common { keys: [Bytes; 2], part: Result<CommonPart, CommandError> },
    /// `APPEND`: the new length.
    Append { key: Bytes, value: Bytes },
    /// `STRLEN`.
    Length { key: Bytes },
    /// `GETRANGE`, `SUBSTR`: negative places count from the end.
    GetRange { key: Bytes, start: i64, end: i64 },
    /// `SETRANGE`: the new length, at most the longest bulk string.
    SetRange { key: Bytes, offset: usize, value: Bytes },
    /// `INCR`, `DECR`, `INCRBY`, `DECRBY`: the new value.
    IncrementBy { key: Bytes, amount: i64 },
    /// `INCRBYFLOAT`: the new value as a bulk string.
    IncrementByFloat { key: Bytes, amount: Decimal },

    /// `HSET`, `HMSET`.
    HashSet { key: Bytes, pairs: Vec<(Bytes, Bytes)>, answer: HashSetAnswer },
    /// `HSETNX`: 1 or 0.
    HashSetIfAbsent { key: Bytes, field: Bytes, value: Bytes },
    /// `HGET`.
    HashGet { key: Bytes, field: Bytes },
    /// `HMGET`.
    HashGetMany { key: Bytes, fields: Vec<Bytes> },
    /// `HGETALL`: a map. `HKEYS`, `HVALS`: an array.
    HashGetAll { key: Bytes, part: HashPart },
    /// `HDEL`: the number of fields that existed.
    HashDelete { key: Bytes, fields: Vec<Bytes> },
    /// `HEXISTS`.
    HashExists { key: Bytes, field: Bytes },
    /// `HLEN`.
    HashLength { key: Bytes },
    /// `HSTRLEN`.
    HashFieldLength { key: Bytes, field: Bytes },
    /// `HINCRBY`.
    HashIncrementBy { key: Bytes, field: Bytes, amount: i64 },
    /// `HINCRBYFLOAT`.
    HashIncrementByFloat { key: Bytes, field: Bytes, amount: Decimal },
    /// `HRANDFIELD`: a field or nil; with a count an array of different ones, or of so many if it is negative.
    HashRandom { key: Bytes, count: Option<i64>, with_values: bool },
    /// `HSCAN`: the next cursor, fields and values.
    HashScan { key: Bytes, options: ScanOptions },
    /// A command on the deadlines of fields.
    Fields(Fields),

    /// `SADD`: the number of members added.
    SetAdd { key: Bytes, members: Vec<Bytes> },
    /// `SREM`: the number of members removed.
    SetRemove { key: Bytes, members: Vec<Bytes> },
    /// `SMEMBERS`: a set.
    SetMembers { key: Bytes },
    /// `SISMEMBER`: 1 or 0.
    SetContains { key: Bytes, member: Bytes },
    /// `SMISMEMBER`: an array of 1 and 0.
    SetContainsMany { key: Bytes, members: Vec<Bytes> },
    /// `SCARD`.
    SetLength { key: Bytes },
    /// `SRANDMEMBER`: a member or nil; with a count an array of different ones, or of so many if it is negative.
    SetRandom { key: Bytes, count: Option<i64> },
    /// `SSCAN`: the next cursor and members.
    SetScan { key: Bytes, options: ScanOptions },

    /// A command on several sets, or one that takes members out.
    Algebra(SetAlgebra),
    /// A command on sorted sets.
    Sorted(SortedSet),
    /// A command on the places of members of sorted sets.
    Geo(Geo),
    /// A command on lists.
    Elements(List),
    /// A command on streams.
    Streams(Stream),
    /// A pop that may wait.
    Blocking(Blocking),
    /// A command on HyperLogLogs.
    Cardinality(Cardinality),
    /// A command on bounded counters.
    Bounded(Bounded),
    /// A command on values as a whole.
    Whole(Whole),
    /// A command that is refused for its arguments, unless its keys are the answer.
    Refused(Box<Refused>),
}

/// A time at which a key ceases to exist, as the client gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// Milliseconds from now. Adding the present time of this century, or of the next, does not overflow.
    InMs(i64),
    /// Milliseconds since 1970.
    AtMs(i64),
}

/// When `EXPIRE` and its kind apply. A key without a deadline counts as one that lives for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpireCondition {
    /// In any case.
    #[default]
    Always,
    /// `NX`: only without a deadline.
    IfNone,
    /// `XX`: only with a deadline.
    IfSome,
    /// `GT`, with or without `XX`: only if the new deadline is later, which none is than living for ever.
    IfLater,
    /// `LT`: only if the new deadline is earlier.
    IfEarlier,
    /// `XX LT`: only with a deadline, and if the new one is earlier.
    IfSomeAndEarlier,
}

/// How a remaining time or a deadline is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifetimeForm {
    /// `TTL`: seconds from now, rounded to the nearest.
    InSeconds,
    /// `PTTL`: milliseconds from now.
    InMs,
    /// `EXPIRETIME`: seconds since 1970, rounded to the nearest.
    AtSeconds,
    /// `PEXPIRETIME`: milliseconds since 1970.
    AtMs,
}

/// When `SET` applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SetCondition {
    /// In any case.
    #[default]
    Always,
    /// `NX`: only if the key does not exist.
    IfAbsent,
    /// `XX`: only if the key exists.
    IfPresent,
    /// `IFEQ` and its kind.
    If(Comparison),
}

/// What the present value of a string is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    pub with: Compared,
    /// Whether it must be the same; an absent key is the same as nothing.
    pub is_same: bool,
}

/// A value, or what stands for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compared {
    Value(Bytes),
    /// Hexadecimal digits of either case.
    Digest(Bytes),
}

/// What `SET` does to the deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetExpiry {
    /// Removes it.
    #[default]
    None,
    /// `KEEPTTL`.
    Keep,
    /// `EX`, `PX`: milliseconds from now, above zero.
    InMs(i64),
    /// `EXAT`, `PXAT`: milliseconds since 1970, above zero.
    AtMs(i64),
}

/// What `GETEX` does to the deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GetExpiry {
    /// Nothing.
    #[default]
    Keep,
    /// `PERSIST`: removes it.
    Persist,
    /// `EX`, `PX`: milliseconds from now, above zero.
    InMs(i64),
    /// `EXAT`, `PXAT`: milliseconds since 1970, above zero.
    AtMs(i64),
}

/// What setting fields answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashSetAnswer {
    /// `HSET`: the number of fields that are new.
    Added,
    /// `HMSET`: `OK`.
    Ok,
}

/// Which part of a whole hash is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashPart {
    /// `HGETALL`.
    FieldsAndValues,
    /// `HKEYS`.
    Fields,
    /// `HVALS`.
    Values,
}

/// What the commands of the `SCAN` family share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanOptions {
    /// Where to go on; 0 begins.
    pub cursor: u64,
    /// Only what matches.
    pub pattern: Option<Bytes>,
    /// About how many to look at.
    pub count: usize,
}

impl Request {
    /// Reads a command, its name first. Commands that the session answers are refused.
    pub fn parse(args: &[Bytes]) -> Result<Request, CommandError> {
        match args.first().and_then(|name| command::lookup(name)) {
            Some(spec) => Request::parse_as(spec, args),
            None => Err(CommandError::unknown_command(args)),
        }
    }

    /// Reads a command whose row has been looked up before.
    pub fn parse_as(spec: &'static CommandSpec, args: &[Bytes]) -> Result<Request, CommandError> {
        if !command::check_arity(spec, args.len()) {
            return Err(CommandError::wrong_arity(spec.name));
        }
        if command::keys(spec, args).any(|key| key.len() > limits::KEY_BYTES_MAX) {
            return Err(CommandError::KeyTooLong);
        }
        let refused = |error| match Refused::of(spec.name, args, &error) {
            Some(refused) => Ok(Request::Refused(Box::new(Refused {
                is_write: spec.flags.contains(Flags::WRITE),
                ..refused
            }))),
            None => Err(error),
        };
        let request = Request::parse_group(spec, args).or_else(|error| refused(error).map(Some))?;
        request.ok_or(CommandError::NotAnOwnersCommand(spec.name))
    }

    fn parse_group(spec: &'static CommandSpec, args: &[Bytes]) -> Result<Option<Request>, CommandError> {
        Ok(match spec.group {
            "stream" => streams::parse(spec.name, args)?,
            _ if spec.flags.contains(Flags::BLOCKING) => {
                blocking::parse(spec.name, args)?.map(Request::Blocking)
            }
            "string" => strings::parse(spec.name, args)?,
            "hash" => hashes::parse(spec.name, args)?,
            "bitmap" => bits::parse(spec.name, args)?.map(Request::Bits),
            "set" => sets::parse(spec.name, args)?,
            "sorted-set" => sorted_sets::parse(spec.name, args)?.map(Request::Sorted),
            "geo" => geo::parse(spec.name, args)?,
            "list" => lists::parse(spec.name, args)?.map(Request::Elements),
            "bounded-counter" => bounded::parse(spec.name, args)?.map(Request::Bounded),
            "hyperloglog" => cardinality::parse(spec.name, args)?.map(Request::Cardinality),
            _ => keys::parse(spec.name, args)?,
        })
    }

    /// Whether it may change data: the same as its command's flag in the table.
    pub fn is_write(&self) -> bool {
        use Request::*;
        match self {
            Exists { .. } | Touch { .. } | Type { .. } | Lifetime { .. } => false,
            Scan { .. } | Keys { .. } | RandomKey | Size | Watch { .. } => false,
            Get { .. } | GetMany { .. } | Length { .. } | GetRange { .. } | Common { .. } => false,
            Digest { .. } => false,
            HashGet { .. } | HashGetMany { .. } | HashGetAll { .. } | HashExists { .. } => false,
            HashLength { .. } | HashFieldLength { .. } | HashScan { .. } | HashRandom { .. } => false,
            SetMembers { .. } | SetContains { .. } | SetContainsMany { .. } => false,
            SetLength { .. } | SetRandom { .. } | SetScan { .. } => false,
            Delete { .. } | Expire { .. } | Persist { .. } | Rename { .. } | Flush { .. } => true,
            Set { .. } | SetIfAbsent { .. } | GetDelete { .. } | GetExpire { .. } | SetMany { .. } => true,
            DeleteIf { .. } => true,
            Append { .. } | SetRange { .. } | IncrementBy { .. } | IncrementByFloat { .. } => true,
            HashSet { .. } | HashSetIfAbsent { .. } | HashDelete { .. } => true,
            HashIncrementBy { .. } | HashIncrementByFloat { .. } => true,
            SetAdd { .. } | SetRemove { .. } | SetManyIfAbsent { .. } => true,
            Bits(bits) => bits.is_write(),
            Fields(fields) => fields.is_write(),
            Algebra(algebra) => algebra.is_write(),
            Sorted(sorted) => sorted.is_write(),
            Geo(geo) => geo.is_write(),
            Elements(elements) => elements.is_write(),
            Streams(stream) => stream.is_write(),
            Blocking(blocking) => blocking.pop.is_write(),
            Cardinality(cardinality) => cardinality.is_write(),
            Bounded(bounded) => bounded.is_write(),
            Whole(whole) => whole.is_write(),
            Refused(refused) => refused.is_write,
        }
    }

    /// The one key that it works on; nothing for requests with several keys or none.
    pub fn key(&self) -> Option<&Bytes> {
        use Request::*;
        match self {
            Type { key } | Expire { key, .. } | Lifetime { key, .. } | Persist { key } => Some(key),
            Get { key } | Set { key, .. } | SetIfAbsent { key, .. } | GetDelete { key } => Some(key),
            DeleteIf { key, .. } | Digest { key } => Some(key),
            GetExpire { key, .. } | Append { key, .. } | Length { key } | GetRange { key, .. } => Some(key),
            SetRange { key, .. } | IncrementBy { key, .. } | IncrementByFloat { key, .. } => Some(key),
            HashSet { key, .. } | HashSetIfAbsent { key, .. } | HashGet { key, .. } => Some(key),
            HashGetMany { key, .. } | HashGetAll { key, .. } | HashDelete { key, .. } => Some(key),
            HashExists { key, .. } | HashLength { key } | HashFieldLength { key, .. } => Some(key),
            HashIncrementBy { key, .. } | HashIncrementByFloat { key, .. } => Some(key),
            HashScan { key, .. } | HashRandom { key, .. } => Some(key),
            SetAdd { key, .. } | SetRemove { key, .. } | SetMembers { key } => Some(key),
            SetContains { key, .. } | SetContainsMany { key, .. } => Some(key),
            SetLength { key } | SetRandom { key, .. } | SetScan { key, .. } => Some(key),
            Bits(bits) => bits.key(),
            Fields(fields) => fields.key(),
            Algebra(algebra) => algebra.key(),
            Sorted(sorted) => sorted.key(),
            Geo(geo) => geo.key(),
            Elements(elements) => elements.key(),
            Streams(stream) => stream.key(),
            Cardinality(cardinality) => cardinality.key(),
            Bounded(bounded) => Some(bounded.key()),
            Whole(whole) => whole.key(),
            Blocking(_) | Common { .. } | Refused(_) => None,
            Delete { .. } | Exists { .. } | Touch { .. } | Rename { .. } | Scan { .. } | Keys { .. } => None,
            RandomKey | Size | Flush { .. } | GetMany { .. } | SetMany { .. } => None,
            SetManyIfAbsent { .. } | Watch { .. } => None,
        }
    }
}

fn integer(argument: &[u8]) -> Result<i64, CommandError> {
    number::parse_i64(argument).ok_or(CommandError::NotInteger)
}

fn is_word(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}

fn pairs(args: &[Bytes], name: &'static str) -> Result<Vec<(Bytes, Bytes)>, CommandError> {
    if args.len() % 2 != 0 {
        return Err(CommandError::wrong_arity(name));
    }
    Ok(args.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
}

fn bounded_pattern(pattern: &Bytes) -> Result<Bytes, CommandError> {
    if pattern.len() > glob::PATTERN_BYTES_MAX {
        return Err(CommandError::PatternTooLong);
    }
    Ok(pattern.clone())
}

/// The options of the `SCAN` family, and the word after `TYPE` if `typed` allows it.
fn scan_options(
    cursor: &[u8],
    options: &[Bytes],
    typed: bool,
) -> Result<(ScanOptions, Option<Bytes>), CommandError> {
    let cursor = number::parse_cursor(cursor).ok_or(CommandError::InvalidCursor)?;
    let mut scan = ScanOptions { cursor, pattern: None, count: SCAN_COUNT };
    let mut type_name = None;
    for option in options.chunks(2) {
        let [word, value] = option else { return Err(CommandError::Syntax) };
        if is_word(word, "COUNT") {
            let count = integer(value)?;
            scan.count =
                usize::try_from(count).ok().filter(|&count| count > 0).ok_or(CommandError::Syntax)?;
        } else if is_word(word, "MATCH") {
            scan.pattern = Some(bounded_pattern(value)?).filter(|pattern| pattern != "*");
        } else if typed && is_word(word, "TYPE") {
            type_name = Some(value.clone());
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Ok((scan, type_name))
}

/// Seconds or milliseconds to milliseconds, refusing what has no place on the time line.
fn deadline_ms(value: i64, unit: TimeUnit, base: TimeBase, name: &'static str) -> Result<i64, CommandError> {
    let invalid = CommandError::InvalidExpire(name);
    let ms = match unit {
        TimeUnit::Seconds => value.checked_mul(1000).ok_or_else(|| invalid.clone())?,
        TimeUnit::Ms => value,
    };
    if base == TimeBase::Now && ms > i64::MAX - NOW_MS_MAX {
        return Err(invalid);
    }
    Ok(ms)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TimeUnit {
    Seconds,
    Ms,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TimeBase {
    Now,
    Epoch,
}

/// The unit and base that an option of `SET` or `GETEX` names.
fn expiry_option(word: &[u8]) -> Option<(TimeUnit, TimeBase)> {
    Some(match word {
        word if is_word(word, "EX") => (TimeUnit::Seconds, TimeBase::Now),
        word if is_word(word, "PX") => (TimeUnit::Ms, TimeBase::Now),
        word if is_word(word, "EXAT") => (TimeUnit::Seconds, TimeBase::Epoch),
        word if is_word(word, "PXAT") => (TimeUnit::Ms, TimeBase::Epoch),
        _ => return None,
    })
}

/// Elements that a `SCAN` looks at unless told.
const SCAN_COUNT: usize = 10;
/// Above every present time until the year 2248. A deadline so far ahead that it counts would be the end of time.
const NOW_MS_MAX: i64 = 1 << 43;

#[cfg(test)]
mod tests;
