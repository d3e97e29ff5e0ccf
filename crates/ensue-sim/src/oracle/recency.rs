//! A datacenter is one place: what it has acknowledged to anybody, it shows to whoever asks it afterwards.
//!
//! Only of operations that promise it (`Operation::recent`). The reader is taken to know, at the place that it reads,
//! all writes that were answered in its datacenter before it asked.

use super::counters::includes;
use super::past::Pasts;
use super::registers::{before, replaced};
use super::writes::Writes;
use super::{Violation, property};
use crate::oracle::history::{History, Location, Operation, OperationIndex, Outcome, Seen};

pub(super) fn check(history: &History, pasts: &Pasts, writes: &Writes) -> Result<(), Violation> {
    for (reader, operation) in history.operations.iter().enumerate() {
        if !operation.recent || operation.outcome != Outcome::Done || operation.reads.is_empty() {
            continue;
        }
        let known = acknowledged(history, operation);
        for &(location, seen) in &operation.reads {
            if seen == Seen::Value(reader) {
                continue;
            }
            let hidden = match seen {
                Seen::Bits(bits) => missing(history, writes, (location, bits), &known),
                _ => {
                    let answered_us = operation.answered_us;
                    replaced(history, pasts, writes, (location, seen), &known, answered_us)
                }
            };
            if let Some(write) = hidden {
                let words = format!(
                    "at {}:\nread      {}\nhidden    {}",
                    history.name(location),
                    history.describe(reader),
                    history.describe(write)
                );
                return Err(Violation::new(property::HIDDEN, words));
            }
        }
    }
    Ok(())
}

/// What a reader is known to have seen at the places that it reads: its session's past, and what its datacenter had
/// answered.
pub(super) fn floor(history: &History, pasts: &Pasts, operation: &Operation) -> Vec<u32> {
    let mut past = before(history, pasts, operation);
    if operation.recent {
        super::past::join(&mut past, &acknowledged(history, operation));
    }
    past
}

/// For each session of the reader's datacenter how many of its operations were answered before the reader asked.
fn acknowledged(history: &History, reader: &Operation) -> Vec<u32> {
    let here = |operations: &&Vec<OperationIndex>| {
        operations.first().is_some_and(|&first| history.operations[first].datacenter == reader.datacenter)
    };
    let answered = |operations: &Vec<OperationIndex>| {
        let early = |&index: &OperationIndex| history.operations[index].answered_us < reader.invoked_us;
        operations.partition_point(early) as u32
    };
    history.sessions.iter().map(|operations| Some(operations).filter(here).map_or(0, answered)).collect()
}

fn missing(
    history: &History,
    writes: &Writes,
    (location, bits): (Location, u64),
    known: &[u32],
) -> Option<OperationIndex> {
    let mut added = writes.added.get(&location).into_iter().flatten();
    let lacking = added.find(|write| {
        known[history.operations[write.operation].session] >= write.number && !includes(bits, write)
    });
    lacking.map(|write| write.operation)
}
