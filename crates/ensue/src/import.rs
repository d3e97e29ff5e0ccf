//! `ensue import`: carries the data of a Redis or Valkey over to a running Ensue, from its files or as its replica.

mod applier;
mod databases;
mod deadlines;
mod live;
mod loader;
mod order;
pub(crate) mod pieces;
mod progress;
mod receiver;
mod report;
mod snapshot;
mod source;
mod spool;
mod state;
pub(crate) mod target;

use crate::login::LoginArgs;
use crate::paint::Paint;
use databases::Databases;
use ensue_client::Options;
pub(crate) use progress::{Progress, size};
pub(crate) use report::{Report, shown};
use signal_hook::consts::{SIGINT, SIGTERM};
pub(crate) use source::Source;
use state::State;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use target::Target;

/// Carry the data of a Redis or Valkey over to a running Ensue
///
/// From a snapshot (--rdb), an append-only file (--aof), or a running server (--from), whose replica it is until it is
/// interrupted: then the writes that come meanwhile are carried over, too. At the end it prints what was carried over,
/// and what was not. docs/migrating.md has the procedure.
///
/// Exit status: 0 if everything was carried over, 1 if it failed, 2 if something was not carried over, 3 if it was
/// interrupted before its end, or before it had applied what the source had written until then.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["rdb", "aof", "from"])))]
pub(crate) struct ImportArgs {
    /// A snapshot: a file that SAVE or BGSAVE wrote
    #[arg(long, value_name = "FILE")]
    rdb: Option<PathBuf>,
    /// An append-only file, an appendonlydir, or the manifest in it
    #[arg(long, value_name = "FILE_OR_DIR")]
    aof: Option<PathBuf>,
    /// A running server: redis://[USER:PASSWORD@]HOST:PORT[/DB]; with a database, that one only
    #[arg(long, value_name = "URL")]
    from: Option<Source>,
    /// The Ensue to write to
    #[arg(long, value_name = "HOST:PORT")]
    to: Address,
    #[command(flatten)]
    login: LoginArgs,
    /// Other keyspaces for databases: SOURCE:TARGET, or SOURCE:- to leave one out, separated by commas
    #[arg(long, value_name = "MAP")]
    db_map: Option<Databases>,
    /// Delete a key that exists before it is written. Without it, keys that exist are left as they are and reported,
    /// and --from refuses keyspaces that have keys
    #[arg(long)]
    replace: bool,
    /// Keep in this file how far the import is, and continue there if it was interrupted
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Stop following at this offset of the source's stream
    #[arg(long, value_name = "OFFSET", requires = "from")]
    until_offset: Option<u64>,
    /// Stop following where the source was when its snapshot had been imported
    #[arg(long, requires = "from", conflicts_with = "until_offset")]
    stop_when_caught_up: bool,
}

impl ImportArgs {
    fn databases(&self) -> Databases {
        let only = self.from.as_ref().and_then(|source| source.database);
        self.db_map.clone().unwrap_or_default().only(only)
    }

    /// What is imported, and to where: whatever makes it another import.
    fn subject(&self) -> String {
        let path = |path: &PathBuf| path.display().to_string();
        let what = match (&self.rdb, &self.aof, &self.from) {
            (Some(file), _, _) | (_, Some(file), _) => path(file),
            (_, _, Some(source)) => {
                let database = source.database.map(|database| format!("/{database}")).unwrap_or_default();
                format!("redis://{}:{}{database}", source.host, source.port)
            }
            (None, None, None) => String::new(),
        };
        let mut subject = format!("{what} to {}:{}", self.to.host, self.to.port);
        if let Some(map) = &self.db_map {
            subject += &format!(" --db-map {map}");
        }
        if self.replace {
            subject += " --replace";
        }
        subject
    }
}

/// Where a server is.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl std::str::FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        let wrong = || "expected HOST:PORT".to_string();
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Ok(Address { host: host.into(), port: port.parse().map_err(|_| wrong())? })
    }
}

impl Address {
    pub(crate) fn options(&self) -> Options {
        Options {
            host: self.host.clone(),
            // A delete of a large key may hold up its core.
            answer_timeout: Duration::from_secs(120),
            ..Options::local(self.port)
        }
    }
}

/// Whether somebody wants it to end: by SIGINT, as Ctrl-C sends it, or SIGTERM.
#[derive(Clone, Debug)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    #[cfg(test)]
    pub(crate) fn never() -> Stop {
        Stop(Arc::default())
    }

    pub(crate) fn on_signals() -> anyhow::Result<Stop> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The second one ends the process at once.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&flag))?;
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
        Ok(Stop(flag))
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

const INCOMPLETE: u8 = 2;
const INTERRUPTED: u8 = 3;

/// How far an import has come.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    Whole,
    Interrupted,
    /// It was interrupted while it followed its source, of which this is missing.
    Behind(String),
}

impl End {
    fn rest(&self) -> Option<&str> {
        match self {
            End::Whole => None,
            End::Interrupted => Some("it is not at its end"),
            End::Behind(rest) => Some(rest),
        }
    }
}

pub(crate) fn run(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    args.databases().check().map_err(anyhow::Error::msg)?;
    let stop = Stop::on_signals()?;
    let mut target = Target::open(&args.login.with(args.to.options())?)?;
    target.wait_for_it(&stop);
    let mut state = State::load(args.state.as_deref(), args.subject())?;
    let until_stop = |result: anyhow::Result<()>| {
        result.map(|()| if stop.is_asked() { End::Interrupted } else { End::Whole })
    };
    let result = match (&args.rdb, &args.aof, &args.from) {
        (Some(file), _, _) => until_stop(snapshot::run(args, file, &mut target, &mut state, &stop)),
        (_, Some(path), _) => {
            until_stop(snapshot::run_append_only(args, path, &mut target, &mut state, &stop))
        }
        (_, _, Some(source)) => live::run(args, source, &mut target, &mut state, &stop),
        (None, None, None) => Ok(End::Whole),
    };
    let rest = result.as_ref().map_or(Some("it failed before its end"), End::rest);
    print!("{}", state.report.text(Paint::for_stdout(), rest));
    let end = result?;
    state.save()?;
    if end != End::Whole {
        match &args.state {
            Some(path) => println!("interrupted; the same command continues with {}", path.display()),
            None => println!("interrupted; without --state it cannot be continued"),
        }
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(if state.report.is_complete() { ExitCode::SUCCESS } else { ExitCode::from(INCOMPLETE) })
}

#[cfg(test)]
mod tests;
