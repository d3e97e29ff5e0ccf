//! Forgetting states that no transaction can need, and the versions that only they told apart (section 6.3).
//!
//! Three passes. What is above the ceilings of all who must agree is marked, from the ceilings up. A marked state is
//! safe if nothing that runs or waits holds it and all its ancestors are safe, from the top down. A safe state with one
//! child is taken over by that child, from the bottom up; fork points stay. The taker-over answers for the name, the
//! keys and the versions of what it took: of several versions that are now seen from one place, only the newest can
//! ever be read.

use crate::Key;
use crate::ceiling::{Ceilings, Collection};
use crate::chain::Place;
use crate::dag::Dag;
use crate::id::StateId;
use crate::records::{Records, Version};
use ensue_types::{DatacenterId, Rule};
use std::collections::{BTreeMap, BTreeSet};

/// What a collection works on.
pub struct Collector<'a> {
    pub dag: &'a mut Dag,
    pub records: &'a mut Records,
    pub ceilings: &'a Ceilings,
    /// Read by a transaction that runs, or a parent of a commit that waits.
    pub held: &'a BTreeSet<StateId>,
    pub site: DatacenterId,
    /// All that must agree, this one among them.
    pub sites: &'a BTreeSet<DatacenterId>,
    pub collection: Collection,
}

/// What was taken over.
#[derive(Default)]
struct Taken {
    states: BTreeMap<StateId, StateId>,
    places: BTreeMap<Place, Place>,
    keys: BTreeSet<Key>,
}

