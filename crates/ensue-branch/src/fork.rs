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
use crate::steps::Steps;
use std::collections::btree_map::Entry;
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
pub fn conflicts(dag: &Dag, branches: &[StateId], steps: &mut Steps) -> Result<Vec<Key>, Abort> {
    let (sets, mut writes) = written_apart(dag, branches, steps)?;
    let mut by_size: Vec<(u32, &Set, usize)> =
        sets.iter().map(|(set, number)| (size(set), set, *number)).collect();
    by_size.sort_unstable();
    let mut rank = vec![0; by_size.len()];
    by_size.iter().enumerate().for_each(|(place, (.., number))| rank[*number] = place);
    writes.iter_mut().for_each(|(_, number)| *number = rank[*number]);
    writes.sort_unstable();
    writes.dedup();
    let mut conflicts = Vec::new();
    for of_one_key in writes.chunk_by(|a, b| a.0 == b.0) {
        // If none has what another lacks, each of them holds the one before.
        for pair in of_one_key.windows(2) {
            let (smaller, larger) = (by_size[pair[0].1].1, by_size[pair[1].1].1);
            steps.take(smaller.len())?;
            if smaller.iter().zip(larger).any(|(smaller, larger)| smaller & !larger != 0) {
                conflicts.push(pair[0].0.clone());
                break;
            }
        }
    }
    Ok(conflicts)
}

/// Some of the branches that are compared, a bit each.
type Set = Vec<u64>;
/// Each set once, with its number.
type Sets = BTreeMap<Set, usize>;
/// Keys, each with the number of the set of those that see a write of it.
type Writes<'a> = Vec<(&'a Key, usize)>;

fn size(set: &Set) -> u32 {
    set.iter().map(|word| word.count_ones()).sum()
}

/// What was written by states that some of these branches see and not all of them.
fn written_apart<'a>(
    dag: &'a Dag,
    branches: &[StateId],
    steps: &mut Steps,
) -> Result<(Sets, Writes<'a>), Abort> {
    let branches: BTreeSet<StateId> = branches.iter().copied().collect();
    let (all, words) = (branches.len() as u32, branches.len().div_ceil(64));
    steps.take(branches.len().saturating_mul(words))?;
    let mut open: BTreeMap<StateId, Set> = BTreeMap::new();
    for (place, branch) in branches.iter().enumerate() {
        let mut set = vec![0; words];
        set[place / 64] |= 1 << (place % 64);
        open.insert(*branch, set);
    }
    let mut apart = if all > 1 { branches.len() } else { 0 };
    let (mut sets, mut writes) = (Sets::new(), Writes::new());
    // Whoever sees a state sees what that comes from, so a set is whole when its state comes up; and what all see is
    // looked at only as long as anything above it may be seen by some.
    while let Some((id, set)) = open.pop_last() {
        let state = &dag.states[&id];
        let is_apart = size(&set) < all;
        if !is_apart && apart == 0 {
            break;
        }
        apart -= usize::from(is_apart);
        steps.take(words * (1 + state.parents.len()))?;
        for parent in &state.parents {
            match open.entry(*parent) {
                Entry::Vacant(entry) => {
                    entry.insert(set.clone());
                    apart += usize::from(is_apart);
                }
                Entry::Occupied(mut entry) => {
                    let known = entry.get_mut();
                    let was_apart = size(known) < all;
                    known.iter_mut().zip(&set).for_each(|(known, more)| *known |= more);
                    apart -= usize::from(was_apart && size(known) == all);
                }
            }
        }
        if is_apart {
            steps.take(state.writes.len())?;
            let next = sets.len();
            let number = *sets.entry(set).or_insert(next);
            writes.extend(state.writes.iter().map(|key| (key, number)));
        }
    }
    Ok((sets, writes))
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

    /// Two branches: one wrote a key as often as this, the other wrote another key once.
    fn written_often(count: u64) -> (Dag, [StateId; 2]) {
        let mut dag = Dag::new();
        let id = |counter| StateId::new(counter, DatacenterId(0), Incarnation(1));
        let mut last = StateId::ROOT;
        for counter in 1..=count {
            dag.insert(id(counter), vec![last], vec![Key::from_static(b"hot")]);
            last = id(counter);
        }
        dag.insert(id(count + 1), vec![StateId::ROOT], vec![Key::from_static(b"cold")]);
        (dag, [last, id(count + 1)])
    }

    #[test]
    fn a_key_that_one_branch_wrote_often_is_looked_at_once_for_each_write() {
        let count = 15_000;
        let (mut dag, [hot, cold]) = written_often(count);
        let mut steps = Steps::new();
        assert_eq!(conflicts(&dag, &[hot, cold], &mut steps), Ok(Vec::new()));
        assert!(steps.taken() < 5 * count, "{} steps", steps.taken());
        let both = StateId::new(count + 2, DatacenterId(0), Incarnation(1));
        dag.insert(both, vec![cold], vec![Key::from_static(b"hot")]);
        assert_eq!(conflicts(&dag, &[hot, both], &mut Steps::new()), Ok(vec![Key::from_static(b"hot")]));
    }

    #[test]
    fn a_branch_that_is_named_a_million_times_is_compared_once() {
        let (dag, [hot, cold]) = written_often(10);
        let named: Vec<StateId> = [hot, cold].into_iter().cycle().take(1 << 20).collect();
        let mut steps = Steps::new();
        assert_eq!(conflicts(&dag, &named, &mut steps), Ok(Vec::new()));
        assert!(steps.taken() < 100, "{} steps", steps.taken());
    }
}
