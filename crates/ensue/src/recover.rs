//! `ensue recover`: the operator gives up what will never come back.

use ensue_server::{Config, recover};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Let a stopped node start without datacenters that are gone for good, or without its lost `shape`
///
/// A partition that lost the end of its log with the power (TAILLOST) waits for all other datacenters. What only a given-up
/// one had received is declared lost. If it comes back after all, with more than the others had, its partitions stop.
#[derive(Debug, clap::Args)]
pub(crate) struct RecoverArgs {
    /// The `dir` of a node, or the folder of one datacenter in it
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// A datacenter that is gone for good, by its name; may be given several times
    #[arg(long, value_name = "DATACENTER", required_unless_present = "shape")]
    without: Vec<String>,
    /// Write the lost file `shape` anew, from the configuration that the data was certainly written with
    #[arg(long, value_name = "CONFIG", conflicts_with = "without")]
    shape: Option<PathBuf>,
    /// Do it; without this it is only shown
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(args: &RecoverArgs) -> anyhow::Result<ExitCode> {
    if let Some(config) = &args.shape {
        return write_shape(args, config);
    }
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

fn write_shape(args: &RecoverArgs, config: &Path) -> anyhow::Result<ExitCode> {
    let config = Config::load(Some(config), &[], std::iter::empty())?;
    let lost = recover::lost_shape(&args.dir, &config)?;
    print!("{}", lost.text());
    if !args.yes {
        println!("nothing was changed; `--yes` writes this to {}", lost.path().display());
        return Ok(ExitCode::SUCCESS);
    }
    lost.write()?;
    println!("this is in {} now", lost.path().display());
    Ok(ExitCode::SUCCESS)
}
