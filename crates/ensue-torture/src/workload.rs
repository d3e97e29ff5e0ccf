//! Clients of one round: sessions that read and write few keys, so that they meet, and write down what they did and
//! saw.
//!
//! A client that gets an error, or loses its connection, begins a new session elsewhere. What was not answered has an
//! unknown outcome, and so has a write that was answered with an error: the error may have come after the effect. What
//! removes keys is in `removals`.

mod counters;
mod removals;

use crate::cluster::DATACENTERS;
use crate::random::Random;
use crate::recorder::Recorder;
use anyhow::{Result, bail};
pub use counters::Counters;
use ensue_check::history::{Operation, Outcome, SessionIndex, Transaction, TransactionIndex};
use ensue_client::{ClientError, Connection, Options, Reply};
use removals::FLUSHED_KEYSPACE;
pub use removals::{FLUSHED_CLIENTS, Removals};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

pub const REGISTERS: usize = 10;
pub const COUNTERS: usize = 2;

/// What the clients of a round share.
#[derive(Debug)]
pub struct Round {
    pub number: u64,
    pub recorder: Recorder,
    /// By datacenter, and there by node.
    pub places: Vec<Vec<Options>>,
    pub stop: AtomicBool,
    pub removals: Removals,
    pub counters: Counters,
    pub errors: AtomicU64,
    /// The first few errors, for the report.
    pub samples: std::sync::Mutex<Vec<String>>,
}

impl Round {
    /// Keys are new in every round, so that each round's history stands for itself.
    pub fn register(&self, index: usize) -> String {
        format!("round{}:r{index}", self.number)
    }

    fn counter(&self, name: &str) -> String {
        format!("round{}:{name}", self.number)
    }

    pub fn note_error(&self, words: String) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        let mut samples = self.samples.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if samples.len() < 5 {
            samples.push(words);
        }
    }

    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Gives every register a first value, everywhere, before the clients begin.
    pub fn initialise(&self) -> Result<()> {
        self.initialise_in(0, "init", (0..REGISTERS).map(|index| self.register(index)).collect())?;
        self.initialise_in(FLUSHED_KEYSPACE, "init of what is flushed", self.flushed_registers())
    }

    fn initialise_in(&self, keyspace: u8, session: &str, keys: Vec<String>) -> Result<()> {
        let session = self.recorder.session(session);
        let mut client = Client::open_in(self, 0, session, keyspace)?;
        let values = keys.iter().map(|key| format!("{key}:init")).collect::<Vec<_>>();
        client.write_many(&keys, &values)?;
        let answer = client.connection.call(&[b"CAUSAL", b"WAIT", b"3", b"TIMEOUT", b"30000"])?;
        match answer {
            Reply::Integer(3) => Ok(()),
            other => bail!("the first values did not reach every datacenter: {other:?}"),
        }
    }

    /// A client's life: one session after another, until the round is over.
    pub fn live(&self, client: usize, mut random: Random) {
        let mut datacenter = client % DATACENTERS;
        let mut written = 0;
        let mut sessions = 0;
        let mut past: Option<(Reply, TransactionIndex)> = None;
        while !self.is_over() {
            sessions += 1;
            let session = self.recorder.session(&format!("client {client} session {sessions}"));
            let outcome = Client::open(self, datacenter, session).and_then(|mut opened| {
                if let Some((token, before)) = past.take() {
                    opened.merge(&token, before)?;
                }
                opened.work(client, &mut written, &mut random)
            });
            match outcome {
                Ok(moved) => past = moved,
                Err(error) if !self.is_over() => {
                    self.note_error(format!("client {client} in dc{}: {error:#}", datacenter + 1));
                    thread::sleep(Duration::from_millis(random.between(5, 100)));
                }
                Err(_) => {}
            }
            if past.is_some() || random.percent(30) {
                datacenter = random.index(DATACENTERS);
            }
        }
    }
}

/// One session on one connection.
struct Client<'a> {
    round: &'a Round,
    datacenter: usize,
    session: SessionIndex,
    connection: Connection,
    merges: Vec<TransactionIndex>,
    last: Option<TransactionIndex>,
}

