//! Counters to which everyone adds another power of two, so that a sum says exactly which additions it includes.

use super::past::{Pasts, join};
use super::registers::before;
use super::writes::{Write, Writes};
use super::{Violation, property};
use crate::oracle::history::{History, Outcome, Seen, Written};

/// A sum must include every addition in the reader's past, in that of each addition that it includes, and its own. That
/// it includes nothing else was checked with the values that nobody wrote.
pub(super) fn check(history: &History, pasts: &Pasts, writes: &Writes) -> Result<(), Violation> {
    for (index, operation) in history.operations.iter().enumerate() {
        if operation.outcome != Outcome::Done {
            continue;
        }
        let mut past = before(history, pasts, operation);
        if operation.snapshot {
            join(&mut past, pasts.of(index));
        }
        for &(location, seen) in &operation.reads {
            let Seen::Bits(bits) = seen else { continue };
            let mut past = past.clone();
            pasts.join_added(history, writes, (index, location, bits), &mut past);
            let missing = writes.added.get(&location).into_iter().flatten().find(|write| {
                let source = &history.operations[write.operation];
                let expected = past[source.session] >= source.number || write.operation == index;
                expected && !includes(bits, write)
            });
            if let Some(write) = missing {
                let words = format!(
                    "at {}: the sum lacks an addition of its past\nread      {}\nmissing   {}",
                    history.name(location),
                    history.describe(index),
                    history.describe(write.operation)
                );
                return Err(Violation::new(property::COUNTER, words));
            }
        }
    }
    Ok(())
}

pub(super) fn includes(bits: u64, write: &Write) -> bool {
    match write.written {
        Written::Bit(bit) => bits >> bit & 1 == 1,
        Written::Value | Written::Nothing => true,
    }
}
