//! `ensue gateway sim prophecy`: seeded worlds of Prophecy and D-Prophecy, judged.

use clap::ValueEnum;
use ensue_prophecy::sim::{self, Options, Report, System};
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Each such seed is run twice, and both runs must agree to the last event.
const TWICE_EVERY: u64 = 50;
/// Between two lines of progress where nobody watches.
const LINE_INTERVAL: Duration = Duration::from_secs(30);
const CANNOT_RUN: u8 = 2;

/// Run seeded worlds of Prophecy and D-Prophecy with lying replicas, and judge what clients saw
///
/// Exit status: 0 if every seed is clean, 1 if one is not, 2 if the command line makes no sense.
#[derive(Debug, clap::Args)]
pub(crate) struct SimArgs {
    /// Run this many seeds
    #[arg(long, value_name = "N", default_value_t = 100)]
    seeds: u64,
    /// First seed of `--seeds`
    #[arg(long, value_name = "N", default_value_t = 1)]
    start: u64,
    /// Run one seed and report it in full
    #[arg(long, value_name = "N", conflicts_with_all = ["seeds", "start"])]
    seed: Option<u64>,
    /// Replicas that lie; as many as the seed draws, of those that are tolerated, unless given
    #[arg(long, value_name = "K")]
    liars: Option<usize>,
    /// Run only this system
    #[arg(long, value_name = "SYSTEM")]
    system: Option<SystemName>,
    /// Break the rule of this name, to see what follows; in a build with the feature `breakable`
    #[arg(long = "break", value_name = "RULE")]
    broken: Option<String>,
    /// Threads; 0 means one a core
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SystemName {
    Prophecy,
    DProphecy,
}

impl From<SystemName> for System {
    fn from(name: SystemName) -> System {
        match name {
            SystemName::Prophecy => System::Prophecy,
            SystemName::DProphecy => System::DProphecy,
        }
    }
}

/// What all seeds have come to.
#[derive(Default)]
struct Sum {
    seeds: u64,
    twice: u64,
    operations: usize,
    reads: usize,
    fast_reads: usize,
    stale_reads: usize,
    stale_run_max: usize,
    transitions: u64,
    stale_caught: u64,
    /// The lowest seed that is not clean, and what is wrong.
    failed: Option<(u64, String)>,
    told: Option<Instant>,
}

pub(crate) fn run(args: &SimArgs) -> ExitCode {
    let options = match options(args) {
        Ok(options) => options,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(CANNOT_RUN);
        }
    };
    if let Some(seed) = args.seed {
        let report = sim::run(seed, &options);
        println!("{}", in_full(&report));
        return verdict(seed, &report).map_or(ExitCode::SUCCESS, |why| failed(args, seed, &why));
    }
    let sum = run_many(args, &options);
    if let Some((seed, why)) = &sum.failed {
        return failed(args, *seed, why);
    }
    println!("{}", in_short(&sum));
    ExitCode::SUCCESS
}

fn options(args: &SimArgs) -> Result<Options, String> {
    let mut options =
        Options { liars: args.liars, system: args.system.map(System::from), ..Options::default() };
    if let Some(name) = &args.broken {
        options.broken = broken(name)?;
    }
    Ok(options)
}

#[cfg(feature = "breakable")]
fn broken(name: &str) -> Result<ensue_prophecy::rule::Broken, String> {
    use ensue_prophecy::rule::{Broken, Rule};
    Rule::from_name(name).map(Broken::rule).ok_or_else(|| {
        let names: Vec<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
        format!("unknown rule {name}; there are {}", names.join(", "))
    })
}

#[cfg(not(feature = "breakable"))]
fn broken(_name: &str) -> Result<ensue_prophecy::rule::Broken, String> {
    Err("this build keeps every rule: build with `--features breakable`".into())
}

