//! Rules broken in turn: how many seeds it takes until somebody notices, which property does, and who: the oracle or
//! the checker. With `--record`, a page of it, with the scripts that fail without each rule.
//!
//! Seeds of one rule run on all cores; the rules follow one another, each a row of a markdown table as soon as it is
//! known.

mod page;
mod places;

use super::many::threads;
use super::{SimOptions, find_rule, run_as};
use crate::oracle::agreement::{Witnesses, witnesses};
use crate::rules::Rules;
use ensue_types::Rule;
use places::{Place, STARTS, Worlds};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Under a protocol, or in worlds, that the command line names, seeds from each start on, at most.
const SEEDS_MAX: u64 = 10_000;
/// Where the scripts are, if the command line says nothing.
const SCRIPTS: &str = "scenarios";

/// What came of a rule broken in one kind of worlds.
struct Row {
    place: Place,
    first: Option<u64>,
    /// Seeds until the first catch, of several starts in the median.
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
    let places: Vec<Place> = rules.iter().flat_map(|rule| places_of(*rule, options)).collect();
    println!("{}", page::HEAD);
    let mut rows: Vec<Row> = Vec::new();
    for (index, place) in places.iter().enumerate() {
        progress(&format!("{} of {}: {} ({})", index + 1, places.len(), place.rule.name(), place.protocol));
        let row = try_place(place, options);
        progress("");
        println!("{}", page::line(&row));
        rows.push(row);
    }
    let missed: Vec<String> =
        rules.iter().filter(|rule| !is_caught(**rule, &rows)).map(|rule| rule.name()).collect();
    println!("\n{} of {} rules caught", rules.len() - missed.len(), rules.len());
    if !missed.is_empty() {
        println!("not caught: {}", missed.join(", "));
    }
    let Some(path) = &options.record else { return i32::from(!missed.is_empty()) };
    match record(path, options, &rules, &rows) {
        Ok(unseen) => i32::from(unseen > 0),
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            2
        }
    }
}

/// Writes the page; how many rules neither a seed nor a script nor a test shows.
fn record(path: &Path, options: &SimOptions, rules: &[Rule], rows: &[Row]) -> Result<usize, String> {
    let folder = options.scenario.as_deref().unwrap_or(Path::new(SCRIPTS));
    let scripts = page::scripts(folder, rules)?;
    let commit = options.commit.as_deref().unwrap_or("unknown");
    std::fs::write(path, page::page(commit, rules, rows, &scripts)).map_err(|error| error.to_string())?;
    let unseen = |rule: &&Rule| {
        !is_caught(**rule, rows) && !scripts.contains_key(&rule.name()) && places::tests(**rule).is_none()
    };
    let unseen: Vec<&Rule> = rules.iter().filter(unseen).collect();
    unseen.iter().for_each(|rule| println!("shown by nothing: {}", rule.name()));
    Ok(unseen.len())
}

fn is_caught(rule: Rule, rows: &[Row]) -> bool {
    rows.iter().any(|row| row.place.rule == rule && row.first.is_some())
}

/// Where the command line says, or where the rule belongs.
fn places_of(rule: Rule, options: &SimOptions) -> Vec<Place> {
    let worlds = match (options.losing, options.losing_directories, options.wild_clocks) {
        (true, _, _) => Worlds::Losing,
        (_, true, _) => Worlds::LosingDirectories,
        (_, _, true) => Worlds::WildClocks,
        _ => Worlds::Drawn,
    };
    let mut places = places::places(rule);
    let protocol =
        options.protocol.as_deref().map(|name| crate::protocols::find(name).map(|found| found.name));
    if let Some(Ok(protocol)) = protocol {
        places = vec![Place { rule, protocol, worlds, seeds: SEEDS_MAX, starts: STARTS }];
    } else if worlds != Worlds::Drawn {
        places = vec![Place { rule, protocol: "eiger", worlds, seeds: SEEDS_MAX, starts: STARTS }];
    }
    for place in &mut places {
        place.seeds = options.seeds.unwrap_or(place.seeds);
    }
    places
}

fn try_place(place: &Place, options: &SimOptions) -> Row {
    let options = &SimOptions {
        protocol: Some(place.protocol.to_owned()),
        losing: place.worlds == Worlds::Losing,
        losing_directories: place.worlds == Worlds::LosingDirectories,
        wild_clocks: place.worlds == Worlds::WildClocks,
        ..options.clone()
    };
    let mut row =
        Row { place: *place, first: None, median: None, properties: Vec::new(), witnesses: Vec::new() };
    let mut distances = Vec::new();
    for attempt in 0..place.starts {
        let from = place.start(options.start, attempt);
        match first_caught(place.rule, from, place.seeds, options) {
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
            None => distances.push(place.seeds),
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

/// One line that is overwritten, for people only.
fn progress(text: &str) {
    let mut out = std::io::stderr();
    if out.is_terminal() {
        let _ = write!(out, "\r\x1b[K{text}");
        let _ = out.flush();
    }
}

#[cfg(test)]
mod tests;
