//! `ensue import --from`: follows a Redis or Valkey as its replica, from a snapshot on.

use super::applier::Applier;
use super::loader::{Existing, Loader};
use super::progress::{Progress, size};
use super::source::Source;
use super::spool::{self, Spool};
use super::state::{Replica, State};
use super::target::Target;
use super::{End, ImportArgs, Stop, snapshot};
use anyhow::{Context, bail};
use bytes::BytesMut;
use ensue_client::{Connection, Options, Reply};
use ensue_resp::parse::{ParseLimits, Parser};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of the stream that are read at once.
const READ_BYTES: usize = 64 << 10;
const WAIT: Duration = Duration::from_millis(50);
/// How often the source is asked how far it is.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Answers to that which are kept to tell the lag in seconds.
const SAMPLES_MAX: usize = 4_096;

/// How long an interrupted import applies on what the source had written by then.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// Follows until it is interrupted or is where it should stop.
pub(crate) fn run(
    args: &ImportArgs,
    source: &Source,
    target: &mut Target,
    state: &mut State,
    stop: &Stop,
) -> anyhow::Result<End> {
    let Replica { id, base, has_snapshot, applied } = state.replica.clone();
    // Of what was received only the part that was used is known to the state: the rest is found in the folder.
    let begun =
        spool::Progress { id, base, has_snapshot, received: applied, applied, ..spool::Progress::default() };
    let spool = Arc::new(match args.state.as_deref() {
        Some(path) => Spool::open(&folder(path), begun)?,
        None => Spool::temporary(begun)?,
    });
    let receiver = {
        let (source, spool) = (source.clone(), Arc::clone(&spool));
        thread::spawn(move || super::receiver::receive(&source, &spool))
    };
    let result = follow(args, source, target, state, stop, &spool);
    spool.change(|progress| progress.is_stopped = true);
    let _ = receiver.join();
    if state.is_kept() {
        state.save()?;
    } else {
        spool.remove()?;
    }
    result
}

/// Beside the state, so that an interrupted import finds it again.
fn folder(state: &Path) -> PathBuf {
    let mut folder = state.as_os_str().to_owned();
    folder.push(".spool");
    folder.into()
}

fn follow(
    args: &ImportArgs,
    source: &Source,
    target: &mut Target,
    state: &mut State,
    stop: &Stop,
    spool: &Spool,
) -> anyhow::Result<End> {
    let mut progress = Progress::new();
    if !await_snapshot(spool, stop, &mut progress)? {
        return Ok(End::Interrupted);
    }
    let begun = spool.progress();
    if !state.replica.has_snapshot {
        state.replica = Replica { id: begun.id, base: begun.base, has_snapshot: true, applied: begun.base };
        state.save()?;
    }
    if state.file == 0 {
        load_snapshot(args, target, state, stop, spool, &mut progress)?;
        if stop.is_asked() {
            return Ok(End::Interrupted);
        }
        progress.clear();
        println!("the snapshot is imported: {} keys; now following the source", state.report.keys());
    }
    Follower::new(args, source, state).run(target, state, stop, spool, &mut progress)
}

/// Waits until the snapshot has arrived. False if there was an interruption.
fn await_snapshot(spool: &Spool, stop: &Stop, shown: &mut Progress) -> anyhow::Result<bool> {
    loop {
        let progress = spool.progress();
        if let Some(failure) = progress.failure {
            bail!("{failure}");
        }
        if progress.has_snapshot || stop.is_asked() {
            return Ok(progress.has_snapshot);
        }
        shown.show(progress.snapshot_bytes, progress.snapshot_total, || {
            format!("receiving the snapshot, {}", size(progress.snapshot_bytes))
        });
        spool.wait(WAIT);
    }
}

fn load_snapshot(
    args: &ImportArgs,
    target: &mut Target,
    state: &mut State,
    stop: &Stop,
    spool: &Spool,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let databases = args.databases();
    let existing = if args.replace { Existing::Replace } else { Existing::Refuse };
    let mut loader = Loader::new(target, &databases, state, existing);
    snapshot::load(&spool.snapshot(), &mut loader, stop, progress)?;
    if !stop.is_asked() {
        // The stream begins in the database that it names first.
        (state.file, state.done, state.window_end, state.database) = (1, 0, 0, 0);
        state.save()?;
        std::fs::remove_file(spool.snapshot())?;
    }
    Ok(())
}

