//! `ensue secret`: the keys by which datacenters prove to each other who they are.

use ensue_server::secret;
use std::path::PathBuf;
use std::process::ExitCode;

/// Make the `cluster-secret` files of a cluster, one a datacenter
///
/// Each pair of datacenters gets a key of its own, so bring to each datacenter its own file only. Keys that are in the
/// folder already stay as they are: to add a datacenter, name all of them again and bring every file to its place anew.
#[derive(Debug, clap::Args)]
pub(crate) struct SecretArgs {
    /// The datacenters, by the names of the `node` lines
    #[arg(value_name = "DATACENTER", required = true)]
    datacenters: Vec<String>,
    /// The folder that the files are in
    #[arg(long, value_name = "DIR", default_value = "secrets")]
    out: PathBuf,
}

pub(crate) fn run(args: &SecretArgs) -> anyhow::Result<ExitCode> {
    let (files, made) = secret::make(&args.out, &args.datacenters)?;
    println!("{made} new keys");
    for (file, datacenter) in files.iter().zip(&args.datacenters) {
        println!(
            "{}  for `cluster-secret` of every node of {datacenter}, and for nobody else",
            file.display()
        );
    }
    Ok(ExitCode::SUCCESS)
}
