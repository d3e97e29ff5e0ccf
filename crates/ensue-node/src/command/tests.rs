//! Commands on simulated datacenters: a keyspace each, stamps that tick, and a log of effects to exchange.
//!
//! Here stand the datacenter and the way in which command lines and answers are written; the tests themselves are
//! in the files below, by feature.

mod algebra;
mod bits;
mod bounded;
mod convergence;
mod fields;
mod geo;
mod hashes;
mod keys;
mod lists;
mod refused;
mod room;
mod rows;
mod sets;
mod sorted_sets;
mod streams;
mod strings;
mod values;
mod views;
mod walks;

use super::{digest, run};
use crate::evaluate::{Evaluation, Observed, Writer};
use bytes::Bytes;
use ensue_resp::{Request, number};
use ensue_store::cell::Write;
use ensue_store::keyspace::{Expiry, Keyspace, Sites};
use ensue_store::view::View;
use ensue_types::{
    DatacenterId, Incarnation, LogicalTime, OperationId, PartitionId, Position, Reply, RowEffect, Source,
    Stamp, limits,
};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The simulated wall clock begins here.
const START_MS: u64 = 1_700_000_000_000;

/// Three datacenters, of which this is one.
fn sites(id: u8) -> Sites {
    let names = ["dc1", "dc2", "dc3"].map(str::to_owned);
    Sites { own: DatacenterId(id), names: names.into() }
}

/// One write, as it travels between datacenters.
#[derive(Clone, Debug)]
struct Logged {
    write: Write,
    effects: Vec<RowEffect>,
}

/// A datacenter of one partition.
struct Datacenter {
    id: DatacenterId,
    clock: LogicalTime,
    keyspace: Keyspace,
    log: Vec<Logged>,
    /// What its readers do not see yet, in a keyspace that keeps versions.
    hidden: BTreeSet<OperationId>,
    /// Writes of others that have arrived.
    applied: BTreeSet<OperationId>,
    /// What the latest command looked at.
    observed: Observed,
    /// Deadlines that have been noted and have not passed.
    expiries: Vec<Expiry>,
    /// Entries of a node of a stream; 0 is as usual.
    node_entries: usize,
    /// Whether all columns of a large row are removed by one effect, where that can be.
    removes_rows: bool,
    /// What the changes of one write may take in an entry.
    entry_bytes_max: usize,
}

impl Datacenter {
    fn new(id: u8) -> Datacenter {
        Datacenter {
            id: DatacenterId(id),
            clock: LogicalTime::from_ms(START_MS),
            keyspace: Keyspace::new(false).with_sites(sites(id)),
            log: Vec::new(),
            hidden: BTreeSet::new(),
            applied: BTreeSet::new(),
            observed: Observed::default(),
            expiries: Vec::new(),
            node_entries: 0,
            removes_rows: false,
            entry_bytes_max: limits::ENTRY_BYTES_MAX,
        }
    }

    /// A datacenter whose keyspace keeps versions.
    fn with_versions(id: u8) -> Datacenter {
        Datacenter { keyspace: Keyspace::new(true).with_sites(sites(id)), ..Datacenter::new(id) }
    }

    fn advance(&mut self, ms: u64) {
        self.clock = self.clock.max(LogicalTime::from_ms(self.clock.ms() + ms));
    }

    fn write(&mut self) -> Write {
        self.clock = self.clock.next();
        let operation = OperationId {
            datacenter: self.id,
            incarnation: Incarnation(0),
            partition: PartitionId(0),
            position: Position(self.log.len() as u64 + 1),
        };
        let stamp = Stamp { time: self.clock, datacenter: self.id, partition: PartitionId(0) };
        Write { stamp, at: self.clock, operation, dependencies: None }
    }

    /// Evaluates the commands as one transaction.
    fn run_all(&mut self, requests: &[Request]) -> Vec<Reply> {
        let writer = Writer::new(self.write(), self.write().operation.datacenter, false);
        let writer = writer.with_node_entries(self.node_entries);
        let mut writer = writer.with_bytes_max(self.entry_bytes_max);
        writer.remove_rows(self.removes_rows && self.applies_in_order());
        let hidden = &self.hidden;
        let visibility = |source: &Source| !hidden.contains(&source.operation);
        let (to_read, to_write) = match self.keyspace.keeps_versions() {
            true => (View::Visibility(&visibility), View::Visibility(&visibility)),
            false => (View::At(self.clock), View::Newest),
        };
        let mut evaluation = match requests.iter().any(Request::is_write) {
            true => Evaluation::writing(&mut self.keyspace, &mut writer, to_write),
            false => Evaluation::reading(&mut self.keyspace, self.clock, to_read),
        };
        let replies =
            requests.iter().map(|request| run(request, &mut evaluation).expect("the present")).collect();
        self.observed = std::mem::take(&mut evaluation.observed);
        if !writer.changes.effects.is_empty() {
            self.log.push(Logged { write: writer.write, effects: writer.changes.effects });
        }
        replies
    }

