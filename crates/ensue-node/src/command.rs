//! Redis commands, evaluated by the owner of their keys.
//!
//! A request arrives with an evaluation, the view of the owner's rows at one logical time; an answer leaves, and the
//! effects are merged in the evaluation. It promises Redis' own answers and errors, and that a command which fails or
//! does nothing has no effects. Commands whose answer tells nothing of the past do not look at it, because what is
//! looked at becomes a causal dependency. Part of a split command is the same command with fewer keys. `FLUSHALL`
//! belongs to the partition and `RENAME` to the session: neither is evaluated here.

mod bits;
mod blocking;
mod bounded;
mod cardinality;
mod common;
mod counter;
mod digest;
mod draw;
pub(crate) mod dump;
pub(crate) mod events;
mod fields;
mod fingerprint;
mod geo;
mod hashes;
mod keys;
mod lists;
mod refused;
pub(crate) mod samples;
mod sets;
mod sort;
mod sorted_sets;
pub(crate) mod streams;
mod strings;
mod values;
mod walk;

pub(crate) use digest::digest;
pub(crate) use fingerprint::Fingerprint;
pub(crate) use walk::{chance, is_counted};

use crate::evaluate::{Evaluation, Halt, LooksUp, TOO_MUCH};
use bytes::Bytes;
use ensue_resp::request::{HashSetAnswer, WaitingPop};
use ensue_resp::{CommandError, Request, number};
use ensue_store::cell::Content;
use ensue_store::row::{Gone, Kind};
use ensue_types::{Column, Decimal, Reply};

/// Whether a row may have something for a pop that waits at it, as the evaluation sees the row. The newest is the most
/// that any session sees.
pub(crate) fn may_serve(pop: &WaitingPop, key: &Bytes, evaluation: &mut Evaluation<'_>) -> bool {
    streams::may_serve(pop, key, evaluation).unwrap_or(true)
}

/// Evaluates a request. Errors of the command are answers; what escapes is only a past that is no longer known.
pub(crate) fn run(request: &Request, evaluation: &mut Evaluation<'_>) -> Result<Reply, Gone> {
    let written = evaluation.written_count();
    let mut answer = evaluate(request, evaluation);
    if evaluation.take_is_full() {
        answer = Err(Halt::Error(TOO_MUCH));
    }
    if let Some(before) = written {
        events::name(request, evaluation, before);
    }
    evaluation.end_command(looks_up(request));
    match answer {
        Ok(reply) | Err(Halt::Error(reply)) => Ok(reply),
        Err(Halt::WrongType) => {
            Ok(Reply::error("WRONGTYPE Operation against a key holding the wrong kind of value"))
        }
        Err(Halt::Gone) => Err(Gone),
    }
}

/// `PFSELFTEST`.
pub(crate) fn self_test() -> Reply {
    cardinality::self_test()
}

/// The answer to a command that asks for help, which needs no owner.
pub(crate) fn help(request: &Request) -> Option<Reply> {
    match request {
        Request::Whole(whole) => values::help(whole),
        Request::Streams(stream) => streams::help(stream),
        _ => None,
    }
}

/// As Redis counts: reads, and writes that answer a value.
fn looks_up(request: &Request) -> LooksUp {
    match request {
        Request::GetMany { .. } | Request::Exists { .. } | Request::Touch { .. } => LooksUp::EachKey,
        Request::GetDelete { .. } | Request::GetExpire { .. } | Request::Set { get: true, .. } => {
            LooksUp::OneKey
        }
        Request::Watch { .. } => LooksUp::Nothing,
        request if request.is_write() => LooksUp::Nothing,
        _ => LooksUp::OneKey,
    }
}

