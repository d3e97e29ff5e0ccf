//! What is executed once more where a server took commands before earlier ones that it had refused for a while.
//!
//! A window of commands arrives, and for each the place in which the server took it. For a key whose commands were
//! taken out of their order: from the last command on that sets the key whole, its commands are executed once more,
//! and the state is what their order makes, whatever was there. Without such a command they are executed once more
//! from the first one on if each sets parts of the value to what it says, so that the last one decides for each part.
//! Everything else, a pop or an increment that was taken too early, or a command that has several keys, cannot be
//! mended here: the key is returned, and the report names it.

use super::target::{Words, words};
use bytes::Bytes;
use ensue_resp::command::{self, Route};
use std::collections::{BTreeMap, BTreeSet};

/// How the order of a window is mended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Repair {
    /// What is executed once more, one after the other: the index in the window, its keyspace, and the words.
    pub(crate) again: Vec<(usize, u8, Words)>,
    /// Commands whose answers say nothing, since a later one sets their key whole.
    pub(crate) replaced: BTreeSet<usize>,
    /// Keys that differ from the source.
    pub(crate) disordered: Vec<Bytes>,
}

/// What a command does to one of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// What was there before does not matter.
    SetsWhole,
    /// Parts are set to what it says: a second time it does nothing.
    SetsParts,
    /// It goes by what is there.
    Changes,
    /// It has other keys, too, or it is not known what it does.
    Mixes,
}

pub(crate) fn repair(window: &[(u8, Words)], places: &[usize]) -> Repair {
    let mut touches: BTreeMap<(u8, Bytes), Vec<(usize, Effect)>> = BTreeMap::new();
    for (index, (keyspace, command)) in window.iter().enumerate() {
        let effect = effect(command);
        let keys: BTreeSet<&Bytes> = keys(command).into_iter().collect();
        let effect = if keys.len() > 1 && effect != Effect::SetsWhole { Effect::Mixes } else { effect };
        for key in keys {
            touches.entry((*keyspace, key.clone())).or_default().push((index, effect));
        }
    }
    let mut repair = Repair::default();
    for ((keyspace, key), touches) in touches {
        if touches.windows(2).all(|pair| places[pair[0].0] < places[pair[1].0]) {
            continue;
        }
        let whole = touches.iter().rposition(|(_, effect)| *effect == Effect::SetsWhole);
        let has = |unwanted| touches.iter().any(|(_, effect)| *effect == unwanted);
        let begin = match whole {
            _ if has(Effect::Mixes) => None,
            None if has(Effect::Changes) => None,
            begin => Some(begin.unwrap_or(0)),
        };
        let Some(begin) = begin else {
            repair.disordered.push(key);
            continue;
        };
        repair.replaced.extend(touches[..begin].iter().map(|(index, _)| *index));
        for (index, _) in &touches[begin..] {
            let command = &window[*index].1;
            let of_key = if is_removal(command) { words!["DEL", key.clone()] } else { command.clone() };
            repair.again.push((*index, keyspace, of_key));
        }
    }
    repair.again.sort_by_key(|(index, _, _)| *index);
    repair
}

/// The keys of a command; of one that is not known, everything that may be a key.
fn keys(command: &Words) -> Vec<&Bytes> {
    match command::lookup(&command[0]) {
        Some(spec) => command::keys(spec, command).collect(),
        None => command[1..].iter().collect(),
    }
}

fn is_removal(command: &Words) -> bool {
    [&b"DEL"[..], b"UNLINK"].iter().any(|name| command[0].eq_ignore_ascii_case(name))
}

/// What a command does to its key. One that takes elements away ends the key with its deadline when it takes the last
/// one, so it goes by what is there.
fn effect(command: &Words) -> Effect {
    if is_removal(command) {
        return Effect::SetsWhole;
    }
    match &command[0].to_ascii_uppercase()[..] {
        b"SET" => effect_of_set(command.get(3..).unwrap_or_default()),
        b"SETEX" | b"PSETEX" => Effect::SetsWhole,
        b"HSET" | b"HMSET" | b"SADD" | b"PERSIST" | b"SETBIT" | b"SETRANGE" | b"PFADD" => Effect::SetsParts,
        b"PEXPIREAT" | b"EXPIREAT" if command.len() == 3 => Effect::SetsParts,
        // Behind the key a score, and not a condition.
        b"ZADD" | b"GEOADD" if is_number(command.get(2)) => Effect::SetsParts,
        name => match command::lookup(name) {
            Some(spec) if spec.route == Route::Key && spec.keys_behind.is_empty() => Effect::Changes,
            _ => Effect::Mixes,
        },
    }
}

fn effect_of_set(options: &[Bytes]) -> Effect {
    let is =
        |word: &Bytes, names: &[&str]| names.iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes()));
    match options {
        [] => Effect::SetsWhole,
        [word] if is(word, &["KEEPTTL"]) => Effect::SetsParts,
        [word, _] if is(word, &["EX", "PX", "EXAT", "PXAT"]) => Effect::SetsWhole,
        _ => Effect::Changes,
    }
}

fn is_number(word: Option<&Bytes>) -> bool {
    word.and_then(|word| std::str::from_utf8(word).ok()).is_some_and(|text| text.parse::<f64>().is_ok())
}

#[cfg(test)]
mod tests;
