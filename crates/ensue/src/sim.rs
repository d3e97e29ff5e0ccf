//! `ensue sim`: the simulator, on this machine's cores.

use ensue_sim::cli::SimOptions;
use std::path::PathBuf;
use std::process::ExitCode;

/// Run the seeded simulator: whole clusters under faults, checked against the true causal graph
#[derive(Debug, clap::Args)]
pub(crate) struct SimArgs {
    /// Run this many seeds
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// Run one seed and report it in full
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Run a scenario file, or all of a directory
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seeds", "seed"])]
    scenario: Option<PathBuf>,
    /// First seed of `--seeds`
    #[arg(long, value_name = "N", default_value_t = 1)]
    start: u64,
    /// Run seeds for this long
    #[arg(long, value_name = "N", conflicts_with = "seed")]
    minutes: Option<u64>,
    /// Continue after a failing seed; report each failure, write its files, and count them
    #[arg(long, conflicts_with_all = ["seed", "scenario", "breaks", "exhaust"])]
    keep_going: bool,
    /// Add a row about the run to this markdown file; with `--breaks`, write the page of broken rules
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// The commit that the row names
    #[arg(long, value_name = "COMMIT", requires = "record")]
    commit: Option<String>,
    /// Run every seed with this protocol, and scripts only with it; `each` runs all of them in turn
    #[arg(long, value_name = "NAME")]
    protocol: Option<String>,
    /// In each seed a datacenter fails permanently and is declared dead
    #[arg(long)]
    losing: bool,
    /// In each seed directories of a datacenter are lost, exchanged, or replaced by old copies
    #[arg(long)]
    losing_directories: bool,
    /// In each seed a datacenter is added while clients work
    #[arg(long, conflicts_with_all = ["losing", "losing_directories", "replicas"])]
    joining: bool,
    /// In each seed a datacenter is removed in good order while clients work
    #[arg(long, conflicts_with_all = ["losing", "losing_directories", "joining", "replicas"])]
    retiring: bool,
    /// In each seed keys have a home, which moves while clients work
    #[arg(long, conflicts_with_all = ["joining", "retiring", "replicas"])]
    moving_homes: bool,
    /// In each seed every partition is on three cores of its datacenter, which are killed and cut off
    #[arg(long, conflicts_with_all = ["losing", "losing_directories", "wild_clocks"])]
    replicas: bool,
    /// In each seed clocks run far ahead, and operators give their datacenters other times
    #[arg(long, conflicts_with_all = ["losing", "losing_directories"])]
    wild_clocks: bool,
    /// Break the rule of this name, to see the anomaly that follows
    #[arg(long = "break", value_name = "RULE")]
    broken: Option<String>,
    /// Break each of these rules in turn, or every rule, and report after how many seeds it is caught: at most
    /// `--seeds` seeds each
    #[arg(long, value_name = "RULE,RULE", num_args = 0..=1, default_missing_value = "", value_delimiter = ',')]
    breaks: Option<Vec<String>>,
    /// Compare the event hashes of the first seeds of every protocol with those of this file, or write it if it is
    /// missing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "scenario", "breaks", "exhaust"])]
    hashes: Option<PathBuf>,
    /// Print every event of a seed, one a line
    #[arg(long)]
    trace: bool,
    /// Threads; 0 means one a core
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// Visit every interleaving of one small case, or of all of them
    #[arg(long, value_name = "CASE", num_args = 0..=1, conflicts_with_all = ["seeds", "seed", "scenario"])]
    exhaust: Option<Option<String>>,
    /// Limit of states of one case
    #[arg(long, value_name = "N", default_value_t = 40_000_000)]
    states_max: u64,
    /// Directory for the report, trace and history of a failing run
    #[arg(long, value_name = "DIR", default_value = "ensue-sim-failures")]
    out: PathBuf,
    /// Shrink a failing run to a readable script for at most this long; 0 does not
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    shrink_seconds: u64,
}

pub(crate) fn run(args: SimArgs) -> anyhow::Result<ExitCode> {
    if let Some(name) = &args.exhaust {
        let rules = ensue_sim::cli::rules_without(args.broken.as_deref());
        let visit = |rules| ensue_exhaust::cli::run(name.as_deref(), rules, args.states_max);
        return Ok(exit_code(rules.map_or_else(|code| code, visit)));
    }
    let breaks = args.breaks.map(|names| names.into_iter().filter(|name| !name.is_empty()).collect());
    let options = SimOptions {
        seeds: args.seeds,
        seed: args.seed,
        scenario: args.scenario,
        start: args.start,
        minutes: args.minutes,
        keep_going: args.keep_going,
        record: args.record,
        commit: args.commit,
        protocol: args.protocol,
        losing: args.losing,
        losing_directories: args.losing_directories,
        joining: args.joining,
        retiring: args.retiring,
        moving_homes: args.moving_homes,
        replicas: args.replicas,
        wild_clocks: args.wild_clocks,
        broken: args.broken,
        breaks,
        hashes: args.hashes,
        trace: args.trace,
        threads: args.threads,
        out: Some(args.out),
        shrink_seconds: args.shrink_seconds,
    };
    Ok(exit_code(ensue_sim::cli::run(&options)))
}

fn exit_code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(2))
}
