//! `ensue gateway`: systems that stand in front of services. This file only dispatches.

mod trods;

use clap::Subcommand;
use std::process::ExitCode;

/// Gateways in front of unmodified services
#[derive(Debug, clap::Args)]
pub(crate) struct GatewayArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a gateway's seeded simulator
    #[command(subcommand)]
    Sim(Sim),
}

#[derive(Debug, Subcommand)]
enum Sim {
    Trods(trods::SimArgs),
}

pub(crate) fn run(args: &GatewayArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Sim(Sim::Trods(args)) => trods::run_sim(args),
    }
}
