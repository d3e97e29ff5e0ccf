//! Compares the two checkers on random histories.
//!
//! They must say the same of every property. The fast one may leave open what depends on who was read from; whether a
//! value that was written properly and improperly was read properly; and counters and final reads where the causal past
//! may be cyclic, so that nothing else holds. It may say that a property does not apply only where the history has
//! nothing of the kind.

use crate::fast;
use crate::history::{History, Key, Operation, Outcome, Transaction, Value};
use crate::property::Property;
use crate::random;
use crate::reference::{self, Finding, Judgement};
use crate::report::{Options, Verdict};
use std::collections::BTreeMap;
use std::fmt;

/// How many ambiguities the fast checker resolves by trying.
const RESOLVED_MAX: usize = 256;

/// What the fast checker said of one property, how often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    pub holds: u64,
    pub violated: u64,
    pub undecided: u64,
    pub not_applicable: u64,
}

/// One thing that the two see differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    pub seed: u64,
    pub property: Property,
    pub fast: Verdict,
    pub reference: Finding,
}

/// The outcome of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Agreement {
    pub histories: u64,
    /// Those that the reference could not judge.
    pub too_large: u64,
    pub verdicts: BTreeMap<Property, Verdicts>,
    pub disagreements: Vec<Disagreement>,
}

/// Judges the histories of these seeds twice.
pub fn compare(seeds: std::ops::Range<u64>) -> Agreement {
    let mut agreement = Agreement::default();
    for seed in seeds {
        agreement.histories += 1;
        agreement.compare_one(seed, &random::history(seed));
    }
    agreement
}

/// What the two see differently in one history; nothing too if it is too large for the reference.
pub fn disagreements(history: &History) -> Vec<(Property, Verdict, Finding)> {
    let mut agreement = Agreement::default();
    agreement.compare_one(0, history);
    agreement.disagreements.into_iter().map(|d| (d.property, d.fast, d.reference)).collect()
}

impl Agreement {
    fn compare_one(&mut self, seed: u64, history: &History) {
        let Ok(judgement) = reference::judge(history) else {
            self.too_large += 1;
            return;
        };
        let report = fast::check(history, &Options { explain: false, ..Options::default() });
        for property in Property::DEFAULT {
            let verdict = report.verdict(property).cloned().unwrap_or_else(missing);
            self.count(property, &verdict);
            if !agree(history, &judgement, property, &verdict) {
                let reference = judgement.of(property);
                self.disagreements.push(Disagreement { seed, property, fast: verdict, reference });
            }
        }
    }

    fn count(&mut self, property: Property, verdict: &Verdict) {
        let verdicts = self.verdicts.entry(property).or_default();
        match verdict {
            Verdict::Holds => verdicts.holds += 1,
            Verdict::Violated(_) => verdicts.violated += 1,
            Verdict::Undecided(_) => verdicts.undecided += 1,
            Verdict::NotApplicable(_) => verdicts.not_applicable += 1,
        }
    }
}

/// A verdict that was asked for and did not come.
fn missing() -> Verdict {
    Verdict::Undecided(crate::report::Reason { text: "no verdict".into(), line: 0 })
}

fn agree(history: &History, judgement: &Judgement, property: Property, fast: &Verdict) -> bool {
    let reference = judgement.of(property);
    match fast {
        Verdict::Holds => reference == Finding::InEvery,
        Verdict::Violated(_) => reference == Finding::InNone,
        Verdict::NotApplicable(_) => reference != Finding::InNone && does_not_apply(history, property),
        Verdict::Undecided(_) => match property {
            _ if judgement.resolutions > RESOLVED_MAX || reference == Finding::InSome => true,
            Property::ReadIntegrity => is_written_twice(history),
            Property::Counters | Property::Convergence if judgement.cyclic > 0 => true,
            _ => false,
        },
    }
}

/// Whether a key got one value twice, as whatever.
fn is_written_twice(history: &History) -> bool {
    let operations = history.transactions.iter().flat_map(|transaction| &transaction.operations);
    let mut writes: Vec<(Key, Value)> = operations
        .filter_map(|operation| match *operation {
            Operation::Write { key, value } => Some((key, value)),
            _ => None,
        })
        .collect();
    writes.sort_unstable();
    writes.windows(2).any(|pair| pair[0] == pair[1])
        || writes.iter().any(|(_, value)| *value == Value::ABSENT)
}

/// Whether there is no operation that a property speaks of.
fn does_not_apply(history: &History, property: Property) -> bool {
    let mut answered =
        history.transactions.iter().filter(|transaction| transaction.outcome == Outcome::Committed);
    let has =
        |transaction: &Transaction, wanted: fn(&Operation) -> bool| transaction.operations.iter().any(wanted);
    let reads = |operation: &Operation| matches!(operation, Operation::Read { .. });
    let counts = |operation: &Operation| matches!(operation, Operation::Count { .. });
    !match property {
        Property::Convergence => answered.any(|transaction| transaction.is_final),
        Property::Counters => answered.any(|transaction| has(transaction, counts)),
        _ => answered.any(|transaction| has(transaction, reads)),
    }
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} histories, {} of them too large for the reference", self.histories, self.too_large)?;
        writeln!(
            f,
            "{:<44} {:>8} {:>8} {:>9} {:>8}",
            "property", "holds", "violated", "undecided", "not appl."
        )?;
        for (property, verdicts) in &self.verdicts {
            let Verdicts { holds, violated, undecided, not_applicable } = verdicts;
            writeln!(
                f,
                "{:<44} {holds:>8} {violated:>8} {undecided:>9} {not_applicable:>8}",
                property.title()
            )?;
        }
        for Disagreement { seed, property, fast, reference } in self.disagreements.iter().take(20) {
            writeln!(f, "seed {seed}: {property}: fast {fast:?}, reference {reference:?}")?;
        }
        write!(f, "{} disagreements", self.disagreements.len())
    }
}

#[cfg(test)]
mod tests;
