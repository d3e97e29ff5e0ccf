//! `ensue diff`: says whether two servers that speak the Redis protocol hold the same data.
//!
//! It sends only stock commands that read, holds no value and no list of keys, and promises nothing about keys that are
//! made or deleted while it runs.

mod answer;
mod comparison;
mod digest;
mod endpoint;
mod explanation;
#[cfg(test)]
mod fake;
mod fingerprint;
mod fold;
mod hyperloglog;
mod kind;
mod pace;
mod pages;
mod reader;
mod report;
mod side;
mod suspects;
mod walk;

use crate::import::{Progress, Stop};
use crate::login::LoginArgs;
use crate::paint::Paint;
use anyhow::bail;
use comparison::{Comparison, Settings};
use digest::Secret;
use endpoint::Endpoint;
use ensue_client::Options;
use pace::Pace;
use reader::{Reader, Scope};
use report::{Outcome, Report};
use side::Side;
use std::process::ExitCode;
use std::time::Duration;

/// Say whether two servers hold the same data: Ensue, Redis or Valkey
///
/// Keys that differ are read again after a pause, so clients may go on writing: what differs each time and stands still
/// is a difference. A server is given as redis://[USER:PASSWORD@]HOST:PORT[/DB], rediss://... for TLS, or HOST:PORT.
/// docs/diff.md has examples.
///
/// Exit status: 0 if they are equal, 1 if they differ, 2 if it cannot be said: an error, keys that could not be read,
/// or keys that went on changing.
#[derive(Debug, clap::Args)]
pub(crate) struct DiffArgs {
    /// The one server
    #[arg(value_name = "LEFT")]
    left: Endpoint,
    /// The other server
    #[arg(value_name = "RIGHT")]
    right: Endpoint,
    #[command(flatten)]
    login: LoginArgs,
    /// Compare these keyspaces only; without it, all that have keys on either side, or those that the URLs name
    #[arg(long, value_name = "DB,DB", value_delimiter = ',')]
    keyspaces: Vec<u64>,
    /// Compare keys of this pattern only, as SCAN takes it
    #[arg(long = "match", value_name = "PATTERN")]
    pattern: Option<String>,
    /// How often keys that differ are read again before they count; 0 if nobody writes
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: u32,
    /// How long to wait before they are read again, such as 500ms, 1s or 2m
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span)]
    pause: Duration,
    /// Deadlines that differ by no more than this are equal
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = span)]
    ttl_tolerance: Duration,
    /// Compare no deadlines
    #[arg(long)]
    ignore_ttl: bool,
    /// So many keys may go on changing: only more of them make it undecided
    #[arg(long, value_name = "N", default_value_t = 0)]
    changing_max: u64,
    /// How many differences of each keyspace are shown
    #[arg(long, value_name = "N", default_value_t = 10)]
    show: usize,
    /// Print one JSON document in place of the table
    #[arg(long)]
    json: bool,
    /// Read no more keys a second than this
    #[arg(long, value_name = "KEYS", value_parser = clap::value_parser!(u64).range(1..))]
    rate: Option<u64>,
}

const DIFFERENT: u8 = 1;
const UNDECIDED: u8 = 2;

pub(crate) fn run(args: &DiffArgs) -> anyhow::Result<ExitCode> {
    match compare(args) {
        Ok(Outcome::Equal) => Ok(ExitCode::SUCCESS),
        Ok(Outcome::Different) => Ok(ExitCode::from(DIFFERENT)),
        Ok(Outcome::Undecided) => Ok(ExitCode::from(UNDECIDED)),
        // The status of other commands that fail is the one for a difference here.
        Err(error) => {
            eprintln!("ensue: {error:#}");
            Ok(ExitCode::from(UNDECIDED))
        }
    }
}

fn compare(args: &DiffArgs) -> anyhow::Result<Outcome> {
    let stop = Stop::on_signals()?;
    let secret = Secret::draw();
    let scope = Scope { deadlines: !args.ignore_ttl, field_deadlines: false };
    let [left, right] = options(args)?;
    let reader = |name, options: &Options| -> anyhow::Result<Reader> {
        Ok(Reader { side: Side::open(name, options)?, secret: secret.clone(), scope })
    };
    let (mut left, mut right) = (reader("left", &left)?, reader("right", &right)?);
    let pairs = pairs(args, &mut left.side, &mut right.side)?;
    let settings = Settings {
        pattern: args.pattern.clone(),
        rounds: args.rounds,
        pause: args.pause,
        tolerance_ms: u64::try_from(args.ttl_tolerance.as_millis())?,
        shown: args.show,
    };
    let (pace, progress) = (Pace::new(args.rate), Progress::new());
    let mut comparison = Comparison { left, right, settings: &settings, pace, progress, stop };
    let mut report = Report {
        left: args.left.to_string(),
        right: args.right.to_string(),
        tallies: Vec::new(),
        changing_max: args.changing_max,
    };
    for (left, right) in pairs {
        report.tallies.push(comparison.keyspaces(left, right, args.ignore_ttl)?);
    }
    comparison.progress.clear();
    match args.json {
        true => println!("{:#}", report.json()),
        false => print!("{}", report.text(Paint::for_stdout())),
    }
    Ok(report.outcome())
}

/// How to connect to each side.
fn options(args: &DiffArgs) -> anyhow::Result<[Options; 2]> {
    let both = [args.left.options(&args.login)?, args.right.options(&args.login)?];
    let wants_tls = args.login.with(Options::local(0))?.tls.is_some();
    if wants_tls && both.iter().all(|options| options.tls.is_none()) {
        bail!("--tls is given, and both servers are given as redis://: rediss:// is the encrypted one");
    }
    Ok(both)
}

/// Which keyspace is compared with which.
fn pairs(args: &DiffArgs, left: &mut Side, right: &mut Side) -> anyhow::Result<Vec<(u64, u64)>> {
    match (args.left.database, args.right.database, &args.keyspaces[..]) {
        (None, None, []) => {
            let mut numbers = left.keyspaces()?;
            numbers.extend(right.keyspaces()?);
            Ok(numbers.into_iter().map(|number| (number, number)).collect())
        }
        (None, None, numbers) => Ok(numbers.iter().map(|number| (*number, *number)).collect()),
        (_, _, [_, ..]) => bail!("--keyspaces and a database in a URL exclude each other"),
        (left, right, []) => {
            let number = left.or(right).unwrap_or_default();
            Ok(vec![(left.unwrap_or(number), right.unwrap_or(number))])
        }
    }
}

/// A time with its unit; seconds without one.
fn span(text: &str) -> Result<Duration, String> {
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        _ => return Err("expected a number and ms, s, m or h".into()),
    };
    let number = number.parse::<f64>().ok().filter(|number| (0.0..=SPAN_MAX).contains(&(number * seconds)));
    number
        .map(|number| Duration::from_secs_f64(number * seconds))
        .ok_or_else(|| "no time of at most a week".into())
}

const SPAN_MAX: f64 = 7.0 * 86_400.0;

#[cfg(test)]
mod tests;
