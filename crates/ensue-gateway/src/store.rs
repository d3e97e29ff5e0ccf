//! The store of TRODS-KV: a server that speaks the Redis protocol, asked by a thread of its own, or this process's
//! memory, which no other server sees.
//!
//! Operations of one gateway are carried out in order, as many in a round trip as wait. One that cannot be carried out
//! fails, and is not tried again: its response flows unprotected, as without a gateway.

use crate::limits::{
    MEMORY_CONNECTIONS_MAX, STORE_ANSWER_MAX, STORE_BATCH_MAX, STORE_CONNECT_MAX, STORE_LOOKUPS_MAX,
    STORE_PAUSE, STORE_QUEUE_MAX,
};
use crate::spawn;
use ensue_client::{Connection, Options, Reply};
use ensue_trods::{Key, StoreOp, StoreOutcome, Ticket};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;

/// Where records are kept.
#[derive(Clone, Debug)]
pub enum Place {
    /// Nowhere: every operation fails.
    Nowhere,
    /// In the memory of this gateway.
    Memory,
    /// On a server.
    Server {
        /// Its address.
        host: String,
        /// Its port.
        port: u16,
        /// Its password, if it has one.
        password: Option<String>,
    },
}

type Asked = (Ticket, StoreOp);

/// A store at work.
#[derive(Debug)]
pub(crate) enum Store {
    Nowhere,
    Memory(Memory),
    Server(Asking),
}

impl Store {
    /// Opens a store; outcomes that come later are handed to `on_outcome`.
    pub fn open(
        place: &Place,
        on_outcome: impl Fn(Key, Ticket, StoreOutcome) + Send + 'static,
    ) -> io::Result<Self> {
        let options = match place {
            Place::Nowhere => return Ok(Self::Nowhere),
            Place::Memory => return Ok(Self::Memory(Memory::default())),
            Place::Server { host, port, password } => Options {
                host: host.clone(),
                password: password.clone(),
                connect_timeout: STORE_CONNECT_MAX,
                answer_timeout: STORE_ANSWER_MAX,
                ..Options::local(*port)
            },
        };
        let (sender, receiver) = sync_channel(STORE_QUEUE_MAX);
        let lookups = Arc::new(AtomicUsize::new(0));
        let asker = Asker { options, connection: None, failed: None, lookups: Arc::clone(&lookups) };
        spawn("trods-store", move || asker.serve(&receiver, &on_outcome))?;
        Ok(Self::Server(Asking { sender, lookups }))
    }

    /// Begins an operation. An outcome that is known at once is returned.
    pub fn begin(&mut self, ticket: Ticket, op: StoreOp) -> Option<StoreOutcome> {
        match self {
            Self::Nowhere => Some(StoreOutcome::Failed),
            Self::Memory(memory) => Some(memory.carry_out(op)),
            Self::Server(asking) => asking.begin(ticket, op),
        }
    }
}

/// The operations that wait for a server.
#[derive(Debug)]
pub(crate) struct Asking {
    sender: SyncSender<Asked>,
    /// Lookups that have no outcome.
    lookups: Arc<AtomicUsize>,
}

impl Asking {
    fn begin(&self, ticket: Ticket, op: StoreOp) -> Option<StoreOutcome> {
        let is_lookup = matches!(op, StoreOp::Get { .. });
        if is_lookup && self.lookups.load(Ordering::Relaxed) >= STORE_LOOKUPS_MAX {
            return Some(StoreOutcome::Failed);
        }
        self.lookups.fetch_add(usize::from(is_lookup), Ordering::Relaxed);
        if self.sender.try_send((ticket, op)).is_ok() {
            return None;
        }
        self.lookups.fetch_sub(usize::from(is_lookup), Ordering::Relaxed);
        Some(StoreOutcome::Failed)
    }
}

/// Records in memory, as a server would keep them, without their expiry.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    records: BTreeMap<Key, BTreeMap<u32, Vec<u8>>>,
}

