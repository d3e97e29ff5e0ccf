//! What clients did and saw: the only thing, beside liveness and marks, that a run is judged by.
//!
//! A session here is one lineage of causality on one connection: a client that reconnects begins a new session, and
//! one that shows a token in another place begins a new session whose first operation merges the old one's past.

use crate::resp::Answer;
use ensue_protocol::{Availability, Promises};
use ensue_types::{Args, DatacenterId, PartitionId, partition_of};
use std::collections::{BTreeMap, BTreeSet};

/// A session, by its place in the history.
pub type SessionIndex = usize;
/// An operation, by its place in the history: one command, or one transaction.
pub type OperationIndex = usize;

/// A place that holds one value: a key, or a column of a key. Interned by the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location(pub usize);

/// What an operation writes at a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// A value that nothing else ever writes there: the operation's own index tells it apart.
    Value,
    Nothing,
    /// Adds a power of two that nothing else ever adds there.
    Bit(u32),
}

/// What an operation read at a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    Nothing,
    /// The value that this operation wrote.
    Value(OperationIndex),
    /// Some value, but the answer does not say which.
    Something,
    /// The sum of the powers of two added.
    Bits(u64),
}

/// What a read of a key saw whose conflicting values are folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folded {
    pub key: &'static str,
    pub answer: Option<String>,
    /// The values in the answer, each with the operation that its text names.
    pub values: Vec<(String, OperationIndex)>,
}

/// The elements of a list as somebody read them, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    pub key: String,
    pub elements: Vec<String>,
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// Nobody knows whether its writes took effect.
    Unknown,
    /// It had no effect.
    Refused,
}

/// One operation.
#[derive(Clone, Debug)]
pub struct Operation {
    pub session: SessionIndex,
    /// Its place in its session, from 1.
    pub number: u32,
    pub datacenter: DatacenterId,
    pub commands: Vec<Args>,
    pub invoked_us: u64,
    pub answered_us: u64,
    pub outcome: Outcome,
    /// All its reads see one state. Otherwise each is a read of its own.
    pub snapshot: bool,
    /// All its writes take effect together. Otherwise each is a write of its own.
    pub together: bool,
    /// It shows what its datacenter had acknowledged to anybody before it was asked.
    pub recent: bool,
    /// The past of this operation is added to the session's.
    pub merges: Option<OperationIndex>,
    pub reads: Vec<(Location, Seen)>,
    /// After it is done: only what took effect.
    pub writes: Vec<(Location, Written)>,
}

/// A power failure under `everysec` or `no`, or the loss of a directory: what a partition of a datacenter wrote in
/// this time
/// may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerLost {
    pub datacenter: DatacenterId,
    pub partition: PartitionId,
    /// All that was answered at or before this was synced.
    pub since_us: u64,
    pub at_us: u64,
    /// It lost its directory: with that goes what was written in it and in others together.
    pub is_whole: bool,
}

/// Everything.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// What the store promises that this history is judged by.
    pub promises: Promises,
    pub operations: Vec<Operation>,
    /// The operations of each session, in its order.
    pub sessions: Vec<Vec<OperationIndex>>,
    pub locations: Vec<String>,
    names: BTreeMap<String, Location>,
    /// A write that changed the value of another one instead of replacing it (`APPEND`): learnt from its value.
    pub built_on: BTreeMap<OperationIndex, OperationIndex>,
    /// All additions to each counter.
    pub adds: BTreeMap<Location, Vec<OperationIndex>>,
    /// Each answer with its time, where an oracle goes by the answers themselves: fewer than there are commands if it
    /// was left.
    pub said: BTreeMap<OperationIndex, Vec<(u64, Answer)>>,
    /// What handlers of conflicts made: each read with its operation.
    pub folded: Vec<(OperationIndex, Folded)>,
    /// Transactions that found a watched key changed while nothing was wrong with their datacenter.
    pub aborted: Vec<OperationIndex>,
    /// Every list that was read.
    pub sequences: Vec<Sequence>,
    /// No message from one datacenter to another takes less.
    pub way_us: u64,
    /// Partitions of the cluster, and its power failures.
    pub partitions: u16,
    pub power_losses: Vec<PowerLost>,
    /// Writes that others certainly have, whatever became of their own datacenter.
    pub kept: BTreeSet<(OperationIndex, Location)>,
    /// Writes that were discarded with a dead datacenter.
    pub discarded: BTreeSet<(OperationIndex, Location)>,
    /// Datacenters that are lost for good: in the end what only they had need not be anywhere.
    pub dead: BTreeSet<DatacenterId>,
}

impl History {
    /// The history of a cluster of so many partitions.
    pub fn of(partitions: u16) -> History {
        History { partitions, ..History::default() }
    }

    pub fn session(&mut self) -> SessionIndex {
        self.sessions.push(Vec::new());
        self.sessions.len() - 1
    }

    /// The location of this name, such as `r1` or `h0/f3`.
    pub fn location(&mut self, name: &str) -> Location {
        if let Some(&location) = self.names.get(name) {
            return location;
        }
        let location = Location(self.locations.len());
        self.locations.push(name.to_owned());
        self.names.insert(name.to_owned(), location);
        location
    }

