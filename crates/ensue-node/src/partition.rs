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
mod json;
mod persistence;
mod progress;
mod recover;
mod regain;
mod replicas;
mod snapshot;
mod space;
mod survey;
mod times;
mod waits;

pub(crate) use dead::state_hash;
pub use discarded::describe_write;
pub(crate) use execute::Execution;
pub(crate) use persistence::Needed;
pub use recover::Stage;

use crate::applied::Applied;
use crate::config::NodeConfig;
use crate::handlers::HandlerTable;
use crate::order::RowOrder;
use crate::outbox::Outbox;
use crate::stream::receiver::Receiver;
use crate::stream::sender::Sender;
use crate::trace::Trace;
use crate::transaction::Transactions;
use collect::Collector;
use cuts::Cuts;
use ensue_protocol::Protocol;
use ensue_store::disk::DiskOp;
use ensue_store::keyspace::Keyspace;
use ensue_types::{
    CoreId, DatacenterId, HybridClock, Incarnation, KeyspaceId, LogicalTime, Now, Opaque, OperationId,
    PartitionId, Position, Rule, Source, limits,
};
use ensue_wire::{Address, Envelope, Message};
use everywhere::Everywhere;
use intake::Intake;
use persistence::Persistence;
use snapshot::{SecondRead, Snapshots};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
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

/// One partition.
#[derive(Clone, Debug)]
pub struct Partition {
    pub(crate) id: PartitionId,
    pub(crate) datacenter: DatacenterId,
    pub(crate) config: Arc<NodeConfig>,
    pub(crate) protocols: Protocols,
    pub(crate) now: Now,
    pub(crate) clock: HybridClock,
    pub(crate) incarnation: Incarnation,
    /// The end of this partition's own stream.
    pub(crate) position: Position,
    pub(crate) rows: Vec<Keyspace>,
    pub(crate) order: RowOrder<Work>,
    pub(crate) applied: Applied<Waiter>,
    pub(crate) intake: Intake,
    pub(crate) transactions: Transactions,
    pub(crate) snapshots: Snapshots,
    pub(crate) senders: BTreeMap<DatacenterId, Sender>,
    pub(crate) receivers: BTreeMap<DatacenterId, Receiver>,
    /// Streams that brought something that could not be taken yet.
    paused: BTreeSet<DatacenterId>,
    pub(crate) persistence: Persistence,
    pub(crate) collector: Collector,
    /// Which directories this partition and its peers run on, and which peers are refused.
    pub(crate) identity: identity::Identity,
    /// Contexts that sessions share by name.
    contexts: contexts::Contexts,
    /// Datacenters that are lost for good.
    pub(crate) dead: dead::Dead,
    pub(crate) discarded: discarded::Discarded,
    pub(crate) everywhere: Everywhere,
    pub(crate) replica_waits: replicas::ReplicaWaits,
    pub(crate) times: Times,
    /// A time has risen since those that wait for one were looked at.
    times_rose: bool,
    waits: Waits,
    cuts: Cuts,
    reads: ReadCounts,
    pub(crate) outbox: Outbox,
    pub(crate) disk: VecDeque<DiskOp>,
    pub(crate) traces: VecDeque<Trace>,
    pub(crate) stage: Stage,
    /// What is still missing before sessions are served, after a lost tail.
    catch_up: Option<catch_up::CatchUp>,
    /// Times too far ahead, of others and of this datacenter.
    ahead: ahead::Ahead,
    pub(crate) losses: Losses,
    conflict_log: conflicts::ConflictLog,
    branching: branching::Branching,
    /// Messages that came before the log was read.
    early: early::Early,
    /// Bytes of rows above which local writes are refused; 0 is no bound.
    pub(crate) memory_max: u64,
    /// What datacenters said that was refused, by who said it.
    refused: BTreeMap<DatacenterId, u64>,
    next_number: u64,
}

