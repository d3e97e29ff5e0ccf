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

mod acknowledgements;
mod admit;
mod ahead;
mod branching;
mod catch_up;
mod checkpoint;
mod closing;
mod collect;
mod conflicts;
mod contexts;
mod cuts;
mod cx;
mod dead;
mod discarded;
mod early;
mod everywhere;
mod execute;
mod gone;
mod identity;
mod intake;
mod issued;
mod joining;
mod journal;
mod json;
mod persistence;
mod progress;
mod recover;
mod regain;
mod replay;
mod replicas;
mod snapshot;
mod space;
mod survey;
mod times;
mod waits;

pub(crate) use cx::{Cx, coordinator_of};
pub(crate) use dead::state_hash;
pub use discarded::describe_write;
pub(crate) use execute::Execution;
pub(crate) use journal::Needed;
pub use recover::Stage;

use crate::applied::Applied;
use crate::config::NodeConfig;
use crate::handlers::HandlerTable;
use crate::order::RowOrder;
use crate::stream::receiver::Receiver;
use crate::stream::sender::Sender;
use crate::trace::Trace;
use crate::transaction::Transactions;
use collect::Collector;
use cuts::Cuts;
use ensue_protocol::Protocol;
use ensue_store::keyspace::Keyspace;
use ensue_types::{
    CoreId, DatacenterId, KeyspaceId, LogicalTime, Now, Opaque, OperationId, PartitionId, Position, Rule,
    Source, limits,
};
use ensue_wire::{Address, Envelope, Message};
use everywhere::Everywhere;
use intake::Intake;
use persistence::Persistence;
use snapshot::{SecondRead, Snapshots};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use times::Times;
use waits::{ReadCounts, Slice, Waits};

/// The protocols of all keyspaces, by keyspace number.
pub type Protocols = Arc<Vec<Box<dyn Protocol>>>;

/// Work that waits for its turn in its rows.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// A command of a session, or the commands of a `MULTI` over this partition alone.
    Commands(Box<Execution>),
    /// This partition's part of a local write transaction.
    LocalPart(OperationId),
    /// This partition's part of a replicated write transaction, at this place of its origin's stream.
    ReplicatedPart(DatacenterId, Position),
    /// A replicated write of this partition alone.
    Entry(DatacenterId, Position),
}

/// Who waits for an operation to be applied here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiter {
    /// A received entry.
    Entry(DatacenterId, Position),
    /// A dependency check that came from elsewhere: who asked, and its number there.
    Ask(Address, u64),
}

/// What lost tails have cost since the start, for `INFO`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Losses {
    /// Own entries that came back from other datacenters.
    pub taken_back: u64,
    /// Dependencies on operations that were declared lost.
    pub dependencies: u64,
}

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

/// The rows, and who writes to them in which order.
#[derive(Clone, Debug)]
pub(crate) struct Keyspaces {
    pub(crate) rows: Vec<Keyspace>,
    pub(crate) order: RowOrder<Work>,
    /// Keyspaces that are states and not rows.
    pub(crate) branching: branching::Branching,
    conflict_log: conflicts::ConflictLog,
    /// Contexts that sessions share by name.
    contexts: contexts::Contexts,
    counts: ReadCounts,
    /// Bytes of rows above which local writes are refused; 0 is no bound.
    pub(crate) memory_max: u64,
}

impl Keyspaces {
    fn new(id: PartitionId, config: &NodeConfig, protocols: &Protocols) -> Keyspaces {
        let rows = (0..usize::from(limits::KEYSPACES)).map(|number| {
            let needs = protocols.get(number).map(|protocol| protocol.needs()).unwrap_or_default();
            let rows = Keyspace::new(needs.versions);
            let table = HandlerTable::of_keyspace(KeyspaceId(number as u8), &config.handlers);
            if needs.siblings { rows.with_siblings(Arc::new(table)) } else { rows }
        });
        Keyspaces {
            rows: rows.collect(),
            order: RowOrder::default(),
            branching: branching::Branching::new(id, config, protocols),
            conflict_log: Default::default(),
            contexts: Default::default(),
            counts: ReadCounts::default(),
            memory_max: config.maxmemory.div_ceil(config.own_partitions().count().max(1) as u64),
        }
    }
}

