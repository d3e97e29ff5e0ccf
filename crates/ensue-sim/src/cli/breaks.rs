//! Rules broken in turn: at which seed somebody notices, by which property, and who: the oracle or the checker. With
//! `--record`, a page of it, with the scripts that fail without each rule.
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
use places::{Place, Worlds};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Under a protocol, or in worlds, that the command line names.
const SEEDS_MAX: u64 = 10_000;
/// Where the scripts are, if the command line says nothing.
const SCRIPTS: &str = "scenarios";

/// What came of a rule broken in one kind of worlds.
struct Row {
    place: Place,
    caught: Option<Catch>,
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
    rows.iter().any(|row| row.place.rule == rule && row.caught.is_some())
}

/// Where the command line says, or where the rule belongs.
fn places_of(rule: Rule, options: &SimOptions) -> Vec<Place> {
    let worlds = match (options.losing, options.losing_directories, options.wild_clocks, options.replicas) {
        _ if options.joining => Worlds::Joining,
        _ if options.retiring => Worlds::Retiring,
        _ if options.moving_homes => Worlds::MovingHomes,
        (true, ..) => Worlds::Losing,
        (_, true, ..) => Worlds::LosingDirectories,
        (_, _, true, _) => Worlds::WildClocks,
        (.., true) => Worlds::Replicas,
        _ => Worlds::Drawn,
    };
    let mut places = places::places(rule);
    let protocol =
        options.protocol.as_deref().map(|name| crate::protocols::find(name).map(|found| found.name));
    if let Some(Ok(protocol)) = protocol {
        places = vec![Place { rule, protocol, worlds, seeds: SEEDS_MAX }];
    } else if worlds != Worlds::Drawn {
        places = vec![Place { rule, protocol: "eiger", worlds, seeds: SEEDS_MAX }];
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
        joining: place.worlds == Worlds::Joining,
        retiring: place.worlds == Worlds::Retiring,
        moving_homes: place.worlds == Worlds::MovingHomes,
        wild_clocks: place.worlds == Worlds::WildClocks,
        replicas: place.worlds == Worlds::Replicas,
        ..options.clone()
    };
    Row { place: *place, caught: first_caught(place, options) }
}

/// The lowest seed that fails with the rule broken, whatever the number of threads.
fn first_caught(place: &Place, options: &SimOptions) -> Option<Catch> {
    let next = AtomicU64::new(options.start);
    let end = options.start + place.seeds;
    let found: Mutex<Option<Catch>> = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..threads(options) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let report = run_as(seed, Rules::breaking(place.rule), options, false);
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
