//! "Trap 14" and "decision 9" lead somewhere: to an entry of the catalogue of traps, to a record of a decision.
//!
//! An entry names the scenarios that point to it, and other files that show it; all of them exist. A record has the
//! number of its file in its title, and no other record has it. Lists are understood: "traps 14 and 17".

use super::Report;
use super::tree::Tree;
use std::collections::BTreeMap;

const CATALOGUE: &str = "docs/traps.md";
const RECORDS: &str = "docs/decisions/";
/// What the paragraph of an entry begins with that names files.
const SHOWN_BY: &str = "Shown by:";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Trap,
    Decision,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pointer {
    kind: Kind,
    number: u32,
    /// Counted from 1.
    line: usize,
}

/// An entry of the catalogue.
#[derive(Debug, Default)]
struct Entry {
    line: usize,
    /// Scenarios by their names, other files by their paths.
    shown_by: Vec<String>,
}

pub fn check(tree: &Tree, report: &mut Report) {
    let entries = entries(tree, report);
    let records = records(tree, report);
    for (number, entry) in &entries {
        check_entry(tree, *number, entry, report);
    }
    for (path, text) in tree.files().filter(|(path, _)| may_point(path)) {
        let pointers = pointers(text);
        if let Some(number) = number_of(path) {
            let says_so = |pointer: &Pointer| pointer.kind == Kind::Trap && pointer.number == number;
            if !pointers.iter().any(says_so) {
                report.find(
                    path,
                    1,
                    format!("its name begins with {number}, and it does not say `Trap {number}`"),
                );
            }
        }
        for Pointer { kind, number, line } in pointers {
            match kind {
                Kind::Decision if !records.contains_key(&number) => {
                    report.find(
                        path,
                        line,
                        format!("there is no decision {number} in {RECORDS}: correct it"),
                    );
                }
                Kind::Trap => match (entries.get(&number), scenario(path)) {
                    (None, _) => {
                        report.find(path, line, format!("there is no trap {number} in {CATALOGUE}: add it"));
                    }
                    (Some(entry), Some(name)) if !entry.names(name) => {
                        let message = format!("trap {number} of {CATALOGUE} does not name `{name}`: add it");
                        report.find(path, line, message);
                    }
                    _ => {}
                },
                Kind::Decision => {}
            }
        }
    }
}

fn check_entry(tree: &Tree, number: u32, entry: &Entry, report: &mut Report) {
    if entry.shown_by.is_empty() {
        report.find(CATALOGUE, entry.line, format!("trap {number} names no file after `{SHOWN_BY}`"));
    }
    for name in &entry.shown_by {
        let is_there = match name.contains('/') {
            true => tree.has(name),
            false => tree.files().filter_map(|(path, _)| scenario(path)).any(|file| is_meant(name, file)),
        };
        if !is_there {
            let message =
                format!("trap {number} names `{name}`, which is no scenario and no file: correct it");
            report.find(CATALOGUE, entry.line, message);
        }
    }
}

impl Entry {
    fn names(&self, scenario: &str) -> bool {
        self.shown_by.iter().any(|name| is_meant(name, scenario))
    }
}

/// Whether a name means this scenario: `17-crash-*` means several.
fn is_meant(name: &str, scenario: &str) -> bool {
    name.strip_suffix('*').map_or(name == scenario, |start| scenario.starts_with(start))
}

/// The name of a scenario's file, without the folder.
fn scenario(path: &str) -> Option<&str> {
    path.strip_prefix("scenarios/")?.rsplit('/').next()?.strip_suffix(".txt")
}

/// The number that the name of a trap's scenario begins with.
fn number_of(path: &str) -> Option<u32> {
    path.strip_prefix("scenarios/traps/")?.split('-').next()?.parse().ok()
}

/// The entries of the catalogue: `## 14. Title`, and below it a paragraph that names files.
fn entries(tree: &Tree, report: &mut Report) -> BTreeMap<u32, Entry> {
    let mut entries: BTreeMap<u32, Entry> = BTreeMap::new();
    let mut current = None;
    let mut names_files = false;
    for (index, line) in tree.text(CATALOGUE).unwrap_or_default().lines().enumerate() {
        if let Some(title) = line.strip_prefix("## ") {
            current = title.split_once(". ").and_then(|(number, _)| number.parse().ok());
            if let Some(number) = current {
                let entry = Entry { line: index + 1, ..Entry::default() };
                if entries.insert(number, entry).is_some() {
                    report.find(CATALOGUE, index + 1, format!("trap {number} is there twice"));
                }
            }
        }
        names_files = line.starts_with(SHOWN_BY) || (names_files && !line.trim().is_empty());
        if let Some(entry) = current.and_then(|number| entries.get_mut(&number)).filter(|_| names_files) {
            entry.shown_by.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    entries
}

/// The records of decisions, by number.
fn records<'a>(tree: &'a Tree, report: &mut Report) -> BTreeMap<u32, &'a str> {
    let mut records = BTreeMap::new();
    for (path, text) in tree.files_ending(".md") {
        let Some(name) = path.strip_prefix(RECORDS) else { continue };
        let Some(number) = name.split('-').next().and_then(|digits| digits.parse::<u32>().ok()) else {
            continue;
        };
        if !text.starts_with(&format!("# {number}. ")) {
            report.find(
                path,
                1,
                format!("the title does not begin with `# {number}. `, as the file's name does"),
            );
        }
        if let Some(other) = records.insert(number, path) {
            report.find(path, 1, format!("{other} has the same number: give this one the next that is free"));
        }
    }
    records
}

/// Everything that is written for people, but these checks and their tests.
fn may_point(path: &str) -> bool {
    let endings = [".rs", ".md", ".txt", ".py", ".toml", ".yml"];
    endings.iter().any(|end| path.ends_with(end)) && !path.starts_with("xtask/")
}

fn pointers(text: &str) -> Vec<Pointer> {
    let marks = ["//", "///", "//!", "#", "-", ">"];
    let lines = text.lines().enumerate();
    let words = lines.flat_map(|(index, line)| line.split_whitespace().map(move |word| (index + 1, word)));
    let mut pointers = Vec::new();
    let mut expected = None;
    for (line, word) in words.filter(|(_, word)| !marks.contains(word)) {
        let word = word.trim_start_matches(['(', '[', '*', '`', '"']);
        let digits = word.len() - word.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, rest) = word.split_at(digits);
        let is_number = !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-');
        match (expected, number.parse().ok().filter(|_| is_number)) {
            (Some(kind), Some(number)) => {
                pointers.push(Pointer { kind, number, line });
                expected = expected.filter(|_| matches!(rest, "" | ","));
            }
            (Some(_), None) if word == "and" => {}
            _ => expected = kind_of(word),
        }
    }
    pointers
}

fn kind_of(word: &str) -> Option<Kind> {
    match word.to_ascii_lowercase().as_str() {
        "trap" | "traps" => Some(Kind::Trap),
        "decision" | "decisions" => Some(Kind::Decision),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