impl<'a> Client<'a> {
    fn open(round: &'a Round, datacenter: usize, session: SessionIndex) -> Result<Client<'a>> {
        Client::open_in(round, datacenter, session, 0)
    }

    fn open_in(
        round: &'a Round,
        datacenter: usize,
        session: SessionIndex,
        keyspace: u8,
    ) -> Result<Client<'a>> {
        let nodes = &round.places[datacenter];
        let options = Options { keyspace, ..nodes[session.0 as usize % nodes.len()].clone() };
        let connection = Connection::open(&options)?;
        Ok(Client { round, datacenter, session, connection, merges: Vec::new(), last: None })
    }

    /// Shows the token of an earlier session; its past is this session's from now on.
    fn merge(&mut self, token: &Reply, before: TransactionIndex) -> Result<()> {
        let Reply::Bulk(token) = token else { bail!("CAUSAL TOKEN answered {token:?}") };
        match self.connection.call(&[b"CAUSAL", b"MERGE", token, b"TIMEOUT", b"3000"])? {
            Reply::Status(_) => self.merges.push(before),
            // The datacenter has not everything yet, and says so: the session begins without that past.
            Reply::Error(words) if words.starts_with("NOTYET") => {}
            other => bail!("CAUSAL MERGE answered {other:?}"),
        }
        Ok(())
    }

    /// Works until something fails, the round is over, or it takes its past to another place.
    fn work(
        &mut self,
        client: usize,
        written: &mut u64,
        random: &mut Random,
    ) -> Result<Option<(Reply, TransactionIndex)>> {
        while !self.round.is_over() {
            self.step(client, written, random)?;
            if random.below(400) == 0 {
                return match (self.connection.call(&[b"CAUSAL", b"TOKEN"])?, self.last) {
                    (Reply::Error(words), _) => bail!("CAUSAL TOKEN: {words}"),
                    (token, Some(last)) => Ok(Some((token, last))),
                    (_, None) => Ok(None),
                };
            }
            thread::sleep(Duration::from_micros(random.between(0, 3_000)));
        }
        Ok(None)
    }

    fn step(&mut self, client: usize, written: &mut u64, random: &mut Random) -> Result<()> {
        let count = 1 + random.index(3);
        let first = random.index(REGISTERS);
        let step = 1 + random.index(3);
        let keys: Vec<String> =
            (0..count).map(|index| self.round.register((first + index * step) % REGISTERS)).collect();
        let slot = random.index(COUNTERS);
        match random.below(100) {
            0..50 => self.read_many(&keys, false),
            50..88 => {
                *written += 1;
                let value = format!("{client}.{written}");
                let values: Vec<String> = keys.iter().map(|_| value.clone()).collect();
                self.write_many(&keys, &values)
            }
            88..90 => {
                *written += 1;
                self.rename(&format!("{client}.{written}"), &keys[0])
            }
            90..96 => {
                let (counter, amount) = self.round.counters.addition(slot);
                self.add(&self.round.counter(&counter), amount)
            }
            _ => self.count(&self.round.counter(&self.round.counters.one(slot, random)), false),
        }
    }

    /// `GET`, or `MGET` of several keys: one snapshot.
    pub fn read_many(&mut self, keys: &[String], is_final: bool) -> Result<()> {
        let mut words: Vec<&[u8]> = vec![if keys.len() == 1 { b"GET" } else { b"MGET" }];
        words.extend(keys.iter().map(String::as_bytes));
        let start_us = self.round.recorder.now_us();
        let seen = match self.connection.call(&words)? {
            Reply::Error(reason) => bail!("{}: {reason}", String::from_utf8_lossy(words[0])),
            Reply::Array(replies) if keys.len() > 1 => replies,
            reply => vec![reply],
        };
        if seen.len() != keys.len() {
            bail!("{} keys are answered with {} values", keys.len(), seen.len());
        }
        let mut operations = Vec::new();
        for (key, reply) in keys.iter().zip(seen) {
            let value = match reply {
                Reply::Bulk(text) => self.round.recorder.value(&String::from_utf8_lossy(&text)),
                Reply::Nil => self.round.nothing_of(key),
                other => bail!("a read is answered with {other:?}"),
            };
            operations.push(Operation::Read { key: self.round.recorder.key(key), value });
        }
        self.done(start_us, Outcome::Committed, is_final, operations);
        Ok(())
    }

