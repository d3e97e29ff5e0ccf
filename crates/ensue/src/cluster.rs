//! `ensue cluster`: which nodes replicate the partitions of a datacenter, and how that is changed while it serves.
//!
//! [`plan`] says which replicas move where, from what the owners tell ([`group`]); [`carry_out`] has them move, one
//! after the other. A replica moves for as long as that is asked for: whoever stops half-way leaves nothing half done,
//! and the same command goes on where it was.

mod carry_out;
mod group;
mod plan;
mod show;

use crate::import::{Address, Stop};
use crate::login::LoginArgs;
use crate::paint::Paint;
use anyhow::{Context, bail, ensure};
use carry_out::Mover;
use ensue_client::{ClientError, Connection, Options, Reply};
use group::Datacenter;
use plan::Plan;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

/// See and change which nodes replicate the partitions of a datacenter
///
/// Nodes have the numbers that `self DATACENTER NUMBER` in their configurations gives them, as `ensue cluster show`
/// shows them. Each command that changes something shows its plan first; `--yes` carries it out without a question.
#[derive(Debug, clap::Args)]
pub(crate) struct ClusterArgs {
    #[command(subcommand)]
    command: Command,
    /// Any node of the datacenter
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7001", global = true)]
    at: Address,
    #[command(flatten)]
    login: LoginArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show for each partition its owner, and how far each of its replicas is
    Show,
    /// Move a replica of one partition from one node to another
    Move {
        partition: u16,
        #[arg(long, value_name = "NODE")]
        from: u16,
        #[arg(long, value_name = "NODE")]
        to: u16,
        #[command(flatten)]
        consent: Consent,
    },
    /// Move all replicas away from a node, to those that have the fewest
    Drain {
        node: u16,
        #[command(flatten)]
        consent: Consent,
    },
    /// Move replicas until no node has more than one above another
    Balance {
        #[command(flatten)]
        consent: Consent,
    },
}

#[derive(Clone, Copy, Debug, clap::Args)]
struct Consent {
    /// Carry the plan out without a question
    #[arg(long)]
    yes: bool,
    /// Show the plan only
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

/// Exit status of a command that waits for `--yes`.
const UNDECIDED: u8 = 2;
/// An owner that says nothing for so long is not waited for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(8);

pub(crate) fn run(args: &ClusterArgs) -> anyhow::Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let mut asking = Asking { args, connection: None };
    let datacenter = Datacenter::ask(&mut asking)?;
    let (plan, consent) = match &args.command {
        Command::Show => {
            print!("{}", show::text(&datacenter, Paint::for_stdout()));
            return Ok(ExitCode::SUCCESS);
        }
        Command::Move { partition, from, to, consent } => {
            (Plan::of_one(&datacenter, *partition, *from, *to)?, consent)
        }
        Command::Drain { node, consent } => (Plan::drain(&datacenter, *node)?, consent),
        Command::Balance { consent } => (Plan::balance(&datacenter)?, consent),
    };
    print!("{}", plan.text(Paint::for_stdout()));
    if plan.moves.is_empty() || consent.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    if !consent.yes && !is_agreed()? {
        println!("nothing was moved; `--yes` carries the plan out");
        return Ok(ExitCode::from(UNDECIDED));
    }
    let mover = Mover { asking: &mut asking, stop: &stop };
    mover.carry_out(&plan)
}

/// Asks on a terminal; where there is none, nobody has agreed.
fn is_agreed() -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    print!("Carry it out? [y/N] ");
    std::io::stdout().flush()?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

/// A connection to a node of the datacenter, which is made again when it breaks.
struct Asking<'a> {
    args: &'a ClusterArgs,
    connection: Option<Connection>,
}

impl Asking<'_> {
    fn open(&self) -> anyhow::Result<Connection> {
        let args = self.args;
        let options = Options { answer_timeout: ANSWER_TIMEOUT, ..args.at.options() };
        Ok(Connection::open(&args.login.with(options)?)?)
    }

    /// The text that a command is answered with, or what it is refused with.
    fn call(&mut self, words: &[&str]) -> anyhow::Result<Result<String, String>> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.open().context("no node of the datacenter answers there")?,
        };
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let answer = match connection.call(&words) {
            Ok(Reply::Bulk(text) | Reply::Verbatim(text)) => Ok(String::from_utf8_lossy(&text).into_owned()),
            Ok(Reply::Error(words)) => Err(words.into_owned()),
            Ok(other) => bail!("the node answers {other:?}"),
            Err(ClientError::Timeout) => return Ok(Err("TIMEOUT the node does not answer".into())),
            Err(error) => return Err(error.into()),
        };
        self.connection = Some(connection);
        Ok(answer)
    }

    /// The lines of `INFO` that say how large the datacenter is: its name, its partitions, its nodes.
    fn size(&mut self) -> anyhow::Result<(String, u16, u16)> {
        let text = self.call(&["INFO", "replication"])?.map_err(|words| anyhow::anyhow!("{words}"))?;
        let fields = crate::nodes::fields(&text);
        let number = |name: &str| -> anyhow::Result<u16> {
            let value = fields.get(name).with_context(|| format!("this server's INFO has no {name}"))?;
            Ok(value.parse()?)
        };
        ensure!(
            number("ensue_replicas")? > 1,
            "`replicas` is 1 in this datacenter: there is nothing to move"
        );
        let name = fields.get("ensue_datacenter_name").cloned().unwrap_or_default();
        Ok((name, number("ensue_partitions")?, number("ensue_nodes")?))
    }
}
