//! Commands on keys whatever they hold: existence, kind, deadline.
//!
//! A deadline is a column of its own, so it merges by itself: a value of one datacenter may meet the deadline of
//! another. All times are the evaluation's, and they are the same in every datacenter.

use crate::command::{flag, integer};
use crate::evaluate::{Evaluation, Halt, effect_bytes};
use bytes::Bytes;
use ensue_resp::request::{Deadline, ExpireCondition, LifetimeForm};
use ensue_types::{Column, Reply};
use std::borrow::Cow;

/// `DEL`: answers how many were there.
pub(super) fn delete(evaluation: &mut Evaluation<'_>, keys: &[Bytes]) -> Result<Reply, Halt> {
    let mut deleted = 0;
    evaluation.check_room(keys.iter().map(|key| evaluation.bytes_to_delete(key)).sum())?;
    for key in keys {
        if evaluation.kind(key)?.is_some() {
            evaluation.delete_row(key)?;
            deleted += 1;
        }
    }
    Ok(integer(deleted))
}

/// `EXISTS`: a key that is named twice counts twice.
pub(super) fn exist(evaluation: &mut Evaluation<'_>, keys: &[Bytes]) -> Result<Reply, Halt> {
    let mut present = 0;
    for key in keys {
        present += usize::from(evaluation.kind(key)?.is_some());
    }
    Ok(integer(present))
}

/// `WATCH`: the numbers under which the keys are watched.
pub(super) fn watch(evaluation: &mut Evaluation<'_>, keys: &[Bytes]) -> Result<Reply, Halt> {
    let mut numbers = Vec::with_capacity(keys.len());
    for key in keys {
        numbers.push(Reply::Integer(evaluation.watch(key)? as i64));
    }
    Ok(Reply::Array(numbers))
}

/// `TYPE`.
pub(super) fn kind(evaluation: &mut Evaluation<'_>, key: &Bytes) -> Result<Reply, Halt> {
    let word = evaluation.kind(key)?.map_or("none", |kind| kind.word());
    Ok(Reply::Status(Cow::Borrowed(word)))
}

/// `EXPIRE` and its kind.
pub(super) fn expire(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    deadline: Deadline,
    condition: ExpireCondition,
) -> Result<Reply, Halt> {
    if evaluation.kind(key)?.is_none() {
        return Ok(flag(false));
    }
    let before = match condition {
        ExpireCondition::Always => None,
        _ => evaluation.deadline(key)?,
    };
    let deadline_ms = deadline_in_ms(evaluation, deadline);
    if !applies(condition, before.map(signed), deadline_ms) {
        return Ok(flag(false));
    }
    set_deadline_or_delete(evaluation, key, deadline_ms)?;
    Ok(flag(true))
}

/// A deadline in milliseconds since 1970.
pub(super) fn deadline_in_ms(evaluation: &Evaluation<'_>, deadline: Deadline) -> i64 {
    match deadline {
        Deadline::InMs(ms) => now_ms(evaluation).saturating_add(ms),
        Deadline::AtMs(ms) => ms,
    }
}

pub(super) fn applies(condition: ExpireCondition, before: Option<i64>, deadline_ms: i64) -> bool {
    match condition {
        ExpireCondition::Always => true,
        ExpireCondition::IfNone => before.is_none(),
        ExpireCondition::IfSome => before.is_some(),
        ExpireCondition::IfLater => before.is_some_and(|before| deadline_ms > before),
        ExpireCondition::IfEarlier => before.is_none_or(|before| deadline_ms < before),
        ExpireCondition::IfSomeAndEarlier => before.is_some_and(|before| deadline_ms < before),
    }
}

/// `TTL` and its kind.
pub(super) fn lifetime(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    form: LifetimeForm,
) -> Result<Reply, Halt> {
    if evaluation.kind(key)?.is_none() {
        return Ok(Reply::Integer(-2));
    }
    let Some(deadline) = evaluation.deadline(key)?.map(signed) else { return Ok(Reply::Integer(-1)) };
    let ms = match form {
        LifetimeForm::InSeconds | LifetimeForm::InMs => deadline.saturating_sub(now_ms(evaluation)).max(0),
        LifetimeForm::AtSeconds | LifetimeForm::AtMs => deadline,
    };
    Ok(Reply::Integer(match form {
        LifetimeForm::InMs | LifetimeForm::AtMs => ms,
        LifetimeForm::InSeconds | LifetimeForm::AtSeconds => ms.saturating_add(500) / 1000,
    }))
}

/// `PERSIST`.
pub(super) fn persist(evaluation: &mut Evaluation<'_>, key: &Bytes) -> Result<Reply, Halt> {
    if evaluation.kind(key)?.is_none() || evaluation.deadline(key)?.is_none() {
        return Ok(flag(false));
    }
    clear_deadline(evaluation, key)?;
    Ok(flag(true))
}

/// Sets the deadline of a row that is there. One that has passed deletes the row at once.
pub(super) fn set_deadline_or_delete(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    deadline_ms: i64,
) -> Result<(), Halt> {
    if deadline_ms <= now_ms(evaluation) {
        evaluation.delete_row(key)
    } else {
        put_deadline(evaluation, key, deadline_ms);
        Ok(())
    }
}

/// Sets the deadline, passed or not.
pub(super) fn put_deadline(evaluation: &mut Evaluation<'_>, key: &Bytes, deadline_ms: i64) {
    let bytes = u64::try_from(deadline_ms).unwrap_or(0).to_le_bytes();
    evaluation.put(key, Column::Deadline, Bytes::copy_from_slice(&bytes));
}

/// The row lives for ever again.
pub(super) fn clear_deadline(evaluation: &mut Evaluation<'_>, key: &Bytes) -> Result<(), Halt> {
    evaluation.check_room(effect_bytes(key, &Column::Deadline, 0))?;
    evaluation.clear_deadline(key);
    Ok(())
}

/// The time that deadlines are counted from.
pub(super) fn now_ms(evaluation: &Evaluation<'_>) -> i64 {
    signed(evaluation.at().ms())
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}
