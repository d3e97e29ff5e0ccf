//! Every rule broken in turn: how many seeds it takes until somebody notices, and which property does.

use super::many::threads;
use super::{SimOptions, run_seed};
use ensue_types::{Rule, Rules};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const SEEDS_MAX: u64 = 2_000;
/// Starts whose distances to the first catch give the median.
const STARTS: u64 = 5;
/// Seeds between two starts.
const START_DISTANCE: u64 = 1_000_000;

struct Row {
    first: Option<u64>,
    median: Option<u64>,
    properties: Vec<&'static str>,
}

pub(super) fn table(options: &SimOptions) -> i32 {
    let next = AtomicUsize::new(0);
    let rows: Mutex<BTreeMap<usize, Row>> = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..threads(options) {
            scope.spawn(|| {
                while let Some(&rule) = Rule::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let row = try_rule(rule, options.start);
                    println!("{}", line(rule, &row));
                    if let Ok(mut rows) = rows.lock() {
                        rows.insert(rule as usize, row);
                    }
                }
            });
        }
    });
    let rows = rows.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    println!("\n| rule | first seed | median seeds | caught by |\n|---|---|---|---|");
    for (index, row) in &rows {
        println!("{}", line(Rule::ALL[*index], row));
    }
    i32::from(rows.values().any(|row| row.first.is_none()))
}

fn try_rule(rule: Rule, start: u64) -> Row {
    let mut row = Row { first: None, median: None, properties: Vec::new() };
    let mut distances = Vec::new();
    for attempt in 0..STARTS {
        let from = start + attempt * START_DISTANCE;
        let limit = if attempt == 0 { SEEDS_MAX } else { SEEDS_MAX / 4 };
        let caught = (from..from + limit)
            .find_map(|seed| run_seed(seed, Rules::breaking(rule), false).violation.map(|v| (seed, v)));
        let Some((seed, violation)) = caught else {
            if attempt == 0 {
                return row;
            }
            distances.push(limit);
            continue;
        };
        row.first = row.first.or(Some(seed));
        if !row.properties.contains(&violation.property) {
            row.properties.push(violation.property);
        }
        distances.push(seed - from + 1);
    }
    distances.sort_unstable();
    row.median = distances.get(distances.len() / 2).copied();
    row
}

fn line(rule: Rule, row: &Row) -> String {
    let number = |n: Option<u64>| n.map_or("not caught".to_owned(), |n| n.to_string());
    format!(
        "| {} | {} | {} | {} |",
        rule.name(),
        number(row.first),
        number(row.median),
        row.properties.join("; ")
    )
}
