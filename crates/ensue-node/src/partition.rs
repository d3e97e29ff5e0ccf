//! The owner of one partition: it stamps, logs, applies and answers, and nobody else touches its rows.
//!
//! Arrives: messages from sessions, from the other partitions of this datacenter, and from the same partition of the
//! others; disk answers; the time. Promises: outputs leave in order, after the log records that they rest on.
//!
//! `Partition` conducts: here, and nowhere else, stands which part takes an input and what follows from what it did, in
//! this order: messages, links, disk answers, the end of a turn, timers, the stop; and the stages from a start to
//! serving. Each module below is a part that owns its state, or a machine that borrows several parts for a step:
//! `peering` (what is said to and by the same partitions elsewhere), `visibility` (what becomes visible, and when),
//! `execution` (commands of sessions). Which may name which is a table, checked by `cargo xtask tidy`.

mod branching;
mod cx;
mod execution;
mod failover;
mod journal;
mod json;
mod keyspaces;
mod maintenance;
mod order;
mod others;
mod peering;
mod peers;
mod persistence;
mod reads;
mod recovery;
mod replication;
mod stable_time;
mod stage;
mod transactions;
mod visibility;
mod work;

use crate::config::{AppendFsync, NodeConfig, Settings};
use crate::trace::Trace;
pub use cx::Protocols;
use cx::{Cx, words::ENDED};
use ensue_store::disk::{DiskDone, FileName, failure_words};
use ensue_store::recovery::Finish;
use ensue_types::{DatacenterId, LogicalTime, Now, PartitionId, Rule};
use ensue_wire::{Address, CoreName, Envelope, Message};
use execution::{Executor, execute::Batch};
pub use failover::discarded::describe_write;
pub(crate) use failover::failed::state_hash;
use journal::open::Open;
use keyspaces::{Keyspaces, snapshot::FirstRead, snapshot::SecondRead};
use maintenance::{Maintenance, invariants::Parts, metrics::Metrics};
use others::{Others, retired::Told};
use peering::Peering;
use peers::{Halt, Peers, buffered::waits_for_the_log};
use persistence::Persistence;
use reads::Reads;
use recovery::closing::{Close, Closing, SHUTTING_DOWN};
use recovery::copying::CopyStep;
use recovery::joining::{Join, Joining};
use recovery::recover::{LogRead, Reading};
use recovery::tail_recovery::{TailRecovery, TailStep};
use replication::replicas::Wanted;
pub use stage::Stage;
use std::sync::Arc;
use transactions::{Transactions, coordinator::CommitCheck};
use visibility::Visibility;

/// One partition: it takes an input, lets its parts work in their order, and knows that order alone.
#[derive(Clone, Debug)]
pub struct Partition {
    pub(crate) cx: Cx,
    stage: Stage,
    durability: Persistence,
    pub(crate) keyspaces: Keyspaces,
    reads: Reads,
    transactions: Transactions,
    others: Others,
    maintenance: Maintenance,
    peers: Peers,
}

