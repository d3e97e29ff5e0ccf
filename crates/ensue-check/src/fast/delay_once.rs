//! Delay-once linearizability of a recorded history: each register is an object of the judge in `delay_once`.
//!
//! What a violation says is in values; here the transactions are found that show why one comes before the other.

use super::linearizable::{NEVER, Span, read_before_write, split_while, value_of_writer, write_of, writers};
use super::reads::{INITIAL, Read, Reads};
use super::{Evidence, Finding};
use crate::delay_once::judge::{self, HistoryError, Verdict, Violation};
use crate::delay_once::{self, Kind, ObjectId};
use crate::explain::place;
use crate::history::{History, Outcome, TransactionIndex};
use crate::report::{Pattern, Reason, Relation, RelationKind};
use crate::tables::Set;

/// How many reads were judged, how many of them showed an old state, and how many such came in a row at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Staleness {
    pub reads: usize,
    pub stale: usize,
    pub run_max: usize,
}

/// Judges all registers; what is said is of the first that is violated.
pub(super) fn judge(history: &History, reads: &Reads) -> (Finding, Staleness) {
    let ambiguous: Set<u32> = reads.ambiguous.iter().map(|read| read.key).collect();
    let mut certain = reads.certain.clone();
    certain.sort_by_key(|read| read.key);
    let mut rest = certain.as_slice();
    let mut objects = delay_once::History::default();
    let mut open: Option<Reason> = None;
    for (key, writers) in writers(history).iter().enumerate() {
        let key = key as u32;
        let reads = split_while(&mut rest, |read| read.key == key);
        if reads.is_empty() && !ambiguous.contains(&key) {
            continue;
        }
        match judged_as(history, key, writers, reads, ambiguous.contains(&key)) {
            Ok(operations) => objects.operations.extend(operations),
            Err(reason) => drop(open.get_or_insert(reason)),
        }
    }
    let verdict = match judge::judge(&objects) {
        Ok(verdict) => verdict,
        Err(error) => return (Finding::Undecided(unjudged(history, error)), Staleness::default()),
    };
    let Verdict { reads, stale_reads, stale_run_max, violations } = verdict;
    // What is stale is counted where the registers have an order, and the reads of all.
    let staleness = match violations[..] {
        [] => Staleness { reads, stale: stale_reads, run_max: stale_run_max },
        _ => Staleness::default(),
    };
    let finding = match (violations.into_iter().next(), open) {
        (Some(violation), _) => violated(history, &certain, violation),
        (None, Some(reason)) => Finding::Undecided(reason),
        (None, None) => Finding::Holds,
    };
    (finding, staleness)
}

/// The operations of a register; or why they cannot be judged. Which reads there were decides which of them is fresh,
/// so a register is judged by all of them or not at all.
fn judged_as(
    history: &History,
    key: u32,
    writers: &[u32],
    reads: &[Read],
    is_ambiguous: bool,
) -> Result<Vec<delay_once::Operation>, Reason> {
    let name = &history.keys[key as usize];
    if is_ambiguous {
        let text = format!("a value of `{name}` that was read was written more than once");
        return Err(Reason { text, line: 0 });
    }
    let all = writers.iter().copied().chain(reads.iter().map(|read| read.reader));
    let without_times = all.filter(|&index| {
        let of = &history.transactions[index as usize];
        of.start_us == 0 || (of.outcome == Outcome::Committed && of.end_us == 0)
    });
    if let Some(first) = without_times.min() {
        let text = format!("an operation on `{name}` has no `start` or no `end`");
        return Err(Reason { text, line: history.transactions[first as usize].line });
    }
    let operation = |transaction: u32, kind: Kind, value: delay_once::Value| {
        let Span { start, end, .. } = Span::of(history, transaction);
        delay_once::Operation {
            process: transaction,
            object: ObjectId(key.into()),
            kind,
            value,
            invoked_us: u64::try_from(start).unwrap_or_default(),
            returned_us: u64::try_from(end).ok(),
        }
    };
    let writes = writers.iter().map(|&writer| operation(writer, Kind::Write, value_of(writer)));
    let reads = reads.iter().map(|read| operation(read.reader, Kind::Read, value_of(read.writer)));
    Ok(writes.chain(reads).collect())
}

/// A value has the number of its writer, and the initial one has none before it.
fn value_of(writer: u32) -> delay_once::Value {
    match writer {
        INITIAL => delay_once::INITIAL,
        writer => delay_once::Value(u64::from(writer) + 1),
    }
}

fn writer_of(value: delay_once::Value) -> u32 {
    match value {
        delay_once::INITIAL => INITIAL,
        delay_once::Value(number) => u32::try_from(number - 1).unwrap_or(INITIAL),
    }
}

