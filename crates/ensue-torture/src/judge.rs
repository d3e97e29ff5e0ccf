//! Judges a round: whether the cluster came to rest, whether clients were refused without reason, and what the checker
//! says of their history.

use crate::fault::Weather;
use anyhow::{Context, Result};
use ensue_check::explain::lines;
use ensue_check::format::Format;
use ensue_check::history::{Key, Operation, Outcome, Transaction, Value};
use ensue_check::report::{Overall, Violation};
use ensue_check::{History, Options, Property, Verdict, check};
use ensue_sim::branching::record::Recording;
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
    for note in &report.notes {
        println!("note: {note}");
    }
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

/// What became of the branches of a round.
#[derive(Debug, Default)]
pub struct OnBranches {
    pub counts: BranchCounts,
    pub violation: Option<String>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct BranchCounts {
    pub commands: u64,
    /// Answers that say what stands somewhere, and were compared with what must stand there.
    pub judged: u64,
}

/// Judges what clients were answered on branches. The recording is kept as a file where something was broken.
pub fn judge_branches(recording: &Recording, file: &Path) -> Result<OnBranches> {
    let commands = recording.history.operations.iter().map(|operation| operation.commands.len() as u64).sum();
    let (judged, broken) = match recording.judge() {
        Ok(known) if known.judged == 0 => (0, Some("branches: no answer could be judged".to_owned())),
        Ok(known) => (known.judged, None),
        Err(violation) => (0, Some(format!("branches: {violation}"))),
    };
    if broken.is_some() {
        save_branches(recording, file)?;
    }
    let violation = broken.map(|words| format!("{words}\nthe recording: ensue check {}", file.display()));
    Ok(OnBranches { counts: BranchCounts { commands, judged }, violation })
}

/// Writes a recording of branches as JSON lines.
pub fn save_branches(recording: &Recording, file: &Path) -> Result<()> {
    let write = || -> Result<()> {
        let mut output = BufWriter::new(File::create(file)?);
        recording.write(&mut output)?;
        Ok(output.flush()?)
    };
    write().with_context(|| format!("writing {}", file.display()))
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
    use ensue_sim::branching::options::BranchOptions;
    use ensue_sim::resp::{Answer, args};
    use ensue_types::DatacenterId;

    /// Two datacenters of a keyspace with branches, of which the second one tells this of a key in the end.
    fn on_branches(told: &str) -> Recording {
        let mut recording = Recording::new(BranchOptions { datacenters: 2, ..BranchOptions::default() });
        let bulk = |text: &str| Answer::Bulk(text.as_bytes().to_vec());
        let mut say = |datacenter: u8, at_us: u64, commands: &[&str], answers: Vec<Answer>| {
            let session = recording.history.session();
            let commands = commands.iter().map(|text| args(text)).collect();
            let operation = recording.asked(session, DatacenterId(datacenter), at_us, commands);
            answers.into_iter().for_each(|answer| recording.answered(operation, at_us + 1, answer));
        };
        let written = vec![bulk("0.0"), Answer::Status("OK".into()), bulk("1.0")];
        say(0, 10, &["BRANCH BEGIN", "SET t1 v1", "BRANCH COMMIT"], written);
        let array = |texts: &[&str]| Answer::Array(texts.iter().map(|text| bulk(text)).collect());
        let line = Answer::Array(vec![bulk("1.0"), array(&["0.0"]), array(&["t1"]), array(&[])]);
        for (datacenter, told) in [(0, "v1"), (1, told)] {
            let answers = vec![array(&["1.0"]), Answer::Array(vec![line.clone()]), array(&[told])];
            say(datacenter, 100, &["BRANCH LIST", "BRANCH LOG COUNT 0", "BRANCH GET t1 1.0"], answers);
        }
        recording.options.final_us = Some(100);
        recording
    }

    #[test]
    fn what_is_wrong_on_branches_is_told_and_kept() {
        let name = format!("ensue-torture-judge-{}.jsonl", std::process::id());
        let file = std::env::temp_dir().join(name);
        let right = judge_branches(&on_branches("v1"), &file).unwrap();
        assert_eq!((right.violation, file.exists()), (None, false));
        assert!(right.counts.judged >= 2 && right.counts.commands == 9, "{:?}", right.counts);
        let wrong = judge_branches(&on_branches("v2"), &file).unwrap();
        assert!(wrong.violation.unwrap().contains("T1"));
        assert!(std::fs::read_to_string(&file).unwrap().contains("\"v2\""));
        std::fs::remove_file(&file).unwrap();
        let nothing = Recording::new(BranchOptions::default());
        let nothing = judge_branches(&nothing, &file).unwrap().violation.unwrap();
        assert!(nothing.contains("no answer could be judged"), "{nothing}");
        std::fs::remove_file(&file).unwrap();
    }

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
