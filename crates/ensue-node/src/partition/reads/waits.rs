//! Reads that wait for what another datacenter has yet to send, and who else waits for that.
//!
//! Nothing polls: when a time rises, those that wait are looked at. A read that has waited as long as its protocol lets
//! it is given up, with the protocol's words.

use super::Reads;
use crate::partition::cx::Cx;
use crate::partition::execution::Executor;
use crate::partition::execution::execute::Execution;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use crate::partition::stable_time::times::Times;
use ensue_protocol::Choice;
use ensue_types::{Args, KeyspaceId, LogicalTime, Opaque, Rule, TimeVector, limits};
use ensue_wire::{Address, AtValues, Message};

/// Everything that waits for a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    waiting: Vec<Wait>,
    /// Reads that had to wait, and for how long in all.
    pub(in crate::partition) waited: u64,
    pub(in crate::partition) waited_us: u64,
    /// Reads that waited in vain.
    pub(in crate::partition) given_up: u64,
}

#[derive(Clone, Debug)]
struct Wait {
    since_us: u64,
    what: Waiting,
}

#[derive(Clone, Debug)]
pub(in crate::partition) enum Waiting {
    /// The commands of a session, the next of which cannot be executed yet.
    Commands(Box<Execution>),
    /// A share of a read of one cut.
    Slice(Slice),
    /// A session that merges a token.
    Times { from: Address, check: u64, times: TimeVector },
}

