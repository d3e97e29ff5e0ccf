//! Lengths, strings and values as they are written.

use crate::layout;
use crate::value::{Dated, Value};
use bytes::Bytes;
use ensue_resp::number;

/// Longer texts are written as such.
const INTEGER_DIGITS: usize = 11;

pub(crate) fn write_length(out: &mut Vec<u8>, length: u64) {
    match length {
        0..=0x3f => out.push(length as u8),
        0x40..=0x3fff => out.extend_from_slice(&(length as u16 | 0x4000).to_be_bytes()),
        _ => match u32::try_from(length) {
            Ok(length) => {
                out.push(0x80);
                out.extend_from_slice(&length.to_be_bytes());
            }
            Err(_) => {
                out.push(0x81);
                out.extend_from_slice(&length.to_be_bytes());
            }
        },
    }
}

/// A string; a short integer stands as a number, as Redis writes it.
pub(crate) fn write_text(out: &mut Vec<u8>, text: &[u8]) {
    let short = if text.len() <= INTEGER_DIGITS { number::parse_i64(text) } else { None };
    match short.and_then(|number| i32::try_from(number).ok()) {
        Some(number) => match (i8::try_from(number), i16::try_from(number)) {
            (Ok(number), _) => out.extend_from_slice(&[0xc0, number as u8]),
            (_, Ok(number)) => {
                out.push(0xc1);
                out.extend_from_slice(&number.to_le_bytes());
            }
            _ => {
                out.push(0xc2);
                out.extend_from_slice(&number.to_le_bytes());
            }
        },
        None => {
            write_length(out, text.len() as u64);
            out.extend_from_slice(text);
        }
    }
}

pub(crate) fn layout_of(value: &Value) -> u8 {
    match value {
        Value::Text(_) => layout::TEXT,
        Value::List(_) => layout::LIST,
        Value::Set(_) => layout::SET,
        Value::Hash(_) => layout::HASH,
        Value::DatedHash(_) => layout::HASH_EXPIRING,
        Value::Sorted(_) => layout::SORTED,
    }
}

/// A value, without its layout before it.
pub(crate) fn write_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Text(text) => write_text(out, text),
        Value::List(values) | Value::Set(values) => write_all(out, values),
        Value::Hash(pairs) => {
            write_length(out, pairs.len() as u64);
            for (name, value) in pairs {
                write_text(out, name);
                write_text(out, value);
            }
        }
        Value::DatedHash(fields) => write_dated(out, fields),
        Value::Sorted(members) => {
            write_length(out, members.len() as u64);
            // Redis writes the highest first, so that it can insert each at the front.
            for (score, name) in members.iter().rev() {
                write_text(out, name);
                out.extend_from_slice(&score.value().to_le_bytes());
            }
        }
    }
}

/// A hash with deadlines of fields, each told from the earliest one on, and one more; zero is none.
fn write_dated(out: &mut Vec<u8>, fields: &[Dated]) {
    let earliest = fields.iter().filter_map(|(.., deadline)| *deadline).min().unwrap_or_default();
    out.extend_from_slice(&earliest.to_le_bytes());
    write_length(out, fields.len() as u64);
    for (name, value, deadline) in fields {
        write_length(out, deadline.map_or(0, |deadline| deadline.saturating_sub(earliest).saturating_add(1)));
        write_text(out, name);
        write_text(out, value);
    }
}

fn write_all(out: &mut Vec<u8>, values: &[Bytes]) {
    write_length(out, values.len() as u64);
    values.iter().for_each(|value| write_text(out, value));
}
