//! What every part may use while it takes an input: who this partition is, the time, the log, and the ways out.
//!
//! - **In**: nothing by itself. The conductor sets `now` for each input, and whether the clock's bound is to be kept.
//! - **Out**: messages, disk operations and traces, each in the order in which it was said. A message rests on the log
//!   as it stands when it is sent, and leaves when that is durable enough.
//!
//! No part is known here.

pub(in crate::partition) mod admission;
pub(in crate::partition) mod commands;
pub(in crate::partition) mod disk;
pub(in crate::partition) mod homes;
pub(in crate::partition) mod listing;
pub(in crate::partition) mod refusals;
pub(in crate::partition) mod saving;
pub(in crate::partition) mod words;

use crate::config::{NodeConfig, Settings};
use crate::partition::journal::Journal;
use crate::partition::journal::outbox::Outbox;
use crate::partition::order::Moment;
use crate::statistics::Statistics;
use crate::trace::{Trace, TransactionStep};
use ensue_protocol::Protocol;
use ensue_store::disk::DiskOp;
use ensue_store::record::Record;
use ensue_types::{
    DatacenterId, HybridClock, Incarnation, KeyspaceId, LogicalTime, Now, OperationId, PartitionId, Position,
    Rule, Stamp,
};
use ensue_wire::{Address, CoreName, Envelope, Message, PeerStage};
use homes::Homes;
use saving::Saving;
use std::collections::VecDeque;
use std::sync::Arc;

/// The clock's bound is moved when it is as near as this.
const CLOCK_MARGIN_MS: u64 = 8;

/// The protocols of all keyspaces, by keyspace number.
pub type Protocols = Arc<Vec<Box<dyn Protocol>>>;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Cx {
    pub(in crate::partition) id: PartitionId,
    pub(in crate::partition) datacenter: DatacenterId,
    pub(in crate::partition) config: Arc<NodeConfig>,
    pub(in crate::partition) protocols: Protocols,
    pub(crate) now: Now,
    pub(in crate::partition) clock: HybridClock,
    pub(in crate::partition) incarnation: Incarnation,
    /// The end of this partition's own stream.
    pub(in crate::partition) position: Position,
    pub(in crate::partition) journal: Journal,
    pub(crate) outbox: Outbox,
    pub(crate) disk_ops: VecDeque<DiskOp>,
    pub(crate) traces: VecDeque<Trace>,
    pub(crate) statistics: Statistics,
    /// Which datacenter is the home of which keys.
    pub(in crate::partition) homes: Homes,
    /// Checkpoints that an operator asks for.
    pub(in crate::partition) saving: Saving,
    /// What other datacenters are told of what this partition is doing.
    stage: PeerStage,
    /// The partition serves: no time is shown that the log does not bound.
    bounds_the_clock: bool,
    /// Rows are still being written aside.
    is_checkpointing: bool,
    /// The disk has no room: writes are refused, and streams wait, until there is a reserve again.
    disk_is_full: bool,
    /// A core of another datacenter that this one has not been linked with since its start, if there is one: whether
    /// that knows this datacenter is not known.
    pub(crate) unmet: Option<CoreName>,
    /// The parameter of this name.
    stream_node_max_entries: usize,
    next_number: u64,
}

impl Cx {
    pub(crate) fn new(id: PartitionId, config: Arc<NodeConfig>, protocols: Protocols, now: Now) -> Cx {
        Cx {
            id,
            datacenter: config.topology.datacenter,
            now,
            clock: HybridClock::default(),
            incarnation: Incarnation(1),
            position: Position(0),
            journal: Journal::new(&config.tuning),
            outbox: Outbox::default(),
            disk_ops: VecDeque::new(),
            traces: VecDeque::new(),
            statistics: Statistics::default(),
            homes: Homes::new(config.topology.datacenter, &config.homes),
            saving: Saving::new(now),
            stage: PeerStage::Serving,
            bounds_the_clock: false,
            is_checkpointing: false,
            disk_is_full: false,
            unmet: None,
            stream_node_max_entries: 0,
            // Numbers of an earlier life must not be taken for ours when they are answered late (trap 54).
            next_number: u64::from(config.boot) << 32,
            config,
            protocols,
        }
    }

