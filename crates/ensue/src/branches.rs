//! `ensue branches`: the states of a keyspace with branches, drawn as `git log --graph` draws commits.
//!
//! Input is the answer to `BRANCH LOG` ([`state`]); [`layout`] gives each state its lane; [`text`] and [`picture`] draw
//! what it says. Nothing is changed on the server.

mod layout;
mod picture;
mod screen;
mod state;
mod text;

use crate::login::LoginArgs;
use crate::paint::Paint;
use anyhow::Context;
use ensue_client::{Connection, Options};
use ensue_server::shutdown::Stop;
use layout::Layout;
use screen::Screen;
use state::State;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Draw the states of a keyspace with branches, newest first
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct BranchesArgs {
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
    /// Most states that are shown; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 100)]
    count: u32,
    /// Draw again every second, until interrupted
    #[arg(long, conflicts_with = "svg")]
    watch: bool,
    /// End the watch after so many seconds
    #[arg(long, value_name = "N", requires = "watch")]
    seconds: Option<u64>,
    /// Draw into this file (SVG) instead
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

const REDRAW_PAUSE: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &BranchesArgs) -> anyhow::Result<ExitCode> {
    let (host, keyspace) = (args.host.clone(), args.keyspace);
    let options = Options { host, keyspace, ..Options::local(args.port) };
    let mut connection = Connection::open(&args.login.with(options)?)?;
    if args.watch {
        return watch(args, &mut connection);
    }
    let states = ask(args, &mut connection)?;
    match &args.svg {
        Some(path) => {
            let title = format!("{}:{} keyspace {}", args.host, args.port, args.keyspace);
            let below = format!("{}; newest at the top", summary(&states));
            let svg = picture::svg(&title, &below, &states, &Layout::of(&states));
            std::fs::write(path, svg).with_context(|| format!("cannot write {}", path.display()))?;
            println!("{}; {}", summary(&states), path.display());
        }
        None => print!(
            "{}",
            text::graph(&states, &Layout::of(&states), Screen::of_stdout().columns, Paint::for_stdout())
        ),
    }
    Ok(ExitCode::SUCCESS)
}

fn ask(args: &BranchesArgs, connection: &mut Connection) -> anyhow::Result<Vec<State>> {
    let count = args.count.to_string();
    let reply = connection.call(&[b"BRANCH", b"LOG", b"COUNT", count.as_bytes()])?;
    Ok(state::read_log(&reply)?)
}

fn watch(args: &BranchesArgs, connection: &mut Connection) -> anyhow::Result<ExitCode> {
    let stopping = Stop::on_signals().context("cannot watch for signals")?;
    let end = args.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let paint = Paint::for_stdout();
    let heading = paint.bold(&format!("{}:{}  keyspace {}", args.host, args.port, args.keyspace));
    loop {
        let states = ask(args, connection)?;
        let screen = Screen::of_stdout();
        let drawn = text::graph(&states, &Layout::of(&states), screen.columns, paint);
        screen.show(&format!("{heading}  {}\n{drawn}", summary(&states)))?;
        let pause =
            end.map_or(REDRAW_PAUSE, |end| REDRAW_PAUSE.min(end.saturating_duration_since(Instant::now())));
        if stopping.is_asked_within(pause) || end.is_some_and(|end| Instant::now() >= end) {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

fn summary(states: &[State]) -> String {
    let leaves = states.iter().filter(|state| state.is_leaf()).count();
    format!("{} shown, {}", counted(states.len(), "state", "states"), counted(leaves, "leaf", "leaves"))
}

fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}
