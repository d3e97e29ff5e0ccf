//! The comparison of one keyspace of each side.
//!
//! First all keys of the left side are read on both, a page at a time; then the keys of the right side are looked for
//! on the left. Where clients write, a key may differ only because an update is under way: keys that differ are read
//! again after a pause, some times. One that differs each time, and is the same on either side each time, is different.
//! One that is equal once is equal; one that differs each time and does not stand still is undecided.

use super::explanation::Explanation;
use super::fingerprint::{Seen, Verdict, judge};
use super::pace::{Pace, pause};
use super::reader::Reader;
use super::report::{Difference, Tally};
use super::side::Side;
use super::suspects::{Suspect, Suspects};
use super::walk::Walk;
use crate::import::target::words;
use crate::import::{Progress, Stop};
use anyhow::ensure;
use bytes::Bytes;
use ensue_client::Reply;
use std::thread;
use std::time::{Duration, Instant};

pub(crate) struct Settings {
    pub(crate) pattern: Option<String>,
    /// How often keys that differ are read again.
    pub(crate) rounds: u32,
    pub(crate) pause: Duration,
    pub(crate) tolerance_ms: u64,
    /// Differences that are shown.
    pub(crate) shown: usize,
}

pub(crate) struct Comparison<'a> {
    pub(crate) left: Reader,
    pub(crate) right: Reader,
    pub(crate) settings: &'a Settings,
    pub(crate) pace: Pace,
    pub(crate) progress: Progress,
    pub(crate) stop: Stop,
}

