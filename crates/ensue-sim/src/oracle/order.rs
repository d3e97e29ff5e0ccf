//! Arbitration: there must be one order of all writes that contains causality and explains every read.
//!
//! Whoever has w' in the past and reads w at the same place has seen that w' comes before w. These edges and
//! causality together must have no cycle (Biswas and Enea, OOPSLA'19, for causal convergence). An operation may take
//! effect with several stamps, so its writes are nodes of their own between its beginning and its end.
//!
//! Removals have no place in the order: a removal ends what its datacenter had, whatever the stamps, and may bring back
//! what had lost. Where one may have done that, a read tells nothing of the order.

use super::finals::{Final, everything};
use super::local::Known;
use super::past::Pasts;
use super::recency::floor;
use super::writes::{Removals, Write, Writes};
use super::{Violation, property};
use crate::oracle::history::{History, Location, OperationIndex, Outcome, Seen, Written};
use std::collections::BTreeMap;

struct Graph {
    /// Begin and end of operation i are nodes 2i and 2i + 1; writes follow.
    edges: Vec<Vec<usize>>,
    writes: BTreeMap<(OperationIndex, Location), usize>,
}

pub(super) fn check(
    history: &History,
    pasts: &Pasts,
    writes: &Writes,
    at_end: &Writes,
    finals: &[Final],
) -> Result<(), Violation> {
    let mut graph = Graph::of_writes(history, writes);
    graph.add_causality(history, pasts);
    let removals = Removals::of(history, pasts, writes);
    if !history.promises.causality {
        graph.add_reads_of_sessions(history, &removals);
    }
    for (index, operation) in history.operations.iter().enumerate().filter(|_| history.promises.causality) {
        if operation.outcome != Outcome::Done {
            continue;
        }
        let mut past = floor(history, pasts, operation);
        if operation.snapshot {
            pasts.join_read(history, writes, index, &mut past);
        }
        for &(location, seen) in &operation.reads {
            graph.add_read(writes, &removals, (location, seen), &past, operation.answered_us);
        }
    }
    for one in finals {
        for &(location, seen) in &one.values {
            graph.add_read(at_end, &removals, (location, seen), &everything(history), u64::MAX);
        }
    }
    match graph.cycle() {
        None => Ok(()),
        Some(cycle) => Err(Violation::new(property::ORDER, graph.describe(history, &cycle))),
    }
}

impl Graph {
    fn of_writes(history: &History, writes: &Writes) -> Graph {
        let mut graph =
            Graph { edges: vec![Vec::new(); 2 * history.operations.len()], writes: BTreeMap::new() };
        for (&location, sessions) in &writes.certain {
            let has_place = |write: &&Write| history.promises.folds || write.written == Written::Value;
            for write in sessions.values().flatten().filter(has_place) {
                let node = graph.edges.len();
                graph.edges.push(vec![2 * write.operation + 1]);
                graph.edges[2 * write.operation].push(node);
                graph.writes.insert((write.operation, location), node);
            }
        }
        graph
    }

    /// From each session's latest writing operation in the past of a writing operation to that operation.
    fn add_causality(&mut self, history: &History, pasts: &Pasts) {
        let mut writers: Vec<OperationIndex> = self.writes.keys().map(|(operation, _)| *operation).collect();
        writers.dedup();
        let mut by_session: Vec<Vec<(u32, OperationIndex)>> = vec![Vec::new(); history.sessions.len()];
        for &writer in &writers {
            let operation = &history.operations[writer];
            by_session[operation.session].push((operation.number, writer));
        }
        for &writer in &writers {
            let past = pasts.of(writer);
            for (session, list) in by_session.iter().enumerate() {
                let own = history.operations[writer].session == session;
                let bound = if own { past[session].saturating_sub(1) } else { past[session] };
                let count = list.partition_point(|&(number, _)| number <= bound);
                if let Some(&(_, earlier)) = count.checked_sub(1).and_then(|at| list.get(at)) {
                    self.edges[2 * earlier + 1].push(2 * writer);
                }
            }
        }
    }

    fn add_read(
        &mut self,
        writes: &Writes,
        removals: &Removals<'_>,
        (location, seen): (Location, Seen),
        past: &[u32],
        answered_us: u64,
    ) {
        let Seen::Value(writer) = seen else { return };
        let Some(&to) = self.writes.get(&(writer, location)) else { return };
        for write in writes.latest(location, past) {
            let may_come_back = || removals.may_bring_back(location, writer, write.operation, answered_us);
            if write.operation == writer || may_come_back() {
                continue;
            }
            if let Some(&from) = self.writes.get(&(write.operation, location)) {
                self.edges[from].push(to);
            }
        }
    }

    /// Without causality a reader is known to have seen only what its session saw at the same place.
    fn add_reads_of_sessions(&mut self, history: &History, removals: &Removals<'_>) {
        for operations in &history.sessions {
            let mut known = Known::default();
            for &index in operations {
                let operation = &history.operations[index];
                for &(location, seen) in operation.reads.iter().filter(|_| operation.outcome == Outcome::Done)
                {
                    let Seen::Value(writer) = seen else { continue };
                    let Some(&to) = self.writes.get(&(writer, location)) else { continue };
                    let is_before = |&&before: &&OperationIndex| {
                        let until_us = operation.answered_us;
                        before != writer && !removals.may_bring_back(location, writer, before, until_us)
                    };
                    let before = known.values(location).iter().filter(is_before);
                    for &before in before {
                        if let Some(&from) = self.writes.get(&(before, location)) {
                            self.edges[from].push(to);
                        }
                    }
                }
                known.learn(history, index);
            }
        }
    }

    /// Depth first without recursion; the nodes of the first cycle found.
    fn cycle(&self) -> Option<Vec<usize>> {
        let mut state = vec![0u8; self.edges.len()];
        for root in 0..self.edges.len() {
            if state[root] != 0 {
                continue;
            }
            let mut path = vec![(root, 0)];
            state[root] = 1;
            while let Some((node, next)) = path.pop() {
                let Some(&target) = self.edges[node].get(next) else {
                    state[node] = 2;
                    continue;
                };
                path.push((node, next + 1));
                match state[target] {
                    0 => {
                        state[target] = 1;
                        path.push((target, 0));
                    }
                    1 => {
                        let start = path.iter().position(|&(n, _)| n == target).unwrap_or(0);
                        return Some(path[start..].iter().map(|&(n, _)| n).collect());
                    }
                    _ => {}
                }
            }
        }
        None
    }

    fn describe(&self, history: &History, cycle: &[usize]) -> String {
        let mut lines =
            vec!["each of these comes before the next, and the last before the first:".to_owned()];
        for node in cycle {
            let write = self.writes.iter().find(|(_, n)| *n == node);
            let line = match write {
                Some(((operation, location), _)) => {
                    format!("write at {}: {}", history.name(*location), history.describe(*operation))
                }
                None => history.describe(node / 2),
            };
            if lines.last() != Some(&line) {
                lines.push(line);
            }
        }
        lines.join("\n")
    }
}
