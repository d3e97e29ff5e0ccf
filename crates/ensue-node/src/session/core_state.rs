//! What all sessions of a core share: the configuration, the protocols, the one queue of outputs, timers and counters.
//!
//! It promises that outputs leave in the order in which they were given. It knows no session's state.

use super::known_scripts::KnownScripts;
use super::links::Links;
use super::output::SessionOutput;
use super::timers::Timers;
use crate::cpu::CpuReport;
use crate::links::LinkReport;
use crate::memory::Memory;
use crate::statistics::{self, Rate, Statistics};
use crate::{NodeConfig, Trace};
use ensue_protocol::Protocol;
use ensue_resp::CommandSpec;
use ensue_types::{
    CoreId, DatacenterId, KeyspaceId, LogicalTime, Now, PartitionId, Reply, RequestId, SessionId,
};
use ensue_wire::{Address, Envelope, Message};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

/// The shared part of a core's sessions.
#[derive(Clone, Debug)]
pub(super) struct CoreState {
    pub(super) config: Arc<NodeConfig>,
    pub(super) protocols: Arc<Vec<Box<dyn Protocol>>>,
    pub(super) timers: Timers,
    pub(super) counters: Counters,
    outputs: VecDeque<SessionOutput>,
    /// Which session waits for which dependency check.
    pub(super) checks: BTreeMap<u64, SessionId>,
    checks_made: u32,
    /// Scripts that every partition of the datacenter was told of.
    pub(super) scripts: KnownScripts,
    /// Sessions that `CLIENT KILL` can name.
    connected: BTreeSet<SessionId>,
    /// Sessions to close when the present turn is over.
    doomed: Vec<SessionId>,
    /// Which cores of the datacenter can be asked.
    links: Links,
    /// What is known of this core's links.
    link_reports: BTreeMap<DatacenterId, LinkReport>,
    pub(super) memory: Memory,
    pub(super) cpu: CpuReport,
    /// The node is shutting down: no further command is begun.
    stopping: bool,
}

/// What `INFO stats` counts for a core.
#[derive(Clone, Default)]
pub(super) struct Counters {
    pub(super) connections: u64,
    pub(super) commands: u64,
    rate: Rate,
    /// Answers that were errors, by their first words.
    errors: BTreeMap<String, u64>,
    /// Of commands that no partition counts.
    pub(super) statistics: Statistics,
    /// Partitions have to count from zero again, too.
    pub(super) reset: bool,
}

/// First words of errors that are counted each by itself; there are fewer.
const ERRORS_MAX: usize = 128;

/// Nothing that happens later depends on the others, so two nodes that differ in them alone are in the same state.
impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counters { connections, commands, .. } = self;
        f.debug_struct("Counters").field("connections", connections).field("commands", commands).finish()
    }
}

impl Counters {
    /// A turn begins.
    pub(super) fn on_turn(&mut self, now: Now) {
        self.rate.observe(now.monotonic_us, self.commands);
    }

    /// A command is not executed.
    pub(super) fn on_rejected(&mut self, spec: Option<&'static CommandSpec>) {
        if let Some(spec) = spec {
            self.statistics.count_rejected(spec, None);
        }
    }

    /// An answer leaves.
    pub(super) fn on_reply(&mut self, reply: &Reply) {
        let Reply::Error(words) = reply else { return };
        let first = words.split(' ').next().unwrap_or_default();
        if let Some(count) = self.errors.get_mut(first) {
            *count += 1;
        } else if self.errors.len() < ERRORS_MAX {
            self.errors.insert(first.to_owned(), 1);
        }
    }

    /// The metrics, by name; all can be added up over cores.
    pub(super) fn metrics(&mut self, now: Now) -> Vec<(String, i64)> {
        let mut metrics = self.statistics.metrics();
        let mut add = |name: String, value: u64| metrics.push((name, value as i64));
        add("total_connections_received".to_owned(), self.connections);
        add("total_commands_processed".to_owned(), self.commands);
        let rate = self.rate.observe(now.monotonic_us, self.commands);
        add("instantaneous_ops_per_sec".to_owned(), rate);
        add("total_error_replies".to_owned(), self.errors.values().sum());
        for (word, count) in &self.errors {
            add(format!("{}{word}", statistics::ERROR), *count);
        }
        metrics
    }
}

impl CoreState {
    pub(super) fn new(config: Arc<NodeConfig>, protocols: Arc<Vec<Box<dyn Protocol>>>) -> CoreState {
        assert!(!protocols.is_empty(), "there is at least keyspace 0");
        CoreState {
            config,
            protocols,
            timers: Timers::default(),
            counters: Counters::default(),
            outputs: VecDeque::new(),
            checks: BTreeMap::new(),
            checks_made: 0,
            scripts: KnownScripts::default(),
            connected: BTreeSet::new(),
            doomed: Vec::new(),
            links: Links::default(),
            link_reports: BTreeMap::new(),
            memory: Memory::default(),
            cpu: CpuReport::default(),
            stopping: false,
        }
    }

