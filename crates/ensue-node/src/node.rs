//! One core's node: its sessions, its partitions, and the one door for inputs and outputs.
//!
//! A message to a partition or a core goes the same way wherever that is: `router` finds the core, and what is ours
//! comes back in by the same door. An input is run until nothing inside has anything left to say to anything inside.

use crate::admission::Admission;
use crate::config::{NodeConfig, Settings};
use crate::gate::Gate;
use crate::held::Holding;
use crate::partition::{Partition, Protocols};
use crate::replicas::ReplicaFigures;
use crate::router;
use crate::session::{BUSY_AFTER_MS, REPLICAS_LAG_MAX, REPLICAS_MIN, SessionOutput, Sessions};
use crate::{Input, Output, Trace};
use ensue_protocol::Options;
use ensue_types::{CoreId, DatacenterId, Now, PartitionId, Rule};
use ensue_wire::{Address, CoreName, Envelope};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The logic of one core: a value that can be copied, and whose `Debug` text tells all of its state.
#[derive(Clone, Debug)]
pub struct Node {
    config: Arc<NodeConfig>,
    protocols: Protocols,
    sessions: Sessions,
    partitions: BTreeMap<PartitionId, Holding>,
    /// What replicated partitions have said and may not leave yet.
    gates: BTreeMap<PartitionId, Gate>,
    /// The cores that can be told something; those of this process, too.
    linked: BTreeSet<CoreName>,
    /// The cores that have been linked since the start: they know of this one.
    met: BTreeSet<CoreName>,
    now: Now,
    inbox: VecDeque<Envelope>,
    outputs: VecDeque<Output>,
    /// When the first input of the present turn was given.
    turn_since_us: Option<u64>,
    stopping: bool,
    stopped: bool,
}

/// Messages inside a core that one input may lead to: far above what a link's return with everything outstanding makes.
const DELIVERED_MAX: u64 = 10_000_000;

/// The configuration names a protocol that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("keyspace {keyspace}: there is no protocol '{name}'")]
pub struct UnknownProtocol {
    pub keyspace: usize,
    pub name: String,
}

/// The protocols that a configuration names, by keyspace.
pub fn protocols(config: &NodeConfig) -> Result<Protocols, UnknownProtocol> {
    let options = options(config);
    let each = config.protocols.iter().enumerate().map(|(keyspace, name)| {
        let registration = ensue_protocol::find_in(config.registry, name);
        let registration = registration.ok_or_else(|| UnknownProtocol { keyspace, name: name.clone() })?;
        Ok((registration.make)(options))
    });
    Ok(Arc::new(each.collect::<Result<Vec<_>, _>>()?))
}

/// What the protocols are told of the configuration.
fn options(config: &NodeConfig) -> Options {
    let tuning = &config.tuning;
    Options {
        context_operations_max: tuning.context_operations_max,
        datacenters: config.topology.datacenters.len(),
        dependency_cleaning: tuning.dependency_cleaning,
        heartbeat_ms: tuning.heartbeat_interval_ms,
        stabilization_ms: tuning.stabilization_interval_ms,
        block_ms: tuning.block_ms_max,
        request_timeout_ms: tuning.request_timeout_ms,
        snapshot_age_ms: tuning.read_transaction_timeout_ms,
    }
}

impl Node {
    /// A node that has not read its disks yet; its first outputs are the disk operations that do.
    pub fn new(config: NodeConfig, now: Now) -> Result<Node, UnknownProtocol> {
        let protocols = protocols(&config)?;
        let config = Arc::new(config);
        let owned: Vec<PartitionId> = config.own_partitions().collect();
        let partition = |id| (id, Holding::new(Partition::new(id, config.clone(), protocols.clone(), now)));
        let mut node = Node {
            sessions: Sessions::new(config.clone(), protocols.clone()),
            partitions: owned.into_iter().map(partition).collect(),
            gates: BTreeMap::new(),
            linked: BTreeSet::new(),
            met: BTreeSet::new(),
            now,
            inbox: VecDeque::new(),
            outputs: VecDeque::new(),
            turn_since_us: None,
            stopping: false,
            stopped: false,
            config: config.clone(),
            protocols,
        };
        node.adopt_parameters(false);
        node.report_unmet();
        node.partitions.values_mut().for_each(|partition| partition.start());
        node.gather();
        Ok(node)
    }

