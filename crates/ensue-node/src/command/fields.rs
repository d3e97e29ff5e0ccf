//! Commands on the deadlines of a hash's fields.
//!
//! A deadline is of the value that a field has (`evaluate::fields`): it ends with the value, and `HSET` leaves none.
//! Times are the evaluation's, as those of keys are (`keys`).

use super::keys::{applies, deadline_in_ms, now_ms};
use super::{bulk_or_nil, flag, leave_no_empty_row};
use crate::evaluate::{Evaluation, Halt, element_bytes};
use bytes::Bytes;
use ensue_resp::request::{
    Deadline, ExpireCondition, FieldCondition, Fields, GetExpiry, LifetimeForm, SetExpiry,
};
use ensue_store::cell::Content;
use ensue_store::row::Kind;
use ensue_types::{Column, FieldDeadline, Reply};

const NO_FIELD: Reply = Reply::Integer(-2);
const NO_DEADLINE: Reply = Reply::Integer(-1);
const NOT_MET: Reply = Reply::Integer(0);
const DONE: Reply = Reply::Integer(1);
const DELETED: Reply = Reply::Integer(2);

pub(super) fn evaluate(request: &Fields, evaluation: &mut Evaluation<'_>) -> Result<Reply, Halt> {
    match request {
        Fields::Expire { key, fields, deadline, condition } => {
            let deadline_ms = deadline_in_ms(evaluation, *deadline);
            expire(evaluation, key, fields, (deadline_ms, *condition))
        }
        Fields::Lifetime { key, fields, form } => lifetimes(evaluation, key, fields, *form),
        Fields::Persist { key, fields } => persist(evaluation, key, fields),
        Fields::GetExpire { key, fields, expiry } => get_and_expire(evaluation, key, fields, *expiry),
        Fields::GetDelete { key, fields } => get_and_delete(evaluation, key, fields),
        Fields::SetExpire { key, pairs, expiry, condition } => {
            set(evaluation, key, pairs, (*expiry, *condition))
        }
    }
}

/// What a change of one field takes, with its deadline.
pub(super) fn field_bytes(key: &Bytes, name: &Bytes, value: usize) -> usize {
    element_bytes(key, name, value) + element_bytes(key, name, size_of::<FieldDeadline>())
}

/// The same of a change that sets no deadline, but may remove one.
pub(super) fn undated_bytes(evaluation: &Evaluation<'_>, key: &Bytes, name: &Bytes, value: usize) -> usize {
    match evaluation.has_field_deadlines(key) {
        true => field_bytes(key, name, value),
        false => element_bytes(key, name, value),
    }
}

fn check_room(evaluation: &Evaluation<'_>, key: &Bytes, fields: &[Bytes]) -> Result<(), Halt> {
    let bytes = fields.iter().map(|name| field_bytes(key, name, 0)).sum();
    evaluation.check_room_of(key, 2 * fields.len(), bytes)
}

fn content(evaluation: &mut Evaluation<'_>, key: &Bytes, name: &Bytes) -> Result<Content, Halt> {
    evaluation.content(key, &Column::Field(name.clone()))
}

fn is_there(evaluation: &mut Evaluation<'_>, key: &Bytes, name: &Bytes) -> Result<bool, Halt> {
    evaluation.has_content(key, &Column::Field(name.clone()))
}

/// `HEXPIRE` and its kind.
fn expire(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    fields: &[Bytes],
    (deadline_ms, condition): (i64, ExpireCondition),
) -> Result<Reply, Halt> {
    check_room(evaluation, key, fields)?;
    let mut answers = Vec::with_capacity(fields.len());
    for name in fields {
        if !is_there(evaluation, key, name)? {
            answers.push(NO_FIELD);
            continue;
        }
        let before = evaluation.field_deadline(key, name)?;
        let before = before.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
        if !applies(condition, before, deadline_ms) {
            answers.push(NOT_MET);
            continue;
        }
        let is_over = set_deadline_or_delete(evaluation, key, name, deadline_ms)?;
        answers.push(if is_over { DELETED } else { DONE });
    }
    if answers.contains(&DELETED) {
        leave_no_empty_row(evaluation, key, Kind::Hash);
    }
    Ok(Reply::Array(answers))
}

/// Sets the deadline of a field that is there. One that has passed deletes the field at once, and that is said.
fn set_deadline_or_delete(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    name: &Bytes,
    deadline_ms: i64,
) -> Result<bool, Halt> {
    let is_over = deadline_ms <= now_ms(evaluation);
    if is_over {
        evaluation.delete_field(key, name)?;
    } else {
        evaluation.put_field_deadline(key, name, u64::try_from(deadline_ms).unwrap_or(0))?;
    }
    Ok(is_over)
}

