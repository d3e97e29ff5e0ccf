//! Where a transaction begins: from the leaves up, newest first, to the states that satisfy its begin constraint
//! (section 6.1.1).
//!
//! Of several leaves that do, a session goes on from the one with the newest merge in its past: it would else stay on
//! the branch that was written last, which never ends while it is written, and no merge would ever bring sessions
//! together.
//!
//! A state above one of this site's ceilings is none of them (6.3).

use crate::ceiling::Ceilings;
use crate::chain::Place;
use crate::constraint::{Constraint, Term};
use crate::dag::{Dag, Found};
use crate::id::StateId;
use std::collections::BTreeSet;

/// What a begin constraint is looked at with.
pub struct Beginning<'a> {
    pub dag: &'a Dag,
    pub ceilings: &'a Ceilings,
    pub constraint: &'a Constraint,
    /// The session's anchors, as states that are here.
    pub anchors: &'a [Found],
}

impl Beginning<'_> {
    /// The newest state that satisfies it.
    pub fn newest(&self) -> Option<StateId> {
        let suits = |id: &&StateId| {
            !self.ceilings.is_above(**id) && self.constraint.holds(|term| self.holds(term, **id))
        };
        let leaves = self.dag.leaves.iter().filter(suits);
        if let Some(leaf) = leaves.max_by_key(|id| (self.dag.states[*id].merge, **id)) {
            return Some(*leaf);
        }
        self.walk(true).first().copied()
    }

    /// All that satisfy it and that no other such state comes from, highest first.
    pub fn all_newest(&self) -> Vec<StateId> {
        self.dag.newest_of(self.walk(false))
    }

    fn walk(&self, one: bool) -> Vec<StateId> {
        let mut open: BTreeSet<StateId> = self.dag.leaves.clone();
        let mut found = Vec::new();
        while let Some(id) = open.pop_last() {
            if self.ceilings.is_above(id) {
                continue;
            }
            if self.constraint.holds(|term| self.holds(term, id)) {
                found.push(id);
                if one {
                    break;
                }
                // Whatever is above it is older on the same branch.
                continue;
            }
            open.extend(&self.dag.states[&id].parents);
        }
        found
    }

    fn holds(&self, term: &Term, id: StateId) -> bool {
        is_where(self.dag, self.anchors, term, id)
    }
}

/// Whether a state stands where a term asks for one, whatever was written on the way to it.
pub fn is_where(dag: &Dag, anchors: &[Found], term: &Term, id: StateId) -> bool {
    let state = &dag.states[&id];
    match term {
        Term::Any | Term::Serializability | Term::SnapshotIsolation | Term::ReadCommitted => true,
        Term::NoBranching => state.children.is_empty(),
        Term::KBranching(degree) => state.children.len() + 1 < *degree as usize,
        Term::Parent => anchors == [Found::Live(id)],
        Term::Ancestor => anchors.iter().all(|anchor| comes_from(dag, state.place, *anchor)),
        Term::State(states) => {
            states.contains(&id) || states.iter().any(|name| dag.aliases.get(name) == Some(&id))
        }
    }
}

/// Whether the state at a place comes from what an anchor stands for. A collected state's taker-over saw it.
fn comes_from(dag: &Dag, from: Place, anchor: Found) -> bool {
    match anchor {
        Found::Live(anchor) | Found::Collected(anchor) => dag.chains.sees(from, dag.place(anchor)),
        Found::Unknown => false,
    }
}
