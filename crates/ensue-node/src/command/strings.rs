//! Commands on strings: rows of one column.
//!
//! The value goes by last writer, except that additions to a counter are kept beside it (`counter`). A plain `SET`
//! looks at nothing: it covers what is there, whatever that is.

use crate::command::keys::{clear_deadline, now_ms, put_deadline, set_deadline_or_delete};
use crate::command::{bulk_or_nil, flag, integer, text_of};
use crate::evaluate::{Evaluation, Halt, effect_bytes};
use bytes::{Bytes, BytesMut};
use ensue_resp::CommandError;
use ensue_resp::request::{GetExpiry, SetCondition, SetExpiry};
use ensue_store::cell::Content;
use ensue_types::{Column, Reply, limits};

/// `GET`.
pub(super) fn get(desk: &mut Evaluation<'_>, key: &Bytes) -> Result<Reply, Halt> {
    Ok(bulk_or_nil(desk.content(key, &Column::Text)?))
}

/// `MGET`: a key of another kind reads as absent.
pub(super) fn get_many(desk: &mut Evaluation<'_>, keys: &[Bytes]) -> Result<Reply, Halt> {
    let mut values = Vec::with_capacity(keys.len());
    for key in keys {
        values.push(match get(desk, key) {
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
    pub(super) condition: SetCondition,
    pub(super) expiry: SetExpiry,
    pub(super) get: bool,
}

impl Set<'_> {
    pub(super) fn apply(&self, desk: &mut Evaluation<'_>, key: &Bytes) -> Result<Reply, Halt> {
        let before = if self.get { Some(get(desk, key)?) } else { None };
        let is_wanted = match (self.condition, &before) {
            (SetCondition::Always, _) => true,
            (SetCondition::IfAbsent, Some(before)) => *before == Reply::Nil,
            (SetCondition::IfPresent, Some(before)) => *before != Reply::Nil,
            (SetCondition::IfAbsent, None) => desk.kind(key)?.is_none(),
            (SetCondition::IfPresent, None) => desk.kind(key)?.is_some(),
        };
        if is_wanted {
            replace(desk, key, self.value, self.expiry)?;
        }
        Ok(match before {
            Some(before) => before,
            None if is_wanted => Reply::OK,
            None => Reply::Nil,
        })
    }
}

/// `SETNX`.
pub(super) fn set_new(desk: &mut Evaluation<'_>, key: &Bytes, value: &Bytes) -> Result<Reply, Halt> {
    let is_absent = desk.kind(key)?.is_none();
    if is_absent {
        replace(desk, key, value, SetExpiry::None)?;
    }
    Ok(flag(is_absent))
}

/// `MSET`.
pub(super) fn set_many(desk: &mut Evaluation<'_>, pairs: &[(Bytes, Bytes)]) -> Result<Reply, Halt> {
    let bytes = |(key, value): &(Bytes, Bytes)| {
        desk.bytes_to_clear(key) + effect_bytes(key, &Column::Text, value.len())
    };
    desk.check_room(pairs.iter().map(bytes).sum())?;
    for (key, value) in pairs {
        replace(desk, key, value, SetExpiry::None)?;
    }
    Ok(Reply::OK)
}

/// Makes a row this string and nothing else, without looking at it.
fn replace(desk: &mut Evaluation<'_>, key: &Bytes, value: &Bytes, expiry: SetExpiry) -> Result<(), Halt> {
    desk.check_room(effect_bytes(key, &Column::Text, value.len()))?;
    desk.begin_write(key)?;
    desk.clear_row(key, |column| match column {
        Column::Text => false,
        Column::Deadline => expiry == SetExpiry::None,
        Column::Field(_) | Column::Member(_) => true,
    })?;
    desk.put(key, Column::Text, value.clone());
    match expiry {
        SetExpiry::None | SetExpiry::Keep => {}
        SetExpiry::InMs(ms) => put_deadline(desk, key, now_ms(desk).saturating_add(ms)),
        SetExpiry::AtMs(ms) => put_deadline(desk, key, ms),
    }
    Ok(())
}

/// `GETDEL`.
pub(super) fn get_and_delete(desk: &mut Evaluation<'_>, key: &Bytes) -> Result<Reply, Halt> {
    let before = get(desk, key)?;
    if before != Reply::Nil {
        desk.clear_row(key, |_| true)?;
    }
    Ok(before)
}

/// `GETEX`.
pub(super) fn get_and_expire(
    desk: &mut Evaluation<'_>,
    key: &Bytes,
    expiry: GetExpiry,
) -> Result<Reply, Halt> {
    let value = get(desk, key)?;
    if value == Reply::Nil {
        return Ok(value);
    }
    match expiry {
        GetExpiry::Keep => {}
        GetExpiry::Persist => clear_deadline(desk, key)?,
        GetExpiry::InMs(ms) => set_deadline_or_delete(desk, key, now_ms(desk).saturating_add(ms))?,
        GetExpiry::AtMs(ms) => set_deadline_or_delete(desk, key, ms)?,
    }
    Ok(value)
}

/// `APPEND`.
pub(super) fn append(desk: &mut Evaluation<'_>, key: &Bytes, value: &Bytes) -> Result<Reply, Halt> {
    let content = desk.content(key, &Column::Text)?;
    let is_new = content == Content::Nothing;
    let before = text_of(content).unwrap_or_default();
    let length = checked_length(before.len(), value.len())?;
    if is_new || !value.is_empty() {
        desk.check_room(effect_bytes(key, &Column::Text, length))?;
        let mut text = BytesMut::with_capacity(length);
        text.extend_from_slice(&before);
        text.extend_from_slice(value);
        desk.begin_write(key)?;
        desk.put(key, Column::Text, text.freeze());
    }
    Ok(integer(length))
}

/// `STRLEN`.
pub(super) fn length(desk: &mut Evaluation<'_>, key: &Bytes) -> Result<Reply, Halt> {
    let content = desk.content(key, &Column::Text)?;
    Ok(integer(text_of(content).unwrap_or_default().len()))
}

/// `GETRANGE`.
pub(super) fn get_range(desk: &mut Evaluation<'_>, key: &Bytes, start: i64, end: i64) -> Result<Reply, Halt> {
    let content = desk.content(key, &Column::Text)?;
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
    desk: &mut Evaluation<'_>,
    key: &Bytes,
    offset: usize,
    value: &Bytes,
) -> Result<Reply, Halt> {
    let content = desk.content(key, &Column::Text)?;
    let before = text_of(content).unwrap_or_default();
    if value.is_empty() {
        return Ok(integer(before.len()));
    }
    let end = checked_length(offset, value.len())?;
    desk.check_room(effect_bytes(key, &Column::Text, end.max(before.len())))?;
    let mut text = BytesMut::zeroed(end.max(before.len()));
    text[..before.len()].copy_from_slice(&before);
    text[offset..end].copy_from_slice(value);
    let length = text.len();
    desk.begin_write(key)?;
    desk.put(key, Column::Text, text.freeze());
    Ok(integer(length))
}

fn checked_length(first: usize, second: usize) -> Result<usize, CommandError> {
    match first.checked_add(second) {
        Some(length) if length <= limits::BULK_BYTES_MAX => Ok(length),
        _ => Err(CommandError::StringTooLong),
    }
}