    /// The location of this name, if there is one.
    pub fn place(&self, name: &str) -> Option<Location> {
        self.names.get(name).copied()
    }

    /// Whether this key, or a column of it, is a location.
    pub fn tells_of(&self, key: &[u8]) -> bool {
        let Ok(key) = std::str::from_utf8(key) else { return false };
        let column = format!("{key}/");
        self.names.contains_key(key)
            || self.names.range(column.clone()..).next().is_some_and(|(name, _)| name.starts_with(&column))
    }

    /// The partition that holds a location.
    pub fn partition_of(&self, location: Location) -> PartitionId {
        let key = self.name(location).split('/').next().unwrap_or_default();
        partition_of(key.as_bytes(), self.partitions.max(1))
    }

    /// The index that the next operation gets.
    pub fn next(&self) -> OperationIndex {
        self.operations.len()
    }

    /// An operation is sent. Until it is answered its outcome is unknown.
    pub fn invoke(
        &mut self,
        session: SessionIndex,
        datacenter: DatacenterId,
        at: u64,
        commands: Vec<Args>,
        writes: Vec<(Location, Written)>,
    ) -> OperationIndex {
        let index = self.operations.len();
        self.sessions[session].push(index);
        for &(location, written) in &writes {
            if matches!(written, Written::Bit(_)) {
                self.adds.entry(location).or_default().push(index);
            }
        }
        self.operations.push(Operation {
            session,
            number: self.sessions[session].len() as u32,
            datacenter,
            commands,
            invoked_us: at,
            answered_us: u64::MAX,
            outcome: Outcome::Unknown,
            snapshot: true,
            together: true,
            recent: false,
            merges: None,
            reads: Vec::new(),
            writes,
        });
        index
    }

    /// The last operation of its session will never be answered. If the one before it was not answered either, nothing
    /// says that the two took effect in their order: each may have failed, or come late. It becomes a session of its
    /// own, behind what the session is known to have done, unless the one before may have made the session fall back.
    pub fn isolate(&mut self, index: OperationIndex) {
        let session = self.operations[index].session;
        let known = self.sessions[session]
            .iter()
            .take_while(|&&operation| self.operations[operation].outcome != Outcome::Unknown)
            .count();
        if self.sessions[session].get(known) == Some(&index) || self.sessions[session].last() != Some(&index)
        {
            return;
        }
        let forgets = self.promises.availability == Availability::FallsBack;
        let before = known.checked_sub(1).filter(|_| !forgets).map(|last| self.sessions[session][last]);
        self.sessions[session].pop();
        let alone = self.session();
        self.sessions[alone].push(index);
        let operation = &mut self.operations[index];
        operation.session = alone;
        operation.number = 1;
        operation.merges = operation.merges.or(before);
    }

    /// The session of these operations, the last of it, ended before they were begun: they are a new session.
    pub fn begin_with(&mut self, operations: &[OperationIndex]) -> SessionIndex {
        let session = self.session();
        for &index in operations {
            let operation = &mut self.operations[index];
            self.sessions[operation.session].retain(|&other| other != index);
            self.sessions[session].push(index);
            operation.session = session;
            operation.number = self.sessions[session].len() as u32;
        }
        session
    }

    pub fn name(&self, location: Location) -> &str {
        &self.locations[location.0]
    }

    /// One line about an operation, for the report of a violation.
    pub fn describe(&self, index: OperationIndex) -> String {
        let operation = &self.operations[index];
        let commands: Vec<String> = operation.commands.iter().map(words).collect();
        let told = operation.reads.iter();
        let told = told.map(|(location, seen)| format!("{}={}", self.name(*location), show(*seen)));
        let said = self.said.get(&index).into_iter().flatten().map(|(_, answer)| answer.to_string());
        let reads: Vec<String> = told.chain(said).collect();
        let merges = operation.merges.map(|m| format!(" merges #{m}")).unwrap_or_default();
        let end = match operation.answered_us {
            u64::MAX => "?".to_owned(),
            at => at.to_string(),
        };
        format!(
            "#{index} session {} op {} in {} [{}..{end} us] {:?}{merges}: {} -> {}",
            operation.session,
            operation.number,
            operation.datacenter,
            operation.invoked_us,
            operation.outcome,
            commands.join("; "),
            reads.join(" "),
        )
    }
}

impl Folded {
    /// The same as reads of the places of those values; of what nobody wrote, the oracle says so.
    pub fn seen(&self, history: &mut History) -> Vec<(Location, Seen)> {
        let place = |(text, writer): &(String, OperationIndex)| {
            (history.location(&format!("{}/{text}", self.key)), Seen::Value(*writer))
        };
        self.values.iter().map(place).collect()
    }
}

fn words(args: &Args) -> String {
    let words: Vec<String> = args
        .iter()
        .map(|word| match word.len() {
            0..=60 => String::from_utf8_lossy(word).into_owned(),
            length => format!("<{length} bytes>"),
        })
        .collect();
    words.join(" ")
}

fn show(seen: Seen) -> String {
    match seen {
        Seen::Nothing => "nil".to_owned(),
        Seen::Value(writer) => format!("#{writer}"),
        Seen::Something => "something".to_owned(),
        Seen::Bits(bits) => format!("{bits:#b}"),
    }
}
