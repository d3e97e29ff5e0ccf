//! The code map of `ARCHITECTURE.md` and the folders of the workspace agree, and each crate states one invariant.

use super::Report;
use super::tree::Tree;

pub const MAP: &str = "ARCHITECTURE.md";
const INVARIANT: &str = "**Invariant:**";

struct Section<'a> {
    name: &'a str,
    line: usize,
    invariants: usize,
}

pub fn check(tree: &Tree, report: &mut Report) {
    let Some(text) = tree.text(MAP) else {
        return report.warn(MAP, 1, "there is no code map yet: write one section a crate");
    };
    let sections = sections(text);
    let packages = tree.packages();
    for package in &packages {
        if !sections.iter().any(|section| section.name == package) {
            report.find(MAP, 1, format!("the code map lacks `{package}`: add a heading \"### `{package}`\""));
        }
    }
    for section in &sections {
        let name = section.name;
        if !packages.iter().any(|package| package == name) {
            report.find(
                MAP,
                section.line,
                format!("there is no crate `{name}`: delete its section or correct the name"),
            );
        }
        if section.invariants != 1 {
            let message = format!(
                "`{name}` has {} lines that begin with `{INVARIANT}`: write exactly one, of what the crate never does",
                section.invariants
            );
            report.find(MAP, section.line, message);
        }
    }
}

fn sections(text: &str) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    let mut inside = false;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("# ") || line.starts_with("## ") || line.starts_with("### ") {
            let name = line.strip_prefix("### `").and_then(|rest| rest.trim_end().strip_suffix('`'));
            inside = name.is_some();
            sections.extend(name.map(|name| Section { name, line: index + 1, invariants: 0 }));
        } else if inside && line.starts_with(INVARIANT) {
            if let Some(section) = sections.last_mut() {
                section.invariants += 1;
            }
        }
    }
    sections
}