/// A share of a read of one cut.
#[derive(Clone, Debug)]
pub(in crate::partition) struct Slice {
    pub(in crate::partition) from: Address,
    pub(in crate::partition) read: u64,
    pub(in crate::partition) keyspace: KeyspaceId,
    pub(in crate::partition) cut: TimeVector,
    pub(in crate::partition) commands: Vec<Args>,
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
    pub(crate) fn len(&self) -> usize {
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

impl Times {
    /// What the next command of a session may see. The session's mode may change.
    pub(crate) fn look(&mut self, cx: &mut Cx, keyspace: KeyspaceId, facts: &mut Opaque) -> Choice {
        if !cx.protocol(keyspace).needs().cuts {
            return Choice::Newest;
        }
        let now = cx.promise();
        let choice = cx.protocol(keyspace).choose(facts, &self.stability(cx, now));
        if let Choice::Shown(predicate) = &choice {
            // What a stable session depends on every partition has received: it may have learned so from another one. From here
            // on all see it, so that what this session writes here rests on what is shown here.
            self.stable.join(&predicate.times);
        }
        choice
    }

    /// What of a past is not here, in words.
    pub(crate) fn missing(&self, cx: &Cx, facts: &Opaque, keyspace: KeyspaceId) -> String {
        let past = cx.protocol(keyspace).past(facts);
        let Ok(ensue_protocol::Past::Times(times)) = past else { return "updates".to_owned() };
        self.missing_times(cx, &times)
    }

    pub(in crate::partition) fn missing_times(&self, cx: &Cx, times: &TimeVector) -> String {
        let mut words = Vec::new();
        for (datacenter, time) in times.entries() {
            let here: LogicalTime = self.received.at(datacenter);
            if datacenter != cx.datacenter && here < time {
                let behind_ms = time.ms().saturating_sub(here.ms());
                words.push(match here {
                    LogicalTime::ZERO => format!("{datacenter} has not been heard yet at {}", cx.id),
                    _ => format!("{datacenter} is {behind_ms} ms behind at {}", cx.id),
                });
            }
        }
        words.join(", ")
    }
}

impl Waits {
    /// The commands wait until their session's past is here.
    pub(in crate::partition) fn wait_with(&mut self, cx: &Cx, execution: Execution) {
        self.wait(cx, Waiting::Commands(Box::new(execution)));
    }

    pub(crate) fn wait(&mut self, cx: &Cx, what: Waiting) {
        self.waited += 1;
        self.waiting.push(Wait { since_us: cx.now.monotonic_us, what });
    }

    /// When the next of those that wait is given up.
    pub(in crate::partition) fn next_give_up(&self, cx: &Cx) -> Option<u64> {
        let due = |wait: &Wait| {
            let keyspace = match &wait.what {
                Waiting::Commands(execution) => execution.keyspace,
                Waiting::Slice(slice) => slice.keyspace,
                Waiting::Times { .. } => return None,
            };
            Some(wait.begun_us() + 1_000 * cx.protocol(keyspace).needs().patience_ms)
        };
        self.waiting.iter().filter_map(due).min()
    }

    /// The highest times that anything here waits for.
    pub(in crate::partition) fn wanted_times(&self, cx: &Cx) -> TimeVector {
        let mut wanted = TimeVector::default();
        for wait in &self.waiting {
            match &wait.what {
                Waiting::Commands(execution) => {
                    let past = cx.protocol(execution.keyspace).past(&execution.context.facts);
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
}

impl ReadCounts {
    /// A session's reads, and whether they were stale: a newer version was here and was not shown.
    pub(in crate::partition) fn count_reads(&mut self, reads: usize, stale: bool) {
        self.reads += reads as u64;
        self.stale += u64::from(stale);
    }
}

impl Reads {
    /// A session asks with each number for one thing: what it asks anew, or withdraws by asking for nothing, is not waited for.
    pub(in crate::partition) fn on_await_times(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        from: Address,
        check: u64,
        times: TimeVector,
    ) {
        self.waits.forget(|asker, number| (asker, number) == (from, check));
        if others.is_settled_here(cx, &times) {
            let gone = others.failover.discarded.nowhere(cx, &times);
            cx.send(from, Message::DependenciesMet { check, gone });
        } else {
            let since_us = cx.now.monotonic_us;
            self.waits.waiting.push(Wait { since_us, what: Waiting::Times { from, check, times } });
        }
    }

    /// The sessions of a core have given up what they waited for here.
    pub(in crate::partition) fn forget_waits_of(&mut self, others: &mut Others, core: Address) {
        self.waits.forget(|asker, _| asker == core);
        others.replication.replica_waits.retain(|(asker, _), _| *asker != core);
    }

    pub(in crate::partition) fn on_read_slice(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        keyspaces: &mut Keyspaces,
        slice: Slice,
    ) {
        // Nothing may be written here at or below the cut any more.
        cx.observe(slice.cut.at(cx.datacenter));
        self.read_slice(cx, others, keyspaces, slice);
    }

    fn read_slice(&mut self, cx: &mut Cx, others: &mut Others, keyspaces: &mut Keyspaces, slice: Slice) {
        let now = cx.promise();
        let protocol = cx.protocol(slice.keyspace);
        if !protocol.has_all(&slice.cut, &others.stable_time.times.stability(cx, now)) {
            return self.waits.wait(cx, Waiting::Slice(slice));
        }
        let Slice { from, read, keyspace, cut, commands } = slice;
        let gone = !cut.covers(&others.stable_time.times.floor) && Rule::ForgottenMeansAgain.holds();
        let lost = others.failover.discarded.tell_of_losses(cx, keyspace, &cut, from);
        if gone {
            // Whoever draws a cut below the floor has restarted, and forgotten what was stable.
            let (received, floor) =
                (others.stable_time.times.stable.clone(), others.stable_time.times.floor.clone());
            cx.send(from, Message::Stable { received, floor, everywhere: Vec::new() });
        }
        let values = if gone || lost {
            None
        } else {
            keyspaces.read_cut_values(cx, others, keyspace, &cut, &commands)
        };
        cx.send(from, Message::SliceRead { read, values });
    }
}

impl Others {
    /// Whether there is nothing to wait for: it is here, or it was lost.
    fn is_settled_here(&self, cx: &Cx, times: &TimeVector) -> bool {
        self.stable_time.times.received.covers_but(cx.datacenter, times)
            || self.failover.discarded.loss_in(times).is_some()
    }
}

impl Keyspaces {
    /// The newest versions within a cut.
    fn read_cut_values(
        &mut self,
        cx: &mut Cx,
        others: &Others,
        keyspace: KeyspaceId,
        cut: &TimeVector,
        commands: &[Args],
    ) -> Option<AtValues> {
        let predicate = ensue_protocol::VisibilityPredicate {
            datacenter: cx.datacenter,
            times: cut.clone(),
            whole: true,
        };
        let at = cx.promise();
        let (replies, observed) = self.read_all(cx, keyspace, commands, at, &Choice::Shown(predicate))?;
        self.counts.count_reads(commands.len(), observed.stale);
        Some(AtValues { replies, seen: others.facts_of(cx, keyspace, observed.sources) })
    }
}

/// How many reads there were.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadCounts {
    pub(in crate::partition) reads: u64,
    pub(in crate::partition) stale: u64,
}

impl Executor<'_> {
    /// Takes up what need not wait any longer.
    pub(in crate::partition) fn take_up_waits(&mut self) {
        if !std::mem::take(&mut self.others.stable_time.times_rose) {
            return;
        }
        self.others.answer_replica_waits(self.cx);
        if self.reads.waits.waiting.is_empty() {
            return;
        }
        for Wait { since_us, what } in std::mem::take(&mut self.reads.waits.waiting) {
            let ready = match &what {
                Waiting::Commands(execution) => {
                    let mut facts = execution.context.facts.clone();
                    self.others.stable_time.times.look(self.cx, execution.keyspace, &mut facts)
                        != Choice::Wait
                }
                Waiting::Slice(slice) => {
                    let now = self.cx.promise();
                    self.cx
                        .protocol(slice.keyspace)
                        .has_all(&slice.cut, &self.others.stable_time.times.stability(self.cx, now))
                }
                Waiting::Times { times, .. } => self.others.is_settled_here(self.cx, times),
            };
            if !ready {
                self.reads.waits.waiting.push(Wait { since_us, what });
                continue;
            }
            self.reads.waits.waited_us += self.cx.now.monotonic_us - since_us;
            match what {
                Waiting::Commands(execution) => self.go_on(*execution),
                Waiting::Slice(slice) => self.reads.read_slice(self.cx, self.others, self.keyspaces, slice),
                Waiting::Times { from, check, times } => {
                    let gone = self.others.failover.discarded.nowhere(self.cx, &times);
                    self.cx.send(from, Message::DependenciesMet { check, gone });
                }
            }
        }
    }

    /// Gives up what has waited too long.
    pub(in crate::partition) fn give_up_waits(&mut self) {
        let now_us = self.cx.now.monotonic_us;
        let (late, waiting) = std::mem::take(&mut self.reads.waits.waiting).into_iter().partition(|wait| {
            let patience_us = match &wait.what {
                Waiting::Commands(execution) => {
                    1_000 * self.cx.protocol(execution.keyspace).needs().patience_ms
                }
                Waiting::Slice(slice) => 1_000 * self.cx.protocol(slice.keyspace).needs().patience_ms,
                Waiting::Times { .. } => 1_000 * limits::CAUSAL_TIMEOUT_MS_MAX,
            };
            now_us.saturating_sub(wait.begun_us()) >= patience_us
        });
        self.reads.waits.waiting = waiting;
        let late: Vec<Wait> = late;
        for Wait { since_us, what } in late {
            let mut execution = match what {
                Waiting::Commands(execution) => execution,
                Waiting::Slice(Slice { from, read, cut, .. }) => {
                    let missing = self.others.stable_time.times.missing_times(self.cx, &cut);
                    self.cx.send(from, Message::SliceLate { read, missing });
                    continue;
                }
                Waiting::Times { .. } => continue,
            };
            self.reads.waits.given_up += 1;
            self.reads.waits.waited_us += now_us - since_us;
            let missing =
                self.others.stable_time.times.missing(self.cx, &execution.context.facts, execution.keyspace);
            let reply =
                self.cx.protocol(execution.keyspace).timed_out(&mut execution.context.facts, &missing);
            self.go_on_without(*execution, reply);
        }
    }
}
