//! `ensue man`: a page of the manual for the binary and for each of its commands, made of the command line itself.

use anyhow::Context;
use clap::Command;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write the pages of the manual, in section 1: ensue.1, ensue-server.1, and so on
///
/// Read one by `man -l DIR/ensue-server.1`. The Debian package has them.
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// The folder that the pages are written into; it is made if it is missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

pub(crate) fn run(args: &ManArgs, command: Command) -> anyhow::Result<ExitCode> {
    write_all(&args.out, command)?;
    println!("{}", args.out.display());
    Ok(ExitCode::SUCCESS)
}

fn write_all(folder: &Path, command: Command) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    clap_mangen::generate_to(command, folder)
        .with_context(|| format!("cannot write into {}", folder.display()))
}

#[cfg(test)]
mod tests;