impl Partition {
    pub(crate) fn executor(&mut self) -> Executor<'_> {
        let Partition { cx, others, keyspaces, transactions, reads, .. } = self;
        Executor { cx, others, keyspaces, transactions, reads }
    }

    fn visibility(&mut self) -> Visibility<'_> {
        let Partition { cx, others, keyspaces, transactions, .. } = self;
        Visibility { cx, others, keyspaces, transactions }
    }

    fn peering(&mut self) -> Peering<'_> {
        let Partition { cx, others, keyspaces, transactions, durability, peers, .. } = self;
        Peering { cx, others, keyspaces, transactions, durability, peers }
    }

    pub(crate) fn metrics(&mut self) -> Vec<(String, i64)> {
        let (is_serving, written) = (matches!(self.stage, Stage::Serving), self.durability.counts());
        let Partition { cx, others, keyspaces, reads, transactions, maintenance, peers, .. } = self;
        Metrics { cx, others, keyspaces, reads, transactions, maintenance, peers, written }.all(is_serving)
    }

    /// What the partition does, and what that is lent.
    fn staged(&mut self) -> (&mut Stage, Peering<'_>) {
        let Partition { cx, stage, durability, keyspaces, transactions, others, peers, .. } = self;
        (stage, Peering { cx, others, keyspaces, transactions, durability, peers })
    }

    /// A partition that has not read its log; its first disk operations do.
    pub fn new(id: PartitionId, config: Arc<NodeConfig>, protocols: Protocols, now: Now) -> Partition {
        Partition {
            stage: Stage::Reading(None),
            durability: Persistence::new(),
            keyspaces: Keyspaces::new(id, &config, &protocols),
            reads: Reads::default(),
            transactions: Transactions::default(),
            others: Others::new(id, &config, &protocols),
            maintenance: Maintenance::default(),
            peers: Peers::default(),
            cx: Cx::new(id, config, protocols, now),
        }
    }

    /// What may change while it serves is this from now on.
    pub(crate) fn adopt(&mut self, settings: &Settings<'_>) {
        self.cx.adopt(settings);
        self.keyspaces.adopt(settings);
        self.maintenance.adopt(settings);
    }

    pub(crate) fn count_refused(&mut self, by: DatacenterId) {
        self.peers.count_refused(&self.cx, by);
    }

    /// The partition does something else from here on.
    fn enter(&mut self, stage: Stage) {
        self.cx.enter(stage.as_reported(), matches!(stage, Stage::Serving));
        self.stage = stage;
    }

    /// Takes one message.
    pub fn on_message(&mut self, now: Now, envelope: Envelope) {
        self.cx.now = now;
        let ends = self.stage.is_notified_of_end(self.cx.datacenter, &envelope.message, ENDED);
        if ends && Rule::TheDeadStop.holds() {
            return self.stop_as_ended(envelope.from.datacenter(), &envelope.message);
        }
        match &self.stage {
            Stage::Reading(_) => return self.peers.on_message_reading(&mut self.cx, envelope),
            Stage::Stopped(reason) => {
                let reason = reason.clone();
                return self.cx.refuse(&envelope, &reason);
            }
            Stage::Closing(_) => return self.cx.refuse(&envelope, SHUTTING_DOWN),
            Stage::Joining(_) => {
                let (Stage::Joining(joining), mut p) = self.staged() else { return };
                if joining.on_message(&mut p, envelope) {
                    self.join_when_all_have_answered();
                }
                return;
            }
            Stage::RecoveringTail(_) => {
                let (Stage::RecoveringTail(tail_recovery), mut p) = self.staged() else { return };
                return tail_recovery.on_message(&mut p, envelope);
            }
            Stage::Serving if self.others.is_catching_up() => return self.on_message_catching_up(envelope),
            Stage::Serving if self.others.refuses_as_retired(&mut self.cx, &envelope) => return,
            Stage::Serving => {}
        }
        self.take(envelope);
    }

    /// Takes one message as a partition that has its log.
    fn take(&mut self, mut envelope: Envelope) {
        if self.keyspaces.is_in_script() {
            return self.peers.buffered.put_back(envelope);
        }
        if self.others.is_from_the_dead(&mut self.cx, &envelope) {
            return;
        }
        let from = envelope.from.datacenter();
        if from != self.cx.datacenter && !self.peers.identity.admits(from, &envelope.message) {
            return;
        }
        if !self.others.take_time(&mut self.cx, &envelope) {
            match envelope.message {
                Message::StreamEntries { .. } => {
                    return self.others.replication.pause(envelope.from.datacenter());
                }
                Message::Heartbeat { .. } => return,
                _ => {}
            }
            // What is said in its name tells nothing of the sender's time, which may be taken back (decision 18).
            envelope.time = LogicalTime::ZERO;
        }
        self.dispatch(envelope);
        self.halt_if_found();
        self.executor().settle();
        self.executor().resume_blocked();
        self.peering().readmit();
    }

    fn dispatch(&mut self, envelope: Envelope) {
        let from = envelope.from;
        match envelope.message {
            Message::Execute { request, keyspace, context, commands, together } => {
                self.executor().on_execute(from, request, keyspace, context, Batch { commands, together });
            }
            Message::ReadFirst { request, keyspace, commands } => {
                self.executor().on_read_first(FirstRead { from, request, keyspace, commands });
            }
            Message::ReadAt { request, keyspace, commands, at, with } => {
                self.executor().on_read_at(SecondRead { from, request, keyspace, commands, with }, at);
            }
            Message::Transact { request, keyspace, context, parts } => {
                self.executor().on_transact(from, request, keyspace, context, parts);
            }
            Message::AwaitReplicas { request, dependencies, times, datacenters, here } => {
                let wanted = Wanted { dependencies, times };
                self.others.on_await_replicas(&mut self.cx, from, request, wanted, (datacenters, here));
            }
            Message::CountReplicas { request, dependencies, times } => {
                self.others.on_count_replicas(&mut self.cx, from, request, &Wanted { dependencies, times });
            }
            Message::ContextFetch { request, context } => {
                self.keyspaces.contexts.on_context_fetch(&mut self.cx, from, request, context)
            }
            Message::ContextMerge { request, name, context } => {
                self.keyspaces.on_context_merge(&mut self.cx, &self.others, from, request, name, context);
            }
            Message::MetricsQuery { request } => {
                let metrics = self.metrics();
                self.cx.send(from, Message::MetricsAnswer { request, metrics });
            }
            Message::CheckDependencies { check, origin, dependencies } => {
                let asked = (check, origin, dependencies);
                self.others.replication.on_check_dependencies(&mut self.cx, from, asked);
            }
            Message::DependenciesMet { check, unrecoverable } => {
                self.visibility().on_dependencies_met(check, &unrecoverable)
            }
            message => self.dispatch_transactions(from, envelope.time, message),
        }
    }

    /// What the partitions of a datacenter say to each other of transactions.
    fn dispatch_transactions(&mut self, from: Address, time: LogicalTime, message: Message) {
        match message {
            Message::Prepare { transaction, keyspace, part } => {
                self.visibility().on_prepare(transaction, keyspace, part);
            }
            Message::Vote { transaction } => self.visibility().on_vote(from, time, transaction),
            Message::Commit { transaction, decision } => self.executor().on_commit(transaction, decision),
            Message::Committed { transaction, replies, seen } => {
                self.transactions.on_committed(&mut self.cx, from, transaction, replies, seen);
            }
            Message::Notify { transaction } => {
                self.transactions.on_notify(&mut self.cx, &self.others, from, transaction)
            }
            Message::CommitCheck { check, transaction, at, waits } => {
                let asked = CommitCheck { check, transaction, at, waits };
                self.transactions.on_commit_check(&mut self.cx, from, asked);
            }
            Message::CommitUnannounced { check, transaction, at } => {
                self.executor().on_commit_unannounced(check, transaction, at);
            }
            Message::CommitChecked { check, transaction, decision } => {
                self.executor().on_commit_checked(check, transaction, decision);
            }
            Message::PartsSynced { operations } => {
                self.transactions.on_parts_synced(&mut self.cx, from, operations)
            }
            Message::PartsForgotten { operations } => {
                self.transactions.on_parts_forgotten(&mut self.cx, &mut self.others, &operations)
            }
            Message::Abandon { transaction } => self.executor().on_abandon(transaction),
            Message::PartUnrecoverable { transaction } => {
                self.visibility().on_part_unrecoverable(from, transaction)
            }
            Message::AwaitPart { transaction } => self.visibility().on_await_part(transaction),
            Message::FindPart { transaction, time } => self.visibility().on_find_part(transaction, time),
            Message::PartHeld { transaction } => self.visibility().on_part_held(from, transaction),
            Message::TransactionOver { transaction } => self.executor().on_transaction_over(transaction),
            Message::FillQuery => self.others.answer_fill(&mut self.cx, from),
            Message::Discard { transaction } => self.executor().on_discard(transaction),
            Message::ForgetVote { transaction } => self.executor().on_forget_vote(transaction, time),
            Message::Repeat { number } => self.peering().on_repeat(from, number),
            Message::Repeated { number } => self.others.on_repeated(&self.cx, from, number),
            message => self.dispatch_stream(from, time, message),
        }
    }

    /// What the same partitions of two datacenters say to each other.
    fn dispatch_stream(&mut self, from: Address, time: LogicalTime, message: Message) {
        match message {
            // An answer that comes twice, after a reconnect, or when the copy was given up.
            Message::TailFetched { .. } | Message::Copied { .. } | Message::CopyRefused { .. } => {}
            Message::BranchFetch { keyspace, state, live } => {
                self.keyspaces.on_branch_fetch(&mut self.cx, &self.others, from, keyspace, state, &live);
            }
            Message::BranchLacking { keyspace, state, failed } => {
                self.keyspaces.on_branch_lacking(&self.others, from.datacenter(), keyspace, state, &failed);
            }
            message => {
                let Some(message) = self.visibility().dispatch_failed(from, time, message) else { return };
                if let Some(message) = self.peering().dispatch(from.datacenter(), time, message) {
                    self.executor().dispatch_times(from, time, message);
                }
            }
        }
    }

    /// Ends the partition if what peers said in this step shows that it cannot go on.
    pub(in crate::partition) fn halt_if_found(&mut self) {
        if let Some(halt) = self.peers.take_halt() {
            self.halt(halt);
        }
    }

    fn halt(&mut self, halt: Halt) {
        let marked = self.durability.mark_halted(&self.cx, &halt);
        let (Halt::Stopped(reason) | Halt::Short(reason) | Halt::Forked(reason) | Halt::Dead(reason)) = halt;
        self.stop(reason);
        self.cx.disk_ops.extend(marked);
    }

    /// The others go on without this datacenter, and take nothing of it. The disk of one that has stopped may be why.
    fn stop_as_ended(&mut self, by: DatacenterId, message: &Message) {
        // Who names a place that is none is broken, and says nothing about us.
        let Some(survivor) = self.cx.config.topology.datacenters.get(usize::from(by.0)) else {
            return self.cx.trace(Trace::Refused { what: "a word of death from no datacenter" });
        };
        let serves = matches!(self.stage, Stage::Serving) && !self.others.is_catching_up();
        let reason = match self.others.notified_of_end(by, message, serves) {
            Told::RetiredBySome => return,
            Told::Retired => return self.halt(Halt::Stopped(self.cx.word_of_retirement())),
            Told::Dead => self.cx.word_of_death(&survivor.name),
        };
        match &mut self.stage {
            Stage::Stopped(before) => {
                before.clone_from(&reason);
                self.cx.trace(Trace::PartitionStopped { partition: self.cx.id, reason });
            }
            _ => self.halt(Halt::Dead(reason)),
        }
        self.cx.report_own_failure();
    }

    /// The link to another core is up: everything asked over an earlier one is asked again.
    pub fn on_link_up(&mut self, now: Now, datacenter: DatacenterId, owns: &dyn Fn(PartitionId) -> bool) {
        self.cx.now = now;
        if datacenter != self.cx.datacenter && owns(self.cx.id) {
            self.others.failover.failed.link_up(datacenter);
            if let (Stage::Joining(joining), mut p) = self.staged() {
                return joining.on_link_up(&mut p, datacenter);
            }
            if matches!(self.stage, Stage::RecoveringTail(_)) {
                self.peering().introduce(datacenter, true);
                return self.cx.request_tail(datacenter);
            }
        }
        if !matches!(self.stage, Stage::Serving) {
            return;
        }
        if datacenter == self.cx.datacenter {
            self.reads.snapshot_reads.request_parts_again(&mut self.cx, owns);
            self.others.request_repeats_again(&mut self.cx, owns);
            self.others.failover.failed.report_ended_again(&mut self.cx);
            if Rule::AskAgain.holds() {
                self.others.replication.inbound.repeat_dependency_checks(&mut self.cx, owns);
                self.transactions.repeat_transaction_requests(&mut self.cx, &self.others, owns);
                self.reads.snapshots.repeat_commit_checks(&mut self.cx, owns);
            }
        } else if owns(self.cx.id) {
            self.peering().greet(datacenter);
            self.keyspaces.branching.request_again();
        }
    }

    /// The link to another core is down: its sessions have given up what they asked over it, and its partitions will
    /// ask again.
    pub fn on_link_down(&mut self, now: Now, to: CoreName, owns: &dyn Fn(PartitionId) -> bool) {
        let CoreName { datacenter, core } = to;
        self.on_owner_lost(now, datacenter, owns);
        if datacenter == self.cx.datacenter {
            let sessions = Address::Core { datacenter, core };
            self.others.replication.forget_asks(&|from| from == sessions);
            self.reads.drop_blocked_of(&mut self.others, sessions);
            self.executor().drop_pops_of(sessions);
            self.peers.buffered.retain(|buffered| buffered.from != sessions);
        }
    }

    /// Other partitions are not where they were: what they asked is forgotten, and what they were asked is asked again.
    pub fn on_owner_lost(&mut self, now: Now, datacenter: DatacenterId, lost: &dyn Fn(PartitionId) -> bool) {
        self.cx.now = now;
        if datacenter != self.cx.datacenter && lost(self.cx.id) {
            let is_serving = matches!(self.stage, Stage::Serving);
            self.others.on_link_down(&mut self.cx, datacenter, is_serving);
            self.peers.identity.on_link_down(datacenter);
        }
        if datacenter == self.cx.datacenter {
            self.others.replication.forget_asks(&|from| match from {
                Address::Partition { partition, .. } => lost(partition),
                Address::Core { .. } => false,
            });
            self.reads.snapshot_reads.fail_snapshot_reads(&mut self.cx, lost);
        }
    }

    /// The disk answered.
    pub fn on_disk(&mut self, now: ensue_types::Now, done: DiskDone) {
        self.cx.now = now;
        match self.stage {
            Stage::Reading(_) => return self.on_disk_reading(done),
            Stage::Closing(_) => return self.on_disk_closing(done),
            Stage::Stopped(_) => return,
            Stage::Joining(_) => return self.on_disk_joining(&done),
            Stage::RecoveringTail(_) => return self.on_disk_recovering_tail(done),
            Stage::Serving => {}
        }
        match done {
            DiskDone::Failed { file: Some(file), full: true, .. } => {
                self.durability.on_no_room(&mut self.cx, file)
            }
            DiskDone::Failed { op: "sync", file: Some(file @ FileName::Segment(_)), .. }
                if !Rule::StopAfterAFailedSync.holds() =>
            {
                self.on_log_synced(file);
            }
            DiskDone::Failed { op, file, reason, .. } => {
                return self.stop(failure_words(op, file, &reason));
            }
            DiskDone::Appended { file: file @ FileName::Segment(_) } => {
                self.durability.on_log_written(&mut self.cx, &mut self.others, &self.transactions, file)
            }
            DiskDone::Appended { file: FileName::Reserve } => self.durability.on_reserve_made(&mut self.cx),
            DiskDone::Deleted { file: FileName::Reserve } => self.cx.on_reserve_gone(),
            DiskDone::Synced { file: file @ FileName::Segment(_) } => self.on_log_synced(file),
            DiskDone::Read { .. } => {
                self.peering().on_old_entries(done);
                return self.halt_if_found();
            }
            DiskDone::Rewritten { .. } | DiskDone::Replaced { .. } if self.durability.awaits_opening() => {
                self.durability.on_opened(&mut self.cx, &mut self.others);
            }
            _ => self.durability.on_checkpoint_disk(&mut self.cx, &mut self.keyspaces, &done),
        }
        self.executor().settle();
        self.finish_catching_up();
        self.durability.mark_caught_up(&mut self.cx);
        self.peering().readmit();
    }

    fn on_log_synced(&mut self, file: FileName) {
        let synced = self.cx.journal.open().on_synced(file);
        self.durability.testify(&mut self.cx);
        self.durability.take_snapshot(&mut self.others, synced);
        self.executor().on_decisions_synced(synced.0);
        self.visibility().report_failed();
        self.others.answer_replica_waits(&mut self.cx);
        self.cx.release();
        if self.cx.config.append_fsync == AppendFsync::Always
            || self.durability.awaits_sync()
            || self.transactions.has_unsynced_decisions()
            || self.others.failover.failed.has_unreported()
        {
            self.durability.begin_sync(&mut self.cx, &mut self.others);
        }
    }

    /// Ends a turn: streams and acknowledgements are said, everything logged goes to disk as one append.
    pub fn on_turn_end(&mut self) {
        if self.cx.journal.opened().is_none() || !matches!(self.stage, Stage::Serving) {
            return;
        }
        self.cx.bound_clock();
        self.visibility().replicate();
        self.keyspaces.fold_more_versions(&self.cx, &self.others);
        self.keyspaces.free_ended();
        self.keyspaces.send_acknowledgements(&mut self.cx, &mut self.others);
        self.reads.report_times(&mut self.cx, &mut self.others, &mut self.keyspaces);
        self.executor().serve_pops();
        if self.keyspaces.shrink(&mut self.cx, &mut self.others) {
            self.executor().notify_changes();
        }
        self.durability.write_aside(&mut self.cx, &mut self.others, &mut self.keyspaces);
        self.others.stable_time.times.log_times(&mut self.cx);
        let appended = self.durability.write_log(&mut self.cx);
        if self.cx.config.append_fsync == AppendFsync::Always
            || (appended && self.durability.needs_sync_now(&self.cx, &self.others, &self.transactions))
        {
            self.durability.begin_sync(&mut self.cx, &mut self.others);
        }
        self.others.replication.read_old_entries(&mut self.cx);
        if cfg!(debug_assertions) {
            self.durability.check_invariants(&self.cx);
            let Partition { cx, others, keyspaces, transactions, reads, peers, maintenance, .. } = self;
            maintenance.on_turn_end(&Parts { cx, others, keyspaces, transactions, reads, peers });
        }
    }

    /// Panics if a part contradicts itself. It walks every row.
    pub fn check_invariants(&self) {
        self.durability.check_invariants(&self.cx);
        let Partition { cx, others, keyspaces, transactions, reads, peers, maintenance, .. } = self;
        maintenance.check_invariants(&Parts { cx, others, keyspaces, transactions, reads, peers });
        keyspaces.check_invariants();
    }

    /// When time alone will have something to do.
    pub fn next_timer(&self) -> Option<u64> {
        if matches!(self.stage, Stage::Joining(_)) {
            return Some(self.peers.identity.next_request_us());
        }
        if !matches!(self.stage, Stage::Serving | Stage::RecoveringTail(_)) {
            return None;
        }
        let waits = self.reads.blocked.next_give_up(&self.cx);
        let waits = waits.into_iter().chain(self.keyspaces.next_freeing_us(&self.cx));
        let first = waits.fold(self.durability.next_timer_us(), u64::min);
        if matches!(self.stage, Stage::RecoveringTail(_)) {
            return Some(first.min(self.peers.identity.next_request_us())); // Others are told nothing yet.
        }
        let acknowledge = self.others.replication.acknowledgements.next_due();
        Some(acknowledge.into_iter().chain(self.others.stable_time.times.next_due()).fold(first, u64::min))
    }

    /// What time alone brings.
    pub fn on_timer(&mut self, now: ensue_types::Now) {
        self.cx.now = now;
        if let (Stage::Joining(joining), mut p) = self.staged() {
            return joining.on_timer(&mut p);
        }
        if let (Stage::RecoveringTail(tail_recovery), mut p) = self.staged() {
            tail_recovery.request_available_again(&mut p);
        }
        if !matches!(self.stage, Stage::Serving | Stage::RecoveringTail(_)) {
            return;
        }
        self.executor().time_out_blocked();
        if self.keyspaces.is_in_script() || !self.durability.take_timer_due(now.monotonic_us) {
            return; // The rest has its own, slower time.
        }
        self.durability.retry_for_room(&mut self.cx);
        if matches!(self.stage, Stage::RecoveringTail(_)) {
            return;
        }
        self.durability.sync_in_time(&mut self.cx, &mut self.others);
        self.peering().request_unverified();
        self.peering().hold_back_no_longer();
        self.peering().answer_repeats();
        // What was synced before it began to wait for that is told of no other way.
        let synced = self.cx.journal.log_synced();
        self.executor().on_decisions_synced(synced);
        self.visibility().report_failed();
        self.visibility().go_on_retiring();
        self.visibility().go_on_moving();
        self.maintenance.balance(&mut self.cx, &mut self.others, &mut self.keyspaces);
        self.maintenance.collect(&mut self.cx, &mut self.others, &mut self.keyspaces);
        self.visibility().maintain_branches();
        self.executor().notify_changes();
        self.keyspaces.sweep(&self.cx, &self.others);
        self.keyspaces.contexts.forget_unused_contexts(&self.cx);
        self.reads.snapshots.forget_old_reads(&self.cx);
        self.reads.snapshot_reads.drop_old_snapshot_reads(&self.cx);
        self.visibility().resume_paused();
        self.transactions.find_parts(&mut self.cx, &self.others);
        self.others.move_stream_floor(&mut self.cx);
        let Partition { cx, others, keyspaces, transactions, peers, durability, .. } = self;
        durability.begin_checkpoint_in_time(cx, others, keyspaces, transactions, peers);
    }

    /// It cannot go on, and says why from now on. Nothing that rested on unwritten records leaves (trap 55).
    fn stop(&mut self, reason: String) {
        self.executor().stop_scripts();
        let held = self.cx.outbox.clear();
        self.cx.disk_ops.clear();
        self.cx.trace(Trace::PartitionStopped { partition: self.cx.id, reason: reason.clone() });
        self.enter(Stage::Stopped(reason));
        held.into_iter().for_each(|envelope| self.cx.disavow(envelope));
        self.executor().on_stopped();
        self.deliver_buffered();
    }

    /// Everything is synced and the superblock says so.
    pub fn shut_down(&mut self) {
        match self.stage {
            // One that is catching up must catch up again: its stop is not a clean one.
            Stage::Serving if !self.durability.is_opening() && !self.others.is_catching_up() => {
                let closing = Closing::begin(&mut self.cx, &mut self.durability);
                self.enter(Stage::Closing(closing));
            }
            Stage::Serving | Stage::Reading(_) | Stage::Joining(_) | Stage::RecoveringTail(_) => {
                self.enter(Stage::Stopped(SHUTTING_DOWN.to_owned()));
            }
            Stage::Closing(_) | Stage::Stopped(_) => {}
        }
    }

    fn on_disk_recovering_tail(&mut self, done: DiskDone) {
        let (Stage::RecoveringTail(tail_recovery), mut p) = self.staged() else { return };
        match tail_recovery.on_disk(&mut p, done) {
            TailStep::GoesOn => self.halt_if_found(),
            TailStep::Done { without, records, open } => self.serve(records, open, Some(without)),
            TailStep::Failed(reason) => self.stop(reason),
        }
    }

    fn on_disk_closing(&mut self, done: DiskDone) {
        let Stage::Closing(closing) = &mut self.stage else { return };
        match closing.on_disk(&mut self.cx, &mut self.durability, done) {
            Close::GoesOn => {}
            Close::Done => self.enter(Stage::Stopped(SHUTTING_DOWN.to_owned())),
            Close::Failed(reason) => self.stop(reason),
        }
    }

    /// Whether nothing more comes of this partition.
    pub fn is_closed(&self) -> bool {
        matches!(self.stage, Stage::Stopped(_))
    }

    /// Begins to read the disk.
    pub fn start(&mut self) {
        self.enter(Stage::Reading(Some(Box::new(Reading::new(&self.cx, &self.others)))));
        self.read_on();
    }

    fn on_disk_reading(&mut self, done: DiskDone) {
        let (Stage::Reading(Some(reading)), _) = self.staged() else { return };
        match reading.on_disk(done) {
            Ok(()) => self.read_on(),
            Err(reason) => self.stop(reason),
        }
    }

    fn read_on(&mut self) {
        let (Stage::Reading(Some(reading)), mut p) = self.staged() else { return };
        match reading.read_on(&mut p) {
            Ok(None) => {}
            Ok(Some(finish)) => self.on_log_read(finish),
            Err(reason) => self.stop(reason),
        }
    }

    /// Everything was read: goes on, or asks the others for what may be missing.
    fn on_log_read(&mut self, finish: Finish) {
        let Stage::Reading(reading) = &mut self.stage else { return };
        let Some(reading) = reading.take() else { return };
        match reading.finish(&mut self.peering(), finish) {
            LogRead::Unadmitted { records, open } => self.begin_to_join(records, open),
            LogRead::Torn { without, records, open } => self.begin_tail_recovery(without, records, open),
            LogRead::Whole { records, open } => self.serve(records, open, None),
        }
    }

    /// The log was read, and the superblock says that nobody has admitted this directory yet.
    fn begin_to_join(&mut self, records: u64, open: Open) {
        self.cx.trace(Trace::Joining { partition: self.cx.id });
        self.enter(Stage::Joining(Box::new(Joining::new(records, open))));
        self.peering().request_introductions();
        self.deliver_buffered();
        self.join_when_all_have_answered();
    }

    fn join_when_all_have_answered(&mut self) {
        let (Stage::Joining(joining), mut p) = self.staged() else { return };
        match joining.look_at_answers(&mut p) {
            Some(Join::AsFirst { beside }) => self.serve_as_first(beside),
            Some(Join::Again(directory, answers)) => {
                let (without, records, open) = joining.rejoin(&mut p, directory, &answers);
                self.begin_tail_recovery(without, records, open);
            }
            None => {}
        }
    }

    fn on_disk_joining(&mut self, done: &DiskDone) {
        let (Stage::Joining(joining), mut p) = self.staged() else { return };
        match joining.on_disk(&mut p, done) {
            CopyStep::GoesOn => {}
            CopyStep::ReadAnew => self.read_anew(),
            CopyStep::Failed(reason) => self.stop(reason),
        }
    }

    /// The directory is another one than the one that was read: everything begins as with a start.
    fn read_anew(&mut self) {
        let cx = &mut self.cx;
        let mut anew = Partition::new(cx.id, cx.config.clone(), cx.protocols.clone(), cx.now);
        anew.cx.take_over(cx);
        anew.keyspaces.take_over_bounds(&self.keyspaces);
        anew.maintenance.take_over_bounds(&self.maintenance);
        anew.peers.buffered = std::mem::take(&mut self.peers.buffered);
        anew.others.failover.failed.take_over_links(&self.others.failover.failed);
        *self = anew;
        self.start();
    }

    /// Nobody knows an earlier directory. Beside others that hold something it serves when it has that, too.
    fn serve_as_first(&mut self, beside: Option<u16>) {
        let Stage::Joining(joining) = &mut self.stage else { return };
        let (records, open, answers) = joining.take();
        self.serve(records, open, beside);
        for (datacenter, introduction) in &answers {
            self.peering().on_introduce(*datacenter, introduction);
            self.halt_if_found();
        }
    }

    /// The log was read, and may have lost its end.
    fn begin_tail_recovery(&mut self, without: u16, records: u64, open: Open) {
        self.cx.trace(Trace::TailLost { partition: self.cx.id });
        // A directory that was lost may have lost more than a power failure takes, whatever the machine's boot.
        let is_old_copy = self.durability.is_marked_short(&self.cx) || self.peers.identity.is_refilled();
        let tail_recovery = TailRecovery::new(without, records, open, is_old_copy);
        self.enter(Stage::RecoveringTail(Box::new(tail_recovery)));
        if let (Stage::RecoveringTail(tail_recovery), mut p) = self.staged() {
            tail_recovery.begin(&mut p);
        }
        self.deliver_buffered();
    }

    /// The log holds all that can be had: takes up what is open, and serves; after a loss, when it has caught up.
    fn serve(&mut self, records: u64, mut open: Open, after_loss: Option<u16>) {
        self.durability.open_log(&mut self.cx, self.peers.identity.own(), after_loss.is_some());
        self.keyspaces.forget_past(&mut self.cx);
        self.keyspaces.branching.branches_live_on(&self.cx);
        self.cx.release();
        self.enter(Stage::Serving);
        self.peers.identity.note_opened(&self.cx);
        self.peering().hold_back();
        // Nothing may be logged after what was read, so its end is what they wait for.
        let end = self.cx.journal.log_end();
        for (operation, name) in std::mem::take(&mut open.executed) {
            self.transactions.report_when_synced(operation, name, end);
        }
        if let Some(without) = after_loss {
            self.others.begin_to_catch_up(&mut self.cx, without, records, &mut open);
        } else {
            self.cx.trace(Trace::PartitionReady { partition: self.cx.id, records });
        }
        self.visibility().resume_open(open);
        self.visibility().settle_again();
        let others: Vec<DatacenterId> = self.others.replication.datacenters().collect();
        for datacenter in others {
            self.peering().greet(datacenter);
        }
        self.executor().settle();
        self.deliver_buffered();
        self.finish_catching_up();
    }

    /// Begins to serve, or to refuse: what came early is taken now.
    pub(crate) fn deliver_buffered(&mut self) {
        for envelope in self.peers.buffered.take_all() {
            self.on_message(self.cx.now, envelope);
        }
    }

    fn on_message_catching_up(&mut self, envelope: Envelope) {
        // A part of a snapshot read is read for a session too.
        let session = matches!(envelope.from, Address::Core { .. });
        let session = session || matches!(envelope.message, Message::ReadSnapshotPart { .. });
        if session && !waits_for_the_log(&envelope.message) {
            return self.others.refuse_for_now(&mut self.cx, &envelope);
        }
        if let Some(envelope) = self.others.keep_notification(&self.cx, envelope) {
            self.take(envelope);
        }
        self.finish_catching_up();
    }

    /// Goes on with local transactions when all that is known to come has come, and serves when it is applied.
    ///
    /// The first does not wait for the second: a replicated transaction may wait for a part that its origin lost and
    /// executes again only when it has caught up itself, with us.
    pub(crate) fn finish_catching_up(&mut self) {
        if !matches!(self.stage, Stage::Serving) || self.keyspaces.is_in_script() {
            return;
        }
        if !self.others.is_catching_up() || self.others.awaits_words() || self.visibility().awaits_homes() {
            return;
        }
        if self.others.may_place_local_parts() {
            self.executor().resume_local_parts();
        }
        let Some((catch_up, records)) = self.others.caught_up() else { return };
        if !self.peers.knows_what_was_stable(&self.others, catch_up) {
            return;
        }
        self.others.end_catching_up();
        self.keyspaces.forget_past(&mut self.cx);
        // What was taken back was logged before the others' time was known again.
        self.others.stable_time.times.log_again(&mut self.cx);
        self.durability.note_caught_up(&mut self.cx, &mut self.others);
        self.cx.trace(Trace::PartitionReady { partition: self.cx.id, records });
    }
}

#[cfg(test)]
pub(crate) mod tests;
