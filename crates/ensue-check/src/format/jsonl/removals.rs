//! What renames and flushes did, now that the whole file is read: reads and writes of the keys that they concern.
//!
//! A rename is not answered with the value that it moved. It is a read of the old key, a write of the new one, and a
//! delete of the old one, in its transaction. Which value that was is known if its transaction has just written it, if
//! the old key never had another, or if somebody read it under the new key and nothing else can have brought it there.
//! A value that nobody read under the new key is a write that nobody read. In all other cases the new key is left out.
//! A deadline goes along with a value: where the old key may become empty by itself, so may the new one.
//!
//! A flush deletes every key that it may have found, each in a transaction of its own behind what its session had done,
//! since no store has to flush all keys at one moment; the session goes on behind all of them. A key that was written
//! only later, in its session or in its place, is not deleted.

use super::elements::row_of;
use crate::history::{
    History, Key, LeftOut, Operation, Outcome, Session, SessionIndex, Transaction, TransactionIndex, Value,
};
use std::collections::{BTreeMap, BTreeSet};

/// Transactions that flushes may become; where they would be more, all keys are left out.
const FLUSHED_MAX: usize = 20_000;

/// Values by their key.
type Values = BTreeMap<Key, BTreeSet<Value>>;

/// A key got another name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rename {
    pub transaction: TransactionIndex,
    /// So many operations of its transaction come before it.
    pub place: usize,
    pub from: Key,
    pub to: Key,
}

/// All keys of a keyspace were deleted, or all of all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flush {
    pub transaction: TransactionIndex,
    pub keyspace: Option<u8>,
}

/// Writes down what they did.
pub(super) fn expand(history: &mut History, renames: &[Rename], flushes: &[Flush]) {
    if history.left_out.iter().any(|known| known.key.is_none()) {
        return;
    }
    if !renames.is_empty() {
        expand_renames(history, renames);
    }
    let mut count = 0;
    for flush in flushes {
        let keys = flushed_keys(history, *flush);
        count += keys.len();
        if count > FLUSHED_MAX {
            let line = history.transaction(flush.transaction).line;
            return history.left_out.push(LeftOut {
                key: None,
                reason: "flushes of too many keys".into(),
                line,
            });
        }
        delete(history, flush.transaction, &keys);
    }
}

fn expand_renames(history: &mut History, renames: &[Rename]) {
    let held = held(history, renames);
    let mut moved: Vec<Option<Value>> = vec![None; renames.len()];
    let written = written(history);
    let mut read = read(history);
    while let Some((at, value)) = next_known(history, renames, &held, &written, &read, &moved) {
        moved[at] = Some(value);
        read.insert((renames[at].from, value));
    }
    let doubts = doubts(history, renames, &held, &read, &moved);
    let may_end = may_end(history, renames);
    // From behind, so that the places of those before stay what they are.
    let mut order: Vec<usize> = (0..renames.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse((renames[at].transaction, renames[at].place, at)));
    for at in order {
        let Rename { transaction, place, from, to } = renames[at];
        let value = moved[at].unwrap_or_else(|| {
            history.values.push(format!("(renamed from {})", history.key_name(from)));
            Value((history.values.len() - 1) as u32)
        });
        let done = &mut history.transactions[transaction.0 as usize];
        let is_read = done.outcome == Outcome::Committed && moved[at].is_some();
        let read = is_read.then_some(Operation::Read { key: from, value });
        let writes =
            [Operation::Write { key: to, value }, Operation::Write { key: from, value: Value::ABSENT }];
        done.operations.splice(place..place, read.into_iter().chain(writes));
        if may_end.contains(&from) {
            end_some_time(history, transaction, to);
        }
    }
    for (key, (reason, line)) in doubts {
        let key = Some(history.key_name(key).to_owned());
        if !history.left_out.iter().any(|known| known.key == key) {
            history.left_out.push(LeftOut { key, reason, line });
        }
    }
}

/// All values that a key may have held: what was written there, and what may have been renamed to it.
fn held(history: &History, renames: &[Rename]) -> Values {
    let mut held = written(history);
    loop {
        let mut grew = false;
        for rename in renames {
            let more = held.get(&rename.from).cloned().unwrap_or_default();
            let known = held.entry(rename.to).or_default();
            let before = known.len();
            known.extend(more);
            grew |= known.len() > before;
        }
        if !grew {
            return held;
        }
    }
}

/// The values that were written to each key, other than nothing.
fn written(history: &History) -> Values {
    let mut written: Values = BTreeMap::new();
    for done in history.transactions.iter().filter(|done| done.outcome != Outcome::Failed) {
        for operation in &done.operations {
            if let Operation::Write { key, value } = *operation {
                written.entry(key).or_default().extend((value != Value::ABSENT).then_some(value));
            }
        }
    }
    written
}

