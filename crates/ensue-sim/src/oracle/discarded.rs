//! What survivors discard with a datacenter that is lost for good must need something that may be lost with it.
//!
//! What a survivor wrote needs what its session had seen there, which the survivor has, and what the tokens named that
//! the session, or one that it knows of, had merged. So if no operation in the past of a discarded write has merged a
//! token that knew of the lost datacenter, nothing that the write needs is lost. Where there are no tokens nothing that
//! a survivor wrote may be discarded. Vectors discard more than that, and a survivor that lost its power may have lost
//! what it had shown; there this is not judged, and neither is what the lost datacenter itself wrote.

use super::past::{Pasts, covers};
use super::writes::Writes;
use super::{Violation, property};
use crate::oracle::history::{History, Location, OperationIndex};
use std::collections::BTreeSet;

/// Judges writes of which it is known that they were discarded.
pub fn judge(history: &History, discarded: &BTreeSet<(OperationIndex, Location)>) -> Result<(), Violation> {
    if history.promises.goes_by_times || !history.power_losses.is_empty() {
        return Ok(());
    }
    let writes = Writes::collect(history, BTreeSet::new(), BTreeSet::new());
    let pasts = Pasts::compute(history, &writes)?;
    let is_there = |index: OperationIndex| history.dead.contains(&history.operations[index].datacenter);
    let knows_of_the_lost = |index: OperationIndex| {
        let mut known = history.sessions.iter().zip(pasts.of(index));
        known
            .any(|(operations, count)| *count > 0 && operations.first().is_some_and(|&first| is_there(first)))
    };
    let mut merges = Vec::new();
    for (index, operation) in history.operations.iter().enumerate() {
        if operation.merges.is_some_and(knows_of_the_lost) {
            merges.push(index);
        }
    }
    let is_unfounded = |write: &&(OperationIndex, Location)| {
        let past = pasts.of(write.0);
        let has_merged = merges.iter().any(|&merge| covers(past, &history.operations[merge]));
        !is_there(write.0) && !has_merged
    };
    let Some((index, location)) = discarded.iter().find(is_unfounded) else { return Ok(()) };
    let words = format!("at {}: {}", history.name(*location), history.describe(*index));
    Err(Violation::new(property::UNFOUNDED, words))
}
