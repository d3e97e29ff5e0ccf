//! The load of `ensue bench`: options to a plan, progress to the terminal, a report to the screen and to files.
//!
//! The table goes to standard output and progress to standard error, so that `--json -` can be piped. The process ends
//! with 0 if every operation succeeded, 1 if one failed, 2 if nothing was measured.

use crate::paint::Paint;
use anyhow::Context;
use ensue_load::keys::Access;
use ensue_load::pace::{Arrivals, Pace};
use ensue_load::picture;
use ensue_load::report::{Point, Report};
use ensue_load::run::{self, Bound, Plan, Preload, Progress};
use ensue_load::sizes::Sizes;
use ensue_load::target::Target;
use ensue_load::workload::{PRESETS, Workload};
use std::fs;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

pub(super) const LEGEND: &str = "\
Operations of a mix: get, set, del, expire, incr, incrbyfloat, setbit, hget, hset, sadd, lpush, lpop, lrange, zadd, \
zincrby, zrange, xadd, xrange, pfadd, eval, mget:N, mset:N; handover (an RPUSH to a client that waits in BLPOP); read, \
update, insert, scan, rmw (YCSB's, on records of ten fields); columns-read, columns-write, columns-write-atomic \
(Eiger's, on hashes).

Without --rate the loop is closed: each client has --pipeline operations under way. With --rate it is open: operations \
begin at times of their own, and latency begins there, so that waiting behind a stalled server counts.

Exit status: 0 if every operation succeeded, 1 if some failed, 2 if nothing was measured.

docs/benchmarking.md is a guide.";

#[derive(Debug, clap::Args)]
pub(super) struct LoadArgs {
    /// Servers, as redis://[user:password@]host:port[/db]; several are datacenters of one store
    #[arg(value_name = "URL", default_value = "redis://127.0.0.1:7001")]
    urls: Vec<Target>,
    /// Another store, measured in turns with the first; may be given once a datacenter
    #[arg(long, value_name = "URL", conflicts_with = "requests")]
    against: Vec<Target>,
    /// A named workload, or a mix such as get=9,set=1
    #[arg(short, long, value_name = "NAME|MIX", default_value = "set=1,get=10")]
    workload: Workload,
    /// List the named workloads and where they come from
    #[arg(long)]
    workloads: bool,
    /// How keys are chosen, if not as the workload says: uniform, zipf[:THETA], scrambled[:THETA], latest[:THETA], hot,
    /// groups:KEYS[:VARIANCE]
    #[arg(short, long, value_name = "HOW")]
    access: Option<Access>,
    /// Bytes of a value, if not as the workload says: 64, 16-256, or 16:60,32:39,4096:1 with weights
    #[arg(short = 'd', long = "size", value_name = "SIZES")]
    sizes: Option<Sizes>,
    /// Number of keys
    #[arg(short = 'r', long, value_name = "N", default_value_t = 100_000,
        value_parser = clap::value_parser!(u64).range(1..))]
    keys: u64,
    /// What the names of keys begin with
    #[arg(long, value_name = "TEXT", default_value = "bench:")]
    prefix: String,
    /// Connections in all
    #[arg(short, long, value_name = "N", default_value_t = 50,
        value_parser = clap::value_parser!(u32).range(1..=20_000))]
    clients: u32,
    /// Operations that a connection has under way at most
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pipeline: u32,
    /// Threads of the generator
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: u32,
    /// Operations a second, in an open loop
    #[arg(long, value_name = "N", value_parser = rate)]
    rate: Option<f64>,
    /// How the arrivals of an open loop are spaced: poisson or constant
    #[arg(long, value_name = "HOW", default_value = "poisson", requires = "rate")]
    arrivals: Arrivals,
    /// Seconds that are counted
    #[arg(short, long, value_name = "SECONDS", default_value = "10", value_parser = seconds,
        conflicts_with = "requests")]
    seconds: Duration,
    /// Instead of seconds: operations that are counted
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Seconds before that are not counted
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds_or_none)]
    warm_up: Duration,
    /// Seconds of a turn, with --against
    #[arg(long, value_name = "SECONDS", default_value = "0.5", value_parser = seconds)]
    slice: Duration,
    /// Where the keys are written before: at the first server, which replicates them to the others, at each, or none
    #[arg(long, value_name = "WHERE", default_value = "first", value_parser = ["first", "each", "none"])]
    preload: String,
    /// Version of the protocol
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=3))]
    resp: u8,
    /// Processes of the servers, whose processor time is measured; found by INFO on this machine
    #[arg(long, value_name = "PID,PID", value_delimiter = ',')]
    pid: Vec<u32>,
    /// Processes of the other store
    #[arg(long, value_name = "PID,PID", value_delimiter = ',', requires = "against")]
    against_pid: Vec<u32>,
    /// The same seed gives the same operations
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the results as JSON; `-` is standard output, in place of the table
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// Draw latency by percentile, and both over time
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// The longest that a run takes.
const SECONDS_MAX: f64 = 7.0 * 24.0 * 3_600.0;
/// How long answers are waited for at the end.
const DRAIN: Duration = Duration::from_secs(5);
const RATE_MAX: f64 = 1e8;
/// Characters of the bar.
const BAR: u64 = 20;

