//! What all clients of a round did and saw, written down as it happens, in the form that the checker reads.

use ensue_check::History;
use ensue_check::builder::Builder;
use ensue_check::history::{Key, SessionIndex, Transaction, TransactionIndex, Value};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// One round's recorder, shared by its clients.
#[derive(Debug)]
pub struct Recorder {
    began: Instant,
    builder: Mutex<Builder>,
}

impl Recorder {
    /// Datacenters get their numbers as places: 0 is `dc1`.
    pub fn new(datacenters: usize) -> Recorder {
        let mut builder = Builder::new();
        (1..=datacenters).for_each(|number| {
            builder.datacenter(&format!("dc{number}"));
        });
        Recorder { began: Instant::now(), builder: Mutex::new(builder) }
    }

    fn builder(&self) -> MutexGuard<'_, Builder> {
        self.builder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Microseconds since the round began.
    pub fn now_us(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }

    pub fn session(&self, name: &str) -> SessionIndex {
        self.builder().session(name)
    }

    pub fn key(&self, name: &str) -> Key {
        self.builder().key(name)
    }

    pub fn value(&self, text: &str) -> Value {
        self.builder().value(text)
    }

    /// Writes a transaction down, at the end of its session.
    pub fn write(&self, transaction: Transaction) -> TransactionIndex {
        self.builder().add(transaction)
    }

    pub fn into_history(self) -> History {
        self.builder.into_inner().unwrap_or_else(PoisonError::into_inner).finish()
    }
}