/// Reads that wait: for coordinators, for their slices, for times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads {
    pub(crate) snapshots: Snapshots,
    waits: Waits,
    cuts: Cuts,
}

/// Streams from and to the other datacenters, and what of them has been applied.
#[derive(Clone, Debug)]
pub(crate) struct Replication {
    pub(crate) applied: Applied<Waiter>,
    pub(crate) intake: Intake,
    pub(crate) senders: BTreeMap<DatacenterId, Sender>,
    pub(crate) receivers: BTreeMap<DatacenterId, Receiver>,
    /// Streams that brought something that could not be taken yet.
    paused: BTreeSet<DatacenterId>,
    /// Where each stream was at which time, the own one too; kept where pasts are times.
    progress: BTreeMap<DatacenterId, progress::Progress>,
    keeps_progress: bool,
    /// When something was last sent to each datacenter.
    spoke_us: BTreeMap<DatacenterId, u64>,
    pub(crate) acknowledgements: acknowledgements::Acknowledgements,
    pub(crate) replica_waits: replicas::ReplicaWaits,
    pub(crate) losses: Losses,
}

impl Replication {
    fn new(id: PartitionId, config: &NodeConfig, protocols: &Protocols) -> Replication {
        let others: Vec<DatacenterId> = config.topology.others().collect();
        Replication {
            applied: Applied::new(id),
            intake: Intake::default(),
            senders: others.iter().map(|&d| (d, Sender::default())).collect(),
            receivers: others.iter().map(|&d| (d, Receiver::default())).collect(),
            paused: BTreeSet::new(),
            progress: BTreeMap::new(),
            keeps_progress: protocols.iter().any(|protocol| protocol.needs().cuts),
            spoke_us: BTreeMap::new(),
            acknowledgements: Default::default(),
            replica_waits: Default::default(),
            losses: Losses::default(),
        }
    }
}

/// The other datacenters: their streams, their time, and which of them failed.
#[derive(Clone, Debug)]
pub(crate) struct Others {
    pub(crate) replication: Replication,
    pub(crate) stable_time: StableTime,
    pub(crate) failover: Failover,
    /// Times too far ahead, of others and of this datacenter.
    ahead: ahead::Ahead,
    /// What is still missing of theirs before sessions are served, after a lost tail.
    catch_up: Option<catch_up::CatchUp>,
    /// Refused datacenters that an operator wants to be looked at again.
    readmitted: Vec<DatacenterId>,
}

/// What is known of the other datacenters' time, and what every datacenter has.
#[derive(Clone, Debug)]
pub(crate) struct StableTime {
    pub(crate) times: Times,
    /// A time has risen since those that wait for one were looked at.
    times_rose: bool,
    pub(crate) everywhere: Everywhere,
}

/// Datacenters that failed permanently, and what was discarded with them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failover {
    pub(crate) dead: dead::Dead,
    pub(crate) discarded: discarded::Discarded,
}

/// What is removed when nobody can need it any more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Maintenance {
    pub(crate) collector: Collector,
}

/// What is known of the same partition in the other datacenters, and what of their words is not taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peers {
    /// Which directories this partition and its peers run on, and which peers are refused.
    pub(crate) identity: identity::Identity,
    /// Messages that came before the log was read.
    early: early::Early,
    /// What datacenters said that was refused, by who said it.
    refused: BTreeMap<DatacenterId, u64>,
}

impl Keyspaces {
    pub(crate) fn keyspace(&mut self, keyspace: KeyspaceId) -> &mut Keyspace {
        &mut self.rows[usize::from(keyspace.0)]
    }
}

impl Others {
    /// Makes what was read the past of a context.
    pub(crate) fn observe_into(&self, cx: &Cx, keyspace: KeyspaceId, facts: &mut Opaque, sources: &[Source]) {
        let protocol = cx.protocol(keyspace);
        if sources.is_empty() || (self.replication.senders.is_empty() && !protocol.needs().versions) {
            return;
        }
        if protocol.needs().remembers_settled {
            return protocol.record_reads(facts, sources, &[]);
        }
        let (settled, unsettled): (Vec<Source>, Vec<Source>) =
            sources.iter().cloned().partition(|source| self.is_settled(cx, keyspace, &source.operation));
        protocol.record_reads(facts, &unsettled, &settled);
    }

