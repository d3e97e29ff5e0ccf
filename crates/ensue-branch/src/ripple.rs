//! Where a transaction commits: the newest state, from its read state down, at which its end constraint holds (section
//! 6.1.2).
//!
//! What was written since grows on the way down and never shrinks, so the search ends where no constraint on it can
//! hold any more. A state counts with all that it sees and the read state does not, what merges brought from other
//! branches included. For a transaction on one branch that is asked of the versions of its keys that the read state
//! does not see, of which there are few or none; the highest state is a leaf, so that one is looked at first.

use crate::Key;
use crate::begin::is_where;
use crate::chain::Place;
use crate::constraint::{Constraint, Since, Term};
use crate::dag::{Dag, Found};
use crate::fork;
use crate::id::StateId;
use crate::records::Records;
use crate::transaction::Transaction;
use ensue_types::Rule;
use std::collections::BTreeMap;

/// Places of versions that a read state does not see: of the keys that were read, and of those that will be written.
struct Fresh {
    read: Vec<Place>,
    written: Vec<Place>,
}

impl Fresh {
    fn since(&self, dag: &Dag, id: StateId) -> Since {
        let at = dag.place(id);
        let sees = |places: &[Place]| places.iter().any(|place| dag.chains.sees(at, *place));
        Since { read: sees(&self.read), written: sees(&self.written) }
    }
}

/// What a commit state is looked for with.
pub struct Ripple<'a> {
    pub dag: &'a Dag,
    pub records: &'a Records,
    pub transaction: &'a Transaction,
    /// The states that it commits below as far as they are known: of the other branches of a merge.
    pub branches: &'a [StateId],
    pub anchors: &'a [Found],
    pub end: &'a Constraint,
}

impl Ripple<'_> {
    /// From one read state.
    pub fn from(&self, read: StateId) -> Option<StateId> {
        let fresh = self.fresh(read);
        if let Some(fresh) = &fresh {
            let below = |leaf: &StateId| self.dag.sees(*leaf, read);
            let mut leaves = self.dag.leaves.iter().rev().copied().filter(below);
            let holds = |leaf: &StateId| {
                let since = fresh.since(self.dag, *leaf);
                self.end.holds(|term| self.holds(term, *leaf, since))
            };
            if self.end.asks_for_a_leaf() && Rule::BranchingIsBounded.holds() {
                return leaves.find(holds);
            }
            if let Some(leaf) = leaves.next().filter(holds) {
                return Some(leaf);
            }
        }
        let mut open = BTreeMap::from([(read, Since::default())]);
        let mut found = None;
        // Parents have lower ids than their children, so a state comes up after everything that leads to it.
        while let Some((id, since)) = open.pop_first() {
            if self.end.holds(|term| self.holds(term, id, since)) {
                found = Some(id);
            }
            for child in &self.dag.states[&id].children {
                let since = match &fresh {
                    Some(fresh) => fresh.since(self.dag, *child),
                    None => self.below(read, id, since, *child),
                };
                if self.end.may_hold(self.minded(since)) && !(since.read && self.transaction.at.len() > 1) {
                    open.insert(*child, since);
                }
            }
        }
        found
    }

    /// What of it the constraints mind.
    fn minded(&self, since: Since) -> Since {
        Since {
            read: since.read && Rule::SerializabilityIsChecked.holds(),
            written: since.written && Rule::SnapshotIsolationIsChecked.holds(),
        }
    }

    /// The versions of the transaction's keys that the read state does not see. Nothing if there are too many keys to
    /// ask one by one.
    fn fresh(&self, read: StateId) -> Option<Fresh> {
        let transaction = self.transaction;
        let is_single = transaction.at.len() == 1 && !transaction.read_all;
        if !is_single || !Rule::MergesBringTheirBranches.holds() {
            return None;
        }
        let at = self.dag.place(read);
        // If no merge came since, what is below the read state and it does not see was written since.
        let is_plain = self.dag.last_merge <= at.order;
        let seen_to = if is_plain { at.order } else { self.dag.chains.sees_all_to(at) };
        let places = |key: &Key| {
            let versions = match self.records.may_be_written_since(key, seen_to) {
                true => self.records.versions_after(key, seen_to),
                false => &[],
            };
            let places = versions.iter().map(|version| version.place);
            places.filter(|place| !self.dag.chains.sees(at, *place)).collect::<Vec<Place>>()
        };
        let written = match self.end.minds_writes() {
            true => transaction.writes.keys().flat_map(places).collect(),
            false => Vec::new(),
        };
        Some(Fresh { read: transaction.read.iter().flat_map(places).collect(), written })
    }

    /// What was written between the read state and a child of one that was reached.
    fn below(&self, read: StateId, id: StateId, since: Since, child: StateId) -> Since {
        let state = &self.dag.states[&child];
        let mut since = self.add(since, &state.writes, read);
        if state.parents.len() > 1 && Rule::MergesBringTheirBranches.holds() {
            for brought in self.dag.unseen(child, &[read, id]) {
                since = self.add(since, &self.dag.states[&brought].writes, read);
            }
        }
        since
    }

    fn add(&self, since: Since, writes: &[Key], read: StateId) -> Since {
        // What the branches of a merge disagree on may not be written on the way down again.
        let is_merge = self.branches.len() > 1 && Rule::MergesStayWhole.holds();
        let divided = is_merge
            && writes.iter().any(|key| fork::hides(self.dag, self.records, key, self.branches, read));
        Since {
            read: since.read || divided || self.transaction.has_read(writes),
            written: since.written || self.transaction.writes_too(writes),
        }
    }

    fn holds(&self, term: &Term, id: StateId, since: Since) -> bool {
        match term {
            Term::Serializability => !since.read || !Rule::SerializabilityIsChecked.holds(),
            Term::SnapshotIsolation => !since.written || !Rule::SnapshotIsolationIsChecked.holds(),
            Term::NoBranching | Term::KBranching(_) if !Rule::BranchingIsBounded.holds() => true,
            place => is_where(self.dag, self.anchors, place, id),
        }
    }
}