    /// Whether of each other datacenter all has come that it had written before what has.
    fn applies_in_order(&self) -> bool {
        let has = |operation: &OperationId| self.applied.contains(operation);
        let previous = |operation: &OperationId| OperationId {
            position: Position(operation.position.0 - 1),
            ..*operation
        };
        let mut later = self.applied.iter().filter(|operation| operation.position > Position(1));
        later.all(|operation| has(&previous(operation)))
    }

    fn run(&mut self, line: &str) -> Reply {
        match Request::parse(&arguments(line)) {
            Ok(request) => self.run_all(&[request]).remove(0),
            Err(error) => error.reply(),
        }
    }

    /// Commands with a semicolon between them are one transaction.
    fn transaction(&mut self, line: &str) -> String {
        let requests: Vec<_> =
            line.split(';').map(|part| Request::parse(&arguments(part)).expect(part)).collect();
        self.run_all(&requests).iter().map(show).collect::<Vec<_>>().join("; ")
    }

    /// Merges another datacenter's write.
    fn receive(&mut self, logged: &Logged) {
        self.applied.insert(logged.write.operation);
        self.clock = self.clock.max(logged.write.stamp.time).next();
        let write = Write { at: self.clock, ..logged.write.clone() };
        for change in &logged.effects {
            self.keyspace.apply(change, None, &write);
        }
    }

    fn digest(&self, at: LogicalTime) -> u64 {
        digest(&self.keyspace, at)
    }
}

/// Words with blanks between them. `''` is the empty word, `_` in a word is a blank.
fn arguments(line: &str) -> Vec<Bytes> {
    let word = |word: &str| match word {
        "''" => Bytes::new(),
        word => Bytes::from(word.replace('_', " ")),
    };
    line.split_whitespace().map(word).collect()
}

fn show(reply: &Reply) -> String {
    let list = |items: &[Reply]| items.iter().map(show).collect::<Vec<_>>().join(" ");
    match reply {
        Reply::Status(words) => words.to_string(),
        Reply::Error(words) => format!("-{words}"),
        Reply::Integer(value) => value.to_string(),
        Reply::Bulk(bytes) | Reply::Verbatim(bytes) => format!("\"{}\"", bytes.escape_ascii()),
        Reply::Nil => "nil".to_owned(),
        Reply::NilArray => "nil-array".to_owned(),
        Reply::Array(items) => format!("[{}]", list(items)),
        Reply::Set(items) => format!("<{}>", list(items)),
        Reply::Map(pairs) | Reply::Keyed(pairs) => {
            let shown = pairs.iter().map(|(key, value)| format!("{}:{}", show(key), show(value)));
            format!("{{{}}}", shown.collect::<Vec<_>>().join(" "))
        }
        Reply::Double(value) => String::from_utf8_lossy(&number::f64_bytes(*value)).into_owned(),
        Reply::Pairs(pairs) => {
            let shown = pairs.iter().map(|(first, second)| format!("{}={}", show(first), show(second)));
            format!("({})", shown.collect::<Vec<_>>().join(" "))
        }
        Reply::Boolean(value) => value.to_string(),
        Reply::BigNumber(digits) => String::from_utf8_lossy(digits).into_owned(),
    }
}

/// Runs a script in a new datacenter: a command a line, ` => `, the answer. `+ n` lets n milliseconds pass, a line
/// with semicolons is a transaction.
fn check(script: &str) {
    let mut datacenter = Datacenter::new(0);
    let mut failures = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(ms) = line.strip_prefix("+ ") {
            datacenter.advance(ms.parse().expect("milliseconds"));
            continue;
        }
        let (command, expected) = line.split_once(" => ").expect("command => answer");
        let answer = match command.contains(';') {
            true => datacenter.transaction(command),
            false => show(&datacenter.run(command)),
        };
        if answer != expected {
            writeln!(failures, "{command}\n  expected {expected}\n  answered {answer}").expect("a string");
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

/// Runs the last line of a script; it must look at nothing that is a dependency, or change nothing.
fn last_line(script: &str) -> (Datacenter, usize) {
    let mut datacenter = Datacenter::new(0);
    let mut writes_before = 0;
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        writes_before = datacenter.log.len();
        match line.strip_prefix("+ ") {
            Some(ms) => datacenter.advance(ms.parse().expect("milliseconds")),
            None => drop(datacenter.run(line)),
        }
    }
    let written = datacenter.log.len() - writes_before;
    (datacenter, written)
}

fn looks_at_nothing(script: &str) {
    let (datacenter, _) = last_line(script);
    assert_eq!(datacenter.observed.sources, [], "{script}");
}

fn changes_nothing(script: &str) {
    let (_, written) = last_line(script);
    assert_eq!(written, 0, "{script}");
}
