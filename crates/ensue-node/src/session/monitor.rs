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

/// Which arguments are users and passwords, or may be: of a `HELLO` everything behind the first word `auth`, which may
/// be the name of the client.
fn secrets(name: &str, args: &[Bytes]) -> impl Fn(usize) -> bool + use<> {
    let shown = match name {
        "auth" => 1,
        "hello" => {
            let auth = args.iter().position(|word| word.eq_ignore_ascii_case(b"auth"));
            auth.map_or(args.len(), |place| place + 1)
        }
        _ => args.len(),
    };
    move |place| place >= shown
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_hidden_wherever_the_word_auth_stands() {
        for (words, expected) in [
            ("HELLO 3 SETNAME n AUTH app pw", "HELLO 3 SETNAME n AUTH (redacted) (redacted)"),
            ("HELLO 3 SETNAME auth AUTH app pw", "HELLO 3 SETNAME auth (redacted) (redacted) (redacted)"),
            ("HELLO 3 SETNAME n", "HELLO 3 SETNAME n"),
        ] {
            let args: Vec<Bytes> =
                words.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
            let shown = line(Now::default(), KeyspaceId(0), "a", "hello", &args).replace('"', "");
            assert!(shown.ends_with(&format!("] {expected}")), "{shown}");
        }
    }
}
