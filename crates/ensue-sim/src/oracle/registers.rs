//! Reads of values: nothing that the reader's past has replaced may be returned.
//!
//! A value w is replaced in a past V if V includes a write w' at the same place with w in the past of w'. An empty
//! answer is the initial state or any delete that was sent before the answer, and legal if one of these is not replaced
//! in V. Where deletes are removals, each value in V must have been ended by one, and none ends what was written after
//! it. For the reads of a transaction V includes the past of every value that it returns. An answer that only says that
//! something is there is legal unless each value that may have been written by then was ended by a delete in V.

use super::past::{Pasts, covers, join};
use super::writes::{Removals, Write, Writes};
use super::{Violation, property};
use crate::oracle::history::{History, Location, Operation, OperationIndex, Outcome, Seen, Written};

pub(super) fn check(history: &History, pasts: &Pasts, writes: &Writes) -> Result<(), Violation> {
    for (index, operation) in history.operations.iter().enumerate() {
        if operation.outcome == Outcome::Done && !operation.reads.is_empty() {
            check_operation(history, pasts, writes, index, operation)?;
        }
    }
    Ok(())
}

fn check_operation(
    history: &History,
    pasts: &Pasts,
    writes: &Writes,
    index: OperationIndex,
    operation: &Operation,
) -> Result<(), Violation> {
    let before = before(history, pasts, operation);
    let mut whole = before.clone();
    pasts.join_read(history, writes, index, &mut whole);
    for &(location, seen) in &operation.reads {
        if seen == Seen::Value(index) {
            continue;
        }
        let mut alone = before.clone();
        if let Seen::Value(writer) = seen {
            join(&mut alone, pasts.of(writer));
        }
        if let Some(by) = replaced(history, pasts, writes, (location, seen), &alone, operation.answered_us) {
            return Err(report(history, property::STALE, (index, location), by));
        }
        if operation.snapshot {
            if let Some(by) =
                replaced(history, pasts, writes, (location, seen), &whole, operation.answered_us)
            {
                return Err(report(history, property::SNAPSHOT, (index, location), by));
            }
        }
    }
    Ok(())
}

/// The session's past before an operation, a merge that it makes included.
pub(super) fn before(history: &History, pasts: &Pasts, operation: &Operation) -> Vec<u32> {
    let mut past = match operation.number {
        0 | 1 => vec![0; history.sessions.len()],
        number => pasts.of(history.sessions[operation.session][number as usize - 2]).to_vec(),
    };
    if let Some(merged) = operation.merges {
        join(&mut past, pasts.of(merged));
    }
    past
}

/// A write in the past that replaced what was read, if there is one.
pub(super) fn replaced(
    history: &History,
    pasts: &Pasts,
    writes: &Writes,
    (location, seen): (Location, Seen),
    past: &[u32],
    answered_us: u64,
) -> Option<OperationIndex> {
    match seen {
        Seen::Value(writer) => {
            // Where a removal that has ended a value had all before it, it ended that too.
            let removals = (!history.promises.causality).then(|| Removals::of(history, pasts, writes));
            let is_left = |write: &Write| {
                removals.as_ref().is_some_and(|all| match write.written {
                    Written::Nothing => !all.must_have_ended(location, writer, write.operation),
                    _ => all.may_bring_back(location, writer, write.operation, answered_us),
                })
            };
            let replaces =
                |write: &Write| write.operation != writer && pasts.contains(history, write.operation, writer);
            let mut latest = writes.latest(location, past);
            latest.find(|write| replaces(write) && !is_left(write)).map(|write| write.operation)
        }
        Seen::Nothing => {
            let values: Vec<OperationIndex> = writes
                .latest(location, past)
                .filter(|write| write.written == Written::Value)
                .map(|write| write.operation)
                .collect();
            let deletes = writes.deletes.get(&location).into_iter().flatten();
            let explained = deletes
                .filter(|&&delete| history.operations[delete].invoked_us <= answered_us)
                .any(|&delete| {
                    let replaced = |&value: &OperationIndex| {
                        value != delete && covers(pasts.of(value), &history.operations[delete])
                    };
                    !values.iter().any(replaced)
                });
            let removals = Removals::of(history, pasts, writes);
            match explained {
                true => {
                    values.into_iter().find(|&value| !removals.may_have_ended(location, value, answered_us))
                }
                false => values.first().copied(),
            }
        }
        Seen::Something => nothing_left(history, pasts, writes, location, past, answered_us),
        Seen::Bits(_) => None,
    }
}

/// A delete in the past, if there can be nothing at a location: each value that may have been written by then lies in
/// the past of such a delete.
fn nothing_left(
    history: &History,
    pasts: &Pasts,
    writes: &Writes,
    location: Location,
    past: &[u32],
    answered_us: u64,
) -> Option<OperationIndex> {
    let removals = Removals::of(history, pasts, writes);
    let deletes: Vec<OperationIndex> = writes
        .latest(location, past)
        .filter(|write| write.written == Written::Nothing)
        .map(|write| write.operation)
        .collect();
    let ends = |value: OperationIndex, delete: OperationIndex| {
        let must = || history.promises.causality || removals.must_have_ended(location, value, delete);
        value != delete && pasts.contains(history, delete, value) && must()
    };
    let values = writes.values.get(&location).into_iter().flatten();
    let mut written = values.filter(|&&value| history.operations[value].invoked_us <= answered_us);
    match written.all(|&value| deletes.iter().any(|&delete| ends(value, delete))) {
        true => deletes.first().copied(),
        false => None,
    }
}

fn report(
    history: &History,
    property: &'static str,
    (reader, location): (OperationIndex, Location),
    by: OperationIndex,
) -> Violation {
    let mut lines =
        vec![format!("at {}:", history.name(location)), format!("read      {}", history.describe(reader))];
    for &(at, seen) in &history.operations[reader].reads {
        if let Seen::Value(writer) = seen {
            if writer != reader {
                lines.push(format!("{:<9} {}", history.name(at), history.describe(writer)));
            }
        }
    }
    lines.push(format!("replaced  {}", history.describe(by)));
    Violation::new(property, lines.join("\n"))
}
