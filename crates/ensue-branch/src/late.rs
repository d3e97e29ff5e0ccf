//! What comes below a state that is collected here: it is asked for whole, from a site that has it (section 6.4).

use crate::Key;
use crate::branches::{Branches, Offered};
use crate::chain::Place;
use crate::commit::{Commit, Rebuilt, Write, detached};
use crate::dag::{Found, State};
use crate::id::StateId;
use crate::records::Version;
use ensue_types::Rule;
use std::collections::BTreeMap;

impl Branches {
    /// Those that wait because what they came from was collected here.
    pub fn late(&self) -> Vec<StateId> {
        self.waiting.late().iter().copied().collect()
    }

    /// The same of one that waits, by looking at all that it came from.
    pub(crate) fn is_late(&self, commit: &Commit) -> bool {
        let found: Vec<Found> = commit.parents.iter().map(|parent| self.find(*parent)).collect();
        found.iter().all(|found| *found != Found::Unknown)
            && found.iter().any(|found| matches!(found, Found::Collected(_)))
    }

    /// What another site lacks of a state: all that is seen there, and at none of the states that it has.
    ///
    /// A state that some site does not have for good is nowhere collected; so it is whole here, and all that it comes
    /// from has been there.
    pub fn rebuild(&self, id: StateId, theirs: &[StateId]) -> Option<Rebuilt> {
        let state = self.live(id).ok()?;
        let from = self.dag.place(state);
        // Their names, by the states that they are here; and of those that are here no more, which only they can tell
        // apart.
        let mut shared: BTreeMap<StateId, StateId> = BTreeMap::new();
        let mut parents = Vec::new();
        for name in theirs {
            match self.find(*name) {
                Found::Live(mine) if mine != state && self.dag.sees(state, mine) => {
                    shared.insert(mine, *name);
                }
                Found::Collected(taker) if self.dag.sees(state, taker) => parents.push(*name),
                _ => {}
            }
        }
        let newest = self.dag.newest_of(shared.keys().copied());
        let places = self.places(&newest);
        let mut versions = Vec::new();
        for (_, key, of_key) in self.records.walk(0) {
            let seen = |place: Place| {
                of_key.iter().rev().find(move |version| self.dag.chains.sees(place, version.place))
            };
            let known = places.iter().filter_map(|place| seen(*place)).map(|version| version.id).max();
            if let Some(version) = seen(from).filter(|version| Some(version.id) != known) {
                let writer = if version.id == state { id } else { version.id };
                versions.push((writer, Write { key: key.clone(), value: version.value.clone() }));
            }
        }
        parents.extend(newest.iter().map(|mine| shared[mine]));
        let names = self.dag.aliases.iter().filter(|(_, other)| **other == state).map(|(name, _)| *name);
        let equals = names.chain([state]).filter(|name| *name != id).take(usize::from(u16::MAX)).collect();
        Some(Rebuilt { id, equals, parents, versions })
    }

    /// A state that was sent whole takes its place, if it still waits and what it was said to come from is here; else
    /// it is asked for again.
    pub fn accept(&mut self, rebuilt: &Rebuilt) -> Offered {
        let mut offered = Offered::default();
        let Some((tag, commit)) = self.waiting.get(rebuilt.id).cloned() else { return offered };
        let Ok(parents) = self.live_all(&rebuilt.parents) else { return offered };
        let known = rebuilt.equals.iter().map(|name| self.find(*name)).find(|found| *found != Found::Unknown);
        let known = known.or_else(|| self.equal_to_late(&commit).map(Found::Live));
        self.waiting.remove(rebuilt.id);
        match known {
            Some(Found::Live(equal)) => self.make_one(equal, rebuilt.id),
            Some(Found::Collected(taker)) => {
                self.dag.promoted.insert(rebuilt.id, taker);
            }
            _ => self.put_whole(rebuilt, &commit, parents),
        }
        self.note_tag(rebuilt.id, tag);
        offered.applied.push(tag);
        let woken = self.waiting.take_up(rebuilt.id);
        self.put_in(woken.into_iter().rev().collect(), &mut offered);
        offered
    }

    /// What was encoded last is durable.
    pub fn note_kept(&mut self) {
        self.late_kept = std::mem::take(&mut self.late_encoded);
    }

    /// Whether a state came and can have its place here only if another site has it, whatever is forgotten by a
    /// restart: one that began with an older DAG would still have what it came from.
    pub fn lacks_for_good(&self, id: StateId) -> bool {
        self.discarded.contains(&id) || self.late_kept.contains(&id) && self.waiting.contains(id)
    }

    /// What came late is whole at no site that lives: it goes, and what came from it.
    pub fn give_up(&mut self, id: StateId) -> Offered {
        let mut offered = Offered::default();
        let Some((tag, _)) = self.waiting.remove(id) else { return offered };
        self.discarded.insert(id);
        offered.discarded.push(id);
        offered.applied.push(tag);
        let woken = self.waiting.take_up(id);
        self.put_in(woken.into_iter().rev().collect(), &mut offered);
        offered
    }

    fn put_whole(&mut self, rebuilt: &Rebuilt, commit: &Commit, parents: Vec<StateId>) {
        let id = rebuilt.id;
        let parents = self.dag.newest_of(parents);
        let own = |(_, write): &(StateId, Write)| self.records.own(&write.key);
        let mut keys: Vec<Key> = rebuilt.versions.iter().map(own).collect();
        keys.sort_unstable();
        self.dag.insert(id, parents, keys);
        self.note_joined(commit);
        self.ceilings.note_state(&self.dag, self.site, id);
        let torn_from = self.dag.torn(id, &commit.parents);
        self.dag.tear(id, torn_from);
        let place = self.dag.place(id);
        for (writer, write) in &rebuilt.versions {
            let (key, value) = (self.records.own(&write.key), write.value.as_ref().map(detached));
            self.records.insert(&key, Version { id: *writer, place, value });
        }
    }

    /// A merge that is here and equals one that came late (trap 11): what they joined may be collected.
    pub(crate) fn equal_to_late(&self, commit: &Commit) -> Option<StateId> {
        if commit.parents.len() < 2 || !Rule::EqualMergesAreOne.holds() {
            return None;
        }
        let is_equal = |(id, state): &(&StateId, &State)| {
            let own = |key: &Key| self.records.versions(key).iter().find(|version| version.id == **id);
            let wrote = state.writes.iter().filter_map(|key| Some((key, own(key)?)));
            state.joined == commit.parents
                && wrote
                    .map(|(key, version)| (key, &version.value))
                    .eq(commit.writes.iter().map(|w| (&w.key, &w.value)))
        };
        self.dag.states.iter().find(is_equal).map(|(id, _)| *id)
    }
}
