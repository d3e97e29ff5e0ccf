//! `cargo xtask instructions --inputs`: what each kind of input of a node takes in each protocol, counted in a
//! simulated world under valgrind, and written down as the prices of worlds whose cores take time.
//!
//! Each kind is given to its node in a function of its own, so that one run of a protocol counts all of them: callgrind
//! writes how often a function was called and what it took with all that it calls.

use crate::gate::target;
use crate::steps::{Log, Outcome, cargo};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

const RECORD: &str = "docs/figures/inputs.md";
const PACKAGE: &str = "ensue-compare";
const EXAMPLE: &str = "inputs";
/// What the functions are named like, before the kind.
const COUNTED: &str = "::measured_";

/// Instructions a unit, by kind.
type Row = BTreeMap<String, u64>;

/// Counts all protocols and writes the record.
pub fn run(root: &Path, compiler: &str) -> Result<bool> {
    let build = ["build", "--profile", "instructions", "-p", PACKAGE, "--example", EXAMPLE];
    if Log::Through.run(cargo(root).args(build)) != Outcome::Passed {
        bail!("the example {EXAMPLE} of {PACKAGE} was not built");
    }
    let binary = target(root).join("instructions/examples").join(EXAMPLE);
    let list = Command::new(&binary).output().context("listing the protocols")?;
    let mut rows = Vec::new();
    let mut kinds = Vec::new();
    for protocol in String::from_utf8_lossy(&list.stdout).lines() {
        let units = units(&Command::new(&binary).arg(protocol).output()?.stdout)?;
        let profile = target(root).join(format!("inputs-{protocol}.callgrind"));
        let counted = Command::new("valgrind")
            .args(["--tool=callgrind", &format!("--callgrind-out-file={}", profile.display())])
            .arg(&binary)
            .arg(protocol)
            .output()?;
        if !counted.status.success() {
            bail!("valgrind did not count {protocol}:\n{}", String::from_utf8_lossy(&counted.stderr));
        }
        let text = std::fs::read_to_string(&profile).context("reading what callgrind wrote")?;
        std::fs::remove_file(&profile).context("removing what callgrind wrote")?;
        let row = prices(&units, &inclusive(&text));
        println!("{protocol}: {row:?}");
        kinds = units.into_iter().map(|(kind, _)| kind).collect();
        rows.push((protocol.to_owned(), row));
    }
    std::fs::write(root.join(RECORD), record(compiler, &kinds, &rows)).context("writing the record")?;
    Ok(true)
}

/// The kinds in their order, and how many units there were.
fn units(printed: &[u8]) -> Result<Vec<(String, u64)>> {
    let text = String::from_utf8_lossy(printed).into_owned();
    let one = |line: &str| {
        let (kind, units) = line.split_once('\t').context("a kind and its units")?;
        Ok((kind.to_owned(), units.parse()?))
    };
    text.lines().map(one).collect()
}

/// What the counted functions took with all that they call, by kind, from callgrind's own format: `cfn=` names a
/// called function, by a number alone from the second time on, and the line behind `calls=` ends with what the calls
/// took.
fn inclusive(profile: &str) -> BTreeMap<String, u64> {
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    let (mut called, mut is_cost) = (None, false);
    for line in profile.lines() {
        if is_cost {
            let cost = line.rsplit(' ').next().and_then(|cost| cost.parse::<u64>().ok());
            if let (Some(kind), Some(cost)) = (called.take(), cost) {
                *sums.entry(kind).or_default() += cost;
            }
            is_cost = false;
        } else if let Some(function) = line.strip_prefix("cfn=").or_else(|| line.strip_prefix("fn=")) {
            let (number, name) = function.split_once(' ').unwrap_or((function, ""));
            let kind = name.split_once(COUNTED).map(|(_, kind)| kind);
            if let Some(kind) = kind {
                let kind = kind.split("::").next().unwrap_or(kind).replace('_', "-");
                names.insert(number, kind);
            }
            if line.starts_with("cfn=") {
                called = names.get(number).cloned();
            }
        } else if line.starts_with("calls=") {
            is_cost = true;
        }
    }
    sums
}

fn prices(units: &[(String, u64)], inclusive: &BTreeMap<String, u64>) -> Row {
    let price = |(kind, units): &(String, u64)| {
        let all = inclusive.get(kind).copied().filter(|_| *units > 0)?;
        Some((kind.clone(), all / units))
    };
    units.iter().filter_map(price).collect()
}

fn record(compiler: &str, kinds: &[String], rows: &[(String, Row)]) -> String {
    let mut text = format!(
        "# Instructions an input\n\nCounted by `cargo xtask instructions --inputs`: callgrind, in a simulated world of two \
         datacenters of four cores and four\npartitions, 32 clients, eight GETs to four SETs and one MGET of four keys, all \
         over uniform keys. Each number is the mean of\none kind of input of a node: a client's command, commands that \
         another core sends to be executed, an entry of another\ndatacenter, a check of a dependency, and so on. What a \
         kind did not occur in has none. Simulated worlds take these as the\nprices of what their cores do \
         (`ensue bench paper`).\n\nCompiler: {compiler}.\n\n"
    );
    // Writing to a string cannot fail.
    let _ = writeln!(text, "| protocol | {} |\n|---|{}", kinds.join(" | "), "--:|".repeat(kinds.len()));
    for (protocol, row) in rows {
        let cell = |kind: &String| row.get(kind).map(u64::to_string).unwrap_or_default();
        let _ =
            writeln!(text, "| `{protocol}` | {} |", kinds.iter().map(cell).collect::<Vec<_>>().join(" | "));
    }
    text
}

#[cfg(test)]
mod tests;
