//! `ensue server`: one node of a cluster, as its configuration says.

use crate::memory;
use anyhow::Context;
use ensue_server::shutdown::{Stop, stop};
use ensue_server::{Config, Machine, log};
use std::path::PathBuf;
use std::process::ExitCode;

/// Run one node, configured in redis.conf syntax
///
/// Each directive of the file is also a flag (`--port 7001`) and a variable (`ENSUE_PORT=7001`); a flag wins over a
/// variable, a variable over the file. docs/configuration.md lists them all.
#[derive(Debug, clap::Args)]
pub(crate) struct ServerArgs {
    /// Configuration file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Directives as flags: --directive value…
    #[arg(value_name = "--DIRECTIVE VALUE", trailing_var_arg = true, allow_hyphen_values = true)]
    directives: Vec<String>,
}

pub(crate) fn run(args: &ServerArgs) -> anyhow::Result<ExitCode> {
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let config = Config::load(args.config.as_deref(), &args.directives, variables)?;
    log::set_level(config.loglevel);
    log::set_format(config.log_format);
    log::notice(format_args!("ensue {} starts; its configuration:", env!("CARGO_PKG_VERSION")));
    for (name, value) in config.effective() {
        log::notice(format_args!("  {name} {value}"));
    }
    let stopping = Stop::on_signals_but_hangup().context("cannot watch for signals")?;
    let node = ensue_server::start(
        &config,
        &Machine::of_this_process(1).with_memory(memory::report).with_purge(memory::purge),
    )?;
    if config.port != 0 {
        log::notice(format_args!("clients are served on port {}", config.port));
    }
    if config.tls.port != 0 {
        log::notice(format_args!("clients are served over TLS on port {}", config.tls.port));
    }
    log::notice(format_args!("stopping: {}", stopping.wait_reading_again(|| node.read_again())));
    let clean = stop(vec![node]);
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
