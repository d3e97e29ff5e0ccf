//! `ensue-torture`: real servers, real processes, real disks and connections, harmed while recorded clients work, and
//! judged.
//!
//! Round after round on one cluster: clients work for some seconds under faults of one kind, then everything is mended,
//! all datacenters must come to hold the same, fresh sessions read everything, and the checker judges the whole round's
//! history. The seed draws the faults and the clients' choices; real time does the rest, so a seed does not repeat a
//! run.

mod branches;
mod cluster;
mod fault;
mod judge;
mod namespace;
mod ports;
mod process;
mod proxy;
mod random;
mod recorder;
mod report;
mod torment;
mod workload;

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;

/// Harm a cluster of real servers under recorded clients, and check what the clients saw
#[derive(Clone, Debug, Parser)]
#[command(name = "ensue-torture")]
pub struct Args {
    /// How long
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    minutes: f64,
    /// Draws the faults and the clients' choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The server under test
    #[arg(long, value_name = "FILE", default_value = "target/release/ensue")]
    binary: PathBuf,
    /// Data, logs and histories; emptied at the start
    #[arg(long, value_name = "PATH", default_value = "target/torture")]
    dir: PathBuf,
    /// First of 400 free ports; found unless given
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Protocol of the keyspace; the server's own choice unless given
    #[arg(long, value_name = "NAME")]
    protocol: Option<String>,
    /// `always`, `everysec` or `no`
    #[arg(long, value_name = "WHEN", default_value = "everysec")]
    appendfsync: String,
    /// Clients working at the same time
    #[arg(long, value_name = "N", default_value_t = 9)]
    clients: usize,
    /// Seconds that clients work in each round
    #[arg(long, value_name = "N", default_value_t = 15)]
    round_seconds: u64,
    /// Break this rule in every server (needs a binary built with `--features breakable`): the run must fail
    #[arg(long = "break", value_name = "RULE")]
    broken: Option<String>,
    /// Only this kind of faults in every round, instead of each in turn
    #[arg(long, value_enum)]
    weather: Option<fault::Weather>,
    /// Do not use network namespaces, even where this machine allows them
    #[arg(long)]
    loopback: bool,
    /// Keep every round's history, not only those that show a violation
    #[arg(long)]
    keep: bool,
    /// Append the result to this file
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

fn main() -> ExitCode {
    match torment::run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("ensue-torture: {error:#}");
            ExitCode::from(2)
        }
    }
}
