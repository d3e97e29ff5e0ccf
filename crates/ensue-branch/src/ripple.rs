//! Where a transaction commits: the newest state, from its read state down, at which its end constraint holds (section 6.1.2).
//!
//! What was written since grows on the way down and never shrinks, so the search ends where no constraint on it can hold any more. On
//! the way over a merge counts all that the merge sees and the read state does not, the other branches included.

use crate::Key;
use crate::begin::comes_from;
use crate::constraint::{Constraint, Since, Term};
use crate::dag::{Dag, Found};
use crate::id::StateId;
use crate::transaction::Transaction;
use ensue_types::{Rule, Rules};
use std::collections::{BTreeMap, BTreeSet};

/// What a commit state is looked for with.
pub struct Ripple<'a> {
    pub dag: &'a Dag,
    pub transaction: &'a Transaction,
    pub anchors: &'a [Found],
    pub end: &'a Constraint,
    /// What other branches of a merge wrote: on the way down, none of it may be written again.
    pub divided: &'a BTreeSet<Key>,
    pub rules: Rules,
}

impl Ripple<'_> {
    /// From one read state.
    pub fn from(&self, read: StateId) -> Option<StateId> {
        let mut open = BTreeMap::from([(read, Since::default())]);
        let mut found = None;
        // Parents have lower ids than their children, so a state comes up after everything that leads to it.
        while let Some((id, since)) = open.pop_first() {
            if self.end.holds(|term| self.holds(term, id, since)) {
                found = Some(id);
            }
            for child in &self.dag.states[&id].children {
                let since = self.below(read, id, since, *child);
                if self.end.may_hold(since) && !(since.read && self.transaction.at.len() > 1) {
                    open.insert(*child, since);
                }
            }
        }
        found
    }

    /// What was written between the read state and a child of one that was reached.
    fn below(&self, read: StateId, id: StateId, since: Since, child: StateId) -> Since {
        let state = &self.dag.states[&child];
        let mut since = self.add(since, &state.writes);
        if state.parents.len() > 1 && self.rules.hold(Rule::MergesBringTheirBranches) {
            for brought in self.dag.unseen(child, &[read, id]) {
                since = self.add(since, &self.dag.states[&brought].writes);
            }
        }
        since
    }

    fn add(&self, since: Since, writes: &[Key]) -> Since {
        let divided = writes.iter().any(|key| self.divided.contains(key));
        Since {
            read: since.read || divided || self.transaction.has_read(writes),
            written: since.written || self.transaction.writes_too(writes),
        }
    }

    fn holds(&self, term: &Term, id: StateId, since: Since) -> bool {
        let state = &self.dag.states[&id];
        match term {
            Term::Any | Term::ReadCommitted => true,
            Term::Serializability => !since.read || !self.rules.hold(Rule::SerializabilityIsChecked),
            Term::SnapshotIsolation => !since.written || !self.rules.hold(Rule::SnapshotIsolationIsChecked),
            Term::NoBranching => state.children.is_empty() || !self.rules.hold(Rule::BranchingIsBounded),
            Term::KBranching(degree) => {
                state.children.len() + 1 < *degree as usize || !self.rules.hold(Rule::BranchingIsBounded)
            }
            Term::Parent => self.anchors == [Found::Live(id)],
            Term::Ancestor => self.anchors.iter().all(|anchor| comes_from(self.dag, id, *anchor)),
            Term::State(states) => {
                states.contains(&id) || states.iter().any(|s| self.dag.aliases.get(s) == Some(&id))
            }
        }
    }
}
