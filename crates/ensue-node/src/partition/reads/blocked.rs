//! Reads that wait for what another datacenter has yet to send, and who else waits for that.
//!
//! Nothing polls: when a time rises, those that wait are looked at. A read that has waited as long as its protocol lets
//! it is given up, with the protocol's words.

use super::Reads;
use crate::partition::cx::Cx;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use crate::partition::work::Execution;
use ensue_protocol::Choice;
use ensue_resp::request::Blocking;
use ensue_types::{Args, Causes, KeyspaceId, Rule, TimeVector};
use ensue_wire::{Address, Message};

/// Everything that waits for a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockedReads {
    waiting: Vec<Wait>,
    /// Reads that had to wait, and for how long in all.
    waited: u64,
    waited_us: u64,
    /// Reads that waited in vain.
    abandoned: u64,
}

#[derive(Clone, Debug)]
pub(in crate::partition) struct Wait {
    pub since_us: u64,
    pub what: Waiting,
}

#[derive(Clone, Debug)]
pub(in crate::partition) enum Waiting {
    /// The commands of a session, the next of which cannot be executed yet.
    Commands(Box<Execution>),
    /// A share of a read of one cut.
    SnapshotPart(SnapshotPart),
    /// A session that merges a token, or a core that delivers a message.
    Times(AwaitedTimes),
}

/// Who waits for times.
#[derive(Clone, Debug)]
pub(in crate::partition) struct AwaitedTimes {
    pub from: Address,
    pub check: u64,
    pub times: TimeVector,
    /// New sessions of this keyspace shall read that.
    pub readers: Option<KeyspaceId>,
}

impl AwaitedTimes {
    /// Whether it is so, for readers if they are asked for.
    pub(in crate::partition) fn is_over(&self, cx: &mut Cx, others: &mut Others) -> bool {
        if !others.is_settled_here(cx, &self.times) {
            return false;
        }
        let Some(keyspace) = self.readers else { return true };
        let times = &mut others.stable_time.times;
        let is_shown = match times.select_version(cx, keyspace, &mut Causes::default()) {
            Choice::Newest => true,
            Choice::Shown(predicate) | Choice::NewestIfWhole(predicate) => {
                predicate.times.covers_but(cx.datacenter, &self.times)
            }
            Choice::Wait => false,
        };
        if is_shown {
            // Readers rely on it after a restart, too, and have no past that says so.
            times.close_times(cx);
        }
        is_shown
    }
}

/// A share of a read of one cut.
#[derive(Clone, Debug)]
pub(in crate::partition) struct SnapshotPart {
    pub from: Address,
    pub read: u64,
    pub keyspace: KeyspaceId,
    pub snapshot: TimeVector,
    pub commands: Vec<Args>,
}

impl Wait {
    /// Since when whoever asked has been waiting: for a session's commands that may be longer than for the one that
    /// waits.
    pub(in crate::partition) fn begun_us(&self) -> u64 {
        match &self.what {
            Waiting::Commands(execution) => execution.since_us,
            Waiting::SnapshotPart(_) | Waiting::Times(_) => self.since_us,
        }
    }
}

impl BlockedReads {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Forgets the sessions that merge a token, by who asked under which number.
    fn forget(&mut self, is_over: impl Fn(Address, u64) -> bool) {
        self.waiting.retain(|wait| match &wait.what {
            Waiting::Times(wait) => !is_over(wait.from, wait.check),
            Waiting::Commands(_) | Waiting::SnapshotPart(_) => true,
        });
    }

    /// Forgets pops that may wait: a core whose sessions have given them up would never take what they are answered.
    fn forget_pops_of(&mut self, core: Address) {
        self.waiting.retain(|wait| match &wait.what {
            Waiting::Commands(execution) if execution.from == core => {
                execution.commands.front().is_none_or(|args| Blocking::parse(args).is_none())
            }
            _ => true,
        });
    }

    /// The commands wait until their session's past is here.
    pub(in crate::partition) fn block(&mut self, cx: &Cx, execution: Execution) {
        self.wait(cx, Waiting::Commands(Box::new(execution)));
    }

    /// Everything that waits, to be looked at again: what still does is put back.
    pub(in crate::partition) fn take_all(&mut self) -> Vec<Wait> {
        std::mem::take(&mut self.waiting)
    }

