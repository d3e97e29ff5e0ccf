//! Commands on strings: rows of one column.
//!
//! The value goes by last writer, except that additions to a counter are kept beside it (`counter`). A plain `SET`
//! looks at nothing: it covers what is there, whatever that is.

use crate::command::keys::{clear_deadline, now_ms, put_deadline, set_deadline_or_delete};
use crate::command::{bulk_or_nil, flag, integer, text_of};
use crate::evaluate::{Evaluation, Halt, effect_bytes};
use bytes::{Bytes, BytesMut};
use ensue_resp::CommandError;
use ensue_resp::request::{Compared, Comparison, GetExpiry, SetCondition, SetExpiry};
use ensue_store::cell::Content;
use ensue_types::{Column, Reply, limits};
use xxhash_rust::xxh3::xxh3_64;

/// `GET`.
pub(super) fn get(evaluation: &mut Evaluation<'_>, key: &Bytes) -> Result<Reply, Halt> {
    Ok(bulk_or_nil(evaluation.content(key, &Column::Text)?))
}

/// `MGET`: a key of another kind reads as absent.
pub(super) fn get_many(evaluation: &mut Evaluation<'_>, keys: &[Bytes]) -> Result<Reply, Halt> {
    let mut values = Vec::with_capacity(keys.len());
    evaluation.expect_keys(keys.len());
    for key in keys {
        values.push(match get(evaluation, key) {
            Err(Halt::WrongType) => Reply::Nil,
            other => other?,
        });
    }
    Ok(Reply::Array(values))
}

/// `SET` with its options.
#[derive(Clone, Copy, Debug)]
pub(super) struct Set<'r> {
    pub(super) value: &'r Bytes,
    pub(super) condition: &'r SetCondition,
    pub(super) expiry: SetExpiry,
    pub(super) get: bool,
}

impl Set<'_> {
    pub(super) fn apply(&self, evaluation: &mut Evaluation<'_>, key: &Bytes) -> Result<Reply, Halt> {
        let before = if self.get { Some(get(evaluation, key)?) } else { None };
        let is_wanted = match (self.condition, &before) {
            (SetCondition::Always, _) => true,
            (SetCondition::IfAbsent, Some(before)) => *before == Reply::Nil,
            (SetCondition::IfPresent, Some(before)) => *before != Reply::Nil,
            (SetCondition::IfAbsent, None) => evaluation.kind(key)?.is_none(),
            (SetCondition::IfPresent, None) => evaluation.kind(key)?.is_some(),
            (SetCondition::If(comparison), _) => {
                let content = evaluation.content(key, &Column::Text)?;
                is_met(comparison, text_of(content).as_ref())
            }
        };
        if is_wanted {
            replace(evaluation, key, self.value, self.expiry)?;
        }
        Ok(match before {
            Some(before) => before,
            None if is_wanted => Reply::OK,
            None => Reply::Nil,
        })
    }
}

/// `SETNX`.
pub(super) fn set_new(evaluation: &mut Evaluation<'_>, key: &Bytes, value: &Bytes) -> Result<Reply, Halt> {
    let is_absent = evaluation.kind(key)?.is_none();
    if is_absent {
        replace(evaluation, key, value, SetExpiry::None)?;
    }
    Ok(flag(is_absent))
}

/// `MSET`.
pub(super) fn set_many(evaluation: &mut Evaluation<'_>, pairs: &[(Bytes, Bytes)]) -> Result<Reply, Halt> {
    let bytes = |(key, value): &(Bytes, Bytes)| {
        evaluation.bytes_to_clear(key) + effect_bytes(key, &Column::Text, value.len())
    };
    evaluation.check_room(pairs.iter().map(bytes).sum())?;
    for (key, value) in pairs {
        replace(evaluation, key, value, SetExpiry::None)?;
    }
    Ok(Reply::OK)
}

/// `MSETNX`.
pub(super) fn set_many_new(evaluation: &mut Evaluation<'_>, pairs: &[(Bytes, Bytes)]) -> Result<Reply, Halt> {
    for (key, _) in pairs {
        if evaluation.kind(key)?.is_some() {
            return Ok(flag(false));
        }
    }
    set_many(evaluation, pairs)?;
    Ok(flag(true))
}

/// Makes a row this string and nothing else, without looking at it.
fn replace(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    value: &Bytes,
    expiry: SetExpiry,
) -> Result<(), Halt> {
    evaluation.check_room(effect_bytes(key, &Column::Text, value.len()))?;
    if evaluation.is_more_than_text(key) {
        evaluation.begin_write(key)?;
        evaluation.clear_row(key, |column| !matches!(column, Column::Text | Column::Deadline))?;
        if expiry == SetExpiry::None {
            evaluation.clear_deadline(key);
        }
    }
    evaluation.put(key, Column::Text, value.clone());
    match expiry {
        SetExpiry::None | SetExpiry::Keep => {}
        SetExpiry::InMs(ms) => put_deadline(evaluation, key, now_ms(evaluation).saturating_add(ms)),
        SetExpiry::AtMs(ms) => put_deadline(evaluation, key, ms),
    }
    Ok(())
}

/// `GETDEL`.
pub(super) fn get_and_delete(evaluation: &mut Evaluation<'_>, key: &Bytes) -> Result<Reply, Halt> {
    let before = get(evaluation, key)?;
    if before != Reply::Nil {
        evaluation.clear_row(key, |_| true)?;
    }
    Ok(before)
}