    pub(super) fn adopt(&mut self, settings: &Settings<'_>) {
        self.stream_node_max_entries = settings.stream_node_entries;
    }

    pub(super) fn stream_node_max_entries(&self) -> usize {
        self.stream_node_max_entries
    }

    /// How many partitions there are.
    pub(crate) fn partitions(&self) -> u16 {
        self.config.topology.partitions
    }

    pub(crate) fn trace(&mut self, trace: Trace) {
        self.traces.push_back(trace);
    }

    pub(crate) fn address(&self) -> Address {
        Address::Partition { datacenter: self.datacenter, partition: self.id }
    }

    /// Goes on for a partition that begins anew: with what it has yet to say, to do and to count, and with what would
    /// be mistaken for something else if it came twice.
    pub(super) fn take_over(&mut self, before: &mut Cx) {
        self.outbox = std::mem::take(&mut before.outbox);
        self.disk_ops = std::mem::take(&mut before.disk_ops);
        self.traces = std::mem::take(&mut before.traces);
        self.statistics = std::mem::take(&mut before.statistics);
        self.next_number = before.next_number;
        self.stream_node_max_entries = before.stream_node_max_entries;
        self.unmet = before.unmet;
        self.saving = before.saving.clone();
        self.clock = before.clock;
    }

    /// Sends once the log as it stands now is durable enough.
    pub(crate) fn send(&mut self, to: Address, message: Message) {
        self.send_at(self.clock.latest(), to, message);
    }

    /// The same, in the name of a time that may lie below the clock.
    pub(super) fn send_at(&mut self, time: LogicalTime, to: Address, message: Message) {
        self.cover_clock();
        let rests_on = if Rule::OutputsAfterLog.holds() { self.journal.log_end() } else { 0 };
        let envelope = Envelope { from: self.address(), to, time, message };
        self.outbox.send(rests_on, envelope);
    }

    pub(crate) fn send_local(&mut self, partition: PartitionId, message: Message) {
        self.send(Address::Partition { datacenter: self.datacenter, partition }, message);
    }

    /// Sends what rests on nothing that was logged, and shows no time: what a partition says that has stopped.
    pub(super) fn send_refusal(&mut self, to: Address, message: Message) {
        self.outbox.send(0, Envelope { from: self.address(), to, time: LogicalTime::ZERO, message });
    }

    /// The same, before everything that waits for the log: what a partition says whose log waits for a script.
    pub(crate) fn send_ahead(&mut self, to: Address, message: Message) {
        self.outbox.send_ahead(Envelope { from: self.address(), to, time: LogicalTime::ZERO, message });
    }

    pub(crate) fn protocol(&self, keyspace: KeyspaceId) -> &dyn Protocol {
        self.protocols[usize::from(keyspace.0)].as_ref()
    }

    /// What other datacenters are told of what this partition is doing.
    pub(super) fn stage(&self) -> PeerStage {
        self.stage
    }

    /// The partition does something else from here on. While it serves, no time is shown that the log does not bound.
    pub(super) fn enter(&mut self, stage: PeerStage, serves: bool) {
        self.stage = stage;
        self.bounds_the_clock = serves;
    }

    /// Whether rows are still being written aside.
    pub(super) fn is_checkpointing(&self) -> bool {
        self.is_checkpointing
    }

    pub(super) fn note_checkpointing(&mut self, is_checkpointing: bool) {
        self.is_checkpointing = is_checkpointing;
    }

    /// Whether the disk had no room, and there is no reserve again.
    pub(super) fn disk_is_full(&self) -> bool {
        self.disk_is_full
    }

    pub(super) fn note_disk_full(&mut self, is_full: bool) {
        self.disk_is_full = is_full;
    }

    /// Whether writes are refused and streams wait for room on the disk.
    pub(super) fn is_out_of_room(&self) -> bool {
        self.disk_is_full && Rule::RefuseWhenFull.holds()
    }

    /// A number that this partition has not used since it started.
    pub(crate) fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// Moves the clock past a time of this datacenter.
    pub(crate) fn advance_clock(&mut self, time: LogicalTime) {
        if Rule::StampAboveThePast.holds() {
            self.clock.observe(time);
        }
    }

