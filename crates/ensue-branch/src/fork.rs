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

/// The keys that two of these states' branches have both written since they forked.
pub fn conflicts(dag: &Dag, states: &[StateId]) -> BTreeSet<Key> {
    let mut keys = BTreeSet::new();
    for (place, one) in states.iter().enumerate() {
        for other in &states[..place] {
            let theirs = dag.writes_of(&dag.unseen(*other, &[*one]));
            let mine = dag.writes_of(&dag.unseen(*one, &[*other]));
            keys.extend(mine.into_iter().filter(|key| theirs.contains(key)));
        }
    }
    keys
}

/// What the other branches of a merge wrote that one of them does not see.
pub fn divided(dag: &Dag, states: &[StateId], from: StateId) -> BTreeSet<Key> {
    let others = states.iter().filter(|other| **other != from);
    others.flat_map(|other| dag.writes_of(&dag.unseen(*other, &[from]))).collect()
}
