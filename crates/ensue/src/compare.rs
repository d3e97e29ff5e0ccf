//! `ensue compare`: the protocols under the same load, in the simulator's world.

use ensue_compare::cli::{CompareOptions, LEGEND};
use ensue_compare::demand::{AppendFsync, Demand, LOADS};
use std::path::PathBuf;
use std::process::ExitCode;

/// Run the same clients under every protocol, and print what each costs and shows
#[derive(Debug, clap::Args)]
#[command(after_long_help = LEGEND)]
pub(crate) struct CompareArgs {
    /// Only these protocols, beside the one that all are compared with
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    protocols: Vec<String>,
    /// What clients ask: `read-heavy` (32 GETs a SET), `balanced` (one GET a SET), `spread` (uniform keys, writes in
    /// the session's own partition, synced at once)
    #[arg(
        long,
        value_name = "NAME,NAME",
        value_delimiter = ',',
        default_value = "read-heavy,balanced,spread"
    )]
    load: Vec<String>,
    /// Virtual seconds that are counted, of each run
    #[arg(long, value_name = "N", default_value_t = 10)]
    seconds: u64,
    /// How often the processor time of all protocols is measured
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: u64,
    /// Another number of GETs for each SET
    #[arg(long, value_name = "N")]
    gets: Option<u64>,
    /// Another time that each client thinks before its next question, in the mean
    #[arg(long, value_name = "N")]
    think_ms: Option<u64>,
    /// Another time between the heartbeats of a silent partition
    #[arg(long, value_name = "N")]
    heartbeat_ms: Option<u64>,
    /// Sync every write before it is answered
    #[arg(long)]
    always_sync: bool,
    /// Cut a datacenter's links under load for so many virtual seconds, and show what each protocol goes on to answer
    /// and has to remember; the loads above are not run
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "60")]
    cut: Option<u64>,
    /// Run a branching keyspace (`protocol tardis`) in one, two and three datacenters, and show what one more costs
    /// those that are there; the loads above are not run
    #[arg(long, conflicts_with_all = ["cut", "protocols"])]
    sites: bool,
    /// Write the tables into this markdown file, too, and a picture (.svg) beside it
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// The commit that is measured, for the record
    #[arg(long, value_name = "NAME", hide = true)]
    commit: Option<String>,
}

pub(crate) fn run(args: CompareArgs) -> anyhow::Result<ExitCode> {
    let command = command_line();
    let CompareArgs { protocols, load, seconds, rounds, record, commit, .. } = &args;
    let mut demands = Vec::new();
    for name in load {
        let Some(demand) = Demand::by_name(name) else {
            let names: Vec<&str> = LOADS.iter().map(|demand| demand.name).collect();
            eprintln!("unknown load {name}; there are {}", names.join(", "));
            return Ok(ExitCode::from(2));
        };
        demands.push(Demand {
            gets: args.gets.unwrap_or(demand.gets),
            think_ms: args.think_ms.unwrap_or(demand.think_ms),
            heartbeat_ms: args.heartbeat_ms.unwrap_or(demand.heartbeat_ms),
            append_fsync: if args.always_sync { AppendFsync::Always } else { demand.append_fsync },
            ..demand
        });
    }
    let code = ensue_compare::cli::run(&CompareOptions {
        protocols: protocols.clone(),
        demands,
        seconds: *seconds,
        rounds: *rounds,
        record: record.clone(),
        command,
        commit: commit.clone(),
        cut: args.cut,
        sites: args.sites,
    });
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(2)))
}

/// The command as it would be typed again: without what only the record needs.
fn command_line() -> String {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    while let Some(at) = words.iter().position(|word| word == "--record" || word == "--commit") {
        words.drain(at..(at + 2).min(words.len()));
    }
    format!("ensue {}", words.join(" "))
}
