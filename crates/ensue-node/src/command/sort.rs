//! `SORT`: the elements of a list, set or sorted set in an order of their own values, or of values kept elsewhere.
//!
//! Other keys are found by patterns, whose star the element replaces. They are in the partition of the key, which was
//! checked before; what is found there is observed, as the elements are.

use super::dump::Value;
use super::values::{scored_names, write};
use super::{integer, name_of, text_of};
use crate::evaluate::{Evaluation, Halt};
use bytes::{Bytes, BytesMut};
use ensue_resp::request::Sort;
use ensue_resp::{CommandError, number};
use ensue_store::row::Kind;
use ensue_types::{Column, Reply};
use std::cmp::Ordering;

/// By what an element is sorted.
enum Weight {
    Number(f64),
    /// Nothing if it is not there.
    Text(Option<Bytes>),
}

pub(super) fn evaluate(evaluation: &mut Evaluation<'_>, sort: &Sort) -> Result<Reply, Halt> {
    let kind = evaluation.kind(&sort.key)?;
    let mut elements = elements(evaluation, &sort.key, kind)?;
    let is_unordered = sort.by.as_ref().is_some_and(|pattern| !pattern.contains(&b'*'));
    if !is_unordered {
        elements = sorted(evaluation, elements, sort, sort.by.as_ref(), sort.alphabetic)?;
    } else if kind == Some(Kind::Set) && sort.target.is_some() {
        // What is stored is in the same order everywhere.
        elements = sorted(evaluation, elements, sort, None, true)?;
    } else if kind == Some(Kind::SortedSet) && sort.descending {
        elements.reverse();
    }
    let values = values(evaluation, within(elements, sort.limit), &sort.values)?;
    let Some(target) = &sort.target else {
        return Ok(Reply::Array(values.into_iter().map(|one| one.map_or(Reply::Nil, Reply::Bulk)).collect()));
    };
    let values: Vec<Bytes> = values.into_iter().map(Option::unwrap_or_default).collect();
    let count = values.len();
    match count {
        0 => evaluation.clear_row(target, |_| true)?,
        _ => write(evaluation, target, Value::List(values))?,
    }
    Ok(integer(count))
}

fn elements(evaluation: &mut Evaluation<'_>, key: &Bytes, kind: Option<Kind>) -> Result<Vec<Bytes>, Halt> {
    Ok(match kind {
        None => Vec::new(),
        Some(Kind::List) => {
            evaluation.elements(key, |len| 0..len)?.0.into_iter().map(|element| element.value).collect()
        }
        Some(Kind::Set) => {
            evaluation.columns(key, Kind::Set)?.into_iter().map(|(column, _)| name_of(column)).collect()
        }
        Some(Kind::SortedSet) => {
            let all = evaluation.ordered(key)?;
            scored_names(all.members(0..all.len()))
        }
        Some(Kind::Text | Kind::Hash | Kind::Stream | Kind::Bounded) => return Err(Halt::WrongType),
    })
}

fn sorted(
    evaluation: &mut Evaluation<'_>,
    elements: Vec<Bytes>,
    sort: &Sort,
    by: Option<&Bytes>,
    alphabetic: bool,
) -> Result<Vec<Bytes>, Halt> {
    let mut weighted = Vec::with_capacity(elements.len());
    for element in elements {
        let text = match by {
            Some(pattern) => found(evaluation, pattern, &element)?,
            None => Some(element.clone()),
        };
        let weight = match (alphabetic, text) {
            (true, text) => Weight::Text(text),
            (false, None) => Weight::Number(0.0),
            (false, Some(text)) if text.is_empty() => Weight::Number(0.0),
            (false, Some(text)) => {
                Weight::Number(number::parse_score(&text).ok_or(CommandError::Argument(NO_NUMBER))?)
            }
        };
        weighted.push((weight, element));
    }
    weighted.sort_by(|one, other| match sort.descending {
        true => order(other, one),
        false => order(one, other),
    });
    Ok(weighted.into_iter().map(|(_, element)| element).collect())
}

/// Elements with the same number go by their bytes.
fn order((weight, element): &(Weight, Bytes), (other, other_element): &(Weight, Bytes)) -> Ordering {
    match (weight, other) {
        (Weight::Text(text), Weight::Text(other)) => text.cmp(other),
        (Weight::Number(number), Weight::Number(other)) => {
            number.partial_cmp(other).unwrap_or(Ordering::Equal).then_with(|| element.cmp(other_element))
        }
        (Weight::Text(_), Weight::Number(_)) | (Weight::Number(_), Weight::Text(_)) => Ordering::Equal,
    }
}

/// Those from one place on, so many; fewer than none is all.
fn within(elements: Vec<Bytes>, limit: Option<(i64, i64)>) -> Vec<Bytes> {
    let Some((start, count)) = limit else { return elements };
    let start = usize::try_from(start).unwrap_or(0);
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    elements.into_iter().skip(start).take(count).collect()
}

/// What is answered for each element.
fn values(
    evaluation: &mut Evaluation<'_>,
    elements: Vec<Bytes>,
    patterns: &[Bytes],
) -> Result<Vec<Option<Bytes>>, Halt> {
    if patterns.is_empty() {
        return Ok(elements.into_iter().map(Some).collect());
    }
    let mut values = Vec::with_capacity(elements.len().saturating_mul(patterns.len()));
    for element in &elements {
        for pattern in patterns {
            values.push(found(evaluation, pattern, element)?);
        }
    }
    Ok(values)
}

/// What stands at the key, or the field of a hash, that a pattern makes of an element.
fn found(evaluation: &mut Evaluation<'_>, pattern: &Bytes, element: &Bytes) -> Result<Option<Bytes>, Halt> {
    if pattern[..] == b"#"[..] {
        return Ok(Some(element.clone()));
    }
    let Some(star) = pattern.iter().position(|&byte| byte == b'*') else { return Ok(None) };
    let behind = &pattern[star + 1..];
    let arrow = behind.windows(2).position(|pair| pair == b"->").filter(|arrow| arrow + 2 < behind.len());
    let key_end = arrow.unwrap_or(behind.len());
    let mut key = BytesMut::from(&pattern[..star]);
    key.extend_from_slice(element);
    key.extend_from_slice(&behind[..key_end]);
    let column = match arrow {
        Some(arrow) => Column::Field(Bytes::copy_from_slice(&behind[arrow + 2..])),
        None => Column::Text,
    };
    match evaluation.content(&key.freeze(), &column) {
        Ok(content) => Ok(text_of(content)),
        Err(Halt::WrongType) => Ok(None),
        Err(halt) => Err(halt),
    }
}

const NO_NUMBER: &str = "One or more scores can't be converted into double";