pub(super) fn run(args: &LoadArgs) -> anyhow::Result<ExitCode> {
    if args.workloads {
        for preset in &PRESETS {
            println!("{:<22} {}", preset.name, preset.source);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let plan = plan(args);
    let mut screen = Screen::new();
    let report = match run::run(&plan, |progress| screen.show(&progress)) {
        Ok(report) => report,
        Err(error) => {
            screen.clear();
            eprintln!("ensue: {error}");
            return Ok(ExitCode::from(2));
        }
    };
    screen.clear();
    let to_stdout = args.json.as_ref().is_some_and(|file| file.as_os_str() == "-");
    if !to_stdout {
        print!("{}", report.table());
    }
    write_files(args, &plan, &report, to_stdout)?;
    Ok(if report.failed() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn plan(args: &LoadArgs) -> Plan {
    let mut workload = args.workload.clone();
    workload.access = args.access.unwrap_or(workload.access);
    if let Some(sizes) = &args.sizes {
        workload.sizes = sizes.clone();
    }
    Plan {
        targets: args.urls.clone(),
        against: args.against.clone(),
        pids: args.pid.clone(),
        against_pids: args.against_pid.clone(),
        workload,
        keys: args.keys,
        prefix: args.prefix.clone(),
        clients: args.clients as usize,
        pipeline: args.pipeline as usize,
        threads: args.threads as usize,
        pace: args.rate.map_or(Pace::Closed, |rate| Pace::Open { rate, arrivals: args.arrivals }),
        warm_up: args.warm_up,
        bound: args.requests.map_or(Bound::Time(args.seconds), Bound::Operations),
        slice: args.slice,
        drain: DRAIN,
        preload: match args.preload.as_str() {
            "none" => Preload::None,
            "each" => Preload::Each,
            _ => Preload::First,
        },
        resp: args.resp,
        seed: args.seed,
    }
}

fn write_files(args: &LoadArgs, plan: &Plan, report: &Report, to_stdout: bool) -> anyhow::Result<()> {
    let write = |file: &PathBuf, text: &str| {
        fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
    };
    if let Some(file) = &args.json {
        let mut json = report.json();
        json["workload"] = plan.workload.name.as_str().into();
        json["workload_source"] = plan.workload.source.as_str().into();
        json["access"] = format!("{:?}", plan.workload.access).into();
        json["sizes"] = plan.workload.sizes.to_string().into();
        json["keys"] = plan.keys().into();
        json["clients"] = plan.clients.into();
        json["pipeline"] = plan.pipeline.into();
        json["threads"] = plan.threads.into();
        json["rate"] = args.rate.into();
        json["seed"] = plan.seed.into();
        let text = format!("{json:#}\n");
        if to_stdout {
            std::io::stdout().write_all(text.as_bytes())?;
        } else {
            write(file, &text)?;
        }
    }
    match &args.svg {
        Some(file) => write(file, &picture::svg(report)),
        None => Ok(()),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    seconds_or_none(text).and_then(|seconds| match seconds < Duration::from_millis(10) {
        true => Err("at least 0.01".into()),
        false => Ok(seconds),
    })
}

fn seconds_or_none(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=SECONDS_MAX).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "no number of seconds of at most a week".into())
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| (0.001..=RATE_MAX).contains(rate));
    rate.ok_or_else(|| format!("no number between 0.001 and {RATE_MAX}"))
}

/// One line on standard error that is written over; nothing where that is no terminal.
struct Screen {
    is_terminal: bool,
    paint: Paint,
}

impl Screen {
    fn new() -> Screen {
        let is_terminal = std::io::stderr().is_terminal();
        Screen { is_terminal, paint: Paint::for_stdout() }
    }

    fn show(&mut self, progress: &Progress) {
        let line = match progress {
            Progress::Preload { keys } => format!("writing {keys} keys"),
            Progress::Second { interval, seconds, of } => {
                let point = Point::new(interval, *seconds);
                let us = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.0}"));
                let bar = of.map_or(String::new(), |of| bar(interval.number + 1, of));
                format!(
                    "{bar} {:>6.1} s {:>9.0} ops/s  p50 {:>6} us  p99 {:>6} us  {} failed",
                    point.second,
                    point.rate,
                    us(point.p50_us),
                    us(point.p99_us),
                    point.failed
                )
            }
            Progress::Pair { number, of, ours, theirs } => {
                let ratio = ours / theirs;
                format!("{} {ours:>9.0} ops/s against {theirs:>9.0}: {ratio:.2}", bar(*number, *of))
            }
        };
        self.put(&self.paint.dim(&line));
    }

    fn clear(&mut self) {
        self.put("");
    }

    fn put(&self, line: &str) {
        if self.is_terminal {
            eprint!("\r\x1b[2K{line}");
            // A terminal that is gone shows nothing.
            let _ = std::io::stderr().flush();
        }
    }
}

fn bar(done: u64, of: u64) -> String {
    let full = (BAR * done.min(of) / of.max(1)) as usize;
    format!("[{}{}]", "#".repeat(full), "-".repeat(BAR as usize - full))
}
