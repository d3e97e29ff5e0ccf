//! Reads that wait for what another datacenter has yet to send, and who else waits for that.
//!
//! Nothing polls: when a time rises, those that wait are looked at. A read that has waited as long as its protocol lets
//! it is given up, with the protocol's words.

use super::Partition;
use super::execute::Execution;
use ensue_protocol::Choice;
use ensue_types::{Args, KeyspaceId, LogicalTime, Opaque, Rule, TimeVector, limits};
use ensue_wire::{Address, AtValues, Message};

/// Everything that waits for a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    waiting: Vec<Wait>,
    /// Reads that had to wait, and for how long in all.
    pub(super) waited: u64,
    pub(super) waited_us: u64,
    /// Reads that waited in vain.
    pub(super) given_up: u64,
}

#[derive(Clone, Debug)]
struct Wait {
    since_us: u64,
    what: Waiting,
}

#[derive(Clone, Debug)]
enum Waiting {
    /// The commands of a session, the next of which cannot be executed yet.
    Commands(Box<Execution>),
    /// A share of a read of one cut.
    Slice(Slice),
    /// A session that merges a token.
    Times { from: Address, check: u64, times: TimeVector },
}

/// A share of a read of one cut.
#[derive(Clone, Debug)]
pub(super) struct Slice {
    pub(super) from: Address,
    pub(super) read: u64,
    pub(super) keyspace: KeyspaceId,
    pub(super) cut: TimeVector,
    pub(super) commands: Vec<Args>,
}

impl Wait {
    /// Since when whoever asked has been waiting: for a session's commands that may be longer than for the one that waits.
    fn begun_us(&self) -> u64 {
        match &self.what {
            Waiting::Commands(execution) => execution.since_us,
            Waiting::Slice(_) | Waiting::Times { .. } => self.since_us,
        }
    }
}

impl Waits {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Forgets the sessions that merge a token, by who asked under which number.
    fn forget(&mut self, is_over: impl Fn(Address, u64) -> bool) {
        self.waiting.retain(|wait| match &wait.what {
            Waiting::Times { from, check, .. } => !is_over(*from, *check),
            Waiting::Commands(_) | Waiting::Slice(_) => true,
        });
    }
}

impl Partition {
    /// What the next command of a session may see. The session's mode may change.
    pub(super) fn look(&mut self, keyspace: KeyspaceId, facts: &mut Opaque) -> Choice {
        if !self.protocol(keyspace).needs().cuts {
            return Choice::Newest;
        }
        let now = self.promise();
        let choice = self.protocol(keyspace).choose(facts, &self.standing(now));
        if let Choice::Shown(sight) = &choice {
            // What a stable session depends on every partition has received: it may have learned so from another one. From here
            // on all see it, so that what this session writes here rests on what is shown here.
            self.times.stable.join(&sight.times);
        }
        choice
    }

    /// The commands wait until their session's past is here.
    pub(super) fn wait_with(&mut self, execution: Execution) {
        self.wait(Waiting::Commands(Box::new(execution)));
    }

    fn wait(&mut self, what: Waiting) {
        self.waits.waited += 1;
        self.waits.waiting.push(Wait { since_us: self.now.monotonic_us, what });
    }

    /// A session asks with each number for one thing: what it asks anew, or withdraws by asking for nothing, is not waited for.
    pub(super) fn on_await_times(&mut self, from: Address, check: u64, times: TimeVector) {
        self.waits.forget(|asker, number| (asker, number) == (from, check));
        if self.is_settled_here(&times) {
            let gone = self.nowhere(&times);
            self.send(from, Message::DependenciesMet { check, gone });
        } else {
            let since_us = self.now.monotonic_us;
            self.waits.waiting.push(Wait { since_us, what: Waiting::Times { from, check, times } });
        }
    }

    /// Whether there is nothing to wait for: it is here, or it was lost.
    fn is_settled_here(&self, times: &TimeVector) -> bool {
        self.times.received.covers_but(self.datacenter, times) || self.loss_in(times).is_some()
    }

    /// The sessions of a core have given up what they waited for here.
    pub(super) fn forget_waits_of(&mut self, core: Address) {
        self.waits.forget(|asker, _| asker == core);
        self.replica_waits.retain(|(asker, _), _| *asker != core);
    }

    pub(super) fn on_read_slice(&mut self, slice: Slice) {
        // Nothing may be written here at or below the cut any more.
        self.observe(slice.cut.at(self.datacenter));
        self.read_slice(slice);
    }

    fn read_slice(&mut self, slice: Slice) {
        let now = self.promise();
        let protocol = self.protocol(slice.keyspace);
        if !protocol.serves(&slice.cut, &self.standing(now)) {
            return self.wait(Waiting::Slice(slice));
        }
        let Slice { from, read, keyspace, cut, commands } = slice;
        let gone = !cut.covers(&self.times.floor) && self.config.rules.hold(Rule::ForgottenMeansAgain);
        let lost = self.tell_of_losses(keyspace, &cut, from);
        if gone {
            // Whoever draws a cut below the floor has restarted, and forgotten what was stable.
            let (received, floor) = (self.times.stable.clone(), self.times.floor.clone());
            self.send(from, Message::Stable { received, floor, everywhere: Vec::new() });
        }
        let values = if gone || lost { None } else { self.read_cut_values(keyspace, &cut, &commands) };
        self.send(from, Message::SliceRead { read, values });
    }

