//! The event hashes of the first seeds of every protocol, written to a file or compared with one: a change of the code
//! that is to change no behaviour leaves all of them as they are.
//!
//! The file has two lines for each dozen seeds: hashes of all events, and hashes of the answers that clients got, with
//! their times. A change of the messages between cores, or of their layout, changes the first and may leave the second.

use super::{EACH, SimOptions, many, run_as};
use crate::rules::Rules;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const SEEDS_BY_DEFAULT: u64 = 200;
/// Hashes in one line of the file: it stays below 120 columns.
const IN_LINE: usize = 12;
const HEAD: &str =
    "# Hashes of simulated runs: `cargo xtask hashes` compares with these, `--record` writes them anew.\n";

/// The hashes of one run, each folded to 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hashes {
    events: u32,
    answers: u32,
}

type Table = BTreeMap<String, Vec<Hashes>>;

/// Compares with the file, or writes it where it is missing. The exit code: 0 all are equal, 1 some differ, 2 the file
/// cannot be read or written.
pub(super) fn run(path: &Path, options: &SimOptions) -> i32 {
    let seeds = options.seeds.unwrap_or(SEEDS_BY_DEFAULT);
    let found = hash_all(seeds, options);
    let Ok(text) = std::fs::read_to_string(path) else {
        return match std::fs::write(path, show(&found)) {
            Ok(()) => {
                println!("{} protocols, {seeds} seeds each, written to {}", found.len(), path.display());
                0
            }
            Err(error) => {
                eprintln!("{}: {error}", path.display());
                2
            }
        };
    };
    match parse(&text) {
        Some(recorded) => compare(&recorded, &found),
        None => {
            eprintln!("{}: this is no file of hashes", path.display());
            2
        }
    }
}

fn hash_all(seeds: u64, options: &SimOptions) -> Table {
    let protocols: Vec<&'static str> = match options.protocol.as_deref() {
        Some(name) if name != EACH => {
            ensue_protocol::find(name).map(|found| found.name).into_iter().collect()
        }
        _ => ensue_protocol::ALL_NAMES.to_vec(),
    };
    let work: Vec<(&str, u64)> =
        protocols.iter().flat_map(|&name| (0..seeds).map(move |seed| (name, options.start + seed))).collect();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..many::threads(options) {
            scope.spawn(|| {
                while let Some(&(protocol, seed)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let options = SimOptions { protocol: Some(protocol.to_owned()), ..options.clone() };
                    let report = run_as(seed, Rules::default(), &options, false);
                    let hashes = Hashes { events: fold(report.hash), answers: fold(report.answers_hash) };
                    let Ok(mut done) = done.lock() else { return };
                    done.insert((protocol, seed), hashes);
                }
            });
        }
    });
    let mut table = Table::new();
    for ((protocol, _), hashes) in done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        table.entry(protocol.to_owned()).or_default().push(hashes);
    }
    table
}

fn fold(hash: u64) -> u32 {
    (hash ^ (hash >> 32)) as u32
}

fn compare(recorded: &Table, found: &Table) -> i32 {
    let mut differ = 0;
    for (protocol, found) in found {
        let recorded = recorded.get(protocol).map_or(&[][..], Vec::as_slice);
        let pairs = || found.iter().zip(recorded).enumerate();
        let count = |same: fn(&Hashes) -> u32| pairs().filter(|(_, (a, b))| same(a) != same(b)).count();
        let (events, answers) = (count(|hashes| hashes.events), count(|hashes| hashes.answers));
        let first =
            pairs().find(|(_, (a, b))| a != b).map(|(place, _)| format!("; the first is number {place}"));
        let missing = found.len().saturating_sub(recorded.len());
        let lost = if missing > 0 { format!("; {missing} were never recorded") } else { String::new() };
        println!(
            "{protocol:<10} {} seeds: events differ in {events}, answers in {answers}{}{lost}",
            found.len(),
            first.unwrap_or_default()
        );
        differ += events + answers + missing;
    }
    i32::from(differ > 0)
}

fn show(table: &Table) -> String {
    let mut text = HEAD.to_owned();
    for (protocol, hashes) in table {
        for line in hashes.chunks(IN_LINE) {
            let events: String = line.iter().map(|hashes| format!(" {:08x}", hashes.events)).collect();
            let answers: String = line.iter().map(|hashes| format!(" {:08x}", hashes.answers)).collect();
            let _ = writeln!(text, "{protocol}{events}\n{protocol}{answers}");
        }
    }
    text
}

fn parse(text: &str) -> Option<Table> {
    let mut table = Table::new();
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    while let Some(line) = lines.next() {
        let (protocol, events) = line.split_once(' ')?;
        let (_, answers) = lines.next()?.split_once(' ')?;
        for (events, answers) in events.split(' ').zip(answers.split(' ')) {
            let number = |word| u32::from_str_radix(word, 16).ok();
            let hashes = Hashes { events: number(events)?, answers: number(answers)? };
            table.entry(protocol.to_owned()).or_default().push(hashes);
        }
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(of: &[(u32, u32)]) -> Table {
        let hashes = of.iter().map(|&(events, answers)| Hashes { events, answers }).collect();
        Table::from([("eiger".to_owned(), hashes)])
    }

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let many: Vec<(u32, u32)> = (0..30).map(|n| (n, 0xffff_ffff - n)).collect();
        assert_eq!(parse(&show(&table(&many))), Some(table(&many)));
        assert!(show(&table(&many)).lines().all(|line| line.len() <= 120));
        assert_eq!(parse("eiger 00000001\n"), None);
        assert_eq!(parse("eiger one\neiger 00000001\n"), None);
    }

    #[test]
    fn every_difference_and_every_missing_hash_counts() {
        let recorded = table(&[(1, 2), (3, 4)]);
        assert_eq!(compare(&recorded, &recorded), 0);
        assert_eq!(compare(&recorded, &table(&[(1, 2), (3, 5)])), 1);
        assert_eq!(compare(&recorded, &table(&[(1, 2), (5, 4)])), 1);
        assert_eq!(compare(&recorded, &table(&[(1, 2), (3, 4), (5, 6)])), 1);
        assert_eq!(compare(&recorded, &table(&[(1, 2)])), 0);
    }
}
