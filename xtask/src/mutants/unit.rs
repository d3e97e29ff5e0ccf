//! What judges a change: one test, one script or one seed, each with what it costs and which changes it reaches.
//!
//! A unit that never comes to the place of a change cannot notice it, so each unit is run once without any change and
//! writes down which places it came to. Only processor time is measured: a busy machine must not pass for a judge.

use super::build::{Built, Copy};
use super::{PACKAGES, switch};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What ends a program that has used up its time, as the shell says it.
const TIME_IS_UP: i32 = 128 + 24;
/// Address space of a judge, in KiB.
const MEMORY_KIB: u64 = 6 << 20;
/// For the run without a change.
pub(super) const PATIENCE_SECONDS_FIRST: u64 = 900;

/// Seeds beside so many that are drawn, for each kind of world; beside others, in proportion.
const SEEDS_DRAWN: u64 = 30;
const SEEDS_EACH: u64 = 5;
const SEEDS_LOSING: u64 = 2;
const SEEDS_LOSING_DIRECTORIES: u64 = 3;
const SEEDS_BRANCHES: u64 = 10;

/// One test, one script, or one seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    /// Whom the figures name.
    pub(super) judge: String,
    /// The package whose tests it is one of.
    pub(super) tests: Option<String>,
    pub(super) program: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) arguments: Vec<String>,
}

/// What became of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) end: End,
    /// Processor time.
    pub(super) cost_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Passed,
    Failed,
    TooLong,
}

/// All units, in no order that matters.
pub(super) fn all(copy: &Copy, built: &Built, seeds: u64) -> Result<Vec<Unit>> {
    let mut units = Vec::new();
    for package in PACKAGES {
        for program in built.tests.get(package).into_iter().flatten() {
            let folder = copy.tree.join("crates").join(package);
            units.extend(names_of_tests(program)?.into_iter().map(|name| Unit {
                judge: format!("the tests of {package}"),
                tests: Some(package.to_owned()),
                program: program.clone(),
                folder: folder.clone(),
                arguments: vec![name],
            }));
        }
    }
    let simulated = |judge: &str, words: String| Unit {
        judge: judge.to_owned(),
        tests: None,
        program: built.simulator.clone(),
        folder: copy.tree.clone(),
        arguments: format!("{words} --threads 1 --shrink-seconds 0").split(' ').map(str::to_owned).collect(),
    };
    let mut scripts = Vec::new();
    scripts_under(&copy.tree.join("scenarios"), &mut scripts)?;
    for script in scripts {
        let name = script.strip_prefix(&copy.tree)?.to_string_lossy().into_owned();
        units.push(simulated("the scenarios", format!("--scenario {name}")));
    }
    units.extend((1..=seeds).map(|seed| simulated("the simulator", format!("--seed {seed}"))));
    let in_proportion = |count: u64| (count * seeds).div_ceil(SEEDS_DRAWN);
    for protocol in protocols(&built.simulator)? {
        for (count, what) in [
            (SEEDS_EACH, ""),
            (SEEDS_LOSING, " --losing"),
            (SEEDS_LOSING_DIRECTORIES, " --losing-directories"),
        ] {
            let words = |seed| format!("--protocol {protocol}{what} --seed {seed}");
            let judge = "the simulator, each protocol";
            units.extend((1..=in_proportion(count)).map(|seed| simulated(judge, words(seed))));
        }
    }
    let branches = |seed| simulated("the simulator, branches", format!("--protocol tardis --seed {seed}"));
    units.extend((1..=in_proportion(SEEDS_BRANCHES)).map(branches));
    Ok(units)
}

impl Unit {
    /// What it is known by, in this tree.
    pub(super) fn label(&self) -> String {
        let program = self.program.file_stem().unwrap_or_default().to_string_lossy();
        format!("{program} {}", self.arguments.join(" "))
    }

    /// Runs it without a change: what it costs, and the numbers of the places that it came to.
    pub(super) fn try_unchanged(&self, list: &Path) -> Result<(u64, BTreeSet<u32>)> {
        if list.exists() {
            std::fs::remove_file(list)?;
        }
        let mut command = self.command(&[self], PATIENCE_SECONDS_FIRST);
        let run = finish(command.env(switch::VARIABLE, "0").env(switch::REACHED, list))?;
        ensure!(run.end == End::Passed, "{} objects to the tree as it is ({:?})", self.label(), run.end);
        let text = if list.exists() { std::fs::read_to_string(list)? } else { String::new() };
        let reached = text.lines().map(|line| line.parse().context("a number of a change"));
        Ok((run.cost_ms, reached.collect::<Result<_>>()?))
    }

    /// Runs these tests of one program, or this unit alone, with a change switched on.
    pub(super) fn try_change(&self, together: &[&Unit], number: u32, patience_seconds: u64) -> Result<Run> {
        finish(self.command(together, patience_seconds).env(switch::VARIABLE, number.to_string()))
    }

    fn command(&self, together: &[&Unit], seconds: u64) -> Command {
        let limits = format!(
            "ulimit -v {MEMORY_KIB}; ulimit -S -t {seconds}; \"$@\" >/dev/null 2>&1; code=$?; times; exit $code"
        );
        let mut command = Command::new("sh");
        command.args(["-c", &limits, "sh"]).arg(&self.program).current_dir(&self.folder);
        if self.tests.is_some() {
            command.args(["--exact", "--test-threads=1"]);
        }
        command.args(together.iter().flat_map(|unit| &unit.arguments));
        command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    }
}

fn finish(command: &mut Command) -> Result<Run> {
    let output = command.output().context("starting a judge")?;
    let end = match output.status.code() {
        Some(0) => End::Passed,
        Some(TIME_IS_UP) => End::TooLong,
        _ => End::Failed,
    };
    let cost_ms =
        children_ms(&String::from_utf8_lossy(&output.stdout)).context("what `times` of the shell says")?;
    Ok(Run { end, cost_ms })
}

/// Processor time of what a shell has started, from the output of its `times`: `0m1.230s 0m0.040s` in the second line.
pub(super) fn children_ms(text: &str) -> Option<u64> {
    let words = text.lines().nth(1)?.split_whitespace();
    let times = words.map(|word| {
        let (minutes, seconds) = word.strip_suffix('s')?.split_once('m')?;
        Some(minutes.parse::<u64>().ok()? * 60_000 + (seconds.parse::<f64>().ok()? * 1_000.0) as u64)
    });
    times.sum()
}

fn names_of_tests(program: &Path) -> Result<Vec<String>> {
    let output =
        Command::new(program).args(["--list", "--format", "terse"]).output().context("listing tests")?;
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

fn scripts_under(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            scripts_under(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            found.push(path);
        }
    }
    found.sort();
    Ok(())
}

/// The simulator lists its protocols to who names one that does not exist. Branches have units of their own.
fn protocols(simulator: &Path) -> Result<Vec<String>> {
    let output = Command::new(simulator).args(["--protocol", "none", "--seed", "1"]).output()?;
    let text = String::from_utf8(output.stderr)?;
    let (_, names) =
        text.trim().rsplit_once("the protocols are ").context("the simulator lists its protocols")?;
    Ok(names.split(", ").filter(|name| *name != "tardis").map(str::to_owned).collect())
}
