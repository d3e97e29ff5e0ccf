//! Linearizability of registers, each key by itself: whether all that was done with a key can have happened one after
//! the other, each at a time between its start and its end.
//!
//! Reads know their writes, so a key has *values*, each with the write and the reads of it, and in an order these stand
//! together. Value `u` must come before value `w` exactly if something of `u` ended before something of `w` began: if
//! the end that comes first in `u` lies before the start that comes last in `w`. What reads and replaces a value in one
//! step (`SET NX`, a pop, a `MULTI`) follows the value at once, so the values that replaced each other so are one
//! *block* with the same two times. Of such pairs of times, three blocks cannot go round in a circle without two of
//! them that do; so a key is linearizable if no read ended before its write began, no value was replaced twice, no
//! block contradicts itself, and no two blocks must each come before the other. That takes sorting. The idea is that of
//! the zones of Gibbons and Korach (1997).

mod blocks;
mod narrowed;
mod witness;

use super::reads::{AmbiguousRead, Read, Reads};
use super::{Evidence, Finding, RESOLUTIONS_MAX, RESOLVED_OPERATIONS_MAX};
use crate::history::{History, Operation, Outcome};
use crate::report::Reason;
use blocks::Blocks;
use narrowed::Narrowed;

pub(super) use blocks::write_of;
pub(super) use witness::{read_before_write, value_of_writer};

/// Microseconds; the initial state came at -1.
pub(super) type Time = i128;
pub(super) const NEVER: Time = Time::MAX;

/// A transaction and when it took effect: between these two times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub transaction: u32,
    pub start: Time,
    pub end: Time,
}

impl Span {
    pub fn of(history: &History, transaction: u32) -> Span {
        let of = &history.transactions[transaction as usize];
        let has_end = of.outcome == Outcome::Committed && of.end_us != 0;
        let end = if has_end { of.end_us.into() } else { NEVER };
        Span { transaction, start: of.start_us.into(), end }
    }
}

/// Everything that was done with one key.
struct Register<'a> {
    history: &'a History,
    key: u32,
    /// The transactions that wrote it, in the order of the history.
    writers: &'a [u32],
    reads: &'a [Read],
    ambiguous: Vec<AmbiguousRead>,
}

/// Judges all keys; what is said is of the first that is not linearizable.
pub(super) fn judge(history: &History, reads: &Reads) -> Finding {
    let writers = writers(history);
    let mut certain = reads.certain.clone();
    certain.sort_by_key(|read| read.key);
    let mut ambiguous: Vec<&AmbiguousRead> = reads.ambiguous.iter().collect();
    ambiguous.sort_by_key(|read| read.key);
    let (mut certain, mut ambiguous) = (certain.as_slice(), ambiguous.as_slice());
    let mut open = None;
    for (key, writers) in writers.iter().enumerate() {
        let key = key as u32;
        let register = Register {
            history,
            key,
            writers,
            reads: split_while(&mut certain, |read| read.key == key),
            ambiguous: split_while(&mut ambiguous, |read| read.key == key).iter().copied().cloned().collect(),
        };
        match unless_broken_off(history, register.judge()) {
            Finding::Holds => {}
            Finding::Undecided(reason) => drop(open.get_or_insert(reason)),
            found => return found,
        }
    }
    open.map_or(Finding::Holds, Finding::Undecided)
}

/// Takes the first part of a slice off it.
pub(super) fn split_while<'a, T>(slice: &mut &'a [T], is_part: impl Fn(&T) -> bool) -> &'a [T] {
    let (part, rest) = slice.split_at(slice.partition_point(is_part));
    *slice = rest;
    part
}

/// For each key who wrote it and did not fail.
pub(super) fn writers(history: &History) -> Vec<Vec<u32>> {
    let mut writers: Vec<Vec<u32>> = vec![Vec::new(); history.keys.len()];
    for (index, transaction) in history.transactions.iter().enumerate() {
        if transaction.outcome == Outcome::Failed {
            continue;
        }
        for operation in &transaction.operations {
            let Operation::Write { key, .. } = *operation else { continue };
            let of_key = &mut writers[key.0 as usize];
            if of_key.last() != Some(&(index as u32)) {
                of_key.push(index as u32);
            }
        }
    }
    writers
}

/// What is missing of a recording that broke off may be the write that explains a read: a delete, or a value that was
/// written before.
fn unless_broken_off(history: &History, finding: Finding) -> Finding {
    match (finding, history.truncated_at_line) {
        (Finding::Violated(_), Some(line)) => {
            let text = "no order explains the reads, but the recording broke off".into();
            Finding::Undecided(Reason { text, line })
        }
        (finding, _) => finding,
    }
}

impl Register<'_> {
    fn judge(self) -> Finding {
        if self.reads.is_empty() && self.ambiguous.is_empty() {
            return Finding::Holds;
        }
        if let Err(evidence) = self.check(&[]) {
            return Finding::Violated(evidence);
        }
        if let Some(reason) = self.without_times() {
            return Finding::Undecided(reason);
        }
        if self.ambiguous.is_empty() { Finding::Holds } else { self.resolve() }
    }

    /// Whether an order exists if the ambiguous reads saw these writes.
    fn check(&self, resolved: &[Read]) -> Result<(), Evidence> {
        let blocks = Blocks::new(self.history, self.key, self.writers, self.reads, resolved)?;
        blocks.contradiction().map_or(Ok(()), Err)
    }

    /// Without times nothing is in no order, and that says nothing.
    fn without_times(&self) -> Option<Reason> {
        let ambiguous = self.ambiguous.iter().map(|read| read.reader);
        let readers = self.reads.iter().map(|read| read.reader).chain(ambiguous);
        let is_open = |index: &u32| {
            let of = &self.history.transactions[*index as usize];
            of.outcome == Outcome::Committed && (of.start_us == 0 || of.end_us == 0)
        };
        let first = self.writers.iter().copied().chain(readers).filter(is_open).min()?;
        let key = &self.history.keys[self.key as usize];
        let text = format!("an operation on `{key}` has no `start` or no `end`");
        Some(Reason { text, line: self.history.transactions[first as usize].line })
    }

    /// A register whose values are written more than once has an order if it has one for some way to say which write
    /// each read saw.
    fn resolve(&self) -> Finding {
        let operations = self.writers.len() + self.reads.len() + self.ambiguous.len();
        let ways_max = RESOLUTIONS_MAX.min(RESOLVED_OPERATIONS_MAX / operations.max(1));
        let Some(narrowed) = Narrowed::new(self.history, self.writers, &self.ambiguous, ways_max) else {
            let AmbiguousRead { reader, .. } = self.ambiguous[0];
            let key = &self.history.keys[self.key as usize];
            let text = format!("`{key}` was read as what several wrote, in too many ways to try all");
            return Finding::Undecided(Reason {
                text,
                line: self.history.transactions[reader as usize].line,
            });
        };
        let mut first = None;
        for way in 0..narrowed.ways {
            match self.check(&narrowed.way(way)) {
                Ok(()) => return Finding::Holds,
                Err(evidence) => drop(first.get_or_insert(evidence)),
            }
        }
        let mut evidence = first.expect("each read has a candidate, so there is a way");
        if narrowed.fruitless > 1 {
            let ways = narrowed.fruitless;
            let note = format!("; so it is in each of {ways} ways to say which write each read saw");
            evidence.detail.push_str(&note);
        }
        Finding::Violated(evidence)
    }
}

#[cfg(test)]
pub(super) mod tests;
