//! Reads the tree and says what is out of place, as `file:line: what is wrong, and what to do`.
//!
//! It checks what the compiler and clippy cannot: form, size, names, which crate and which part may see which, and what
//! a crate promises not to do. It never changes a file. Every check is a function of an in-memory tree and has its
//! test.

pub mod arrows;
pub mod code;
pub mod dependencies;
pub mod links;
pub mod manifest;
pub mod map;
pub mod old_names;
pub mod parts;
pub mod pointers;
pub mod protocol_names;
pub mod purity;
pub mod shape;
pub mod tree;
pub mod words;

use code::Source;
use std::fmt;
use std::io;
use std::path::Path;
use tree::Tree;

/// Something that must be put right.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    pub path: String,
    /// Counted from 1.
    pub line: usize,
    pub message: String,
}

/// What all checks found.
#[derive(Debug, Default)]
pub struct Report {
    pub findings: Vec<Finding>,
    /// What deserves a look and stops nothing.
    pub warnings: Vec<Finding>,
}

impl Report {
    pub fn find(&mut self, path: &str, line: usize, message: impl Into<String>) {
        self.findings.push(Finding { path: path.into(), line, message: message.into() });
    }

    pub fn warn(&mut self, path: &str, line: usize, message: impl Into<String>) {
        self.warnings.push(Finding { path: path.into(), line, message: message.into() });
    }
}

/// Runs every check on the tree below a folder.
pub fn check_tree_at(root: &Path) -> io::Result<Report> {
    Ok(check(&Tree::read(root)?))
}

/// Runs every check.
pub fn check(tree: &Tree) -> Report {
    let sources = Source::all(tree);
    let mut report = Report::default();
    shape::check(tree, &sources, &mut report);
    map::check(tree, &mut report);
    purity::check(&sources, &mut report);
    old_names::check(&sources, &mut report);
    protocol_names::check(&sources, &mut report);
    arrows::check(tree, &mut report);
    parts::check(tree, &sources, &mut report);
    dependencies::check(tree, &mut report);
    words::check(tree, &sources, &mut report);
    links::check(tree, &mut report);
    pointers::check(tree, &mut report);
    report.findings.sort();
    report.findings.dedup();
    report
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for warning in &self.warnings {
            writeln!(f, "warning: {warning}")?;
        }
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
