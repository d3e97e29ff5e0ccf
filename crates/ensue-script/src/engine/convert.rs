//! Values between a script and its commands, as Redis converts them.
//!
//! Numbers become integers by truncation, on the way to a client; arrays end at the first nil; `err`, `ok`, `double`,
//! `map`, `set`, `big_number` and `verbatim_string` in a table say what it stands for.

use super::budget::Budget;
use super::one_line;
use crate::number::{general, truncated};
use bytes::Bytes;
use ensue_types::{Reply, limits};
use mlua::{Lua, MultiValue, Table, Value};

/// How deep answers nest.
const DEPTH_MAX: usize = 64;
const TOO_DEEP: Reply = Reply::error("ERR reached lua stack limit");
/// Steps for each value of an answer, and for each table.
const STEPS_PER_VALUE: u64 = 4;
const STEPS_PER_TABLE: u64 = 100;

const NO_COMMAND: &str = "ERR Please specify at least one argument for this redis lib call";
const NO_STRING: &str = "ERR Lua redis lib command arguments must be strings or integers";

/// The arguments of a command, its name first.
pub fn arguments(values: MultiValue) -> Result<Vec<Bytes>, &'static str> {
    if values.is_empty() {
        return Err(NO_COMMAND);
    }
    values.iter().map(|value| argument(value).ok_or(NO_STRING)).collect()
}

fn argument(value: &Value) -> Option<Bytes> {
    match value {
        Value::String(text) => Some(Bytes::copy_from_slice(&text.as_bytes())),
        value => number(value).map(|number| general(number, 17).into()),
    }
}

/// A number, whatever kind of number it is.
pub fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(integer) => Some(*integer as f64),
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

/// What a script sees of an answer.
pub fn to_lua(lua: &Lua, reply: Reply, resp3: bool) -> mlua::Result<Value> {
    let tagged = |tag: &str, value: Value| {
        let table = lua.create_table_with_capacity(0, 1)?;
        table.raw_set(tag, value)?;
        Ok(Value::Table(table))
    };
    let text = |bytes: &[u8]| Ok::<_, mlua::Error>(Value::String(lua.create_string(bytes)?));
    match reply {
        Reply::Status(words) => tagged("ok", text(words.as_bytes())?),
        Reply::Error(words) => tagged("err", text(words.as_bytes())?),
        Reply::Integer(integer) => Ok(Value::Number(integer as f64)),
        Reply::Verbatim(bytes) if resp3 => {
            let table = lua.create_table_with_capacity(0, 2)?;
            table.raw_set("format", "txt")?;
            table.raw_set("string", text(&bytes)?)?;
            tagged("verbatim_string", Value::Table(table))
        }
        Reply::Bulk(bytes) | Reply::Verbatim(bytes) => text(&bytes),
        Reply::Nil | Reply::NilArray => Ok(if resp3 { Value::Nil } else { Value::Boolean(false) }),
        Reply::Array(items) => Ok(Value::Table(list(lua, items, resp3)?)),
        Reply::Set(items) if resp3 => {
            let table = lua.create_table()?;
            for item in items {
                table.raw_set(to_lua(lua, item, resp3)?, true)?;
            }
            tagged("set", Value::Table(table))
        }
        Reply::Set(items) => Ok(Value::Table(list(lua, items, resp3)?)),
        Reply::Map(pairs) | Reply::Keyed(pairs) if resp3 => {
            let table = lua.create_table()?;
            for (key, value) in pairs {
                table.raw_set(to_lua(lua, key, resp3)?, to_lua(lua, value, resp3)?)?;
            }
            tagged("map", Value::Table(table))
        }
        Reply::Pairs(pairs) if resp3 => Ok(Value::Table(list(lua, both(pairs), resp3)?)),
        Reply::Keyed(pairs) => Ok(Value::Table(list(lua, both(pairs), resp3)?)),
        Reply::Map(pairs) | Reply::Pairs(pairs) => {
            let flat = pairs.into_iter().flat_map(|(key, value)| [key, value]).collect();
            Ok(Value::Table(list(lua, flat, resp3)?))
        }
        Reply::Double(value) if resp3 => tagged("double", Value::Number(value)),
        Reply::Double(value) => text(&ensue_resp::number::f64_bytes(value)),
        Reply::BigNumber(digits) if resp3 => tagged("big_number", text(&digits)?),
        Reply::BigNumber(digits) => text(&digits),
        Reply::Boolean(truth) if resp3 => Ok(Value::Boolean(truth)),
        Reply::Boolean(truth) => Ok(Value::Number(f64::from(u8::from(truth)))),
    }
}

