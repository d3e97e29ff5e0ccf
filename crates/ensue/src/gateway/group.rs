//! `ensue gateway prophecy`: keys of a group, a replica of it, and a sketcher before it.

use anyhow::{Context, bail};
use clap::ValueEnum;
use ensue_gateway::prophecy::members::{self, Members, Protocol, Secret};
use ensue_gateway::prophecy::sketch::Reads;
use ensue_gateway::prophecy::{Handling, replica, sketch};
use ensue_prophecy::limits::FAST_PATIENCE_US;
use ensue_prophecy::lists::Lists;
use ensue_server::shutdown::Stop;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Prophecy before a Byzantine-replicated service: make a group, run its replicas, and a sketcher before them
#[derive(Debug, clap::Subcommand)]
pub(crate) enum GroupCommand {
    Keys(KeysArgs),
    Replica(ReplicaArgs),
    Sketch(SketchArgs),
}

/// Make the files of a group: `group`, which all members have, and a secret for each
#[derive(Debug, clap::Args)]
pub(crate) struct KeysArgs {
    /// Where the files are made
    directory: PathBuf,
    /// What clients and the servers behind the replicas speak
    #[arg(long, value_name = "PROTOCOL")]
    protocol: ProtocolName,
    /// A replica: its name, and where it takes connections of the group; 4, 7, 10, ... of them
    #[arg(long = "replica", value_name = "NAME=ADDRESS:PORT", required = true)]
    replicas: Vec<String>,
    /// Sketchers, each of which may make requests
    #[arg(long, value_name = "N", default_value_t = 1)]
    sketchers: usize,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProtocolName {
    Redis,
    Http,
}

/// Files of a member.
#[derive(Debug, clap::Args)]
struct MemberArgs {
    /// The file `group`
    #[arg(long, value_name = "FILE")]
    group: PathBuf,
    /// The secret of this member
    #[arg(long, value_name = "FILE")]
    secret: PathBuf,
    /// Show figures here, over HTTP
    #[arg(long, value_name = "ADDRESS:PORT")]
    figures: Option<SocketAddr>,
}

/// Run a replica: agree on the order of requests, and have a server execute them
///
/// The server behind it must be in its first state: this replica has it execute all requests since the first one.
#[derive(Debug, clap::Args)]
pub(crate) struct ReplicaArgs {
    #[command(flatten)]
    member: MemberArgs,
    /// Where blocks are kept
    #[arg(long, value_name = "DIRECTORY")]
    data: PathBuf,
    /// The server behind this replica, which nobody else may write to
    #[arg(long, value_name = "ADDRESS:PORT")]
    application: SocketAddr,
}

/// Run a sketcher: serve clients from one replica where its history table agrees, and from the group otherwise
#[derive(Debug, clap::Args)]
pub(crate) struct SketchArgs {
    #[command(flatten)]
    member: MemberArgs,
    /// Where clients connect
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// Requests that the replicas serve at a time
    #[arg(long, value_name = "N", default_value_t = 40)]
    sessions: usize,
    /// Entries of the history table, 44 bytes each
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    entries: usize,
    /// Milliseconds that one replica may take for a read
    #[arg(long, value_name = "MS", default_value_t = FAST_PATIENCE_US / 1_000)]
    fast_patience_ms: u64,
    /// How reads are served: the other two are what Prophecy is compared with
    #[arg(long, value_name = "HOW", default_value = "fast")]
    reads: ReadsName,
    /// Answer reads that match from one replica always, without comparing: `GET /static/*`, `GET page:*`; repeatable
    #[arg(long = "whitelist", value_name = "PATTERN")]
    whitelist: Vec<String>,
    /// Never answer reads that match from one replica; repeatable, and before the whitelist
    #[arg(long = "blacklist", value_name = "PATTERN")]
    blacklist: Vec<String>,
    /// Take requests that differ in this header only for the same (HTTP); repeatable
    #[arg(long = "ignore-header", value_name = "NAME")]
    ignored_headers: Vec<String>,
    /// Remove this header from responses before they are compared and returned (HTTP); repeatable
    #[arg(long = "remove-header", value_name = "NAME")]
    removed_headers: Vec<String>,
    /// For measurements: treat so many fast answers in a thousand as if they did not agree
    #[arg(long, value_name = "N", default_value_t = 0, hide = true)]
    failing_per_mille: u64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ReadsName {
    /// By one replica, if the history table agrees
    Fast,
    /// In the order, as writes
    Replicated,
    /// By all replicas at once, outside the order, if 2f+1 agree
    Optimized,
}

pub(super) fn run(command: &GroupCommand) -> anyhow::Result<ExitCode> {
    match command {
        GroupCommand::Keys(args) => run_keys(args),
        GroupCommand::Replica(args) => run_replica(args),
        GroupCommand::Sketch(args) => run_sketch(args),
    }
}

fn run_keys(args: &KeysArgs) -> anyhow::Result<ExitCode> {
    let mut replicas = Vec::new();
    for replica in &args.replicas {
        let Some((name, address)) = replica.split_once('=') else { bail!("{replica}: NAME=ADDRESS:PORT") };
        let address = address.parse::<SocketAddr>().with_context(|| replica.clone())?;
        replicas.push((name.to_string(), address));
    }
    let protocol = match args.protocol {
        ProtocolName::Redis => Protocol::Redis,
        ProtocolName::Http => Protocol::Http,
    };
    members::create(&args.directory, protocol, &replicas, args.sketchers)
        .with_context(|| args.directory.display().to_string())?;
    println!("{} has the files of a group of {}", args.directory.display(), replicas.len());
    Ok(ExitCode::SUCCESS)
}

fn run_replica(args: &ReplicaArgs) -> anyhow::Result<ExitCode> {
    let stop = Stop::on_signals().context("cannot watch for signals")?;
    let (members, secret) = files(&args.member)?;
    let role = secret.role;
    replica::start(&replica::Settings {
        members,
        secret,
        directory: args.data.clone(),
        application: args.application,
        figures: args.member.figures,
    })
    .context("the replica cannot start")?;
    println!("{role} serves");
    println!("stopping: {}", stop.wait());
    Ok(ExitCode::SUCCESS)
}

fn run_sketch(args: &SketchArgs) -> anyhow::Result<ExitCode> {
    let stop = Stop::on_signals().context("cannot watch for signals")?;
    let (members, secret) = files(&args.member)?;
    let role = secret.role;
    let address = sketch::start(&sketch::Settings {
        members,
        secret,
        listen: args.listen,
        figures: args.member.figures,
        sessions: args.sessions,
        table_entries: args.entries,
        fast_patience: Duration::from_millis(args.fast_patience_ms),
        reads: match args.reads {
            ReadsName::Fast => Reads::Fast,
            ReadsName::Replicated => Reads::Replicated,
            ReadsName::Optimized => Reads::Optimized,
        },
        handling: Handling {
            lists: Lists::new(&args.whitelist, &args.blacklist),
            ignored_headers: args.ignored_headers.clone(),
            removed_headers: args.removed_headers.clone(),
        },
        failing_per_mille: args.failing_per_mille,
    })
    .context("the sketcher cannot start")?;
    println!("{role} serves on {address}");
    println!("stopping: {}", stop.wait());
    Ok(ExitCode::SUCCESS)
}

fn files(args: &MemberArgs) -> anyhow::Result<(Members, Secret)> {
    let members = Members::read(&args.group).with_context(|| args.group.display().to_string())?;
    let secret = Secret::read(&args.secret).with_context(|| args.secret.display().to_string())?;
    Ok((members, secret))
}
