//! Commands on the bits of strings. Bit 0 is the highest of the first byte.
//!
//! What is written is the whole string: of two datacenters that write at once, the later string wins.

use crate::command::{flag, integer, text_of};
use crate::evaluate::{Evaluation, Halt, effect_bytes};
use bytes::{Bytes, BytesMut};
use ensue_resp::request::{BitField, BitOperator, BitRange, BitUnit, Bits, FieldStep, Overflow};
use ensue_types::{Column, Reply};
use std::ops::Range;

pub(super) fn evaluate(request: &Bits, evaluation: &mut Evaluation<'_>) -> Result<Reply, Halt> {
    match request {
        Bits::Get { key, offset } => {
            let text = text(evaluation, key)?;
            Ok(flag(bit_at(text.as_deref().unwrap_or_default(), *offset)))
        }
        Bits::Set { key, offset, bit } => set(evaluation, key, *offset, *bit),
        Bits::Count { key, range } => {
            let text = text(evaluation, key)?.unwrap_or_default();
            Ok(Reply::Integer(count(&text, *range)))
        }
        Bits::Find { key, bit, start, end, unit } => match text(evaluation, key)? {
            None => Ok(Reply::Integer(if *bit { -1 } else { 0 })),
            Some(text) => Ok(Reply::Integer(find(&text, *bit, *start, *end, *unit))),
        },
        Bits::Combine { operator, target, sources } => combine(evaluation, *operator, target, sources),
        Bits::Fields { key, steps, .. } => fields(evaluation, key, steps),
    }
}

fn text(evaluation: &mut Evaluation<'_>, key: &Bytes) -> Result<Option<Bytes>, Halt> {
    Ok(text_of(evaluation.content(key, &Column::Text)?))
}

/// The string as one that can be written, at least so long that it has this bit.
fn room_for(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    before: &[u8],
    last: u64,
) -> Result<BytesMut, Halt> {
    // The offset was bounded where it was read.
    let length = before.len().max((last / 8) as usize + 1);
    evaluation.check_room(effect_bytes(key, &Column::Text, length))?;
    let mut text = BytesMut::zeroed(length);
    text[..before.len()].copy_from_slice(before);
    Ok(text)
}

fn bit_at(text: &[u8], offset: u64) -> bool {
    text.get((offset / 8) as usize).is_some_and(|byte| byte & mask(offset) != 0)
}

fn mask(offset: u64) -> u8 {
    0x80 >> (offset % 8)
}

fn put_bit(text: &mut [u8], offset: u64, bit: bool) {
    let byte = &mut text[(offset / 8) as usize];
    *byte = if bit { *byte | mask(offset) } else { *byte & !mask(offset) };
}

/// `SETBIT`.
fn set(evaluation: &mut Evaluation<'_>, key: &Bytes, offset: u64, bit: bool) -> Result<Reply, Halt> {
    let before = text(evaluation, key)?.unwrap_or_default();
    let mut text = room_for(evaluation, key, &before, offset)?;
    let was = bit_at(&text, offset);
    put_bit(&mut text, offset, bit);
    evaluation.begin_write(key)?;
    evaluation.put(key, Column::Text, text.freeze());
    Ok(flag(was))
}

/// The bits of a range, the end not included; nothing of one that is empty.
fn places(text: &[u8], start: i64, end: i64, unit: BitUnit) -> Option<Range<u64>> {
    let bits_a_unit = if unit == BitUnit::Bit { 1 } else { 8 };
    let units = text.len() as i64 * 8 / bits_a_unit;
    let from_start = |place: i64| if place < 0 { units.saturating_add(place).max(0) } else { place };
    let (first, last) = (from_start(start), from_start(end).min(units - 1));
    let (first, last) = (u64::try_from(first).ok()?, u64::try_from(last).ok()?);
    let bits_a_unit = bits_a_unit as u64;
    (first <= last).then(|| first * bits_a_unit..(last + 1) * bits_a_unit)
}

/// `BITCOUNT`.
fn count(text: &[u8], range: Option<BitRange>) -> i64 {
    let whole = BitRange { start: 0, end: -1, unit: BitUnit::Byte };
    let BitRange { start, end, unit } = range.unwrap_or(whole);
    // Both before the beginning, and crossed: nothing, before they are moved to the first place.
    if start < 0 && end < 0 && start > end {
        return 0;
    }
    let Some(Range { start, end }) = places(text, start, end, unit) else { return 0 };
    let (first_whole, end_whole) = (start.div_ceil(8), end / 8);
    let one_by_one = |range: Range<u64>| range.filter(|&place| bit_at(text, place)).count() as i64;
    if first_whole >= end_whole {
        return one_by_one(start..end);
    }
    let whole = &text[first_whole as usize..end_whole as usize];
    let whole: i64 = whole.iter().map(|byte| i64::from(byte.count_ones())).sum();
    one_by_one(start..first_whole * 8) + whole + one_by_one(end_whole * 8..end)
}

/// `BITPOS`. Behind a string whose end was not named, there are clear bits.
fn find(text: &[u8], bit: bool, start: i64, end: Option<i64>, unit: BitUnit) -> i64 {
    let Some(range) = places(text, start, end.unwrap_or(-1), unit) else { return -1 };
    let without = if bit { 0x00 } else { 0xff };
    let mut place = range.start;
    while place < range.end {
        if place % 8 == 0 && place + 8 <= range.end && text[(place / 8) as usize] == without {
            place += 8;
        } else if bit_at(text, place) == bit {
            return place as i64;
        } else {
            place += 1;
        }
    }
    match (bit, end) {
        (false, None) => text.len() as i64 * 8,
        _ => -1,
    }
}