    /// Takes one input and runs it to completion.
    pub fn on_input(&mut self, now: Now, input: Input) {
        self.now = now;
        let turn_since_us = *self.turn_since_us.get_or_insert(now.monotonic_us);
        match input {
            Input::ClientConnected { session, address, local_address } => {
                self.sessions.on_connected(now, session, address, local_address);
            }
            Input::VisitorConnected { session, address, local_address } => {
                self.sessions.on_visitor(now, session, [address, local_address]);
            }
            Input::ClientCommands { session, commands } => self.sessions.on_commands(now, session, commands),
            Input::ClientBroke { session, error } => self.sessions.on_broke(now, session, error),
            Input::ClientEnded { session } => self.sessions.on_ended(now, session),
            Input::ClientGone { session } => self.sessions.on_gone(now, session),
            Input::Observe { session, scope } => self.sessions.on_observe(now, session, scope),
            Input::ErrandDone { session, number, done } => {
                self.sessions.on_errand_done(now, session, number, done);
            }
            Input::Message(envelope) | Input::PeerMessage { envelope, .. } => self.admit(envelope),
            Input::LinkUp { datacenter, core } => self.on_link_up(now, datacenter, core),
            Input::LinkDown { datacenter, core } => self.on_link_down(now, datacenter, core),
            Input::Lead { partition, term, epoch } => self.lead(now, partition, term, epoch),
            Input::Follow { partition } => self.follow(now, partition),
            Input::Owner { datacenter, partition, core, term } => {
                self.on_owner(now, CoreName { datacenter, core }, partition, term);
            }
            Input::Confirmed { partition, number } => {
                if let Some(gate) = self.gates.get_mut(&partition) {
                    gate.on_answer(number);
                }
            }
            Input::LinkReport(report) => self.sessions.on_link_report(report),
            Input::MemoryReport(report) => self.sessions.on_memory_report(report),
            Input::CpuReport(report) => self.sessions.on_cpu_report(report),
            Input::Dropped(dropped) => self.sessions.on_dropped(dropped),
            Input::AuditLost(records) => self.sessions.on_audit_lost(records),
            Input::ScrubReport(report) => self.sessions.on_scrub_report(report),
            Input::Disk { partition, done } => {
                if let Some(partition) = self.partitions.get_mut(&partition) {
                    partition.on_disk(now, done);
                }
            }
            Input::Timer => {
                self.sessions.on_timer(now);
                self.partitions.values_mut().for_each(|partition| partition.on_timer(now));
                self.note_busy();
                self.forget_flushed_scripts();
            }
            Input::TurnEnd => {
                self.turn_since_us = None;
                self.charge(now.monotonic_us.saturating_sub(turn_since_us));
                self.partitions.values_mut().for_each(Holding::on_turn_end);
                let is_short = |partition: &Holding| partition.keyspaces.memory_refusal().is_some();
                self.sessions.set_short_of_memory(self.partitions.values().any(is_short));
            }
            Input::Shutdown => self.shut_down(),
        }
        self.run(now);
    }

    /// The inputs of a turn took so long, for the commands that were executed.
    fn charge(&mut self, took_us: u64) {
        let of_partitions = self.partitions.values().map(|partition| partition.cx.statistics.recent());
        let commands = of_partitions.sum::<u64>() + self.sessions.statistics().recent();
        if commands == 0 {
            return;
        }
        for partition in self.partitions.values_mut() {
            partition.cx.statistics.charge(took_us, commands);
        }
        self.sessions.statistics().charge(took_us, commands);
        self.sessions.on_turn_end(self.now, took_us / commands);
    }

