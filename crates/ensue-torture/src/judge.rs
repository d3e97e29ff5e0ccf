//! Judges a round: whether the cluster came to rest, whether clients were refused without reason, and what the checker
//! says of their history.

use crate::fault::Weather;
use anyhow::{Context, Result};
use ensue_check::explain::lines;
use ensue_check::format::Format;
use ensue_check::history::{Key, Operation, Outcome, Transaction, Value};
use ensue_check::report::{Overall, Violation};
use ensue_check::{History, Options, Property, Verdict, check};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

/// How a round ended, beside its history.
#[derive(Debug)]
pub struct End {
    pub weather: Weather,
    /// How long it took until all datacenters held the same, or why they never did.
    pub rest: Result<Duration>,
    pub errors: u64,
    /// The first few of them.
    pub samples: Vec<String>,
}

/// Transactions of unknown outcome, and how many of them wrote what somebody read: these are judged as done.
pub fn unknown(history: &History) -> (u64, u64) {
    let committed = history.transactions.iter().filter(|one| one.outcome == Outcome::Committed);
    let read = committed.flat_map(|one| &one.operations).filter_map(|operation| match operation {
        Operation::Read { key, value } => Some((*key, *value)),
        _ => None,
    });
    let read: BTreeSet<(Key, Value)> = read.collect();
    let is_seen = |one: &&Transaction| {
        let writes = |operation: &Operation| match operation {
            Operation::Write { key, value } => read.contains(&(*key, *value)),
            _ => false,
        };
        one.operations.iter().any(writes)
    };
    let unknown = || history.transactions.iter().filter(|one| one.outcome == Outcome::Unknown);
    (unknown().count() as u64, unknown().filter(is_seen).count() as u64)
}

/// What was broken, in words; nothing if all was kept. The history is kept as a file where something was.
pub fn judge(history: &History, end: &End, file: &Path) -> Result<Option<String>> {
    let mut broken = Vec::new();
    if let Err(error) = &end.rest {
        broken.push(format!("{error:#}"));
    }
    if end.errors > 0 && !end.weather.excuses_errors() {
        let samples = end.samples.join("\n  ");
        broken.push(format!("P14 {} errors while only links were harmed:\n  {samples}", end.errors));
    }
    let report = check(history, &Options::default());
    for (property, verdict) in &report.verdicts {
        match verdict {
            Verdict::Violated(violation) => broken.push(describe(history, *property, violation)),
            Verdict::Undecided(reason) => broken.push(format!("{property}: undecided: {reason}")),
            Verdict::Holds | Verdict::NotApplicable(_) => {}
        }
    }
    if report.overall() != Overall::Holds && broken.is_empty() {
        broken.push("the history holds nothing that can be judged".into());
    }
    if broken.is_empty() {
        return Ok(None);
    }
    save(history, file)?;
    broken.push(format!("the history: ensue check {}", file.display()));
    Ok(Some(broken.join("\n")))
}

/// Writes a history as JSON lines.
pub fn save(history: &History, file: &Path) -> Result<()> {
    let create = || -> Result<()> {
        let mut output = BufWriter::new(File::create(file)?);
        Format::Jsonl.write(history, &mut output)?;
        Ok(output.flush()?)
    };
    create().with_context(|| format!("writing {}", file.display()))
}

fn describe(history: &History, property: Property, violation: &Violation) -> String {
    let lines = lines(history, violation).join("\n  ");
    format!("{property}: {} ({})\n  {lines}", violation.summary, violation.pattern)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ensue_check::builder::Builder;

    #[test]
    fn a_write_of_unknown_outcome_that_somebody_reads_is_counted_and_judged_as_done() {
        let mut builder = Builder::new();
        for (session, value) in [("one", "1"), ("two", "2")] {
            let write = builder.write("x", Some(value));
            let transaction = builder.commit(session, vec![write]);
            builder.transaction_mut(transaction).outcome = Outcome::Unknown;
        }
        let (read, absent) = (builder.read("x", Some("1")), builder.read("x", None));
        builder.commit("reader", vec![read]);
        assert_eq!(unknown(builder.history()), (2, 1));
        // Whoever has seen it must not miss it later.
        builder.commit("reader", vec![absent]);
        assert_eq!(check(&builder.finish(), &Options::default()).overall(), Overall::Violated);
    }
}
