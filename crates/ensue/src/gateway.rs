//! `ensue gateway`: systems that stand before a replicated service. Hands over to the file of the subcommand.

mod prophecy;
mod study;

use std::process::ExitCode;

/// Systems that stand before a replicated service: simulate them, and study where they help
#[derive(Debug, clap::Args)]
pub(crate) struct GatewayArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Run seeded worlds of one of the systems
    #[command(subcommand)]
    Sim(Sim),
    Study(study::StudyArgs),
}

#[derive(Debug, clap::Subcommand)]
enum Sim {
    Prophecy(prophecy::SimArgs),
}

pub(crate) fn run(args: &GatewayArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Sim(Sim::Prophecy(args)) => Ok(prophecy::run(args)),
        Command::Study(args) => study::run(args),
    }
}
