//! The states of one site: who came from whom, what each wrote, which are leaves, and what became of those that were
//! collected.
//!
//! States go in below states that are here, and never move. An id that is no longer a state may still name one: that of
//! an equal merge (an alias), or that of a collected state, which its taker-over answers for where its own content does
//! not matter.

use crate::Key;
use crate::branches::Tag;
use crate::chain::{Chains, Place};
use crate::id::StateId;
use ensue_types::Rule;
use std::collections::{BTreeMap, BTreeSet};

/// One state.
#[derive(Clone, Debug)]
pub struct State {
    pub place: Place,
    /// Highest first.
    pub parents: Vec<StateId>,
    pub children: BTreeSet<StateId>,
    /// Where its commit stands in its site's stream, and where those of equal merges stand in theirs.
    pub tags: Vec<Tag>,
    /// The newest merge that it sees, itself included, of those that this site has known since it started; else the
    /// root.
    pub merge: StateId,
    /// The keys that it wrote, and that the states which it took over did; sorted.
    pub writes: Vec<Key>,
    /// What its commit joined, if it did: by these names an equal merge is known though they are collected.
    pub joined: Vec<StateId>,
    /// States that it, or one that it took over, comes from, and that were collected here before it came: it stands
    /// beside what took them over.
    pub torn_from: Vec<StateId>,
}

/// What an id stands for here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Live(StateId),
    /// It was collected; this state took it over.
    Collected(StateId),
    Unknown,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Dag {
    pub states: BTreeMap<StateId, State>,
    pub leaves: BTreeSet<StateId>,
    pub chains: Chains,
    /// Collected states by their takers-over. Those that every state comes from are forgotten: the base took them over.
    pub promoted: BTreeMap<StateId, StateId>,
    /// Merges that equal one that is here.
    pub aliases: BTreeMap<StateId, StateId>,
    /// The number of the place of the last merge.
    pub last_merge: u64,
    /// What old names that are forgotten stand for: the state that took them all over.
    pub base: StateId,
    /// Some state may be torn from what it came from. Each merge asks, and looking at all states would take longer than
    /// it.
    pub has_torn: bool,
}

impl Dag {
    /// With the root only.
    pub fn new() -> Dag {
        let mut dag = Dag::empty();
        let place = dag.chains.begin();
        dag.put(StateId::ROOT, Vec::new(), Vec::new(), place);
        dag
    }

    pub fn empty() -> Dag {
        Dag {
            states: BTreeMap::new(),
            leaves: BTreeSet::new(),
            chains: Chains::default(),
            promoted: BTreeMap::new(),
            aliases: BTreeMap::new(),
            last_merge: 0,
            base: StateId::ROOT,
            has_torn: false,
        }
    }

    /// Adds a state below its parents, which are all here.
    pub fn insert(&mut self, id: StateId, mut parents: Vec<StateId>, writes: Vec<Key>) {
        parents.sort_unstable_by(|a, b| b.cmp(a));
        parents.dedup();
        let places: Vec<Place> = parents.iter().map(|parent| self.states[parent].place).collect();
        let place = match places[..] {
            [] => self.chains.begin(),
            [parent] => self.chains.below(parent, Rule::ForksBeginChains.holds()),
            _ => self.chains.below_all(&places),
        };
        self.put(id, parents, writes, place);
    }

    fn put(&mut self, id: StateId, parents: Vec<StateId>, writes: Vec<Key>, place: Place) {
        for parent in &parents {
            self.leaves.remove(parent);
            let parent = self.states.get_mut(parent).expect("a state goes in below states that are here");
            parent.children.insert(id);
        }
        if parents.len() > 1 {
            self.last_merge = place.order;
        }
        let merge = match parents.len() {
            0 | 1 => parents.first().map_or(StateId::ROOT, |parent| self.states[parent].merge),
            _ => id,
        };
        let state = State {
            place,
            parents,
            children: BTreeSet::new(),
            tags: Vec::new(),
            merge,
            writes,
            joined: Vec::new(),
            torn_from: Vec::new(),
        };
        self.states.insert(id, state);
        self.leaves.insert(id);
    }

