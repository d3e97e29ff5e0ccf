//! Many seeds on all cores, by number or by time: progress, the first failure in the order of seeds, or with
//! `--keep-going` all failures, the marks, a record.
//!
//! A share of the seeds is run twice, and both runs must agree to the last event.

use super::total::Total;
use super::{SimOptions, failure, run_as};
use crate::oracle::staleness::StaleReads;
use crate::oracle::{Violation, property};
use crate::rules::Rules;
use crate::run::Report;
use crate::world::marks::Marks;
use ensue_protocol::Promises;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// From this many seeds on every required mark must have been hit.
pub(super) const SEEDS_FOR_MARKS: u64 = 1_000;
/// Each such seed is run twice.
const TWICE_EVERY: u64 = 50;
const SEEDS_BY_DEFAULT: u64 = 100;
/// Between two lines of progress where nobody watches.
const LINE_INTERVAL: Duration = Duration::from_secs(30);

#[derive(Default)]
struct Sum {
    marks: Marks,
    seeds: u64,
    twice: u64,
    operations: u64,
    events: u64,
    virtual_us: u64,
    /// Seeds of each protocol.
    protocols: BTreeMap<String, u64>,
    stale_reads: BTreeMap<String, StaleReads>,
    /// The property that each failing seed violates.
    failed: BTreeMap<u64, &'static str>,
    /// The lowest failing seed's report, if that ends the run.
    first: Option<Report>,
    told: Option<Instant>,
}

impl Sum {
    /// What the protocols promise that were run.
    fn promises(&self) -> Vec<Promises> {
        self.protocols.keys().filter_map(|name| Promises::of(name)).collect()
    }
}

/// What bounds a run of many seeds.
struct Work<'a> {
    next: AtomicU64,
    end: u64,
    began: Instant,
    /// After this nothing new is begun.
    until: Option<Duration>,
    rules: Rules,
    /// A failure is told at once, by one thread at a time, and the others go on.
    keep_going: Option<Mutex<SimOptions>>,
    options: &'a SimOptions,
}

pub(super) fn threads(options: &SimOptions) -> usize {
    match options.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    }
}

/// Runs them, and adds them to a total. The exit code.
pub(super) fn run_many(options: &SimOptions, rules: Rules, total: &mut Total) -> i32 {
    let until = options.minutes.map(|minutes| Duration::from_secs(60 * minutes));
    let seeds = match (options.seeds, until) {
        (Some(seeds), _) => seeds,
        (None, Some(_)) => u64::MAX / 2,
        (None, None) => SEEDS_BY_DEFAULT,
    };
    let end = options.start.saturating_add(seeds);
    let keep_going = options.keep_going.then(|| Mutex::new(options.clone()));
    let next = AtomicU64::new(options.start);
    let work = Work { next, end, began: Instant::now(), until, rules, keep_going, options };
    let sum = Mutex::new(Sum::default());
    std::thread::scope(|scope| {
        for _ in 0..threads(options) {
            scope.spawn(|| worker(&work, &sum));
        }
    });
    let sum = sum.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    if std::io::stderr().is_terminal() {
        eprintln!();
    }
    total.seeds += sum.seeds;
    total.marks.join(&sum.marks);
    total.promises.extend(sum.promises());
    report(&sum, options, work.began.elapsed())
}

fn worker(work: &Work<'_>, sum: &Mutex<Sum>) {
    while work.until.is_none_or(|until| work.began.elapsed() < until) {
        let seed = work.next.fetch_add(1, Ordering::Relaxed);
        if seed >= work.end {
            return;
        }
        let mut one = run_as(seed, work.rules, work.options, false);
        let twice = seed % TWICE_EVERY == 0;
        if twice && one.violation.is_none() {
            one.violation = differs(&one, &run_as(seed, work.rules, work.options, false));
        }
        let Ok(mut sum) = sum.lock() else { return };
        sum.marks.join(&one.marks);
        sum.seeds += 1;
        sum.twice += u64::from(twice);
        sum.operations += one.operations;
        sum.events += one.events;
        sum.virtual_us += one.virtual_us;
        *sum.protocols.entry(one.options.protocol.name.to_owned()).or_default() += 1;
        sum.stale_reads.entry(one.options.protocol.name.to_owned()).or_default().add(one.stale_reads);
        progress(work, &mut sum);
        let Some(violation) = &one.violation else { continue };
        sum.failed.insert(seed, violation.property);
        match &work.keep_going {
            Some(telling) => {
                drop(sum);
                let Ok(options) = telling.lock() else { return };
                println!("seed            {seed}");
                failure::tell(&one, &options);
            }
            None => {
                // The others finish the seeds below this one, so that the first failure is the same every time.
                work.next.fetch_max(work.end, Ordering::Relaxed);
                if sum.first.as_ref().is_none_or(|first| first.options.seed > seed) {
                    sum.first = Some(one);
                }
            }
        }
    }
}

