//! What can be asked of a branching keyspace: values at states, branches compared, states listed, figures.

use super::{Branches, Metrics, StateView, TransactionId};
use crate::chain::Place;
use crate::constraint::Constraint;
use crate::dag::Found;
use crate::error::Abort;
use crate::fork;
use crate::id::StateId;
use crate::steps::Steps;
use crate::transaction::Mode;
use crate::{Key, Value};
use ensue_types::Rule;
use std::collections::{BTreeMap, BTreeSet};

impl Branches {
    /// The value of a key as it stands at states, the newest by id over all of them.
    pub(super) fn look(&self, key: &Key, at: &[StateId]) -> Value {
        let newest = match (Rule::BranchesAreIsolated.holds(), at) {
            (true, [state]) => self.records.newest(key, &self.dag.chains, &[self.dag.place(*state)]),
            (true, _) => self.records.newest(key, &self.dag.chains, &self.places(at)),
            (false, _) => self.records.versions(key).last(),
        };
        newest.and_then(|version| version.value.clone())
    }

    pub(crate) fn places(&self, states: &[StateId]) -> Vec<Place> {
        states.iter().map(|state| self.dag.place(*state)).collect()
    }

    /// The value of a key at a state (`getForID`).
    pub fn value_at(&self, key: &Key, state: StateId) -> Result<Value, Abort> {
        Ok(self.look(key, &[self.live(state)?]))
    }

    /// The fork points of states, each with its weight, highest first (`findForkPoints`).
    pub fn fork_points(&self, states: &[StateId]) -> Result<Vec<(StateId, i64)>, Abort> {
        let all = Rule::EveryForkPointCounts.holds();
        let states = self.live_all(states)?;
        fork::fork_points(&self.dag, &states, all, &mut Steps::new())
    }

    /// The keys that two of these branches have both written since they forked, sorted (`findConflictWrites`). Where it
    /// is not known where they did: those that they may both have written, and of which they see different versions.
    pub fn conflicts(&self, states: &[StateId]) -> Result<Vec<Key>, Abort> {
        let states = self.live_all(states)?;
        let mut steps = Steps::new();
        let mut conflicts = fork::conflicts(&self.dag, &states, &mut steps)?;
        let torn = fork::torn_states(&self.dag);
        if fork::torn_between(&self.dag, &torn, &states, &mut steps)?.is_some() {
            conflicts.retain(|key| fork::differ(&self.dag, &self.records, key, &states));
        }
        Ok(conflicts)
    }

    /// The keys whose values differ between two states, with both.
    pub fn difference(&self, a: StateId, b: StateId) -> Result<Vec<(Key, Value, Value)>, Abort> {
        let (a, b) = (self.live(a)?, self.live(b)?);
        let between = [self.dag.unseen(a, &[b]), self.dag.unseen(b, &[a])].concat();
        let keys = self.dag.writes_of(&between).into_iter();
        let values = keys.map(|key| (self.look(&key, &[a]), self.look(&key, &[b]), key));
        Ok(values.filter(|(a, b, _)| a != b).map(|(a, b, key)| (key, a, b)).collect())
    }

    /// Whether a merge writes no more than what nobody will see below it any more, of the keys that it writes: it takes
    /// no memory then, but lets go of some.
    pub fn makes_room(&self, id: TransactionId) -> bool {
        let Some(transaction) = self.transactions.get(&id).filter(|it| it.mode == Mode::Merge) else {
            return false;
        };
        let length = |value: &Value| value.as_ref().map_or(0, |value| value.len());
        let places = self.places(&transaction.at);
        let hidden = transaction.writes.keys().map(|key| {
            let seen = |place: &Place| self.records.newest(key, &self.dag.chains, &[*place]);
            let seen = places.iter().filter_map(seen).map(|version| (version.id, length(&version.value)));
            seen.collect::<BTreeMap<StateId, usize>>().values().sum::<usize>()
        });
        transaction.writes.values().map(length).sum::<usize>() <= hidden.sum()
    }

    /// The leaves, highest first.
    pub fn leaves(&self) -> Vec<StateId> {
        self.dag.leaves.iter().rev().copied().collect()
    }

