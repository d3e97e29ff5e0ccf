//! `ensue cli`: sends one command and prints the answer as redis-cli does.

mod show;

use crate::login::LoginArgs;
use ensue_client::{Connection, Options, Reply};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Send one command and print the answer, as redis-cli does
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct CliArgs {
    /// Port of the server
    #[arg(short, long, value_name = "PORT", default_value_t = 7001)]
    port: u16,
    /// Host of the server
    #[arg(short = 'h', long, value_name = "HOST", default_value = "127.0.0.1")]
    host: String,
    #[command(flatten)]
    login: LoginArgs,
    /// Keyspace
    #[arg(short = 'n', long, value_name = "DB", default_value_t = 0)]
    keyspace: u8,
    /// Seconds to wait for the answer
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

pub(crate) fn run(args: &CliArgs) -> anyhow::Result<ExitCode> {
    let options = Options {
        host: args.host.clone(),
        keyspace: args.keyspace,
        answer_timeout: Duration::from_secs(args.timeout.max(1)),
        ..Options::local(args.port)
    };
    let mut connection = Connection::open(&args.login.with(options)?)?;
    let words: Vec<&[u8]> = args.command.iter().map(|word| word.as_bytes()).collect();
    let reply = connection.call(&words)?;
    let mut out = Vec::new();
    if std::io::stdout().is_terminal() {
        show::for_people(&reply, &mut out);
    } else {
        show::raw(&reply, &mut out);
    }
    std::io::stdout().write_all(&out)?;
    Ok(if matches!(reply, Reply::Error(_)) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
