//! Makes a history: names come in as text and become numbers, transactions are added in the order of their sessions.

use crate::history::{
    History, Key, LeftOut, Operation, Session, SessionIndex, Transaction, TransactionIndex, Value,
};
use hashbrown::HashTable;
use std::collections::BTreeSet;
use std::hash::BuildHasher;

/// Seeded alike in every run, so that the same file gives the same report.
type FixedState = foldhash::fast::FixedState;

/// A history in the making.
#[derive(Debug)]
pub struct Builder {
    history: History,
    keys: Places,
    values: Places,
    sessions: Places,
    /// By the place of its name: the session that runs under it, or nothing after it has ended.
    running: Vec<Option<SessionIndex>>,
    session_names: Vec<String>,
    /// How many sessions a name has had.
    sessions_of_name: Vec<u32>,
    datacenters: Places,
    left_out: BTreeSet<Option<String>>,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder::new()
    }
}

impl Builder {
    pub fn new() -> Builder {
        let history = History { values: vec!["(absent)".into()], ..History::default() };
        Builder {
            history,
            keys: Places::default(),
            values: Places::default(),
            sessions: Places::default(),
            running: Vec::new(),
            session_names: Vec::new(),
            sessions_of_name: Vec::new(),
            datacenters: Places::default(),
            left_out: BTreeSet::new(),
        }
    }

    pub fn key(&mut self, name: &str) -> Key {
        Key(self.keys.place(name, &mut self.history.keys))
    }

    /// The value of this text. [`Value::ABSENT`] has no text.
    pub fn value(&mut self, text: &str) -> Value {
        Value(self.values.place(text, &mut self.history.values))
    }

    pub fn datacenter(&mut self, name: &str) -> u16 {
        let place = self.datacenters.place(name, &mut self.history.datacenters);
        u16::try_from(place).expect("a history has fewer than 65,536 datacenters")
    }

    /// The session that runs under this name; it begins with the first call.
    pub fn session(&mut self, name: &str) -> SessionIndex {
        let place = self.sessions.place(name, &mut self.session_names) as usize;
        if place == self.running.len() {
            self.running.push(None);
            self.sessions_of_name.push(0);
        }
        if let Some(session) = self.running[place] {
            return session;
        }
        self.sessions_of_name[place] += 1;
        let name = match self.sessions_of_name[place] {
            1 => name.to_string(),
            count => format!("{name}#{count}"),
        };
        let session = SessionIndex(index(self.history.sessions.len()));
        self.history.sessions.push(Session { name, transactions: Vec::new() });
        self.running[place] = Some(session);
        session
    }

    /// What comes under this name from now on is a new session, which owes nothing to the old one.
    pub fn end_session(&mut self, name: &str) {
        let place = self.sessions.place(name, &mut self.session_names) as usize;
        match self.running.get_mut(place) {
            Some(running) => *running = None,
            None => {
                self.running.push(None);
                self.sessions_of_name.push(0);
            }
        }
    }

    /// Adds a transaction as the last of its session.
    pub fn add(&mut self, transaction: Transaction) -> TransactionIndex {
        let place = TransactionIndex(index(self.history.transactions.len()));
        self.history.sessions[transaction.session.0 as usize].transactions.push(place);
        self.history.transactions.push(transaction);
        place
    }

    /// Adds a committed transaction of these operations, without times.
    pub fn commit(&mut self, session: &str, operations: Vec<Operation>) -> TransactionIndex {
        let session = self.session(session);
        self.add(Transaction { operations, ..Transaction::committed(session) })
    }

    pub fn transaction_mut(&mut self, transaction: TransactionIndex) -> &mut Transaction {
        &mut self.history.transactions[transaction.0 as usize]
    }

    pub fn read(&mut self, key: &str, value: Option<&str>) -> Operation {
        Operation::Read { key: self.key(key), value: self.value_or_absent(value) }
    }

    pub fn write(&mut self, key: &str, value: Option<&str>) -> Operation {
        Operation::Write { key: self.key(key), value: self.value_or_absent(value) }
    }

    pub fn add_to(&mut self, key: &str, delta: i64) -> Operation {
        Operation::Add { key: self.key(key), delta }
    }

    pub fn count(&mut self, key: &str, value: i64) -> Operation {
        Operation::Count { key: self.key(key), value }
    }

    /// The recording stopped here before it was complete.
    pub fn truncated_at(&mut self, line: u32) {
        self.history.truncated_at_line = Some(line);
    }

    /// The operations on a key cannot be told; each key counts once.
    pub fn leave_out(&mut self, left_out: LeftOut) {
        if self.left_out.insert(left_out.key.clone()) {
            self.history.left_out.push(left_out);
        }
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    pub fn finish(self) -> History {
        self.history
    }

    fn value_or_absent(&mut self, value: Option<&str>) -> Value {
        value.map_or(Value::ABSENT, |text| self.value(text))
    }
}

/// Finds the place of a text in a table of texts that stands elsewhere, so that no text is kept twice.
#[derive(Debug, Default)]
struct Places {
    places: HashTable<u32>,
}

impl Places {
    fn place(&mut self, text: &str, texts: &mut Vec<String>) -> u32 {
        let hash = hash(text);
        if let Some(&place) = self.places.find(hash, |&place| texts[place as usize] == text) {
            return place;
        }
        let place = index(texts.len());
        texts.push(text.into());
        self.places.insert_unique(hash, place, |&place| self::hash(&texts[place as usize]));
        place
    }
}

fn hash(text: &str) -> u64 {
    FixedState::with_seed(0).hash_one(text)
}

fn index(length: usize) -> u32 {
    u32::try_from(length).expect("a history has fewer than 4,294,967,296 of anything")
}

#[cfg(test)]
mod tests;
