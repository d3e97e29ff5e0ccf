//! `ensue status`: every datacenter of a dev cluster in one table, from `INFO` and `CAUSAL DIGEST`.

mod report;

use crate::login::LoginArgs;
use crate::nodes;
use crate::paint::Paint;
use ensue_client::{ClientError, Connection, Options, Reply};
use report::{Report, Row, Seen};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

/// Show datacenters, lag, queues and digests of a cluster
#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// First client port of the dev cluster, or the port of any server
    #[arg(long, value_name = "PORT", default_value_t = 7001)]
    port: u16,
    #[command(flatten)]
    login: LoginArgs,
    /// Only say whether the nodes are ready, with exit status 0 if all are, 1 if one does not serve, 2 if one serves
    /// but does not
    /// replicate to all others
    #[arg(long)]
    ready: bool,
    /// Keyspace whose digests are compared
    #[arg(short = 'n', long, value_name = "DB", default_value_t = 0)]
    keyspace: u8,
}

pub(crate) fn run(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let (nodes, links) = nodes::of_cluster(args.port);
    let login = args.login.with(Options { answer_timeout: Duration::from_secs(8), ..Options::local(0) })?;
    let mut rows = Vec::new();
    for (name, port) in nodes {
        let seen = look(args, &Options { port, ..login.clone() }).map_err(|error| error.to_string());
        rows.push(Row { name, port, seen });
    }
    if args.ready {
        let (text, status) = readiness(&rows);
        print!("{text}");
        return Ok(ExitCode::from(status));
    }
    let reachable = rows.iter().any(|row| row.seen.is_ok());
    print!("{}", Report { rows, links }.text(Paint::for_stdout()));
    Ok(if reachable { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A line a node, and the exit status.
fn readiness(rows: &[Row]) -> (String, u8) {
    let verdicts = rows.iter().map(Row::readiness);
    let worst = verdicts.clone().map(|(status, _)| status).max_by_key(|status| (*status == 1, *status));
    (verdicts.map(|(_, line)| line + "\n").collect(), worst.unwrap_or(1))
}

fn look(args: &StatusArgs, options: &Options) -> Result<Seen, ClientError> {
    let mut connection = Connection::open(options)?;
    let fields = match connection.call(&[b"INFO", b"everything"])? {
        Reply::Bulk(text) | Reply::Verbatim(text) => nodes::fields(&String::from_utf8_lossy(&text)),
        Reply::Error(words) => return Err(ClientError::Refused(words.into_owned())),
        _ => BTreeMap::new(),
    };
    let keyspace = args.keyspace.to_string();
    let digest = match connection.call(&[b"CAUSAL", b"DIGEST", keyspace.as_bytes()])? {
        Reply::Bulk(text) => String::from_utf8_lossy(&text).into_owned(),
        Reply::Status(text) => text.into_owned(),
        Reply::Integer(number) => number.to_string(),
        Reply::Error(words) => format!("({words})"),
        other => format!("({other:?})"),
    };
    Ok(Seen { fields, digest })
}
