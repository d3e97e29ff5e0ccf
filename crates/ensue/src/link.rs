//! `ensue link`: cuts, heals or delays a link of a running dev cluster, through its admin port.

use anyhow::{Context, anyhow};
use ensue_server::admin;
use std::process::ExitCode;

/// Cut, heal or delay the link between two datacenters of a running dev cluster
#[derive(Debug, clap::Args)]
pub(crate) struct LinkArgs {
    /// One end, such as dc1
    one: String,
    /// The other end, such as dc2
    other: String,
    #[command(subcommand)]
    change: Change,
    /// First client port of the dev cluster
    #[arg(long, value_name = "PORT", default_value_t = 7001, global = true)]
    port: u16,
}

#[derive(Debug, clap::Subcommand)]
enum Change {
    /// Close the connections between the two and refuse new ones
    Cut,
    /// Let the two connect again
    Heal,
    /// Hold back what one sends to the other
    Delay {
        /// Milliseconds each way, such as 40 or 40ms
        #[arg(value_name = "MS", value_parser = admin::delay_ms)]
        delay: u32,
    },
}

pub(crate) fn run(args: &LinkArgs) -> anyhow::Result<ExitCode> {
    let change = match args.change {
        Change::Cut => "cut".to_string(),
        Change::Heal => "heal".to_string(),
        Change::Delay { delay } => format!("delay {delay}"),
    };
    let line = format!("link {} {} {change}", args.one, args.other);
    let answer = admin::ask(args.port, &line)
        .with_context(|| format!("no dev cluster whose first port is {} can be reached", args.port))?;
    println!("{}", answer.map_err(|reason| anyhow!(reason))?);
    Ok(ExitCode::SUCCESS)
}
