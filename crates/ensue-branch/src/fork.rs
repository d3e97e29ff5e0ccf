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
pub fn fork_points(
    dag: &Dag,
    states: &[StateId],
    all: bool,
    steps: &mut Steps,
) -> Result<Vec<(StateId, i64)>, Abort> {
    let states: BTreeSet<StateId> = states.iter().copied().collect();
    let inner = states.iter().filter(|state| !dag.leaves.contains(state)).count();
    steps.take(states.len().saturating_mul(inner))?;
    let states = dag.newest_of(states);
    let mut weights = match torn_states(dag) {
        torn if torn.is_empty() => weigh(dag, &states, steps)?,
        torn => weigh_torn(dag, &torn, &states, steps)?,
    };
    for state in &states {
        add(weights.entry(*state).or_default(), -1)?;
    }
    let points = weights.into_iter().rev().filter(|(_, weight)| *weight != 0);
    Ok(if all { points.collect() } else { points.take(1).collect() })
}

/// The states that stand beside what took over something that they come from, highest first.
pub fn torn_states(dag: &Dag) -> Vec<StateId> {
    if !dag.has_torn {
        return Vec::new();
    }
    let torn = dag.states.iter().rev().filter(|(_, state)| !state.torn_from.is_empty());
    torn.map(|(id, _)| *id).collect()
}

/// What a state that came late was torn from, of those that some of these branches see and not all.
pub fn torn_between(
    dag: &Dag,
    torn: &[StateId],
    branches: &[StateId],
    steps: &mut Steps,
) -> Result<Option<StateId>, Abort> {
    steps.take(torn.len().saturating_mul(branches.len()))?;
    let is_between = |id: &&StateId| {
        let mut sees = branches.iter().map(|branch| dag.sees(*branch, **id));
        let first = sees.next();
        sees.any(|other| Some(other) != first)
    };
    let between = torn.iter().find(is_between);
    Ok(between.and_then(|id| dag.states[id].torn_from.first().copied()))
}

/// How often the past of each state counts in the past of all of these together.
///
/// Each state that one of them sees counts once: in its own past, and in those of all that come from it. So what it
/// counts is one, less what all that come from it count together. From the newest down those are known, and only of a
/// state with several children there is something to be added up: what comes from one of them counts one together, so
/// it is what comes from the others and not from that one. That one is the child from which the most comes, so that
/// of a long branch and a short one the short one is walked.
fn weigh(dag: &Dag, states: &[StateId], steps: &mut Steps) -> Result<Weights, Abort> {
    let mut open: BTreeSet<StateId> = states.iter().copied().collect();
    let mut known: BTreeMap<StateId, Weighed> = BTreeMap::new();
    while let Some(id) = open.pop_last() {
        let state = &dag.states[&id];
        steps.take(1 + state.children.len() + state.parents.len())?;
        let children = state.children.iter().filter_map(|child| Some((known.get(child)?.size, *child)));
        let mut children: Vec<(u64, StateId)> = children.collect();
        children.sort_unstable();
        let size = children.iter().fold(1, |size: u64, (child, _)| size.saturating_add(*child));
        let weight = match children.pop() {
            None => 1,
            Some((_, largest)) => {
                let others = children.into_iter().map(|(_, child)| child).collect();
                let apart = counted_apart(dag, &known, largest, others, steps)?;
                i64::try_from(-apart).map_err(|_| Abort::Weights)?
            }
        };
        known.insert(id, Weighed { weight, size });
        if open.is_empty() {
            // All that is left comes before this one, and counts in what this one and its children count.
            break;
        }
        open.extend(&state.parents);
    }
    Ok(known.into_iter().map(|(id, weighed)| (id, weighed.weight)).collect())
}

/// A state that was looked at.
struct Weighed {
    weight: i64,
    /// How many states come from it, itself included; those that do on several ways as often.
    size: u64,
}

/// What the states count together that come from some children of a state, and not from another.
fn counted_apart(
    dag: &Dag,
    known: &BTreeMap<StateId, Weighed>,
    one: StateId,
    mut open: Vec<StateId>,
    steps: &mut Steps,
) -> Result<i128, Abort> {
    let mut seen: BTreeSet<StateId> = BTreeSet::new();
    let mut sum = 0;
    while let Some(id) = open.pop() {
        steps.take(1)?;
        let Some(weighed) = known.get(&id) else { continue };
        if dag.sees(id, one) || !seen.insert(id) {
            continue;
        }
        sum += i128::from(weighed.weight);
        open.extend(&dag.states[&id].children);
    }
    Ok(sum)
}

