//! Makes a failing run small: fewer faults, fewer steps of clients, a simpler world, as long as the same property is
//! violated (see `is_as_good`).
//!
//! Delta debugging: pieces are left out, large ones first, and what still fails goes on. Every step has its time, and
//! every step and every fault draws from a stream of chance of its own, so that without one the others stay what they
//! were. The result is a `Trial`, which is a script.

use crate::faults::Planned;
use crate::oracle::history::OperationIndex;
use crate::oracle::property;
use crate::rules::Rules;
use crate::run::Report;
use crate::run::trial::Trial;
use crate::world::options::Kept;
use std::collections::BTreeSet;
use std::fmt::Write;

/// What makes a world simpler, each tried once a round.
const SIMPLER: [&str; 16] = [
    "datacenters=2",
    "cores=1",
    "one_process=yes",
    "partitions=1",
    "partitions=2",
    "jitter=0us",
    "turn=0us",
    "clock_bound_ms=0",
    "drift_ppm=0",
    "local=20us",
    "disk=calm",
    "tuning=usual",
    "pipeline=0",
    "delay=20ms",
    "delay=5ms",
    "delay=1ms",
];

/// A small world that fails as the large one did.
#[derive(Clone, Debug)]
pub struct Shrunk {
    pub trial: Trial,
    pub report: Report,
    /// Worlds that were run to find it.
    pub runs: u64,
}

/// Shrinks the failed run of a world, as long as `go_on` says so: it is asked before each run. Nothing if the report is
/// of a run that did not fail, or does not fail again.
pub fn shrink(trial: Trial, report: &Report, go_on: &mut dyn FnMut() -> bool) -> Option<Shrunk> {
    let property = report.violation.as_ref()?.property;
    let mut shrinker = Shrinker {
        property,
        rules: report.options.rules,
        go_on,
        best: Shrunk { trial: trial.clone(), report: report.clone(), runs: 0 },
    };
    if !shrinker.fails(trial) {
        return None;
    }
    loop {
        let before = shrinker.size();
        shrinker.leave_out_what_never_was();
        shrinker.leave_out_faults();
        shrinker.leave_out_clients();
        shrinker.leave_out_steps();
        shrinker.simplify();
        if shrinker.size() == before {
            return Some(shrinker.best);
        }
    }
}

struct Shrinker<'a> {
    property: &'static str,
    rules: Rules,
    go_on: &'a mut dyn FnMut() -> bool,
    best: Shrunk,
}

/// The same property; or, for an order that nothing explains, a plainer sign of causality lost: such a cycle has many
/// edges, and a smaller world that loses causality at all mostly shows it plainly.
fn is_as_good(found: &str, wanted: &str) -> bool {
    found == wanted || (wanted == property::ORDER && [property::STALE, property::SNAPSHOT].contains(&found))
}

impl Shrinker<'_> {
    /// Whether this world fails as the first one did. If so it is the best so far.
    fn fails(&mut self, trial: Trial) -> bool {
        if !(self.go_on)() {
            return false;
        }
        self.best.runs += 1;
        let report = trial.run(self.rules, None);
        let same =
            report.violation.as_ref().is_some_and(|violation| is_as_good(violation.property, self.property));
        if same {
            self.best.trial = trial;
            self.best.report = report;
        }
        same
    }

    fn size(&self) -> (usize, Option<usize>) {
        let trial = &self.best.trial;
        (trial.plan.faults.len(), trial.kept.as_ref().map(Kept::len))
    }

    /// Faults after the end of the run, and steps that were not taken.
    fn leave_out_what_never_was(&mut self) {
        let Shrunk { trial, report, .. } = &self.best;
        let mut smaller = trial.clone();
        smaller.plan = trial.plan.until(report.virtual_us);
        let begun = |operations: &Vec<OperationIndex>| {
            let first = operations.first().map(|&index| report.history.operations[index].invoked_us);
            first.unwrap_or_default()
        };
        smaller.kept =
            Some(report.taken.iter().map(|(&step, operations)| (step, begun(operations))).collect());
        if smaller != *trial {
            self.fails(smaller);
        }
    }

    fn leave_out_faults(&mut self) {
        let faults: Vec<Planned> = self.best.trial.plan.faults.clone();
        minimise(faults, |faults| {
            let mut trial = self.best.trial.clone();
            trial.plan.faults = faults.to_vec();
            self.fails(trial)
        });
    }

    fn leave_out_clients(&mut self) {
        let Some(kept) = &self.best.trial.kept else { return };
        let clients: BTreeSet<usize> = kept.keys().map(|(client, _)| *client).collect();
        minimise(clients.into_iter().collect(), |clients| {
            let mut trial = self.best.trial.clone();
            if let Some(kept) = &mut trial.kept {
                kept.retain(|(client, _), _| clients.contains(client));
            }
            self.fails(trial)
        });
    }

    fn leave_out_steps(&mut self) {
        let Some(kept) = &self.best.trial.kept else { return };
        let mut steps: Vec<_> = kept.iter().map(|(&step, &at_us)| (step, at_us)).collect();
        // Neighbours in time belong together.
        steps.sort_by_key(|(_, at_us)| *at_us);
        minimise(steps, |steps| {
            let mut trial = self.best.trial.clone();
            trial.kept = Some(Kept::from_iter(steps.iter().copied()));
            self.fails(trial)
        });
    }

    fn simplify(&mut self) {
        for setting in SIMPLER {
            let mut trial = self.best.trial.clone();
            let before = format!("{:?}", trial.options(self.rules));
            if !trial.sets(setting)
                && trial.set(setting).is_ok()
                && format!("{:?}", trial.options(self.rules)) != before
            {
                self.fails(trial);
            }
        }
    }
}

/// Leaves out pieces, large ones first, as long as the rest still works; returns what is left.
fn minimise<T: Clone>(mut items: Vec<T>, mut works: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut length = items.len();
    while length > 0 {
        let mut at = 0;
        let mut smaller = false;
        while at < items.len() {
            let mut rest = items.clone();
            rest.drain(at..(at + length).min(items.len()));
            if works(&rest) {
                items = rest;
                smaller = true;
            } else {
                at += length;
            }
        }
        // What could not be left out before may be now; single pieces are tried again until none can.
        if length > 1 || !smaller {
            length /= 2;
        }
    }
    items
}

impl Shrunk {
    /// The script, with the violation and what happened as comments.
    pub fn script(&self) -> String {
        let mut text = String::new();
        if let Some(violation) = &self.report.violation {
            comment(&mut text, &violation.to_string());
        }
        // With this line the script holds as long as it fails with the rule broken, and only then.
        if let Some(rule) = self.rules().broken() {
            let _ = writeln!(text, "break {}", rule.name());
        }
        let _ = writeln!(text, "{}", self.trial.head());
        for (step, line) in self.trial.lines() {
            let _ = writeln!(text, "{line}");
            for &index in step.and_then(|step| self.report.taken.get(&step)).into_iter().flatten() {
                let _ = writeln!(text, "    # {}", self.report.history.describe(index));
            }
        }
        text
    }

    fn rules(&self) -> Rules {
        self.report.options.rules
    }
}

fn comment(text: &mut String, words: &str) {
    for line in words.lines() {
        text.push_str(format!("# {line}").trim_end());
        text.push('\n');
    }
}

#[cfg(test)]
mod tests;