    /// Panics if a partition contradicts itself, or what sessions share. It walks every row.
    pub fn check_invariants(&self) {
        self.sessions.check_invariants();
        self.partitions.values().for_each(Holding::check_invariants);
    }

    /// The next output, oldest first; drain until empty after each input.
    pub fn next_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Whether a partition says this that another core owns by now: its former owner's links end with its time, and
    /// what is still under way on them is of a past that nobody can tell from the present.
    pub(crate) fn is_of_a_former_owner(&self, peer: CoreName, envelope: &Envelope) -> bool {
        let Address::Partition { datacenter, partition } = envelope.from else { return false };
        let (topology, placement) = (&self.config.topology, self.sessions.placement());
        topology.is_replicated(datacenter, partition)
            && placement.has_other_owner(datacenter, partition, peer.core)
            && Rule::HearOnlyTheOwner.holds()
    }

    /// What the replicas on this core are to their groups.
    pub(crate) fn on_replica_figures(&mut self, figures: ReplicaFigures) {
        self.sessions.on_replica_figures(figures);
    }

    /// The core that owns a replicated partition of this datacenter, if somebody is known to.
    pub(crate) fn owner(&self, partition: PartitionId) -> Option<CoreId> {
        let (topology, placement) = (&self.config.topology, self.sessions.placement());
        let is_owned = placement.is_owned(topology, topology.datacenter, partition);
        is_owned.then(|| placement.owner(topology, topology.datacenter, partition))
    }

    /// When the next `Input::Timer` is due, in microseconds of `Now::monotonic_us`.
    pub fn next_timer(&self) -> Option<u64> {
        let partitions = self.partitions.values().filter_map(Holding::next_timer);
        partitions.chain(self.sessions.next_timer()).min()
    }

    /// Delivers messages inside until there are none.
    fn run(&mut self, now: Now) {
        self.gather();
        let mut delivered = 0;
        while let Some(envelope) = self.inbox.pop_front() {
            delivered += 1;
            assert!(delivered < DELIVERED_MAX, "one input makes the partitions of a core talk for ever");
            match envelope.to {
                Address::Partition { partition, .. } => {
                    self.deliver(now, partition, envelope);
                }
                Address::Core { .. } => {
                    self.sessions.on_message(now, envelope);
                    self.gather_from_sessions();
                }
            }
            if self.sessions.take_reset() {
                self.partitions.values_mut().for_each(|partition| partition.cx.statistics.reset());
            }
            if self.sessions.take_parameters_changed() {
                self.adopt_parameters(true);
            }
            self.finish_stopping();
        }
        self.sessions.on_quiet();
        self.gather_from_sessions();
    }

    /// Gives the partitions the parameters that are theirs. Those that are owned here share the memory of this core.
    /// They evict what is beyond a share that an operator has lowered, and not what is beyond one that is smaller
    /// because this core owns a partition more.
    fn adopt_parameters(&mut self, are_changed: bool) {
        let parameters = self.sessions.parameters();
        let number = |name| u64::try_from(parameters.number(name)).unwrap_or(0);
        let core_memory = number("maxmemory").div_ceil(u64::from(self.config.node_cores.max(1)));
        let settings = Settings {
            memory: core_memory.div_ceil(self.partitions.len().max(1) as u64),
            shrinks: are_changed,
            policy: parameters.value("maxmemory-policy"),
            stream_node_entries: usize::try_from(number("stream-node-max-entries")).unwrap_or(usize::MAX),
            followers: number(REPLICAS_MIN),
            follower_lag_s: number(REPLICAS_LAG_MAX),
            busy_after_ms: number(BUSY_AFTER_MS),
            expires_actively: self.sessions.expires_actively(),
        };
        self.partitions.values_mut().for_each(|partition| partition.adopt(&settings));
    }

