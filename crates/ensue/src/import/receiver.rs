//! The thread that is a replica of the source: it keeps the snapshot and the stream in the spool, and acknowledges what
//! has been applied every second.
//!
//! A broken connection is made again, and the stream continued where it was left. If the source no longer has that
//! part of its stream, it offers another snapshot: that is refused, because keys that it deleted meanwhile would stay.

use super::source::{Beginning, Link, Payload, Source};
use super::spool::{Progress, Spool};
use anyhow::Context;
use std::io::{BufWriter, Write};
use std::thread;
use std::time::{Duration, Instant};

const ACKNOWLEDGE_INTERVAL: Duration = Duration::from_secs(1);
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);
/// A source that was not reached for so long ends the import.
const RECONNECT_MAX: Duration = Duration::from_secs(600);
/// A source from which nothing comes for so long is taken for gone; it sends a PING every ten seconds.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Why a connection ended.
enum End {
    /// It may be made again.
    Cut(anyhow::Error),
    /// It is of no use to try.
    Failed(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for End {
    fn from(error: E) -> End {
        End::Cut(error.into())
    }
}

/// Receives until it is stopped, or there is no way to go on.
pub(crate) fn receive(source: &Source, spool: &Spool) {
    let mut since = Instant::now();
    let mut was_reached = false;
    loop {
        let begun = spool.progress();
        if begun.is_stopped {
            return;
        }
        let end = attempt(source, spool);
        let now = spool.progress();
        if now.received > begun.received || now.has_snapshot && !begun.has_snapshot {
            was_reached = true;
            since = Instant::now();
        }
        let failure = match end {
            Ok(()) => return,
            Err(End::Failed(error)) => error,
            // Who is not reached at the first try is probably misspelt.
            Err(End::Cut(error)) if !was_reached && begun.id.is_empty() => error,
            Err(End::Cut(error)) if since.elapsed() > RECONNECT_MAX => error,
            Err(End::Cut(_)) => {
                spool.change(|progress| progress.is_cut = true);
                thread::sleep(RECONNECT_PAUSE);
                continue;
            }
        };
        spool.change(|progress| progress.failure = Some(format!("{failure:#}")));
        return;
    }
}

fn attempt(source: &Source, spool: &Spool) -> Result<(), End> {
    let mut link = Link::open(source)?;
    let progress = spool.progress();
    let received =
        (!progress.id.is_empty() && progress.has_snapshot).then_some((&progress.id[..], progress.received));
    match (link.begin(received)?, received) {
        (Beginning::Snapshot { .. }, Some(_)) => {
            return Err(End::Failed(anyhow::anyhow!(
                "the source no longer has its stream from offset {} on: import anew, into empty keyspaces or with \
                 --replace, without the old --state file; a larger repl-backlog-size of the source avoids it",
                progress.received
            )));
        }
        (Beginning::Stream { .. }, None) => {
            return Err(End::Cut(anyhow::anyhow!("the source continues nothing")));
        }
        (Beginning::Stream { id }, Some(_)) => spool.change(|progress| {
            progress.is_cut = false;
            progress.id = id.unwrap_or_else(|| progress.id.clone());
        }),
        (Beginning::Snapshot { id, offset }, None) => {
            spool.change(|progress| {
                let is_stopped = progress.is_stopped;
                *progress = Progress { id, base: offset, is_stopped, ..Progress::default() };
            });
            snapshot(&mut link, spool)?;
            spool.change(|progress| {
                (progress.received, progress.applied) = (offset, offset);
                progress.has_snapshot = true;
            });
        }
    }
    stream(&mut link, spool)
}

/// Keeps the snapshot. Behind it nothing comes until the first acknowledgement, or what belongs to the stream.
fn snapshot(link: &mut Link, spool: &Spool) -> Result<(), End> {
    let payload = link.payload()?;
    let mut file = BufWriter::new(spool.create_snapshot().map_err(End::Failed)?);
    let total = if let Payload::Length(total) = payload { Some(total) } else { None };
    spool.change(|progress| progress.snapshot_total = total);
    let mut input = link.take_input();
    let (mut written, mut heard) = (0, Instant::now());
    loop {
        let (ready, rest) = match &payload {
            Payload::Length(total) => split_at_length(&input, total - written),
            Payload::Mark(mark) => split_at_mark(&input, mark),
        };
        file.write_all(&input[..ready]).context("cannot keep the snapshot").map_err(End::Failed)?;
        written += ready as u64;
        spool.change(|progress| progress.snapshot_bytes = written);
        if let Some(rest) = rest {
            file.flush().context("cannot keep the snapshot").map_err(End::Failed)?;
            let rest = input.split_off(rest);
            link.put_back(rest);
            return Ok(());
        }
        input.drain(..ready);
        let bytes = link.read()?;
        if !bytes.is_empty() {
            heard = Instant::now();
        }
        if heard.elapsed() > SILENCE_MAX || spool.progress().is_stopped {
            return Err(End::Cut(anyhow::anyhow!("the source sends nothing more of its snapshot")));
        }
        input.extend(bytes);
    }
}

/// How many bytes belong to the snapshot, and where the rest begins if that is all of it.
fn split_at_length(input: &[u8], left: u64) -> (usize, Option<usize>) {
    let ready = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
    (ready, (ready as u64 == left).then_some(ready))
}

fn split_at_mark(input: &[u8], mark: &[u8]) -> (usize, Option<usize>) {
    match input.windows(mark.len()).position(|window| window == mark) {
        Some(at) => (at, Some(at + mark.len())),
        // The mark may have arrived in part.
        None => (input.len().saturating_sub(mark.len() - 1), None),
    }
}

fn stream(link: &mut Link, spool: &Spool) -> Result<(), End> {
    let mut appender = spool.appender().map_err(End::Failed)?;
    let (mut acknowledged, mut heard) = (None::<Instant>, Instant::now());
    loop {
        if acknowledged.is_none_or(|at| at.elapsed() >= ACKNOWLEDGE_INTERVAL) {
            link.send(&["REPLCONF", "ACK", &spool.progress().applied.to_string()])?;
            acknowledged = Some(Instant::now());
        }
        let mut bytes = link.take_input();
        bytes.extend(link.read()?);
        if !bytes.is_empty() {
            heard = Instant::now();
            spool.append(&mut appender, &bytes).map_err(End::Failed)?;
        }
        if spool.progress().is_stopped {
            return Ok(());
        }
        if heard.elapsed() > SILENCE_MAX {
            return Err(End::Cut(anyhow::anyhow!("nothing comes from the source")));
        }
    }
}
