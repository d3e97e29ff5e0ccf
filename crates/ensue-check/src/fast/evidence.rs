//! What shows a violation, by places in the history, before it is made small and put into words.

use super::graph::{Step, StepKind};
use super::index::Index;
use super::path;
use super::reads::INITIAL;
use crate::history::{Key, Operation, TransactionIndex};
use crate::property::Property;
use crate::report::{Pattern, Relation, RelationKind};

#[derive(Clone, Debug)]
pub(super) struct Evidence {
    pub pattern: Pattern,
    /// One sentence, where the pattern needs words of its own; else empty.
    pub detail: String,
    pub relations: Vec<Relation>,
    pub transactions: Vec<u32>,
}

impl Evidence {
    pub fn new(pattern: Pattern, detail: impl Into<String>) -> Evidence {
        Evidence { pattern, detail: detail.into(), relations: Vec::new(), transactions: Vec::new() }
    }

    /// A cycle, with the chains on which its inferred steps rest.
    pub fn of_cycle(index: &Index<'_>, property: Property, pattern: Pattern, cycle: &[Step]) -> Evidence {
        let mut evidence = Evidence::new(pattern, "");
        for step in joined(cycle) {
            evidence.add_step(index, step, true);
        }
        for step in cycle {
            if let StepKind::Older(read) = step.kind {
                let reader = index.reads[read as usize].reader;
                evidence.transactions.push(reader);
                evidence.add_path(index, property, step.from, reader, false);
            }
        }
        evidence
    }

    /// A chain by which `from` is in the past of `to`.
    pub fn add_path(&mut self, index: &Index<'_>, property: Property, from: u32, to: u32, on_cycle: bool) {
        for step in path::find(index, property, from, to).unwrap_or_default() {
            self.add_step(index, step, on_cycle);
        }
    }

    fn add_step(&mut self, index: &Index<'_>, step: Step, on_cycle: bool) {
        let kind = match step.kind {
            StepKind::Session => RelationKind::Session,
            StepKind::Merge => RelationKind::Merge,
            StepKind::Source => RelationKind::ReadsFrom(Key(key_between(index, step.from, step.to))),
            StepKind::Older(read) => {
                let read = index.reads[read as usize];
                RelationKind::OlderThan { key: Key(read.key), by: TransactionIndex(read.reader) }
            }
        };
        let relation =
            Relation { from: TransactionIndex(step.from), to: TransactionIndex(step.to), kind, on_cycle };
        if !self.relations.iter().any(|known| (known.from, known.to) == (relation.from, relation.to)) {
            self.relations.push(relation);
        }
        self.transactions.extend([step.from, step.to].into_iter().filter(|&of| of != INITIAL));
    }
}

/// The steps of a cycle, neighbours in one session joined.
fn joined(cycle: &[Step]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for &step in cycle {
        match steps.last_mut() {
            Some(last) if last.kind == StepKind::Session && step.kind == StepKind::Session => {
                last.to = step.to
            }
            _ => steps.push(step),
        }
    }
    let is_split = steps.len() > 2
        && steps[0].kind == StepKind::Session
        && steps.last().is_some_and(|last| last.kind == StepKind::Session);
    if is_split {
        let first = steps.remove(0);
        if let Some(last) = steps.last_mut() {
            last.to = first.to;
        }
    }
    steps
}

/// A key by which one read from the other: a register, or the counter that shows an addition.
fn key_between(index: &Index<'_>, writer: u32, reader: u32) -> u32 {
    if let Some(read) = index.reads_of(reader).iter().find(|read| read.writer == writer) {
        return read.key;
    }
    let mut added =
        index.history.transactions[writer as usize].operations.iter().filter_map(
            |operation| match operation {
                Operation::Add { key, .. } => Some(key.0),
                _ => None,
            },
        );
    let counted = |key: &u32| {
        index.history.transactions[reader as usize]
            .operations
            .iter()
            .any(|operation| matches!(operation, Operation::Count { key: of, .. } if of.0 == *key))
    };
    added.rfind(counted).expect("a source was read from")
}
