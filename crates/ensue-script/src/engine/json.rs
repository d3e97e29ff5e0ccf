//! `cjson`: JSON as lua-cjson writes and reads it, with the settings that Redis leaves it, until a script has others.
//!
//! Tables whose keys are positive integers are arrays, unless that would leave most of it empty; an empty table is an
//! object. Numbers have fourteen digits.

mod decode;

use super::budget::Budget;
use super::convert::number;
use crate::number::general;
use ensue_types::limits;
use mlua::{Table, Value};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

pub use decode::decode;

/// Tables in tables, in both directions, if a script does not want fewer.
const DEPTH_MAX: usize = 1000;
const DIGITS: usize = 14;
const STEPS_PER_TABLE: u64 = 50;
/// An array with more places than this is refused if not at least one of `SPARSE_RATIO` is taken.
const SPARSE_SAFE: usize = 10;
const SPARSE_RATIO: usize = 2;

/// What a script has set. It is shared with closures of the interpreter; only one thread ever uses it at a time.
#[derive(Debug)]
pub struct Settings {
    encode_depth: AtomicUsize,
    decode_depth: AtomicUsize,
    /// How numbers are written that JSON does not have.
    invalid: AtomicU8,
}

const REFUSED: u8 = 0;
const WRITTEN: u8 = 1;
const AS_NULL: u8 = 2;

impl Default for Settings {
    fn default() -> Settings {
        let settings =
            Settings { encode_depth: 0.into(), decode_depth: 0.into(), invalid: AtomicU8::new(REFUSED) };
        settings.begin();
        settings
    }
}

impl Settings {
    /// As every run begins.
    pub fn begin(&self) {
        self.encode_depth.store(DEPTH_MAX, Ordering::Relaxed);
        self.decode_depth.store(DEPTH_MAX, Ordering::Relaxed);
        self.invalid.store(REFUSED, Ordering::Relaxed);
    }

    /// How deep tables may nest in a direction, after it was set if a value is given.
    pub fn depth(&self, encodes: bool, depth: Option<usize>) -> usize {
        let setting = if encodes { &self.encode_depth } else { &self.decode_depth };
        if let Some(depth) = depth {
            setting.store(depth.clamp(1, DEPTH_MAX), Ordering::Relaxed);
        }
        setting.load(Ordering::Relaxed)
    }

    /// How invalid numbers are written, after it was set if a word is given: `off`, `on` or `null`.
    pub fn invalid_numbers(&self, word: Option<&str>) -> &'static str {
        if let Some(word) = word {
            let setting = match word {
                "on" => WRITTEN,
                "null" => AS_NULL,
                _ => REFUSED,
            };
            self.invalid.store(setting, Ordering::Relaxed);
        }
        match self.invalid.load(Ordering::Relaxed) {
            WRITTEN => "on",
            AS_NULL => "null",
            _ => "off",
        }
    }
}

/// What goes wrong: words for the script, or the end of the run.
pub enum Problem {
    Words(String),
    /// With the argument at this place, counted from one.
    Argument(usize, String),
    Lua(mlua::Error),
}

impl From<mlua::Error> for Problem {
    fn from(error: mlua::Error) -> Problem {
        Problem::Lua(error)
    }
}

impl From<&str> for Problem {
    fn from(words: &str) -> Problem {
        Problem::Words(words.to_owned())
    }
}

/// Writes a value.
pub fn encode(budget: &Budget, settings: &Settings, value: &Value) -> Result<Vec<u8>, Problem> {
    let mut writer = Writer { budget, settings, bytes: Vec::new() };
    writer.value(value, 0)?;
    Ok(writer.bytes)
}

