//! Whether an order is free of cycles, and a short cycle if it is not. No recursion: a history may be a million deep.

use super::index::{Index, Rows};
use super::inferred::{Inferred, NO_READ};
use super::reads::INITIAL;
use std::collections::VecDeque;

/// Why one transaction comes before another, as the checker found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub from: u32,
    pub to: u32,
    pub kind: StepKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepKind {
    Session,
    Merge,
    Source,
    /// Demanded by this read, by its place in [`Index::reads`].
    Older(u32),
}

/// How many beginnings a short cycle is looked for from.
const BEGINNINGS_MAX: usize = 64;
/// No further beginning is tried once so many steps were taken: a large component is gone through few times.
const STEPS_MAX: usize = 1_000_000;

/// Session order, merges, reads-from and what was inferred, as one graph.
pub(super) struct Graph<'a> {
    index: &'a Index<'a>,
    inferred: &'a Inferred,
    /// All edges but those to the next transaction of the session.
    followers: Rows,
    nodes: usize,
}

impl<'a> Graph<'a> {
    pub fn new(index: &'a Index<'a>, inferred: &'a Inferred) -> Graph<'a> {
        let nodes = index.len() + inferred.extra as usize;
        let of_past = (0..index.len() as u32).flat_map(|to| {
            let sources = index.sources.of(to).iter().copied();
            sources.chain(index.merges(to)).map(move |from| (from, to))
        });
        let demanded = inferred.edges.iter().map(|edge| (edge.from, edge.to));
        let followers = Rows::new(nodes, of_past.chain(demanded));
        Graph { index, inferred, followers, nodes }
    }

    pub fn is_cyclic(&self) -> bool {
        self.inferred.before_initial.is_some() || self.left_by_sorting().is_some()
    }

    /// A short cycle, closing at its first step.
    pub fn cycle(&self) -> Option<Vec<Step>> {
        if let Some(edge) = self.inferred.before_initial {
            return Some(vec![Step { from: edge.from, to: INITIAL, kind: StepKind::Older(edge.read) }]);
        }
        let on_cycle = self.left_by_sorting()?;
        let component = self.smallest_component(&on_cycle);
        let cycle = self.shortest_cycle(&component);
        Some(self.steps(&cycle))
    }

    fn next(&self, node: u32) -> impl Iterator<Item = u32> + use<'_> {
        let in_session = if (node as usize) < self.index.len() { self.index.next(node) } else { None };
        in_session.into_iter().chain(self.followers.of(node).iter().copied())
    }

    /// The nodes that no topological order reaches; nothing if there is one.
    fn left_by_sorting(&self) -> Option<Vec<bool>> {
        let mut waits_for = vec![0_u32; self.nodes];
        for node in 0..self.nodes as u32 {
            for next in self.next(node) {
                waits_for[next as usize] += 1;
            }
        }
        let mut ready: Vec<u32> =
            (0..self.nodes as u32).filter(|&node| waits_for[node as usize] == 0).collect();
        let mut sorted = 0;
        while let Some(node) = ready.pop() {
            sorted += 1;
            for next in self.next(node) {
                waits_for[next as usize] -= 1;
                if waits_for[next as usize] == 0 {
                    ready.push(next);
                }
            }
        }
        (sorted < self.nodes).then(|| waits_for.iter().map(|&waits_for| waits_for > 0).collect())
    }

    /// The smallest strongly connected component of more than one node, by Tarjan's algorithm with a stack of its own.
    fn smallest_component(&self, within: &[bool]) -> Vec<u32> {
        const UNSEEN: u32 = u32::MAX;
        let mut number = vec![UNSEEN; self.nodes];
        let mut lowest = vec![0_u32; self.nodes];
        let mut is_open = vec![false; self.nodes];
        let mut open: Vec<u32> = Vec::new();
        let mut smallest: Vec<u32> = Vec::new();
        let mut count = 0;
        for root in (0..self.nodes as u32).filter(|&node| within[node as usize]) {
            if number[root as usize] != UNSEEN {
                continue;
            }
            let mut path = vec![(root, self.next(root))];
            (number[root as usize], lowest[root as usize]) = (count, count);
            count += 1;
            open.push(root);
            is_open[root as usize] = true;
            while let Some((node, rest)) = path.last_mut() {
                let node = *node;
                if let Some(next) = rest.next() {
                    if !within[next as usize] {
                        continue;
                    }
                    if number[next as usize] == UNSEEN {
                        (number[next as usize], lowest[next as usize]) = (count, count);
                        count += 1;
                        open.push(next);
                        is_open[next as usize] = true;
                        path.push((next, self.next(next)));
                    } else if is_open[next as usize] {
                        lowest[node as usize] = lowest[node as usize].min(number[next as usize]);
                    }
                    continue;
                }
                path.pop();
                if let Some(&(parent, _)) = path.last() {
                    lowest[parent as usize] = lowest[parent as usize].min(lowest[node as usize]);
                }
                if lowest[node as usize] == number[node as usize] {
                    let start = open.iter().rposition(|&at| at == node).expect("its root is still open");
                    let component = open.split_off(start);
                    component.iter().for_each(|&node| is_open[node as usize] = false);
                    if component.len() > 1 && (smallest.is_empty() || component.len() < smallest.len()) {
                        smallest = component;
                    }
                }
            }
        }
        smallest
    }