impl Memory {
    fn carry_out(&mut self, op: StoreOp) -> StoreOutcome {
        match op {
            StoreOp::Get { key } => {
                let records = self.records.get(&key).map(|records| records.values().cloned().collect());
                StoreOutcome::Found(records.unwrap_or_default())
            }
            StoreOp::Put { key, exchange, record } => {
                let records = self.records.entry(key).or_default();
                if let Some(other) = records.get(&exchange.0) {
                    return StoreOutcome::Exists(other.clone());
                }
                records.insert(exchange.0, record);
                if self.records.len() > MEMORY_CONNECTIONS_MAX {
                    self.records.pop_first();
                }
                StoreOutcome::Stored
            }
            StoreOp::Delete { key, exchange } => {
                let records = self.records.entry(key).or_default();
                records.remove(&exchange.0);
                if records.is_empty() {
                    self.records.remove(&key);
                }
                StoreOutcome::Deleted
            }
        }
    }
}

struct Asker {
    options: Options,
    connection: Option<Connection>,
    failed: Option<Instant>,
    lookups: Arc<AtomicUsize>,
}

impl Asker {
    fn serve(mut self, receiver: &Receiver<Asked>, on_outcome: &impl Fn(Key, Ticket, StoreOutcome)) {
        while let Ok(first) = receiver.recv() {
            let mut batch = vec![first];
            batch.extend(receiver.try_iter().take(STORE_BATCH_MAX - 1));
            let replies = self.ask(&batch);
            let mut replies = replies.into_iter().flatten();
            for (ticket, op) in batch {
                let outcome = outcome(&op, &mut replies);
                self.lookups.fetch_sub(usize::from(matches!(op, StoreOp::Get { .. })), Ordering::Relaxed);
                on_outcome(op.key(), ticket, outcome);
            }
        }
    }

    /// The answers to a batch, or `None` if the store cannot be reached.
    fn ask(&mut self, batch: &[Asked]) -> Option<Vec<Reply>> {
        if self.failed.is_some_and(|at| at.elapsed() < STORE_PAUSE) {
            return None;
        }
        let commands: Vec<_> = batch.iter().flat_map(|(_, op)| op.commands()).collect();
        let words: Vec<Vec<&[u8]>> =
            commands.iter().map(|words| words.iter().map(Vec::as_slice).collect()).collect();
        let lines: Vec<&[&[u8]]> = words.iter().map(Vec::as_slice).collect();
        // A store that was restarted, or has closed what was idle, is asked again over a new connection: what was saved
        // by the first attempt is found then.
        let kept = self.connection.take().and_then(|mut connection| {
            let replies = connection.pipeline(&lines).ok()?;
            self.connection = Some(connection);
            Some(replies)
        });
        let answered = match kept {
            Some(replies) => Ok(replies),
            None => Connection::open(&self.options).and_then(|mut connection| {
                let replies = connection.pipeline(&lines)?;
                self.connection = Some(connection);
                Ok(replies)
            }),
        };
        self.failed = answered.is_err().then(Instant::now);
        if let Err(error) = &answered {
            eprintln!("the store does not answer: {error}");
        }
        answered.ok()
    }
}

/// The outcome of an operation, read from the answers to its commands.
fn outcome(op: &StoreOp, replies: &mut impl Iterator<Item = Reply>) -> StoreOutcome {
    let count = op.commands().len();
    let replies: Vec<Reply> = replies.take(count).collect();
    if let Some(Reply::Error(error)) = replies.iter().find(|reply| matches!(reply, Reply::Error(_))) {
        eprintln!("the store refuses: {error}");
        return StoreOutcome::Failed;
    }
    if replies.len() < count {
        return StoreOutcome::Failed;
    }
    match (op, &replies[..]) {
        (StoreOp::Get { .. }, [Reply::Array(items)]) => {
            let record = |item: &Reply| match item {
                Reply::Bulk(bytes) => Some(bytes.to_vec()),
                _ => None,
            };
            StoreOutcome::Found(items.iter().filter_map(record).collect())
        }
        (StoreOp::Put { .. }, [Reply::Integer(1), ..]) => StoreOutcome::Stored,
        (StoreOp::Put { .. }, [_, Reply::Bulk(bytes), _]) => StoreOutcome::Exists(bytes.to_vec()),
        (StoreOp::Delete { .. }, _) => StoreOutcome::Deleted,
        _ => StoreOutcome::Failed,
    }
}

#[cfg(test)]
mod tests;
