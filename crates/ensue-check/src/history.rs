//! What clients did and saw, in the one form that every checker here reads.
//!
//! A session is one lineage of causality: one client from its beginning to its end, moves with a token included. Its
//! transactions stand in the order in which it did them. A single command is a transaction of one operation. Names are
//! interned: keys, values, sessions and datacenters are small numbers, and the tables say what they stand for.

/// A key, by its place in [`History::keys`]. Registers, counters and queues share the table; a key is one of
/// these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u32);

/// A written value, by its place in [`History::values`].
///
/// Values are told apart by their text, per key: the same text under two keys may or may not be the same `Value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(pub u32);

impl Value {
    /// The key holds nothing: its initial state, unless a transaction wrote something first. A delete that is to be
    /// told apart from it writes a value of its own.
    pub const ABSENT: Value = Value(0);
}

/// A transaction, by its place in [`History::transactions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionIndex(pub u32);

impl TransactionIndex {
    /// In a report: the initial transaction, which wrote [`Value::ABSENT`] to every key before all others.
    pub const INITIAL: TransactionIndex = TransactionIndex(u32::MAX);
}

/// A session, by its place in [`History::sessions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionIndex(pub u32);

/// One step of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The register held this.
    Read { key: Key, value: Value },
    /// The register now holds this. A write of [`Value::ABSENT`] is a delete that later reads cannot tell from "never".
    Write { key: Key, value: Value },
    /// The counter was changed by this much.
    Add { key: Key, delta: i64 },
    /// The counter read as this; a counter that nobody added to reads 0.
    Count { key: Key, value: i64 },
    /// The queue got this element; [`Value::ABSENT`] for one that nobody knows, without an answer.
    Push { key: Key, element: Value },
    /// The queue gave this element away; [`Value::ABSENT`] if it was empty, or if no answer came.
    Pop { key: Key, element: Value },
    /// The queue was read, and this was one of its elements; [`Value::ABSENT`] if there was none.
    Hold { key: Key, element: Value },
}

impl Operation {
    pub fn key(self) -> Key {
        match self {
            Operation::Read { key, .. } | Operation::Write { key, .. } => key,
            Operation::Add { key, .. } | Operation::Count { key, .. } => key,
            Operation::Push { key, .. } | Operation::Pop { key, .. } | Operation::Hold { key, .. } => key,
        }
    }

    pub fn is_of_queue(self) -> bool {
        matches!(self, Operation::Push { .. } | Operation::Pop { .. } | Operation::Hold { .. })
    }
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Committed,
    /// No answer came: its writes may have taken effect, or may yet. It has no reads.
    Unknown,
    /// It certainly had no effect.
    Failed,
}

/// Operations that take effect together, in program order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    pub session: SessionIndex,
    /// Where its first operation stands in the file that it was read from, counted from 1; 0 if there is no file.
    pub line: u32,
    /// By its place in [`History::datacenters`]; nothing where the history does not say.
    pub datacenter: Option<u16>,
    /// Microseconds on one clock of the recorder; both 0 where the history does not say.
    pub start_us: u64,
    /// `u64::MAX` if no answer came.
    pub end_us: u64,
    pub outcome: Outcome,
    /// Read by a fresh session after everything came to rest: compared between datacenters.
    pub is_final: bool,
    /// The past of these transactions belongs to this one's, beside its session's: a token was shown.
    pub merges: Vec<TransactionIndex>,
    pub operations: Vec<Operation>,
}

impl Transaction {
    /// A committed transaction without operations, at no known place and time.
    pub fn committed(session: SessionIndex) -> Transaction {
        Transaction {
            session,
            line: 0,
            datacenter: None,
            start_us: 0,
            end_us: 0,
            outcome: Outcome::Committed,
            is_final: false,
            merges: Vec::new(),
            operations: Vec::new(),
        }
    }
}

/// One session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    pub name: String,
    pub transactions: Vec<TransactionIndex>,
}

/// Everything that was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    pub sessions: Vec<Session>,
    pub transactions: Vec<Transaction>,
    pub keys: Vec<String>,
    /// The first entry stands for [`Value::ABSENT`].
    pub values: Vec<String>,
    pub datacenters: Vec<String>,
    /// The line at which a file ended before its time: what holds so far may not hold for the rest.
    pub truncated_at_line: Option<u32>,
    /// What clients did and the history cannot say. What holds for the rest may not hold for all.
    pub left_out: Vec<LeftOut>,
}

/// A key whose operations are not in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Nothing if it may be any key.
    pub key: Option<String>,
    pub reason: String,
    /// Where the file says so; 0 if there is none.
    pub line: u32,
}

impl History {
    pub fn transaction(&self, index: TransactionIndex) -> &Transaction {
        &self.transactions[index.0 as usize]
    }

    pub fn session_name(&self, session: SessionIndex) -> &str {
        &self.sessions[session.0 as usize].name
    }

    pub fn key_name(&self, key: Key) -> &str {
        &self.keys[key.0 as usize]
    }

    pub fn value_text(&self, value: Value) -> &str {
        &self.values[value.0 as usize]
    }

    pub fn operation_count(&self) -> usize {
        self.transactions.iter().map(|transaction| transaction.operations.len()).sum()
    }
}
