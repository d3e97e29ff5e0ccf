//! A history in which it is settled who read from whom, and all the ways to settle it.
//!
//! A read of a value that one transaction wrote has one source. A read of nothing may have seen the initial state or
//! any delete, and a value that was written twice either write: then every combination is tried.

use super::relation::Relation;
use super::{RESOLUTIONS_MAX, TooLarge, counters};
use crate::history::{History, Key, Operation, Outcome, Transaction, Value};

/// The transaction that wrote nothing to every key before all others. Transaction `i` of the history is node `i + 1`.
pub(super) const INITIAL: usize = 0;

/// Where a read must look.
pub(super) enum Source {
    /// At what its own transaction wrote before.
    Own(Value),
    /// At what other transactions wrote.
    Others,
}

/// A read as the history has it.
pub(super) struct Asked {
    pub(super) reader: usize,
    pub(super) key: Key,
    pub(super) value: Value,
    pub(super) source: Source,
}

/// A read whose source is settled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub(super) reader: usize,
    pub(super) key: Key,
    pub(super) value: Value,
    pub(super) writer: usize,
}

/// A history with every source settled.
pub(super) struct Resolved<'a> {
    history: &'a History,
    pub(super) reads: Vec<Read>,
    /// By node: whether its writes count.
    pub(super) counts: Vec<bool>,
    pub(super) so: Relation,
    pub(super) wr: Relation,
    pub(super) hb: Relation,
}

impl<'a> Resolved<'a> {
    fn new(history: &'a History, additions_seen: &[(usize, usize)], reads: &[Read]) -> Resolved<'a> {
        let count = history.transactions.len() + 1;
        let mut wr =
            Relation::from(count, |a, b| reads.iter().any(|read| read.writer == a && read.reader == b));
        for &(adder, reader) in additions_seen {
            wr.add(adder, reader);
        }
        let counts: Vec<bool> = (0..count)
            .map(|node| match transaction_of(history, node).map(|transaction| transaction.outcome) {
                None | Some(Outcome::Committed) => true,
                Some(Outcome::Unknown) => (0..count).any(|reader| wr.has(node, reader)),
                Some(Outcome::Failed) => false,
            })
            .collect();
        let so = session_order(history, &counts);
        let hb = so.or(&wr).transitive();
        Resolved { history, reads: reads.to_vec(), counts, so, wr, hb }
    }

    /// How many nodes there are.
    pub(super) fn count(&self) -> usize {
        self.counts.len()
    }

    /// Whether a node wrote this key, and the write counts.
    pub(super) fn writes(&self, node: usize, key: Key) -> bool {
        self.counts[node] && last_write(self.history, node, key).is_some()
    }
}

pub(super) fn transaction_of(history: &History, node: usize) -> Option<&Transaction> {
    node.checked_sub(1).map(|index| &history.transactions[index])
}

/// What does not count keeps its place, and merges nothing.
fn session_order(history: &History, counts: &[bool]) -> Relation {
    let mut so = Relation::empty(history.transactions.len() + 1);
    for session in &history.sessions {
        for (place, late) in session.transactions.iter().enumerate() {
            for early in &session.transactions[..place] {
                so.add(early.0 as usize + 1, late.0 as usize + 1);
            }
        }
    }
    for (index, transaction) in history.transactions.iter().enumerate() {
        so.add(INITIAL, index + 1);
        for token in transaction.merges.iter().filter(|_| counts[index + 1]) {
            so.add(token.0 as usize + 1, index + 1);
        }
    }
    so.transitive()
}

/// What others see of a node at a key.
fn last_write(history: &History, node: usize, key: Key) -> Option<Value> {
    let Some(transaction) = transaction_of(history, node) else { return Some(Value::ABSENT) };
    transaction.operations.iter().rev().find_map(|operation| match *operation {
        Operation::Write { key: written, value } if written == key => Some(value),
        _ => None,
    })
}

/// Every read of every transaction that was answered.
pub(super) fn reads(history: &History) -> impl Iterator<Item = Asked> {
    let answered = (1..=history.transactions.len())
        .filter(|&node| history.transactions[node - 1].outcome == Outcome::Committed);
    answered.flat_map(move |reader| {
        let operations = &history.transactions[reader - 1].operations;
        (0..operations.len()).filter_map(move |place| {
            let Operation::Read { key, value } = operations[place] else { return None };
            let own = operations[..place].iter().rev().find_map(|operation| match *operation {
                Operation::Write { key: written, value } if written == key => Some(value),
                _ => None,
            });
            Some(Asked { reader, key, value, source: own.map_or(Source::Others, Source::Own) })
        })
    })
}

/// The nodes that a read of others may have seen.
pub(super) fn candidates(history: &History, read: &Asked) -> Vec<usize> {
    let may_be_seen = |node: usize| match transaction_of(history, node) {
        None => true,
        Some(transaction) => node != read.reader && transaction.outcome != Outcome::Failed,
    };
    (0..=history.transactions.len())
        .filter(|&node| may_be_seen(node) && last_write(history, node, read.key) == Some(read.value))
        .collect()
}

/// Whether anybody wrote what was read, in whatever way.
pub(super) fn is_written(history: &History, read: &Asked) -> bool {
    let written = Operation::Write { key: read.key, value: read.value };
    history.transactions.iter().any(|transaction| transaction.operations.contains(&written))
}

/// Shows every way to settle all sources.
pub(super) fn for_each(history: &History, show: &mut dyn FnMut(&Resolved<'_>)) -> Result<(), TooLarge> {
    let choices: Vec<(Asked, Vec<usize>)> = reads(history)
        .filter(|read| matches!(read.source, Source::Others))
        .map(|read| {
            let writers = candidates(history, &read);
            (read, writers)
        })
        .filter(|(_, writers)| !writers.is_empty())
        .collect();
    let mut resolutions = 1_usize;
    for (_, writers) in &choices {
        resolutions = resolutions.saturating_mul(writers.len());
    }
    if resolutions > RESOLUTIONS_MAX {
        return Err(TooLarge);
    }
    let additions_seen = counters::seen(history);
    settle(&choices, &mut Vec::new(), &mut |reads| show(&Resolved::new(history, &additions_seen, reads)));
    Ok(())
}

fn settle(choices: &[(Asked, Vec<usize>)], settled: &mut Vec<Read>, show: &mut dyn FnMut(&[Read])) {
    let Some((read, writers)) = choices.get(settled.len()) else {
        return show(settled);
    };
    for &writer in writers {
        settled.push(Read { reader: read.reader, key: read.key, value: read.value, writer });
        settle(choices, settled, show);
        settled.pop();
    }
}