    /// Whether a state is another one or comes from it, both by name. What was collected counts as what took it over.
    pub fn sees(&self, from: StateId, state: StateId) -> bool {
        match (self.find(from), self.find(state)) {
            (Found::Live(from), Found::Live(state) | Found::Collected(state)) => self.dag.sees(from, state),
            _ => false,
        }
    }

    /// The names of live states, highest first.
    pub fn states(&self) -> impl Iterator<Item = StateId> + '_ {
        self.dag.states.keys().rev().copied()
    }

    /// Live states, highest first; with a state, only what it sees.
    pub fn log(&self, from: Option<StateId>) -> Result<impl Iterator<Item = StateView> + '_, Abort> {
        let from = from.map(|state| self.live(state)).transpose()?;
        let ceilings: BTreeSet<StateId> = self.ceilings.of(self.site).collect();
        let states = self.dag.states.iter().rev();
        let seen = states.filter(move |(id, _)| from.is_none_or(|from| self.dag.sees(from, **id)));
        Ok(seen.map(move |(id, state)| StateView {
            id: *id,
            parents: state.parents.clone(),
            writes: state.writes.clone(),
            is_leaf: state.children.is_empty(),
            is_fork: state.children.len() > 1,
            is_merge: state.parents.len() > 1,
            is_ceiling: ceilings.contains(id),
            is_above: self.ceilings.is_above(*id),
        }))
    }

    /// Everything that sites must agree on, for a digest: the leaves and what is seen there, and all states if asked.
    pub fn visit(&self, with_states: bool, mut sink: impl FnMut(&[u8])) {
        let states = self.dag.states.iter().filter(|(_, state)| with_states || state.children.is_empty());
        for (id, state) in states {
            sink(&id.bits().to_le_bytes());
            if with_states {
                state.parents.iter().for_each(|parent| sink(&parent.bits().to_le_bytes()));
                state.writes.iter().for_each(|key| sink(key));
            }
        }
        for leaf in &self.dag.leaves {
            let place = [self.dag.place(*leaf)];
            for (_, key, _) in self.records.walk(0) {
                let newest = self.records.newest(key, &self.dag.chains, &place);
                if let Some(value) = newest.and_then(|version| version.value.as_ref()) {
                    sink(key);
                    sink(value);
                }
            }
        }
    }

    pub fn metrics(&self) -> Metrics {
        Metrics {
            states: self.dag.states.len(),
            leaves: self.dag.leaves.len(),
            chains: self.dag.chains.len(),
            keys: self.records.keys(),
            records: self.records.len(),
            bytes: self.records.bytes() + self.dag.chains.bytes() + self.waiting.bytes() + self.open_bytes,
            waiting: self.waiting.len(),
            transactions: self.transactions.len(),
            promoted: self.dag.promoted.len() + self.dag.aliases.len(),
            collected: self.counts.collected,
            commits: self.counts.commits,
            merges: self.counts.merges,
            aborts: self.counts.aborts,
            forks: self.counts.forks,
        }
    }

    /// A state that is here under this name.
    pub fn live(&self, id: StateId) -> Result<StateId, Abort> {
        match self.find(id) {
            Found::Live(state) => Ok(state),
            Found::Collected(_) => Err(Abort::Collected(id)),
            Found::Unknown => Err(Abort::Unknown(id)),
        }
    }

    pub(crate) fn live_all(&self, ids: &[StateId]) -> Result<Vec<StateId>, Abort> {
        ids.iter().map(|id| self.live(*id)).collect()
    }

    pub(super) fn anchors(&self, anchors: &[StateId]) -> Result<Vec<Found>, Abort> {
        let found = |id: &StateId| match self.anchor(*id) {
            Found::Unknown => Err(Abort::Unknown(*id)),
            found => Ok(found),
        };
        anchors.iter().map(found).collect()
    }

    pub(super) fn check_named(&self, constraint: &Constraint) -> Result<(), Abort> {
        constraint.states().try_for_each(|id| self.live(id).map(|_| ()))
    }
}
