//! `cmsgpack`: MessagePack as lua-cmsgpack writes and reads it.
//!
//! Whole numbers are integers of the fewest bytes, others the shorter float that holds them; tables whose keys count up
//! from one are arrays. What cannot be written is nil, and so is what nests too deep.

use super::budget::Budget;
use super::convert::number;
use super::json::Problem;
use ensue_types::limits;
use mlua::{Lua, Table, Value};

const DEPTH_MAX: usize = 16;
const READ_DEPTH_MAX: usize = 100;
const STEPS_PER_TABLE: u64 = 50;

/// Writes values one after the other.
pub fn pack(budget: &Budget, values: &[Value]) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    for value in values {
        write(budget, &mut bytes, value, 0)?;
    }
    Ok(bytes)
}

fn write(budget: &Budget, bytes: &mut Vec<u8>, value: &Value, depth: usize) -> Result<(), Problem> {
    budget.spend(1)?;
    match value {
        Value::Boolean(truth) => bytes.push(if *truth { 0xc3 } else { 0xc2 }),
        Value::String(text) => {
            let text = text.as_bytes();
            budget.spend_bytes(text.len())?;
            if bytes.len() + text.len() > limits::ANSWER_BYTES_MAX {
                return Err(Problem::Lua(budget.stop(super::budget::Stop::Memory)));
            }
            write_length(bytes, text.len(), (0xa0, 32), [Some(0xd9), Some(0xda), Some(0xdb)]);
            bytes.extend_from_slice(&text);
        }
        Value::Table(_) if depth == DEPTH_MAX => bytes.push(0xc0),
        Value::Table(table) => write_table(budget, bytes, table, depth)?,
        value => match number(value) {
            Some(number) => write_number(bytes, number),
            None => bytes.push(0xc0),
        },
    }
    Ok(())
}

fn write_table(budget: &Budget, bytes: &mut Vec<u8>, table: &Table, depth: usize) -> Result<(), Problem> {
    budget.spend(STEPS_PER_TABLE)?;
    let mut pairs = Vec::new();
    let mut last = 0.0_f64;
    let mut counts = true;
    for pair in table.pairs::<Value, Value>() {
        budget.spend(1)?;
        let (key, value) = pair?;
        let place = number(&key).filter(|place| *place > 0.0 && place.fract() == 0.0);
        counts &= place.is_some();
        last = last.max(place.unwrap_or_default());
        pairs.push((key, value));
    }
    if counts && last == pairs.len() as f64 {
        write_length(bytes, pairs.len(), (0x90, 16), [None, Some(0xdc), Some(0xdd)]);
        for at in 1..=pairs.len() {
            write(budget, bytes, &table.raw_get(at)?, depth + 1)?;
        }
        return Ok(());
    }
    write_length(bytes, pairs.len(), (0x80, 16), [None, Some(0xde), Some(0xdf)]);
    for (key, value) in pairs {
        write(budget, bytes, &key, depth + 1)?;
        write(budget, bytes, &value, depth + 1)?;
    }
    Ok(())
}

/// A length: within the first byte if it is small, or after a byte for each size.
fn write_length(bytes: &mut Vec<u8>, length: usize, (fixed, below): (u8, usize), sized: [Option<u8>; 3]) {
    match (length, sized) {
        (length, _) if length < below => bytes.push(fixed | length as u8),
        (0..0x100, [Some(tag), ..]) => bytes.extend_from_slice(&[tag, length as u8]),
        (0..0x1_0000, [_, Some(tag), _]) => {
            bytes.push(tag);
            bytes.extend_from_slice(&(length as u16).to_be_bytes());
        }
        (length, [.., tag]) => {
            bytes.push(tag.unwrap_or_default());
            bytes.extend_from_slice(&(length as u32).to_be_bytes());
        }
    }
}

fn write_number(bytes: &mut Vec<u8>, number: f64) {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if number.fract() == 0.0 && (-LIMIT..LIMIT).contains(&number) {
        return write_integer(bytes, number as i64);
    }
    let short = number as f32;
    if f64::from(short) == number {
        bytes.push(0xca);
        bytes.extend_from_slice(&short.to_be_bytes());
    } else {
        bytes.push(0xcb);
        bytes.extend_from_slice(&number.to_be_bytes());
    }
}

