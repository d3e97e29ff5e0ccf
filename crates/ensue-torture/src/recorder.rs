//! What all clients of a round did and saw, in the form that the checker reads.

use ensue_check::history::{
    History, Key, Operation, Outcome, Session, SessionIndex, Transaction, TransactionIndex, Value,
};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// One round's recorder, shared by its clients.
#[derive(Debug)]
pub struct Recorder {
    began: Instant,
    tables: Mutex<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    history: History,
    keys: HashMap<String, Key>,
    values: HashMap<String, Value>,
}

/// What a client knows of a transaction before and after it.
#[derive(Debug)]
pub struct Entry {
    pub session: SessionIndex,
    pub datacenter: usize,
    pub start_us: u64,
    /// `u64::MAX` if no answer came.
    pub end_us: u64,
    pub outcome: Outcome,
    pub is_final: bool,
    pub merges: Vec<TransactionIndex>,
    pub operations: Vec<Operation>,
}

impl Recorder {
    pub fn new(datacenters: usize) -> Recorder {
        let datacenters = (1..=datacenters).map(|number| format!("dc{number}")).collect();
        let history = History { datacenters, values: vec![String::new()], ..History::default() };
        Recorder { began: Instant::now(), tables: Mutex::new(Tables { history, ..Tables::default() }) }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Microseconds since the round began.
    pub fn now_us(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }

    pub fn session(&self, name: String) -> SessionIndex {
        let mut tables = self.tables();
        tables.history.sessions.push(Session { name, transactions: Vec::new() });
        SessionIndex(tables.history.sessions.len() as u32 - 1)
    }

    pub fn key(&self, name: &str) -> Key {
        let tables = &mut *self.tables();
        *tables.keys.entry(name.to_owned()).or_insert_with(|| {
            tables.history.keys.push(name.to_owned());
            Key(tables.history.keys.len() as u32 - 1)
        })
    }

    pub fn value(&self, text: &str) -> Value {
        let tables = &mut *self.tables();
        *tables.values.entry(text.to_owned()).or_insert_with(|| {
            tables.history.values.push(text.to_owned());
            Value(tables.history.values.len() as u32 - 1)
        })
    }

    /// Writes a transaction down, at the end of its session.
    pub fn write(&self, entry: Entry) -> TransactionIndex {
        let mut tables = self.tables();
        let index = TransactionIndex(tables.history.transactions.len() as u32);
        tables.history.sessions[entry.session.0 as usize].transactions.push(index);
        tables.history.transactions.push(Transaction {
            session: entry.session,
            datacenter: Some(entry.datacenter as u16),
            start_us: entry.start_us,
            end_us: entry.end_us,
            outcome: entry.outcome,
            is_final: entry.is_final,
            merges: entry.merges,
            operations: entry.operations,
        });
        index
    }

    pub fn into_history(self) -> History {
        self.tables.into_inner().unwrap_or_else(PoisonError::into_inner).history
    }
}
