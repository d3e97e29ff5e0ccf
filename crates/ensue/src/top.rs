//! `ensue top`: datacenters in the terminal, drawn anew every second from `INFO`.
//!
//! A thread for each server asks it ([`poll`]); [`model`] makes rates and rows of two answers; [`view`] draws them. The
//! terminal is given back as it was, however this ends ([`screen`]). Nothing is changed on the servers.

mod model;
mod poll;
mod screen;
mod view;

use crate::login::LoginArgs;
use crate::nodes;
use anyhow::{Context, ensure};
use ensue_client::Options;
use ensue_server::shutdown::Stop;
use model::Board;
use poll::Target;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use screen::Screen;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Watch datacenters in the terminal: links and lag, operations, memory, keys and what waits, every second
///
/// Arrows choose a datacenter, q ends.
#[derive(Debug, clap::Args)]
pub(crate) struct TopArgs {
    /// First client port of the dev cluster, or the port of any server
    #[arg(long, value_name = "PORT", default_value_t = 7001, conflicts_with = "addresses")]
    port: u16,
    #[command(flatten)]
    login: LoginArgs,
    /// Servers that are watched, in place of a dev cluster
    #[arg(value_name = "HOST:PORT")]
    addresses: Vec<String>,
}

/// How long a key is waited for before the picture is drawn again.
const FRAME: Duration = Duration::from_millis(100);
/// Servers that are watched at the most; each has a thread.
const TARGETS_MAX: usize = 64;

pub(crate) fn run(args: &TopArgs) -> anyhow::Result<ExitCode> {
    let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    ensure!(
        terminal,
        "`ensue top` draws on a terminal, and this is none: `ensue status` prints the same once"
    );
    let targets = targets(args)?;
    ensure!(targets.len() <= TARGETS_MAX, "{} servers, and at most {TARGETS_MAX} are watched", targets.len());
    let stopping = Stop::on_signals().context("cannot watch for signals")?;
    let mut board = Board::new(targets.iter().map(|target| target.name.clone()));
    let answers = poll::start(targets, &args.login.with(Options::local(args.port))?)?;
    let mut screen = Screen::take().context("cannot draw on this terminal")?;
    let began = Instant::now();
    loop {
        for answer in answers.try_iter() {
            board.on_answer(answer.target, answer.at.saturating_duration_since(began), answer.info);
        }
        screen.draw(|frame| view::draw(frame, &board, began.elapsed()))?;
        if stopping.is_asked_within(Duration::ZERO) {
            return Ok(ExitCode::SUCCESS);
        }
        if event::poll(FRAME)? {
            if let Event::Key(key) = event::read()? {
                match wish(key) {
                    Some(Wish::End) => return Ok(ExitCode::SUCCESS),
                    Some(Wish::Choose(step)) => board.choose(step),
                    None => {}
                }
            }
        }
    }
}

/// What a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    End,
    /// So many datacenters further down.
    Choose(isize),
}

fn wish(key: KeyEvent) -> Option<Wish> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    // In raw mode the terminal sends no signal.
    let is_interrupt = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c' | 'd') if is_interrupt => Some(Wish::End),
        KeyCode::Char('q') | KeyCode::Esc => Some(Wish::End),
        KeyCode::Up | KeyCode::Left | KeyCode::Char('k') => Some(Wish::Choose(-1)),
        KeyCode::Down | KeyCode::Right | KeyCode::Char('j') => Some(Wish::Choose(1)),
        _ => None,
    }
}

/// The addresses of the command line, or the nodes of the dev cluster.
fn targets(args: &TopArgs) -> anyhow::Result<Vec<Target>> {
    if args.addresses.is_empty() {
        let (nodes, _) = nodes::of_cluster(args.port);
        let target = |(name, port): (String, u16)| {
            let name = if name.is_empty() { format!("127.0.0.1:{port}") } else { name };
            Target { name, host: "127.0.0.1".into(), port }
        };
        return Ok(nodes.into_iter().map(target).collect());
    }
    args.addresses.iter().map(|words| target(words)).collect()
}

/// `db.example.org:6379`, or `[::1]:6379`.
fn target(words: &str) -> anyhow::Result<Target> {
    let parts = words.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (host, port) =
        parts.filter(|(host, _)| !host.is_empty()).with_context(|| format!("'{words}': write HOST:PORT"))?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    Ok(Target { name: words.to_owned(), host, port })
}

#[cfg(test)]
mod tests;