fn write_integer(bytes: &mut Vec<u8>, integer: i64) {
    let whole = integer.to_be_bytes();
    let (tag, count) = match integer {
        -32..=0x7f => return bytes.push(integer as u8),
        0x80..=0xff => (0xcc, 1),
        0x100..=0xffff => (0xcd, 2),
        0x1_0000..=0xffff_ffff => (0xce, 4),
        0x1_0000_0000.. => (0xcf, 8),
        -0x80..-32 => (0xd0, 1),
        -0x8000..-0x80 => (0xd1, 2),
        -0x8000_0000..-0x8000 => (0xd2, 4),
        _ => (0xd3, 8),
    };
    bytes.push(tag);
    bytes.extend_from_slice(&whole[8 - count..]);
}

/// Reads at most so many values from a place on, and the place after them.
pub fn unpack(
    lua: &Lua,
    budget: &Budget,
    bytes: &[u8],
    (from, most): (usize, usize),
) -> Result<(Vec<Value>, usize), Problem> {
    let mut reader = Reader { lua, budget, bytes, at: from };
    let mut values = Vec::new();
    while reader.at < bytes.len() && values.len() < most {
        values.push(reader.value(0)?);
    }
    Ok((values, reader.at))
}

struct Reader<'a> {
    lua: &'a Lua,
    budget: &'a Budget,
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Result<Value, Problem> {
        self.budget.spend(1)?;
        if depth > READ_DEPTH_MAX {
            return Err("Bad data format in input.".into());
        }
        let tag = self.take(1)?[0];
        Ok(match tag {
            0x00..=0x7f => Value::Number(f64::from(tag)),
            0xe0..=0xff => Value::Number(f64::from(tag as i8)),
            0x80..=0x8f => self.map(usize::from(tag & 15), depth)?,
            0x90..=0x9f => self.array(usize::from(tag & 15), depth)?,
            0xa0..=0xbf => self.text(usize::from(tag & 31))?,
            0xc0 => Value::Nil,
            0xc2 => Value::Boolean(false),
            0xc3 => Value::Boolean(true),
            0xc4 | 0xd9 => self.sized_text(1)?,
            0xc5 | 0xda => self.sized_text(2)?,
            0xc6 | 0xdb => self.sized_text(4)?,
            0xca => Value::Number(f64::from(f32::from_bits(self.unsigned(4)? as u32))),
            0xcb => Value::Number(f64::from_bits(self.unsigned(8)?)),
            0xcc..=0xcf => Value::Number(self.unsigned(1 << (tag & 3))? as f64),
            0xd0 => Value::Number(f64::from(self.unsigned(1)? as i8)),
            0xd1 => Value::Number(f64::from(self.unsigned(2)? as i16)),
            0xd2 => Value::Number(f64::from(self.unsigned(4)? as i32)),
            0xd3 => Value::Number(self.unsigned(8)? as i64 as f64),
            0xdc | 0xdd => {
                let length = self.unsigned(if tag == 0xdc { 2 } else { 4 })?;
                self.array(length as usize, depth)?
            }
            0xde | 0xdf => {
                let length = self.unsigned(if tag == 0xde { 2 } else { 4 })?;
                self.map(length as usize, depth)?
            }
            _ => return Err("Bad data format in input.".into()),
        })
    }

    fn array(&mut self, length: usize, depth: usize) -> Result<Value, Problem> {
        let table = self.lua.create_table()?;
        for at in 1..=length {
            let value = self.value(depth + 1)?;
            table.raw_set(at, value)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, length: usize, depth: usize) -> Result<Value, Problem> {
        let table = self.lua.create_table()?;
        for _ in 0..length {
            let key = self.value(depth + 1)?;
            let value = self.value(depth + 1)?;
            if key.is_nil() || matches!(key, Value::Number(number) if number.is_nan()) {
                return Err("Bad data format in input.".into());
            }
            table.raw_set(key, value)?;
        }
        Ok(Value::Table(table))
    }

    fn sized_text(&mut self, count: usize) -> Result<Value, Problem> {
        let length = self.unsigned(count)?;
        self.text(length as usize)
    }

    fn text(&mut self, length: usize) -> Result<Value, Problem> {
        let lua = self.lua;
        let text = self.take(length)?;
        Ok(Value::String(lua.create_string(text)?))
    }

    fn unsigned(&mut self, count: usize) -> Result<u64, Problem> {
        Ok(self.take(count)?.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    fn take(&mut self, count: usize) -> Result<&[u8], Problem> {
        self.budget.spend_bytes(count)?;
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or("Missing bytes in input.")?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }
}
