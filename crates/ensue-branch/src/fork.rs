//! Branches compared: where they forked, and what they have both written (section 6.2).
//!
//! Branches that forked once have one fork point. After merges that crossed there are several, and a merge that takes one of them for
//! all counts some of the past twice (trap 46). Each fork point therefore has a weight: what the branches together have seen is the sum of
//! what each has, plus the weighted sum of what the fork points have, by inclusion and exclusion.

use crate::Key;
use crate::dag::Dag;
use crate::id::StateId;
use std::collections::{BTreeMap, BTreeSet};

type Weights = BTreeMap<StateId, i64>;

/// The fork points of states with their weights, highest first.
pub fn fork_points(dag: &Dag, states: &[StateId], all: bool) -> Vec<(StateId, i64)> {
    let states = dag.newest_of(states.iter().copied());
    let mut weights = weigh(dag, &states, &mut BTreeMap::new());
    for state in &states {
        *weights.entry(*state).or_default() -= 1;
    }
    let points = weights.into_iter().rev().filter(|(_, weight)| *weight != 0);
    if all { points.collect() } else { points.take(1).collect() }
}

/// How often the past of each state counts in the past of all of these together.
fn weigh(dag: &Dag, states: &[StateId], known: &mut BTreeMap<Vec<StateId>, Weights>) -> Weights {
    if let Some(weights) = known.get(states) {
        return weights.clone();
    }
    let mut weights = Weights::new();
    for (place, state) in states.iter().enumerate() {
        *weights.entry(*state).or_default() += 1;
        let shared = shared(dag, *state, &states[..place]);
        for (state, weight) in weigh(dag, &shared, known) {
            *weights.entry(state).or_default() -= weight;
        }
    }
    known.insert(states.to_vec(), weights.clone());
    weights
}

/// The newest states that both a state and one of the others see, highest first.
fn shared(dag: &Dag, state: StateId, others: &[StateId]) -> Vec<StateId> {
    let mut open = BTreeSet::from([state]);
    let mut found: Vec<StateId> = Vec::new();
    while let Some(id) = open.pop_last() {
        if found.iter().any(|newer| dag.sees(*newer, id)) {
            continue;
        }
        if others.iter().any(|other| dag.sees(*other, id)) {
            found.push(id);
        } else {
            open.extend(&dag.states[&id].parents);
        }
    }
    found
}

/// What branches do not share: the keys that states wrote which not all of them see, each with the branches that do, a bit each.
pub struct Divide {
    writers: BTreeMap<Key, BTreeSet<Vec<u64>>>,
}

impl Divide {
    pub fn between(dag: &Dag, branches: &[StateId]) -> Divide {
        let mut open: BTreeSet<StateId> = branches.iter().copied().collect();
        let mut writers: BTreeMap<Key, BTreeSet<Vec<u64>>> = BTreeMap::new();
        while let Some(id) = open.pop_last() {
            let mut seen_by = vec![0; branches.len().div_ceil(64)];
            let mut count = 0;
            for (place, branch) in branches.iter().enumerate() {
                if dag.sees(*branch, id) {
                    seen_by[place / 64] |= 1 << (place % 64);
                    count += 1;
                }
            }
            if count < branches.len() {
                let state = &dag.states[&id];
                open.extend(&state.parents);
                for key in &state.writes {
                    writers.entry(key.clone()).or_default().insert(seen_by.clone());
                }
            }
        }
        Divide { writers }
    }

    /// The keys that two of the branches have both written since they forked: each sees a write that the other does not.
    pub fn conflicts(self) -> Vec<Key> {
        let in_conflict = |seen_by: &BTreeSet<Vec<u64>>| {
            let all: Vec<&Vec<u64>> = seen_by.iter().collect();
            all.iter().enumerate().any(|(place, one)| all[..place].iter().any(|two| each_alone(one, two)))
        };
        self.writers.into_iter().filter(|(_, seen_by)| in_conflict(seen_by)).map(|(key, _)| key).collect()
    }

    /// Whether another branch wrote a key so that one of them, by its place, does not see it.
    pub fn hides(&self, key: &Key, place: usize) -> bool {
        let unseen = |seen_by: &Vec<u64>| seen_by[place / 64] >> (place % 64) & 1 == 0;
        self.writers.get(key).is_some_and(|seen_by| seen_by.iter().any(unseen))
    }
}

/// Whether each of two sets of branches has one that the other lacks.
fn each_alone(one: &[u64], two: &[u64]) -> bool {
    let lacks = |a: &[u64], b: &[u64]| a.iter().zip(b).any(|(a, b)| a & !b != 0);
    lacks(one, two) && lacks(two, one)
}
