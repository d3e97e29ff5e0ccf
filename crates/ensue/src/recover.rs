//! `ensue recover`: the operator gives up what will never come back, or brings back a datacenter whose clock was ahead.

use ensue_server::{Config, recover};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Let a stopped node start without datacenters that have failed permanently, without its lost `shape`, or with times
/// that the others accept
///
/// A partition that lost the end of its log with the power (TAILLOST) waits for all other datacenters. What only a
/// given-up one had received is declared lost. If it comes back after all, with more than the others had, its
/// partitions stop.
///
/// A datacenter whose clock was too far ahead (CLOCKAHEAD) keeps its logical time when the clock is set right, and
/// nothing of it
/// reaches the others until that time has come. With `--clock` its data gets other times: see 'Clocks' in
/// docs/operating.md.
#[derive(Debug, clap::Args)]
pub(crate) struct RecoverArgs {
    /// The `dir` of a node, or the folder of one datacenter in it
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// A datacenter that has failed permanently, by its name; may be given several times
    #[arg(long, value_name = "DATACENTER", required_unless_present_any = ["clock", "shape", "rebuild"], conflicts_with_all = ["clock", "shape", "rebuild"])]
    without: Vec<String>,
    /// Write the lost file `shape` anew, from the configuration that the data was certainly written with
    #[arg(long, value_name = "CONFIG", conflicts_with = "clock")]
    shape: Option<PathBuf>,
    /// Set the damaged partitions aside, or those of these numbers: the next start takes them back from the other
    /// datacenters
    #[arg(long, value_name = "PARTITION", num_args = 0.., value_delimiter = ',', conflicts_with_all = ["clock", "shape"])]
    rebuild: Option<Vec<u16>>,
    /// Give the data of a datacenter whose clock was ahead times that the others believe; all its nodes must have
    /// stopped
    #[arg(long)]
    clock: bool,
    /// With `--clock`: write the times of this node into a file, for the other nodes of the datacenter, and change
    /// nothing
    #[arg(long, value_name = "FILE", requires = "clock", conflicts_with_all = ["with", "yes"])]
    write_times: Option<PathBuf>,
    /// With `--clock`: the file of a node of the datacenter; given for each of its nodes, if there are several
    #[arg(long, value_name = "FILE", requires = "clock")]
    with: Vec<PathBuf>,
    /// Do it; without this it is only shown
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(args: &RecoverArgs) -> anyhow::Result<ExitCode> {
    if let Some(config) = &args.shape {
        return write_shape(args, config);
    }
    if let Some(partitions) = &args.rebuild {
        return rebuild(args, partitions);
    }
    if args.clock {
        return recover_clock(args);
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

fn rebuild(args: &RecoverArgs, partitions: &[u16]) -> anyhow::Result<ExitCode> {
    let plan = recover::rebuild::plan(&args.dir, partitions)?;
    for aside in &plan.partitions {
        let why = aside.damage.as_deref().unwrap_or("sound, and named");
        println!("{} {}: {why}; its files go to {}", aside.datacenter, aside.partition, aside.to.display());
    }
    let count = plan.partitions.len();
    if count == 0 {
        println!("no partition is damaged; a number behind `--rebuild` takes back one that is not");
    } else if !args.yes {
        println!("nothing was changed; `--yes` does it");
    } else {
        plan.carry_out()?;
        println!(
            "the next start takes {count} partitions back from the other datacenters; what none of them had received is \
             only in the files that were set aside"
        );
    }
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

fn recover_clock(args: &RecoverArgs) -> anyhow::Result<ExitCode> {
    let plan = recover::clock::plan(&args.dir, ensue_server::clock::wall_ms(), &args.with)?;
    let (datacenter, count) = (plan.datacenter.clone(), plan.count);
    if plan.is_interrupted {
        println!("{datacenter}: an earlier recovery was interrupted, and is to be finished");
    } else {
        println!(
            "{datacenter}: {count} times lie too far ahead of this machine's clock, the latest by {} s; the clock must be right by now",
            plan.ahead_ms / 1_000
        );
    }
    if let Some(file) = &args.write_times {
        plan.write_times(file)?;
        println!("they stand in {}; nothing was changed", file.display());
        return Ok(ExitCode::SUCCESS);
    }
    if !args.yes {
        println!("nothing was changed; `--yes` does it");
        return Ok(ExitCode::SUCCESS);
    }
    let old = plan.old_folders();
    plan.carry_out()?;
    if count > 0 {
        println!(
            "{datacenter}: its times are changed; start its nodes, the others take them in about two minutes"
        );
        for folder in old {
            println!("the old data stays in {}; delete it when all is well", folder.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}
