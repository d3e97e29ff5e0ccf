//! `ensue bench cpu`: the processor time of each operation, and the latency of hand-overs, beside another server.
//!
//! Without addresses it starts both servers, a server of this program and `redis-server`, on free ports and in folders
//! of their own, and ends them. Tables go to standard output, progress to standard error. The process ends with 0 if
//! every operation succeeded, 1 if some failed, 2 if nothing could be measured.

mod servers;

use crate::paint::Paint;
use anyhow::{Context, ensure};
use ensue_load::costs::{self, Costs, Names, Results};
use ensue_load::pace::Pace;
use ensue_load::run::{Bound, Plan, Preload};
use ensue_load::sizes::Sizes;
use ensue_load::target::Target;
use ensue_load::workload::Workload;
use servers::Servers;
use std::fs;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Compare the processor time of each operation with that of another server
#[derive(Debug, clap::Args)]
pub(super) struct CpuArgs {
    /// The server that is measured; without it, servers are started
    #[arg(value_name = "URL", requires = "against")]
    url: Option<Target>,
    /// The other server
    #[arg(long, value_name = "URL", requires = "url")]
    against: Option<Target>,
    /// The process of the server, if its INFO does not name it
    #[arg(long, value_name = "PID", requires = "url")]
    pid: Option<u32>,
    /// The process of the other server
    #[arg(long, value_name = "PID", requires = "url")]
    against_pid: Option<u32>,
    /// The program whose `server` is started, if not this one
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    program: Option<PathBuf>,
    /// The program that is started as the other server
    #[arg(long, value_name = "FILE", default_value = "redis-server", conflicts_with = "url")]
    redis: PathBuf,
    /// Partitions of the server that is started
    #[arg(long, value_name = "N", default_value_t = 8, conflicts_with = "url",
        value_parser = clap::value_parser!(u16).range(1..=1_024))]
    partitions: u16,
    /// An operation or a mix, in place of all; may be given several times
    #[arg(short, long, value_name = "MIX")]
    workload: Vec<Workload>,
    /// Operations under way on each connection
    #[arg(short = 'P', long, value_name = "N,N", value_delimiter = ',', default_value = "1,16,64",
        value_parser = clap::value_parser!(u16).range(1..))]
    pipeline: Vec<u16>,
    /// Connections
    #[arg(short, long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..))]
    clients: u16,
    /// Numbers of pairs that hand over, of which one waits in BLPOP
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1,10,50",
        value_parser = clap::value_parser!(u16).range(1..))]
    pairs: Vec<u16>,
    /// Number of keys of each type
    #[arg(short = 'r', long, value_name = "N", default_value_t = 10_000,
        value_parser = clap::value_parser!(u64).range(1..))]
    keys: u64,
    /// Bytes of a value
    #[arg(short = 'd', long = "size", value_name = "SIZES", default_value = "64")]
    sizes: Sizes,
    /// Turns of each server, for each operation and pipeline
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=999))]
    rounds: u16,
    /// Milliseconds of a turn
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u16).range(20..))]
    slice_ms: u16,
    /// Write the page with both tables into this file, too
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// The commit that is measured, for the record
    #[arg(long, value_name = "NAME", hide = true)]
    commit: Option<String>,
}

/// What is measured where nothing is named. What takes away is measured together with what adds.
const OPERATIONS: [&str; 22] = [
    "get",
    "set",
    "set=1,del=1",
    "expire",
    "mget:10",
    "mset:10",
    "incr",
    "incrbyfloat",
    "setbit",
    "hget",
    "hset",
    "sadd",
    "lpush",
    "lpush=1,lpop=1",
    "lrange",
    "zadd",
    "zincrby",
    "zrange",
    "xadd",
    "xrange",
    "pfadd",
    "eval",
];
/// Turns that warm up, of each server.
const WARM_UP_TURNS: u32 = 1;
/// How long answers are waited for at the end of a turn: what is slow is to be measured, and not to fail.
const DRAIN: Duration = Duration::from_secs(30);
const PREFIX: &str = "bench:";

