//! Keys that go away: `RENAME` of keys that one session alone writes, and `FLUSHDB` of a keyspace apart.
//!
//! A read of nothing says not who removed the key, and the checker leaves undecided what may have come from two places
//! (docs/checking.md). So a removal writes a value of its own into the history, and wherever no other removal can be
//! meant, a read of nothing is a read of that value:
//!
//! - A key is written once by the session that renames it next. The rename reads that value, writes it under the new
//!   key, which all clients read, and removes the old one: one transaction. When everything is at rest, the old keys
//!   are read everywhere, too.
//! - The keyspace is flushed once a round, when each of its registers has had a value everywhere. A flush is not atomic
//!   over partitions (docs/sessions.md): each register is flushed by a transaction of its own, behind what the session
//!   had done, and the session goes on behind all of them.

use super::{Client, Round, ended, outcome_of};
use crate::cluster::DATACENTERS;
use crate::random::Random;
use anyhow::Result;
use ensue_check::history::{Operation, Outcome, Transaction, TransactionIndex, Value};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

pub const FLUSHED_KEYSPACE: u8 = 1;
pub const FLUSHED_CLIENTS: usize = 3;
const FLUSHED_REGISTERS: usize = 6;
/// One step in so many flushes, if no other has: that is some seconds after the beginning of a round.
const STEPS_A_FLUSH: u64 = 2_000;
/// Renamed keys that one transaction reads in the end.
const READ_AT_ONCE: usize = 100;
const MOVED: &str = "(renamed)";
const FLUSHED: &str = "(flushed)";

/// What was removed, or may have been.
#[derive(Debug, Default)]
pub struct Removals {
    moved: Mutex<Vec<String>>,
    flushes: AtomicBool,
}

impl Removals {
    fn moved(&self) -> Vec<String> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Round {
    pub fn flushed_registers(&self) -> Vec<String> {
        (0..FLUSHED_REGISTERS).map(|index| format!("round{}:f{index}", self.number)).collect()
    }

    fn renamed_key(&self, value: &str) -> String {
        format!("round{}:m{value}", self.number)
    }

    /// What a read of nothing saw.
    pub(super) fn nothing_of(&self, key: &str) -> Value {
        let is_moved = key.starts_with(&self.renamed_key(""));
        let is_flushed = self.removals.flushes.load(Ordering::SeqCst)
            && key.starts_with(&format!("round{}:f", self.number));
        match (is_moved, is_flushed) {
            (true, _) => self.recorder.value(MOVED),
            (_, true) => self.recorder.value(FLUSHED),
            _ => Value::ABSENT,
        }
    }

    /// The life of a client of the keyspace that is flushed.
    pub fn live_in_flushed(&self, client: usize, mut random: Random) {
        let (mut sessions, mut written) = (0, 0);
        while !self.is_over() {
            sessions += 1;
            let datacenter = random.index(DATACENTERS);
            let name = format!("client {client} of what is flushed, session {sessions}");
            let session = self.recorder.session(&name);
            let worked = Client::open_in(self, datacenter, session, FLUSHED_KEYSPACE)
                .and_then(|mut opened| opened.work_in_flushed(client, &mut written, &mut random));
            if let (Err(error), false) = (worked, self.is_over()) {
                self.note_error(format!("{name} in dc{}: {error:#}", datacenter + 1));
                thread::sleep(Duration::from_millis(random.between(5, 100)));
            }
        }
    }
}

impl Client<'_> {
    /// Writes a key that nobody else writes, and gives it a name that everybody reads.
    pub(super) fn rename(&mut self, value: &str, target: &str) -> Result<()> {
        let source = self.round.renamed_key(value);
        self.write_many(std::slice::from_ref(&source), &[value.to_owned()])?;
        self.round.removals.moved.lock().unwrap_or_else(PoisonError::into_inner).push(source.clone());
        let recorder = &self.round.recorder;
        let (old, new, value) = (recorder.key(&source), recorder.key(target), recorder.value(value));
        let operations = vec![
            Operation::Read { key: old, value },
            Operation::Write { key: new, value },
            Operation::Write { key: old, value: recorder.value(MOVED) },
        ];
        self.change(&[b"RENAME", source.as_bytes(), target.as_bytes()], operations)
    }

    /// What the renamed keys are in the end.
    pub(super) fn read_moved(&mut self) -> Result<()> {
        self.round.removals.moved().chunks(READ_AT_ONCE).try_for_each(|keys| self.read_many(keys, true))
    }

    fn work_in_flushed(&mut self, client: usize, written: &mut u64, random: &mut Random) -> Result<()> {
        for _ in 0..random.between(50, 500) {
            if self.round.is_over() {
                break;
            }
            let registers = self.round.flushed_registers();
            let (first, count) = (random.index(registers.len()), 1 + random.index(3));
            let keys: Vec<String> =
                (first..first + count).map(|index| registers[index % registers.len()].clone()).collect();
            if random.below(STEPS_A_FLUSH) == 0 && !self.round.removals.flushes.swap(true, Ordering::SeqCst) {
                self.flush()?;
            } else if random.percent(55) {
                self.read_many(&keys, false)?;
            } else {
                *written += 1;
                let values: Vec<String> = keys.iter().map(|_| format!("f{client}.{written}")).collect();
                self.write_many(&keys, &values)?;
            }
            thread::sleep(Duration::from_micros(random.between(0, 3_000)));
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let recorder = &self.round.recorder;
        let start_us = recorder.now_us();
        let answer = self.connection.call(&[b"FLUSHDB"]);
        let outcome = outcome_of(&answer);
        let end_us = if outcome == Outcome::Unknown { u64::MAX } else { recorder.now_us() };
        let flushed = |key: String| {
            let session = recorder.session(&format!("flush of {key}"));
            recorder.write(Transaction {
                datacenter: Some(self.datacenter as u16),
                start_us,
                end_us,
                outcome,
                merges: self.last.into_iter().collect(),
                operations: vec![Operation::Write {
                    key: recorder.key(&key),
                    value: recorder.value(FLUSHED),
                }],
                ..Transaction::committed(session)
            })
        };
        let parts: Vec<TransactionIndex> = self.round.flushed_registers().into_iter().map(flushed).collect();
        self.merges.extend(parts);
        ended(b"FLUSHDB", answer)
    }
}

#[cfg(test)]
mod tests;
