//! Ceilings: promises that no transaction of a site will begin above a state (section 6.3).
//!
//! A site's own ceilings hold at once for its new transactions. The others are told only when no transaction that runs
//! here reads above them, by the same stream that carries this site's commits: whoever has a ceiling has every commit
//! that was made before it.

use crate::dag::Dag;
use crate::id::StateId;
use ensue_types::DatacenterId;
use std::collections::{BTreeMap, BTreeSet};

/// Who must have promised before a state is collected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Collection {
    /// Every site.
    #[default]
    Pessimistic,
    /// This site alone. What comes late for a collected state is asked for from its origin.
    Optimistic,
}

#[derive(Clone, Debug, Default)]
pub struct Ceilings {
    /// Of each site, those that are told; of this one, all.
    placed: BTreeMap<DatacenterId, BTreeSet<StateId>>,
    /// What is above this site's own.
    above: BTreeSet<StateId>,
    /// Own ones that the others have not been told.
    untold: BTreeSet<StateId>,
}

impl Ceilings {
    /// A ceiling of this site on a state that is here.
    pub fn place_own(&mut self, dag: &Dag, site: DatacenterId, state: StateId) {
        let mut open = dag.states[&state].parents.clone();
        while let Some(id) = open.pop() {
            if self.above.insert(id) {
                open.extend(&dag.states[&id].parents);
            }
        }
        self.place(site, state);
    }

    /// A state came of which this site's ceiling was here before it, as after a lost tail: the promise holds for what
    /// is above it.
    pub fn note_state(&mut self, dag: &Dag, site: DatacenterId, state: StateId) {
        if self.placed.get(&site).is_some_and(|placed| placed.contains(&state)) {
            self.place_own(dag, site, state);
        }
    }

    /// A ceiling of any site. The state need not be here yet.
    pub fn place(&mut self, site: DatacenterId, state: StateId) {
        self.placed.entry(site).or_default().insert(state);
    }

    pub fn tell_later(&mut self, state: StateId) {
        self.untold.insert(state);
    }

    /// The own ceilings that the others may be told now: nothing that runs reads above them.
    pub fn take_told(&mut self, dag: &Dag, reads: &BTreeSet<StateId>) -> Vec<StateId> {
        let is_above = |read: &StateId, ceiling: StateId| *read != ceiling && dag.sees(ceiling, *read);
        let may_go = |ceiling: &StateId| !reads.iter().any(|read| is_above(read, *ceiling));
        let told: Vec<StateId> = self.untold.iter().copied().filter(may_go).collect();
        self.untold.retain(|ceiling| !told.contains(ceiling));
        told
    }

    pub fn has_untold(&self) -> bool {
        !self.untold.is_empty()
    }

    /// Whether no transaction of this site may begin at a state.
    pub fn is_above(&self, id: StateId) -> bool {
        self.above.contains(&id)
    }

    pub fn of(&self, site: DatacenterId) -> impl Iterator<Item = StateId> + '_ {
        self.placed.get(&site).into_iter().flatten().copied()
    }

    pub fn sites(&self) -> impl Iterator<Item = (DatacenterId, StateId)> + '_ {
        self.placed.iter().flat_map(|(site, states)| states.iter().map(|state| (*site, *state)))
    }

    /// The states above all the ceilings of a site.
    pub fn above(&self, dag: &Dag, site: DatacenterId) -> BTreeSet<StateId> {
        let here =
            self.of(site).filter_map(|id| dag.states.get(&dag.aliases.get(&id).copied().unwrap_or(id)));
        let mut open: Vec<StateId> = here.flat_map(|state| state.parents.iter().copied()).collect();
        let mut above = BTreeSet::new();
        while let Some(id) = open.pop() {
            if above.insert(id) {
                open.extend(&dag.states[&id].parents);
            }
        }
        above
    }

    /// Forgets ceilings on states that are gone, and those that another ceiling of the same site is below.
    pub fn tidy(&mut self, dag: &Dag, seen: impl Fn(StateId) -> bool) {
        self.above.retain(|id| dag.states.contains_key(id));
        self.untold.retain(|id| dag.states.contains_key(id));
        let sites: Vec<DatacenterId> = self.placed.keys().copied().collect();
        for site in sites {
            let above = self.above(dag, site);
            let placed = self.placed.get_mut(&site).expect("one of its keys");
            let is_here =
                |id: &StateId| dag.states.contains_key(id) || dag.aliases.contains_key(id) || !seen(*id);
            placed.retain(|id| is_here(id) && !above.contains(id));
        }
    }

    pub fn rename(&mut self, old: StateId, new: StateId) {
        let sets = self.placed.values_mut().chain([&mut self.above, &mut self.untold]);
        for set in sets {
            if set.remove(&old) {
                set.insert(new);
            }
        }
    }

    pub fn forget_site(&mut self, site: DatacenterId) {
        self.placed.remove(&site);
    }
}