pub(super) fn run(args: &CpuArgs) -> anyhow::Result<ExitCode> {
    let load = load_average();
    let started = match args.url {
        Some(_) => None,
        None => match Servers::start(args.program.as_deref(), &args.redis, args.partitions) {
            Ok(servers) => Some(servers),
            Err(error) => {
                eprintln!("ensue: {error:#}");
                return Ok(ExitCode::from(2));
            }
        },
    };
    let costs = costs(args, started.as_ref())?;
    let results = match costs::measure(&costs, show) {
        Ok(results) => results,
        Err(error) => {
            put("");
            eprintln!("ensue: {error}");
            return Ok(ExitCode::from(2));
        }
    };
    put("");
    let page = page(args, &costs, &results, started.as_ref(), &load);
    print!("{page}");
    if let Some(file) = &args.record {
        fs::write(file, &page).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(if results.failed() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn costs(args: &CpuArgs, started: Option<&Servers>) -> anyhow::Result<Costs> {
    let [ours, theirs] = match (started, &args.url, &args.against) {
        (Some(servers), _, _) => servers.urls()?,
        (None, Some(url), Some(against)) => [url.clone(), against.clone()],
        _ => anyhow::bail!("two servers are compared: --against names the other"),
    };
    ensure!(!args.pipeline.is_empty(), "--pipeline takes at least one number");
    let mut operations = args.workload.clone();
    if operations.is_empty() {
        operations = OPERATIONS.iter().map(|mix| mix.parse()).collect::<Result<_, _>>()?;
    }
    operations.iter_mut().for_each(|workload| workload.sizes = args.sizes.clone());
    let slice = Duration::from_millis(u64::from(args.slice_ms));
    let plan = Plan {
        targets: vec![ours],
        against: vec![theirs],
        pids: args.pid.into_iter().collect(),
        against_pids: args.against_pid.into_iter().collect(),
        workload: "get".parse()?,
        keys: args.keys,
        prefix: PREFIX.into(),
        clients: usize::from(args.clients),
        pipeline: 1,
        threads: 1,
        pace: Pace::Closed,
        warm_up: slice * 2 * WARM_UP_TURNS,
        bound: Bound::Time(slice * 2 * u32::from(args.rounds)),
        slice,
        drain: DRAIN,
        preload: Preload::First,
        resp: 2,
        seed: 1,
    };
    let pipelines = args.pipeline.iter().copied().map(usize::from).collect();
    let pairs = args.pairs.iter().copied().map(usize::from).collect();
    Ok(Costs { plan, operations, pipelines, pairs })
}

/// The page of figures, with what was measured and on what.
fn page(args: &CpuArgs, costs: &Costs, results: &Results, started: Option<&Servers>, load: &str) -> String {
    let names = Names { ours: "ensue", theirs: "redis" };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let commit = args.commit.as_deref().map(|commit| format!(" at {commit}")).unwrap_or_default();
    let servers = match started {
        Some(servers) => format!(
            "{}{commit}, of one core and {} partitions, and {}, both with an append-only file that is synced every \
             second",
            servers.versions[0], args.partitions, servers.versions[1]
        ),
        None => format!("{}{commit} and {}", costs.plan.targets[0], costs.plan.against[0]),
    };
    let mut out = String::from("# Processor time of each command, beside Redis\n\n");
    out += &wrapped(
        "Microseconds that the server's process ran for an operation, as the kernel counts them. The servers take \
         turns within each operation; medians of turns, and of the ratios of neighbouring turns the median, the least \
         and the most. P is the number of operations under way on each connection. What children of a process take, \
         such as the one in which Redis rewrites its file, is not in it; what a server does on its own threads is. \
         [Benchmarking](../benchmarking.md#operations) says what each operation is.",
    );
    out += "\n    ensue bench cpu --record docs/figures/cpu.md\n\n";
    out += &wrapped(&format!(
        "{servers}. The machine had {cores} cores, and a load of {load} before. {} rounds of {} ms a turn; {} \
         connections, {} keys of each type, values of {} bytes.",
        args.rounds, args.slice_ms, args.clients, args.keys, args.sizes
    ));
    out.push('\n');
    out += &results.processor_table(&costs.pipelines, names);
    out += "\n## Handing over\n\n";
    out += &wrapped(
        "One client of each pair is blocked in `BLPOP`, the other pushes. Microseconds from the push to the answer of \
         the pop, and of the server's process for both commands. The next element is pushed when one has arrived.",
    );
    out.push('\n');
    out += &results.hand_over_table(&costs.pairs, names);
    if results.failed() > 0 {
        out += &format!("\nFAILED: {} operations\n", results.failed());
    }
    out
}

/// Threads that ran or waited to in the last minute: what else the machine did.
fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().filter(|load| !load.is_empty()).unwrap_or("unknown size").to_owned()
}

/// As lines of at most 120 characters.
fn wrapped(text: &str) -> String {
    let (mut out, mut length) = (String::new(), 0);
    for word in text.split(' ') {
        if length > 0 && length + 1 + word.len() > 120 {
            out.push('\n');
            length = 0;
        } else if length > 0 {
            out.push(' ');
            length += 1;
        }
        out += word;
        length += word.len();
    }
    out.push('\n');
    out
}

fn show(next: &str, done: usize, of: usize) {
    put(&Paint::for_stdout().dim(&format!("{done}/{of}  {next}")));
}

/// One line on standard error that is written over; nothing where that is no terminal.
fn put(line: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[2K{line}");
        // A terminal that is gone shows nothing.
        let _ = std::io::stderr().flush();
    }
}