    /// Of what was read, what a write that rests on it must carry.
    pub(crate) fn to_carry(&self, cx: &Cx, keyspace: KeyspaceId, mut sources: Vec<Source>) -> Vec<Source> {
        if !cx.protocol(keyspace).needs().remembers_settled {
            sources.retain(|source| !self.is_settled(cx, keyspace, &source.operation));
        }
        sources
    }

    /// What a write of this session carries.
    pub(crate) fn dependencies(
        &self,
        cx: &Cx,
        keyspace: KeyspaceId,
        context: &mut Opaque,
        observed: &[Source],
    ) -> Opaque {
        let protocol = cx.protocol(keyspace);
        protocol.forget(context, &|operation| self.is_settled(cx, keyspace, operation));
        protocol.dependencies(context, observed)
    }

    /// Whether nobody need remember an operation any more.
    pub(crate) fn is_settled(&self, cx: &Cx, keyspace: KeyspaceId, operation: &OperationId) -> bool {
        match cx.protocol(keyspace).needs().keeps_for_reads() {
            true => self.stable_time.everywhere.contains(operation),
            false => self.is_stable(cx, operation),
        }
    }

    /// Whether every other datacenter has durably applied an operation, as far as this partition knows.
    pub(crate) fn is_stable(&self, cx: &Cx, operation: &OperationId) -> bool {
        let has = |sender: &Sender| {
            let (_, position) = sender.applied(operation.datacenter);
            position >= operation.position
        };
        let enough = match Rule::DropWhatAllHave.holds() {
            true => self.living_senders().all(has),
            false => self.replication.senders.values().any(has),
        };
        operation.partition == cx.id && enough
    }

    /// What the protocol wants remembered of what was read.
    pub(crate) fn facts_of(&self, cx: &Cx, keyspace: KeyspaceId, sources: Vec<Source>) -> Opaque {
        let mut facts = Opaque::default();
        self.observe_into(cx, keyspace, &mut facts, &sources);
        self.failover.discarded.past_the_losses(cx, keyspace, &mut facts);
        facts
    }
}

/// What becomes visible, and when: entries and parts of transactions whose dependencies are met, applied, or discarded.
/// A machine over parts of the partition, for as long as it runs.
pub(crate) struct Visibility<'a> {
    pub(crate) cx: &'a mut Cx,
    pub(crate) others: &'a mut Others,
    pub(crate) keyspaces: &'a mut Keyspaces,
    pub(crate) transactions: &'a mut Transactions,
}

