//! How one transaction came to lie in another's past: a shortest chain of the steps that a property counts.

use super::graph::{Step, StepKind};
use super::index::Index;
use crate::property::Property;
use crate::tables::Map;
use std::collections::VecDeque;

/// How far a chain has been followed backwards; what may come next depends on it.
type State = u8;

/// A chain from `from` to `to` as the property demands, if there is one.
pub(super) fn find(index: &Index<'_>, property: Property, from: u32, to: u32) -> Option<Vec<Step>> {
    let mut came_from: Map<(u32, State), (Step, State)> = Map::default();
    let mut queue = VecDeque::from([(to, 0)]);
    while let Some((node, state)) = queue.pop_front() {
        let previous = index.previous(node).map(|from| (from, StepKind::Session));
        let merges = index.merges(node).map(|from| (from, StepKind::Merge));
        let sources = index.sources.of(node).iter().map(|&from| (from, StepKind::Source));
        for (before, kind) in previous.into_iter().chain(merges).chain(sources) {
            let Some(next) = follow(property, state, kind) else { continue };
            if came_from.contains_key(&(before, next)) {
                continue;
            }
            came_from.insert((before, next), (Step { from: before, to: node, kind }, state));
            if before == from && is_whole(property, next) {
                return Some(collect(&came_from, (before, next), to));
            }
            queue.push_back((before, next));
        }
    }
    None
}

/// The state after one more step backwards; nothing if the property does not count such a chain.
fn follow(property: Property, state: State, kind: StepKind) -> Option<State> {
    let is_read = kind == StepKind::Source;
    match (property, state, is_read) {
        (Property::ReadYourWrites, _, false) => Some(1),
        (Property::MonotonicReads, 0 | 1, false) => Some(1),
        (Property::MonotonicReads, 1, true) => Some(2),
        (Property::MonotonicWrites, 0, true) => Some(1),
        (Property::MonotonicWrites, 1 | 2, false) => Some(2),
        (Property::WritesFollowReads, 0, true) => Some(1),
        (Property::WritesFollowReads, 1, false) => Some(1),
        (Property::WritesFollowReads, 1, true) => Some(2),
        (Property::ReadAtomic, 0 | 1, false) => Some(1),
        (Property::ReadAtomic, 0, true) => Some(2),
        (Property::SnapshotReads, 0, true) => Some(1),
        (Property::SnapshotReads, 1, _) => Some(1),
        (
            Property::ReadIntegrity
            | Property::Causal
            | Property::CausalConvergent
            | Property::Counters
            | Property::Convergence
            | Property::Linearizable
            | Property::DelayOnce,
            _,
            _,
        ) => Some(1),
        _ => None,
    }
}

fn is_whole(property: Property, state: State) -> bool {
    match property {
        Property::MonotonicReads | Property::MonotonicWrites | Property::WritesFollowReads => state == 2,
        _ => state > 0,
    }
}

fn collect(came_from: &Map<(u32, State), (Step, State)>, start: (u32, State), to: u32) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut at = start;
    loop {
        let (step, state) = came_from[&at];
        match steps.last_mut() {
            // Neighbours in one session are said in one step.
            Some(last) if last.kind == StepKind::Session && step.kind == StepKind::Session => {
                last.to = step.to
            }
            _ => steps.push(step),
        }
        at = (step.to, state);
        if step.to == to && state == 0 {
            return steps;
        }
    }
}
