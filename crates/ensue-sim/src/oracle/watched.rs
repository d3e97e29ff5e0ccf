//! Of several clients of a datacenter that read a value and replace it if it has not changed meanwhile, one succeeds.
//!
//! Only for keys of one datacenter (`w0-1`): nothing that another one writes can come between.

use super::{Violation, may_be_lost, property};
use crate::oracle::history::{History, Location, OperationIndex, Outcome, Seen, Written};
use std::collections::BTreeMap;

/// Whether the history has such keys under this name.
fn is_watched(name: &str) -> bool {
    name.starts_with('w')
}

pub(super) fn check(history: &History) -> Result<(), Violation> {
    let mut replaced: BTreeMap<(Location, Option<OperationIndex>), OperationIndex> = BTreeMap::new();
    for (index, operation) in history.operations.iter().enumerate() {
        let &[(location, Written::Value)] = &operation.writes[..] else { continue };
        if operation.outcome != Outcome::Done || !is_watched(history.name(location)) {
            continue;
        }
        let read = match &operation.reads[..] {
            [(_, Seen::Value(writer))] => Some(*writer),
            [(_, Seen::Nothing)] => None,
            _ => continue,
        };
        let Some(other) = replaced.insert((location, read), index) else { continue };
        let partition = history.partition_of(location);
        if [index, other].iter().any(|&one| may_be_lost(history, one, partition)) {
            continue;
        }
        let words = format!(
            "at {}: both replaced the same value, which each was to do only if it had not changed\n{}\n{}",
            history.name(location),
            history.describe(other),
            history.describe(index)
        );
        return Err(Violation::new(property::WATCHED, words));
    }
    Ok(())
}
