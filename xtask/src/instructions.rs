//! Instructions that operations of a node take, counted under valgrind, and compared with what is recorded.
//!
//! A count is the same in every run of one build, whatever else the machine does. Another compiler makes other code, so
//! counts are only compared where the compiler is the recorded one.

mod inputs;

use crate::gate::target;
use crate::steps::{Log, Outcome, cargo};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const RECORD: &str = "docs/figures/instructions.md";
const PACKAGE: &str = "ensue-instructions";
/// What is named so is counted, with all that it calls.
const COUNTED: &str = "*measured_*";
/// A rise by more fails.
const RISE_MAX_PERCENT: u64 = 5;

/// An operation, and how many instructions one of it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Count {
    name: String,
    title: String,
    instructions: u64,
}

/// `cargo xtask instructions`, which compares, and with `--record` writes down what it has counted; `--inputs` counts
/// and records kinds of inputs instead.
pub fn run(root: &Path, arguments: &[String]) -> Result<bool> {
    let records = match arguments {
        [] => false,
        [word] if word == "--record" => true,
        [word] if word == "--inputs" => return inputs::run(root, &compiler(root)?),
        _ => bail!("`instructions` takes no argument but --record, or --inputs"),
    };
    let counts = count(root, &mut Log::Through)?;
    let compiler = compiler(root)?;
    let recorded = std::fs::read_to_string(root.join(RECORD)).unwrap_or_default();
    print!("{}", table(&recorded, &counts));
    if records {
        std::fs::write(root.join(RECORD), record(&compiler, &counts)).context("writing the record")?;
        return Ok(true);
    }
    if !is_of(&recorded, &compiler) {
        println!("not compared: the record is of another compiler than {compiler}");
        return Ok(true);
    }
    Ok(risen(&recorded, &counts).is_empty())
}

/// The step of the gate.
pub fn step(root: &Path, log: &mut Log) -> Outcome {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return Outcome::Skipped("valgrind is not installed".into());
    }
    let Ok(recorded) = std::fs::read_to_string(root.join(RECORD)) else {
        return Outcome::Skipped(format!(
            "there is no {RECORD}: `cargo xtask instructions --record` makes it"
        ));
    };
    let compare = |log: &mut Log| -> Result<Outcome> {
        let compiler = compiler(root)?;
        if !is_of(&recorded, &compiler) {
            return Ok(Outcome::Skipped(format!("{RECORD} is of another compiler than {compiler}")));
        }
        let counts = count(root, log)?;
        let risen = risen(&recorded, &counts);
        if risen.is_empty() {
            return Ok(Outcome::Passed);
        }
        print!("{}", table(&recorded, &counts));
        Ok(Outcome::Failed(format!(
            "more than {RISE_MAX_PERCENT} % more instructions than recorded: {}; `cargo xtask instructions --record` \
             takes them as they are",
            risen.join(", ")
        )))
    };
    compare(log).unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")))
}

fn count(root: &Path, log: &mut Log) -> Result<Vec<Count>> {
    let built = log.run(cargo(root).args(["build", "--profile", "instructions", "-p", PACKAGE]));
    if built != Outcome::Passed {
        bail!("{PACKAGE} was not built");
    }
    let binary = target(root).join("instructions").join(PACKAGE);
    let list = Command::new(&binary).arg("list").output().context("listing the operations")?;
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    let one = |line: &str| {
        let (name, title) = line.split_once('\t').context("an operation has a name and a title")?;
        let instructions = count_one(&binary, name).with_context(|| format!("counting {name}"))?;
        Ok(Count { name: name.into(), title: title.into(), instructions })
    };
    list.lines().map(one).collect()
}

/// Runs one operation; its environment is empty, because that lies on the stack.
fn count_one(binary: &PathBuf, name: &str) -> Result<u64> {
    let mut valgrind = Command::new("valgrind");
    valgrind.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    let output = valgrind.arg(format!("--toggle-collect={COUNTED}")).arg(binary).arg(name).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected :"));
    let times = String::from_utf8_lossy(&output.stdout).trim().parse::<u64>();
    match (collected.and_then(|(_, count)| count.trim().parse::<u64>().ok()), times) {
        (Some(all), Ok(times)) if all > 0 && times > 0 => Ok(all / times),
        _ => bail!("valgrind did not count:\n{said}"),
    }
}

/// What made the code, in its own words.
fn compiler(root: &Path) -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).current_dir(root).arg("--version").output().context("asking rustc")?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(format!("{version}, {}", std::env::consts::ARCH))
}

fn is_of(recorded: &str, compiler: &str) -> bool {
    recorded.lines().any(|line| line == compiler_line(compiler))
}

fn compiler_line(compiler: &str) -> String {
    format!("Compiler: {compiler}.")
}

fn record(compiler: &str, counts: &[Count]) -> String {
    let mut text = format!(
        "# Instructions an operation\n\nCounted by `cargo xtask instructions --record`: callgrind, on one core of one of two \
         datacenters, `eiger`, the disk in memory.\nCommands: one partition, 16 at once; a client's bytes go in and its \
         answers come out; sockets and their kernel are not\ncounted. Entries: 16 partitions, each entry a turn of its \
         own, its questions for what it depends on among them.\nWhat is named after a protocol: clients of both \
         datacenters on keys of two partitions, a few of them often; all that follows\nin both datacenters is counted, the \
         bytes of the link included. What a dependency check takes is the difference of\n`apply-1` and `apply-0`. \
         `cargo xtask full` fails when one takes more than {RISE_MAX_PERCENT} % more.\n\n{}\n\n\
         | name | operation | instructions |\n|---|---|--:|\n",
        compiler_line(compiler)
    );
    for Count { name, title, instructions } in counts {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| `{name}` | {title} | {instructions} |");
    }
    text
}

fn recorded_counts(recorded: &str) -> BTreeMap<String, u64> {
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.trim_end_matches('|').split('|').map(str::trim);
        let name = cells.next()?.trim_end_matches('`').to_owned();
        Some((name, cells.nth(1)?.parse().ok()?))
    };
    recorded.lines().filter_map(row).collect()
}

/// Those that take too many more than before; one that is not recorded is none.
fn risen(recorded: &str, counts: &[Count]) -> Vec<String> {
    let before = recorded_counts(recorded);
    let rises = |count: &&Count| {
        before
            .get(&count.name)
            .is_some_and(|before| count.instructions * 100 > before * (100 + RISE_MAX_PERCENT))
    };
    counts.iter().filter(rises).map(|count| count.name.clone()).collect()
}

fn table(recorded: &str, counts: &[Count]) -> String {
    let before = recorded_counts(recorded);
    let mut text = format!("{:<12} {:>12} {:>12} {:>8}\n", "operation", "recorded", "now", "change");
    for Count { name, instructions, .. } in counts {
        let (old, change) = match before.get(name) {
            Some(&old) if old > 0 => {
                (old.to_string(), format!("{:+.1} %", 100.0 * (*instructions as f64 / old as f64 - 1.0)))
            }
            _ => ("-".into(), "-".into()),
        };
        let _ = writeln!(text, "{name:<12} {old:>12} {instructions:>12} {change:>8}");
    }
    text
}

#[cfg(test)]
mod tests;
