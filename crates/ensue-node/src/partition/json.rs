//! Bytes as JSON, for lists that operators read.

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
