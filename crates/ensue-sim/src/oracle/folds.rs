//! Keys whose conflicting values are folded: what a read shows is made of all values that nothing replaced, and of no
//! other.
//!
//! Which write replaced which is what datacenters know, not clients: a write replaces whatever its datacenter shows
//! when it is taken. From what clients saw there are two bounds. A value in the reader's past must count if no write
//! can have replaced it: none of its datacenter was answered after it was sent, and none of another one after that and
//! the shortest way between them. And a value must not count if a write in the reader's past had it in its own past. In
//! the end the values that stand beside each other can be asked for: their fold, computed here, must be what is read.

use super::past::{Pasts, covers, join};
use super::recency::floor;
use super::writes::Writes;
use super::{Final, Violation, finals, property};
use crate::oracle::folded::{DELETED, KEYS, Maker};
use crate::oracle::history::{Folded, History, Location, Operation, OperationIndex, Outcome};
use std::collections::BTreeSet;

/// The writes of one key.
struct Key {
    /// Each with its place and its text.
    puts: Vec<(OperationIndex, Location, String)>,
    deletes: Vec<OperationIndex>,
}

/// A read of one key, and what its reader knows.
struct Read<'a> {
    folded: &'a Folded,
    past: Vec<u32>,
    answered_us: u64,
    words: String,
}

pub(super) fn check(
    history: &History,
    pasts: &Pasts,
    writes: &Writes,
    at_end: &Writes,
    finals: &[Final],
) -> Result<(), Violation> {
    let keys = KEYS.map(|key| (key, Key::of(history, key)));
    let check_read = |writes: &Writes, read: &Read<'_>| {
        let known = keys.iter().find(|(key, _)| *key == read.folded.key);
        known.map_or(Ok(()), |(_, key)| key.check(history, pasts, writes, read))
    };
    for (index, folded) in &history.folded {
        let operation = &history.operations[*index];
        if operation.outcome == Outcome::Done {
            let (past, words) = (floor(history, pasts, operation), history.describe(*index));
            let read = Read { folded, past, answered_us: operation.answered_us, words };
            check_read(writes, &read)?;
        }
    }
    for one in finals {
        for folded in &one.folded {
            let past = finals::everything(history);
            let words = format!("finally in {}", one.datacenter);
            let read = Read { folded, past, answered_us: u64::MAX, words };
            check_read(at_end, &read)?;
            check_beside(one, folded)?;
        }
    }
    Ok(())
}

impl Key {
    fn of(history: &History, key: &str) -> Key {
        let (mut puts, mut deletes) = (Vec::new(), Vec::new());
        let tried = history.operations.iter().enumerate();
        for (index, operation) in tried.filter(|(_, operation)| operation.outcome != Outcome::Refused) {
            for &(location, _) in &operation.writes {
                if let Some((_, text)) = history.name(location).split_once('/').filter(|name| name.0 == key) {
                    puts.push((index, location, text.to_owned()));
                }
            }
            let deletes_it = |args: &ensue_types::Args| {
                args[0].eq_ignore_ascii_case(b"DEL") && args.get(1).is_some_and(|name| name == key.as_bytes())
            };
            deletes.extend(operation.commands.iter().any(deletes_it).then_some(index));
        }
        Key { puts, deletes }
    }

    fn check(
        &self,
        history: &History,
        pasts: &Pasts,
        writes: &Writes,
        read: &Read<'_>,
    ) -> Result<(), Violation> {
        let report = |what: &str, other: OperationIndex| {
            let Folded { key, answer, .. } = read.folded;
            let words = format!(
                "at {key}, which is {answer:?}:\nread      {}\n{what}  {}",
                read.words,
                history.describe(other)
            );
            Err(Violation::new(property::FOLD, words))
        };
        let mut whole = read.past.clone();
        for &(_, writer) in &read.folded.values {
            join(&mut whole, pasts.of(writer));
        }
        for &(_, shown) in &read.folded.values {
            if let Some(by) = self.replaced_by(history, pasts, writes, shown, &whole) {
                return report("replaced", by);
            }
        }
        for (index, _, text) in self.standing(history, writes, read) {
            if !shows(read.folded, text) {
                return report("missing ", *index);
            }
        }
        Ok(())
    }

