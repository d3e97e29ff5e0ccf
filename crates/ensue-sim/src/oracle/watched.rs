//! Of several clients of a datacenter that read a value and replace it if it has not changed meanwhile, one succeeds;
//! and who does not was hindered by another one.
//!
//! Only for keys of one datacenter (`w0-1`): nothing that another one writes can come between.

use super::{Violation, may_be_lost, property};
use crate::oracle::history::{History, Location, Operation, OperationIndex, Outcome, Seen, Written};
use ensue_protocol::Recency;
use std::collections::{BTreeMap, BTreeSet};

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
        // Where reads show nothing but what their session knows, a write that was answered long ago may become shown
        // between `WATCH` and the end, what was read included; that changes the key, too. What the session had been
        // shown before stays shown, and what is discarded with a datacenter goes at any time.
        let hides = history.promises.recency == Recency::OwnPast;
        let shown = shown_before(history, index, location);
        let may_go = history.discarded.iter().any(|write| write.1 == location);
        let may_have_changed = |(other, written): (OperationIndex, &Operation)| {
            let is_concurrent = written.answered_us >= operation.invoked_us;
            other != index
                && written.outcome != Outcome::Refused
                && written.writes.iter().any(|write| write.0 == location)
                && written.invoked_us <= operation.answered_us
                && (is_concurrent || hides && (may_go || !shown.contains(&other)))
        };
        if !history.operations.iter().enumerate().any(may_have_changed) {
            let words = format!("at {name}: nobody changed it meanwhile\n{}", history.describe(index));
            return Err(Violation::new(property::ABORTED, words));
        }
    }
    Ok(())
}

/// The values of a key that earlier operations of the session had read or written, and those that these had replaced.
fn shown_before(history: &History, index: OperationIndex, location: Location) -> BTreeSet<OperationIndex> {
    let operation = &history.operations[index];
    let replaced_by = |writer: OperationIndex| {
        let reads = &history.operations[writer].reads;
        reads.iter().find_map(|&(at, seen)| match seen {
            Seen::Value(before) if at == location && before != writer => Some(before),
            _ => None,
        })
    };
    let mut shown = BTreeSet::new();
    let before = history.sessions[operation.session].iter().take_while(|&&other| other != index);
    for &other in before.filter(|&&other| history.operations[other].outcome == Outcome::Done) {
        let is_write = history.operations[other].writes.iter().any(|write| write.0 == location);
        let mut next = if is_write { Some(other) } else { replaced_by(other) };
        while let Some(writer) = next.filter(|writer| shown.insert(*writer)) {
            next = replaced_by(writer);
        }
    }
    shown
}
