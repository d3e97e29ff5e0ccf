//! The changes that cargo-mutants would make, read from its list.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Mutant {
    /// `crates/x/src/y.rs:12:5: replace a with b in c`.
    pub(super) name: String,
    /// Relative to the tree.
    pub(super) file: String,
    pub(super) package: String,
    pub(super) genre: Genre,
    /// What comes instead; empty if something is left out.
    pub(super) replacement: String,
    /// What is replaced.
    pub(super) span: Span,
    /// Of those of the same file and the same words before it.
    #[serde(default)]
    pub(super) before: usize,
}

/// What kind of thing is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) enum Genre {
    FnValue,
    BinaryOperator,
    UnaryOperator,
    MatchArm,
    MatchArmGuard,
    StructField,
    #[serde(other)]
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Span {
    start: Place,
    end: Place,
}

/// Both count from 1; columns are characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Mutant {
    /// What it is called whatever its line: its file and its words, with a number if there are more of these.
    pub(super) fn identity(&self) -> String {
        let number = if self.before > 0 { format!(" ({})", self.before + 1) } else { String::new() };
        format!("{}: {}{number}", self.file, self.change())
    }

    pub(super) fn change(&self) -> &str {
        self.name.split_once(": ").map_or("", |(_, change)| change)
    }
}

impl Span {
    /// The bytes of the text that it covers, if the text reaches so far.
    pub(super) fn bytes(self, text: &str) -> Option<Range<usize>> {
        Some(self.start.offset(text)?..self.end.offset(text)?)
    }
}

impl Place {
    pub(super) fn offset(self, text: &str) -> Option<usize> {
        let mut start = 0;
        for _ in 1..self.line {
            start += text[start..].find('\n')? + 1;
        }
        let line = text[start..].split('\n').next()?;
        let mut columns = line.char_indices().map(|(at, _)| at).chain([line.len()]);
        Some(start + columns.nth(self.column.checked_sub(1)?)?)
    }
}

/// Every change of these packages, in the order of the list.
pub(super) fn list(root: &Path, packages: &[&str]) -> Result<Vec<Mutant>> {
    let mut command = Command::new("cargo-mutants");
    command.current_dir(root).args(["mutants", "--list", "--json", "--colors", "never"]);
    for package in packages {
        command.args(["--package", package]);
    }
    let output =
        command.output().context("starting cargo-mutants; `cargo install cargo-mutants` brings it")?;
    ensure!(output.status.success(), "cargo-mutants: {}", String::from_utf8_lossy(&output.stderr));
    parse(&String::from_utf8(output.stdout)?)
}

pub(super) fn parse(text: &str) -> Result<Vec<Mutant>> {
    let mut mutants: Vec<Mutant> = serde_json::from_str(text).context("the list of cargo-mutants")?;
    let mut alike: BTreeMap<(String, String), usize> = BTreeMap::new();
    for mutant in &mut mutants {
        let before = alike.entry((mutant.file.clone(), mutant.change().to_owned())).or_default();
        mutant.before = *before;
        *before += 1;
    }
    Ok(mutants)
}
