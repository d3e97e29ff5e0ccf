//! What all sessions of a core share: the configuration, the protocols, the one queue of outputs, timers and counters.
//!
//! It promises that outputs leave in the order in which they were given. It knows no session's state.

use super::SessionOutput;
use super::links::Links;
use crate::links::LinkReport;
use crate::{NodeConfig, Trace};
use ensue_protocol::Protocol;
use ensue_types::{DatacenterId, KeyspaceId, LogicalTime, PartitionId, RequestId, SessionId};
use ensue_wire::{Address, Envelope, Message};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The shared part of a core's sessions.
#[derive(Clone, Debug)]
pub(super) struct Desk {
    pub(super) config: Arc<NodeConfig>,
    pub(super) protocols: Arc<Vec<Box<dyn Protocol>>>,
    pub(super) outputs: VecDeque<SessionOutput>,
    /// When to look at which session; at most one entry a session.
    pub(super) timers: BTreeSet<(u64, SessionId)>,
    /// Who waits for which dependency check.
    pub(super) checks: BTreeMap<u64, SessionId>,
    checks_made: u32,
    /// Sessions that `CLIENT KILL` can name.
    pub(super) connected: BTreeSet<SessionId>,
    /// Sessions to close when the present turn is over.
    pub(super) doomed: Vec<SessionId>,
    pub(super) counters: Counters,
    /// Which cores of the datacenter can be asked.
    pub(super) links: Links,
    /// What is known of this core's links.
    pub(super) link_reports: BTreeMap<DatacenterId, LinkReport>,
    /// The node is shutting down: no further command is begun.
    pub(super) stopping: bool,
}

/// What `INFO stats` counts for a core.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) connections: u64,
    pub(super) commands: u64,
}

impl Desk {
    pub(super) fn new(config: Arc<NodeConfig>, protocols: Arc<Vec<Box<dyn Protocol>>>) -> Desk {
        assert!(!protocols.is_empty(), "there is at least keyspace 0");
        Desk {
            config,
            protocols,
            outputs: VecDeque::new(),
            timers: BTreeSet::new(),
            checks: BTreeMap::new(),
            checks_made: 0,
            connected: BTreeSet::new(),
            doomed: Vec::new(),
            counters: Counters::default(),
            links: Links::default(),
            link_reports: BTreeMap::new(),
            stopping: false,
        }
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

    pub(super) fn end_checks(&mut self, first: u64, count: usize) {
        for check in first..first + count as u64 {
            self.checks.remove(&check);
        }
    }
}