struct Writer<'a> {
    budget: &'a Budget,
    settings: &'a Settings,
    bytes: Vec<u8>,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Problem> {
        self.budget.spend(1)?;
        match value {
            Value::Nil => self.bytes.extend_from_slice(b"null"),
            value if value.is_null() => self.bytes.extend_from_slice(b"null"),
            Value::Boolean(true) => self.bytes.extend_from_slice(b"true"),
            Value::Boolean(false) => self.bytes.extend_from_slice(b"false"),
            Value::String(text) => self.text(&text.as_bytes())?,
            Value::Table(table) => return self.table(table, depth + 1),
            value => match number(value) {
                Some(number) if number.is_finite() => {
                    self.bytes.extend_from_slice(general(number, DIGITS).as_bytes());
                }
                Some(number) => match self.settings.invalid.load(Ordering::Relaxed) {
                    WRITTEN if number.is_nan() => self.bytes.extend_from_slice(b"nan"),
                    WRITTEN if number > 0.0 => self.bytes.extend_from_slice(b"inf"),
                    WRITTEN => self.bytes.extend_from_slice(b"-inf"),
                    AS_NULL => self.bytes.extend_from_slice(b"null"),
                    _ => return Err("Cannot serialise number: must not be NaN or Inf".into()),
                },
                None => {
                    let words = format!("Cannot serialise {}: type not supported", value.type_name());
                    return Err(Problem::Words(words));
                }
            },
        }
        Ok(())
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<(), Problem> {
        self.budget.spend(STEPS_PER_TABLE)?;
        if depth > self.settings.depth(true, None) {
            return Err(Problem::Words(format!("Cannot serialise, excessive nesting ({depth})")));
        }
        match self.array_length(table)? {
            Some(length) => {
                self.bytes.push(b'[');
                for at in 1..=length {
                    if at > 1 {
                        self.bytes.push(b',');
                    }
                    self.value(&table.raw_get(at)?, depth)?;
                }
                self.bytes.push(b']');
            }
            None => {
                self.bytes.push(b'{');
                let mut is_first = true;
                for pair in table.pairs::<Value, Value>() {
                    let (key, value) = pair?;
                    if !std::mem::take(&mut is_first) {
                        self.bytes.push(b',');
                    }
                    self.key(&key)?;
                    self.bytes.push(b':');
                    self.value(&value, depth)?;
                }
                self.bytes.push(b'}');
            }
        }
        Ok(())
    }

    /// The places of an array; nothing for an object.
    fn array_length(&self, table: &Table) -> Result<Option<usize>, Problem> {
        let (mut longest, mut items) = (0, 0);
        for pair in table.pairs::<Value, Value>() {
            self.budget.spend(1)?;
            let place = number(&pair?.0).filter(|place| place.fract() == 0.0 && *place >= 1.0);
            let Some(place) = place else { return Ok(None) };
            longest = longest.max(place as usize);
            items += 1;
        }
        if items == 0 {
            return Ok(None);
        }
        if longest > items * SPARSE_RATIO && longest > SPARSE_SAFE {
            return Err("Cannot serialise table: excessively sparse array".into());
        }
        Ok(Some(longest))
    }

    fn key(&mut self, key: &Value) -> Result<(), Problem> {
        match key {
            Value::String(text) => self.text(&text.as_bytes()),
            key => match number(key) {
                Some(number) => {
                    self.bytes.push(b'"');
                    self.bytes.extend_from_slice(general(number, DIGITS).as_bytes());
                    self.bytes.push(b'"');
                    Ok(())
                }
                None => {
                    let kind = key.type_name();
                    let words = format!("Cannot serialise {kind}: table key must be a number or string");
                    Err(Problem::Words(words))
                }
            },
        }
    }

    fn text(&mut self, text: &[u8]) -> Result<(), Problem> {
        self.budget.spend_bytes(text.len())?;
        if self.bytes.len() + text.len() > limits::ANSWER_BYTES_MAX {
            return Err(Problem::Lua(self.budget.stop(super::budget::Stop::Memory)));
        }
        self.bytes.push(b'"');
        for &byte in text {
            match byte {
                b'"' | b'\\' | b'/' => self.bytes.extend_from_slice(&[b'\\', byte]),
                8 => self.bytes.extend_from_slice(b"\\b"),
                b'\t' => self.bytes.extend_from_slice(b"\\t"),
                b'\n' => self.bytes.extend_from_slice(b"\\n"),
                12 => self.bytes.extend_from_slice(b"\\f"),
                b'\r' => self.bytes.extend_from_slice(b"\\r"),
                0..32 | 127 => self.bytes.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
                byte => self.bytes.push(byte),
            }
        }
        self.bytes.push(b'"');
        Ok(())
    }
}