impl Collector<'_> {
    /// Collects what can be; says how many states that were.
    pub fn collect(&mut self) -> usize {
        let safe = self.safe(&self.marked());
        let mut taken = Taken::default();
        for id in safe.into_iter().rev() {
            let children = &self.dag.states[&id].children;
            let forks = children.len() > 1 && Rule::ForkPointsStay.holds();
            if let Some(child) = children.last().copied().filter(|_| !forks) {
                self.take_over(id, child, &mut taken);
            }
        }
        if !taken.states.is_empty() {
            if let Some(taker) = taken.states.get(&self.dag.base) {
                self.dag.base = *taker;
            }
            self.sort_writes(&taken);
            self.rename_promoted(&taken);
            self.forget_torn();
            let is_alone = self.is_base_alone();
            if is_alone {
                self.settle_base(&mut taken);
            }
            self.promote_records(&taken, is_alone);
            let mut used = BTreeMap::new();
            for place in self.dag.states.values().map(|state| state.place) {
                let lowest = used.entry(place.chain).or_insert(place.position);
                *lowest = place.position.min(*lowest);
            }
            self.dag.chains.keep(&used);
        }
        taken.states.len()
    }

    /// What is above the ceilings of all who must agree.
    fn marked(&self) -> BTreeSet<StateId> {
        let mut marked = self.ceilings.above(self.dag, self.site);
        if self.collection == Collection::Pessimistic && Rule::EverySiteAgrees.holds() {
            for site in self.sites.iter().filter(|site| **site != self.site) {
                let above = self.ceilings.above(self.dag, *site);
                marked.retain(|id| above.contains(id));
            }
        }
        marked
    }

    /// The marked states that nothing holds, all of whose ancestors are safe, too.
    fn safe(&self, marked: &BTreeSet<StateId>) -> BTreeSet<StateId> {
        let mut safe = BTreeSet::new();
        for id in marked {
            let held = self.held.contains(id) && Rule::RunningHoldsItsState.holds();
            if !held && self.dag.states[id].parents.iter().all(|parent| safe.contains(parent)) {
                safe.insert(*id);
            }
        }
        safe
    }

    /// The child takes over the identity of its parent.
    fn take_over(&mut self, id: StateId, child: StateId, taken: &mut Taken) {
        let state = self.dag.states.remove(&id).expect("a safe state is live");
        for parent in &state.parents {
            let children =
                &mut self.dag.states.get_mut(parent).expect("a live state's parents are live").children;
            children.remove(&id);
            children.insert(child);
        }
        for other in state.children.iter().filter(|other| **other != child) {
            // Only where fork points do not stay.
            let other = self.dag.states.get_mut(other).expect("a live state's children are live");
            other.parents.retain(|parent| *parent != id);
        }
        self.inherit_parents(id, child, &state.parents);
        let taker = self.dag.states.get_mut(&child).expect("a live state's children are live");
        if Rule::WriteSetsArePromoted.holds() {
            taker.writes.extend(state.writes.iter().cloned());
        }
        taker.torn_from.extend(state.torn_from);
        taker.torn_from.sort_unstable_by(|a, b| b.cmp(a));
        taker.torn_from.dedup();
        // A checkpoint has room for so many names, and each of them says that something is not known.
        taker.torn_from.truncate(usize::from(u16::MAX));
        taken.keys.extend(state.writes);
        taken.places.insert(state.place, taker.place);
        taken.states.insert(id, child);
    }

    /// Once for each that took over, however many it took: one may take tens of thousands.
    fn sort_writes(&mut self, taken: &Taken) {
        let takers: BTreeSet<StateId> = taken.states.values().copied().collect();
        for taker in takers {
            let taker = self.dag.states.get_mut(&taker).expect("who takes over lives on");
            taker.writes.sort_unstable();
            taker.writes.dedup();
        }
    }

    /// Whether nothing stands beside the base, and nothing can come there any more. All have promised, so what was made
    /// beside it is here; but this site may have decided alone before it was started anew, and what came late then does
    /// not come from the base.
    fn is_base_alone(&self) -> bool {
        let sources = self.dag.states.values().filter(|state| state.parents.is_empty());
        self.collection == Collection::Pessimistic && !self.dag.has_torn && sources.count() == 1
    }

    /// Nobody will ask what was written on the way to a base that is alone, and its versions, and those that it took
    /// over, are seen by all: whoever takes it over one day need not know of them.
    fn settle_base(&mut self, taken: &mut Taken) {
        let base = self.dag.base;
        let is_taker = taken.states.values().any(|taker| *taker == base);
        if !is_taker {
            return;
        }
        let state = self.dag.states.get_mut(&base).expect("the base is live");
        taken.keys.extend(std::mem::take(&mut state.writes));
        let place = state.place;
        taken.places.values_mut().filter(|to| **to == place).for_each(|to| *to = Place::BASE);
        taken.places.insert(place, Place::BASE);
    }

    /// A taker-over comes from what the taken state came from. What it comes from through another parent, too, is none:
    /// a long branch that was merged again and again would keep a fork point of each time.
    fn inherit_parents(&mut self, id: StateId, child: StateId, parents: &[StateId]) {
        let own = self.dag.states[&child].parents.iter().filter(|parent| **parent != id);
        let all: Vec<StateId> = own.chain(parents).copied().collect();
        let newest = self.dag.newest_of(all.iter().copied());
        for parent in all.iter().filter(|parent| !newest.contains(parent)) {
            let parent = self.dag.states.get_mut(parent).expect("a live state's parents are live");
            parent.children.remove(&child);
        }
        self.dag.states.get_mut(&child).expect("a live state's children are live").parents = newest;
    }

    /// Names of collected states go on to their takers-over.
    fn rename_promoted(&mut self, taken: &Taken) {
        for taker in self.dag.promoted.values_mut() {
            if let Some(next) = taken.states.get(taker) {
                *taker = *next;
            }
        }
        self.dag.promoted.extend(&taken.states);
        let gone = |state: &StateId| taken.states.get(state).copied();
        let aliases: Vec<(StateId, StateId)> =
            self.dag.aliases.iter().filter_map(|(alias, state)| Some((*alias, gone(state)?))).collect();
        for (alias, taker) in aliases {
            self.dag.aliases.remove(&alias);
            self.dag.promoted.insert(alias, taker);
        }
    }

    /// What a state was torn from and comes from again, by a merge that it took over, is no gap any more.
    fn forget_torn(&mut self) {
        if !self.dag.has_torn {
            return;
        }
        let torn = self.dag.states.iter().filter(|(_, state)| !state.torn_from.is_empty());
        let left: Vec<(StateId, Vec<StateId>)> =
            torn.map(|(id, state)| (*id, self.dag.torn(*id, &state.torn_from))).collect();
        self.dag.has_torn = false;
        for (id, names) in left {
            self.dag.tear(id, names);
        }
    }

    /// Versions are seen from where their state was taken over to. Of those seen from one place the newest stays.
    fn promote_records(&mut self, taken: &Taken, drops_deletions: bool) {
        let keeps_ids = Rule::VersionsKeepTheirIds.holds();
        for key in &taken.keys {
            self.records.change(key, |versions| {
                for version in versions.iter_mut() {
                    if let Some(place) = taken.places.get(&version.place) {
                        version.place = *place;
                        if !keeps_ids {
                            let taker = self.dag.states.iter().find(|(_, state)| state.place == *place);
                            version.id = taker.map_or(version.id, |(id, _)| *id);
                        }
                    }
                }
                keep_newest(versions);
                // Everything that comes from now on comes from the base and is newer than what the base took over.
                let is_over = |version: &Version| version.value.is_none() && version.place == Place::BASE;
                if drops_deletions && versions.first().is_some_and(is_over) {
                    versions.remove(0);
                }
            });
        }
    }
}

/// Of the versions that are seen from one place, only the newest.
fn keep_newest(versions: &mut Vec<Version>) {
    let mut places = BTreeSet::new();
    versions.sort_by_key(|version| version.id);
    let mut kept: Vec<Version> = Vec::with_capacity(versions.len());
    for version in versions.drain(..).rev() {
        if places.insert(version.place) {
            kept.push(version);
        }
    }
    kept.reverse();
    *versions = kept;
}