/// What somebody read at each key.
fn read(history: &History) -> BTreeSet<(Key, Value)> {
    let committed = history.transactions.iter().filter(|done| done.outcome == Outcome::Committed);
    let reads = committed.flat_map(|done| &done.operations).filter_map(|operation| match *operation {
        Operation::Read { key, value } => Some((key, value)),
        _ => None,
    });
    reads.collect()
}

/// A rename of which it is certain what it moved, and was not yet known.
fn next_known(
    history: &History,
    renames: &[Rename],
    held: &Values,
    written: &Values,
    read: &BTreeSet<(Key, Value)>,
    moved: &[Option<Value>],
) -> Option<(usize, Value)> {
    let open = || (0..renames.len()).filter(|&at| moved[at].is_none());
    open().find_map(|at| {
        let Rename { transaction, place, from, to } = renames[at];
        let before = &history.transaction(transaction).operations[..place];
        let own = before.iter().rev().find_map(|operation| match *operation {
            Operation::Write { key, value } if key == from => Some(value),
            _ => None,
        });
        let is_first = !renames[..at]
            .iter()
            .any(|other| other.transaction == transaction && (other.from == from || other.to == from));
        if let Some(value) = own.filter(|value| is_first && *value != Value::ABSENT) {
            return Some((at, value));
        }
        let values = held.get(&from)?;
        if values.len() == 1 {
            return values.first().map(|value| (at, *value));
        }
        let brought = |value: &Value| {
            let by_write = written.get(&to).is_some_and(|written| written.contains(value));
            let by_rename = (0..renames.len()).any(|other| {
                let may_have = match moved[other] {
                    Some(moved) => moved == *value,
                    None => held.get(&renames[other].from).is_some_and(|values| values.contains(value)),
                };
                other != at && renames[other].to == to && may_have
            });
            by_write || by_rename
        };
        let mut found = values.iter().filter(|value| read.contains(&(to, **value)));
        match (found.next(), found.next()) {
            (Some(value), None) if !brought(value) => Some((at, *value)),
            _ => None,
        }
    })
}

/// The keys that cannot be followed, each with the reason and the line.
fn doubts(
    history: &History,
    renames: &[Rename],
    held: &Values,
    read: &BTreeSet<(Key, Value)>,
    moved: &[Option<Value>],
) -> BTreeMap<Key, (String, u32)> {
    let rows: BTreeSet<&str> = history.keys.iter().filter_map(|key| row_of(key)).collect();
    let counters = counters(history);
    let left_out =
        |key: Key| history.left_out.iter().any(|known| known.key.as_deref() == Some(history.key_name(key)));
    let mut doubts: BTreeMap<Key, (String, u32)> = BTreeMap::new();
    for (rename, value) in renames.iter().zip(moved) {
        let line = history.transaction(rename.transaction).line;
        for key in [rename.from, rename.to] {
            let what = match (counters.contains(&key), rows.contains(history.key_name(key))) {
                (true, _) => "a counter was renamed, or something to it",
                (_, true) => "a row of elements was renamed, or something to it",
                _ => continue,
            };
            doubts.entry(key).or_insert((what.into(), line));
        }
        let values = held.get(&rename.from).filter(|values| !values.is_empty());
        let why = match (value, values) {
            (Some(_), _) => continue,
            // That is the reason then.
            (None, None) if doubts.contains_key(&rename.from) || left_out(rename.from) => continue,
            (None, None) => "what was renamed to it was not recorded",
            (None, Some(values)) if values.iter().any(|value| read.contains(&(rename.to, *value))) => {
                "which value was renamed to it cannot be told"
            }
            _ => continue,
        };
        doubts.entry(rename.to).or_insert((why.into(), line));
    }
    loop {
        let next = renames.iter().find(|rename| {
            !doubts.contains_key(&rename.to) && (doubts.contains_key(&rename.from) || left_out(rename.from))
        });
        let Some(rename) = next else { return doubts };
        let reason = format!("`{}` was renamed to it, and is left out", history.key_name(rename.from));
        doubts.insert(rename.to, (reason, history.transaction(rename.transaction).line));
    }
}

fn counters(history: &History) -> BTreeSet<Key> {
    let operations = history.transactions.iter().flat_map(|done| &done.operations);
    let counted = operations.filter_map(|operation| match *operation {
        Operation::Add { key, .. } | Operation::Count { key, .. } => Some(key),
        _ => None,
    });
    counted.collect()
}

/// Keys that may become empty at a time that nobody recorded, by a deadline of their own or of where they came from.
fn may_end(history: &History, renames: &[Rename]) -> BTreeSet<Key> {
    let unknown = history.transactions.iter().filter(|done| done.outcome == Outcome::Unknown);
    let deletes = unknown.flat_map(|done| &done.operations).filter_map(|operation| match *operation {
        Operation::Write { key, value: Value::ABSENT } => Some(key),
        _ => None,
    });
    let mut may_end: BTreeSet<Key> = deletes.collect();
    while let Some(rename) =
        renames.iter().find(|rename| may_end.contains(&rename.from) && !may_end.contains(&rename.to))
    {
        may_end.insert(rename.to);
    }
    may_end
}