    /// The nodes of a cycle within a component: the shortest of those through some beginnings.
    fn shortest_cycle(&self, component: &[u32]) -> Vec<u32> {
        let mut is_within = vec![false; self.nodes];
        component.iter().for_each(|&node| is_within[node as usize] = true);
        let mut shortest: Vec<u32> = Vec::new();
        let mut came_from = vec![u32::MAX; self.nodes];
        let mut steps = 0;
        for beginning in self.beginnings(component, &is_within) {
            component.iter().for_each(|&node| came_from[node as usize] = u32::MAX);
            let mut queue = VecDeque::from([beginning]);
            'search: while let Some(node) = queue.pop_front() {
                for next in self.next(node).filter(|&next| is_within[next as usize]) {
                    steps += 1;
                    if came_from[next as usize] != u32::MAX {
                        continue;
                    }
                    came_from[next as usize] = node;
                    if next == beginning {
                        break 'search;
                    }
                    queue.push_back(next);
                }
            }
            let mut cycle = vec![beginning];
            let mut at = came_from[beginning as usize];
            while at != beginning {
                cycle.push(at);
                at = came_from[at as usize];
            }
            cycle.reverse();
            if shortest.is_empty() || cycle.len() < shortest.len() {
                shortest = cycle;
            }
            if steps > STEPS_MAX {
                break;
            }
        }
        shortest
    }

    /// Where to look for a cycle first: where an inferred edge leads furthest back in the history. A history is
    /// written about in the order of time, so what is wrong stands there more often than elsewhere.
    fn beginnings(&self, component: &[u32], is_within: &[bool]) -> Vec<u32> {
        let mut back: Vec<(u32, u32)> = self
            .inferred
            .edges
            .iter()
            .filter(|edge| edge.from > edge.to && (edge.from as usize) < self.index.len())
            .filter(|edge| is_within[edge.from as usize] && is_within[edge.to as usize])
            .map(|edge| (edge.from - edge.to, edge.to))
            .collect();
        back.sort_unstable_by(|a, b| b.cmp(a));
        let mut beginnings: Vec<u32> = Vec::new();
        for node in back.into_iter().map(|(_, to)| to).chain(component.iter().copied()) {
            if beginnings.len() == BEGINNINGS_MAX {
                break;
            }
            if !beginnings.contains(&node) {
                beginnings.push(node);
            }
        }
        beginnings
    }

    /// The steps between the nodes of a cycle, without auxiliary nodes.
    fn steps(&self, cycle: &[u32]) -> Vec<Step> {
        let first = cycle.iter().position(|&node| (node as usize) < self.index.len());
        let first = first.expect("auxiliary nodes alone are in the order of their lists");
        let mut steps = Vec::new();
        let mut from = cycle[first];
        let mut before = from;
        for at in 1..=cycle.len() {
            let node = cycle[(first + at) % cycle.len()];
            if (node as usize) < self.index.len() {
                let kind = self.kind(before, node);
                steps.push(Step { from, to: node, kind });
                from = node;
            }
            before = node;
        }
        steps
    }

    fn kind(&self, from: u32, to: u32) -> StepKind {
        if (from as usize) < self.index.len() {
            if let Some(kind) = past_step(self.index, from, to) {
                return kind;
            }
        }
        let is_it =
            |edge: &&super::inferred::Edge| edge.from == from && edge.to == to && edge.read != NO_READ;
        let edge = self.inferred.edges.iter().find(is_it);
        StepKind::Older(edge.expect("an edge that is not of the past was inferred").read)
    }
}

/// The kind of the step, if it is one of the past.
pub(super) fn past_step(index: &Index<'_>, from: u32, to: u32) -> Option<StepKind> {
    if index.previous(to) == Some(from) {
        Some(StepKind::Session)
    } else if index.sources.of(to).contains(&from) {
        Some(StepKind::Source)
    } else {
        index.merges(to).any(|merged| merged == from).then_some(StepKind::Merge)
    }
}