impl Partition {
    /// A partition that has not read its log; its first disk operations do.
    pub fn new(id: PartitionId, config: Arc<NodeConfig>, protocols: Protocols, now: Now) -> Partition {
        let others: Vec<DatacenterId> = config.topology.others().collect();
        Partition {
            id,
            datacenter: config.topology.datacenter,
            now,
            clock: HybridClock::default(),
            incarnation: Incarnation(1),
            position: Position(0),
            rows: (0..usize::from(limits::KEYSPACES))
                .map(|number| {
                    let needs = protocols.get(number).map(|protocol| protocol.needs()).unwrap_or_default();
                    let rows = Keyspace::new(config.rules, needs.versions);
                    let table = HandlerTable::of_keyspace(KeyspaceId(number as u8), &config.handlers);
                    if needs.siblings { rows.with_siblings(Arc::new(table)) } else { rows }
                })
                .collect(),
            order: RowOrder::default(),
            applied: Applied::new(id, config.rules),
            intake: Intake::default(),
            transactions: Transactions::default(),
            snapshots: Snapshots::default(),
            senders: others.iter().map(|&d| (d, Sender::default())).collect(),
            paused: BTreeSet::new(),
            receivers: others.iter().map(|&d| (d, Receiver::default())).collect(),
            persistence: Persistence::new(&config.tuning),
            collector: Collector::default(),
            identity: Default::default(),
            contexts: Default::default(),
            dead: Default::default(),
            discarded: Default::default(),
            everywhere: Everywhere::default(),
            replica_waits: Default::default(),
            times: Times::new(&protocols),
            times_rose: false,
            waits: Waits::default(),
            cuts: Cuts::default(),
            reads: ReadCounts::default(),
            outbox: Outbox::default(),
            disk: VecDeque::new(),
            traces: VecDeque::new(),
            stage: Stage::reading(&config.tuning),
            catch_up: None,
            ahead: Default::default(),
            losses: Losses::default(),
            conflict_log: Default::default(),
            branching: branching::Branching::new(id, &config, &protocols),
            early: Default::default(),
            memory_max: config.maxmemory.div_ceil(config.own_partitions().count().max(1) as u64),
            // Numbers of an earlier life must not be taken for ours when they are answered late (trap 54).
            next_number: u64::from(config.boot) << 32,
            refused: BTreeMap::new(),
            config,
            protocols,
        }
    }