/// Applies the stream.
struct Follower<'a> {
    args: &'a ImportArgs,
    applier: Applier,
    parser: Parser,
    buffer: BytesMut,
    /// The offset up to which the stream was read into the buffer.
    read: u64,
    /// The offset up to which it need not be read again, once what waits is applied: before a transaction whose end is
    /// to come.
    safe: u64,
    /// The database that was selected there.
    safe_database: u64,
    lag: Lag,
    /// Where it stops, once that is known.
    until: Option<u64>,
}

impl<'a> Follower<'a> {
    fn new(args: &'a ImportArgs, source: &Source, state: &State) -> Follower<'a> {
        Follower {
            args,
            applier: Applier::new(args.databases(), state.database),
            parser: Parser::new(ParseLimits::default()),
            buffer: BytesMut::new(),
            read: state.replica.applied,
            safe: state.replica.applied,
            safe_database: state.database,
            lag: Lag { source: source.clone(), connection: None, polled: None, samples: VecDeque::new() },
            until: args.until_offset,
        }
    }

    fn run(
        mut self,
        target: &mut Target,
        state: &mut State,
        stop: &Stop,
        spool: &Spool,
        progress: &mut Progress,
    ) -> anyhow::Result<End> {
        let mut stopping: Option<Stopping> = None;
        loop {
            self.lag.poll();
            let bytes = spool.read(self.read, READ_BYTES)?;
            if bytes.is_empty() {
                self.finish_window(target, state, spool)?;
                let now = spool.progress();
                if let Some(failure) = now.failure.filter(|_| now.received <= self.read) {
                    bail!("{failure}");
                }
                spool.wait(WAIT);
            } else {
                self.read += bytes.len() as u64;
                self.buffer.extend_from_slice(&bytes);
                self.apply(target, state, spool)?;
                self.finish_window(target, state, spool)?;
            }
            if self.until.is_none() && self.args.stop_when_caught_up {
                self.until = self.lag.newest();
            }
            let applied = state.replica.applied;
            let mut end = self.until.filter(|until| applied >= *until).map(|_| End::Whole);
            if end.is_none() && stop.is_asked() {
                let stopping = stopping.get_or_insert_with(|| self.lag.stopping());
                end = stopping.end(applied, spool.progress().received);
            }
            if let Some(end) = end {
                progress.clear();
                println!("stopped at offset {applied}: {}", self.lag.text(applied, spool.progress().is_cut));
                return Ok(end);
            }
            let commands = state.report.of("commands applied");
            progress.show(applied, None, || {
                format!("{commands} commands applied, {}", self.lag.text(applied, spool.progress().is_cut))
            });
        }
    }

    /// Applies the commands that have arrived whole.
    fn apply(&mut self, target: &mut Target, state: &mut State, spool: &Spool) -> anyhow::Result<()> {
        while let Some(command) = self.parser.next(&mut self.buffer).context("the stream of the source")? {
            self.applier.received_at(spool.received_at(self.read - self.buffer.len() as u64));
            if command.is_empty() {
                state.report.lose("commands that are longer than Ensue takes one", "(not kept)");
            } else {
                self.applier.take(command, target, state)?;
            }
            if !self.applier.is_amid_transaction() {
                self.safe = self.read - self.buffer.len() as u64;
                self.safe_database = self.applier.database();
            }
        }
        Ok(())
    }

    /// What was applied need not be received again.
    fn finish_window(&mut self, target: &mut Target, state: &mut State, spool: &Spool) -> anyhow::Result<()> {
        self.applier.flush(target, state)?;
        if self.safe > state.replica.applied {
            state.replica.applied = self.safe;
            state.replica.id = spool.progress().id;
            state.database = self.safe_database;
            state.save()?;
            spool.applied(self.safe)?;
        }
        Ok(())
    }
}

/// An interruption: what the source had written by then is applied, if that does not take long.
struct Stopping {
    since: Instant,
    /// Where the source was then; nothing if it did not answer.
    source: Option<u64>,
}

impl Stopping {
    /// How it ends, once it does.
    fn end(&self, applied: u64, received: u64) -> Option<End> {
        self.end_after(self.since.elapsed(), applied, received)
    }

