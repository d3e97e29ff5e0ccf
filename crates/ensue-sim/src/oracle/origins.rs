//! One stream a datacenter: whoever has a write of a datacenter has everything that this datacenter had written before
//! it.
//!
//! What was written before it is known from causality: of the past of a write, those operations that its own datacenter
//! executed. That says nothing of what other datacenters wrote. A session stays in one datacenter, which never loses
//! what it had.

use super::counters::includes;
use super::past::{Pasts, join};
use super::registers::replaced;
use super::writes::{Writes, bit_of};
use super::{Violation, property};
use crate::oracle::history::{History, Location, OperationIndex, Outcome, Seen};

pub(super) fn check(history: &History, pasts: &Pasts, writes: &Writes) -> Result<(), Violation> {
    for operations in &history.sessions {
        let mut floor = vec![0; history.sessions.len()];
        for &index in operations {
            match history.operations[index].outcome {
                Outcome::Done => {}
                Outcome::Refused => continue,
                Outcome::Unknown => break,
            }
            check_operation(history, pasts, writes, index, &mut floor)?;
        }
    }
    Ok(())
}

/// Checks the reads of an operation against what its session had seen, and adds what they saw.
fn check_operation(
    history: &History,
    pasts: &Pasts,
    writes: &Writes,
    index: OperationIndex,
    floor: &mut Vec<u32>,
) -> Result<(), Violation> {
    let operation = &history.operations[index];
    let before = floor.clone();
    for &read in &operation.reads {
        seen(history, pasts, read, floor);
    }
    for &(location, seen_here) in &operation.reads {
        if seen_here == Seen::Value(index) {
            continue;
        }
        let mut alone = before.clone();
        seen(history, pasts, (location, seen_here), &mut alone);
        let known = if operation.snapshot { &*floor } else { &alone };
        let hidden = match seen_here {
            Seen::Bits(bits) => missing(history, writes, (location, bits), known, index),
            _ => replaced(history, pasts, writes, (location, seen_here), known, operation.answered_us),
        };
        if let Some(by) = hidden {
            let words = format!(
                "at {}:\nread      {}\nbefore    {}",
                history.name(location),
                history.describe(index),
                history.describe(by)
            );
            return Err(Violation::new(property::ORIGINS, words));
        }
    }
    Ok(())
}

/// Adds what came before what was read, in the streams of those who wrote it.
fn seen(history: &History, pasts: &Pasts, (location, seen): (Location, Seen), floor: &mut [u32]) {
    match seen {
        Seen::Value(writer) => join(floor, &before_in_its_stream(history, pasts, writer)),
        Seen::Bits(bits) => {
            for &adder in history.adds.get(&location).into_iter().flatten() {
                if bit_of(history, adder, location).is_some_and(|bit| bits >> bit & 1 == 1) {
                    join(floor, &before_in_its_stream(history, pasts, adder));
                }
            }
        }
        Seen::Nothing | Seen::Something => {}
    }
}

/// Of the past of a write the operations of its own datacenter.
fn before_in_its_stream(history: &History, pasts: &Pasts, writer: OperationIndex) -> Vec<u32> {
    let datacenter = history.operations[writer].datacenter;
    let here = |operations: &Vec<OperationIndex>| {
        operations.first().is_some_and(|&first| history.operations[first].datacenter == datacenter)
    };
    let past = pasts.of(writer).iter().zip(&history.sessions);
    past.map(|(&count, operations)| if here(operations) { count } else { 0 }).collect()
}

fn missing(
    history: &History,
    writes: &Writes,
    (location, bits): (Location, u64),
    known: &[u32],
    reader: OperationIndex,
) -> Option<OperationIndex> {
    let mut added = writes.added.get(&location).into_iter().flatten();
    let lacking = added.find(|write| {
        let source = &history.operations[write.operation];
        write.operation != reader && known[source.session] >= source.number && !includes(bits, write)
    });
    lacking.map(|write| write.operation)
}
