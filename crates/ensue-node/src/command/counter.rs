//! Additions to counters: strings and fields of hashes that hold a number.
//!
//! A column and an amount arrive; the new total leaves. It promises that what can be added exactly becomes an
//! addition, which concurrent additions of other datacenters join, and that what cannot becomes a plain new value. It
//! does not read amounts from clients.

use crate::command::text_of;
use crate::evaluate::{Evaluation, Halt, effect_bytes};
use bytes::Bytes;
use ensue_resp::{CommandError, number};
use ensue_store::cell::Content;
use ensue_types::{Column, Decimal, Reply};

/// Longest exponent, with its letter, that [`Decimal::parse`] is asked to read.
const EXPONENT_BYTES_MAX: usize = 6;

/// Adds an integer; answers the new total.
pub(super) fn add_integer(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    column: Column,
    amount: i64,
) -> Result<Reply, Halt> {
    let base = match evaluation.content(key, &column)? {
        Content::Nothing => Some(0),
        Content::Bytes(text) => number::parse_i64(&text),
        Content::Number(number) => number.as_integer(),
    };
    let base = base.ok_or(match column {
        Column::Field(_) => CommandError::HashNotInteger,
        _ => CommandError::NotInteger,
    })?;
    let total = base.checked_add(amount).ok_or(CommandError::IncrementOverflow)?;
    evaluation.check_room(effect_bytes(key, &column, 0))?;
    evaluation.begin_write(key)?;
    keeping_deadline(evaluation, key, &column, |evaluation| {
        evaluation.add(key, column.clone(), Decimal::from_integer(amount));
    })?;
    Ok(Reply::Integer(total))
}

/// Adds a decimal number; answers the new total.
pub(super) fn add_decimal(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    column: Column,
    amount: Decimal,
) -> Result<Reply, Halt> {
    let content = evaluation.content(key, &column)?;
    let exact = match &content {
        Content::Nothing => Some(Decimal::ZERO),
        Content::Number(number) => Some(*number),
        Content::Bytes(text) => exact(text),
    };
    if let Some(total) = exact.and_then(|base| base.checked_add(amount)) {
        evaluation.check_room(effect_bytes(key, &column, 0))?;
        evaluation.begin_write(key)?;
        keeping_deadline(evaluation, key, &column, |evaluation| evaluation.add(key, column.clone(), amount))?;
        return Ok(Reply::bulk(total.to_string()));
    }
    let base = text_of(content).unwrap_or_default();
    let total = Bytes::from(rounded_sum(&base, amount, &column)?);
    evaluation.check_room(effect_bytes(key, &column, 0))?;
    evaluation.begin_write(key)?;
    keeping_deadline(evaluation, key, &column, |evaluation| {
        evaluation.put(key, column.clone(), total.clone());
    })?;
    Ok(Reply::Bulk(total))
}

/// Changes a counter. The deadline of a field stays: where the total becomes a new value, it gets that of the old one.
fn keeping_deadline(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    column: &Column,
    change: impl FnOnce(&mut Evaluation<'_>),
) -> Result<(), Halt> {
    let Column::Field(name) = column else {
        change(evaluation);
        return Ok(());
    };
    evaluation.begin_field(key, name)?;
    let deadline = evaluation.field_deadline(key, name)?;
    change(evaluation);
    if let Some(deadline) = deadline {
        if evaluation.field_deadline(key, name)?.is_none() {
            evaluation.put_field_deadline(key, name, deadline)?;
        }
    }
    Ok(())
}

/// A stored number that additions can go on top of.
fn exact(text: &[u8]) -> Option<Decimal> {
    let exponent = text.iter().position(|byte| matches!(byte, b'e' | b'E'));
    if exponent.is_some_and(|at| text.len() - at > EXPONENT_BYTES_MAX) {
        return None;
    }
    Decimal::parse(text)
}

/// The sum of a stored number that is not exact here and an amount, as text.
fn rounded_sum(base: &[u8], amount: Decimal, column: &Column) -> Result<String, CommandError> {
    let not_float = || match column {
        Column::Field(_) => CommandError::HashNotFloat,
        _ => CommandError::NotFloat,
    };
    let near = number::parse_decimal(base, CommandError::NotFinite).ok();
    if let Some(total) = near.and_then(|near| near.checked_add(amount)) {
        return Ok(total.to_string());
    }
    let text = std::str::from_utf8(base).map_err(|_| not_float())?;
    let base: f64 = text.parse().map_err(|_| not_float())?;
    if base.is_nan() {
        return Err(not_float());
    }
    let total = base + approximate(amount);
    if !total.is_finite() {
        return Err(CommandError::IncrementNotFinite);
    }
    let digits = format!("{total:.17}");
    Ok(digits.trim_end_matches('0').trim_end_matches('.').to_owned())
}

fn approximate(amount: Decimal) -> f64 {
    amount.to_string().parse().unwrap_or_default()
}
