//! Deadlines that count from when a command is executed, as points in time.
//!
//! A source before Redis 7 sends `EXPIRE` and its kind to its replicas as clients sent them. Here commands are applied
//! when the target takes them, which may be a day later: they count from when they were received.

use super::target::{Words, words};
use bytes::Bytes;
use ensue_resp::number::parse_i64;

/// The command with its deadline as a point in time, if it has one that is not.
pub(crate) fn absolute(command: Words, received_ms: u64) -> Words {
    rewritten(&command, received_ms).unwrap_or(command)
}

fn rewritten(command: &Words, received_ms: u64) -> Option<Words> {
    let at = |place: usize, unit_ms: i64| {
        let span = parse_i64(command.get(place)?)?.checked_mul(unit_ms)?;
        Some(i64::try_from(received_ms).ok()?.checked_add(span)?.to_string())
    };
    let (key, value) = (command.get(1)?.clone(), command.get(3).cloned());
    match &command[0].to_ascii_uppercase()[..] {
        b"EXPIRE" => Some(with_rest(words!["PEXPIREAT", key, at(2, 1_000)?], command, 3)),
        b"PEXPIRE" => Some(with_rest(words!["PEXPIREAT", key, at(2, 1)?], command, 3)),
        b"SETEX" => Some(words!["SET", key, value?, "PXAT", at(2, 1_000)?]),
        b"PSETEX" => Some(words!["SET", key, value?, "PXAT", at(2, 1)?]),
        b"SET" => with_option(command, 3, at),
        b"GETEX" => with_option(command, 2, at),
        b"RESTORE" if &command.get(2)?[..] != b"0" && !has(command, b"ABSTTL") => {
            let mut changed = words!["RESTORE", key, at(2, 1)?];
            changed = with_rest(changed, command, 3);
            changed.push(Bytes::from_static(b"ABSTTL"));
            Some(changed)
        }
        _ => None,
    }
}

fn with_rest(mut changed: Words, command: &Words, from: usize) -> Words {
    changed.extend_from_slice(&command[from..]);
    changed
}

fn has(command: &Words, option: &[u8]) -> bool {
    command.iter().skip(4).any(|word| word.eq_ignore_ascii_case(option))
}

/// With `PXAT` in the place of `EX` or `PX` among the options, which begin there.
fn with_option(command: &Words, first: usize, at: impl Fn(usize, i64) -> Option<String>) -> Option<Words> {
    let is = |word: &Bytes, name: &[u8]| word.eq_ignore_ascii_case(name);
    let place =
        (first..command.len()).find(|&place| is(&command[place], b"EX") || is(&command[place], b"PX"))?;
    let unit_ms = if is(&command[place], b"EX") { 1_000 } else { 1 };
    let mut changed = command.clone();
    changed[place + 1..].first_mut()?.clone_from(&Bytes::from(at(place + 1, unit_ms)?));
    changed[place] = Bytes::from_static(b"PXAT");
    Some(changed)
}

#[cfg(test)]
mod tests;