fn evaluate(request: &Request, evaluation: &mut Evaluation<'_>) -> Result<Reply, Halt> {
    use Request::*;
    match request {
        Delete { keys } => keys::delete(evaluation, keys),
        Exists { keys } | Touch { keys } => keys::exist(evaluation, keys),
        Type { key } => keys::kind(evaluation, key),
        Expire { key, deadline, condition } => keys::expire(evaluation, key, *deadline, *condition),
        Lifetime { key, form } => keys::lifetime(evaluation, key, *form),
        Persist { key } => keys::persist(evaluation, key),
        Rename { .. } => Err(CommandError::NotAnOwnersCommand("rename").into()),
        Flush { .. } => Err(CommandError::NotAnOwnersCommand("flushall").into()),
        Scan { options, type_name } => Ok(walk::scan(evaluation, options, type_name.as_ref())),
        Keys { pattern } => Ok(walk::keys(evaluation, pattern)),
        RandomKey => Ok(walk::random_key(evaluation)),
        Size => Ok(walk::size(evaluation)),
        Watch { keys } => keys::watch(evaluation, keys),
        Get { key } => strings::get(evaluation, key),
        Set { key, value, condition, expiry, get } => {
            let set = strings::Set { value, condition, expiry: *expiry, get: *get };
            set.apply(evaluation, key)
        }
        SetIfAbsent { key, value } => strings::set_new(evaluation, key, value),
        GetDelete { key } => strings::get_and_delete(evaluation, key),
        DeleteIf { key, comparison } => match comparison {
            Some(comparison) => strings::delete_if(evaluation, key, comparison),
            None => keys::delete(evaluation, std::slice::from_ref(key)),
        },
        Digest { key } => strings::digest(evaluation, key),
        GetExpire { key, expiry } => strings::get_and_expire(evaluation, key, *expiry),
        GetMany { keys } => strings::get_many(evaluation, keys),
        SetMany { pairs } => strings::set_many(evaluation, pairs),
        SetManyIfAbsent { pairs } => strings::set_many_new(evaluation, pairs),
        Bits(bits) => bits::evaluate(bits, evaluation),
        Fields(fields) => fields::evaluate(fields, evaluation),
        Append { key, value } => strings::append(evaluation, key, value),
        Length { key } => strings::length(evaluation, key),
        GetRange { key, start, end } => strings::get_range(evaluation, key, *start, *end),
        SetRange { key, offset, value } => strings::set_range(evaluation, key, *offset, value),
        IncrementBy { key, amount } => counter::add_integer(evaluation, key, Column::Text, *amount),
        IncrementByFloat { key, amount } => counter::add_decimal(evaluation, key, Column::Text, *amount),
        SetAdd { key, members } => sets::add(evaluation, key, members),
        SetRemove { key, members } => sets::remove(evaluation, key, members),
        SetMembers { key } => sets::members(evaluation, key),
        SetContains { key, member } => sets::contains(evaluation, key, member),
        SetContainsMany { key, members } => sets::contain_many(evaluation, key, members),
        SetLength { key } => sets::length(evaluation, key),
        SetRandom { key, count } => sets::random(evaluation, key, *count),
        SetScan { key, options } => walk::scan_columns(evaluation, key, Kind::Set, options),
        Algebra(algebra) => sets::algebra::evaluate(algebra, evaluation),
        Sorted(sorted) => sorted_sets::evaluate(sorted, evaluation),
        Geo(geo) => geo::evaluate(geo, evaluation),
        Elements(elements) => lists::evaluate(elements, evaluation),
        Streams(stream) => streams::evaluate(stream, evaluation),
        Cardinality(cardinality) => cardinality::evaluate(cardinality, evaluation),
        Bounded(bounded) => bounded::evaluate(bounded, evaluation),
        Common { keys, part } => common::evaluate(evaluation, keys, part),
        Whole(whole) => values::evaluate(whole, evaluation),
        Refused(refused) => refused::evaluate(refused, evaluation),
        Blocking(blocking) => blocking::evaluate(&blocking.pop, evaluation),
        hash => evaluate_hash(hash, evaluation),
    }
}

fn evaluate_hash(request: &Request, evaluation: &mut Evaluation<'_>) -> Result<Reply, Halt> {
    use Request::*;
    match request {
        HashSet { key, pairs, answer: HashSetAnswer::Added } => hashes::set(evaluation, key, pairs),
        HashSet { key, pairs, answer: HashSetAnswer::Ok } => hashes::set_blindly(evaluation, key, pairs),
        HashSetIfAbsent { key, field, value } => hashes::set_new(evaluation, key, field, value),
        HashGet { key, field } => hashes::get(evaluation, key, field),
        HashGetMany { key, fields } => hashes::get_many(evaluation, key, fields),
        HashGetAll { key, part } => hashes::get_all(evaluation, key, *part),
        HashDelete { key, fields } => hashes::delete(evaluation, key, fields),
        HashExists { key, field } => hashes::exists(evaluation, key, field),
        HashLength { key } => hashes::length(evaluation, key),
        HashFieldLength { key, field } => hashes::field_length(evaluation, key, field),
        HashIncrementBy { key, field, amount } => {
            counter::add_integer(evaluation, key, Column::Field(field.clone()), *amount)
        }
        HashIncrementByFloat { key, field, amount } => {
            counter::add_decimal(evaluation, key, Column::Field(field.clone()), *amount)
        }
        HashRandom { key, count, with_values } => hashes::random(evaluation, key, *count, *with_values),
        HashScan { key, options } => walk::scan_columns(evaluation, key, Kind::Hash, options),
        _ => unreachable!("`evaluate` has an arm for every other request"),
    }
}

impl From<CommandError> for Halt {
    fn from(error: CommandError) -> Halt {
        Halt::Error(error.reply())
    }
}

/// After columns were deleted: a row without a shown column is gone, with its deadline and whatever it hid.
fn leave_no_empty_row(evaluation: &mut Evaluation<'_>, key: &Bytes, kind: Kind) {
    if evaluation.is_without(key, kind) {
        evaluation.clear_rest(key);
    }
}

/// Deletes a field whose deadline has passed, if it still has that, and the row if that was all.
pub(crate) fn clear_expired_field(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    name: &Bytes,
) -> Result<(), Halt> {
    evaluation.clear_expired_field(key, name)?;
    leave_no_empty_row(evaluation, key, Kind::Hash);
    Ok(())
}

/// What a client sees of a content; nothing if there is none.
pub(crate) fn text_of(content: Content) -> Option<Bytes> {
    match content {
        Content::Nothing => None,
        Content::Bytes(text) => Some(text),
        Content::Number(number) => Some(decimal_text(number)),
    }
}

fn decimal_text(number: Decimal) -> Bytes {
    match number.as_integer() {
        Some(integer) => number::i64_bytes(integer),
        None => Bytes::from(number.to_string()),
    }
}

fn bulk_or_nil(content: Content) -> Reply {
    text_of(content).map_or(Reply::Nil, Reply::Bulk)
}

/// The name of a field or a member.
fn name_of(column: Column) -> Bytes {
    match column {
        Column::Field(name) | Column::Member(name) | Column::Scored(name) => name,
        Column::Element(name) | Column::Stream(name) | Column::FieldDeadline(name) => name,
        Column::Escrow(name) => name,
        Column::Text | Column::Deadline | Column::Row => Bytes::new(),
    }
}

fn integer(count: usize) -> Reply {
    Reply::Integer(i64::try_from(count).unwrap_or(i64::MAX))
}

fn flag(is_set: bool) -> Reply {
    Reply::Integer(i64::from(is_set))
}

#[cfg(test)]
mod tests;
