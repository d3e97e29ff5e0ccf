//! A store of states by the definitions alone: each state whole, with all its ancestors and all that it wrote, and
//! nothing ever collected. It knows nothing of chains, places or versions.

use crate::{Commit, Constraint, Key, StateId, Term, Value};
use std::collections::{BTreeMap, BTreeSet};

/// One state, as it was made.
#[derive(Clone, Debug)]
pub struct Made {
    /// Itself included.
    pub ancestors: BTreeSet<StateId>,
    pub parents: Vec<StateId>,
    pub writes: BTreeMap<Key, Value>,
}

/// All states of all sites. Equal merges are one, here under the lowest of their names.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    pub states: BTreeMap<StateId, Made>,
    names: BTreeMap<StateId, StateId>,
}

/// A transaction as far as a commit state is concerned.
pub struct Wanted<'a> {
    pub reads: Vec<StateId>,
    pub read: &'a BTreeSet<Key>,
    pub written: BTreeSet<Key>,
    pub end: &'a Constraint,
    pub anchor: StateId,
}

impl Reference {
    pub fn new() -> Reference {
        let root = StateId::ROOT;
        let made = Made { ancestors: BTreeSet::from([root]), parents: Vec::new(), writes: BTreeMap::new() };
        Reference { states: BTreeMap::from([(root, made)]), names: BTreeMap::from([(root, root)]) }
    }

    /// The one name of a state.
    pub fn name(&self, id: StateId) -> StateId {
        self.names[&id]
    }

    pub fn made(&self, id: StateId) -> &Made {
        &self.states[&self.names[&id]]
    }

    /// Whether `a` is `b` or an ancestor of it.
    pub fn is_before(&self, a: StateId, b: StateId) -> bool {
        self.made(b).ancestors.contains(&self.name(a))
    }

    /// A commit, the moment it is made.
    pub fn add(&mut self, commit: &Commit) {
        let mut parents: Vec<StateId> = commit.parents.iter().map(|parent| self.name(*parent)).collect();
        parents.sort();
        parents.dedup();
        let writes: BTreeMap<Key, Value> =
            commit.writes.iter().map(|write| (write.key.clone(), write.value.clone())).collect();
        let equal = |made: &Made| parents.len() > 1 && made.parents == parents && made.writes == writes;
        if let Some(name) = self.states.iter().find(|(_, made)| equal(made)).map(|(name, _)| *name) {
            return self.join(name, commit.id);
        }
        let mut ancestors: BTreeSet<StateId> = BTreeSet::from([commit.id]);
        for parent in &parents {
            ancestors.extend(&self.states[parent].ancestors);
        }
        self.names.insert(commit.id, commit.id);
        self.states.insert(commit.id, Made { ancestors, parents, writes });
    }

    /// A state gets another name; the lowest is its name everywhere.
    fn join(&mut self, old: StateId, new: StateId) {
        let lowest = old.min(new);
        self.names.insert(new, lowest);
        if lowest == old {
            return;
        }
        self.names.values_mut().filter(|name| **name == old).for_each(|name| *name = lowest);
        let made = self.states.remove(&old).expect("found by the caller");
        self.states.insert(lowest, made);
        for made in self.states.values_mut() {
            if made.ancestors.remove(&old) {
                made.ancestors.insert(lowest);
            }
            for parent in made.parents.iter_mut().filter(|parent| **parent == old) {
                *parent = lowest;
            }
            made.parents.sort();
        }
    }

    /// All that these states see, each by its one name.
    pub fn below(&self, states: &[StateId]) -> BTreeSet<StateId> {
        states.iter().flat_map(|id| self.made(*id).ancestors.iter().copied()).collect()
    }

    /// What stands at a key: the newest by id.
    pub fn value(&self, states: &[StateId], key: &Key) -> Value {
        let below = self.below(states);
        let newest = below.iter().rev().find(|id| self.states[id].writes.contains_key(key));
        newest.and_then(|id| self.states[id].writes[key].clone())
    }

    /// The keys written at one state or before, and not at or before the other.
    pub fn beside(&self, one: StateId, other: StateId) -> BTreeSet<Key> {
        let other = &self.made(other).ancestors;
        let beside = self.made(one).ancestors.iter().filter(|id| !other.contains(id));
        beside.flat_map(|id| self.states[id].writes.keys().cloned()).collect()
    }

    pub fn conflicts(&self, states: &[StateId]) -> BTreeSet<Key> {
        let mut keys = BTreeSet::new();
        for a in states {
            for b in states {
                keys.extend(self.beside(*a, *b).intersection(&self.beside(*b, *a)).cloned());
            }
        }
        keys
    }

    /// Those that no other of them comes from.
    pub fn newest(&self, states: &[StateId]) -> BTreeSet<StateId> {
        let names: BTreeSet<StateId> = states.iter().map(|id| self.name(*id)).collect();
        let is_newest = |id: &StateId| !names.iter().any(|other| other != id && self.is_before(*id, *other));
        names.iter().copied().filter(is_newest).collect()
    }

    /// The children of a state among those that are somewhere.
    pub fn children(&self, id: StateId, here: &BTreeSet<StateId>) -> usize {
        let name = self.name(id);
        here.iter().filter(|other| self.states[other].parents.contains(&name)).count()
    }

    /// Whether a begin constraint holds at a state, where these states are.
    pub fn begins(
        &self,
        constraint: &Constraint,
        at: StateId,
        anchor: StateId,
        here: &BTreeSet<StateId>,
    ) -> bool {
        constraint.holds(|term| match term {
            Term::NoBranching => self.children(at, here) == 0,
            Term::KBranching(k) => self.children(at, here) + 1 < *k as usize,
            Term::Parent => self.name(anchor) == self.name(at),
            Term::Ancestor => self.is_before(anchor, at),
            Term::State(ids) => ids.iter().any(|id| self.name(*id) == self.name(at)),
            _ => true,
        })
    }

    /// The states below one read state at which a transaction may commit, among those that are here. `branches` are its
    /// read states, or where it is known to commit below them.
    pub fn ends(
        &self,
        wanted: &Wanted<'_>,
        branches: &[StateId],
        read: StateId,
        here: &BTreeSet<StateId>,
    ) -> BTreeSet<StateId> {
        let is_merge = wanted.reads.len() > 1;
        let others = branches.iter().filter(|other| **other != read);
        let divided: BTreeSet<Key> = match is_merge {
            true => others.flat_map(|other| self.beside(*other, read)).collect(),
            false => BTreeSet::new(),
        };
        let fits = |at: &StateId| {
            let since = self.beside(*at, read);
            let has_read = !since.is_disjoint(wanted.read) || !since.is_disjoint(&divided);
            let has_written = !since.is_disjoint(&wanted.written);
            let holds = wanted.end.holds(|term| match term {
                Term::Serializability => !has_read,
                Term::SnapshotIsolation => !has_written,
                Term::Any | Term::ReadCommitted => true,
                other => self.begins(&Constraint::of(other.clone()), *at, wanted.anchor, here),
            });
            self.is_before(read, *at) && holds && !(is_merge && has_read)
        };
        here.iter().copied().filter(fits).collect()
    }
}
