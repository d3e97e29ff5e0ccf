//! The end: every datacenter holds the same, and nothing that was acknowledged is gone.

use super::counters::includes;
use super::past::Pasts;
use super::registers::replaced;
use super::writes::{Writes, known_bits};
use super::{Violation, property};
use crate::oracle::history::{History, Location, Outcome, Seen};
use ensue_types::DatacenterId;

/// What a fresh session read in a datacenter after quiescence.
#[derive(Clone, Debug)]
pub struct Final {
    pub datacenter: DatacenterId,
    /// Every location that the oracle understands.
    pub values: Vec<(Location, Seen)>,
    /// What handlers of conflicts made.
    pub folded: Vec<crate::oracle::history::Folded>,
    /// Its lists.
    pub sequences: Vec<crate::oracle::history::Sequence>,
    /// Every answer as text, for comparison, the oracle's locations included.
    pub answers: Vec<(String, String)>,
}

pub(super) fn check(
    history: &History,
    pasts: &Pasts,
    writes: &Writes,
    finals: &[Final],
) -> Result<(), Violation> {
    for one in finals {
        check_losses(history, pasts, writes, one)?;
    }
    let Some((first, others)) = finals.split_first() else { return Ok(()) };
    for other in others {
        for (mine, theirs) in first.answers.iter().zip(&other.answers) {
            if mine != theirs {
                let words = format!(
                    "{}: {} has {}, {} has {}",
                    mine.0, first.datacenter, mine.1, other.datacenter, theirs.1
                );
                return Err(Violation::new(property::CONVERGENCE, words));
            }
        }
    }
    Ok(())
}

/// The past of a final read: everything that was ever acknowledged.
pub(super) fn everything(history: &History) -> Vec<u32> {
    history.sessions.iter().map(|operations| operations.len() as u32).collect()
}

fn check_losses(history: &History, pasts: &Pasts, writes: &Writes, one: &Final) -> Result<(), Violation> {
    let past = everything(history);
    for &(location, seen) in &one.values {
        let name = history.name(location);
        let place = format!("at {name} in {}, finally {seen:?}", one.datacenter);
        if let Seen::Value(writer) = seen {
            let written = history.operations.get(writer).is_some_and(|operation| {
                operation.outcome != Outcome::Refused && operation.writes.iter().any(|w| w.0 == location)
            });
            if !written {
                return Err(Violation::new(property::THIN_AIR, place));
            }
        }
        if let Some(by) = replaced(history, pasts, writes, (location, seen), &past, u64::MAX) {
            let words = format!("{place}\nlost      {}", history.describe(by));
            return Err(Violation::new(property::LOST, words));
        }
        if let Seen::Bits(bits) = seen {
            if bits & !known_bits(history, location, u64::MAX) != 0 {
                return Err(Violation::new(property::THIN_AIR, place));
            }
            let mut added = writes.added.get(&location).into_iter().flatten();
            if let Some(write) = added.find(|write| !includes(bits, write)) {
                let words = format!("{place}\nlost      {}", history.describe(write.operation));
                return Err(Violation::new(property::LOST, words));
            }
        }
    }
    Ok(())
}