/// The same where states came late: what they forked from may be gone, and to be asked for is each set of branches that
/// are told apart.
///
/// Each of them counts once, less what it shares with those before it; and what it shares are branches again. Whatever
/// is shared comes before those that share it, so of all that is left to be counted what has the newest state comes
/// first, and it is counted once for all that lead to it: after merges that crossed they are many, and their chain is
/// as long as the past that is kept.
fn weigh_torn(dag: &Dag, torn: &[StateId], states: &[StateId], steps: &mut Steps) -> Result<Weights, Abort> {
    let mut weights = Weights::new();
    let mut open = BTreeMap::from([(states.to_vec(), 1)]);
    while let Some((branches, count)) = open.pop_last() {
        if let Some(name) = torn_between(dag, torn, &branches, steps)? {
            return Err(Abort::Collected(name));
        }
        for (place, state) in branches.iter().enumerate() {
            add(weights.entry(*state).or_default(), count)?;
            if place > 0 {
                let shared = open.entry(shared(dag, *state, &branches[..place], steps)?).or_default();
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
fn shared(dag: &Dag, state: StateId, others: &[StateId], steps: &mut Steps) -> Result<Vec<StateId>, Abort> {
    let mut open = BTreeSet::from([state]);
    let mut found: Vec<StateId> = Vec::new();
    while let Some(id) = open.pop_last() {
        steps.take(found.len() + others.len())?;
        if found.iter().any(|newer| dag.sees(*newer, id)) {
            continue;
        }
        if others.iter().any(|other| dag.sees(*other, id)) {
            found.push(id);
        } else {
            open.extend(&dag.states[&id].parents);
        }
    }
    Ok(found)
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
    use ensue_types::{DatacenterId, Incarnation, limits};

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
        let points = fork_points(&dag, &leaves, true, &mut Steps::new()).unwrap();
        assert_eq!(points.len() as u64, 2 * (rounds - 1) + 1);
        // Of each round both are taken away where the round after counted them, and the other way in the next.
        assert!(points.iter().take(4).map(|(_, weight)| *weight).eq([-1, -1, 1, 1]), "{:?}", &points[..4]);
    }

    #[test]
    fn weights_that_no_number_holds_are_an_error() {
        let weight = |rounds| {
            let (dag, leaves) = crossed(3, rounds);
            fork_points(&dag, &leaves, true, &mut Steps::new()).map(|points| points[points.len() - 1])
        };
        assert_eq!(weight(4), Ok((StateId::ROOT, 16)));
        assert_eq!(weight(80), Err(Abort::Weights));
    }

    /// Leaves of which in each round each is merged with one that is further away than in the round before.
    fn crossed_in_pairs(width: usize, rounds: usize) -> (Dag, Vec<StateId>) {
        let (mut dag, mut last) = crossed(width as u64, 1);
        let mut counter = width as u64;
        for round in 0..rounds {
            let mut next = Vec::new();
            for place in 0..width {
                counter += 1;
                let id = StateId::new(counter, DatacenterId(0), Incarnation(1));
                let other = (place + 1 + round * round) % width;
                dag.insert(id, vec![last[place], last[other]], Vec::new());
                next.push(id);
            }
            last = next;
        }
        (dag, last)
    }

    /// Every two ways to say it are one: what each state counts follows from those below it.
    #[test]
    fn weights_are_those_of_sets_of_branches_that_share() {
        for (width, rounds) in [(2, 9), (3, 6), (5, 4), (8, 3)] {
            let (dag, leaves) = crossed_in_pairs(width, rounds);
            let leaves = dag.newest_of(leaves);
            let mut by_sets = weigh_torn(&dag, &[], &leaves, &mut Steps::new()).unwrap();
            let mut weights = weigh(&dag, &leaves, &mut Steps::new()).unwrap();
            weights.retain(|_, weight| *weight != 0);
            by_sets.retain(|_, weight| *weight != 0);
            assert_eq!(weights, by_sets, "{width} leaves, {rounds} rounds");
        }
    }

    #[test]
    fn merges_of_many_pairs_have_fork_points_after_steps_of_states_and_leaves() {
        let (width, rounds) = (64, 18);
        let (dag, leaves) = crossed_in_pairs(width, rounds);
        let mut steps = Steps::new();
        assert!(fork_points(&dag, &leaves, true, &mut steps).is_ok());
        let states = (width * rounds) as u64;
        assert!(steps.taken() < 20 * states * width as u64, "{} steps for {states} states", steps.taken());
    }

    /// One long branch, from each of whose states another one forked.
    #[test]
    fn of_a_long_branch_and_short_ones_the_short_ones_are_walked() {
        let id = |counter| StateId::new(counter, DatacenterId(0), Incarnation(1));
        let count = 20_000;
        let mut last = StateId::ROOT;
        let mut dag = Dag::new();
        for counter in 0..count {
            let (next, side) = (id(2 * counter + 1), id(2 * counter + 2));
            dag.insert(next, vec![last], Vec::new());
            dag.insert(side, vec![last], Vec::new());
            last = next;
        }
        let leaves: Vec<StateId> = [id(2), id(4), id(6), last].to_vec();
        let mut steps = Steps::new();
        assert!(fork_points(&dag, &leaves, true, &mut steps).is_ok());
        assert!(steps.taken() < 10 * count, "{} steps", steps.taken());
    }

    #[test]
    fn what_takes_too_many_steps_is_refused() {
        let mut steps = Steps::new();
        steps.take(limits::BRANCH_STEPS_MAX as usize - 10).unwrap();
        let (dag, leaves) = crossed(4, 4);
        assert_eq!(fork_points(&dag, &leaves, true, &mut steps), Err(Abort::Steps));
        assert_eq!(conflicts(&dag, &leaves, &mut steps.clone()), Err(Abort::Steps));
        assert_eq!(weigh_torn(&dag, &[], &leaves, &mut steps), Err(Abort::Steps));
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