fn run_many(args: &SimArgs, options: &Options) -> Sum {
    let threads = match args.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let end = args.start.saturating_add(args.seeds);
    let next = AtomicU64::new(args.start);
    let sum = Mutex::new(Sum { told: Some(Instant::now()), ..Sum::default() });
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let mut report = if seed < end { sim::run(seed, options) } else { return };
                    let is_twice = seed % TWICE_EVERY == 0;
                    let mut why = verdict(seed, &report);
                    if is_twice && sim::run(seed, options).event_hash != report.event_hash {
                        why = Some(format!("seed {seed} ran in two different ways"));
                    }
                    let mut sum = sum.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    report.history.operations.clear();
                    sum.add(&report, is_twice);
                    sum.tell(args.seeds);
                    if let Some(why) = why {
                        // Lower seeds are under way, so the lowest that fails is found in every run.
                        next.store(end, Ordering::Relaxed);
                        if sum.failed.as_ref().is_none_or(|(lowest, _)| seed < *lowest) {
                            sum.failed = Some((seed, why));
                        }
                    }
                }
            });
        }
    });
    sum.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Sum {
    fn add(&mut self, report: &Report, is_twice: bool) {
        self.seeds += 1;
        self.twice += u64::from(is_twice);
        self.operations += report.operations;
        self.reads += report.reads;
        self.fast_reads += report.fast_reads;
        self.stale_reads += report.stale_reads;
        self.stale_run_max = self.stale_run_max.max(report.stale_run_max);
        for statistics in &report.statistics {
            self.transitions += statistics.transitions;
            self.stale_caught += statistics.stale_caught();
        }
    }

    fn tell(&mut self, seeds: u64) {
        if std::io::stderr().is_terminal() {
            if self.seeds % 20 == 0 {
                eprint!("\r{} of {seeds} seeds", self.seeds);
                // Progress that cannot be shown is no reason to stop.
                let _ = std::io::stderr().flush();
            }
        } else if self.told.is_some_and(|told| told.elapsed() >= LINE_INTERVAL) {
            self.told = Some(Instant::now());
            eprintln!("{} of {seeds} seeds", self.seeds);
        }
    }
}

fn verdict(seed: u64, report: &Report) -> Option<String> {
    let first = report.violations.first()?;
    let more = report.violations.len() - 1;
    let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
    Some(format!("seed {seed} is not clean: {first}{more}"))
}

fn failed(args: &SimArgs, seed: u64, why: &str) -> ExitCode {
    let mut replay = format!("ensue gateway sim prophecy --seed {seed}");
    if let Some(liars) = args.liars {
        write!(replay, " --liars {liars}").expect("a string takes all");
    }
    if let Some(system) = args.system.and_then(|system| system.to_possible_value()) {
        write!(replay, " --system {}", system.get_name()).expect("a string takes all");
    }
    if let Some(rule) = &args.broken {
        write!(replay, " --break {rule}").expect("a string takes all");
    }
    println!("{why}\nreplay: {replay}");
    ExitCode::FAILURE
}

fn in_short(sum: &Sum) -> String {
    format!(
        "{} seeds are clean, {} of them run twice. {} operations; of {} reads {} % were fast and {} % stale, at most \
         {} in a row; {} transitions seen, {} old answers caught.",
        sum.seeds,
        sum.twice,
        sum.operations,
        sum.reads,
        percent(sum.fast_reads, sum.reads),
        percent(sum.stale_reads, sum.reads),
        sum.stale_run_max,
        sum.transitions,
        sum.stale_caught,
    )
}

fn percent(part: usize, whole: usize) -> String {
    format!("{:.1}", 100.0 * part as f64 / whole.max(1) as f64)
}

fn in_full(report: &Report) -> String {
    let mut out = format!("{:#?}\n", report.shape);
    for operation in &report.history.operations {
        let returned = operation.returned_us.map_or_else(|| "never".into(), |time| time.to_string());
        writeln!(
            out,
            "{:>10} to {returned:>10} us: client {} {:?} of object {}: value {}",
            operation.invoked_us, operation.process, operation.kind, operation.object.0, operation.value.0
        )
        .expect("a string takes all");
    }
    for statistics in &report.statistics {
        writeln!(out, "{statistics:#?}").expect("a string takes all");
    }
    write!(
        out,
        "{} reads, {} fast, {} stale, at most {} in a row; hash of all events {:016x}",
        report.reads, report.fast_reads, report.stale_reads, report.stale_run_max, report.event_hash
    )
    .expect("a string takes all");
    for violation in &report.violations {
        write!(out, "\n{violation}").expect("a string takes all");
    }
    out
}
