//! Which delete an empty answer is, where only one thing can be meant by it.
//!
//! It may be the initial state, unless the session itself had seen or written something there, and every delete that
//! was sent before the answer and does not follow the reader in its session. This asks for no past: were it wrong, the
//! checker would see a cause that is none.

use crate::oracle::Final;
use crate::oracle::history::{History, Location, OperationIndex, Outcome, Seen, SessionIndex, Written};
use std::collections::{BTreeMap, BTreeSet};

/// Stands for the readers of the end, who all find the same.
pub(super) const FINAL: OperationIndex = OperationIndex::MAX;

#[derive(Debug, Default)]
pub(super) struct Emptiness {
    /// Deletes that may have taken effect.
    deletes: BTreeMap<Location, Vec<OperationIndex>>,
    /// What an empty answer must be: a delete, or the initial state.
    meant: BTreeMap<(Location, OperationIndex), Option<OperationIndex>>,
    /// Where one empty answer may be more than one thing.
    ambiguous: BTreeSet<Location>,
}

impl Emptiness {
    pub fn find(history: &History, finals: &[Final]) -> Emptiness {
        let mut emptiness = Emptiness::default();
        for (index, operation) in history.operations.iter().enumerate() {
            for &(location, written) in &operation.writes {
                if written == Written::Nothing && operation.outcome != Outcome::Refused {
                    emptiness.deletes.entry(location).or_default().push(index);
                }
            }
        }
        let filled = emptiness.look_at_sessions(history);
        for &(location, seen) in finals.iter().flat_map(|one| &one.values) {
            if seen == Seen::Nothing {
                let deletes = emptiness.deletes.get(&location).cloned().unwrap_or_default();
                emptiness.conclude(FINAL, location, !filled.contains(&location), deletes);
            }
        }
        emptiness
    }

    /// Whether somebody may have deleted there.
    pub fn is_deleted(&self, location: Location) -> bool {
        self.deletes.contains_key(&location)
    }

    /// Where deletes write values of their own.
    pub fn tells_apart(&self, location: Location) -> bool {
        !self.ambiguous.contains(&location)
    }

    /// Nothing for the initial state, and where it is not known.
    pub fn delete_read_by(&self, reader: OperationIndex, location: Location) -> Option<OperationIndex> {
        let meant = self.meant.get(&(location, reader)).copied().flatten();
        meant.filter(|_| self.tells_apart(location))
    }

    /// Gives also where a value was acknowledged.
    fn look_at_sessions(&mut self, history: &History) -> BTreeSet<Location> {
        let mut filled = BTreeSet::new();
        let mut known: BTreeSet<(SessionIndex, Location)> = BTreeSet::new();
        for &index in history.sessions.iter().flatten() {
            let operation = &history.operations[index];
            if operation.outcome != Outcome::Done {
                continue;
            }
            let session = operation.session;
            for &(location, seen) in &operation.reads {
                if seen == Seen::Nothing {
                    let is_possible = |&delete: &OperationIndex| {
                        let other = &history.operations[delete];
                        let follows = other.session == session && other.number >= operation.number;
                        !follows && other.invoked_us <= operation.answered_us
                    };
                    let deletes = self.deletes.get(&location).into_iter().flatten().copied();
                    let deletes = deletes.filter(is_possible).collect();
                    self.conclude(index, location, !known.contains(&(session, location)), deletes);
                }
            }
            let values = operation.reads.iter().filter(|(_, seen)| matches!(seen, Seen::Value(_)));
            known.extend(values.map(|&(location, _)| (session, location)));
            for &(location, written) in &operation.writes {
                known.insert((session, location));
                if written == Written::Value {
                    filled.insert(location);
                }
            }
        }
        filled
    }

    fn conclude(
        &mut self,
        reader: OperationIndex,
        location: Location,
        maybe_initial: bool,
        deletes: Vec<OperationIndex>,
    ) {
        let meant = match (&deletes[..], maybe_initial) {
            // An answer that nothing explains is the initial state, which was replaced.
            ([], _) => None,
            (&[delete], false) => Some(delete),
            _ => {
                self.ambiguous.insert(location);
                return;
            }
        };
        self.meant.insert((location, reader), meant);
    }
}