    /// What has waited too long.
    pub(in crate::partition) fn take_late(&mut self, is_late: impl Fn(&Wait) -> bool) -> Vec<Wait> {
        let (late, waiting) = self.take_all().into_iter().partition(is_late);
        self.waiting = waiting;
        late
    }

    pub(in crate::partition) fn put_back(&mut self, wait: Wait) {
        self.waiting.push(wait);
    }

    /// Something waits no longer that has waited since then.
    pub(in crate::partition) fn count_end(&mut self, cx: &Cx, since_us: u64) {
        self.waited_us += cx.now.monotonic_us - since_us;
    }

    /// It waited in vain.
    pub(in crate::partition) fn count_given_up(&mut self) {
        self.abandoned += 1;
    }

    /// Reads that had to wait since the start, for how many microseconds in all, and how many in vain.
    pub(in crate::partition) fn counts(&self) -> (u64, u64, u64) {
        (self.waited, self.waited_us, self.abandoned)
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
                Waiting::SnapshotPart(part) => part.keyspace,
                Waiting::Times(_) => return None,
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
                    let past = cx.protocol(execution.keyspace).past(&execution.context.causes);
                    if let Ok(ensue_protocol::Past::Times(times)) = past {
                        wanted.join(&times);
                    }
                }
                Waiting::SnapshotPart(part) => drop(wanted.join(&part.snapshot)),
                Waiting::Times(wait) => drop(wanted.join(&wait.times)),
            }
        }
        wanted
    }
}

impl Reads {
    /// A session asks with each number for one thing: what it asks anew, or withdraws by asking for nothing, is not
    /// waited for.
    pub(in crate::partition) fn on_await_times(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        wait: AwaitedTimes,
    ) {
        self.blocked.forget(|asker, number| (asker, number) == (wait.from, wait.check));
        if wait.is_over(cx, others) {
            let unrecoverable = others.failover.discarded.nowhere(cx, &wait.times);
            cx.send(wait.from, Message::DependenciesMet { check: wait.check, unrecoverable });
        } else {
            let since_us = cx.now.monotonic_us;
            self.blocked.waiting.push(Wait { since_us, what: Waiting::Times(wait) });
        }
    }

    /// The sessions of a core have given up what they waited for here.
    pub(in crate::partition) fn drop_blocked_of(&mut self, others: &mut Others, core: Address) {
        self.blocked.forget(|asker, _| asker == core);
        self.blocked.forget_pops_of(core);
        others.replication.forget_replica_waits_of(core);
    }

    pub(in crate::partition) fn on_read_part(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        keyspaces: &mut Keyspaces,
        part: SnapshotPart,
    ) {
        // Nothing may be written here at or below the cut any more.
        cx.advance_clock(part.snapshot.at(cx.datacenter));
        self.read_part(cx, others, keyspaces, part);
    }

    pub(in crate::partition) fn read_part(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        keyspaces: &mut Keyspaces,
        part: SnapshotPart,
    ) {
        let now = cx.promise();
        let protocol = cx.protocol(part.keyspace);
        if !protocol.has_all(&part.snapshot, &others.stable_time.times.stability(cx, now)) {
            return match protocol.needs().patience_ms {
                0 => {
                    let missing = others.stable_time.times.missing_times(cx, &part.snapshot);
                    cx.send(part.from, Message::SnapshotPartLate { read: part.read, missing });
                }
                _ => self.blocked.wait(cx, Waiting::SnapshotPart(part)),
            };
        }
        let SnapshotPart { from, read, keyspace, snapshot, commands } = part;
        let is_pruned =
            !snapshot.covers(others.stable_time.times.floor()) && Rule::ForgottenMeansAgain.holds();
        let lost = others.failover.discarded.report_unknown_loss(cx, keyspace, &snapshot, from);
        if is_pruned {
            // Whoever draws a cut below the floor has restarted, and forgotten what was stable.
            let times = &others.stable_time.times;
            let (received, floor) = (times.stable().clone(), times.floor().clone());
            cx.send(from, Message::Stable { received, floor, globally_stable: Vec::new() });
        }
        let values = if is_pruned || lost {
            None
        } else {
            keyspaces.read_snapshot_values(cx, others, keyspace, &snapshot, &commands)
        };
        cx.send(from, Message::SnapshotPartRead { read, values });
    }
}