/// `BITOP`: what is shorter is followed by zeros.
fn combine(
    evaluation: &mut Evaluation<'_>,
    operator: BitOperator,
    target: &Bytes,
    sources: &[Bytes],
) -> Result<Reply, Halt> {
    let mut texts = Vec::with_capacity(sources.len());
    for source in sources {
        texts.push(text(evaluation, source)?.unwrap_or_default());
    }
    let length = texts.iter().map(Bytes::len).max().unwrap_or(0);
    let stored = effect_bytes(target, &Column::Text, length);
    evaluation.check_room(stored.saturating_add(evaluation.bytes_to_clear(target)))?;
    if length == 0 {
        evaluation.clear_row(target, |_| true)?;
        return Ok(integer(0));
    }
    let mut texts = texts.into_iter();
    let mut result = BytesMut::zeroed(length);
    let first = texts.next().unwrap_or_default();
    result[..first.len()].copy_from_slice(&first);
    if operator == BitOperator::Not {
        result.iter_mut().for_each(|byte| *byte = !*byte);
    }
    for text in texts {
        let text = text.iter().copied().chain(std::iter::repeat(0));
        for (byte, other) in result.iter_mut().zip(text) {
            match operator {
                BitOperator::And => *byte &= other,
                BitOperator::Or => *byte |= other,
                BitOperator::Xor => *byte ^= other,
                BitOperator::Not => {}
            }
        }
    }
    evaluation.begin_write(target)?;
    evaluation.clear_row(target, |column| *column != Column::Text)?;
    evaluation.put(target, Column::Text, result.freeze());
    Ok(integer(length))
}

/// `BITFIELD`.
fn fields(evaluation: &mut Evaluation<'_>, key: &Bytes, steps: &[FieldStep]) -> Result<Reply, Halt> {
    let before = text(evaluation, key)?.unwrap_or_default();
    let last = |field: &BitField| field.offset + u64::from(field.width) - 1;
    let written = steps.iter().filter_map(|step| match step {
        FieldStep::Get(_) => None,
        FieldStep::Set(field, ..) | FieldStep::Increment(field, ..) => Some(last(field)),
    });
    let mut text = match written.max() {
        Some(last) => room_for(evaluation, key, &before, last)?,
        None => BytesMut::from(&before[..]),
    };
    // It is lengthened also if no field holds its number.
    let mut changes = text.len() > before.len();
    let mut answers = Vec::with_capacity(steps.len());
    for step in steps {
        let answer = match *step {
            FieldStep::Get(field) => Some(read(&text, field)),
            FieldStep::Set(field, value, overflow) => {
                let was = read(&text, field);
                // An unsigned field takes the bits of a negative number for a large one.
                let wide = if field.is_signed { i128::from(value) } else { i128::from(value as u64) };
                let value = fitted(field, wide, overflow);
                changes |= write(&mut text, field, value);
                value.map(|_| was)
            }
            FieldStep::Increment(field, amount, overflow) => {
                let sum = i128::from(read(&text, field)) + i128::from(amount);
                let value = fitted(field, sum, overflow);
                changes |= write(&mut text, field, value);
                value
            }
        };
        answers.push(answer.map_or(Reply::Nil, Reply::Integer));
    }
    if changes {
        evaluation.begin_write(key)?;
        evaluation.put(key, Column::Text, text.freeze());
    }
    Ok(Reply::Array(answers))
}

fn read(text: &[u8], field: BitField) -> i64 {
    let bits = field.offset..field.offset + u64::from(field.width);
    let value = bits.fold(0_u64, |value, place| value << 1 | u64::from(bit_at(text, place)));
    wrapped(field, i128::from(value))
}

/// Writes a value that a field holds; says whether there was one.
fn write(text: &mut [u8], field: BitField, value: Option<i64>) -> bool {
    let Some(value) = value else { return false };
    for bit in 0..field.width {
        let is_set = value >> (field.width - 1 - bit) & 1 == 1;
        put_bit(text, field.offset + u64::from(bit), is_set);
    }
    true
}

/// A number as a field holds it, if it may.
fn fitted(field: BitField, value: i128, overflow: Overflow) -> Option<i64> {
    let held = wrapped(field, value);
    if i128::from(held) == value {
        return Some(held);
    }
    let (least, most) = match field.is_signed {
        true => (-(1_i128 << (field.width - 1)), (1_i128 << (field.width - 1)) - 1),
        false => (0, (1_i128 << field.width) - 1),
    };
    match overflow {
        Overflow::Wrap => Some(held),
        Overflow::Saturate => i64::try_from(value.clamp(least, most)).ok(),
        Overflow::Fail => None,
    }
}

/// The lower bits of a number, as a field reads them.
fn wrapped(field: BitField, value: i128) -> i64 {
    let unused = 128 - field.width;
    let shifted = value << unused;
    let value = if field.is_signed { shifted >> unused } else { ((shifted as u128) >> unused) as i128 };
    // A field has at most 64 bits, an unsigned one 63.
    value as i64
}
