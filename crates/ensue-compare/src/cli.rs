//! `ensue compare`: every protocol under the same clients, and a table of what it costs.

mod outage;
mod sites;

use crate::cost::Cost;
use crate::demand::Demand;
use crate::table::{Row, Throughput, table};
use crate::{BASE, Contestant, Span, chart, clock, watch};
use ensue_sim::stopwatch::Stopwatch;
use rustix::time::{ClockId, clock_gettime};
use std::path::{Path, PathBuf};

/// What was written first is durable everywhere by then, and everybody knows it.
const WARMUP_US: u64 = 4_000_000;
const SECONDS_MAX: u64 = 600;
const ROUNDS_MAX: u64 = 100;
const GETS_MAX: u64 = 10_000;
const THINK_MS_MAX: u64 = 10_000;
const HEARTBEAT_MS_MAX: u64 = 1_000;

/// What the command line says.
#[derive(Clone, Debug)]
pub struct CompareOptions {
    /// All if none is named.
    pub protocols: Vec<String>,
    pub demands: Vec<Demand>,
    /// Virtual seconds that count, of each run.
    pub seconds: u64,
    /// Processor time is measured so often, each time of all protocols in turn.
    pub rounds: u64,
    /// Write the tables into this file, too, and a picture beside it.
    pub record: Option<PathBuf>,
    /// The command, as the record tells it.
    pub command: String,
    /// The commit that is measured, as the record tells it.
    pub commit: Option<String>,
    /// Cut a datacenter's links for so many virtual seconds, and look at that instead.
    pub cut: Option<u64>,
    /// A branching keyspace in one, two and three datacenters, instead.
    pub sites: bool,
}

/// A load and what it showed.
struct Measured {
    demand: Demand,
    rows: Vec<Row>,
}

/// Runs the subcommand. The exit code: 0 all is well, 1 something failed, 2 the command line makes no sense.
pub fn run(options: &CompareOptions) -> i32 {
    if let Some(why) = nonsense(options) {
        eprintln!("{why}");
        return 2;
    }
    if options.sites {
        return sites::run(options);
    }
    let contestants = match Contestant::of(&options.protocols) {
        Ok(contestants) => contestants,
        Err(why) => {
            eprintln!("{why}");
            return 2;
        }
    };
    if let Some(cut) = options.cut {
        return outage::run(options, &contestants, cut);
    }
    let mut measured = Vec::new();
    for &demand in &options.demands {
        match measure(&contestants, demand, options) {
            Ok(rows) => {
                println!("{}: {}.\n\n{}", demand.name, demand.words(), table(&rows));
                for row in rows.iter().filter(|row| row.cost.unfound > 0) {
                    println!("{}: {} updates were not seen within a second", row.name, row.cost.unfound);
                }
                measured.push(Measured { demand, rows });
            }
            Err(why) => {
                eprintln!("{why}");
                return 1;
            }
        }
    }
    match record(measured, options) {
        Ok(()) => 0,
        Err(why) => {
            eprintln!("{why}");
            1
        }
    }
}

fn nonsense(options: &CompareOptions) -> Option<String> {
    let bounded = |what: &str, number: u64, most: u64| {
        (!(1..=most).contains(&number)).then(|| format!("not between 1 and {most} {what}: {number}"))
    };
    let of_demand = |demand: &Demand| {
        bounded("GETs a SET", demand.gets, GETS_MAX)
            .or_else(|| bounded("ms of thinking", demand.think_ms, THINK_MS_MAX))
            .or_else(|| bounded("ms between heartbeats", demand.heartbeat_ms, HEARTBEAT_MS_MAX))
    };
    bounded("seconds", options.seconds, SECONDS_MAX)
        .or_else(|| bounded("rounds", options.rounds, ROUNDS_MAX))
        .or_else(|| options.demands.iter().find_map(of_demand))
}

fn measure(contestants: &[Contestant], demand: Demand, options: &CompareOptions) -> Result<Vec<Row>, String> {
    let span = Span { warmup_us: WARMUP_US, counted_us: 1_000_000 * options.seconds };
    let mut costs: Vec<Cost> = Vec::new();
    for contestant in contestants {
        let name = contestant.name();
        let cost = watch(contestant, 1, demand, span).map_err(|why| format!("{name}: {why}"))?;
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
    for seed in 1..=options.rounds {
        for (contestant, times) in contestants.iter().zip(&mut node_ns) {
            let name = contestant.name();
            let ns = clock(contestant, seed, demand, span, stopwatch);
            times.push(ns.map_err(|why| format!("{name}: {why}"))?);
        }
        eprintln!("processor time: {seed} of {}", options.rounds);
    }
    let base = contestants.iter().position(|contestant| contestant.protocol == BASE).unwrap_or(0);
    let base_ns = node_ns[base].clone();
    let rows = contestants.iter().zip(costs).zip(&node_ns).map(|((contestant, cost), times)| {
        let ratios: Vec<f64> = base_ns.iter().zip(times).map(|(base, ns)| base / ns).collect();
        let throughput = Throughput {
            least: ratios.iter().copied().fold(f64::INFINITY, f64::min),
            most: ratios.iter().copied().fold(0.0, f64::max),
            median: median(ratios),
        };
        Row { name: contestant.name(), cost, node_us: median(times.clone()) / 1e3, throughput }
    });
    Ok(rows.collect())
}

pub(super) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}

/// Processor time of this thread: others on the machine take none of it.
pub fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What reading that clock takes: the least of many times.
pub fn reading_ns() -> u64 {
    (0..10_000).map(|_| thread_ns()).map(|before| thread_ns() - before).min().unwrap_or(0)
}

fn record(measured: Vec<Measured>, options: &CompareOptions) -> Result<(), String> {
    let mut text =
        format!("{} Only throughput and node time depend on it.\n", made_by(options.commit.as_deref()));
    for Measured { demand, rows } in &measured {
        text += &format!("\n## {}\n\n{}.\n\n{}", demand.name, demand.words(), table(rows));
    }
    text += &format!("\n{LEGEND}");
    let loads: Vec<(&str, Vec<Row>)> =
        measured.into_iter().map(|measured| (measured.demand.name, measured.rows)).collect();
    let title = "The protocols side by side";
    written_record(options, title, &text, &chart::svg(title, &loads))
}

/// Writes the file that the options name, if they name one, and the picture beside it.
pub(super) fn written_record(
    options: &CompareOptions,
    title: &str,
    text: &str,
    picture: &str,
) -> Result<(), String> {
    let Some(path) = options.record.as_deref() else { return Ok(()) };
    let beside = path.with_extension("svg");
    let name = beside.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let write = |path: &Path, text: &str| {
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    write(
        path,
        &format!("# {title}\n\n    {}\n\n![the same as a picture]({name})\n\n{text}", options.command),
    )?;
    write(&beside, picture)
}

/// What was measured, and on what.
pub(super) fn made_by(commit: Option<&str>) -> String {
    let build = if cfg!(debug_assertions) { "development build" } else { "release build" };
    let commit = commit.map(|commit| format!(", commit {commit}")).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "Ensue {}{commit}, {build}. Machine: {cores} cores, {}.",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH
    )
}

/// What the columns mean.
pub const LEGEND: &str = include_str!("cli/legend.md");
