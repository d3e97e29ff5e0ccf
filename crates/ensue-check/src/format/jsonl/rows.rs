//! What a whole row did not hold when it was read: reads of elements that were absent, now that the whole file is read.
//!
//! A recorder writes what a set or a hash showed, and that it was read whole; what it might have held, only the whole
//! file says. An element that somebody wrote, and nobody removed, was absent if the transaction does not read it. One
//! that somebody removed, by itself, by a rename or by a flush, is left alone: absent says little there. So is one that
//! was written only after the answer.

use super::elements::row_of;
use crate::history::{History, Key, LeftOut, Operation, Outcome, TransactionIndex, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Reads that whole rows may become; rows of which there would be more are left out.
const ABSENT_MAX: usize = 1_000_000;

/// A row was read whole.
#[derive(Clone, Debug)]
pub(super) struct RowRead {
    pub transaction: TransactionIndex,
    /// So many operations of its transaction come before it.
    pub place: usize,
    pub row: String,
}

/// An element, and when it was first written.
type Element = (Key, u64);

/// Writes down what was absent.
pub(super) fn expand(history: &mut History, reads: &[RowRead]) {
    expand_up_to(history, reads, ABSENT_MAX);
}

/// Answers how often an element was compared with a read: what is left out costs nothing.
fn expand_up_to(history: &mut History, reads: &[RowRead], absent_max: usize) -> usize {
    // Of a recording that broke off, the removal may be missing.
    if reads.is_empty()
        || history.truncated_at_line.is_some()
        || history.left_out.iter().any(|known| known.key.is_none())
    {
        return 0;
    }
    let elements = elements(history);
    let (mut count, mut compared, mut too_many) = (0, 0, BTreeSet::new());
    // From behind, so that the places of those before stay what they are.
    let mut order: Vec<usize> = (0..reads.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse((reads[at].transaction, reads[at].place, at)));
    for RowRead { transaction, place, row } in order.into_iter().map(|at| &reads[at]) {
        let Some(elements) = elements.get(row) else { continue };
        if count > absent_max {
            too_many.insert(row);
            continue;
        }
        let reader = &mut history.transactions[transaction.0 as usize];
        let ended_us = if reader.end_us == 0 { u64::MAX } else { reader.end_us };
        let read: BTreeSet<Key> =
            reader.operations.iter().filter_map(|operation| read_of(*operation)).collect();
        let was_there = |(key, begun_us): &&Element| *begun_us <= ended_us && !read.contains(key);
        let absent: Vec<Operation> = elements
            .iter()
            .filter(was_there)
            .map(|(key, _)| Operation::Read { key: *key, value: Value::ABSENT })
            .collect();
        compared += elements.len();
        count += absent.len();
        if count > absent_max {
            too_many.insert(row);
            continue;
        }
        let place = (*place).min(reader.operations.len());
        reader.operations.splice(place..place, absent);
    }
    for row in too_many {
        let reason = "whole reads of too many elements".into();
        history.left_out.push(LeftOut { key: Some(row.clone()), reason, line: 0 });
    }
    compared
}

/// The elements of each row that somebody wrote and nobody removed.
fn elements(history: &History) -> BTreeMap<String, Vec<Element>> {
    let mut written: BTreeMap<Key, u64> = BTreeMap::new();
    let mut removed: BTreeSet<Key> = BTreeSet::new();
    for transaction in history.transactions.iter().filter(|one| one.outcome != Outcome::Failed) {
        for operation in &transaction.operations {
            match *operation {
                Operation::Write { key, value: Value::ABSENT } => {
                    removed.insert(key);
                }
                Operation::Write { key, .. } | Operation::Add { key, .. } => {
                    let begun_us = written.entry(key).or_insert(u64::MAX);
                    *begun_us = transaction.start_us.min(*begun_us);
                }
                _ => {}
            }
        }
    }
    let mut rows: BTreeMap<String, Vec<Element>> = BTreeMap::new();
    for (key, begun_us) in written.into_iter().filter(|(key, _)| !removed.contains(key)) {
        if let Some(row) = row_of(history.key_name(key)) {
            rows.entry(row.to_owned()).or_default().push((key, begun_us));
        }
    }
    rows
}

fn read_of(operation: Operation) -> Option<Key> {
    match operation {
        Operation::Read { key, .. } | Operation::Count { key, .. } => Some(key),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