    /// Moves the clock past a time of another datacenter, unless it is absurdly far ahead (trap 31).
    pub(super) fn advance_clock_to_peer(&mut self, time: LogicalTime) -> bool {
        if self.is_too_far_ahead(time) {
            self.trace(Trace::Refused { what: "a time too far ahead of this machine's clock" });
            return false;
        }
        self.advance_clock(time);
        true
    }

    fn is_too_far_ahead(&self, time: LogicalTime) -> bool {
        time.ms() > self.now.wall_ms + self.config.tuning.clock_ahead_ms_max
    }

    /// A new logical time, above every promise made so far (trap 4).
    pub(crate) fn tick(&mut self) -> LogicalTime {
        let now = self.now;
        if Rule::TickPastPromises.holds() { self.clock.tick(now) } else { self.clock.read(now) }
    }

    /// The present time, as a promise: nothing will become visible at or before it that is not visible now.
    pub(super) fn promise(&mut self) -> LogicalTime {
        self.clock.read(self.now)
    }

    /// A moment that this partition drew.
    pub(crate) fn moment(&self, time: LogicalTime) -> Moment {
        Moment { time, drawn_by: self.id }
    }

    pub(crate) fn stamp(&self, time: LogicalTime) -> Stamp {
        Stamp { time, datacenter: self.datacenter, partition: self.id }
    }

    /// The identity of the entry that the next write would make.
    pub(crate) fn next_operation(&self) -> OperationId {
        OperationId {
            datacenter: self.datacenter,
            incarnation: self.incarnation,
            partition: self.id,
            position: self.position.next(),
        }
    }

    /// The name of the entry at this place of a stream.
    pub(super) fn name_at(&self, origin: DatacenterId, position: Position) -> OperationId {
        OperationId { datacenter: origin, incarnation: position.incarnation(), partition: self.id, position }
    }

    pub(crate) fn name_of(&self, datacenter: DatacenterId) -> String {
        self.config.topology.name_of(datacenter)
    }

    /// The same within a turn, where the wall or another datacenter has moved the clock past its bound at once: what is
    /// said now rests on the next bound.
    fn cover_clock(&mut self) {
        if self.bounds_the_clock && self.clock.latest().ms() >= self.journal.bound().ms() {
            self.bound_clock();
        }
    }

    /// The clock shows no time that a restart could show again (trap 30).
    pub(super) fn bound_clock(&mut self) {
        let latest_ms = self.clock.latest().ms();
        if latest_ms + CLOCK_MARGIN_MS <= self.journal.bound().ms() {
            return;
        }
        // A clock ahead of the wall moves only by counting: little is enough for it, and a partition that restarts
        // again and again must not run away from the wall.
        let ahead_ms = self.now.wall_ms + self.config.tuning.clock_persist_ahead_ms;
        let bound = LogicalTime::from_ms(ahead_ms.max(latest_ms + 2 * CLOCK_MARGIN_MS));
        self.journal.raise_bound(bound);
        self.log_bound();
    }

    pub(super) fn log_bound(&mut self) {
        let bound = self.journal.bound();
        self.journal.log(&Record::ClockBound { bound });
    }

    /// The name of the `number`th local transaction that this partition coordinates.
    pub(crate) fn local_transaction(&self, number: u64) -> OperationId {
        OperationId {
            datacenter: self.datacenter,
            incarnation: self.incarnation,
            partition: self.id,
            position: Position(number),
        }
    }

    /// Where the `Transaction` entry of a replicated transaction stands in its origin's stream.
    pub(crate) fn is_replicated(&self, transaction: OperationId) -> Option<DatacenterId> {
        (transaction.datacenter != self.datacenter).then_some(transaction.datacenter)
    }

    /// Tells the simulator where a transaction stands.
    pub(crate) fn trace_step(&mut self, transaction: OperationId, step: TransactionStep) {
        self.trace(Trace::TransactionStep { partition: self.id, transaction, step });
    }
}

/// The partition that coordinates a transaction named by this id, in this datacenter.
pub(crate) fn coordinator_of(transaction: OperationId) -> PartitionId {
    transaction.partition
}

impl Cx {
    /// By how many milliseconds the logical time here is ahead of this machine's clock.
    pub(in crate::partition) fn own_ahead_ms(&self) -> u64 {
        self.clock.latest().ms().saturating_sub(self.now.wall_ms)
    }
}
