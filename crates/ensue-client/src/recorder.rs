//! Writes down what connections did and saw, as a history that `ensue check` reads.
//!
//! Each connection tells its [`RecordedConnection`] every command before it is sent and every answer as it came; JSON
//! lines leave, as `docs/checking.md` describes them. What is promised: whatever is on a line was so. What cannot be
//! said in reads and writes leaves its keys out of the check, by name; what was not answered has an unknown outcome; a
//! connection that lost its past begins a new session. It keeps nothing but what is pending, and the tokens handed out
//! last.

mod effect;
mod journal;
mod name;
mod plan;
mod queue;
mod track;

use journal::Journal;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

pub use track::RecordedConnection;

/// One history in the making, shared by all connections that are recorded into it.
#[derive(Clone, Debug)]
pub struct Recorder {
    journal: Arc<Mutex<Journal>>,
    began: Instant,
}

impl Recorder {
    /// Begins a history.
    pub fn new(output: Box<dyn Write + Send>) -> io::Result<Recorder> {
        let journal = Journal::begin(output)?;
        Ok(Recorder { journal: Arc::new(Mutex::new(journal)), began: Instant::now() })
    }

    /// A new connection to a datacenter, in the keyspace that a connection begins with.
    pub fn connection(&self, datacenter: Option<&str>) -> RecordedConnection {
        RecordedConnection::new(self.clone(), datacenter)
    }

    /// Closes the history. What comes later is not written down, so connections on which something is pending end
    /// before.
    pub fn finish(&self) -> io::Result<()> {
        self.journal().finish()
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Microseconds since the recorder began.
    fn now_us(&self) -> u64 {
        // A start of 0 would say that there is no time.
        self.began.elapsed().as_micros() as u64 + 1
    }
}

#[cfg(test)]
mod tests;
