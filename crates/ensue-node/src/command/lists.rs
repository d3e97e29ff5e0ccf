//! Commands on lists: rows whose columns are elements. A column's name is the element's position, its value the
//! element.
//!
//! An insertion adds a column whose name lies between the names of its neighbours (`element` of `ensue-types`); a
//! removal deletes the column that it observed. A moved element gets a new name, so that a concurrent removal at the
//! old position does not remove it at the new one.

mod search;

use crate::command::{integer, leave_no_empty_row};
use crate::evaluate::{Element, Evaluation, Halt, element_bytes};
use bytes::Bytes;
use ensue_resp::CommandError;
use ensue_resp::request::{End, List};
use ensue_store::row::Kind;
use ensue_types::{Column, Reply};
use std::ops::Range;

/// About the longest name of an element that is put at an end of a list.
const NAME_BYTES: usize = 40;

pub(super) fn evaluate(request: &List, evaluation: &mut Evaluation<'_>) -> Result<Reply, Halt> {
    match request {
        List::Push { key, end, values, if_present } => push(evaluation, key, *end, values, *if_present),
        List::Pop { key, end, count } => pop(evaluation, key, *end, *count),
        List::PopFirst { keys, end, count } => pop_first(evaluation, keys, *end, *count),
        List::Length { key } => Ok(integer(evaluation.count(key, Kind::List)?)),
        List::Index { key, place } => {
            let element = element_at(evaluation, key, *place)?.0;
            Ok(element.map_or(Reply::Nil, |element| Reply::Bulk(element.value)))
        }
        List::Range { key, start, stop } => {
            let elements = evaluation.elements(key, |len| places(*start, *stop, len))?.0;
            Ok(values_reply(elements))
        }
        List::Set { key, place, value } => set(evaluation, key, *place, value),
        List::Insert { key, before, pivot, value } => insert(evaluation, key, *before, pivot, value),
        List::Remove { key, count, value } => search::remove(evaluation, key, *count, value),
        List::Trim { key, start, stop } => trim(evaluation, key, *start, *stop),
        List::Position { key, value, search } => search::position(evaluation, key, value, search),
        List::Move { source, target, from, to } => {
            move_to(evaluation, &Moved { source, from: *from, target, to: *to })
        }
    }
}

/// `LPUSH` and `RPUSH`: answers how many there are then.
fn push(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    end: End,
    values: &[Bytes],
    if_present: bool,
) -> Result<Reply, Halt> {
    let (outermost, count) = evaluation.elements(key, |len| at_end(end, len, 1))?;
    if if_present && count == 0 {
        return Ok(integer(0));
    }
    add(evaluation, key, end, values, outermost.into_iter().next())?;
    Ok(integer(count + values.len()))
}

/// Puts elements at an end, where this one stands.
fn add(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    end: End,
    values: &[Bytes],
    outermost: Option<Element>,
) -> Result<(), Halt> {
    let bytes = values.iter().map(|value| pushed_bytes(key, value)).sum();
    evaluation.check_room_of(key, values.len(), bytes)?;
    evaluation.begin_write(key)?;
    let mut outermost = outermost.map(|element| element.name);
    for value in values {
        let name = match end {
            End::Left => evaluation.name_element(None, outermost.as_ref()),
            End::Right => evaluation.name_element(outermost.as_ref(), None),
        };
        let name = name.ok_or_else(no_room)?;
        evaluation.put(key, Column::Element(name.clone()), value.clone());
        outermost = Some(name);
    }
    Ok(())
}

/// Fills a list that is empty.
pub(super) fn fill(evaluation: &mut Evaluation<'_>, key: &Bytes, values: &[Bytes]) -> Result<(), Halt> {
    add(evaluation, key, End::Right, values, None)
}

/// What an element takes that is pushed.
pub(super) fn pushed_bytes(key: &Bytes, value: &Bytes) -> usize {
    element_bytes(key, value, NAME_BYTES)
}

fn no_room() -> Halt {
    Halt::Error(Reply::error(
        "ERR there is no room between these two elements: too many were put there one beside the other; push the \
         elements of this list into another one",
    ))
}

/// Places at an end, as many as there are.
fn at_end(end: End, len: usize, count: usize) -> Range<usize> {
    match end {
        End::Left => 0..count.min(len),
        End::Right => len - count.min(len)..len,
    }
}

/// `LPOP` and `RPOP`.
fn pop(evaluation: &mut Evaluation<'_>, key: &Bytes, end: End, count: Option<usize>) -> Result<Reply, Halt> {
    let (elements, len) = take(evaluation, key, end, count.unwrap_or(1))?;
    Ok(match (count, len) {
        (None, _) => elements.into_iter().next().map_or(Reply::Nil, |element| Reply::Bulk(element.value)),
        (Some(_), 0) => Reply::NilArray,
        (Some(_), _) => values_reply(elements),
    })
}

/// `LMPOP`: of the first key that is there.
pub(super) fn pop_first(
    evaluation: &mut Evaluation<'_>,
    keys: &[Bytes],
    end: End,
    count: usize,
) -> Result<Reply, Halt> {
    for key in keys {
        let (elements, _) = take(evaluation, key, end, count)?;
        if !elements.is_empty() {
            return Ok(Reply::Array(vec![Reply::Bulk(key.clone()), values_reply(elements)]));
        }
    }
    Ok(Reply::NilArray)
}

/// `BLPOP` and `BRPOP`, of the first key that is there.
pub(super) fn pop_one(evaluation: &mut Evaluation<'_>, keys: &[Bytes], end: End) -> Result<Reply, Halt> {
    for key in keys {
        if let Some(element) = take(evaluation, key, end, 1)?.0.into_iter().next() {
            return Ok(Reply::Array(vec![Reply::Bulk(key.clone()), Reply::Bulk(element.value)]));
        }
    }
    Ok(Reply::NilArray)
}