    /// If scripts run for long in all partitions of the datacenter, and all are here, sessions refuse what they would
    /// answer themselves, too: as a server of Redis does, which has one partition.
    fn note_busy(&mut self) {
        let has_all = self.partitions.len() == usize::from(self.config.topology.partitions);
        let mut refusals =
            self.partitions.values().map(|partition| partition.keyspaces.busy_refusal(self.now));
        let words = if has_all { refusals.try_fold(None, |_, words| words.map(Some)) } else { None };
        self.sessions.set_busy(words.flatten());
    }

    /// Nobody but the partition itself has anything to say after that.
    fn deliver(&mut self, now: Now, id: PartitionId, envelope: Envelope) {
        let Some(partition) = self.partitions.get_mut(&id) else { return };
        partition.on_message(now, envelope);
        let is_flushed = partition.keyspaces.take_scripts_flushed();
        let mut released = Vec::new();
        gather_from(id, partition, &mut self.outputs, &mut released);
        self.release(released);
        if is_flushed {
            self.sessions.forget_scripts();
        }
        if self.sessions.is_busy() {
            self.note_busy();
        }
    }

    /// Scripts may have been flushed by what was held back.
    fn forget_flushed_scripts(&mut self) {
        let flushed =
            self.partitions.values_mut().filter_map(|one| one.keyspaces.take_scripts_flushed().then_some(()));
        if flushed.count() > 0 {
            self.sessions.forget_scripts();
        }
    }

    /// What partitions say goes its way, once it may.
    fn release(&mut self, released: Vec<(PartitionId, Envelope)>) {
        for (id, envelope) in released {
            match self.gates.get_mut(&id) {
                Some(gate) => gate.hold(envelope),
                None => self.route(envelope),
            }
        }
        let mut free = Vec::new();
        for (&partition, gate) in &mut self.gates {
            free.extend(std::iter::from_fn(|| gate.next()));
            let question = gate.next_question();
            self.outputs.extend(question.map(|number| Output::Confirm { partition, number }));
        }
        free.into_iter().for_each(|envelope| self.route(envelope));
    }

    /// Collects what sessions and partitions have said.
    fn gather(&mut self) {
        self.gather_from_sessions();
        let mut released = Vec::new();
        for (&id, partition) in &mut self.partitions {
            gather_from(id, partition, &mut self.outputs, &mut released);
        }
        self.release(released);
        self.finish_stopping();
    }

    fn gather_from_sessions(&mut self) {
        while let Some(output) = self.sessions.next_output() {
            match output {
                SessionOutput::Reply { session, bytes, answered, wants_turn } => {
                    self.outputs.push_back(Output::Reply { session, bytes, answered, wants_turn });
                }
                SessionOutput::Push { session, bytes } => {
                    self.outputs.push_back(Output::Push { session, bytes });
                }
                SessionOutput::Disconnect { session } => {
                    self.outputs.push_back(Output::Disconnect { session })
                }
                SessionOutput::Observed { session, observation } => {
                    self.outputs.push_back(Output::Observed { session, observation });
                }
                SessionOutput::Openness { is_open } => self.outputs.push_back(Output::Openness { is_open }),
                SessionOutput::Errand { session, number, errand } => {
                    self.outputs.push_back(Output::Errand { session, number, errand });
                }
                SessionOutput::Configure(parameters) => {
                    self.outputs.push_back(Output::Configure(parameters));
                }
                SessionOutput::Audit(audit) => self.outputs.push_back(Output::Audit(audit)),
                SessionOutput::Trace(trace) => self.outputs.push_back(Output::Trace(trace)),
                SessionOutput::Send(envelope) => self.route(envelope),
            }
        }
    }

