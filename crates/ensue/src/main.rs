//! The one binary: it reads the command line and hands over to the file of the subcommand.

mod backup;
mod bench;
mod branches;
mod certificates;
mod check;
mod cli;
mod cluster;
mod compare;
mod completions;
mod demo;
mod dev;
mod diff;
mod export;
mod fsck;
mod gateway;
mod import;
mod link;
mod login;
mod man;
mod memory;
mod nodes;
mod paint;
mod record;
mod recover;
mod secret;
mod server;
mod sim;
mod status;
mod tls;
mod top;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// Ensue: an active-active, geo-replicated data store with causal+ consistency that speaks the Redis protocol
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Ensue {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Server(server::ServerArgs),
    Dev(dev::DevArgs),
    #[command(hide = true)]
    DevChild(dev::ChildArgs),
    Link(link::LinkArgs),
    Cli(cli::CliArgs),
    Status(status::StatusArgs),
    Cluster(Box<cluster::ClusterArgs>),
    Top(top::TopArgs),
    Bench(Box<bench::BenchArgs>),
    Branches(branches::BranchesArgs),
    Sim(sim::SimArgs),
    Compare(compare::CompareArgs),
    Check(check::CheckArgs),
    Fsck(fsck::FsckArgs),
    Gateway(gateway::GatewayArgs),
    Import(Box<import::ImportArgs>),
    Export(export::ExportArgs),
    Diff(Box<diff::DiffArgs>),
    Backup(Box<backup::BackupArgs>),
    Restore(backup::restore::RestoreArgs),
    Recover(recover::RecoverArgs),
    Secret(secret::SecretArgs),
    Certificates(certificates::CertificatesArgs),
    Demo(demo::DemoArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

impl Command {
    /// Whether its files have what clients have stored, or what lets somebody read it.
    fn writes_data(&self) -> bool {
        let serves =
            matches!(self, Command::Server(_) | Command::Dev(_) | Command::DevChild(_) | Command::Demo(_));
        let repairs = matches!(self, Command::Fsck(_) | Command::Recover(_) | Command::Secret(_));
        let carries = matches!(
            self,
            Command::Import(_) | Command::Export(_) | Command::Backup(_) | Command::Restore(_)
        );
        serves || repairs || carries
    }
}

/// Whatever this process creates from here on is for its user alone, whatever the shell allows others.
fn keep_files_private() {
    use rustix::fs::Mode;
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
}

fn main() -> ExitCode {
    let command = Ensue::parse().command;
    if command.writes_data() {
        keep_files_private();
    }
    let result = match command {
        Command::Server(args) => server::run(&args),
        Command::Dev(args) => dev::run(&args),
        Command::DevChild(args) => dev::run_child(&args),
        Command::Link(args) => link::run(&args),
        Command::Cli(args) => cli::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Cluster(args) => cluster::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Branches(args) => branches::run(&args),
        Command::Sim(args) => sim::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Check(args) => check::run(&args),
        Command::Fsck(args) => fsck::run(&args),
        Command::Gateway(args) => gateway::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Backup(args) => backup::run(&args),
        Command::Restore(args) => backup::restore::run(&args),
        Command::Recover(args) => recover::run(&args),
        Command::Secret(args) => secret::run(&args),
        Command::Certificates(args) => certificates::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Completions(args) => completions::run(&args, Ensue::command()),
        Command::Man(args) => man::run(&args, Ensue::command()),
    };
    result.unwrap_or_else(|error| {
        eprintln!("ensue: {error:#}");
        ExitCode::FAILURE
    })
}
