//! Branches compared: where they forked, and what they have both written (section 6.2).
//!
//! Branches that forked once have one fork point. After merges that crossed there are several, and a merge that takes one of them for
//! all counts some of the past twice (trap 46). Each fork point therefore has a weight: what the branches together have seen is the sum of
//! what each has, plus the weighted sum of what the fork points have, by inclusion and exclusion.

use crate::Key;
use crate::chain::Place;
use crate::dag::Dag;
use crate::id::StateId;
use crate::records::Records;
use std::collections::{BTreeMap, BTreeSet};

type Weights = BTreeMap<StateId, i64>;

/// The fork points of states with their weights, highest first.
///
/// If one of them is collected here, and what came from it late stands beside what took it over, that one is the error.
pub fn fork_points(dag: &Dag, states: &[StateId], all: bool) -> Result<Vec<(StateId, i64)>, StateId> {
    let states = dag.newest_of(states.iter().copied());
    let mut known = BTreeMap::new();
    let mut weights = weigh(dag, &states, &mut known);
    if let Some(name) = known.keys().find_map(|branches| torn_between(dag, branches)) {
        return Err(name);
    }
    for state in &states {
        *weights.entry(*state).or_default() -= 1;
    }
    let points = weights.into_iter().rev().filter(|(_, weight)| *weight != 0);
    Ok(if all { points.collect() } else { points.take(1).collect() })
}

/// What a state that came late was torn from, of those that some of these branches see and not all.
pub fn torn_between(dag: &Dag, branches: &[StateId]) -> Option<StateId> {
    if !dag.has_torn {
        return None;
    }
    let pairs = branches.iter().flat_map(|one| branches.iter().map(move |other| (*one, *other)));
    let mut between = pairs.flat_map(|(one, other)| dag.unseen(one, &[other]));
    between.find_map(|id| dag.states[&id].torn_from.first().copied())
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

/// The keys that two of these branches have both written since they forked, sorted: each sees a write that the other does not.
pub fn conflicts(dag: &Dag, branches: &[StateId]) -> Vec<Key> {
    let mut open: BTreeSet<StateId> = branches.iter().copied().collect();
    // Which branches see a state, a bit each; and what was written by states that not all of them see.
    let places: Vec<Place> = branches.iter().map(|branch| dag.place(*branch)).collect();
    let mut seen_by: Vec<Vec<u64>> = Vec::new();
    let mut writes: Vec<(&Key, usize)> = Vec::new();
    while let Some(id) = open.pop_last() {
        let mut bits = vec![0; branches.len().div_ceil(64)];
        let mut count = 0;
        let state = &dag.states[&id];
        for (place, branch) in places.iter().enumerate() {
            if dag.chains.sees(*branch, state.place) {
                bits[place / 64] |= 1 << (place % 64);
                count += 1;
            }
        }
        if count < branches.len() {
            open.extend(&state.parents);
            writes.extend(state.writes.iter().map(|key| (key, seen_by.len())));
            seen_by.push(bits);
        }
    }
    writes.sort_unstable();
    let of_one_key = writes.chunk_by(|a, b| a.0 == b.0);
    let in_conflict = |writes: &&[(&Key, usize)]| {
        let bits = |write: &(&Key, usize)| &seen_by[write.1][..];
        let pairs = writes.iter().enumerate();
        let mut pairs = pairs.flat_map(|(place, one)| writes[..place].iter().map(move |two| (one, two)));
        pairs.any(|(one, two)| each_alone(bits(one), bits(two)))
    };
    of_one_key.filter(in_conflict).map(|writes| writes[0].0.clone()).collect()
}

/// Whether two of these branches see different versions of a key.
pub fn differ(dag: &Dag, records: &Records, key: &Key, branches: &[StateId]) -> bool {
    let seen = |branch: &StateId| {
        let newest = records.newest(key, &dag.chains, &[dag.place(*branch)]);
        newest.map(|version| version.id)
    };
    branches.windows(2).any(|pair| seen(&pair[0]) != seen(&pair[1]))
}

/// Whether another branch of a merge wrote a key so that one of them does not see it.
pub fn hides(dag: &Dag, records: &Records, key: &Key, branches: &[StateId], one: StateId) -> bool {
    let one = dag.place(one);
    let versions = records.versions_after(key, dag.chains.sees_all_to(one));
    let hidden = versions.iter().filter(|version| !dag.chains.sees(one, version.place));
    let places: Vec<Place> = branches.iter().map(|branch| dag.place(*branch)).collect();
    hidden.into_iter().any(|version| places.iter().any(|place| dag.chains.sees(*place, version.place)))
}

/// Whether each of two sets of branches has one that the other lacks.
fn each_alone(one: &[u64], two: &[u64]) -> bool {
    let lacks = |a: &[u64], b: &[u64]| a.iter().zip(b).any(|(a, b)| a & !b != 0);
    lacks(one, two) && lacks(two, one)
}
