//! `ensue recover`: the operator gives up what will never come back.

use ensue_server::recover;
use std::path::PathBuf;
use std::process::ExitCode;

/// Let the partitions of a stopped node start without datacenters that are gone for good
///
/// A partition that lost the end of its log with the power (TAILLOST) waits for all other datacenters. What only a given-up
/// one had received is declared lost. If it comes back after all, with more than the others had, its partitions stop.
#[derive(Debug, clap::Args)]
pub(crate) struct RecoverArgs {
    /// The `dir` of a node, or the folder of one datacenter in it
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// A datacenter that is gone for good, by its name; may be given several times
    #[arg(long, value_name = "DATACENTER", required = true)]
    without: Vec<String>,
    /// Do it; without this it is only shown
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(args: &RecoverArgs) -> anyhow::Result<ExitCode> {
    let plan = recover::plan(&args.dir, &args.without)?;
    let names = args.without.join(", ");
    for step in &plan.steps {
        let note = if step.has_its_tail { "; its log is whole, so it waits for nobody anyhow" } else { "" };
        println!("{} {}: starts without {names}{note}", step.datacenter, step.partition);
    }
    if !args.yes {
        println!("nothing was changed; `--yes` does it");
        return Ok(ExitCode::SUCCESS);
    }
    let count = plan.steps.len();
    plan.carry_out()?;
    println!("{count} partitions will start without {names}");
    Ok(ExitCode::SUCCESS)
}