/// Removes so many elements of an end; answers them, that end first, and how many there were.
fn take(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    end: End,
    count: usize,
) -> Result<(Vec<Element>, usize), Halt> {
    let (mut elements, len) = evaluation.elements(key, |len| at_end(end, len, count))?;
    if end == End::Right {
        elements.reverse();
    }
    remove_all(evaluation, key, &elements)?;
    Ok((elements, len))
}

/// Removes elements that were seen.
fn remove_all(evaluation: &mut Evaluation<'_>, key: &Bytes, elements: &[Element]) -> Result<(), Halt> {
    let bytes = elements.iter().map(|element| element_bytes(key, &element.name, 0)).sum();
    evaluation.check_room_of(key, elements.len(), bytes)?;
    for element in elements {
        evaluation.delete(key, Column::Element(element.name.clone()))?;
    }
    if !elements.is_empty() {
        leave_no_empty_row(evaluation, key, Kind::List);
    }
    Ok(())
}

/// The element of a place, which counts from the end if it is negative, and how many there are.
fn element_at(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    place: i64,
) -> Result<(Option<Element>, usize), Halt> {
    let range = |len: usize| {
        let from_start = if place < 0 { place.saturating_add_unsigned(len as u64) } else { place };
        usize::try_from(from_start).map_or(0..0, |place| place..place.saturating_add(1))
    };
    let (elements, count) = evaluation.elements(key, range)?;
    Ok((elements.into_iter().next(), count))
}

/// The places from one to another, each of which counts from the end if it is negative.
fn places(start: i64, stop: i64, len: usize) -> Range<usize> {
    let length = i64::try_from(len).unwrap_or(i64::MAX);
    let from_start = |place: i64| if place < 0 { place.saturating_add(length) } else { place };
    let start = from_start(start).max(0);
    let stop = from_start(stop).min(length - 1);
    if start > stop { 0..0 } else { start as usize..stop as usize + 1 }
}

/// `LSET`.
fn set(evaluation: &mut Evaluation<'_>, key: &Bytes, place: i64, value: &Bytes) -> Result<Reply, Halt> {
    let (element, count) = element_at(evaluation, key, place)?;
    if count == 0 {
        return Err(CommandError::NoSuchKey.into());
    }
    let element = element.ok_or(CommandError::Argument("index out of range"))?;
    evaluation.check_room(element_bytes(key, &element.name, value.len()))?;
    evaluation.begin_write(key)?;
    evaluation.put(key, Column::Element(element.name), value.clone());
    Ok(Reply::OK)
}

/// `LINSERT`: answers how many there are then, or -1 if the other element is not there. It looks at all of the list.
fn insert(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    before: bool,
    pivot: &Bytes,
    value: &Bytes,
) -> Result<Reply, Halt> {
    let (elements, count) = evaluation.elements(key, |len| 0..len)?;
    if count == 0 {
        return Ok(integer(0));
    }
    let Some(place) = elements.iter().position(|element| element.value == *pivot) else {
        return Ok(Reply::Integer(-1));
    };
    let place = if before { place } else { place + 1 };
    let name_at = |place: usize| elements.get(place).map(|element| &element.name);
    let name = evaluation.name_element(place.checked_sub(1).and_then(name_at), name_at(place));
    let name = name.ok_or_else(no_room)?;
    evaluation.check_room(element_bytes(key, &name, value.len()))?;
    evaluation.begin_write(key)?;
    evaluation.put(key, Column::Element(name), value.clone());
    Ok(integer(count + 1))
}

/// `LTRIM`: removes what is outside of a range.
fn trim(evaluation: &mut Evaluation<'_>, key: &Bytes, start: i64, stop: i64) -> Result<Reply, Halt> {
    let kept = |len: usize| match places(start, stop, len) {
        kept if kept.is_empty() => len..len,
        kept => kept,
    };
    let (mut doomed, _) = evaluation.elements(key, |len| 0..kept(len).start)?;
    doomed.extend(evaluation.elements(key, |len| kept(len).end..len)?.0);
    remove_all(evaluation, key, &doomed)?;
    Ok(Reply::OK)
}

/// From where to where an element is moved.
pub(super) struct Moved<'r> {
    pub source: &'r Bytes,
    pub from: End,
    pub target: &'r Bytes,
    pub to: End,
}

/// `LMOVE` and `RPOPLPUSH`.
pub(super) fn move_to(evaluation: &mut Evaluation<'_>, ends: &Moved<'_>) -> Result<Reply, Halt> {
    let Moved { source, from, target, to } = *ends;
    let (moved, _) = evaluation.elements(source, |len| at_end(from, len, 1))?;
    let Some(element) = moved.first() else { return Ok(Reply::Nil) };
    let (outermost, _) = evaluation.elements(target, |len| at_end(to, len, 1))?;
    let value = element.value.clone();
    let pushed = element_bytes(target, &value, NAME_BYTES);
    evaluation.check_room(pushed.saturating_add(element_bytes(source, &element.name, 0)))?;
    // Put first, so that a list of one element that is moved within it does not go with its deadline.
    add(evaluation, target, to, std::slice::from_ref(&value), outermost.into_iter().next())?;
    remove_all(evaluation, source, &moved)?;
    Ok(Reply::Bulk(value))
}

fn values_reply(elements: Vec<Element>) -> Reply {
    Reply::Array(elements.into_iter().map(|element| Reply::Bulk(element.value)).collect())
}
