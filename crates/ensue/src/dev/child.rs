//! One datacenter of a dev cluster in a process of its own, run by `ensue dev --processes`.
//!
//! It says `ready` on standard output when its nodes run, takes link changes as lines on standard input, and stops
//! when that ends: with its parent, whatever became of it.

use super::plan::Plan;
use super::{DevArgs, start_datacenter};
use crate::memory;
use anyhow::Context;
use ensue_server::admin::LinkChange;
use ensue_server::shutdown::{Stop, stop};
use ensue_server::{Machine, log};
use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::thread;

/// Run one datacenter of a dev cluster; for `ensue dev --processes`
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ChildArgs {
    /// The number of the datacenter, from 0
    #[arg(long)]
    index: u8,
    #[command(flatten)]
    dev: DevArgs,
}

pub(crate) fn run_child(args: &ChildArgs) -> anyhow::Result<ExitCode> {
    let plan = Plan::new(&args.dev)?;
    anyhow::ensure!(args.index < args.dev.datacenters, "there is no datacenter {}", args.index);
    log::set_level(plan.loglevel());
    let stopping = Stop::on_signals().context("cannot watch for signals")?;
    let machine =
        Machine::of_this_process(args.dev.nodes.into()).with_memory(memory::report).with_purge(memory::purge);
    plan.shape(&machine.shaper);
    let (names, shaper, request) = (plan.names(), machine.shaper.clone(), stopping.request());
    // The parent writes the present shape of the links first; it must hold before the first link is dialled.
    let told = std::io::stdin().lock().lines().map_while(Result::ok);
    told.take_while(|line| line != START).for_each(|line| apply(&line, &names, &shaper));
    let nodes = start_datacenter(&plan, usize::from(args.index), &machine)?;
    writeln!(std::io::stdout(), "{READY}").context("the parent is gone")?;
    thread::Builder::new().name("ensue-control".into()).spawn(move || {
        let lines = std::io::stdin().lock().lines();
        for line in lines.map_while(Result::ok) {
            apply(&line, &names, &shaper);
        }
        request.ask("the parent wants it, or is gone");
    })?;
    stopping.wait();
    Ok(if stop(nodes) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What the parent says after the shape of the links.
pub(super) const START: &str = "start";
/// What the child says when its nodes run.
pub(super) const READY: &str = "ready";

fn apply(line: &str, names: &[String], shaper: &ensue_server::Shaper) {
    let words: Vec<&str> = line.split_whitespace().skip(1).collect();
    match LinkChange::parse(&words, names) {
        Ok(change) => change.apply(shaper),
        Err(reason) => log::warning(format_args!("control line '{line}': {reason}")),
    }
}
