//! `ensue gateway`: systems that stand before services. Hands over to the file of the subcommand.

#[cfg(feature = "byzantine")]
mod group;
mod prophecy;
mod shell;
mod study;
mod trods;

use std::process::ExitCode;

/// Systems that stand before unmodified services: run and simulate them, and study where they help
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
    #[cfg(feature = "byzantine")]
    #[command(subcommand)]
    Prophecy(group::GroupCommand),
    Trods(shell::TrodsArgs),
    Balance(shell::BalanceArgs),
}

#[derive(Debug, clap::Subcommand)]
enum Sim {
    Prophecy(prophecy::SimArgs),
    Trods(trods::SimArgs),
}

pub(crate) fn run(args: &GatewayArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Sim(Sim::Prophecy(args)) => Ok(prophecy::run(args)),
        Command::Study(args) => study::run(args),
        #[cfg(feature = "byzantine")]
        Command::Prophecy(command) => group::run(command),
        Command::Trods(args) => shell::run_trods(args),
        Command::Balance(args) => shell::run_balance(args),
        Command::Sim(Sim::Trods(args)) => trods::run_sim(args),
    }
}
