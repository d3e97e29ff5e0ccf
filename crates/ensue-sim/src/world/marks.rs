//! Marks: how often each rare thing happened. A thing that never happens in many runs is not tested at all.

use ensue_node::{Trace, TransactionStep};
use ensue_types::DatacenterId;
use std::collections::BTreeMap;
use std::fmt;

/// Something worth counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    DependencyWaited,
    DuplicateDropped,
    SecondRound,
    ReadRestarted,
    CommitCheck,
    PassedOver,
    LosingWriteInTransaction,
    TornTail,
    TailLost,
    TailRecovered,
    DeclaredLost,
    DependsOnLost,
    PartAbandoned,
    VoteGivenBack,
    /// A partition with an empty directory asked the others, could not recover what was lost, or recovers it.
    Joining,
    CannotRejoin,
    Rejoining,
    CopyBegun,
    CopyGivenUp,
    Copied,
    PeerRefused,
    PeerReadmitted,
    GoesOnUnproved,
    RowRemoved,
    TombstonesCollected,
    Checkpointed,
    PartitionStopped,
    DiskFull,
    RoomAgain,
    PowerTore,
    /// A replica of a partition was elected, or is the leader no more.
    LeaderChanged,
    /// A replica has moved away from a core.
    ReplicaDismissed,
    HandshakeRefused,
    ConnectionReplaced,
    SessionMoved,
    PastMerged,
    /// A client was told something that it subscribes to.
    MessageHeard,
    /// A client that is told of changes keeps what it has read.
    Cached,
    /// A command on a key with a home was answered.
    AnsweredAtHome,
    /// A session went on under its name, on another connection.
    NameResumed,
    /// A session was told that what was kept under its name is forgotten.
    NameForgotten,
    ErrorAnswer,
    Digest,
    /// A run had a read that returned less than its partition had received.
    StaleRead,
    /// A request was answered `BLOCKED`, or `FALLBACK`.
    Blocked,
    FellBack,
    /// A request was answered `DISCARDED`, and something was discarded with a dead datacenter.
    Parted,
    /// A transaction that watched a key was executed.
    WatchedExecuted,
    /// A script was stopped by its steps.
    ScriptStopped,
    /// A handler of conflicts made nothing of the values that it was given.
    HandlerFailed,
    Discarded,
    /// A transaction of a keyspace with branches was aborted; a merge was begun; there was more than one leaf; a state
    /// was asked for that had been collected.
    Aborted,
    MergeBegun,
    Branched,
    StateCollected,
    Crash {
        step: TransactionStep,
        remote: bool,
    },
    /// A node refused something of a peer.
    Refused(&'static str),
    /// A fault of the kind of this name struck.
    Fault(&'static str),
}

impl Mark {
    /// What a trace event counts as.
    pub fn of_trace(trace: &Trace, _datacenter: DatacenterId) -> Option<Mark> {
        Some(match trace {
            Trace::DependencyWaited { .. } => Mark::DependencyWaited,
            Trace::DuplicateDropped { .. } => Mark::DuplicateDropped,
            Trace::SecondRound { .. } => Mark::SecondRound,
            Trace::ReadRestarted { .. } => Mark::ReadRestarted,
            Trace::CommitCheck { .. } => Mark::CommitCheck,
            Trace::PassedOver { .. } => Mark::PassedOver,
            Trace::LosingWrite { .. } => Mark::LosingWriteInTransaction,
            Trace::TornTail { .. } => Mark::TornTail,
            Trace::TailLost { .. } => Mark::TailLost,
            Trace::TailRecovered { .. } => Mark::TailRecovered,
            Trace::DeclaredLost { .. } => Mark::DeclaredLost,
            Trace::DependsOnLost { .. } => Mark::DependsOnLost,
            Trace::PartAbandoned { .. } => Mark::PartAbandoned,
            Trace::VoteGivenBack { .. } => Mark::VoteGivenBack,
            Trace::Joining { .. } => Mark::Joining,
            Trace::CannotRejoin { .. } => Mark::CannotRejoin,
            Trace::Rejoining { .. } => Mark::Rejoining,
            Trace::CopyBegun { .. } => Mark::CopyBegun,
            Trace::CopyGivenUp { .. } => Mark::CopyGivenUp,
            Trace::Copied { .. } => Mark::Copied,
            Trace::PeerRefused { .. } => Mark::PeerRefused,
            Trace::PeerReadmitted { .. } => Mark::PeerReadmitted,
            Trace::GoesOnUnproved { .. } => Mark::GoesOnUnproved,
            Trace::RowRemoved { .. } => Mark::RowRemoved,
            Trace::TombstonesCollected { .. } => Mark::TombstonesCollected,
            Trace::Checkpointed { .. } => Mark::Checkpointed,
            Trace::PartitionStopped { .. } => Mark::PartitionStopped,
            Trace::DiskFull { .. } => Mark::DiskFull,
            Trace::RoomAgain { .. } => Mark::RoomAgain,
            Trace::HandlerFailed { .. } => Mark::HandlerFailed,
            Trace::Refused { what } => Mark::Refused(what),
            _ => return None,
        })
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Mark::Crash { step, remote } = self {
            return write!(f, "crash at {step:?} {}", if *remote { "elsewhere" } else { "at the origin" });
        }
        if let Mark::Refused(what) = self {
            return write!(f, "refused {what}");
        }
        if let Mark::Fault(name) = self {
            return write!(f, "fault {name}");
        }
        let mut words = String::new();
        for letter in format!("{self:?}").chars() {
            if letter.is_ascii_uppercase() && !words.is_empty() {
                words.push(' ');
            }
            words.push(letter.to_ascii_lowercase());
        }
        write!(f, "{words}")
    }
}

/// Counts of marks.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    counts: BTreeMap<Mark, u64>,
}

impl Marks {
    pub fn add(&mut self, mark: Mark) {
        *self.counts.entry(mark).or_insert(0) += 1;
    }

    pub fn join(&mut self, other: &Marks) {
        for (&mark, count) in &other.counts {
            *self.counts.entry(mark).or_insert(0) += count;
        }
    }

    pub fn count(&self, mark: Mark) -> u64 {
        self.counts.get(&mark).copied().unwrap_or(0)
    }

    /// How many marks occurred.
    pub fn hit(&self) -> usize {
        self.counts.len()
    }

    /// Those that occurred, in their order.
    pub fn occurred(&self) -> impl Iterator<Item = Mark> {
        self.counts.keys().copied()
    }
}
