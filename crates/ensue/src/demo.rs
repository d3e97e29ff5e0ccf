//! `ensue demo`: the photo album and its access list, told step by step over three datacenters.
//!
//! A running dev cluster is used if one answers on the port and has the protocol asked for; otherwise the demo starts
//! one of its own on other ports, in a temporary folder, and removes it. The process ends with 0 if what was promised
//! was seen: under `eiger` that order held, under `eventual` that it did not. It promises nothing about speed.

mod album;
mod narrator;
mod session;
mod stage;
mod watch;

use album::Album;
use narrator::Narrator;
use stage::Stage;
use std::process::ExitCode;

/// Tell the story of a photo album and its access list, with a link cut in the middle
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Protocol: `eiger` keeps the order of cause and effect, `eventual` shows what happens without
    #[arg(long, value_name = "NAME", default_value = "eiger", value_parser = ["eiger", "eventual"])]
    protocol: String,
    /// Client port of dc1 of a running dev cluster; if none is there, the demo starts its own elsewhere
    #[arg(long, value_name = "PORT", default_value_t = 7001)]
    port: u16,
    /// Do not pause between the steps
    #[arg(long)]
    fast: bool,
}

pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<ExitCode> {
    let narrator = Narrator::new(args.fast);
    narrator.title("The photo album and its access list");
    let stage = Stage::find(args.port, &args.protocol, &narrator)?;
    let promised = match args.protocol.as_str() {
        "eventual" => Promise::OrderIsLost,
        _ => Promise::OrderHolds,
    };
    let kept = Album { stage: &stage, narrator: &narrator, promised }.tell()?;
    Ok(if kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What the demo sets out to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Promise {
    OrderHolds,
    OrderIsLost,
}