impl Executor<'_> {
    /// What goes by vectors of times.
    pub(crate) fn dispatch_times(&mut self, from: Address, time: LogicalTime, message: Message) {
        match (from, message) {
            (_, Message::ReadCut { request, keyspace, context, parts }) => {
                self.reads.on_read_cut(self.cx, self.others, (from, request), keyspace, context, parts);
            }
            (_, Message::ReadSlice { read, keyspace, cut, commands }) => {
                self.reads.on_read_slice(
                    self.cx,
                    self.others,
                    self.keyspaces,
                    Slice { from, read, keyspace, cut, commands },
                );
            }
            (Address::Partition { partition, .. }, Message::SliceRead { read, values }) => {
                self.reads.on_slice_read(self.cx, self.others, partition, read, values);
            }
            (_, Message::SliceLate { read, missing }) => {
                self.reads.on_slice_late(self.cx, self.others, read, &missing)
            }
            (_, Message::SliceRefused { read, reply }) => {
                self.reads.cuts.on_slice_refused(self.cx, read, reply)
            }
            (_, Message::AwaitTimes { check, times }) => {
                self.reads.on_await_times(self.cx, self.others, from, check, times)
            }
            (Address::Partition { partition, .. }, Message::Heard { received, floor, everywhere }) => {
                self.others.stable_time.on_heard(partition, received, floor, &everywhere);
            }
            (_, Message::Stable { received, floor, everywhere }) => {
                self.keyspaces.on_stable(self.cx, self.others, from, &received, &floor, &everywhere);
            }
            (Address::Partition { partition, .. }, Message::Ended { datacenter, whole, doubtful }) => {
                self.others.failover.discarded.on_ended(self.cx, partition, datacenter, whole, doubtful);
            }
            (_, Message::Lost { datacenter, whole, doubtful }) => {
                self.keyspaces.on_lost(self.cx, self.others, datacenter, whole, doubtful)
            }
            (_, Message::ClockAhead { ahead_ms }) => {
                self.others.ahead.on_clock_ahead(self.cx, from.datacenter(), ahead_ms)
            }
            (_, Message::AskTime) => self.others.say_heartbeat(self.cx, from.datacenter()),
            (_, Message::Heartbeat { end }) => self.others.on_heartbeat(from.datacenter(), end, time),
            // Answers to sessions never come to a partition; a peer that sends one is wrong.
            _ => self.cx.trace(Trace::Refused { what: "a message that no partition takes" }),
        }
    }

    /// Executes what has become ready, until nothing is.
    pub(crate) fn settle(&mut self) {
        while let Some((at, work)) = self.keyspaces.order.pop_ready() {
            match work {
                Work::Commands(execution) => self.resume_execution(*execution, at),
                Work::LocalPart(transaction) => {
                    self.transactions.execute_local_part(self.cx, self.others, self.keyspaces, transaction)
                }
                Work::ReplicatedPart(origin, position) => self.visibility().apply_entry(origin, position, at),
                Work::Entry(origin, position) => self.visibility().apply_entry(origin, position, at),
            }
        }
    }
}

/// Commands of sessions on their way: executed, or waiting for coordinators, times, or their turn in a row.
/// A machine over parts of the partition, for as long as it runs.
pub(crate) struct Executor<'a> {
    pub(crate) cx: &'a mut Cx,
    pub(crate) others: &'a mut Others,
    pub(crate) keyspaces: &'a mut Keyspaces,
    pub(crate) transactions: &'a mut Transactions,
    pub(crate) reads: &'a mut Reads,
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
            Stage::Closing(_) => return self.refuse(&envelope, closing::SHUTTING_DOWN),
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
        self.executor().settle();
        self.executor().take_up_waits();
        self.readmit();
    }

    fn dispatch(&mut self, envelope: Envelope) {
        let from = envelope.from;
        match envelope.message {
            Message::Execute { request, keyspace, context, commands, together } => {
                self.executor().on_execute(
                    from,
                    request,
                    keyspace,
                    context,
                    execute::Batch { commands, together },
                );
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
                    replicas::Wanted { dependencies, times },
                    datacenters,
                );
            }
            Message::CountReplicas { request, dependencies, times } => {
                self.others.on_count_replicas(
                    &mut self.cx,
                    from,
                    request,
                    &replicas::Wanted { dependencies, times },
                );
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
                self.on_branch_fetched(from.datacenter(), keyspace, rebuilt);
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
                self.on_passed_on(from.datacenter(), origin, entries);
            }
            Message::Introduce(introduction) => self.on_introduce(from.datacenter(), &introduction),
            Message::StreamResume { received, .. } => self.on_stream_resume(from.datacenter(), received),
            Message::StreamEntries { first, entries, .. } => {
                self.on_stream_entries(from.datacenter(), first, entries);
            }
            Message::StreamAcknowledge(acknowledge) => {
                self.on_stream_acknowledge(from.datacenter(), &acknowledge, time);
            }
            message => self.executor().dispatch_times(from, time, message),
        }
    }

    /// The link to another core is up: everything asked over an earlier one is asked again.
    pub fn on_link_up(&mut self, now: Now, datacenter: DatacenterId, owns: &dyn Fn(PartitionId) -> bool) {
        self.cx.now = now;
        if datacenter != self.cx.datacenter && owns(self.cx.id) {
            self.others.failover.dead.link_up(datacenter);
            match self.stage {
                Stage::Joining(_) => return self.introduce(datacenter, true),
                Stage::Regaining(_) => {
                    self.introduce(datacenter, true);
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
            self.greet(datacenter);
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