    /// What another core says comes in by this door, and by no other. What is refused is counted where its sender is
    /// known.
    fn admit(&mut self, envelope: Envelope) {
        let admission = Admission { topology: &self.config.topology, protocols: &self.protocols };
        let Err(what) = admission.judge(self.config.core, &envelope) else {
            return self.inbox.push_back(envelope);
        };
        self.outputs.push_back(Output::Trace(Trace::Refused { what }));
        if let Address::Partition { partition, .. } = envelope.to {
            if let Some(partition) = self.partitions.get_mut(&partition) {
                partition.count_refused(envelope.from.datacenter());
            }
        }
    }

    /// Ours comes back in; the rest goes to the core that owns it.
    fn route(&mut self, envelope: Envelope) {
        let Some((datacenter, core)) = router::locate(&self.config, self.sessions.placement(), envelope.to)
        else {
            let what = "a message to a place that the cluster does not have";
            return self.outputs.push_back(Output::Trace(Trace::Refused { what }));
        };
        if datacenter == self.config.topology.datacenter && core == self.config.core {
            self.inbox.push_back(envelope);
        } else {
            self.outputs.push_back(Output::Send { datacenter, core, envelope });
        }
    }

    fn on_link_up(&mut self, now: Now, datacenter: DatacenterId, core: CoreId) {
        self.linked.insert(CoreName { datacenter, core });
        if self.met.insert(CoreName { datacenter, core }) {
            self.report_unmet();
        }
        let (topology, placement) = (self.config.topology.clone(), self.sessions.placement().clone());
        let owns = |partition: PartitionId| placement.owner(&topology, datacenter, partition) == core;
        if datacenter == topology.datacenter {
            self.sessions.on_link_up(core);
        }
        self.sessions.on_peer_up(CoreName { datacenter, core });
        self.partitions.values_mut().for_each(|partition| partition.on_link_up(now, datacenter, &owns));
    }

    /// A partition of a datacenter that is new waits until every core of all others knows it.
    fn report_unmet(&mut self) {
        let topology = &self.config.topology;
        let cores = topology.others().flat_map(|datacenter| {
            let cores = topology.datacenters[usize::from(datacenter.0)].cores;
            (0..cores).map(move |core| CoreName { datacenter, core: CoreId(core) })
        });
        let unmet = cores.into_iter().find(|core| !self.met.contains(core));
        self.partitions.values_mut().for_each(|partition| partition.cx.unmet = unmet);
    }

    fn on_link_down(&mut self, now: Now, datacenter: DatacenterId, core: CoreId) {
        self.linked.remove(&CoreName { datacenter, core });
        let (topology, placement) = (self.config.topology.clone(), self.sessions.placement().clone());
        let owns = |partition: PartitionId| placement.owner(&topology, datacenter, partition) == core;
        self.partitions
            .values_mut()
            .for_each(|partition| partition.on_link_down(now, CoreName { datacenter, core }, &owns));
        self.sessions.placement_mut().on_link_down(datacenter, core);
        self.sessions.on_peer_down(now, CoreName { datacenter, core });
        if datacenter == topology.datacenter {
            self.sessions.on_link_down(now, core);
        }
    }

    /// This core owns a replicated partition: it begins as after a start, for that is what it is.
    fn lead(&mut self, now: Now, id: PartitionId, term: u64, epoch: u64) {
        let mut config = (*self.config).clone();
        // What was acknowledged is in the directory unless the epoch is another one: as within one boot of a machine.
        config.boot_id = boot_id_of(epoch);
        // No two owners of a partition give the same numbers to what they ask.
        config.boot = term as u32;
        config.identity_seed ^= u128::from(term) << 32;
        let partition = Partition::new(id, Arc::new(config), self.protocols.clone(), now);
        self.partitions.insert(id, Holding::new(partition));
        self.gates.insert(id, Gate::default());
        self.adopt_parameters(false);
        self.report_unmet();
        self.partitions.get_mut(&id).expect("it was inserted").start();
        let own = CoreName { datacenter: self.config.topology.datacenter, core: self.config.core };
        self.on_owner(now, own, id, term);
        let (topology, placement) = (&self.config.topology, self.sessions.placement());
        for &CoreName { datacenter, core } in &self.linked {
            let owns = |partition: PartitionId| placement.owner(topology, datacenter, partition) == core;
            if let Some(partition) = self.partitions.get_mut(&id) {
                partition.on_link_up(now, datacenter, &owns);
            }
        }
    }

