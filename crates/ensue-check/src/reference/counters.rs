//! Counters: the additions that a sum must have, those that it may have, and every subset of the latter.

use super::resolved::{Resolved, transaction_of};
use crate::history::{History, Key, Operation, Outcome, Transaction};

/// Whether every counter that was read is the sum of additions as defined.
pub(super) fn hold(history: &History, resolved: &Resolved<'_>) -> bool {
    counts(history).all(|count| {
        let mut sure = i128::from(added_before(count.reader, count.place, count.key));
        let mut possible = Vec::new();
        for adder in 1..resolved.count() {
            let Some(transaction) = transaction_of(history, adder) else { continue };
            let delta = i128::from(added_before(transaction, transaction.operations.len(), count.key));
            if adder == count.node || delta == 0 || transaction.outcome == Outcome::Failed {
                continue;
            }
            let past = count.reader.is_final || resolved.hb.has(adder, count.node);
            if resolved.counts[adder] && past {
                sure += delta;
            } else if !begins_after(transaction, count.reader) {
                possible.push(delta);
            }
        }
        some_subset_adds_up(&possible, i128::from(count.value) - sure)
    })
}

/// Whether the counters at rest read the same everywhere.
pub(super) fn agree(history: &History) -> bool {
    let finals = || counts(history).filter(|count| count.reader.is_final);
    finals().all(|a| finals().all(|b| a.key != b.key || a.value == b.value))
}

/// A counter that was read.
struct Count<'a> {
    reader: &'a Transaction,
    node: usize,
    /// Among the operations of its transaction.
    place: usize,
    key: Key,
    value: i64,
}

fn counts(history: &History) -> impl Iterator<Item = Count<'_>> {
    let answered = history.transactions.iter().enumerate().filter(|(_, t)| t.outcome == Outcome::Committed);
    answered.flat_map(|(index, reader)| {
        reader.operations.iter().enumerate().filter_map(move |(place, operation)| match *operation {
            Operation::Count { key, value } => Some(Count { reader, node: index + 1, place, key, value }),
            _ => None,
        })
    })
}

/// What a transaction adds to a counter before this place in it.
fn added_before(transaction: &Transaction, place: usize, key: Key) -> i64 {
    let deltas = transaction.operations[..place].iter().map(|operation| match *operation {
        Operation::Add { key: added, delta } if added == key => delta,
        _ => 0,
    });
    deltas.sum()
}

/// Whether the clock of the recorder says that one began when the other was over.
fn begins_after(one: &Transaction, other: &Transaction) -> bool {
    let is_timed = |transaction: &Transaction| (transaction.start_us, transaction.end_us) != (0, 0);
    is_timed(one) && is_timed(other) && one.start_us > other.end_us
}

fn some_subset_adds_up(deltas: &[i128], sum: i128) -> bool {
    match deltas.split_first() {
        None => sum == 0,
        Some((&delta, rest)) => some_subset_adds_up(rest, sum) || some_subset_adds_up(rest, sum - delta),
    }
}