/// `HTTL` and its kind.
fn lifetimes(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    fields: &[Bytes],
    form: LifetimeForm,
) -> Result<Reply, Halt> {
    let mut answers = Vec::with_capacity(fields.len());
    for name in fields {
        if !is_there(evaluation, key, name)? {
            answers.push(NO_FIELD);
            continue;
        }
        let Some(deadline_ms) = evaluation.field_deadline(key, name)? else {
            answers.push(NO_DEADLINE);
            continue;
        };
        let deadline_ms = i64::try_from(deadline_ms).unwrap_or(i64::MAX);
        let ms = match form {
            LifetimeForm::InSeconds | LifetimeForm::InMs => deadline_ms - now_ms(evaluation),
            LifetimeForm::AtSeconds | LifetimeForm::AtMs => deadline_ms,
        };
        // Rounded up, where those of keys are rounded to the nearest.
        answers.push(Reply::Integer(match form {
            LifetimeForm::InMs | LifetimeForm::AtMs => ms,
            LifetimeForm::InSeconds | LifetimeForm::AtSeconds => ms.saturating_add(999) / 1000,
        }));
    }
    Ok(Reply::Array(answers))
}

/// `HPERSIST`.
fn persist(evaluation: &mut Evaluation<'_>, key: &Bytes, fields: &[Bytes]) -> Result<Reply, Halt> {
    check_room(evaluation, key, fields)?;
    let mut answers = Vec::with_capacity(fields.len());
    for name in fields {
        answers.push(if !is_there(evaluation, key, name)? {
            NO_FIELD
        } else if evaluation.field_deadline(key, name)?.is_none() {
            NO_DEADLINE
        } else {
            evaluation.remove_field_deadline(key, name);
            DONE
        });
    }
    Ok(Reply::Array(answers))
}

/// `HGETEX`.
fn get_and_expire(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    fields: &[Bytes],
    expiry: GetExpiry,
) -> Result<Reply, Halt> {
    check_room(evaluation, key, fields)?;
    let deadline_ms = match expiry {
        GetExpiry::Keep | GetExpiry::Persist => None,
        GetExpiry::InMs(ms) => Some(deadline_in_ms(evaluation, Deadline::InMs(ms))),
        GetExpiry::AtMs(ms) => Some(ms),
    };
    let mut answers = Vec::with_capacity(fields.len());
    let mut deletes = false;
    for name in fields {
        let content = content(evaluation, key, name)?;
        if content != Content::Nothing {
            match deadline_ms {
                Some(ms) => deletes |= set_deadline_or_delete(evaluation, key, name, ms)?,
                None if expiry == GetExpiry::Persist => evaluation.remove_field_deadline(key, name),
                None => {}
            }
        }
        answers.push(bulk_or_nil(content));
    }
    if deletes {
        leave_no_empty_row(evaluation, key, Kind::Hash);
    }
    Ok(Reply::Array(answers))
}

/// `HGETDEL`.
fn get_and_delete(evaluation: &mut Evaluation<'_>, key: &Bytes, fields: &[Bytes]) -> Result<Reply, Halt> {
    check_room(evaluation, key, fields)?;
    let mut answers = Vec::with_capacity(fields.len());
    for name in fields {
        let content = content(evaluation, key, name)?;
        if content != Content::Nothing {
            evaluation.delete_field(key, name)?;
        }
        answers.push(bulk_or_nil(content));
    }
    if answers.iter().any(|answer| *answer != Reply::Nil) {
        leave_no_empty_row(evaluation, key, Kind::Hash);
    }
    Ok(Reply::Array(answers))
}

/// `HSETEX`.
fn set(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    pairs: &[(Bytes, Bytes)],
    (expiry, condition): (SetExpiry, FieldCondition),
) -> Result<Reply, Halt> {
    let mut present = 0;
    for (name, _) in pairs {
        present += usize::from(is_there(evaluation, key, name)?);
    }
    let is_met = match condition {
        FieldCondition::Always => true,
        FieldCondition::IfAbsent => present == 0,
        FieldCondition::IfPresent => present == pairs.len(),
    };
    if !is_met {
        return Ok(flag(false));
    }
    let bytes = pairs.iter().map(|(name, value)| field_bytes(key, name, value.len())).sum();
    evaluation.check_room_of(key, 2 * pairs.len(), bytes)?;
    evaluation.begin_write(key)?;
    let deadline_ms = match expiry {
        SetExpiry::None | SetExpiry::Keep => None,
        SetExpiry::InMs(ms) => Some(deadline_in_ms(evaluation, Deadline::InMs(ms))),
        SetExpiry::AtMs(ms) => Some(ms),
    };
    let mut deletes = false;
    for (name, value) in pairs {
        let kept = match expiry {
            SetExpiry::Keep if is_there(evaluation, key, name)? => evaluation.field_deadline(key, name)?,
            _ => None,
        };
        evaluation.put(key, Column::Field(name.clone()), value.clone());
        match (deadline_ms, kept) {
            (Some(ms), _) => deletes |= set_deadline_or_delete(evaluation, key, name, ms)?,
            (None, Some(kept)) => evaluation.put_field_deadline(key, name, kept)?,
            (None, None) => evaluation.remove_field_deadline(key, name),
        }
    }
    if deletes {
        leave_no_empty_row(evaluation, key, Kind::Hash);
    }
    Ok(flag(true))
}
