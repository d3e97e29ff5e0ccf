//! `ensue compare`: every protocol under the same clients, and a table of what it costs.

use crate::compare::cost::Cost;
use crate::compare::load::Demand;
use crate::compare::stopwatch::Stopwatch;
use crate::compare::table::{Row, table};
use crate::compare::{BASE, Contestant, Span, clock, watch};
use rustix::time::{ClockId, clock_gettime};
use std::path::{Path, PathBuf};

/// Processor time is measured so often, each time of all protocols in turn.
const REPETITIONS: u64 = 3;
/// What was written first is durable everywhere by then, and everybody knows it.
const WARMUP_US: u64 = 4_000_000;
const SECONDS_MAX: u64 = 600;
const GETS_MAX: u64 = 10_000;
const THINK_MS_MAX: u64 = 10_000;

/// What the command line says.
#[derive(Clone, Debug)]
pub struct CompareOptions {
    /// All if none is named.
    pub protocols: Vec<String>,
    pub demand: Demand,
    /// Virtual seconds that count, of each run.
    pub seconds: u64,
    /// Write the table into this file, too.
    pub record: Option<PathBuf>,
}

/// Runs the subcommand. The exit code: 0 all is well, 1 something failed, 2 the command line makes no sense.
pub fn run(options: &CompareOptions) -> i32 {
    if !(1..=SECONDS_MAX).contains(&options.seconds) {
        eprintln!("not between 1 and {SECONDS_MAX} seconds: {}", options.seconds);
        return 2;
    }
    if !(1..=GETS_MAX).contains(&options.demand.gets)
        || !(1..=THINK_MS_MAX).contains(&options.demand.think_ms)
    {
        eprintln!("not between 1 and {GETS_MAX} GETs a SET, or 1 and {THINK_MS_MAX} ms of thinking");
        return 2;
    }
    let contestants = match Contestant::of(&options.protocols) {
        Ok(contestants) => contestants,
        Err(why) => {
            eprintln!("{why}");
            return 2;
        }
    };
    let result = measure(&contestants, options).and_then(|rows| {
        let text = table(&rows);
        println!("{text}");
        for row in rows.iter().filter(|row| row.cost.unfound > 0) {
            println!("{}: {} updates were not seen within a second", row.name, row.cost.unfound);
        }
        options.record.as_deref().map_or(Ok(()), |path| record(path, &text, options))
    });
    match result {
        Ok(()) => 0,
        Err(why) => {
            eprintln!("{why}");
            1
        }
    }
}

fn measure(contestants: &[Contestant], options: &CompareOptions) -> Result<Vec<Row>, String> {
    let span = Span { warmup_us: WARMUP_US, counted_us: 1_000_000 * options.seconds };
    let mut costs: Vec<Cost> = Vec::new();
    for contestant in contestants {
        let name = contestant.name();
        let cost = watch(contestant, 1, options.demand, span).map_err(|why| format!("{name}: {why}"))?;
        let reads = cost.single_reads.of + cost.values_of_several.of;
        eprintln!(
            "{name}: {} updates, {reads} values read, {} updates looked for",
            cost.counts.updates,
            cost.delays_us.len() + cost.unfound
        );
        costs.push(cost);
    }
    let mut node_ns: Vec<Vec<f64>> = vec![Vec::new(); contestants.len()];
    let stopwatch = Stopwatch::new(thread_ns, reading_ns());
    for seed in 1..=REPETITIONS {
        for (contestant, times) in contestants.iter().zip(&mut node_ns) {
            let name = contestant.name();
            let ns = clock(contestant, seed, options.demand, span, stopwatch);
            times.push(ns.map_err(|why| format!("{name}: {why}"))?);
        }
        eprintln!("processor time: {seed} of {REPETITIONS}");
    }
    let base = contestants.iter().position(|contestant| contestant.protocol == BASE).unwrap_or(0);
    let base_ns = node_ns[base].clone();
    let rows = contestants.iter().zip(costs).zip(&node_ns).map(|((contestant, cost), times)| {
        let ratios = base_ns.iter().zip(times).map(|(base, ns)| base / ns).collect();
        let node_us = median(times.clone()) / 1e3;
        Row { name: contestant.name(), cost, node_us, throughput: median(ratios) }
    });
    Ok(rows.collect())
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}

/// Processor time of this thread: others on the machine take none of it.
fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What reading that clock takes: the least of many times.
fn reading_ns() -> u64 {
    (0..10_000).map(|_| thread_ns()).map(|before| thread_ns() - before).min().unwrap_or(0)
}

fn record(path: &Path, table: &str, options: &CompareOptions) -> Result<(), String> {
    let command = command_line(path, options);
    let text = format!("# The protocols side by side\n\n    {command}\n\n{table}\n{LEGEND}");
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The command that makes the record.
fn command_line(path: &Path, options: &CompareOptions) -> String {
    let usual = Demand::default();
    let CompareOptions { protocols, demand, seconds, .. } = options;
    let mut command = "ensue compare".to_owned();
    if !protocols.is_empty() {
        command += &format!(" --protocols {}", protocols.join(","));
    }
    command += &format!(" --seconds {seconds}");
    if demand.gets != usual.gets {
        command += &format!(" --gets {}", demand.gets);
    }
    if demand.think_ms != usual.think_ms {
        command += &format!(" --think-ms {}", demand.think_ms);
    }
    if demand.append_fsync != usual.append_fsync {
        command += " --always-sync";
    }
    command + &format!(" --record {}", path.display())
}

const LEGEND: &str = include_str!("compare/legend.md");
