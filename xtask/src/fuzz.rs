//! `cargo xtask fuzz`: each target for some minutes, with how much it executed and covered.
//!
//! What the fuzzer finds worth keeping goes to the build folder; the committed corpus is only read. There is no
//! sanitizer: the tree has no unsafe code of its own.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const MINUTES: f64 = 10.0;
const NEEDS: &str = "fuzzing needs a nightly compiler and cargo-fuzz:
  rustup toolchain install nightly
  cargo install cargo-fuzz";

/// What the command line says.
#[derive(Debug, PartialEq)]
pub struct Wish {
    pub minutes: f64,
    /// All targets, if none is named.
    pub target: Option<String>,
}

impl Wish {
    pub fn parse(arguments: &[String]) -> Result<Wish> {
        let mut wish = Wish { minutes: MINUTES, target: None };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--minutes" => {
                    let number = words.next().context("--minutes needs a number")?;
                    wish.minutes = number.parse().with_context(|| format!("`{number}` is no number"))?;
                }
                name if !name.starts_with('-') && wish.target.is_none() => wish.target = Some(name.into()),
                other => bail!("`cargo xtask fuzz` does not know `{other}`"),
            }
        }
        Ok(wish)
    }
}

/// What a fuzzer said of its run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub executions: u64,
    pub covered: u64,
}

impl Figures {
    /// Takes in a line of libFuzzer.
    pub fn read_line(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "cov:" => self.covered = number(words.next()).unwrap_or(self.covered),
                "stat::number_of_executed_units:" => {
                    self.executions = number(words.next()).unwrap_or(self.executions);
                }
                _ => {}
            }
        }
    }
}

/// Runs the targets; true if none crashed.
pub fn run(root: &Path, arguments: &[String]) -> Result<bool> {
    let wish = Wish::parse(arguments)?;
    let version = fuzzer(root).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !version.is_ok_and(|status| status.success()) {
        bail!("{NEEDS}");
    }
    let targets = targets(root)?;
    let chosen: Vec<String> = targets
        .iter()
        .filter(|name| wish.target.as_ref().is_none_or(|wanted| wanted == *name))
        .cloned()
        .collect();
    if chosen.is_empty() {
        bail!("there is no such target; the targets are: {}", targets.join(", "));
    }
    let mut good = true;
    for target in chosen {
        let (passed, figures) = run_target(root, &target, wish.minutes)?;
        let verdict = if passed { "no crash" } else { "CRASHED" };
        let Figures { executions, covered } = figures;
        println!("{target:<16} {executions:>10} executions, {covered:>6} edges covered, {verdict}");
        good &= passed;
    }
    Ok(good)
}

fn run_target(root: &Path, target: &str, minutes: f64) -> Result<(bool, Figures)> {
    let built = root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()));
    let grown = built.join("fuzz-corpus").join(target);
    fs::create_dir_all(&grown).with_context(|| format!("making {}", grown.display()))?;
    let mut command = fuzzer(root);
    command.args(["run", "-s", "none", target]).arg(&grown).arg(root.join("fuzz/corpus").join(target));
    let seconds = (minutes * 60.0).ceil() as u64;
    command.args(["--", &format!("-max_total_time={seconds}"), "-print_final_stats=1", "-timeout=20"]);
    let output = command.output().context("starting the fuzzer")?;
    let said = String::from_utf8_lossy(&output.stderr);
    let mut figures = Figures::default();
    said.lines().for_each(|line| figures.read_line(line));
    if !output.status.success() {
        let lines: Vec<&str> = said.lines().collect();
        println!("{}", lines[lines.len().saturating_sub(60)..].join("\n"));
    }
    Ok((output.status.success(), figures))
}

/// The files of `fuzz/fuzz_targets`.
fn targets(root: &Path) -> Result<Vec<String>> {
    let folder: PathBuf = root.join("fuzz/fuzz_targets");
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

fn fuzzer(root: &Path) -> Command {
    let mut command = Command::new("rustup");
    command.current_dir(root).args(["run", "nightly", "cargo", "fuzz"]);
    command
}

fn number(word: Option<&str>) -> Option<u64> {
    word?.parse().ok()
}

#[cfg(test)]
mod tests;
