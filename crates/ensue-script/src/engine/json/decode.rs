//! JSON as it is read: what stands in the text becomes tables, and `null` becomes `cjson.null`.

use super::{Problem, Settings};
use crate::engine::budget::Budget;
use mlua::{Lua, Value};

/// Reads one value, after which nothing stands.
pub fn decode(lua: &Lua, budget: &Budget, settings: &Settings, text: &[u8]) -> Result<Value, Problem> {
    if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
        return Err("JSON parser does not support UTF-16 or UTF-32".into());
    }
    let mut reader = Reader { lua, budget, settings, text, at: 0 };
    let value = reader.value(0)?;
    reader.skip_space();
    if reader.at < text.len() {
        return Err(reader.expected("the end"));
    }
    Ok(value)
}

struct Reader<'a> {
    lua: &'a Lua,
    budget: &'a Budget,
    settings: &'a Settings,
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Result<Value, Problem> {
        self.budget.spend(1)?;
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.array(depth + 1),
            Some(b'"') => Ok(Value::String(self.lua.create_string(self.string()?)?)),
            Some(b'-' | b'+' | b'0'..=b'9' | b'.') => self.number(),
            _ if self.word("true") => Ok(Value::Boolean(true)),
            _ if self.word("false") => Ok(Value::Boolean(false)),
            _ if self.word("null") => Ok(Value::NULL),
            _ if self.is_unusual_number() => self.number(),
            _ => Err(self.expected("value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, Problem> {
        self.check_depth(depth)?;
        let table = self.lua.create_table()?;
        self.at += 1;
        self.skip_space();
        if self.accept(b'}') {
            return Ok(Value::Table(table));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.expected("object key string"));
            }
            let key = self.string()?;
            self.skip_space();
            if !self.accept(b':') {
                return Err(self.expected("colon"));
            }
            let value = self.value(depth)?;
            table.raw_set(self.lua.create_string(key)?, value)?;
            self.skip_space();
            if self.accept(b'}') {
                return Ok(Value::Table(table));
            }
            if !self.accept(b',') {
                return Err(self.expected("comma or object end"));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, Problem> {
        self.check_depth(depth)?;
        let table = self.lua.create_table()?;
        self.at += 1;
        self.skip_space();
        if self.accept(b']') {
            return Ok(Value::Table(table));
        }
        for place in 1.. {
            let value = self.value(depth)?;
            table.raw_set(place, value)?;
            self.skip_space();
            if self.accept(b']') {
                break;
            }
            if !self.accept(b',') {
                return Err(self.expected("comma or array end"));
            }
        }
        Ok(Value::Table(table))
    }

    fn check_depth(&self, depth: usize) -> Result<(), Problem> {
        if depth > self.settings.depth(false, None) {
            let at = self.at + 1;
            let words = format!("Found too many nested data structures ({depth}) at character {at}");
            return Err(Problem::Words(words));
        }
        Ok(())
    }

    fn string(&mut self) -> Result<Vec<u8>, Problem> {
        self.at += 1;
        let mut bytes = Vec::new();
        let begin = self.at;
        loop {
            let Some(byte) = self.peek() else { return Err(self.invalid("unexpected end of string")) };
            self.at += 1;
            match byte {
                b'"' => break,
                b'\\' => {
                    let begin = self.at - 1;
                    let escaped = self.escape(&mut bytes);
                    if let Err(what) = escaped {
                        self.at = begin;
                        return Err(self.invalid(what));
                    }
                }
                byte => bytes.push(byte),
            }
        }
        self.budget.spend_bytes(self.at - begin)?;
        Ok(bytes)
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), &'static str> {
        let byte = self.peek().ok_or("unexpected end of string")?;
        self.at += 1;
        bytes.push(match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return self.unicode(bytes),
            _ => return Err("invalid escape code"),
        });
        Ok(())
    }

    /// Four hexadecimal digits, of which two times may make one character.
    fn unicode(&mut self, bytes: &mut Vec<u8>) -> Result<(), &'static str> {
        const INVALID: &str = "invalid unicode escape code";
        let first = self.digits().ok_or(INVALID)?;
        let code = match first {
            0xD800..0xDC00 => {
                let follows = self.text[self.at..].starts_with(b"\\u");
                self.at += if follows { 2 } else { 0 };
                let second = if follows { self.digits() } else { None };
                match second {
                    Some(second @ 0xDC00..0xE000) => 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00),
                    _ => return Err(INVALID),
                }
            }
            0xDC00..0xE000 => return Err(INVALID),
            code => code,
        };
        let character = char::from_u32(code).ok_or(INVALID)?;
        bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn digits(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        let value =
            digits.iter().try_fold(0, |value, &digit| Some(value << 4 | char::from(digit).to_digit(16)?))?;
        self.at += 4;
        Some(value)
    }

    /// A number as C reads it: hexadecimal ones, infinities and what is no number among them.
    fn number(&mut self) -> Result<Value, Problem> {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        let length = self.text[self.at..].iter().position(|byte| !is_part(byte));
        let end = self.at + length.unwrap_or(self.text.len() - self.at);
        let word = std::str::from_utf8(&self.text[self.at..end]).unwrap_or_default().to_ascii_lowercase();
        let (sign, digits) = match word.strip_prefix('-') {
            Some(digits) => (-1.0, digits),
            None => (1.0, word.strip_prefix('+').unwrap_or(&word)),
        };
        let value = match digits.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok().map(|value| value as f64),
            None => digits.parse().ok().filter(|_| !digits.starts_with(['+', '-'])),
        };
        let Some(value): Option<f64> = value else { return Err(self.invalid("invalid number")) };
        self.at = end;
        Ok(Value::Number(sign * value))
    }

    /// Infinity, or what is no number.
    fn is_unusual_number(&self) -> bool {
        let word = self.text.get(self.at..self.at + 3);
        word.is_some_and(|word| word.eq_ignore_ascii_case(b"inf") || word.eq_ignore_ascii_case(b"nan"))
    }

    fn word(&mut self, word: &str) -> bool {
        let stands = self.text[self.at..].starts_with(word.as_bytes());
        self.at += if stands { word.len() } else { 0 };
        stands
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn accept(&mut self, byte: u8) -> bool {
        let stands = self.peek() == Some(byte);
        self.at += usize::from(stands);
        stands
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn invalid(&self, what: &str) -> Problem {
        Problem::Words(format!("Expected value but found {what} at character {}", self.at + 1))
    }

    fn expected(&self, what: &str) -> Problem {
        let found = match self.peek() {
            None => "T_END",
            Some(b'{') => "T_OBJ_BEGIN",
            Some(b'}') => "T_OBJ_END",
            Some(b'[') => "T_ARR_BEGIN",
            Some(b']') => "T_ARR_END",
            Some(b'"') => "T_STRING",
            Some(b':') => "T_COLON",
            Some(b',') => "T_COMMA",
            Some(b'0'..=b'9' | b'-') => "T_NUMBER",
            Some(_) => "invalid token",
        };
        Problem::Words(format!("Expected {what} but found {found} at character {}", self.at + 1))
    }
}
