//! The owner of one partition: it stamps, logs, applies and answers, and nobody else touches its rows.
//!
//! Arrives: messages from sessions, from the other partitions of this datacenter, and from the same partition of the
//! others; disk answers; the time. Promises: outputs leave in order, after the log records that they rest on. One file a
//! noun below: `execute` commands, `snapshot` reads at past times, `intake` what other datacenters wrote, `persistence`
//! the log and checkpoints, `identity` whose directories these are, `joining` a start with an empty one, `issued`
//! what a token may not name, `contexts` what sessions share by name, `early` what comes before that is read, `space`
//! a full disk, `regain` and `catch_up` a lost tail,
//! `dead` and `discarded` a datacenter that is lost for good, `branching` keyspaces that are states and not rows, `collect` and `everywhere` what may be forgotten,
//! `survey` figures.

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
mod transactions;
mod visibility;
mod work;

use crate::config::NodeConfig;
use crate::trace::Trace;
use cx::Cx;
pub use cx::Protocols;
use ensue_types::{CoreId, DatacenterId, LogicalTime, Now, PartitionId, Position, Rule};
use ensue_wire::{Address, Envelope, Message, PeerStage};
use execution::Executor;
use execution::execute::Batch;
use failover::Failover;
pub(crate) use failover::dead::state_hash;
pub use failover::discarded::describe_write;
use keyspaces::Keyspaces;
use maintenance::Maintenance;
use others::Others;
use peering::Peering;
use peers::Peers;
use persistence::{Halt, Persistence};
use reads::Reads;
use reads::snapshot::SecondRead;
use recovery::closing::SHUTTING_DOWN;
pub use recovery::recover::Stage;
use replication::Replication;
use replication::replicas::Wanted;
use stable_time::StableTime;
use stable_time::everywhere::Everywhere;
use stable_time::times::Times;
use std::sync::Arc;
use transactions::Transactions;
use visibility::Visibility;

/// One partition: it takes an input, lets its parts work in their order, and knows that order alone.
#[derive(Clone, Debug)]
pub struct Partition {
    pub(crate) cx: Cx,
    pub(crate) stage: Stage,
    pub(crate) durability: Persistence,
    pub(crate) keyspaces: Keyspaces,
    pub(crate) reads: Reads,
    pub(crate) transactions: Transactions,
    pub(crate) others: Others,
    pub(crate) maintenance: Maintenance,
    pub(crate) peers: Peers,
}

