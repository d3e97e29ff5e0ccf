//! The causal past of every operation: session order, what was read, and what was merged, closed under itself.

use super::writes::Writes;
use super::{Violation, property};
use crate::oracle::history::{History, Location, Operation, OperationIndex, Outcome, Seen, Written};

/// For each operation a vector with one entry a session: how many of that session's operations lie in its past, itself
/// and what it read included.
pub(super) struct Pasts {
    after: Vec<Vec<u32>>,
}

impl Pasts {
    /// Fails if an operation would have to lie in its own past.
    pub(super) fn compute(history: &History, writes: &Writes) -> Result<Pasts, Violation> {
        let mut pasts = Pasts { after: vec![Vec::new(); history.operations.len()] };
        let mut done = vec![0; history.sessions.len()];
        let mut moved = true;
        while moved {
            moved = false;
            for (session, operations) in history.sessions.iter().enumerate() {
                while let Some(&index) = operations.get(done[session]) {
                    let previous = done[session].checked_sub(1).map(|i| operations[i]);
                    if !pasts.try_operation(history, writes, index, previous) {
                        break;
                    }
                    done[session] += 1;
                    moved = true;
                }
            }
        }
        let stuck: Vec<String> = history
            .sessions
            .iter()
            .enumerate()
            .filter_map(|(session, operations)| operations.get(done[session]))
            .map(|&index| history.describe(index))
            .collect();
        if stuck.is_empty() { Ok(pasts) } else { Err(Violation::new(property::CYCLE, stuck.join("\n"))) }
    }

    /// The past of an operation, itself included.
    pub(super) fn of(&self, index: OperationIndex) -> &[u32] {
        &self.after[index]
    }

    /// What one write of an operation says that came before: of the operation's other writes nothing, unless all take
    /// effect together.
    pub(super) fn of_one_write(&self, history: &History, index: OperationIndex) -> Vec<u32> {
        let mut past = self.after[index].clone();
        if !seen_whole(history, index) {
            let operation = &history.operations[index];
            past[operation.session] = operation.number - 1;
        }
        past
    }

    /// Adds the pasts of the values and additions that an operation read, its own apart.
    pub(super) fn join_read(
        &self,
        history: &History,
        writes: &Writes,
        index: OperationIndex,
        past: &mut [u32],
    ) {
        for &(location, seen) in &history.operations[index].reads {
            match seen {
                Seen::Value(writer) if writer != index => join(past, self.of(writer)),
                Seen::Bits(bits) => self.join_added(history, writes, (index, location, bits), past),
                _ => {}
            }
        }
    }

    /// Adds the pasts of the additions in a sum, the reader's own apart, and those that tell of nothing.
    pub(super) fn join_added(
        &self,
        history: &History,
        writes: &Writes,
        (reader, location, bits): (OperationIndex, Location, u64),
        past: &mut [u32],
    ) {
        let tells = |adder: &OperationIndex| {
            *adder != reader && !writes.is_gone(*adder) && !writes.is_severed(*adder)
        };
        for adder in adders(history, location, bits).filter(tells) {
            join(past, &self.of_one_write(history, adder));
        }
    }

    /// Whether one operation lies in the past of another, or is the other.
    pub(super) fn contains(&self, history: &History, later: OperationIndex, earlier: OperationIndex) -> bool {
        covers(&self.after[later], &history.operations[earlier])
    }

    fn try_operation(
        &mut self,
        history: &History,
        writes: &Writes,
        index: OperationIndex,
        previous: Option<OperationIndex>,
    ) -> bool {
        let operation = &history.operations[index];
        let mut past = match previous {
            Some(previous) => self.after[previous].clone(),
            None => vec![0; history.sessions.len()],
        };
        past[operation.session] = operation.number;
        let mut sources = sources(history, index);
        for &(location, seen) in &operation.reads {
            if seen == Seen::Nothing && operation.outcome == Outcome::Done && history.promises.causality {
                sources.extend(self.only_delete(history, writes, index, location, &past));
            }
        }
        for source in sources {
            if source == index || (writes.is_gone(source) && history.promises.causality) {
                continue;
            }
            if self.after[source].is_empty() {
                return false;
            }
            let known = past[history.operations[source].session];
            if writes.is_severed(source) && operation.merges != Some(source) {
                let source = &history.operations[source];
                past[source.session] = known.max(source.number);
                continue;
            }
            join(&mut past, &self.after[source]);
            if !seen_whole(history, source) && operation.merges != Some(source) {
                // What was seen is one of its writes; the stamps of the others may be higher.
                let source = &history.operations[source];
                past[source.session] = known.max(source.number - 1);
            }
        }
        self.after[index] = past;
        true
    }

    /// The delete that an empty answer must come from, if its reader's past leaves only one: the initial state has been
    /// replaced in it, and so have all other deletes.
    fn only_delete(
        &self,
        history: &History,
        writes: &Writes,
        reader: OperationIndex,
        location: Location,
        past: &[u32],
    ) -> Option<OperationIndex> {
        let values: Vec<OperationIndex> = writes
            .latest(location, past)
            .filter(|write| write.written == Written::Value && write.operation != reader)
            .map(|write| write.operation)
            .collect();
        if values.is_empty() {
            return None;
        }
        let own = &history.operations[reader];
        let mut possible = writes.deletes.get(&location).into_iter().flatten().copied().filter(|&delete| {
            let operation = &history.operations[delete];
            let later = operation.session == own.session && operation.number >= own.number;
            let replaced = values.iter().any(|&value| covers(&self.after[value], operation));
            !later && !replaced && operation.invoked_us <= own.answered_us
        });
        let first = possible.next()?;
        possible.next().is_none().then_some(first)
    }
}

/// Whether seeing one write of an operation says that all of them come before what follows.
fn seen_whole(history: &History, index: OperationIndex) -> bool {
    let operation = &history.operations[index];
    operation.together || operation.writes.len() < 2
}

/// Whether a vector includes an operation.
pub(super) fn covers(past: &[u32], operation: &Operation) -> bool {
    past[operation.session] >= operation.number
}

pub(super) fn join(into: &mut [u32], other: &[u32]) {
    for (mine, theirs) in into.iter_mut().zip(other) {
        *mine = (*mine).max(*theirs);
    }
}

/// The operations whose past an operation takes over, its own session's apart.
fn sources(history: &History, index: OperationIndex) -> Vec<OperationIndex> {
    let operation = &history.operations[index];
    let mut sources: Vec<OperationIndex> = operation.merges.into_iter().collect();
    sources.extend(history.built_on.get(&index));
    for &(location, seen) in &operation.reads {
        match seen {
            Seen::Value(writer) => sources.push(writer),
            Seen::Bits(bits) => sources.extend(adders(history, location, bits)),
            Seen::Nothing | Seen::Something => {}
        }
    }
    sources
}

/// The operations that added these powers of two.
fn adders(history: &History, location: Location, bits: u64) -> impl Iterator<Item = OperationIndex> + '_ {
    history.adds.get(&location).into_iter().flatten().filter_map(move |&index| {
        let bit = history.operations[index].writes.iter().find_map(|&(at, written)| match written {
            Written::Bit(bit) if at == location => Some(bit),
            _ => None,
        })?;
        (bits >> bit & 1 == 1).then_some(index)
    })
}
