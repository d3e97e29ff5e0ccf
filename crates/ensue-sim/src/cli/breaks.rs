//! Rules broken in turn: how many seeds it takes until somebody notices, which property does, and who: the oracle or
//! the checker.
//!
//! Seeds of one rule run on all cores; the rules follow one another, each a row of a markdown table as soon as it is
//! known.

use super::many::threads;
use super::{SimOptions, find_rule, run_as};
use crate::oracle::agreement::{Witnesses, witnesses};
use crate::rules::Rules;
use ensue_types::Rule;
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A rule that is not seen broken within so many seeds is not caught.
const SEEDS_MAX: u64 = 10_000;
/// Starts whose distances to the first catch give the median.
const STARTS: u64 = 5;
/// Seeds between two starts.
const START_DISTANCE: u64 = 1_000_000;

struct Row {
    first: Option<u64>,
    median: Option<u64>,
    /// What the starts were seen as, each once, and who saw it.
    properties: Vec<&'static str>,
    witnesses: Vec<Witnesses>,
}

/// A seed that failed.
#[derive(Clone, Copy)]
struct Catch {
    seed: u64,
    property: &'static str,
    witnesses: Witnesses,
}

pub(super) fn table(options: &SimOptions, names: &[String]) -> i32 {
    let mut rules = Vec::new();
    for name in names {
        match find_rule(name) {
            Some(rule) => rules.push(rule),
            None => return super::unknown_rule(name),
        }
    }
    if rules.is_empty() {
        rules.extend(Rule::ALL);
    }
    println!("| rule | first seed | median seeds | seen as | seen by |\n|---|--:|--:|---|---|");
    let mut missed = Vec::new();
    for (index, &rule) in rules.iter().enumerate() {
        progress(&format!("{} of {}: {}", index + 1, rules.len(), rule.name()));
        let row = try_rule(rule, options);
        progress("");
        println!("{}", line(rule, &row));
        if row.first.is_none() {
            missed.push(rule.name());
        }
    }
    println!("\n{} of {} rules caught", rules.len() - missed.len(), rules.len());
    if !missed.is_empty() {
        println!("not caught: {}", missed.join(", "));
    }
    i32::from(!missed.is_empty())
}

fn try_rule(rule: Rule, options: &SimOptions) -> Row {
    let limit = options.seeds.unwrap_or(SEEDS_MAX);
    let mut row = Row { first: None, median: None, properties: Vec::new(), witnesses: Vec::new() };
    let mut distances = Vec::new();
    for attempt in 0..STARTS {
        let from = options.start + attempt * START_DISTANCE;
        match first_caught(rule, from, limit, options) {
            Some(caught) => {
                row.first = row.first.or((attempt == 0).then_some(caught.seed));
                if !row.properties.contains(&caught.property) {
                    row.properties.push(caught.property);
                }
                if !row.witnesses.contains(&caught.witnesses) {
                    row.witnesses.push(caught.witnesses);
                }
                distances.push(caught.seed - from + 1);
            }
            None if attempt == 0 => return row,
            None => distances.push(limit),
        }
    }
    distances.sort_unstable();
    row.median = distances.get(distances.len() / 2).copied();
    row
}

/// The lowest seed from `from` on that fails with the rule broken, whatever the number of threads.
fn first_caught(rule: Rule, from: u64, limit: u64, options: &SimOptions) -> Option<Catch> {
    let next = AtomicU64::new(from);
    let end = from + limit;
    let found: Mutex<Option<Catch>> = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..threads(options) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let report = run_as(seed, Rules::breaking(rule), options, false);
                    let Some(violation) = &report.violation else { continue };
                    // A seed that fails with every rule kept shows another mistake than this one.
                    if run_as(seed, Rules::default(), options, false).violation.is_some() {
                        continue;
                    }
                    // The seeds below this one are finished by whoever has begun them.
                    next.fetch_max(end, Ordering::Relaxed);
                    let mut found = found.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    if found.is_none_or(|lowest| seed < lowest.seed) {
                        let witnesses = witnesses(violation, &report.history, &report.finals);
                        *found = Some(Catch { seed, property: violation.property, witnesses });
                    }
                }
            });
        }
    });
    found.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn line(rule: Rule, row: &Row) -> String {
    let number = |n: Option<u64>| n.map_or("not caught".to_owned(), |n| n.to_string());
    let witnesses: Vec<String> = row.witnesses.iter().map(ToString::to_string).collect();
    format!(
        "| `{}` | {} | {} | {} | {} |",
        rule.name(),
        number(row.first),
        number(row.median),
        row.properties.join("; "),
        witnesses.join("; ")
    )
}

/// One line that is overwritten, for people only.
fn progress(text: &str) {
    let mut out = std::io::stderr();
    if out.is_terminal() {
        let _ = write!(out, "\r\x1b[K{text}");
        let _ = out.flush();
    }
}
