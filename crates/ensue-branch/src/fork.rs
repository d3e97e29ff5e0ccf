//! Branches compared: where they forked, and what they have both written (section 6.2).
//!
//! Branches that forked once have one fork point. After merges that crossed there are several, and a merge that takes
//! one of them for all counts some of the past twice (trap 46). Each fork point therefore has a weight: what the
//! branches together have seen is the sum of what each has, plus the weighted sum of what the fork points have, by
//! inclusion and exclusion.

use crate::Key;
use crate::chain::Place;
use crate::dag::Dag;
use crate::error::Abort;
use crate::id::StateId;
use crate::records::Records;
use std::collections::{BTreeMap, BTreeSet};

type Weights = BTreeMap<StateId, i64>;

/// The fork points of states with their weights, highest first.
///
/// If one of them is collected here, and what came from it late stands beside what took it over, that one is the error.
pub fn fork_points(dag: &Dag, states: &[StateId], all: bool) -> Result<Vec<(StateId, i64)>, Abort> {
    let states = dag.newest_of(states.iter().copied());
    let mut weights = weigh(dag, &states)?;
    for state in &states {
        add(weights.entry(*state).or_default(), -1)?;
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
///
/// Each of them counts once, less what it shares with those before it; and what it shares are branches again. Whatever
/// is shared comes before those that share it, so of all that is left to be counted what has the newest state comes
/// first, and it is counted once for all that lead to it: after merges that crossed they are many, and their chain is
/// as long as the past that is kept.
fn weigh(dag: &Dag, states: &[StateId]) -> Result<Weights, Abort> {
    let mut weights = Weights::new();
    let mut open = BTreeMap::from([(states.to_vec(), 1)]);
    while let Some((branches, count)) = open.pop_last() {
        if let Some(name) = torn_between(dag, &branches) {
            return Err(Abort::Collected(name));
        }
        for (place, state) in branches.iter().enumerate() {
            add(weights.entry(*state).or_default(), count)?;
            if place > 0 {
                let shared = open.entry(shared(dag, *state, &branches[..place])).or_default();
                *shared = shared.checked_sub(count).ok_or(Abort::Weights)?;
            }
        }
    }
    Ok(weights)
}

/// Where three cross, each round doubles the weights of the one before.
fn add(weight: &mut i64, count: i64) -> Result<(), Abort> {
    *weight = weight.checked_add(count).ok_or(Abort::Weights)?;
    Ok(())
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

/// The keys that two of these branches have both written since they forked, sorted: each sees a write that the other
/// does not.
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

#[cfg(test)]
mod tests {
    use super::*;
    use ensue_types::{DatacenterId, Incarnation};

    /// As many states at a time, each round's from all of the round before; the last round's.
    fn crossed(width: u64, rounds: u64) -> (Dag, Vec<StateId>) {
        let mut dag = Dag::new();
        let mut last = vec![StateId::ROOT];
        for round in 0..rounds {
            let counters = (1..=width).map(|place| round * width + place);
            let next = counters.map(|counter| StateId::new(counter, DatacenterId(0), Incarnation(1)));
            let next: Vec<StateId> = next.rev().collect();
            next.iter().rev().for_each(|id| dag.insert(*id, last.clone(), Vec::new()));
            last = next;
        }
        (dag, last)
    }

    #[test]
    fn merges_that_crossed_for_long_have_fork_points_and_stay_on_the_stack() {
        let rounds = 5_000;
        let (dag, leaves) = crossed(2, rounds);
        let points = fork_points(&dag, &leaves, true).unwrap();
        assert_eq!(points.len() as u64, 2 * (rounds - 1) + 1);
        // Of each round both are taken away where the round after counted them, and the other way in the next.
        assert!(points.iter().take(4).map(|(_, weight)| *weight).eq([-1, -1, 1, 1]), "{:?}", &points[..4]);
    }

    #[test]
    fn weights_that_no_number_holds_are_an_error() {
        let weight = |rounds| {
            let (dag, leaves) = crossed(3, rounds);
            fork_points(&dag, &leaves, true).map(|points| points[points.len() - 1])
        };
        assert_eq!(weight(4), Ok((StateId::ROOT, 16)));
        assert_eq!(weight(80), Err(Abort::Weights));
    }
}