impl Comparison<'_> {
    /// Compares a keyspace of the left side with one of the right side.
    pub(crate) fn keyspaces(
        &mut self,
        left: u64,
        right: u64,
        ignores_deadlines: bool,
    ) -> anyhow::Result<Tally> {
        let total = self.left.side.enter(left)? + self.right.side.enter(right)?;
        let knows = [self.left.side.knows(), self.right.side.knows()];
        for reader in [&mut self.left, &mut self.right] {
            reader.scope.deadlines = !ignores_deadlines;
            reader.scope.field_deadlines =
                !ignores_deadlines && knows.iter().all(|knows| knows.field_deadlines);
        }
        let compares_fields = ignores_deadlines || self.left.scope.field_deadlines;
        let mut tally = Tally::of((left, right));
        tally.skips_field_deadlines = !compares_fields;
        let mut suspects = Suspects::default();
        self.walk_left(total, &mut tally, &mut suspects)?;
        self.walk_right(total, &mut tally, &mut suspects)?;
        let first = suspects.len();
        let rounds = self.read_again(&mut suspects)?;
        tally.equal += first - suspects.len();
        tally.left_out = suspects.left_out;
        tally.is_cut_short = self.stop.is_asked();
        self.decide(suspects, rounds, &mut tally)?;
        Ok(tally)
    }

    fn walk_left(&mut self, total: u64, tally: &mut Tally, suspects: &mut Suspects) -> anyhow::Result<()> {
        let mut walk = Walk::new(self.settings.pattern.as_deref());
        while let Some(keys) = walk.step(&mut self.left.side)? {
            for keys in keys.chunks(self.pace.batch()) {
                for (key, read) in keys.iter().zip(self.both(keys)?) {
                    match read.verdict {
                        Verdict::Equal => tally.equal += u64::from(read.left != Seen::Missing),
                        _ => suspects.add(key, read),
                    }
                }
                tally.left += keys.len() as u64;
                self.spend(keys.len());
                self.show(total, tally, suspects);
                if self.stop.is_asked() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn walk_right(&mut self, total: u64, tally: &mut Tally, suspects: &mut Suspects) -> anyhow::Result<()> {
        let mut walk = Walk::new(self.settings.pattern.as_deref());
        while !self.stop.is_asked() {
            let Some(keys) = walk.step(&mut self.right.side)? else { break };
            for keys in keys.chunks(self.pace.batch()) {
                let missing = missing(&mut self.left.side, keys)?;
                for keys in missing.chunks(self.pace.batch()) {
                    if suspects.is_full() {
                        suspects.left_out += keys.len() as u64;
                        continue;
                    }
                    for (key, read) in keys.iter().zip(self.both(keys)?) {
                        match read.verdict {
                            Verdict::Equal => tally.equal += u64::from(read.left != Seen::Missing),
                            _ => suspects.add(key, read),
                        }
                    }
                }
                tally.right += keys.len() as u64;
                self.spend(keys.len());
                self.show(total, tally, suspects);
                if self.stop.is_asked() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Reads what differs again, and returns how often.
    fn read_again(&mut self, suspects: &mut Suspects) -> anyhow::Result<u32> {
        for round in 0..self.settings.rounds {
            if suspects.len() == 0 || !self.sleep() {
                return Ok(round);
            }
            let names = suspects.names();
            for (number, keys) in names.chunks(self.pace.batch()).enumerate() {
                for (key, read) in keys.iter().zip(self.both(keys)?) {
                    suspects.read_again(key, read, self.settings.tolerance_ms);
                }
                self.spend(keys.len());
                let (done, total) = ((number * self.pace.batch()) as u64, names.len() as u64);
                let text =
                    || format!("round {} of {}: {total} keys that differ", round + 1, self.settings.rounds);
                self.progress.show(done, Some(total), text);
                if self.stop.is_asked() {
                    return Ok(round);
                }
            }
        }
        Ok(self.settings.rounds)
    }

    /// Counts what is left, and looks for words for the first of it.
    fn decide(&mut self, suspects: Suspects, rounds: u32, tally: &mut Tally) -> anyhow::Result<()> {
        for (key, suspect) in suspects.into_iter() {
            let is_torn = suspect.left.is_torn() || suspect.right.is_torn();
            let verdict = match suspect.verdict {
                Verdict::Unreadable => Verdict::Unreadable,
                _ if rounds < self.settings.rounds || suspect.is_changing || is_torn => {
                    tally.count_changing(&key);
                    continue;
                }
                verdict => verdict,
            };
            tally.count(verdict);
            if tally.differences.len() < self.settings.shown {
                let words = printable(&self.explanation(&key).words(&suspect)?);
                tally.differences.push(Difference { key, verdict, words });
            }
        }
        Ok(())
    }

    /// Both sides of each of these keys. They are read at the same time.
    fn both(&mut self, keys: &[Bytes]) -> anyhow::Result<Vec<Suspect>> {
        let (left, right) = (&mut self.left, &mut self.right);
        let (left, right) = thread::scope(|scope| {
            let left = scope.spawn(|| left.read(keys));
            let right = right.read(keys);
            (left.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), right)
        });
        let mut read = Vec::with_capacity(keys.len());
        for ((left, right), key) in left?.into_iter().zip(right?).zip(keys) {
            let mut verdict = judge(&left, &right, self.settings.tolerance_ms);
            if verdict == Verdict::OtherFieldDeadlines {
                verdict = match self.explanation(key).field_deadlines()? {
                    Some(_) => Verdict::OtherDeadline,
                    None => Verdict::Equal,
                };
            }
            read.push(Suspect { left, right, verdict, is_changing: false });
        }
        Ok(read)
    }

    fn explanation<'k>(&'k mut self, key: &'k Bytes) -> Explanation<'k> {
        let tolerance_ms = self.settings.tolerance_ms;
        Explanation { left: &mut self.left.side, right: &mut self.right.side, key, tolerance_ms }
    }

    fn spend(&mut self, keys: usize) {
        self.pace.spend(keys, &self.stop);
    }

    fn show(&mut self, total: u64, tally: &Tally, suspects: &Suspects) {
        let done = tally.left + tally.right;
        let rate = self.pace.keys_per_second();
        let differ = suspects.len() + suspects.left_out;
        self.progress.show(done, Some(total), || {
            let (left, right) = (tally.left, tally.right);
            let keyspace = tally.name();
            format!(
                "keyspace {keyspace}: {left} keys left, {right} right, {rate} keys/s, {differ} differ so far"
            )
        });
    }

    /// Sleeps for the pause; false if somebody wants an end.
    fn sleep(&mut self) -> bool {
        self.progress.clear();
        pause(Instant::now() + self.settings.pause, &self.stop)
    }
}

/// Those of these keys that a side has not, or of which it does not say.
fn missing(side: &mut Side, keys: &[Bytes]) -> anyhow::Result<Vec<Bytes>> {
    let questions: Vec<_> = keys.iter().map(|key| words!["EXISTS", key.clone()]).collect();
    let replies = side.run(&questions)?;
    ensure!(replies.len() == keys.len(), "answers are missing");
    let is_there = |reply: &Reply| matches!(reply, Reply::Integer(1..));
    Ok(keys.iter().zip(&replies).filter(|(_, reply)| !is_there(reply)).map(|(key, _)| key.clone()).collect())
}

/// Words of a server among ours, without what a terminal would obey.
fn printable(words: &str) -> String {
    words.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests;
