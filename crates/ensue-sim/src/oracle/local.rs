//! Without causality between keys: what a session knows of one location, and that this never goes back.
//!
//! A session stays in one datacenter, where one owner has the location. What the session wrote or saw there is still
//! there, or something has replaced it.

use super::past::Pasts;
use super::writes::{Removals, Writes, bit_of};
use super::{Violation, property};
use crate::oracle::history::{History, Location, OperationIndex, Outcome, Seen, Written};
use std::collections::BTreeMap;

/// What a session has seen at its locations so far.
#[derive(Default)]
pub(super) struct Known {
    /// The operations whose values it has read or written, in that order.
    values: BTreeMap<Location, Vec<OperationIndex>>,
    bits: BTreeMap<Location, u64>,
}

impl Known {
    pub(super) fn values(&self, location: Location) -> &[OperationIndex] {
        self.values.get(&location).map(Vec::as_slice).unwrap_or_default()
    }

    /// Adds what an operation read and wrote.
    pub(super) fn learn(&mut self, history: &History, index: OperationIndex) {
        let operation = &history.operations[index];
        if operation.outcome != Outcome::Done {
            return;
        }
        for &(location, seen) in &operation.reads {
            match seen {
                Seen::Value(writer) => self.values.entry(location).or_default().push(writer),
                Seen::Bits(bits) => *self.bits.entry(location).or_default() |= bits,
                Seen::Nothing | Seen::Something => {}
            }
        }
        for &(location, written) in &operation.writes {
            match written {
                Written::Value => self.values.entry(location).or_default().push(index),
                Written::Bit(bit) => *self.bits.entry(location).or_default() |= 1 << bit,
                Written::Nothing => {}
            }
        }
    }
}

pub(super) fn check(history: &History, pasts: &Pasts, writes: &Writes) -> Result<(), Violation> {
    for operations in &history.sessions {
        let mut known = Known::default();
        for &index in operations {
            let operation = &history.operations[index];
            match operation.outcome {
                Outcome::Done => {}
                Outcome::Refused => continue,
                Outcome::Unknown => break,
            }
            for &(location, seen) in &operation.reads {
                if let Some(by) = went_back(history, pasts, writes, (index, location, seen), &known) {
                    let words = format!(
                        "at {}:\nread      {}\nbefore    {}",
                        history.name(location),
                        history.describe(index),
                        history.describe(by)
                    );
                    return Err(Violation::new(property::WENT_BACK, words));
                }
            }
            known.learn(history, index);
        }
    }
    Ok(())
}

/// What the session knew of that the answer is older than.
fn went_back(
    history: &History,
    pasts: &Pasts,
    writes: &Writes,
    (reader, location, seen): (OperationIndex, Location, Seen),
    known: &Known,
) -> Option<OperationIndex> {
    // What the power took may be gone from one read to the next.
    let is_lost = |index: &OperationIndex| writes.is_lost(*index, location);
    let values = known.values(location).iter().copied().filter(|index| !is_lost(index));
    let removals = Removals::of(history, pasts, writes);
    let answered_us = history.operations[reader].answered_us;
    match seen {
        Seen::Value(writer) => {
            let replaces = |other| other != writer && pasts.contains(history, other, writer);
            let may_come_back = |other| removals.may_bring_back(location, writer, other, answered_us);
            values.into_iter().find(|&other| replaces(other) && !may_come_back(other))
        }
        Seen::Nothing => {
            values.into_iter().find(|&value| !removals.may_have_ended(location, value, answered_us))
        }
        Seen::Bits(bits) => {
            let missing = known.bits.get(&location).copied().unwrap_or(0) & !bits;
            let adders = history.adds.get(&location).into_iter().flatten().copied();
            let mut gone = adders
                .filter(|&adder| bit_of(history, adder, location).is_some_and(|bit| missing >> bit & 1 == 1));
            gone.find(|adder| !is_lost(adder))
        }
        Seen::Something => None,
    }
}