/// Some time after this transaction a key becomes empty, or never.
fn end_some_time(history: &mut History, after: TransactionIndex, key: Key) {
    let known = history.transaction(after).clone();
    let name = format!("the deadline of {}, line {}", history.key_name(key), known.line);
    alone(history, name, |session| Transaction {
        line: known.line,
        datacenter: known.datacenter,
        start_us: known.start_us,
        end_us: u64::MAX,
        outcome: Outcome::Unknown,
        merges: vec![after],
        operations: vec![Operation::Write { key, value: Value::ABSENT }],
        ..Transaction::committed(session)
    });
}

/// Adds a transaction in a session of its own.
fn alone(
    history: &mut History,
    name: String,
    make: impl FnOnce(SessionIndex) -> Transaction,
) -> TransactionIndex {
    let session = SessionIndex(history.sessions.len() as u32);
    let index = TransactionIndex(history.transactions.len() as u32);
    history.sessions.push(Session { name, transactions: vec![index] });
    history.transactions.push(make(session));
    index
}

/// The keys of which a flush may have found something. Counters and queues are left out: nothing says which additions
/// and elements it ended.
fn flushed_keys(history: &mut History, flush: Flush) -> Vec<Key> {
    let counters = counters(history);
    let known = history.transaction(flush.transaction);
    let is_later = |done: &Transaction, at: usize| {
        let is_behind = done.session == known.session && at > flush.transaction.0 as usize;
        let is_after = known.end_us > 0 && done.start_us >= known.end_us && done.start_us > 0;
        // Clocks of two places differ.
        is_behind || is_after && done.datacenter.is_some() && done.datacenter == known.datacenter
    };
    let mut keys = BTreeSet::new();
    let mut ended = BTreeMap::new();
    for (at, done) in history.transactions.iter().enumerate() {
        if done.outcome == Outcome::Failed || is_later(done, at) {
            continue;
        }
        for operation in &done.operations {
            match *operation {
                Operation::Write { key, value } if value != Value::ABSENT => drop(keys.insert(key)),
                Operation::Add { key, .. } => drop(ended.insert(key, "a counter was flushed")),
                Operation::Push { key, .. } => drop(ended.insert(key, "a queue was flushed")),
                _ => {}
            }
        }
    }
    let is_of_it =
        |key: &Key| flush.keyspace.is_none_or(|keyspace| keyspace == keyspace_of(history.key_name(*key)));
    let found: Vec<Key> = keys.into_iter().filter(|key| is_of_it(key) && !counters.contains(key)).collect();
    let line = known.line;
    let ended: Vec<(String, &str)> = ended
        .into_iter()
        .filter(|(key, _)| is_of_it(key))
        .map(|(key, reason)| (history.key_name(key).to_owned(), reason))
        .collect();
    for (name, reason) in ended {
        let key = Some(name);
        if !history.left_out.iter().any(|known| known.key == key) {
            history.left_out.push(LeftOut { key, reason: reason.into(), line });
        }
    }
    found
}

/// A key of keyspace 3 is `[3]key`, of keyspace 0 `key`.
fn keyspace_of(key: &str) -> u8 {
    let number = key.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    number.and_then(|(number, _)| number.parse().ok()).unwrap_or(0)
}

/// Deletes each of these keys behind what the session of a flush had done; what it did later is behind all of them.
fn delete(history: &mut History, flush: TransactionIndex, keys: &[Key]) {
    let known = history.transaction(flush).clone();
    let session = history.sessions[known.session.0 as usize].clone();
    let at = session.transactions.iter().position(|&one| one == flush).expect("it is of its session");
    let before = at.checked_sub(1).map(|at| session.transactions[at]);
    let merges: Vec<TransactionIndex> = known.merges.iter().copied().chain(before).collect();
    let mut parts = Vec::new();
    for &key in keys {
        let name = format!("{}, flush of {}, line {}", session.name, history.key_name(key), known.line);
        let part = alone(history, name, |session| Transaction {
            line: known.line,
            datacenter: known.datacenter,
            start_us: known.start_us,
            end_us: known.end_us,
            outcome: known.outcome,
            merges: merges.clone(),
            operations: vec![Operation::Write { key, value: Value::ABSENT }],
            ..Transaction::committed(session)
        });
        parts.push(part);
    }
    if let (Some(&next), Outcome::Committed) = (session.transactions.get(at + 1), known.outcome) {
        history.transactions[next.0 as usize].merges.extend(parts);
    }
}

#[cfg(test)]
mod tests;
