//! What comes below a state that is collected here: it is asked for whole, from the site that made it (section 6.4).

use crate::branches::{Branches, Offered};
use crate::chain::Place;
use crate::commit::{Commit, Rebuilt, Write};
use crate::dag::Found;
use crate::id::StateId;
use crate::records::Version;
use std::collections::BTreeSet;

impl Branches {
    /// Those that wait because what they came from was collected here.
    pub fn late(&self) -> Vec<StateId> {
        let is_late = |commit: &Commit| {
            let found: Vec<Found> = commit.parents.iter().map(|parent| self.find(*parent)).collect();
            found.iter().all(|found| *found != Found::Unknown)
                && found.iter().any(|found| matches!(found, Found::Collected(_)))
        };
        self.waiting.iter().filter(|(_, commit)| is_late(commit)).map(|(_, commit)| commit.id).collect()
    }

    /// What another site lacks of a state: all that is seen there, and at none of the states that it has. Where the state was collected
    /// here, too, its taker-over stands for it.
    pub fn rebuild(&self, id: StateId, theirs: &[StateId]) -> Option<Rebuilt> {
        let (Found::Live(state) | Found::Collected(state)) = self.find(id) else { return None };
        let from = self.dag.place(state);
        let is_shared = |other: &StateId| match self.find(*other) {
            Found::Live(other) => other != state && self.dag.sees(state, other),
            Found::Collected(taker) => *other < id && self.dag.sees(state, taker),
            Found::Unknown => false,
        };
        let (live, gone): (Vec<StateId>, Vec<StateId>) =
            theirs.iter().copied().filter(is_shared).partition(|id| self.dag.states.contains_key(id));
        let mut parents = self.dag.newest_of(live);
        let places = self.places(&parents);
        let mut versions = Vec::new();
        for (_, key, of_key) in self.records.walk(0) {
            let seen = |place: Place| {
                of_key.iter().rev().find(move |version| self.dag.chains.sees(place, version.place))
            };
            let newest = places.iter().filter_map(|place| seen(*place)).map(|version| version.id).max();
            if let Some(version) = seen(from).filter(|version| Some(version.id) != newest) {
                versions.push((version.id, Write { key: key.clone(), value: version.value.clone() }));
            }
        }
        // Which of those that are gone here is the newest, only the other site can tell.
        parents.extend(gone);
        Some(Rebuilt { id: state, parents, versions })
    }

    /// A state that was sent whole takes its place; `asked` is what it was asked for, which it may have taken over.
    pub fn accept(&mut self, asked: StateId, rebuilt: &Rebuilt) -> Offered {
        let mut offered = Offered::default();
        let Some((tag, _)) = self.waiting.remove(asked) else { return offered };
        let found = self.find(rebuilt.id);
        if found == Found::Unknown || self.waiting.contains(rebuilt.id) || rebuilt.id == asked {
            let own = self.waiting.remove(rebuilt.id);
            let here = rebuilt.parents.iter().copied().filter(|id| self.dag.states.contains_key(id));
            let parents = self.dag.newest_of(here);
            let keys = rebuilt.versions.iter().map(|(_, write)| write.key.clone()).collect();
            self.dag.insert(rebuilt.id, parents, keys);
            let place = self.dag.place(rebuilt.id);
            for (id, write) in &rebuilt.versions {
                self.records.insert(&write.key, Version { id: *id, place, value: write.value.clone() });
                self.counter = self.counter.max(id.counter());
            }
            // It came before its turn in its site's stream: what stands before it there is still to come.
            self.counter = self.counter.max(rebuilt.id.counter());
            if let Some(position) =
                own.as_ref().map(|(tag, _)| tag.1).or((rebuilt.id == asked).then_some(tag.1))
            {
                self.note_position(rebuilt.id, position);
            }
            offered.applied.extend(own.map(|(tag, _)| tag));
        }
        if rebuilt.id != asked {
            // The taker-over may have been taken over here, too, since this was asked.
            if let Found::Live(taker) | Found::Collected(taker) = self.find(rebuilt.id) {
                self.dag.promoted.insert(asked, taker);
            }
        }
        offered.applied.push(tag);
        for id in BTreeSet::from([asked, rebuilt.id]) {
            let woken = self.waiting.take(id);
            self.put_in(woken, &mut offered);
        }
        offered
    }
}