    /// Takes one message.
    pub fn on_message(&mut self, now: Now, envelope: Envelope) {
        self.now = now;
        if let (Message::Dead { datacenter, .. }, Stage::Serving | Stage::Regaining(_) | Stage::Joining(_)) =
            (&envelope.message, &self.stage)
        {
            if *datacenter == self.datacenter && self.config.rules.hold(Rule::TheDeadStop) {
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
            Stage::Serving if self.catch_up.is_some() => return self.on_message_catching_up(envelope),
            Stage::Serving => {}
        }
        self.take(envelope);
    }

    /// Takes one message as a partition that has its log.
    fn take(&mut self, mut envelope: Envelope) {
        if self.is_from_the_dead(&envelope) {
            return;
        }
        let from = envelope.from.datacenter();
        if from != self.datacenter && !self.identity.admits(from, &envelope.message) {
            return;
        }
        if !self.take_time(&envelope) {
            match envelope.message {
                Message::StreamEntries { .. } => return self.pause(envelope.from.datacenter()),
                Message::Heartbeat { .. } => return,
                _ => {}
            }
            // What is said in its name tells nothing of the sender's time, which may be taken back (decision 24).
            envelope.time = LogicalTime::ZERO;
        }
        self.dispatch(envelope);
        self.settle();
        self.take_up_waits();
    }

    fn dispatch(&mut self, envelope: Envelope) {
        let from = envelope.from;
        match envelope.message {
            Message::Execute { request, keyspace, context, commands, together } => {
                self.on_execute(from, request, keyspace, context, execute::Batch { commands, together });
            }
            Message::ReadFirst { request, keyspace, commands } => {
                self.on_read_first(from, request, keyspace, commands);
            }
            Message::ReadAt { request, keyspace, commands, at, with } => {
                self.on_read_at(SecondRead { from, request, keyspace, commands, with }, at);
            }
            Message::Transact { request, keyspace, context, parts } => {
                self.on_transact(from, request, keyspace, context, parts);
            }
            Message::AwaitReplicas { request, dependencies, times, datacenters } => {
                self.on_await_replicas(from, request, replicas::Wanted { dependencies, times }, datacenters);
            }
            Message::CountReplicas { request, dependencies, times } => {
                self.on_count_replicas(from, request, &replicas::Wanted { dependencies, times });
            }
            Message::ContextFetch { request, context } => self.on_context_fetch(from, request, context),
            Message::ContextMerge { request, name, context } => {
                self.on_context_merge(from, request, name, context);
            }
            Message::Survey { request } => {
                let figures = self.survey();
                self.send(from, Message::Surveyed { request, figures });
            }
            Message::CheckDependencies { check, dependencies } => {
                self.on_check_dependencies(from, check, dependencies);
            }
            Message::DependenciesMet { check, gone } => self.on_dependencies_met(check, &gone),
            Message::Prepare { transaction, keyspace, part } => {
                self.on_prepare(transaction, keyspace, part);
            }
            Message::Vote { transaction } => self.on_vote(from, envelope.time, transaction),
            Message::Commit { transaction, decision } => self.on_commit(transaction, decision),
            Message::Committed { transaction, replies, seen } => {
                self.on_committed(from, transaction, replies, seen);
            }
            Message::Notify { transaction } => self.on_notify(from, transaction),
            Message::CommitCheck { check, transaction, at } => {
                self.on_commit_check(from, check, transaction, at);
            }
            Message::CommitChecked { check, transaction, decision } => {
                self.on_commit_checked(check, transaction, decision);
            }
            Message::PartsSynced { operations } => self.on_parts_synced(from, operations),
            Message::PartsForgotten { operations } => self.on_parts_forgotten(&operations),
            Message::Abandon { transaction } => self.on_abandon(transaction),
            Message::PartGone { transaction } => self.on_part_gone(from, transaction),
            Message::AwaitPart { transaction } => self.on_await_part(transaction),
            Message::Discard { transaction } => self.on_discard(transaction),
            Message::ForgetVote { transaction } => self.on_forget_vote(transaction, envelope.time),
            Message::Repeat { number } => self.on_repeat(from, number),
            Message::Repeated { number } => self.on_repeated(from, number),
            message => self.dispatch_stream(from, envelope.time, message),
        }
    }

    /// What the same partitions of two datacenters say to each other.
    fn dispatch_stream(&mut self, from: Address, time: LogicalTime, message: Message) {
        match message {
            Message::Regain { after } => self.on_regain(from.datacenter(), after),
            // An answer that comes twice, after a reconnect.
            Message::Regained { .. } => {}
            Message::BranchFetch { keyspace, state, live } => {
                self.on_branch_fetch(from, keyspace, state, &live);
            }
            Message::BranchFetched { keyspace, rebuilt } => {
                self.on_branch_fetched(from.datacenter(), keyspace, rebuilt);
            }
            Message::BranchLacking { keyspace, state, dead } => {
                self.on_branch_lacking(from.datacenter(), keyspace, state, &dead);
            }
            Message::Dead { datacenter, received, time } => {
                self.on_dead(from.datacenter(), datacenter, received, time);
            }
            Message::PassOn { origin, after } => self.on_pass_on(from.datacenter(), origin, after),
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
            message => self.dispatch_times(from, time, message),
        }
    }

    /// What goes by vectors of times.
    fn dispatch_times(&mut self, from: Address, time: LogicalTime, message: Message) {
        match (from, message) {
            (_, Message::ReadCut { request, keyspace, context, parts }) => {
                self.on_read_cut(from, request, keyspace, context, parts);
            }
            (_, Message::ReadSlice { read, keyspace, cut, commands }) => {
                self.on_read_slice(Slice { from, read, keyspace, cut, commands });
            }
            (Address::Partition { partition, .. }, Message::SliceRead { read, values }) => {
                self.on_slice_read(partition, read, values);
            }
            (_, Message::SliceLate { read, missing }) => self.on_slice_late(read, &missing),
            (_, Message::SliceRefused { read, reply }) => self.on_slice_refused(read, reply),
            (_, Message::AwaitTimes { check, times }) => self.on_await_times(from, check, times),
            (Address::Partition { partition, .. }, Message::Heard { received, floor, everywhere }) => {
                self.on_heard(partition, received, floor, &everywhere);
            }
            (_, Message::Stable { received, floor, everywhere }) => {
                self.on_stable(from, &received, &floor, &everywhere);
            }
            (Address::Partition { partition, .. }, Message::Ended { datacenter, whole, doubtful }) => {
                self.on_ended(partition, datacenter, whole, doubtful);
            }
            (_, Message::Lost { datacenter, whole, doubtful }) => self.on_lost(datacenter, whole, doubtful),
            (_, Message::ClockAhead { ahead_ms }) => self.on_clock_ahead(from.datacenter(), ahead_ms),
            (_, Message::AskTime) => self.say_heartbeat(from.datacenter()),
            (_, Message::Heartbeat { end }) => self.on_heartbeat(from.datacenter(), end, time),
            // Answers to sessions never come to a partition; a peer that sends one is wrong.
            _ => self.trace(Trace::Refused { what: "a message that no partition takes" }),
        }
    }

    /// Executes what has become ready, until nothing is.
    pub(crate) fn settle(&mut self) {
        while let Some((at, work)) = self.order.pop_ready() {
            match work {
                Work::Commands(execution) => self.resume_execution(*execution, at),
                Work::LocalPart(transaction) => self.execute_local_part(transaction),
                Work::ReplicatedPart(origin, position) => self.apply_entry(origin, position, at),
                Work::Entry(origin, position) => self.apply_entry(origin, position, at),
            }
        }
    }

    /// The link to another core is up: everything asked over an earlier one is asked again.
    pub fn on_link_up(&mut self, now: Now, datacenter: DatacenterId, owns: &dyn Fn(PartitionId) -> bool) {
        self.now = now;
        if datacenter != self.datacenter && owns(self.id) {
            self.dead.link_up(datacenter);
            match self.stage {
                Stage::Joining(_) => return self.introduce(datacenter, true),
                Stage::Regaining(_) => {
                    self.introduce(datacenter, false);
                    return self.ask_to_regain(datacenter);
                }
                _ => {}
            }
        }
        if !matches!(self.stage, Stage::Serving) {
            return;
        }
        if datacenter == self.datacenter {
            self.ask_slices_again(owns);
            self.ask_to_repeat_again(owns);
            self.say_ended_again();
            if self.config.rules.hold(Rule::AskAgain) {
                self.ask_dependencies_again(owns);
                self.ask_transactions_again(owns);
                self.ask_coordinators_again(owns);
            }
        } else if owns(self.id) {
            self.greet(datacenter);
            self.branching.ask_again();
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
        self.now = now;
        if datacenter != self.datacenter && owns(self.id) {
            self.dead.link_down(datacenter);
            if let Some(sender) = self.senders.get_mut(&datacenter) {
                sender.on_link_down();
            }
            self.identity.on_link_down(datacenter);
        }
        if datacenter == self.datacenter {
            self.forget_asks(&|from| match from {
                Address::Partition { partition, .. } => owns(partition),
                Address::Core { core: other, .. } => other == core,
            });
            let sessions = Address::Core { datacenter, core };
            self.forget_waits_of(sessions);
            self.early.retain(|early| early.from != sessions);
            self.fail_cuts(owns);
        }
    }

    /// Sends once the log as it stands now is durable enough.
    pub(crate) fn send(&mut self, to: Address, message: Message) {
        self.send_at(self.clock.latest(), to, message);
    }

    /// The same, in the name of a time that may lie below the clock.
    pub(crate) fn send_at(&mut self, time: LogicalTime, to: Address, message: Message) {
        self.cover_clock();
        let rests_on =
            if self.config.rules.hold(Rule::OutputsAfterLog) { self.persistence.log_end() } else { 0 };
        let envelope = Envelope { from: self.address(), to, time, message };
        self.outbox.send(rests_on, envelope);
    }

    /// Sends what rests on nothing that was logged, and shows no time: what a partition says that has stopped.
    fn send_refusal(&mut self, to: Address, message: Message) {
        self.outbox.send(0, Envelope { from: self.address(), to, time: LogicalTime::ZERO, message });
    }

    pub(crate) fn send_local(&mut self, partition: PartitionId, message: Message) {
        self.send(Address::Partition { datacenter: self.datacenter, partition }, message);
    }

    pub(crate) fn trace(&mut self, trace: Trace) {
        self.traces.push_back(trace);
    }

    pub(crate) fn address(&self) -> Address {
        Address::Partition { datacenter: self.datacenter, partition: self.id }
    }

    pub(crate) fn protocol(&self, keyspace: KeyspaceId) -> &dyn Protocol {
        self.protocols[usize::from(keyspace.0)].as_ref()
    }

    pub(crate) fn keyspace(&mut self, keyspace: KeyspaceId) -> &mut Keyspace {
        &mut self.rows[usize::from(keyspace.0)]
    }

    /// A number that this partition has not used since it started.
    pub(crate) fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// Moves the clock past a time of this datacenter.
    pub(crate) fn observe(&mut self, time: LogicalTime) {
        if self.config.rules.hold(Rule::StampAboveThePast) {
            self.clock.observe(time);
        }
    }

    /// A new logical time, above every promise made so far (trap 4).
    pub(crate) fn tick(&mut self) -> LogicalTime {
        let now = self.now;
        if self.config.rules.hold(Rule::TickPastPromises) {
            self.clock.tick(now)
        } else {
            self.clock.read(now)
        }
    }

    /// The present time, as a promise: nothing will become visible at or before it that is not visible now.
    pub(crate) fn promise(&mut self) -> LogicalTime {
        self.clock.read(self.now)
    }

    /// Makes what was read the past of a context.
    pub(crate) fn observe_into(&self, keyspace: KeyspaceId, facts: &mut Opaque, sources: &[Source]) {
        let protocol = self.protocol(keyspace);
        if sources.is_empty() || (self.senders.is_empty() && !protocol.needs().versions) {
            return;
        }
        if protocol.remembers_settled() {
            return protocol.observe(facts, sources);
        }
        let (settled, unsettled): (Vec<Source>, Vec<Source>) =
            sources.iter().cloned().partition(|source| self.is_settled(keyspace, &source.operation));
        if !unsettled.is_empty() {
            protocol.observe(facts, &unsettled);
        }
        protocol.pass_over(facts, &settled);
    }

    /// Of what was read, what a write that rests on it must carry.
    pub(crate) fn to_carry(&self, keyspace: KeyspaceId, mut sources: Vec<Source>) -> Vec<Source> {
        if !self.protocol(keyspace).remembers_settled() {
            sources.retain(|source| !self.is_settled(keyspace, &source.operation));
        }
        sources
    }

    /// What a write of this session carries.
    pub(crate) fn dependencies(
        &self,
        keyspace: KeyspaceId,
        context: &mut Opaque,
        observed: &[Source],
    ) -> Opaque {
        let protocol = self.protocol(keyspace);
        protocol.forget(context, &|operation| self.is_settled(keyspace, operation));
        protocol.dependencies(context, observed)
    }

    /// Whether nobody need remember an operation any more.
    fn is_settled(&self, keyspace: KeyspaceId, operation: &OperationId) -> bool {
        match self.protocol(keyspace).needs().keeps_for_reads() {
            true => self.everywhere.contains(operation),
            false => self.is_stable(operation),
        }
    }

    /// Whether every other datacenter has durably applied an operation, as far as this partition knows.
    fn is_stable(&self, operation: &OperationId) -> bool {
        let has = |sender: &Sender| {
            let (_, position) = sender.applied(operation.datacenter);
            position >= operation.position
        };
        let enough = match self.config.rules.hold(Rule::DropWhatAllHave) {
            true => self.living_senders().all(has),
            false => self.senders.values().any(has),
        };
        operation.partition == self.id && enough
    }

    /// What the protocol wants remembered of what was read.
    pub(crate) fn facts_of(&self, keyspace: KeyspaceId, sources: Vec<Source>) -> Opaque {
        let mut facts = Opaque::default();
        self.observe_into(keyspace, &mut facts, &sources);
        self.past_the_losses(keyspace, &mut facts);
        facts
    }
}

#[cfg(test)]
pub(crate) mod tests;
