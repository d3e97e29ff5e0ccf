//! The line of a command as `MONITOR` shows it: when, of whom, and its words, escaped.

use bytes::Bytes;
use ensue_types::{KeyspaceId, Now};
use std::fmt::Write;

/// A command that begins. Passwords are not shown.
pub(super) fn line(now: Now, keyspace: KeyspaceId, address: &str, name: &str, args: &[Bytes]) -> String {
    let (second, ms) = (now.wall_ms / 1_000, now.wall_ms % 1_000);
    let mut line = format!("{second}.{ms:03}000 [{} {address}]", keyspace.0);
    let is_secret = secrets(name, args);
    for (place, argument) in args.iter().enumerate() {
        line.push_str(" \"");
        match is_secret(place) {
            true => line.push_str("(redacted)"),
            false => push_escaped(&mut line, argument),
        }
        line.push('"');
    }
    line
}

/// Which arguments are users and passwords.
fn secrets(name: &str, args: &[Bytes]) -> impl Fn(usize) -> bool + use<> {
    let first = match name {
        "auth" => Some(1),
        "hello" => args.iter().position(|word| word.eq_ignore_ascii_case(b"auth")).map(|place| place + 1),
        _ => None,
    };
    move |place| first.is_some_and(|first| (first..first + 2).contains(&place))
}

fn push_escaped(line: &mut String, argument: &Bytes) {
    for &byte in argument {
        match byte {
            b'\\' | b'"' => {
                line.push('\\');
                line.push(char::from(byte));
            }
            b'\n' => line.push_str("\\n"),
            b'\r' => line.push_str("\\r"),
            b'\t' => line.push_str("\\t"),
            0x07 => line.push_str("\\a"),
            0x08 => line.push_str("\\b"),
            b' '..=b'~' => line.push(char::from(byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(line, "\\x{byte:02x}")),
        }
    }
}
