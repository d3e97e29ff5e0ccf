//! Every external dependency of every member stands in `xtask/dependencies.txt` with its reason.

use super::Report;
use super::manifest;
use super::tree::Tree;
use std::collections::BTreeSet;

pub const ALLOWED: &str = "xtask/dependencies.txt";

pub fn check(tree: &Tree, report: &mut Report) {
    let allowed = read_allowed(tree.text(ALLOWED).unwrap_or_default(), report);
    let packages = tree.packages();
    let mut used = BTreeSet::new();
    for (path, text) in tree.files_ending("Cargo.toml") {
        for dependency in manifest::dependencies(text) {
            let name = dependency.name;
            if packages.contains(&name) {
                continue;
            }
            if !allowed.iter().any(|(_, listed)| *listed == name) {
                let message = format!(
                    "`{name}` is not on the list: add `{name}: <one-line reason>` to {ALLOWED}, or do without"
                );
                report.find(path, dependency.line, message);
            }
            used.insert(name);
        }
    }
    for (line, name) in allowed.iter().filter(|(_, name)| !used.contains(*name)) {
        report.warn(ALLOWED, *line, format!("no member uses `{name}`"));
    }
}

fn read_allowed<'a>(text: &'a str, report: &mut Report) -> Vec<(usize, &'a str)> {
    let mut allowed = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match line.split_once(": ") {
            Some((name, reason)) if !reason.trim().is_empty() => allowed.push((index + 1, name)),
            _ => report.find(ALLOWED, index + 1, "no reason: write `<name>: <one-line reason>`"),
        }
    }
    allowed
}