    /// What an id stands for. `seen` says whether a state of this name has ever been here.
    pub fn find(&self, id: StateId, seen: bool) -> Found {
        let id = self.aliases.get(&id).copied().unwrap_or(id);
        if self.states.contains_key(&id) {
            return Found::Live(id);
        }
        match self.promoted.get(&id) {
            Some(taker) => Found::Collected(*taker),
            None if seen => Found::Collected(self.base),
            None => Found::Unknown,
        }
    }

    pub fn place(&self, id: StateId) -> Place {
        self.states[&id].place
    }

    /// Whether `from` is `state`, or comes from it. Both are live.
    pub fn sees(&self, from: StateId, state: StateId) -> bool {
        self.chains.sees(self.place(from), self.place(state))
    }

    /// Those among states that no other of them comes from, highest first.
    pub fn newest_of(&self, states: impl IntoIterator<Item = StateId>) -> Vec<StateId> {
        let mut states: Vec<StateId> = states.into_iter().collect();
        states.sort_unstable_by(|a, b| b.cmp(a));
        states.dedup();
        let mut newest: Vec<StateId> = Vec::new();
        for state in states {
            // No state comes from a leaf.
            if self.leaves.contains(&state) || !newest.iter().any(|newer| self.sees(*newer, state)) {
                newest.push(state);
            }
        }
        newest
    }

    /// The states that `from` sees and none of `by` does, highest first.
    pub fn unseen(&self, from: StateId, by: &[StateId]) -> Vec<StateId> {
        let is_unseen = |id: StateId| !by.iter().any(|by| self.sees(*by, id));
        let mut open = BTreeSet::from([from]);
        let mut found = Vec::new();
        while let Some(id) = open.pop_last() {
            if is_unseen(id) {
                found.push(id);
                open.extend(&self.states[&id].parents);
            }
        }
        found
    }

    /// The keys that these states wrote.
    pub fn writes_of(&self, states: &[StateId]) -> BTreeSet<Key> {
        states.iter().flat_map(|id| self.states[id].writes.iter().cloned()).collect()
    }

    /// Of what a state comes from, by these names, that which is collected here and whose taker-over it does not come
    /// from.
    pub fn torn(&self, id: StateId, names: &[StateId]) -> Vec<StateId> {
        let is_beside = |name: &StateId| match self.find(*name, true) {
            Found::Collected(taker) => !self.sees(id, taker),
            _ => false,
        };
        names.iter().copied().filter(is_beside).collect()
    }

    /// A state is torn from what these names stand for.
    pub fn tear(&mut self, id: StateId, names: Vec<StateId>) {
        self.has_torn |= !names.is_empty();
        self.states.get_mut(&id).expect("a caller has put it in").torn_from = names;
    }

    /// A state is known by another name, lower than its own and than its children's.
    pub fn rename(&mut self, old: StateId, new: StateId) {
        let state = self.states.remove(&old).expect("renamed by a caller who found it");
        for parent in &state.parents {
            let children =
                &mut self.states.get_mut(parent).expect("a live state's parents are live").children;
            children.remove(&old);
            children.insert(new);
        }
        for child in &state.children {
            let child = self.states.get_mut(child).expect("a live state's children are live");
            child.parents.retain(|parent| *parent != old);
            child.parents.push(new);
            child.parents.sort_unstable_by(|a, b| b.cmp(a));
        }
        if self.leaves.remove(&old) {
            self.leaves.insert(new);
        }
        self.states.insert(new, state);
        if self.base == old {
            self.base = new;
        }
        for named in self.promoted.values_mut().chain(self.aliases.values_mut()) {
            if *named == old {
                *named = new;
            }
        }
        self.aliases.insert(old, new);
    }
}