    /// This core owns a replicated partition no more; what it had not said yet is not said.
    fn follow(&mut self, now: Now, id: PartitionId) {
        self.gates.remove(&id);
        if self.partitions.remove(&id).is_some() {
            self.adopt_parameters(false);
            self.note_busy();
            let (datacenter, core) = (self.config.topology.datacenter, self.config.core);
            self.sessions.placement_mut().on_gone(datacenter, id, core);
            self.sessions.on_partition_moved(now, id);
            self.lose_owner(now, CoreName { datacenter, core }, id);
        }
    }

    /// A replicated partition of some datacenter has a new owner. For everybody else that is a link to it that breaks,
    /// and one that comes up.
    fn on_owner(&mut self, now: Now, owner: CoreName, id: PartitionId, term: u64) {
        let CoreName { datacenter, core } = owner;
        let here = self.config.topology.datacenter;
        let before = self.sessions.placement().owner(&self.config.topology, datacenter, id);
        if !self.sessions.placement_mut().on_leader(datacenter, id, core, term) {
            return;
        }
        self.lose_owner(now, CoreName { datacenter, core: before }, id);
        if datacenter == here {
            if core != self.config.core && self.partitions.contains_key(&id) {
                // The replica here will hear of it, too.
                self.follow(now, id);
            }
            self.sessions.on_partition_moved(now, id);
        }
        let own = CoreName { datacenter: here, core: self.config.core };
        if owner == own || self.linked.contains(&owner) {
            let is_it = |partition: PartitionId| partition == id;
            self.partitions.values_mut().for_each(|partition| partition.on_link_up(now, datacenter, &is_it));
        }
    }

    /// What the partitions here had asked a partition elsewhere, or were asked by it, is over.
    fn lose_owner(&mut self, now: Now, owner: CoreName, id: PartitionId) {
        let is_it = |partition: PartitionId| partition == id;
        for partition in self.partitions.values_mut() {
            partition.on_owner_lost(now, owner.datacenter, &is_it);
        }
    }

    fn shut_down(&mut self) {
        self.sessions.on_shutdown();
        self.partitions.values_mut().for_each(Holding::shut_down);
        self.stopping = true;
    }

    /// No partition waits for its disk any more.
    fn finish_stopping(&mut self) {
        let closed = || self.partitions.values().all(|partition| partition.is_closed());
        if self.stopping && !self.stopped && closed() {
            self.stopped = true;
            self.outputs.push_back(Output::Stopped);
        }
    }
}

/// Collects what a partition has said: what may leave is handed out.
fn gather_from(
    id: PartitionId,
    partition: &mut Holding,
    outputs: &mut VecDeque<Output>,
    released: &mut Vec<(PartitionId, Envelope)>,
) {
    outputs.extend(partition.cx.disk_ops.drain(..).map(|op| Output::Disk { partition: id, op }));
    outputs.extend(partition.cx.traces.drain(..).map(Output::Trace));
    released.extend(std::iter::from_fn(|| partition.cx.outbox.next()).map(|envelope| (id, envelope)));
}

/// What a replicated partition takes for the boot of its machine.
pub(crate) fn boot_id_of(epoch: u64) -> [u8; 16] {
    let mut boot_id = [0xe5; 16];
    boot_id[..8].copy_from_slice(&epoch.to_le_bytes());
    boot_id
}

#[cfg(test)]
mod tests;
