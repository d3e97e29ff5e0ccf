//! `ensue compare`: the protocols under the same load, in the simulator's world.

use ensue_sim::cli::compare::CompareOptions;
use ensue_sim::compare::load::{AppendFsync, Demand};
use std::path::PathBuf;
use std::process::ExitCode;

/// Run the same clients under every protocol, and print what each costs and shows
#[derive(Debug, clap::Args)]
pub(crate) struct CompareArgs {
    /// Only these protocols, beside the one that all are compared with
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    protocols: Vec<String>,
    /// Virtual seconds that are counted, of each run
    #[arg(long, value_name = "N", default_value_t = 10)]
    seconds: u64,
    /// GETs for each SET
    #[arg(long, value_name = "N", default_value_t = 8)]
    gets: u64,
    /// How long each client thinks before its next question, in the mean
    #[arg(long, value_name = "N", default_value_t = 10)]
    think_ms: u64,
    /// Sync every write before it is answered, instead of every second
    #[arg(long)]
    always_sync: bool,
    /// Write the table into this markdown file, too
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

pub(crate) fn run(args: CompareArgs) -> anyhow::Result<ExitCode> {
    let CompareArgs { protocols, seconds, gets, think_ms, always_sync, record } = args;
    let append_fsync = if always_sync { AppendFsync::Always } else { AppendFsync::EverySecond };
    let demand = Demand { gets, think_ms, append_fsync };
    let code = ensue_sim::cli::compare::run(&CompareOptions { protocols, demand, seconds, record });
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(2)))
}