impl Partition {
    pub(crate) fn executor(&mut self) -> Executor<'_> {
        Executor {
            cx: &mut self.cx,
            others: &mut self.others,
            keyspaces: &mut self.keyspaces,
            transactions: &mut self.transactions,
            reads: &mut self.reads,
        }
    }

    pub(crate) fn visibility(&mut self) -> Visibility<'_> {
        Visibility {
            cx: &mut self.cx,
            others: &mut self.others,
            keyspaces: &mut self.keyspaces,
            transactions: &mut self.transactions,
        }
    }

    pub(crate) fn peering(&mut self) -> Peering<'_> {
        Peering {
            cx: &mut self.cx,
            others: &mut self.others,
            keyspaces: &mut self.keyspaces,
            transactions: &mut self.transactions,
            durability: &mut self.durability,
            peers: &mut self.peers,
        }
    }

    /// A partition that has not read its log; its first disk operations do.
    pub fn new(id: PartitionId, config: Arc<NodeConfig>, protocols: Protocols, now: Now) -> Partition {
        let stable_time = StableTime {
            times: Times::new(&protocols),
            times_rose: false,
            everywhere: Everywhere::default(),
        };
        Partition {
            stage: Stage::Reading(None),
            durability: Persistence::new(),
            keyspaces: Keyspaces::new(id, &config, &protocols),
            reads: Reads::default(),
            transactions: Transactions::default(),
            others: Others {
                replication: Replication::new(id, &config, &protocols),
                stable_time,
                failover: Failover::default(),
                ahead: Default::default(),
                catch_up: None,
                readmitted: Vec::new(),
            },
            maintenance: Maintenance::default(),
            peers: Peers::default(),
            cx: Cx::new(id, config, protocols, now),
        }
    }

    /// The partition does something else from here on.
    fn enter(&mut self, stage: Stage) {
        self.cx.bounds_the_clock = matches!(stage, Stage::Serving);
        self.cx.stage = match stage {
            Stage::Joining(_) => PeerStage::Joining,
            Stage::Regaining(_) => PeerStage::Recovering,
            _ => PeerStage::Serving,
        };
        self.stage = stage;
    }

    /// Takes one message.
    pub fn on_message(&mut self, now: Now, envelope: Envelope) {
        self.cx.now = now;
        if let (Message::Dead { datacenter, .. }, Stage::Serving | Stage::Regaining(_) | Stage::Joining(_)) =
            (&envelope.message, &self.stage)
        {
            if *datacenter == self.cx.datacenter && Rule::TheDeadStop.holds() {
                return self.stop_as_dead(envelope.from.datacenter());
            }
        }
        match &self.stage {
            Stage::Reading(_) => return self.on_message_reading(envelope),
            Stage::Stopped(reason) => {
                let reason = reason.clone();
                return self.refuse(&envelope, &reason);
            }
            Stage::Closing(_) => return self.refuse(&envelope, SHUTTING_DOWN),
            Stage::Joining(_) => return self.on_message_joining(envelope),
            Stage::Regaining(_) => return self.on_message_regaining(envelope),
            Stage::Serving if self.others.catch_up.is_some() => return self.on_message_catching_up(envelope),
            Stage::Serving => {}
        }
        self.take(envelope);
    }

    /// Takes one message as a partition that has its log.
    fn take(&mut self, mut envelope: Envelope) {
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
            // What is said in its name tells nothing of the sender's time, which may be taken back (decision 24).
            envelope.time = LogicalTime::ZERO;
        }
        self.dispatch(envelope);
        self.halt_if_found();
        self.executor().settle();
        self.executor().take_up_waits();
        self.peering().readmit();
    }

    fn dispatch(&mut self, envelope: Envelope) {
        let from = envelope.from;
        match envelope.message {
            Message::Execute { request, keyspace, context, commands, together } => {
                self.executor().on_execute(from, request, keyspace, context, Batch { commands, together });
            }
            Message::ReadFirst { request, keyspace, commands } => {
                self.keyspaces.on_read_first(&mut self.cx, &self.others, from, request, keyspace, commands);
            }
            Message::ReadAt { request, keyspace, commands, at, with } => {
                self.executor().on_read_at(SecondRead { from, request, keyspace, commands, with }, at);
            }
            Message::Transact { request, keyspace, context, parts } => {
                self.executor().on_transact(from, request, keyspace, context, parts);
            }
            Message::AwaitReplicas { request, dependencies, times, datacenters } => {
                self.others.on_await_replicas(
                    &mut self.cx,
                    from,
                    request,
                    Wanted { dependencies, times },
                    datacenters,
                );
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
            Message::Survey { request } => {
                let figures = self.survey();
                self.cx.send(from, Message::Surveyed { request, figures });
            }
            Message::CheckDependencies { check, dependencies } => {
                self.others.replication.on_check_dependencies(&mut self.cx, from, check, dependencies);
            }
            Message::DependenciesMet { check, gone } => self.visibility().on_dependencies_met(check, &gone),
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
            Message::CommitCheck { check, transaction, at } => {
                self.transactions.on_commit_check(&mut self.cx, from, check, transaction, at);
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
            Message::PartGone { transaction } => self.visibility().on_part_gone(from, transaction),
            Message::AwaitPart { transaction } => self.transactions.on_await_part(
                &mut self.cx,
                &mut self.others,
                &mut self.keyspaces,
                transaction,
            ),
            Message::Discard { transaction } => self.executor().on_discard(transaction),
            Message::ForgetVote { transaction } => self.executor().on_forget_vote(transaction, time),
            Message::Repeat { number } => self.on_repeat(from, number),
            Message::Repeated { number } => self.others.on_repeated(from, number),
            message => self.dispatch_stream(from, time, message),
        }
    }

    /// What the same partitions of two datacenters say to each other.
    fn dispatch_stream(&mut self, from: Address, time: LogicalTime, message: Message) {
        match message {
            Message::Regain { after } => {
                self.others.replication.on_regain(&mut self.cx, from.datacenter(), after)
            }
            // An answer that comes twice, after a reconnect.
            Message::Regained { .. } => {}
            Message::BranchFetch { keyspace, state, live } => {
                self.keyspaces.on_branch_fetch(&mut self.cx, &self.others, from, keyspace, state, &live);
            }
            Message::BranchFetched { keyspace, rebuilt } => {
                self.peering().on_branch_fetched(from.datacenter(), keyspace, rebuilt);
            }
            Message::BranchLacking { keyspace, state, dead } => {
                self.keyspaces.on_branch_lacking(&self.others, from.datacenter(), keyspace, state, &dead);
            }
            Message::Dead { datacenter, received, time } => {
                self.visibility().on_dead(from.datacenter(), datacenter, received, time);
            }
            Message::PassOn { origin, after } => {
                self.others.on_pass_on(&mut self.cx, from.datacenter(), origin, after)
            }
            Message::PassedOn { origin, entries } => {
                self.peering().on_passed_on(from.datacenter(), origin, entries);
            }
            Message::Introduce(introduction) => self.peering().on_introduce(from.datacenter(), &introduction),
            Message::StreamResume { received, .. } => {
                self.peering().on_stream_resume(from.datacenter(), received)
            }
            Message::StreamEntries { first, entries, .. } => {
                self.peering().on_stream_entries(from.datacenter(), first, entries);
            }
            Message::StreamAcknowledge(acknowledge) => {
                self.peering().on_stream_acknowledge(from.datacenter(), &acknowledge, time);
            }
            message => self.executor().dispatch_times(from, time, message),
        }
    }

    /// Ends the partition if what peers said in this step shows that it cannot go on.
    pub(in crate::partition) fn halt_if_found(&mut self) {
        if let Some(halt) = self.peers.halt.take() {
            self.halt(halt);
        }
    }

    fn halt(&mut self, halt: Halt) {
        let marked = self.durability.mark_halted(&self.cx, &halt);
        let (Halt::Stopped(reason) | Halt::Short(reason) | Halt::Forked(reason) | Halt::Dead(reason)) = halt;
        self.stop(reason);
        self.cx.disk_ops.extend(marked);
    }

    /// The others go on without this datacenter: what it would write from here on nobody would take.
    fn stop_as_dead(&mut self, by: DatacenterId) {
        // Who names a place that is none is broken, and says nothing about us.
        let Some(survivor) = self.cx.config.topology.datacenters.get(usize::from(by.0)) else {
            return self.cx.trace(Trace::Refused { what: "a word of death from no datacenter" });
        };
        let reason = self.cx.word_of_death(&survivor.name);
        self.halt(Halt::Dead(reason));
        // Another partition may have no link to anybody who knows.
        let (own, datacenter) = (self.cx.id, self.cx.datacenter);
        let others =
            (0..self.cx.config.topology.partitions).map(PartitionId).filter(|partition| *partition != own);
        for partition in others {
            let to = Address::Partition { datacenter, partition };
            let message = Message::Dead { datacenter, received: Position(0), time: LogicalTime::ZERO };
            self.cx.send_refusal(to, message);
        }
    }

    /// The link to another core is up: everything asked over an earlier one is asked again.
    pub fn on_link_up(&mut self, now: Now, datacenter: DatacenterId, owns: &dyn Fn(PartitionId) -> bool) {
        self.cx.now = now;
        if datacenter != self.cx.datacenter && owns(self.cx.id) {
            self.others.failover.dead.link_up(datacenter);
            match self.stage {
                Stage::Joining(_) => return self.peering().introduce(datacenter, true),
                Stage::Regaining(_) => {
                    self.peering().introduce(datacenter, true);
                    return self.cx.ask_to_regain(datacenter);
                }
                _ => {}
            }
        }
        if !matches!(self.stage, Stage::Serving) {
            return;
        }
        if datacenter == self.cx.datacenter {
            self.reads.cuts.ask_slices_again(&mut self.cx, owns);
            self.others.ask_to_repeat_again(&mut self.cx, owns);
            self.others.failover.dead.say_ended_again(&mut self.cx);
            if Rule::AskAgain.holds() {
                self.others.replication.intake.ask_dependencies_again(&mut self.cx, owns);
                self.transactions.ask_transactions_again(&mut self.cx, &self.others, owns);
                self.reads.snapshots.ask_coordinators_again(&mut self.cx, owns);
            }
        } else if owns(self.cx.id) {
            self.peering().greet(datacenter);
            self.keyspaces.branching.ask_again();
        }
    }

    /// The link to another core is down: its sessions have given up what they asked over it, and its partitions will ask again.
    pub fn on_link_down(
        &mut self,
        now: Now,
        datacenter: DatacenterId,
        core: CoreId,
        owns: &dyn Fn(PartitionId) -> bool,
    ) {
        self.cx.now = now;
        if datacenter != self.cx.datacenter && owns(self.cx.id) {
            self.others.failover.dead.link_down(datacenter);
            if let Some(sender) = self.others.replication.senders.get_mut(&datacenter) {
                sender.on_link_down();
            }
            self.peers.identity.on_link_down(datacenter);
            self.forget_offer(datacenter);
        }
        if datacenter == self.cx.datacenter {
            self.others.replication.forget_asks(&|from| match from {
                Address::Partition { partition, .. } => owns(partition),
                Address::Core { core: other, .. } => other == core,
            });
            let sessions = Address::Core { datacenter, core };
            self.reads.forget_waits_of(&mut self.others, sessions);
            self.peers.early.retain(|early| early.from != sessions);
            self.reads.cuts.fail_cuts(&mut self.cx, owns);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
