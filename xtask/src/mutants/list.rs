//! The changes that cargo-mutants would make, read from its list with diffs.
//!
//! A change is one line that names it and a diff of one hunk. The hunk is applied by its line number and must find the
//! lines that it takes away.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mutant {
    /// `crates/x/src/y.rs:12:5: replace a with b in c`.
    pub(super) name: String,
    /// Relative to the tree.
    pub(super) file: String,
    /// The first line of the hunk, counted from 0.
    first: usize,
    before: Vec<String>,
    after: Vec<String>,
}

impl Mutant {
    pub(super) fn place(&self) -> &str {
        self.name.split_once(": ").map_or(&self.name, |(place, _)| place)
    }

    pub(super) fn change(&self) -> &str {
        self.name.split_once(": ").map_or("", |(_, change)| change)
    }

    /// `ensue-store` for `crates/ensue-store/src/log.rs`.
    pub(super) fn package(&self) -> &str {
        self.file.split('/').nth(1).unwrap_or_default()
    }

    /// The file's text with the change made.
    pub(super) fn apply(&self, text: &str) -> Result<String> {
        let mut lines: Vec<&str> = text.lines().collect();
        let end = self.first + self.before.len();
        let found = lines.get(self.first..end).is_some_and(|there| there.iter().eq(self.before.iter()));
        ensure!(found, "{}: the file is not the one that was listed", self.name);
        lines.splice(self.first..end, self.after.iter().map(String::as_str));
        Ok(lines.join("\n") + "\n")
    }
}

/// Every change of these packages, in the order of the list.
pub(super) fn list(root: &Path, packages: &[&str]) -> Result<Vec<Mutant>> {
    let mut command = Command::new("cargo-mutants");
    command.current_dir(root).args(["mutants", "--list", "--diff", "--colors", "never"]);
    for package in packages {
        command.args(["--package", package]);
    }
    let output =
        command.output().context("starting cargo-mutants; `cargo install cargo-mutants` brings it")?;
    ensure!(output.status.success(), "cargo-mutants: {}", String::from_utf8_lossy(&output.stderr));
    parse(&String::from_utf8(output.stdout)?)
}

/// Reads the list.
pub(super) fn parse(text: &str) -> Result<Vec<Mutant>> {
    let lines: Vec<&str> = text.lines().collect();
    let names = (0..lines.len()).filter(|&at| {
        // The name stands before the two header lines of a diff; within a hunk no line begins at the first column.
        let header = lines.get(at + 1).is_some_and(|line| line.starts_with("--- "));
        header && lines.get(at + 3).is_some_and(|line| line.starts_with("@@ "))
    });
    names.map(|at| read(&lines[at..]).with_context(|| format!("the list at {}", lines[at]))).collect()
}

fn read(lines: &[&str]) -> Result<Mutant> {
    let file = lines[1].trim_start_matches("--- ").to_owned();
    // @@ -first,count +first,count @@
    let numbers = lines[3].trim_start_matches("@@ -").split([',', ' ']).map(str::parse::<usize>);
    let numbers: Vec<usize> = numbers.take(2).map_while(Result::ok).collect();
    let [first, count] = numbers[..] else { anyhow::bail!("no hunk: {}", lines[3]) };
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for line in &lines[4..] {
        let ends = line.is_empty() || (before.len() == count && !line.starts_with('+'));
        if ends {
            break;
        }
        let (sign, rest) = line.split_at(1);
        if sign != "+" {
            before.push(rest.to_owned());
        }
        if sign != "-" {
            after.push(rest.to_owned());
        }
    }
    ensure!(before.len() == count, "{} lines of {count}", before.len());
    Ok(Mutant { name: lines[0].to_owned(), file, first: first - 1, before, after })
}
