//! `struct`: numbers and texts as the fields of a C structure, by a format of one letter a field.

use super::budget::Budget;
use super::convert::number;
use super::json::Problem;
use super::libraries::{numeric, text};
use crate::number::truncated;
use ensue_types::limits;
use mlua::{Lua, Value};

const INTEGER_BYTES_MAX: usize = 32;
const ALIGNMENT_MAX: usize = 16;

/// One field of a format, read.
struct Field {
    letter: u8,
    size: usize,
    /// Zero bytes in front of it.
    padding: usize,
    big_endian: bool,
}

/// A format while it is read.
struct Format<'a> {
    letters: &'a [u8],
    at: usize,
    big_endian: bool,
    alignment: usize,
}

impl<'a> Format<'a> {
    fn new(letters: &'a [u8]) -> Format<'a> {
        Format { letters, at: 0, big_endian: false, alignment: 1 }
    }

    /// The next field, which stands after so many bytes.
    fn next(&mut self, total: usize) -> Result<Option<Field>, Problem> {
        while let Some(&letter) = self.letters.get(self.at) {
            self.at += 1;
            let size = match letter {
                b'b' | b'B' | b'x' => 1,
                b'h' | b'H' => 2,
                b'l' | b'L' | b'T' | b'd' => 8,
                b'f' => 4,
                b'c' => self.number(1)?,
                b's' => 0,
                b'i' | b'I' => {
                    let size = self.number(4)?;
                    if size > INTEGER_BYTES_MAX {
                        let words =
                            format!("integral size {size} is larger than limit of {INTEGER_BYTES_MAX}");
                        return Err(Problem::Words(words));
                    }
                    size
                }
                b' ' => continue,
                b'>' | b'<' => {
                    self.big_endian = letter == b'>';
                    continue;
                }
                b'!' => {
                    self.alignment = self.number(8)?;
                    if !self.alignment.is_power_of_two() || self.alignment > ALIGNMENT_MAX {
                        return Err("alignment is not a power of 2".into());
                    }
                    continue;
                }
                _ => {
                    let words = format!("invalid format option '{}'", char::from(letter));
                    return Err(Problem::Argument(1, words));
                }
            };
            let padding = self.padding(letter, size, total);
            return Ok(Some(Field { letter, size, padding, big_endian: self.big_endian }));
        }
        Ok(None)
    }

    fn padding(&self, letter: u8, size: usize, total: usize) -> usize {
        let alignment = size.min(self.alignment);
        if alignment <= 1 || matches!(letter, b'c' | b's' | b'x') || !alignment.is_power_of_two() {
            return 0;
        }
        total.wrapping_neg() & (alignment - 1)
    }

    fn number(&mut self, otherwise: usize) -> Result<usize, Problem> {
        let mut value: Option<usize> = None;
        while let Some(digit) = self.letters.get(self.at).filter(|digit| digit.is_ascii_digit()) {
            let digit = usize::from(digit - b'0');
            let next = value.unwrap_or(0).checked_mul(10).and_then(|value| value.checked_add(digit));
            let next = next.filter(|value| *value <= i32::MAX as usize);
            value = Some(next.ok_or("integral size overflow")?);
            self.at += 1;
        }
        Ok(value.unwrap_or(otherwise))
    }
}

/// Bytes of all fields of a format.
pub fn size(letters: &[u8]) -> Result<usize, Problem> {
    let mut format = Format::new(letters);
    let mut total: usize = 0;
    while let Some(field) = format.next(total)? {
        if field.letter == b's' || (field.letter == b'c' && field.size == 0) {
            let words = format!("option '{}' has no fixed size", char::from(field.letter));
            return Err(Problem::Argument(1, words));
        }
        total = total.saturating_add(field.padding + field.size);
    }
    Ok(total)
}

pub fn pack(budget: &Budget, letters: &[u8], values: &[Value]) -> Result<Vec<u8>, Problem> {
    let mut format = Format::new(letters);
    let mut bytes = Vec::new();
    // The format is the first argument.
    let mut places = 1..;
    while let Some(field) = format.next(bytes.len())? {
        budget.spend(1)?;
        bytes.resize(bytes.len() + field.padding, 0);
        if field.letter == b'x' {
            bytes.push(0);
            continue;
        }
        let place = places.next().unwrap_or_default();
        match field.letter {
            b'c' | b's' => {
                let text = text(values, place)?;
                let size = if field.letter == b'c' && field.size > 0 { field.size } else { text.len() };
                if text.len() < size {
                    return Err(Problem::Argument(place + 2, "string too short".into()));
                }
                budget.spend_bytes(size)?;
                bytes.extend_from_slice(&text[..size]);
                if field.letter == b's' {
                    bytes.push(0);
                }
            }
            letter => {
                let number = numeric(values, place)?;
                write_number(&mut bytes, letter, &field, number);
            }
        }
        if bytes.len() > limits::ANSWER_BYTES_MAX {
            return Err(Problem::Lua(budget.stop(super::budget::Stop::Memory)));
        }
    }
    Ok(bytes)
}

fn too_short() -> Problem {
    Problem::Argument(2, "data string too short".into())
}

fn write_number(bytes: &mut Vec<u8>, letter: u8, field: &Field, number: f64) {
    let begin = bytes.len();
    match letter {
        b'f' => bytes.extend_from_slice(&(number as f32).to_le_bytes()),
        b'd' => bytes.extend_from_slice(&number.to_le_bytes()),
        _ => {
            let integer = match number < 0.0 {
                true => truncated(number) as u64,
                false => number as u64,
            };
            // What is beyond 64 bits is zero, also of negative numbers.
            let whole = integer.to_le_bytes();
            bytes.extend((0..field.size).map(|at| whole.get(at).copied().unwrap_or(0)));
        }
    }
    if field.big_endian {
        bytes[begin..].reverse();
    }
}

/// The values of a format's fields, and the place after them, from one on.
pub fn unpack(
    lua: &Lua,
    budget: &Budget,
    letters: &[u8],
    data: &[u8],
    from: usize,
) -> Result<Vec<Value>, Problem> {
    let mut format = Format::new(letters);
    let mut values: Vec<Value> = Vec::new();
    let mut at = from;
    while let Some(field) = format.next(at)? {
        budget.spend(1)?;
        let begin = at.saturating_add(field.padding);
        let rest = data.get(begin..).ok_or_else(too_short)?;
        let mut size = field.size;
        match field.letter {
            b'c' if size == 0 => {
                let counted = values.pop().as_ref().and_then(number);
                let counted = counted.ok_or("format 'c0' needs a previous size")?;
                size = if counted >= 0.0 { counted as usize } else { usize::MAX };
            }
            b's' => {
                let length = rest.iter().position(|&byte| byte == 0);
                size = length.ok_or("unfinished string in data")? + 1;
            }
            _ => {}
        }
        let bytes = rest.get(..size).ok_or_else(too_short)?;
        budget.spend_bytes(size)?;
        match field.letter {
            b'x' => {}
            b'c' => values.push(Value::String(lua.create_string(bytes)?)),
            b's' => values.push(Value::String(lua.create_string(&bytes[..size - 1])?)),
            letter => values.push(Value::Number(read_number(letter, &field, bytes))),
        }
        at = begin + size;
    }
    values.push(Value::Number((at + 1) as f64));
    Ok(values)
}

fn read_number(letter: u8, field: &Field, bytes: &[u8]) -> f64 {
    let ordered = |at: usize| if field.big_endian { bytes[bytes.len() - 1 - at] } else { bytes[at] };
    let count = bytes.len().min(8);
    let value = (0..count).rev().fold(0_u64, |value, at| value << 8 | u64::from(ordered(at)));
    match letter {
        b'f' => f64::from(f32::from_bits(value as u32)),
        b'd' => f64::from_bits(value),
        letter if letter.is_ascii_lowercase() && count > 0 => {
            let unused = 64 - 8 * count as u32;
            ((value << unused) as i64 >> unused) as f64
        }
        _ => value as f64,
    }
}
