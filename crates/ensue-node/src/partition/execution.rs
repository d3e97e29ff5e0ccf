//! Commands of sessions on their way through a partition.

pub(in crate::partition) mod catch_up;
pub(in crate::partition) mod execute;
pub(in crate::partition) mod homes;
pub(in crate::partition) mod pops;
pub(in crate::partition) mod reads;
pub(in crate::partition) mod scripts;
pub(in crate::partition) mod transactions;

use crate::partition::cx::Cx;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use crate::partition::reads::Reads;
use crate::partition::reads::blocked::{AwaitedTimes, SnapshotPart};
use crate::partition::reads::changes::SeenBy;
use crate::partition::transactions::Transactions;
use crate::partition::visibility::Visibility;
use crate::partition::work::Work;
use crate::trace::Trace;
use ensue_protocol::Choice;
use ensue_types::{Causes, LogicalTime, Rule};
use ensue_wire::{Address, Message};

/// Commands of sessions on their way: executed, or waiting for coordinators, times, or their turn in a row.
/// A machine over parts of the partition, for as long as it runs.
pub(crate) struct Executor<'a> {
    pub(in crate::partition) cx: &'a mut Cx,
    pub(in crate::partition) others: &'a mut Others,
    pub(in crate::partition) keyspaces: &'a mut Keyspaces,
    pub(in crate::partition) transactions: &'a mut Transactions,
    pub(in crate::partition) reads: &'a mut Reads,
}

impl Executor<'_> {
    pub(crate) fn visibility(&mut self) -> Visibility<'_> {
        Visibility {
            cx: self.cx,
            others: self.others,
            keyspaces: self.keyspaces,
            transactions: self.transactions,
        }
    }

    /// What goes by vectors of times.
    pub(crate) fn dispatch_times(&mut self, from: Address, time: LogicalTime, message: Message) {
        match (from, message) {
            (_, Message::ReadSnapshot { request, keyspace, context, parts }) => {
                let all = parts.iter().flat_map(|part| &part.commands).map(|(_, args)| args);
                if let Some(reply) = self.cx.home_refusal(keyspace, all) {
                    return self.cx.send(from, Message::Refused { request, reply });
                }
                self.reads.on_read_snapshot(self.cx, self.others, (from, request), keyspace, context, parts);
            }
            (_, Message::ReadSnapshotPart { read, keyspace, snapshot, commands }) => {
                self.reads.on_read_part(
                    self.cx,
                    self.others,
                    self.keyspaces,
                    SnapshotPart { from, read, keyspace, snapshot, commands },
                );
            }
            (Address::Partition { partition, .. }, Message::SnapshotPartRead { read, values }) => {
                self.reads.on_part_read(self.cx, self.others, partition, read, values);
            }
            (_, Message::SnapshotPartLate { read, missing }) => {
                self.reads.on_part_late(self.cx, read, &missing)
            }
            (_, Message::SnapshotPartRefused { read, reply }) => {
                self.reads.snapshot_reads.on_part_refused(self.cx, read, reply)
            }
            (_, Message::AwaitTimes { check, times, readers }) => {
                let wait = AwaitedTimes { from, check, times, readers };
                self.reads.on_await_times(self.cx, self.others, wait)
            }
            (
                Address::Partition { partition, .. },
                Message::StabilizationReport { received, floor, globally_stable },
            ) => {
                self.others.stable_time.on_stabilization_report(partition, received, floor, &globally_stable);
            }
            (_, Message::Stable { received, floor, globally_stable }) => {
                self.keyspaces.on_stable(self.cx, self.others, from, &received, &floor, &globally_stable);
            }
            (
                Address::Partition { partition, .. },
                Message::Ended { datacenter, whole, failed, doubtful },
            ) => {
                let discarded = &mut self.others.failover.discarded;
                discarded.on_ended(self.cx, partition, datacenter, whole, failed, doubtful);
            }
            (_, Message::Lost { datacenter, whole, failed, doubtful }) => {
                self.keyspaces.on_lost(self.cx, self.others, datacenter, whole, failed, doubtful)
            }
            (_, Message::ClockAhead { ahead_ms }) => {
                self.others.ahead.on_clock_ahead(self.cx, from.datacenter(), ahead_ms)
            }
            (Address::Core { core, .. }, Message::ReportChanges { wanted }) => {
                let times = &self.others.stable_time.times;
                self.reads.changes.on_wanted(self.cx, self.keyspaces, times, core, wanted);
            }
            // Said to one that has taken its copy meanwhile.
            (_, Message::FillAnswer { .. }) => {}
            (_, Message::AskTime) => self.others.send_heartbeat(self.cx, from.datacenter()),
            (_, Message::Heartbeat { end }) => self.others.on_heartbeat(from.datacenter(), end, time),
            // Answers to sessions never come to a partition; a peer that sends one is wrong.
            _ => self.cx.trace(Trace::Refused { what: "a message that no partition takes" }),
        }
    }

    /// Executes what has become ready, until nothing is, and offers what there is to pop.
    pub(crate) fn settle(&mut self) {
        while let Some((at, work)) = self.next_ready() {
            match work {
                Work::Commands(execution) => self.resume_execution(*execution, at),
                Work::LocalPart(transaction) => {
                    self.transactions.execute_local_part(self.cx, self.others, self.keyspaces, transaction)
                }
                Work::ReplicatedPart(origin, position) => self.visibility().apply_entry(origin, position, at),
                Work::Entry(origin, position) => self.visibility().apply_entry(origin, position, at),
            }
        }
        self.serve_pops();
        self.notify_changes();
    }

    /// Nothing is ready while a script has paused.
    fn next_ready(&mut self) -> Option<(LogicalTime, Work)> {
        if self.keyspaces.is_in_script() {
            return None;
        }
        self.keyspaces.order.pop_ready()
    }

    /// Tells those who want to know what has been written.
    pub(crate) fn notify_changes(&mut self) {
        if !self.reads.changes.is_wanted() || self.keyspaces.is_in_script() {
            return;
        }
        for (keyspace, written) in self.keyspaces.take_all_written() {
            let times = &self.others.stable_time.times;
            let now = self.cx.promise();
            let stability = times.stability(self.cx, now);
            let is_merged = !self.keyspaces.keyspace(keyspace).keeps_versions();
            let is_shown =
                times.shown_to_all(self.cx) >= written.time || !Rule::ChangesAreToldWhenSeen.holds();
            let is_ours = written.datacenter == self.cx.datacenter
                && !self.cx.protocol(keyspace).needs().hides_own_writes;
            let seen = match is_ours || is_merged || is_shown {
                true => SeenBy::All,
                false => match self.cx.protocol(keyspace).choose(&mut Causes::default(), &stability) {
                    Choice::Newest | Choice::NewestIfWhole(_) => SeenBy::Some,
                    Choice::Shown(_) | Choice::Wait => SeenBy::Nobody,
                },
            };
            self.reads.changes.on_written(self.cx, keyspace, written, seen);
        }
        self.reads.changes.on_stable(self.cx, &self.others.stable_time.times);
    }
}