/// What is wrong if two runs of one seed are not the same.
fn differs(one: &Report, other: &Report) -> Option<Violation> {
    let words = format!(
        "{} events with hash {:016x}, then {} events with hash {:016x}",
        one.events, one.hash, other.events, other.hash
    );
    ((one.hash, one.events) != (other.hash, other.events)).then(|| Violation::new(property::REPEATS, words))
}

/// A line that is overwritten on a terminal, and a line now and then elsewhere.
fn progress(work: &Work<'_>, sum: &mut Sum) {
    let mut out = std::io::stderr();
    let watched = out.is_terminal();
    let pause = if watched { Duration::from_millis(200) } else { LINE_INTERVAL };
    let last = *sum.told.get_or_insert(work.began);
    if last.elapsed() < pause {
        return;
    }
    sum.told = Some(Instant::now());
    let seconds = work.began.elapsed().as_secs_f64();
    let share = match work.until {
        Some(until) => seconds / until.as_secs_f64(),
        None => {
            sum.seeds as f64 / (work.end - work.next.load(Ordering::Relaxed).min(work.end) + sum.seeds) as f64
        }
    };
    let (rate, operations) = (sum.seeds as f64 / seconds, sum.operations);
    let (hit, missing) = (sum.marks.hit(), sum.marks.missing(&sum.promises()).len());
    let text = format!(
        "{} seeds, {rate:.1}/s, {operations} operations, marks {hit} hit, {missing} not yet",
        sum.seeds
    );
    let _ = if watched {
        let filled = (share.clamp(0.0, 1.0) * 24.0) as usize;
        let bar = format!("{}{}", "#".repeat(filled), ".".repeat(24 - filled));
        write!(out, "\r\x1b[K\x1b[36m{bar}\x1b[0m {text}")
    } else {
        writeln!(out, "{text}")
    };
    let _ = out.flush();
}

fn report(sum: &Sum, options: &SimOptions, elapsed: Duration) -> i32 {
    let seconds = elapsed.as_secs_f64();
    println!(
        "{} seeds ({} twice), {} operations, {} events, {:.0} s of virtual time in {seconds:.1} s: {:.1} seeds/s",
        sum.seeds,
        sum.twice,
        sum.operations,
        sum.events,
        sum.virtual_us as f64 / 1e6,
        sum.seeds as f64 / seconds
    );
    for (protocol, seeds) in &sum.protocols {
        let stale = sum.stale_reads.get(protocol).copied().unwrap_or_default();
        println!("  {protocol}: {seeds} seeds, stale reads {stale}");
    }
    let missing: Vec<String> = sum.marks.missing(&sum.promises()).iter().map(ToString::to_string).collect();
    if let Some(path) = &options.record {
        if let Err(error) = record(path, sum, options, seconds, &missing) {
            eprintln!("{}: {error}", path.display());
            return 2;
        }
    }
    if let Some(report) = &sum.first {
        println!("seed            {}", report.options.seed);
        failure::tell(report, options);
        return 1;
    }
    for (seed, property) in &sum.failed {
        println!("seed {seed} failed: {property}");
    }
    print!("{}", sum.marks.table(&sum.promises()));
    if sum.seeds >= SEEDS_FOR_MARKS && !missing.is_empty() {
        println!("never happened: {}", missing.join(", "));
        return 1;
    }
    i32::from(!sum.failed.is_empty())
}

const RECORD_HEAD: &str = "\
# Soaks

Runs of many seeds of the simulator, each a row that `cargo xtask soak --record` has added.

| commit | seeds | first seed | protocols | operations | virtual time | wall time | failed | marks never hit |
|---|--:|--:|---|--:|--:|--:|---|---|
";

/// Adds a row to the record, which is begun if there is none.
fn record(
    path: &Path,
    sum: &Sum,
    options: &SimOptions,
    seconds: f64,
    missing: &[String],
) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    if file.metadata()?.len() == 0 {
        file.write_all(RECORD_HEAD.as_bytes())?;
    }
    let protocols: Vec<String> =
        sum.protocols.iter().map(|(name, seeds)| format!("{name} {seeds}")).collect();
    writeln!(
        file,
        "| {} | {} | {} | {} | {} | {:.0} s | {seconds:.0} s | {} | {} |",
        options.commit.as_deref().unwrap_or("unknown"),
        sum.seeds,
        options.start,
        protocols.join(", "),
        sum.operations,
        sum.virtual_us as f64 / 1e6,
        failures(&sum.failed),
        if missing.is_empty() { "none".to_owned() } else { missing.join(", ") }
    )
}

/// How many seeds failed, and the first of them by name.
fn failures(failed: &BTreeMap<u64, &'static str>) -> String {
    const NAMED: usize = 5;
    if failed.is_empty() {
        return "none".to_owned();
    }
    let named: Vec<String> =
        failed.iter().take(NAMED).map(|(seed, property)| format!("seed {seed}: {property}")).collect();
    let more = if failed.len() > NAMED { "; ..." } else { "" };
    format!("{}: {}{more}", failed.len(), named.join("; "))
}

#[cfg(test)]
mod tests;