    /// `SET`, or `MSET` of several keys: visible together.
    fn write_many(&mut self, keys: &[String], values: &[String]) -> Result<()> {
        let mut words: Vec<&[u8]> = vec![if keys.len() == 1 { b"SET" } else { b"MSET" }];
        words.extend(keys.iter().zip(values).flat_map(|(key, value)| [key.as_bytes(), value.as_bytes()]));
        let recorder = &self.round.recorder;
        let write = |(key, value): (&String, &String)| Operation::Write {
            key: recorder.key(key),
            value: recorder.value(value),
        };
        let operations = keys.iter().zip(values).map(write).collect();
        self.change(&words, operations)
    }

    fn add(&mut self, counter: &str, delta: i64) -> Result<()> {
        let text = delta.to_string();
        let key = self.round.recorder.key(counter);
        self.change(&[b"INCRBY", counter.as_bytes(), text.as_bytes()], vec![Operation::Add { key, delta }])
    }

    /// Reads a counter.
    pub fn count(&mut self, counter: &str, is_final: bool) -> Result<()> {
        let start_us = self.round.recorder.now_us();
        let value = match self.connection.call(&[b"GET", counter.as_bytes()])? {
            Reply::Nil => 0,
            Reply::Bulk(text) => String::from_utf8_lossy(&text).parse()?,
            other => bail!("GET of a counter: {other:?}"),
        };
        let key = self.round.recorder.key(counter);
        self.done(start_us, Outcome::Committed, is_final, vec![Operation::Count { key, value }]);
        Ok(())
    }

    fn change(&mut self, words: &[&[u8]], operations: Vec<Operation>) -> Result<()> {
        let start_us = self.round.recorder.now_us();
        let answer = self.connection.call(words);
        self.done(start_us, outcome_of(&answer), false, operations);
        ended(words[0], answer)
    }

    fn done(&mut self, start_us: u64, outcome: Outcome, is_final: bool, operations: Vec<Operation>) {
        let end_us = if outcome == Outcome::Unknown { u64::MAX } else { self.round.recorder.now_us() };
        let merges = std::mem::take(&mut self.merges);
        let datacenter = Some(self.datacenter as u16);
        let empty = Transaction::committed(self.session);
        let done =
            Transaction { datacenter, start_us, end_us, outcome, is_final, merges, operations, ..empty };
        self.last = Some(self.round.recorder.write(done));
    }
}

/// Of a write: an error may have come after the effect.
fn outcome_of(answer: &Result<Reply, ClientError>) -> Outcome {
    match answer {
        Ok(Reply::Error(_)) | Err(_) => Outcome::Unknown,
        Ok(_) => Outcome::Committed,
    }
}

fn ended(command: &[u8], answer: Result<Reply, ClientError>) -> Result<()> {
    match answer {
        Ok(Reply::Error(reason)) => bail!("{}: {reason}", String::from_utf8_lossy(command)),
        Ok(_) => Ok(()),
        Err(error) => Err(ClientError::into(error)),
    }
}

/// A fresh session in each datacenter reads everything, after everything came to rest.
pub fn read_finals(round: &Round) -> Result<()> {
    let keys: Vec<String> = (0..REGISTERS).map(|index| round.register(index)).collect();
    for datacenter in 0..DATACENTERS {
        let session = round.recorder.session(&format!("final dc{}", datacenter + 1));
        let mut client = Client::open(round, datacenter, session)?;
        client.read_many(&keys, true)?;
        for counter in round.counters.all() {
            client.count(&round.counter(&counter), true)?;
        }
        client.read_moved()?;
        let session = round.recorder.session(&format!("final of what was flushed dc{}", datacenter + 1));
        Client::open_in(round, datacenter, session, FLUSHED_KEYSPACE)?
            .read_many(&round.flushed_registers(), true)?;
    }
    Ok(())
}
