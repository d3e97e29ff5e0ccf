//! Judges what clients of a keyspace with branches were answered, by the definitions alone.
//!
//! What was asked and answered is told again as transactions (`tale`), and all states that anybody was told of are kept
//! whole (`graph`). Then each answer is compared with what the definitions say, as far as what is known of the states
//! decides it.

mod begins;
mod commits;
mod errors;
mod lasting;
mod questions;
mod shown;
#[cfg(test)]
mod tests;
mod values;

use super::graph::{Graph, Place, tellings};
use super::options::BranchOptions;
use super::tale::{Step, Tale, Transaction, tell};
use crate::oracle::history::History;
use crate::oracle::{Violation, property};
use shown::Shown;

/// What the final questions found, for the checks that follow them.
#[derive(Debug, Default)]
pub struct Known {
    /// Answers that were compared with the reference store, and those that could not be.
    pub judged: u64,
    pub untold: u64,
}

/// Everything that is known of a run.
struct Judge<'a> {
    history: &'a History,
    tale: Tale,
    graph: Graph,
    shown: Shown,
    /// Somebody may have placed a ceiling, so that states may be left out of what begins there.
    has_ceilings: bool,
    options: BranchOptions,
}

/// Judges everything. The first violation found, in a fixed order of the checks.
pub fn judge(history: &History, options: &BranchOptions) -> Result<Known, Violation> {
    let tale = tell(history);
    let mut lines = Vec::new();
    for question in &tale.questions {
        if question.step.name() == "BRANCH LOG" {
            if let Some(answer) = question.step.done() {
                let told = tellings(answer, question.step.datacenter, question.step.answered_us);
                lines.extend(told.map_err(|why| Violation::new(property::PROTOCOL, why))?);
            }
        }
    }
    let graph = Graph::build(&tale, lines, !options.optimistic)?;
    let shown = Shown::collect(history, &tale, &graph);
    let has_ceilings = options.places_ceilings
        || tale.questions.iter().any(|question| question.step.name() == "BRANCH CEILING");
    let judge = Judge { history, tale, graph, shown, has_ceilings, options: options.clone() };
    let mut known = Known::default();
    judge.values(&mut known)?;
    judge.questions(&mut known)?;
    judge.begins()?;
    judge.commits()?;
    judge.anchors()?;
    judge.errors()?;
    judge.lasting()?;
    Ok(known)
}

impl Judge<'_> {
    /// Whether what a site has may have been sent whole to it after it had collected what it came from: then it may be
    /// told to have written more than it did, and where it forked is gone.
    fn has_late_states(&self) -> bool {
        self.options.optimistic && self.has_ceilings
    }

    fn describe(&self, step: &Step) -> String {
        self.history.describe(step.operation)
    }

    /// What a transaction did, for the report of a violation.
    fn story(&self, transaction: &Transaction) -> String {
        let mut operations = vec![transaction.began.operation];
        operations.extend(transaction.steps.iter().map(|step| step.operation));
        operations.extend(transaction.ended.iter().map(|step| step.operation));
        operations.dedup();
        let lines: Vec<String> = operations.into_iter().map(|index| self.history.describe(index)).collect();
        lines.join("\n")
    }

    /// What is known of a state, for the report of a violation.
    fn portrait(&self, place: Place) -> String {
        let node = &self.graph.nodes[place];
        let parents = match &node.parents {
            Some(parents) => super::id::show(
                parents.iter().map(|&parent| &self.graph.nodes[parent].id).collect::<Vec<_>>(),
            ),
            None => "unknown".to_owned(),
        };
        let keys: Vec<_> = node.rows.keys().map(|key| String::from_utf8_lossy(key)).collect();
        let whole = if node.is_whole { "whole" } else { "not whole" };
        format!("{}: parents {parents}, wrote {}, {whole}", node.id, keys.join(" "))
    }
}
