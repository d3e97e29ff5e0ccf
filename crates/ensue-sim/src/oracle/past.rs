//! The causal past of every operation: session order, what was read, and what was merged, closed under itself.

use super::{Violation, property};
use crate::history::{History, Operation, OperationIndex, Seen, Written};

/// For each operation a vector with one entry a session: how many of that session's operations lie in its past, itself
/// and what it read included.
pub(super) struct Pasts {
    after: Vec<Vec<u32>>,
}

impl Pasts {
    /// Fails if an operation would have to lie in its own past.
    pub(super) fn compute(history: &History) -> Result<Pasts, Violation> {
        let mut pasts = Pasts { after: vec![Vec::new(); history.operations.len()] };
        let mut done = vec![0; history.sessions.len()];
        let mut moved = true;
        while moved {
            moved = false;
            for (session, operations) in history.sessions.iter().enumerate() {
                while let Some(&index) = operations.get(done[session]) {
                    if !pasts.try_operation(
                        history,
                        index,
                        done[session].checked_sub(1).map(|i| operations[i]),
                    ) {
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

    /// Whether one operation lies in the past of another, or is the other.
    pub(super) fn contains(&self, history: &History, later: OperationIndex, earlier: OperationIndex) -> bool {
        covers(&self.after[later], &history.operations[earlier])
    }

    fn try_operation(
        &mut self,
        history: &History,
        index: OperationIndex,
        previous: Option<OperationIndex>,
    ) -> bool {
        let operation = &history.operations[index];
        let mut past = match previous {
            Some(previous) => self.after[previous].clone(),
            None => vec![0; history.sessions.len()],
        };
        past[operation.session] = operation.number;
        for source in sources(history, index) {
            if source == index {
                continue;
            }
            if self.after[source].is_empty() {
                return false;
            }
            join(&mut past, &self.after[source]);
        }
        self.after[index] = past;
        true
    }
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
fn adders(
    history: &History,
    location: crate::history::Location,
    bits: u64,
) -> impl Iterator<Item = OperationIndex> + '_ {
    history.adds.get(&location).into_iter().flatten().filter_map(move |&index| {
        let bit = history.operations[index].writes.iter().find_map(|&(at, written)| match written {
            Written::Bit(bit) if at == location => Some(bit),
            _ => None,
        })?;
        (bits >> bit & 1 == 1).then_some(index)
    })
}
