//! The record of operators' commands, written by a thread of its own: to a file, or among the lines of the log.
//!
//! A core hands over a record and goes on. So many may wait; what is beyond, and what the disk does not take, is lost
//! and counted, for `INFO` shows the count: a full or slow disk stops no core. The file is opened for appending, is
//! readable by its owner alone, and is opened anew when the operator asks (`SIGHUP`), so that it can be rotated. It is
//! not synced.

use crate::bounds::AUDITS_WAITING_MAX;
use crate::clock;
use crate::config::AuditTarget;
use crate::log::{self, Format, Timestamp};
use ensue_node::{Audit, AuditOutcome};
use ensue_wire::CoreName;
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// A record, when it was made, and by which core.
struct Item {
    wall_ms: u64,
    core: CoreName,
    audit: Box<Audit>,
}

/// The way to the thread, of one core or of the node.
#[derive(Clone, Debug)]
pub(crate) struct AuditLog {
    items: SyncSender<Item>,
    lost: Arc<AtomicU64>,
    opens_again: Arc<AtomicBool>,
}

/// The thread, which ends when the last [`AuditLog`] is gone.
#[derive(Debug)]
pub(crate) struct Writer(JoinHandle<()>);

impl Writer {
    pub(crate) fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

/// Where lines go.
#[derive(Debug)]
enum Sink {
    Log,
    File { path: PathBuf, file: File },
}

impl AuditLog {
    /// Starts the thread of a node; nothing if nothing is to be recorded. An error if the file cannot be opened.
    pub(crate) fn start(target: &AuditTarget) -> io::Result<Option<(AuditLog, Writer)>> {
        let sink = match target {
            AuditTarget::No => return Ok(None),
            AuditTarget::Log => Sink::Log,
            AuditTarget::File(path) => Sink::File { path: path.clone(), file: open(path)? },
        };
        let (items, arriving) = sync_channel(AUDITS_WAITING_MAX);
        let audit_log = AuditLog { items, lost: Arc::default(), opens_again: Arc::default() };
        let (lost, opens_again) = (Arc::clone(&audit_log.lost), Arc::clone(&audit_log.opens_again));
        let run = move || run(&arriving, sink, &lost, &opens_again);
        let thread = thread::Builder::new().name("ensue-audit".into()).spawn(run)?;
        Ok(Some((audit_log, Writer(thread))))
    }

    /// Has it written, unless too many wait. It never waits.
    pub(crate) fn record(&self, core: CoreName, audit: Box<Audit>) {
        if self.items.try_send(Item { wall_ms: clock::wall_ms(), core, audit }).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many were lost since the last call.
    pub(crate) fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }

    /// The file is opened anew before the next record: it was moved away.
    pub(crate) fn open_again(&self) {
        self.opens_again.store(true, Ordering::Relaxed);
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

fn run(items: &Receiver<Item>, mut sink: Sink, lost: &AtomicU64, opens_again: &AtomicBool) {
    while let Ok(item) = items.recv() {
        if opens_again.swap(false, Ordering::Relaxed) {
            sink.open_again();
        }
        if sink.write(&line(log::format(), &item)).is_err() {
            lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Sink {
    /// An error leaves the file that is open.
    fn open_again(&mut self) {
        let Sink::File { path, file } = self else { return };
        match open(path) {
            Ok(opened) => *file = opened,
            Err(error) => {
                log::warning(format_args!("cannot open the audit log {} anew: {error}", path.display()));
            }
        }
    }

    /// A line that was written in part is ended by the next one's first byte.
    fn write(&mut self, line: &str) -> io::Result<()> {
        match self {
            Sink::Log => io::stderr().lock().write_all(line.as_bytes()),
            Sink::File { file, .. } => {
                let written = file.write(line.as_bytes())?;
                if written == line.len() {
                    return Ok(());
                }
                file.write_all(&line.as_bytes()[written..]).inspect_err(|_| drop(file.write(b"\n")))
            }
        }
    }
}

/// One record as a line with its end.
fn line(format: Format, Item { wall_ms, core, audit }: &Item) -> String {
    let text = |bytes: &[u8]| Value::from(String::from_utf8_lossy(bytes).into_owned());
    let (outcome, error) = match &audit.outcome {
        AuditOutcome::Done => ("done", None),
        AuditOutcome::Refused => ("refused", None),
        AuditOutcome::Failed(code) => ("failed", Some(code.clone())),
    };
    let mut words: Vec<Value> = audit.words.iter().map(|word| text(word)).collect();
    if audit.left_out > 0 {
        words.push(Value::from(format!("... ({} more arguments)", audit.left_out)));
    }
    let fields = [
        ("core", Value::from(core.to_string())),
        ("user", text(&audit.user)),
        ("address", Value::from(audit.address.clone())),
        ("client", Value::from(audit.client.0)),
        ("client-name", text(&audit.client_name)),
        ("keyspace", Value::from(audit.keyspace.0)),
        ("outcome", Value::from(outcome)),
        ("error", error.map_or(Value::Null, Value::from)),
        ("command", Value::Array(words)),
    ];
    let fields = fields.iter().filter(|(_, value)| !value.is_null());
    log::record(format, Timestamp(*wall_ms), "audit", fields)
}

#[cfg(test)]
mod tests;
