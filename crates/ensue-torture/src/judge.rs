//! Judges a round: whether the cluster came to rest, whether clients were refused without reason, and what the checker
//! says of their history.

use crate::fault::Weather;
use anyhow::{Context, Result};
use ensue_check::explain::lines;
use ensue_check::format::Format;
use ensue_check::report::{Overall, Violation};
use ensue_check::{History, Options, Property, Verdict, check};
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