    /// The newest versions within a cut.
    fn read_cut_values(
        &mut self,
        keyspace: KeyspaceId,
        cut: &TimeVector,
        commands: &[Args],
    ) -> Option<AtValues> {
        let sight = ensue_protocol::Sight { datacenter: self.datacenter, times: cut.clone(), whole: true };
        let at = self.promise();
        let (replies, observed) = self.read_all(keyspace, commands, at, &Choice::Shown(sight))?;
        self.count_reads(commands.len(), observed.stale);
        Some(AtValues { replies, seen: self.facts_of(keyspace, observed.sources) })
    }

    /// Takes up what need not wait any longer.
    pub(super) fn take_up_waits(&mut self) {
        if !std::mem::take(&mut self.times_rose) {
            return;
        }
        self.answer_replica_waits();
        if self.waits.waiting.is_empty() {
            return;
        }
        for Wait { since_us, what } in std::mem::take(&mut self.waits.waiting) {
            let ready = match &what {
                Waiting::Commands(execution) => {
                    let mut facts = execution.context.facts.clone();
                    self.look(execution.keyspace, &mut facts) != Choice::Wait
                }
                Waiting::Slice(slice) => {
                    let now = self.promise();
                    self.protocol(slice.keyspace).serves(&slice.cut, &self.standing(now))
                }
                Waiting::Times { times, .. } => self.is_settled_here(times),
            };
            if !ready {
                self.waits.waiting.push(Wait { since_us, what });
                continue;
            }
            self.waits.waited_us += self.now.monotonic_us - since_us;
            match what {
                Waiting::Commands(execution) => self.go_on(*execution),
                Waiting::Slice(slice) => self.read_slice(slice),
                Waiting::Times { from, check, times } => {
                    let gone = self.nowhere(&times);
                    self.send(from, Message::DependenciesMet { check, gone });
                }
            }
        }
    }

    /// Gives up what has waited too long.
    pub(super) fn give_up_waits(&mut self) {
        let now_us = self.now.monotonic_us;
        let (late, waiting) = std::mem::take(&mut self.waits.waiting).into_iter().partition(|wait| {
            let patience_us = match &wait.what {
                Waiting::Commands(execution) => 1_000 * self.protocol(execution.keyspace).patience_ms(),
                Waiting::Slice(slice) => 1_000 * self.protocol(slice.keyspace).patience_ms(),
                Waiting::Times { .. } => 1_000 * limits::CAUSAL_TIMEOUT_MS_MAX,
            };
            now_us.saturating_sub(wait.begun_us()) >= patience_us
        });
        self.waits.waiting = waiting;
        let late: Vec<Wait> = late;
        for Wait { since_us, what } in late {
            let mut execution = match what {
                Waiting::Commands(execution) => execution,
                Waiting::Slice(Slice { from, read, cut, .. }) => {
                    let missing = self.missing_times(&cut);
                    self.send(from, Message::SliceLate { read, missing });
                    continue;
                }
                Waiting::Times { .. } => continue,
            };
            self.waits.given_up += 1;
            self.waits.waited_us += now_us - since_us;
            let missing = self.missing(&execution.context.facts, execution.keyspace);
            let reply = self.protocol(execution.keyspace).give_up(&mut execution.context.facts, &missing);
            self.go_on_without(*execution, reply);
        }
    }

    /// When the next of those that wait is given up.
    pub(super) fn next_give_up(&self) -> Option<u64> {
        let due = |wait: &Wait| {
            let keyspace = match &wait.what {
                Waiting::Commands(execution) => execution.keyspace,
                Waiting::Slice(slice) => slice.keyspace,
                Waiting::Times { .. } => return None,
            };
            Some(wait.begun_us() + 1_000 * self.protocol(keyspace).patience_ms())
        };
        self.waits.waiting.iter().filter_map(due).min()
    }

    /// The highest times that anything here waits for.
    pub(super) fn wanted_times(&self) -> TimeVector {
        let mut wanted = TimeVector::default();
        for wait in &self.waits.waiting {
            match &wait.what {
                Waiting::Commands(execution) => {
                    let past = self.protocol(execution.keyspace).past(&execution.context.facts);
                    if let Ok(ensue_protocol::Past::Times(times)) = past {
                        wanted.join(&times);
                    }
                }
                Waiting::Slice(slice) => drop(wanted.join(&slice.cut)),
                Waiting::Times { times, .. } => drop(wanted.join(times)),
            }
        }
        wanted
    }

    /// What of a past is not here, in words.
    pub(super) fn missing(&self, facts: &Opaque, keyspace: KeyspaceId) -> String {
        let past = self.protocol(keyspace).past(facts);
        let Ok(ensue_protocol::Past::Times(times)) = past else { return "updates".to_owned() };
        self.missing_times(&times)
    }

    pub(super) fn missing_times(&self, times: &TimeVector) -> String {
        let mut words = Vec::new();
        for (datacenter, time) in times.entries() {
            let here: LogicalTime = self.times.received.at(datacenter);
            if datacenter != self.datacenter && here < time {
                let behind_ms = time.ms().saturating_sub(here.ms());
                words.push(match here {
                    LogicalTime::ZERO => format!("{datacenter} has not been heard yet at {}", self.id),
                    _ => format!("{datacenter} is {behind_ms} ms behind at {}", self.id),
                });
            }
        }
        words.join(", ")
    }

    /// A session's reads, and whether they were stale: a newer version was here and was not shown.
    pub(super) fn count_reads(&mut self, reads: usize, stale: bool) {
        self.reads.reads += reads as u64;
        self.reads.stale += u64::from(stale);
    }
}

/// How many reads there were.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadCounts {
    pub(super) reads: u64,
    pub(super) stale: u64,
}
