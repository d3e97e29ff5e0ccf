//! Counters: the additions that a sum must have, those that it may have, and every subset of the latter.

use super::resolved::{Resolved, transaction_of};
use crate::history::{History, Key, Operation, Outcome, Transaction};

/// Whether every counter that was read is the sum of all additions that it must have and some that it may have.
pub(super) fn hold(history: &History, resolved: &Resolved<'_>) -> bool {
    counts(history).all(|count| {
        let mut required = own_part(&count);
        let mut possible = Vec::new();
        for adder in 1..resolved.count() {
            let Some(sum) = part(history, adder, &count) else { continue };
            let is_past = count.reader.is_final || resolved.hb.has(adder, count.node);
            if resolved.counts[adder] && is_past {
                required += sum;
            } else if may_be_seen(history, adder, &count) {
                possible.push(sum);
            }
        }
        subsets(&possible).any(|subset| required + total(&subset) == count.value)
    })
}

/// Whether the counters at rest read the same everywhere.
pub(super) fn agree(history: &History) -> bool {
    let finals = || counts(history).filter(|count| count.reader.is_final);
    finals().all(|a| finals().all(|b| a.key != b.key || a.value == b.value))
}

/// Who was certainly seen by whom: `(adder, reader)` for each addition that a sum shows.
///
/// Where all additions to a counter are distinct powers of two, at most one set of them has a given sum. A set with an
/// addition that came too late shows nothing: the sum is wrong. Nor does any set where additions may be missing.
pub(super) fn seen(history: &History) -> Vec<(usize, usize)> {
    let mut seen = Vec::new();
    for count in counts(history).filter(|count| has_distinct_powers(history, count.key)) {
        let adders: Vec<(usize, i128)> = (1..=history.transactions.len())
            .filter_map(|adder| part(history, adder, &count).map(|sum| (adder, sum)))
            .collect();
        let shown = count.value - own_part(&count);
        let set = subsets(&adders).find(|subset| total_of(subset) == shown).unwrap_or_default();
        if set.iter().all(|(adder, _)| may_be_seen(history, *adder, &count)) {
            seen.extend(set.into_iter().map(|(adder, _)| (adder, count.node)));
        }
    }
    seen
}

/// A counter that was read.
struct Count<'a> {
    reader: &'a Transaction,
    node: usize,
    /// Among the operations of its transaction.
    place: usize,
    key: Key,
    value: i128,
}

fn counts(history: &History) -> impl Iterator<Item = Count<'_>> {
    let answered = history.transactions.iter().enumerate().filter(|(_, t)| t.outcome == Outcome::Committed);
    answered.flat_map(|(index, reader)| {
        reader.operations.iter().enumerate().filter_map(move |(place, operation)| match *operation {
            Operation::Count { key, value } => {
                Some(Count { reader, node: index + 1, place, key, value: i128::from(value) })
            }
            _ => None,
        })
    })
}

fn deltas(operations: &[Operation], key: Key) -> Vec<i128> {
    let delta = |operation: &Operation| match *operation {
        Operation::Add { key: added, delta } if added == key => Some(i128::from(delta)),
        _ => None,
    };
    operations.iter().filter_map(delta).collect()
}

/// What the reader itself had added before.
fn own_part(count: &Count<'_>) -> i128 {
    total(&deltas(&count.reader.operations[..count.place], count.key))
}

/// What another transaction adds; nothing if it adds nothing, or failed.
fn part(history: &History, adder: usize, count: &Count<'_>) -> Option<i128> {
    let transaction = transaction_of(history, adder)?;
    let deltas = deltas(&transaction.operations, count.key);
    let takes_part = adder != count.node && transaction.outcome != Outcome::Failed && !deltas.is_empty();
    takes_part.then(|| total(&deltas))
}

/// Neither program order nor the clock of the recorder says that an addition came too late to be seen.
fn may_be_seen(history: &History, adder: usize, count: &Count<'_>) -> bool {
    let Some(transaction) = transaction_of(history, adder) else { return false };
    let is_timed = |transaction: &Transaction| (transaction.start_us, transaction.end_us) != (0, 0);
    let is_later =
        is_timed(transaction) && is_timed(count.reader) && transaction.start_us > count.reader.end_us;
    !is_later && !follows(history, adder, count)
}

/// An addition comes after the count in its own session.
fn follows(history: &History, adder: usize, count: &Count<'_>) -> bool {
    let session = &history.sessions[count.reader.session.0 as usize].transactions;
    let mut following = session.iter().skip_while(|index| index.0 as usize + 1 != count.node);
    following.any(|index| index.0 as usize + 1 == adder)
}

fn has_distinct_powers(history: &History, key: Key) -> bool {
    let effective = history.transactions.iter().filter(|transaction| transaction.outcome != Outcome::Failed);
    let all: Vec<i128> = effective.flat_map(|transaction| deltas(&transaction.operations, key)).collect();
    let is_power = |delta: &i128| *delta > 0 && delta.count_ones() == 1;
    history.truncated_at_line.is_none()
        && all.iter().all(is_power)
        && (0..all.len()).all(|late| !all[..late].contains(&all[late]))
}

fn total(deltas: &[i128]) -> i128 {
    deltas.iter().sum()
}

fn total_of(adders: &[(usize, i128)]) -> i128 {
    adders.iter().map(|(_, sum)| sum).sum()
}

fn subsets<T: Copy>(all: &[T]) -> impl Iterator<Item = Vec<T>> {
    let is_in = |subset: u32, place: usize| subset & (1 << place) != 0;
    (0..1_u32 << all.len()).map(move |subset| {
        all.iter().enumerate().filter(|(place, _)| is_in(subset, *place)).map(|(_, item)| *item).collect()
    })
}
