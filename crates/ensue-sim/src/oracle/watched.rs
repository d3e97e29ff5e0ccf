//! Of several clients of a datacenter that read a value and replace it if it has not changed meanwhile, one succeeds;
//! and who does not was hindered by another one.
//!
//! Only for keys of one datacenter (`w0-1`): nothing that another one writes can come between.

use super::{Violation, may_be_lost, property};
use crate::oracle::history::{History, Location, Operation, OperationIndex, Outcome, Seen, Written};
use ensue_protocol::Recency;
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
        // What the first wrote may be gone, so that the value of before is there again.
        let may_be_gone = |one: OperationIndex| {
            may_be_lost(history, one, partition) || history.discarded.contains(&(one, location))
        };
        if [index, other].into_iter().any(may_be_gone) {
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
    needless(history)
}

/// One that was not executed needs a write of its key, by another one of the datacenter, that what it read does not
/// show, and that had not been answered before it began.
fn needless(history: &History) -> Result<(), Violation> {
    for &index in &history.aborted {
        let operation = &history.operations[index];
        let key = operation.commands.first().and_then(|watch| watch.get(1));
        let name = key.map(|key| String::from_utf8_lossy(key).into_owned()).unwrap_or_default();
        let Some(location) = history.place(&name) else { continue };
        let read = operation.reads.iter().find_map(|&(at, seen)| match seen {
            Seen::Value(writer) if at == location => Some(writer),
            _ => None,
        });
        // Where reads show nothing but what their session knows, what its datacenter has written since what it read may
        // be hidden, and changes the key all the same.
        let read_us = read.map_or(0, |writer| history.operations[writer].invoked_us);
        let hides = history.promises.recency == Recency::OwnPast;
        let may_have_changed = |(other, written): (OperationIndex, &Operation)| {
            let is_concurrent = written.answered_us >= operation.invoked_us;
            let is_hidden = hides && Some(other) != read && written.answered_us >= read_us;
            other != index
                && written.outcome != Outcome::Refused
                && written.writes.iter().any(|write| write.0 == location)
                && written.invoked_us <= operation.answered_us
                && (is_concurrent || is_hidden)
        };
        if !history.operations.iter().enumerate().any(may_have_changed) {
            let words = format!("at {name}: nobody changed it meanwhile\n{}", history.describe(index));
            return Err(Violation::new(property::ABORTED, words));
        }
    }
    Ok(())
}
