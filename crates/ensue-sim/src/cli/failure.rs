//! What a failing run leaves behind: a directory with everything that is needed to understand it.
//!
//! The history is left twice: as the simulator tells it, and for `ensue check`.

use super::{SimOptions, replay_line};
use crate::oracle::agreement;
use crate::oracle::recording::record;
use crate::run::trial::Trial;
use crate::run::{Report, run_plan};
use crate::shrink::{Shrunk, shrink};
use ensue_check::draw;
use ensue_check::format::Format;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Tells a violation, writes its directory, and shrinks the run.
pub(super) fn tell(report: &Report, options: &SimOptions) {
    let Some(violation) = &report.violation else { return };
    println!("VIOLATION       {violation}");
    println!("seen by         {}", agreement::witnesses(violation, &report.history, &report.finals));
    println!("replay          {}", replay_line(report));
    let directory = directory(report, options);
    if let Err(error) = leave(report, &directory) {
        eprintln!("{}: {error}", directory.display());
        return;
    }
    println!("left in         {}", directory.display());
    if options.shrink_seconds == 0 {
        return;
    }
    let began = Instant::now();
    let mut trial = Trial::of(&report.options);
    trial.plan = report.plan.clone();
    let limit = Duration::from_secs(options.shrink_seconds);
    let Some(shrunk) = shrink(trial, report, &mut || began.elapsed() < limit) else {
        println!("shrunk          not: the run did not fail again in {:.0} s", began.elapsed().as_secs_f64());
        return;
    };
    let path = directory.join("shrunk.txt");
    if let Err(error) = fs::write(&path, shrunk.script()) {
        eprintln!("{}: {error}", path.display());
        return;
    }
    tell_shrunk(report, &shrunk, &path, began.elapsed());
}

fn tell_shrunk(report: &Report, shrunk: &Shrunk, path: &Path, elapsed: Duration) {
    println!(
        "shrunk          {} operations to {}, {} faults to {}, in {} runs and {:.0} s",
        report.operations,
        shrunk.report.operations,
        report.plan.until(report.virtual_us).faults.len(),
        shrunk.trial.plan.faults.len(),
        shrunk.runs,
        elapsed.as_secs_f64()
    );
    let broken = report.options.rules.broken().map(|rule| format!(" --break {}", rule.name()));
    println!("replay          ensue sim --scenario {}{}", path.display(), broken.unwrap_or_default());
    println!("shrunk seen by  {}", shrunk_witnesses(&shrunk.report));
    println!("\n{}", shrunk.script());
}

/// A shrunk history is mostly small enough for the reference checker, too.
fn shrunk_witnesses(report: &Report) -> String {
    let Some(violation) = &report.violation else { return String::new() };
    let witnesses = agreement::witnesses(violation, &report.history, &report.finals);
    let recorded = record(&report.history, &report.finals);
    let reference = match agreement::reference_sees(&recorded, report.history.promises) {
        Some(true) => "and so does the reference checker",
        Some(false) => "the reference checker sees nothing",
        None => "too large for the reference checker",
    };
    format!("{witnesses}; {reference}")
}

fn directory(report: &Report, options: &SimOptions) -> PathBuf {
    let broken = report.options.rules.broken().map(|rule| format!("-{}", rule.name()));
    let parent = options.out.clone().unwrap_or_else(|| PathBuf::from("ensue-sim-failures"));
    let protocol = report.options.says_protocol().then(|| format!("-{}", report.options.protocol.name));
    let (protocol, broken) = (protocol.unwrap_or_default(), broken.unwrap_or_default());
    parent.join(format!("seed-{}{protocol}{broken}", report.options.seed))
}

/// Writes what the run was, what happened in it, and what clients saw.
fn leave(report: &Report, directory: &Path) -> std::io::Result<()> {
    fs::create_dir_all(directory)?;
    let mut summary = File::create(directory.join("report.txt"))?;
    writeln!(summary, "{}\n", replay_line(report))?;
    if let Some(violation) = &report.violation {
        writeln!(summary, "{violation}\n")?;
        let witnesses = agreement::witnesses(violation, &report.history, &report.finals);
        writeln!(summary, "seen by         {witnesses}\n")?;
    }
    writeln!(summary, "{}\nevent hash      {:016x}", report.options, report.hash)?;
    writeln!(summary, "\n{}", report.plan.until(report.virtual_us))?;
    let trace = BufWriter::new(File::create(directory.join("trace.txt"))?);
    let again = run_plan(report.options.clone(), report.plan.clone(), Some(Box::new(trace)));
    if again.hash != report.hash {
        writeln!(summary, "A second run has another event hash: {:016x}", again.hash)?;
    }
    let mut history = BufWriter::new(File::create(directory.join("history.txt"))?);
    (0..report.history.operations.len())
        .try_for_each(|index| writeln!(history, "{}", report.history.describe(index)))?;
    leave_recording(report, directory)
}

/// The history as the checker reads it, and the smallest violation that it sees, drawn.
fn leave_recording(report: &Report, directory: &Path) -> std::io::Result<()> {
    let recorded = record(&report.history, &report.finals);
    let mut file = BufWriter::new(File::create(directory.join("history.jsonl"))?);
    Format::Jsonl.write(&recorded, &mut file).map_err(std::io::Error::other)?;
    file.flush()?;
    let checked = agreement::check(&recorded, report.history.promises);
    let smallest = checked.violations().min_by_key(|(_, violation)| violation.transactions.len());
    match smallest {
        Some((property, violation)) => {
            let picture = draw::svg(&recorded, property.title(), violation);
            fs::write(directory.join("violation.svg"), picture)
        }
        None => Ok(()),
    }
}