    /// A write in this past that had seen a value.
    fn replaced_by(
        &self,
        history: &History,
        pasts: &Pasts,
        writes: &Writes,
        value: OperationIndex,
        past: &[u32],
    ) -> Option<OperationIndex> {
        let puts = self.puts.iter().filter(|(index, at, _)| !writes.is_lost(*index, *at)).map(|put| put.0);
        // Power failures do not say which deletes they took, and neither do datacenters that are lost.
        let is_told = history.power_losses.is_empty() && history.dead.is_empty();
        let deletes = self.deletes.iter().copied().filter(|_| is_told);
        puts.chain(deletes).find(|&by| {
            let operation = &history.operations[by];
            by != value
                && operation.outcome == Outcome::Done
                && covers(past, operation)
                && pasts.contains(history, by, value)
        })
    }

    /// The values in a reader's past that nothing can have replaced.
    fn standing<'a>(
        &'a self,
        history: &'a History,
        writes: &'a Writes,
        read: &'a Read<'_>,
    ) -> impl Iterator<Item = &'a (OperationIndex, Location, String)> {
        let may_replace = |by: OperationIndex, value: &Operation| {
            let operation = &history.operations[by];
            let way_us = if operation.datacenter == value.datacenter { 0 } else { history.way_us };
            operation.invoked_us <= read.answered_us && operation.answered_us > value.invoked_us + way_us
        };
        self.puts.iter().filter(move |(index, at, _)| {
            let value = &history.operations[*index];
            let mut others = self.puts.iter().map(|put| put.0).chain(self.deletes.iter().copied());
            value.outcome == Outcome::Done
                && covers(&read.past, value)
                && !writes.is_lost(*index, *at)
                && !others.any(|by| by != *index && may_replace(by, value))
        })
    }
}

/// Whether an answer counts a value.
fn shows(folded: &Folded, value: &str) -> bool {
    let maker = Maker::of(folded.key);
    // Which values are in a sum, and why it is the last writer's, is not to be seen.
    if matches!(maker, Maker::Sum | Maker::NumbersOnly) {
        return true;
    }
    let Some(answer) = &folded.answer else { return false };
    match maker {
        Maker::Max => rank(answer) >= rank(value),
        Maker::Min => rank_of_least(answer) <= rank_of_least(value),
        Maker::Longest => rank_of_longest(answer) >= rank_of_longest(value),
        _ => folded.values.iter().any(|(shown, _)| shown == value),
    }
}

fn rank(value: &str) -> (Option<u64>, &str) {
    (value.parse().ok(), value)
}

fn rank_of_least(value: &str) -> (bool, Option<u64>, &str) {
    let number = value.parse().ok();
    (number.is_none(), number, value)
}

fn rank_of_longest(value: &str) -> (usize, &str) {
    (value.len(), value)
}

/// The fold of what stands at a key in the end is what is read there.
fn check_beside(one: &Final, folded: &Folded) -> Result<(), Violation> {
    let asked = format!("CAUSAL CONFLICTS {}", folded.key);
    let Some((_, beside)) = one.answers.iter().find(|(question, _)| *question == asked) else {
        return Ok(());
    };
    let standing: Vec<Option<&str>> = beside
        .split(' ')
        .filter(|value| !value.is_empty())
        .map(|value| (!value.starts_with(DELETED)).then_some(value))
        .collect();
    if standing.iter().all(Option::is_none) {
        return Ok(());
    }
    if folded.answer == expected(Maker::of(folded.key), &standing) {
        return Ok(());
    }
    let words = format!("{} in {} is {:?}, of {beside}", folded.key, one.datacenter, folded.answer);
    Err(Violation::new(property::FOLD, words))
}

/// What is to be shown of values, and of deletes, in the order of their stamps.
fn expected(maker: Maker, standing: &[Option<&str>]) -> Option<String> {
    let in_order: Vec<&str> = standing.iter().copied().flatten().collect();
    let values: BTreeSet<&str> = in_order.iter().copied().collect();
    let joined = |separator| Some(values.iter().copied().collect::<Vec<_>>().join(separator));
    let numbers: Vec<u64> = values.iter().filter_map(|value| value.parse().ok()).collect();
    let greatest = values.iter().copied().max_by_key(|value| rank(value));
    let chosen = match maker {
        Maker::Union => return joined(","),
        Maker::Lines => return joined("\n"),
        Maker::Sum => return Some(numbers.iter().sum::<u64>().to_string()),
        Maker::InOrder => return Some(in_order.join(",")),
        Maker::NumbersOnly if numbers.len() < values.len() => standing.last().copied().flatten(),
        Maker::Max | Maker::NumbersOnly => greatest,
        Maker::Min => values.iter().copied().min_by_key(|value| rank_of_least(value)),
        Maker::Longest => values.iter().copied().max_by_key(|value| rank_of_longest(value)),
    };
    chosen.map(str::to_owned)
}
