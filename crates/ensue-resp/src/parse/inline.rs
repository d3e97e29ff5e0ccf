//! One line of words, as people type it: `SET greeting "hello \x41\n"`.
//!
//! A line without its `\n` arrives, its words leave. A word without quotes is a slice of the line; one with quotes is
//! copied, because escapes make it shorter. This does not know what a command is, nor how long a line may be.

use crate::ParseError;
use bytes::Bytes;
use ensue_types::Args;

/// Splits a line into words. Blanks part them; single quotes keep everything, double quotes know escapes.
pub(super) fn split(line: &Bytes) -> Result<Args, ParseError> {
    let mut args = Args::new();
    let mut at = 0;
    loop {
        while line.get(at).is_some_and(|&byte| is_blank(byte)) {
            at += 1;
        }
        if at == line.len() {
            return Ok(args);
        }
        let (word, end) = read_word(line, at)?;
        args.push(word);
        at = end;
    }
}

fn read_word(line: &Bytes, start: usize) -> Result<(Bytes, usize), ParseError> {
    let rest = &line[start..];
    let plain = rest.iter().position(|&byte| ends_word(byte) || is_quote(byte)).unwrap_or(rest.len());
    let at = start + plain;
    let Some(&quote) = line.get(at).filter(|&&byte| is_quote(byte)) else {
        return Ok((line.slice(start..at), at));
    };
    let mut word = line[start..at].to_vec();
    let end = match quote {
        b'"' => read_double_quoted(line, at + 1, &mut word)?,
        _ => read_single_quoted(line, at + 1, &mut word)?,
    };
    match line.get(end) {
        Some(&byte) if !is_blank(byte) => Err(ParseError::UnbalancedQuotes),
        _ => Ok((Bytes::from(word), end)),
    }
}

/// Reads behind an opening `"` and returns the place behind the closing one.
fn read_double_quoted(line: &[u8], start: usize, word: &mut Vec<u8>) -> Result<usize, ParseError> {
    let mut at = start;
    loop {
        match &line[at..] {
            [] => return Err(ParseError::UnbalancedQuotes),
            [b'"', ..] => return Ok(at + 1),
            [b'\\', b'x', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                word.push(hex_value(*high) << 4 | hex_value(*low));
                at += 4;
            }
            [b'\\', escaped, ..] => {
                word.push(unescape(*escaped));
                at += 2;
            }
            [byte, ..] => {
                word.push(*byte);
                at += 1;
            }
        }
    }
}

/// Reads behind an opening `'` and returns the place behind the closing one. Only `\'` is an escape.
fn read_single_quoted(line: &[u8], start: usize, word: &mut Vec<u8>) -> Result<usize, ParseError> {
    let mut at = start;
    loop {
        match &line[at..] {
            [] => return Err(ParseError::UnbalancedQuotes),
            [b'\'', ..] => return Ok(at + 1),
            [b'\\', b'\'', ..] => {
                word.push(b'\'');
                at += 2;
            }
            [byte, ..] => {
                word.push(*byte);
                at += 1;
            }
        }
    }
}

fn unescape(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'')
}

/// What may stand between words.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\x0b' | b'\x0c' | b'\r')
}

/// What ends a word outside quotes; vertical tab and form feed do not, as in Redis.
fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}