fn unjudged(history: &History, error: HistoryError) -> Reason {
    let (HistoryError::WrittenTwice(object, _)
    | HistoryError::OpenRead(object)
    | HistoryError::Backwards(object)) = error;
    let text = match error {
        HistoryError::Backwards(_) => "an operation ended before it began",
        HistoryError::OpenRead(_) => "a read has no end",
        HistoryError::WrittenTwice(..) => "a value was written twice",
    };
    Reason { text: format!("`{}`: {text}", history.keys[object.0 as usize]), line: 0 }
}

fn violated(history: &History, certain: &[Read], violation: Violation) -> Finding {
    match violation {
        Violation::Unwritten(read) | Violation::FromTheFuture(read) => {
            let (key, write) = (read.object.0 as u32, Span::of(history, writer_of(read.value)));
            let read = Span::of(history, read.process);
            Finding::Violated(read_before_write(history, key, write, read))
        }
        // In the missing part there may be the fresh read of a value.
        Violation::NoOrder { .. } if history.truncated_at_line.is_some() => {
            let text = "no order explains the reads, but the recording broke off".into();
            Finding::Undecided(Reason { text, line: history.truncated_at_line.unwrap_or_default() })
        }
        Violation::NoOrder { object, values } => {
            let key = object.0 as u32;
            let reads = &certain[certain.partition_point(|read| read.key < key)..];
            let reads = &reads[..reads.partition_point(|read| read.key == key)];
            let written: Vec<Shown> =
                values.iter().map(|&value| Shown::new(history, reads, writer_of(value))).collect();
            Finding::Violated(no_order(history, key, &written))
        }
    }
}

/// What decides the place of a value.
struct Shown {
    writer: u32,
    write: Span,
    /// Of its reads: the one that returned first, the one that was called first, which is the fresh one, and the one
    /// that was called last.
    returned_first: Option<Span>,
    called_first: Option<Span>,
    called_last: Option<Span>,
}

impl Shown {
    fn new(history: &History, reads: &[Read], writer: u32) -> Shown {
        let spans = || {
            let own = reads.iter().filter(move |read| read.writer == writer);
            own.map(|read| Span::of(history, read.reader))
        };
        Shown {
            writer,
            write: write_of(history, writer),
            returned_first: spans().min_by_key(|span| span.end),
            called_first: spans().min_by_key(|span| span.start),
            called_last: spans().max_by_key(|span| span.start),
        }
    }

    /// What ended of this value before what of the other began, and why that puts this value before the other.
    fn is_before(&self, other: &Shown) -> Option<(Span, Span, &'static str)> {
        let took_effect = match self.returned_first {
            Some(read) if read.end < self.write.end => read,
            _ => self.write,
        };
        let ends = |ended: Span, began: Span| ended.end != NEVER && ended.end < began.start;
        let by_effect = [(Some(other.write), ""), (other.called_first, ", the first read of it")];
        let by_effect = by_effect.map(|(began, why)| Some((took_effect, began?, why)));
        let by_reads = match (self.returned_first, other.called_last) {
            (Some(returned), Some(called)) => Some((returned, called, "; reads never go back")),
            _ => None,
        };
        by_effect.into_iter().chain([by_reads]).flatten().find(|&(ended, began, _)| ends(ended, began))
    }
}

/// The values would each have to come before the next, and the last before the first.
fn no_order(history: &History, key: u32, values: &[Shown]) -> Evidence {
    let mut evidence = Evidence::new(Pattern::NoOrder, "");
    let mut demands = Vec::new();
    for (at, one) in values.iter().enumerate() {
        let other = &values[(at + 1) % values.len()];
        let (ended, began, why) = one.is_before(other).expect("the judge found that it comes before");
        let (before, after) =
            (value_of_writer(history, key, one.writer), value_of_writer(history, key, other.writer));
        demands.push(match ended.transaction {
            INITIAL => format!("{before} before all"),
            transaction => format!(
                "{before} before it was {after}, since {} ended before {} began{why}",
                place(history, TransactionIndex(transaction)),
                place(history, TransactionIndex(began.transaction))
            ),
        });
        let of = [ended.transaction, began.transaction];
        evidence.transactions.extend(of.into_iter().filter(|&transaction| transaction != INITIAL));
        if !of.contains(&INITIAL) {
            let [from, to] = of.map(TransactionIndex);
            evidence.relations.push(Relation { from, to, kind: RelationKind::RealTime, on_cycle: true });
        }
    }
    evidence.detail = format!(
        "no order of the writes of `{}` explains its reads: it was {}",
        history.keys[key as usize],
        demands.join("; and it was ")
    );
    evidence
}

#[cfg(test)]
mod tests;
