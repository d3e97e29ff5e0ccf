//! Keys, columns and values as JSON, for lists that operators read.

use ensue_types::{Column, FieldDeadline};
use std::fmt::Write;

/// A JSON string whose characters are the bytes: `\u00ff` is the byte 255.
pub(super) fn text(bytes: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            0x20..=0x7e => quoted.push(char::from(byte)),
            _ => drop(write!(quoted, "\\u{byte:04x}")),
        }
    }
    quoted + "\""
}

/// What follows a key to name a column of it.
pub(super) fn column(column: &Column) -> String {
    match column {
        Column::Text => String::new(),
        Column::Row => ",\"row\":true".to_owned(),
        Column::Deadline => ",\"deadline\":true".to_owned(),
        Column::FieldDeadline(field) => format!(",\"deadline_of_field\":{}", text(field)),
        Column::Field(field) => format!(",\"field\":{}", text(field)),
        Column::Member(member) | Column::Scored(member) => format!(",\"member\":{}", text(member)),
        Column::Element(name) => format!(",\"element\":{}", text(name)),
        Column::Stream(name) => format!(",\"part\":{}", text(name)),
        Column::Escrow(name) => format!(",\"counter\":{}", text(name)),
    }
}

/// A value of a column: of a deadline, its milliseconds since 1970.
pub(super) fn value(of: &Column, value: &[u8]) -> String {
    match of {
        Column::Deadline => {
            format!("\"{}\"", value.try_into().map(u64::from_le_bytes).unwrap_or_default())
        }
        Column::FieldDeadline(_) => {
            format!("\"{}\"", FieldDeadline::of_bytes(value).map(|deadline| deadline.ms).unwrap_or_default())
        }
        _ => text(value),
    }
}