    fn end_after(&self, elapsed: Duration, applied: u64, received: u64) -> Option<End> {
        let goal = self.source.unwrap_or(received);
        if applied < goal && elapsed < STOP_PATIENCE {
            return None;
        }
        Some(match self.source {
            Some(goal) if applied >= goal => End::Whole,
            Some(goal) => End::Behind(format!("{} bytes of the source are not applied", goal - applied)),
            None if applied < received => End::Behind(format!(
                "the source did not answer: it is not known how much of it is missing, {} bytes at least",
                received - applied
            )),
            None => {
                End::Behind("the source did not answer: it is not known whether something is missing".into())
            }
        })
    }
}

/// How far the source is ahead.
struct Lag {
    source: Source,
    connection: Option<Connection>,
    polled: Option<Instant>,
    /// When the source was at which offset, the oldest first.
    samples: VecDeque<(Instant, u64)>,
}

impl Lag {
    /// Asks the source, if it is time to. One that does not answer is asked again later.
    fn poll(&mut self) {
        if self.polled.is_some_and(|at| at.elapsed() < POLL_INTERVAL) {
            return;
        }
        self.polled = Some(Instant::now());
        match self.ask() {
            Some(offset) => {
                self.samples.push_back((Instant::now(), offset));
                if self.samples.len() > SAMPLES_MAX {
                    self.samples.pop_front();
                }
            }
            None => self.connection = None,
        }
    }

    /// Where the source is now, for an end that is wanted now.
    fn stopping(&mut self) -> Stopping {
        // A connection that has been closed meanwhile is made once more.
        let source = self.ask().or_else(|| {
            self.connection = None;
            self.ask()
        });
        self.samples.extend(source.map(|offset| (Instant::now(), offset)));
        Stopping { since: Instant::now(), source }
    }

    fn ask(&mut self) -> Option<u64> {
        if self.connection.is_none() {
            let Source { host, port, user, password, .. } = &self.source;
            let timeout = Duration::from_secs(2);
            let options = Options { host: host.clone(), answer_timeout: timeout, ..Options::local(*port) };
            let mut connection = Connection::open(&options).ok()?;
            match (user, password) {
                (Some(user), Some(password)) => {
                    connection.call(&[b"AUTH", user.as_bytes(), password.as_bytes()]).ok()?;
                }
                (None, Some(password)) => {
                    connection.call(&[b"AUTH", password.as_bytes()]).ok()?;
                }
                _ => {}
            }
            self.connection = Some(connection);
        }
        match self.connection.as_mut()?.call(&[b"INFO", b"replication"]).ok()? {
            Reply::Bulk(text) | Reply::Verbatim(text) => {
                let text = String::from_utf8_lossy(&text).into_owned();
                let line = text.lines().find_map(|line| line.strip_prefix("master_repl_offset:"))?;
                line.trim().parse().ok()
            }
            _ => None,
        }
    }

    fn newest(&self) -> Option<u64> {
        self.samples.back().map(|(_, offset)| *offset)
    }

    fn text(&mut self, applied: u64, is_cut: bool) -> String {
        let cut = if is_cut { ", the source is not reached" } else { "" };
        let Some(newest) = self.newest() else { return format!("the lag is not known{cut}") };
        while self.samples.len() > 1 && self.samples[1].1 <= applied {
            self.samples.pop_front();
        }
        let seconds = match self.samples.front() {
            Some((at, _)) if newest > applied => at.elapsed().as_secs_f64(),
            _ => 0.0,
        };
        format!("lag {} bytes, {seconds:.1} s{cut}", newest.saturating_sub(applied))
    }
}

#[cfg(test)]
mod tests;