fn both(pairs: Vec<(Reply, Reply)>) -> Vec<Reply> {
    pairs.into_iter().map(|(one, other)| Reply::Array(vec![one, other])).collect()
}

fn list(lua: &Lua, items: Vec<Reply>, resp3: bool) -> mlua::Result<Table> {
    let table = lua.create_table_with_capacity(items.len(), 0)?;
    for (at, item) in items.into_iter().enumerate() {
        table.raw_set(at + 1, to_lua(lua, item, resp3)?)?;
    }
    Ok(table)
}

/// What a client sees of what a script returned.
pub fn from_lua(budget: &Budget, value: Value, resp3: bool) -> mlua::Result<Reply> {
    Converter { budget, resp3, bytes: 0 }.reply(value, 0)
}

struct Converter<'a> {
    budget: &'a Budget,
    resp3: bool,
    bytes: usize,
}

impl Converter<'_> {
    fn reply(&mut self, value: Value, depth: usize) -> mlua::Result<Reply> {
        self.budget.spend(STEPS_PER_VALUE)?;
        Ok(match value {
            Value::Table(_) if depth > DEPTH_MAX => TOO_DEEP,
            Value::Table(table) => return self.table(&table, depth),
            Value::String(text) => Reply::Bulk(self.take(&text)?),
            Value::Boolean(truth) if self.resp3 => Reply::Boolean(truth),
            Value::Boolean(true) => Reply::Integer(1),
            value => number(&value).map_or(Reply::Nil, |number| Reply::Integer(truncated(number))),
        })
    }

    fn table(&mut self, table: &Table, depth: usize) -> mlua::Result<Reply> {
        self.budget.spend(STEPS_PER_TABLE)?;
        if let Value::String(words) = table.raw_get("err")? {
            return Ok(Reply::Error(one_line(&words.as_bytes())));
        }
        if let Value::String(words) = table.raw_get("ok")? {
            return Ok(Reply::Status(one_line(&words.as_bytes())));
        }
        if let Some(number) = number(&table.raw_get("double")?) {
            return Ok(Reply::Double(number));
        }
        if let Value::Table(map) = table.raw_get("map")? {
            let mut pairs = Vec::new();
            for pair in map.pairs::<Value, Value>() {
                let (key, value) = pair?;
                pairs.push((self.reply(key, depth + 1)?, self.reply(value, depth + 1)?));
            }
            return Ok(Reply::Map(pairs));
        }
        if let Value::Table(set) = table.raw_get("set")? {
            let mut items = Vec::new();
            for pair in set.pairs::<Value, Value>() {
                items.push(self.reply(pair?.0, depth + 1)?);
            }
            return Ok(Reply::Set(items));
        }
        if let Value::String(digits) = table.raw_get("big_number")? {
            let digits = self.take(&digits)?;
            // What ends a line in the protocol must not stand in it.
            let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
            return Ok(Reply::BigNumber(match digits.iter().any(is_end) {
                true => digits.iter().map(|byte| if is_end(byte) { b' ' } else { *byte }).collect(),
                false => digits,
            }));
        }
        if let Value::Table(verbatim) = table.raw_get("verbatim_string")? {
            if let Value::String(text) = verbatim.raw_get("string")? {
                return Ok(Reply::Verbatim(self.take(&text)?));
            }
        }
        let mut items = Vec::new();
        for at in 1.. {
            match table.raw_get(at)? {
                Value::Nil => break,
                value => items.push(self.reply(value, depth + 1)?),
            }
        }
        if items.contains(&TOO_DEEP) {
            return Ok(TOO_DEEP);
        }
        Ok(Reply::Array(items))
    }

    /// A text of the answer, which as a whole is not longer than any answer.
    fn take(&mut self, text: &mlua::String) -> mlua::Result<Bytes> {
        let bytes = Bytes::copy_from_slice(&text.as_bytes());
        self.bytes += bytes.len();
        self.budget.spend_bytes(bytes.len())?;
        if self.bytes > limits::ANSWER_BYTES_MAX {
            return Err(self.budget.stop(super::budget::Stop::Memory));
        }
        Ok(bytes)
    }
}