    pub(super) fn on_connected(&mut self, session: SessionId) {
        self.counters.connections += 1;
        self.connected.insert(session);
    }

    pub(super) fn on_gone(&mut self, session: SessionId) {
        self.connected.remove(&session);
    }

    pub(super) fn on_link_up(&mut self, core: CoreId) {
        // It may have been started anew, and know no script.
        self.scripts.forget();
        self.links.on_up(core);
    }

    pub(super) fn on_link_down(&mut self, core: CoreId) {
        self.links.on_down(core);
    }

    pub(super) fn on_link_report(&mut self, report: LinkReport) {
        self.link_reports.insert(report.datacenter, report);
    }

    pub(super) fn on_shutdown(&mut self) {
        self.stopping = true;
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping
    }

    pub(super) fn next_output(&mut self) -> Option<SessionOutput> {
        self.outputs.pop_front()
    }

    /// How many clients are connected.
    pub(super) fn clients(&self) -> usize {
        self.connected.len()
    }

    pub(super) fn link_reports(&self) -> impl Iterator<Item = &LinkReport> {
        self.link_reports.values()
    }

    /// Closes a connection when the present turn is over; false if there is none of this name.
    pub(super) fn close_later(&mut self, session: SessionId) -> bool {
        let connected = self.connected.contains(&session);
        if connected {
            self.doomed.push(session);
        }
        connected
    }

    pub(super) fn next_doomed(&mut self) -> Option<SessionId> {
        self.doomed.pop()
    }

    /// Whether a core of the datacenter can be asked.
    pub(super) fn reaches_core(&self, core: CoreId) -> bool {
        self.links.reaches(self.config.core, core)
    }

    /// Whether a partition of the datacenter can be asked.
    pub(super) fn reaches(&self, partition: PartitionId) -> bool {
        self.reaches_core(self.owner(partition))
    }

    /// The core that owns a partition of the datacenter.
    pub(super) fn owner(&self, partition: PartitionId) -> CoreId {
        let topology = &self.config.topology;
        topology.owner(topology.datacenter, partition)
    }

    /// Where answers to this core's sessions go.
    pub(super) fn address(&self) -> Address {
        Address::Core { datacenter: self.config.topology.datacenter, core: self.config.core }
    }

    pub(super) fn partition_address(&self, partition: PartitionId) -> Address {
        Address::Partition { datacenter: self.config.topology.datacenter, partition }
    }

    pub(super) fn protocol(&self, keyspace: KeyspaceId) -> &dyn Protocol {
        self.protocols[usize::from(keyspace.0)].as_ref()
    }

    pub(super) fn partitions(&self) -> u16 {
        self.config.topology.partitions
    }

    /// Over how many partitions, from the first on, the keys of a keyspace are spread.
    pub(super) fn spread(&self, keyspace: KeyspaceId) -> u16 {
        if self.protocol(keyspace).needs().one_stream { 1 } else { self.partitions() }
    }

    pub(super) fn request(&self, session: SessionId, sequence: u64) -> RequestId {
        RequestId { core: self.config.core, boot: self.config.boot, session, sequence }
    }

    pub(super) fn send(&mut self, to: Address, time: LogicalTime, message: Message) {
        let envelope = Envelope { from: self.address(), to, time, message };
        self.outputs.push_back(SessionOutput::Send(envelope));
    }

    pub(super) fn output(&mut self, output: SessionOutput) {
        self.outputs.push_back(output);
    }

    pub(super) fn trace(&mut self, trace: Trace) {
        self.outputs.push_back(SessionOutput::Trace(trace));
    }

    /// Numbers for `count` dependency checks of a session, consecutive, never used before in this or an earlier run.
    pub(super) fn begin_checks(&mut self, session: SessionId, count: u32) -> u64 {
        // Four billion checks ago the first ones were answered, or given up.
        let begin = if self.checks_made.checked_add(count).is_some() { self.checks_made } else { 0 };
        self.checks_made = begin + count;
        let first = u64::from(self.config.boot) << 32 | u64::from(begin);
        for check in first..first + u64::from(count) {
            self.checks.insert(check, session);
        }
        first
    }

    /// The session that waits for a dependency check.
    pub(super) fn waits_for_check(&self, check: u64) -> Option<SessionId> {
        self.checks.get(&check).copied()
    }

    pub(super) fn end_checks(&mut self, first: u64, count: usize) {
        for check in first..first + count as u64 {
            self.checks.remove(&check);
        }
    }
}