/// `DELEX` with a condition, which strings alone can meet.
pub(super) fn delete_if(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    comparison: &Comparison,
) -> Result<Reply, Halt> {
    let content = match evaluation.content(key, &Column::Text) {
        Err(Halt::WrongType) => {
            let only_strings = "Key should be of string type if conditions are specified";
            return Err(CommandError::Argument(only_strings).into());
        }
        content => content?,
    };
    let Some(before) = text_of(content) else { return Ok(flag(false)) };
    let deletes = is_met(comparison, Some(&before));
    if deletes {
        evaluation.clear_row(key, |_| true)?;
    }
    Ok(flag(deletes))
}

/// `DIGEST`.
pub(super) fn digest(evaluation: &mut Evaluation<'_>, key: &Bytes) -> Result<Reply, Halt> {
    let content = evaluation.content(key, &Column::Text)?;
    Ok(text_of(content).map_or(Reply::Nil, |text| Reply::Bulk(digest_of(&text).into())))
}

/// As Redis makes it: of all bytes, with all leading zeros.
fn digest_of(text: &[u8]) -> String {
    format!("{:016x}", xxh3_64(text))
}

/// Whether a condition holds for what a string is.
fn is_met(comparison: &Comparison, before: Option<&Bytes>) -> bool {
    let is_same = |before: &Bytes| match &comparison.with {
        Compared::Value(value) => before == value,
        Compared::Digest(digits) => digest_of(before).as_bytes().eq_ignore_ascii_case(digits),
    };
    before.is_some_and(is_same) == comparison.is_same
}

/// `GETEX`.
pub(super) fn get_and_expire(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    expiry: GetExpiry,
) -> Result<Reply, Halt> {
    let value = get(evaluation, key)?;
    if value == Reply::Nil {
        return Ok(value);
    }
    match expiry {
        GetExpiry::Keep => {}
        GetExpiry::Persist => clear_deadline(evaluation, key)?,
        GetExpiry::InMs(ms) => {
            set_deadline_or_delete(evaluation, key, now_ms(evaluation).saturating_add(ms))?
        }
        GetExpiry::AtMs(ms) => set_deadline_or_delete(evaluation, key, ms)?,
    }
    Ok(value)
}

/// `APPEND`.
pub(super) fn append(evaluation: &mut Evaluation<'_>, key: &Bytes, value: &Bytes) -> Result<Reply, Halt> {
    let content = evaluation.content(key, &Column::Text)?;
    let is_new = content == Content::Nothing;
    let before = text_of(content).unwrap_or_default();
    let length = checked_length(before.len(), value.len())?;
    if is_new || !value.is_empty() {
        evaluation.check_room(effect_bytes(key, &Column::Text, length))?;
        let mut text = BytesMut::with_capacity(length);
        text.extend_from_slice(&before);
        text.extend_from_slice(value);
        evaluation.begin_write(key)?;
        evaluation.put(key, Column::Text, text.freeze());
    }
    Ok(integer(length))
}

/// `STRLEN`.
pub(super) fn length(evaluation: &mut Evaluation<'_>, key: &Bytes) -> Result<Reply, Halt> {
    let content = evaluation.content(key, &Column::Text)?;
    Ok(integer(text_of(content).unwrap_or_default().len()))
}

/// `GETRANGE`.
pub(super) fn get_range(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    start: i64,
    end: i64,
) -> Result<Reply, Halt> {
    let content = evaluation.content(key, &Column::Text)?;
    let text = text_of(content).unwrap_or_default();
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    // Both before the beginning, and crossed: Redis answers nothing here before it moves them to the first byte.
    if start < 0 && end < 0 && start > end {
        return Ok(Reply::Bulk(Bytes::new()));
    }
    let from_start = |place: i64| if place < 0 { length.saturating_add(place).max(0) } else { place };
    let (start, end) = (from_start(start), from_start(end).min(length - 1));
    match (usize::try_from(start), usize::try_from(end)) {
        (Ok(start), Ok(end)) if start <= end => Ok(Reply::Bulk(text.slice(start..=end))),
        _ => Ok(Reply::Bulk(Bytes::new())),
    }
}

/// `SETRANGE`: zero bytes fill what lies between.
pub(super) fn set_range(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    offset: usize,
    value: &Bytes,
) -> Result<Reply, Halt> {
    let content = evaluation.content(key, &Column::Text)?;
    let before = text_of(content).unwrap_or_default();
    if value.is_empty() {
        return Ok(integer(before.len()));
    }
    let end = checked_length(offset, value.len())?;
    evaluation.check_room(effect_bytes(key, &Column::Text, end.max(before.len())))?;
    let mut text = BytesMut::zeroed(end.max(before.len()));
    text[..before.len()].copy_from_slice(&before);
    text[offset..end].copy_from_slice(value);
    let length = text.len();
    evaluation.begin_write(key)?;
    evaluation.put(key, Column::Text, text.freeze());
    Ok(integer(length))
}

fn checked_length(first: usize, second: usize) -> Result<usize, CommandError> {
    match first.checked_add(second) {
        Some(length) if length <= limits::BULK_BYTES_MAX => Ok(length),
        _ => Err(CommandError::StringTooLong),
    }
}
