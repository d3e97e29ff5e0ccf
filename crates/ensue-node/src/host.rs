//! One core's node together with the replicas on it: what a node asks of the directory of a replicated partition goes
//! to its replica, and the replicas decide which of the node's partitions live here.
//!
//! Which partitions have a replica here is what their groups agree on. A core begins with those that the configuration
//! has begin there and those of which it finds a directory; a group invites it to have one more, or dismisses it.
//!
//! A core without replicas is its node: everything passes through.

mod backups;
mod groups;
mod members;

use crate::node::{Node, UnknownProtocol};
use crate::replicas::{ReplicaFigures, TOLD_EVERY_US};
use crate::{AppendFsync, Errand, ErrandDone, Input, NodeConfig, Output, Trace};
use backups::Relayed;
pub use backups::{Leading, Standing};
use bytes::Bytes;
use ensue_replica::{Absent, Config, Move, Refusal, Replica, Tuning, on_message_to_nobody};
use ensue_types::{CoreId, DatacenterId, LogicalTime, Now, PartitionId, SessionId};
use ensue_wire::{Address, CoreName, Envelope, Message};
use groups::{Asked, told};
use members::Members;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How long a stopping core waits for others to take the lead, and then for its partitions to close.
const HAND_OVER_US: u64 = 1_000_000;
const CLOSE_US: u64 = 5_000_000;

/// A core: inputs go in, outputs are drained, as of a `Node`.
pub struct Host {
    node: Node,
    replicas: Members,
    /// The partitions that live here by the word of their replicas.
    leads: BTreeMap<PartitionId, Led>,
    /// Partitions that have read their logs, and cut what was torn off.
    read: BTreeSet<PartitionId>,
    seat: Seat,
    asked: Asked,
    /// What this core does for sessions of other nodes.
    relayed: Relayed,
    own: CoreName,
    tick_us: u64,
    next_tick_us: u64,
    /// When the figures of the replicas are told again.
    figures_due_us: u64,
    linked: BTreeSet<CoreName>,
    outputs: VecDeque<Output>,
    stopping: Stopping,
}

/// Since which term a partition lives here, and in which epoch.
#[derive(Clone, Copy, Debug)]
struct Led {
    term: u64,
    epoch: u64,
}

/// How far a stop has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopping {
    Not,
    /// Others are to take the lead, until then.
    HandsOver(u64),
    /// The node closes what still lives here, until then.
    Closes(u64),
    /// The replicas stop.
    Replicas,
    Done,
}

/// What replicas are told beside what the node is.
#[derive(Clone, Debug, Default)]
pub struct ReplicaOptions {
    /// Leaders answer reads by a lease.
    pub lease: bool,
    pub tuning: Tuning,
    /// Partitions of which the node has a directory that a replica has written.
    pub found: Vec<PartitionId>,
}

/// A session asks about a group.
struct Asking {
    session: SessionId,
    number: u64,
    partition: PartitionId,
    wish: Option<(CoreId, CoreId)>,
}

/// What the replicas of a core are told before they start.
struct Seat {
    config: NodeConfig,
    options: ReplicaOptions,
    /// Whether any partition of this datacenter is.
    is_replicated: bool,
    /// Replicas that were started: each one draws other random numbers.
    started: u64,
}

impl Seat {
    /// The core of each node of this datacenter on which a partition may be replicated, in the order in which they are
    /// meant to own it.
    fn places(&self, partition: PartitionId) -> impl Iterator<Item = CoreId> + '_ {
        let topology = &self.config.topology;
        let here = topology.datacenter;
        let count = topology.datacenters[usize::from(here.0)].nodes.len();
        let first = topology.node_of(here, topology.owner(here, partition)).unwrap_or_default();
        let nodes = groups::order_of_owners(first, count, partition);
        nodes.filter_map(move |node| topology.core_on(here, node, partition))
    }

    /// Whether this core may have a replica of a partition.
    fn may_have(&self, partition: PartitionId) -> bool {
        let topology = &self.config.topology;
        partition.0 < topology.partitions
            && topology.is_replicated(topology.datacenter, partition)
            && self.places(partition).any(|core| core == self.config.core)
    }

    /// The cores that may have a replica of a partition, and those that begin its group.
    fn nodes_and_founders(&self, partition: PartitionId) -> (Vec<u16>, Vec<u16>) {
        let topology = &self.config.topology;
        let founders = topology.replicas(topology.datacenter, partition).iter();
        (self.places(partition).map(|core| core.0).collect(), founders.map(|core| core.0).collect())
    }

    /// What other nodes must have been told, too.
    fn plan(&self, partition: PartitionId) -> u64 {
        let (nodes, founders) = self.nodes_and_founders(partition);
        ensue_replica::plan(&nodes, &founders)
    }

    fn replica(&mut self, partition: PartitionId) -> Replica {
        self.started += 1;
        let (nodes, founders) = self.nodes_and_founders(partition);
        let (config, options) = (&self.config, &self.options);
        let seed = (config.identity_seed as u64) ^ u64::from(partition.0) << 48 ^ u64::from(config.boot);
        Replica::new(Config {
            node: config.core.0,
            nodes,
            founders,
            always: config.append_fsync == AppendFsync::Always,
            lease: options.lease,
            boot_id: config.boot_id,
            seed: seed ^ (self.started.wrapping_sub(1)) << 32,
            tuning: options.tuning.clone(),
        })
    }
}

impl Host {
    /// A core that has not read its disks yet; its first outputs are the disk operations that do.
    pub fn new(config: NodeConfig, options: &ReplicaOptions, now: Now) -> Result<Host, UnknownProtocol> {
        let own = CoreName { datacenter: config.topology.datacenter, core: config.core };
        let is_replicated = config.topology.is_replicated(own.datacenter, PartitionId(0));
        let mut seat = Seat { config: config.clone(), options: options.clone(), is_replicated, started: 0 };
        let found = options.found.iter().copied().filter(|partition| seat.may_have(*partition));
        let begun: BTreeSet<PartitionId> = config.replicated_partitions().chain(found).collect();
        let mut replicas = Members::default();
        for partition in begun {
            replicas.insert(partition, seat.replica(partition));
        }
        let mut host = Host {
            replicas,
            node: Node::new(config, now)?,
            seat,
            asked: Asked::default(),
            relayed: Relayed::default(),
            leads: BTreeMap::new(),
            read: BTreeSet::new(),
            own,
            tick_us: options.tuning.tick_us,
            next_tick_us: now.monotonic_us + options.tuning.tick_us,
            figures_due_us: now.monotonic_us,
            linked: BTreeSet::new(),
            outputs: VecDeque::new(),
            stopping: Stopping::Not,
        };
        host.publish_metrics();
        host.run(now);
        Ok(host)
    }

    /// Takes one input and runs it to completion.
    pub fn on_input(&mut self, now: Now, input: Input) {
        match input {
            Input::Message(Envelope { from, message: Message::Replica { partition, bytes }, .. }) => {
                if let Address::Core { core, .. } = from {
                    self.on_replica_message(core, partition, bytes);
                }
            }
            Input::Message(Envelope {
                from: Address::Core { datacenter, core },
                message:
                    message @ (Message::GroupAsk { .. }
                    | Message::GroupTold { .. }
                    | Message::BackupAsk { .. }
                    | Message::BackupTold { .. }),
                ..
            }) => self.on_question(now, CoreName { datacenter, core }, message),
            Input::ErrandDone { session: backups::RELAYED, number, done } => {
                self.on_relayed_done(number, done);
            }
            Input::Message(Envelope { from, message: Message::Leads { partition, term }, .. }) => {
                if let Address::Core { datacenter, core } = from {
                    self.node.on_input(now, Input::Owner { datacenter, partition, core, term });
                }
            }
            Input::Disk { partition, done } => match self.replicas.give(partition) {
                Some(replica) => replica.on_disk(done),
                None => self.node.on_input(now, Input::Disk { partition, done }),
            },
            Input::PeerMessage { peer, envelope } => {
                if !self.node.is_of_a_former_owner(peer, &envelope) {
                    self.on_input(now, Input::Message(envelope));
                }
                return;
            }
            Input::LinkUp { datacenter, core } => {
                self.linked.insert(CoreName { datacenter, core });
                self.node.on_input(now, Input::LinkUp { datacenter, core });
                self.notify_leads(Some(CoreName { datacenter, core }));
            }
            Input::LinkDown { datacenter, core } => {
                self.linked.remove(&CoreName { datacenter, core });
                self.node.on_input(now, Input::LinkDown { datacenter, core });
            }
            Input::Timer => self.on_timer(now),
            Input::Shutdown if !self.replicas.is_empty() => {
                self.stopping = Stopping::HandsOver(now.monotonic_us + HAND_OVER_US);
                self.replicas.give_each(Replica::hand_over);
            }
            Input::Shutdown => {
                self.stopping = Stopping::Done;
                self.node.on_input(now, Input::Shutdown);
            }
            input => self.node.on_input(now, input),
        }
        self.run(now);
    }

    /// A session of another core asks about a group or a backup, or is answered.
    fn on_question(&mut self, now: Now, from: CoreName, message: Message) {
        match message {
            Message::GroupAsk { partition, number, wish } => {
                let (is_done, text) = match self.group(partition, wish) {
                    Ok(text) => (true, text),
                    Err(why) => (false, why),
                };
                self.send(from, Message::GroupTold { number, is_done, text });
            }
            Message::GroupTold { number, is_done, text } => {
                if let Some((session, number)) = self.asked.answered(number) {
                    let done = ErrandDone::Group(if is_done { Ok(text) } else { Err(text) });
                    self.node.on_input(now, Input::ErrandDone { session, number, done });
                }
            }
            Message::BackupAsk { number, words } => self.on_backup_ask(from, number, &words),
            Message::BackupTold { number, reply } => self.on_backup_told(now, number, reply),
            other => unreachable!("no question: {other:?}"),
        }
    }

    /// The next output, oldest first; drain until empty after each input.
    pub fn next_output(&mut self) -> Option<Output> {
        match self.seat.is_replicated {
            // What the host itself says stands in no order with what the node says.
            false => self.outputs.pop_front().or_else(|| self.next_of_node()),
            true => self.outputs.pop_front(),
        }
    }

    /// What the node says, but for what this host does itself.
    fn next_of_node(&mut self) -> Option<Output> {
        match self.node.next_output()? {
            Output::Errand { session, number, errand: Errand::BackupElsewhere { core, words } } => {
                self.ask_elsewhere((session, number), core, words);
                self.outputs.pop_front().or_else(|| self.next_of_node())
            }
            output => {
                self.note_read(&output);
                Some(output)
            }
        }
    }

    /// Another core says something about a replicated partition.
    fn on_replica_message(&mut self, from: CoreId, partition: PartitionId, bytes: Bytes) {
        if !self.replicas.has(partition) {
            if self.stopping != Stopping::Not || !self.seat.may_have(partition) {
                return;
            }
            match on_message_to_nobody(bytes.clone(), self.seat.plan(partition)) {
                Absent::Invited => {
                    let replica = self.seat.replica(partition);
                    self.replicas.insert(partition, replica);
                }
                Absent::Answers(bytes) => {
                    let to = CoreName { datacenter: self.own.datacenter, core: from };
                    return self.send(to, Message::Replica { partition, bytes });
                }
                Absent::Nothing => return,
            }
        }
        if let Some(replica) = self.replicas.give(partition) {
            replica.on_message(from.0, bytes);
        }
    }

    /// A session asks about a group: its leader answers.
    fn query_group(&mut self, now: Now, asking: Asking) {
        let Asking { session, number, partition, wish } = asking;
        let owner = self.node.owner(partition);
        let done = match owner {
            Some(core) if core != self.own.core => {
                let to = CoreName { datacenter: self.own.datacenter, core };
                let number = self.asked.note(session, number);
                return self.send(to, Message::GroupAsk { partition, number, wish });
            }
            Some(_) => self.group(partition, wish),
            None => Err(groups::NO_OWNER),
        };
        let done = ErrandDone::Group(done);
        self.node.on_input(now, Input::ErrandDone { session, number, done });
    }

    /// What is known here of a group, and a wish for it.
    fn group(&mut self, partition: PartitionId, wish: Option<(CoreId, CoreId)>) -> Result<Bytes, Bytes> {
        let replica = self.replicas.give(partition).ok_or(groups::NO_OWNER)?;
        if let Some((from, to)) = wish {
            let may_be_there = self.seat.places(partition).any(|core| core == to);
            let wished = match may_be_there {
                true => replica.on_wish(Move { from: from.0, to: to.0 }),
                false => Err(Refusal::NoSuchNode),
            };
            wished.map_err(|refusal| groups::refused(partition, refusal))?;
        }
        let report = replica.report().ok_or(groups::NO_OWNER)?;
        let (own, linked) = (self.own, &self.linked);
        let is_reached = |core| {
            let name = CoreName { datacenter: own.datacenter, core };
            name == own || linked.contains(&name)
        };
        Ok(told(&self.seat.config.topology, partition, &report, is_reached))
    }

    /// When the next `Input::Timer` is due, in microseconds of `Now::monotonic_us`.
    pub fn next_timer(&self) -> Option<u64> {
        let tick = self.ticks().then_some(self.next_tick_us);
        self.node.next_timer().into_iter().chain(tick).min()
    }

    /// Panics if a partition contradicts itself, or what sessions share. It walks every row.
    pub fn check_invariants(&self) {
        self.node.check_invariants();
    }

    /// Whether time is told: to replicas, and while the core stops, though they may all have been dismissed meanwhile.
    fn ticks(&self) -> bool {
        !self.replicas.is_empty() || matches!(self.stopping, Stopping::HandsOver(_) | Stopping::Closes(_))
    }

    fn on_timer(&mut self, now: Now) {
        if self.node.next_timer().is_some_and(|due| due <= now.monotonic_us) {
            self.node.on_input(now, Input::Timer);
        }
        if !self.ticks() || now.monotonic_us < self.next_tick_us {
            return;
        }
        // Time that was lost is not made up for: ticks that come at once would end every promise at once.
        self.next_tick_us = now.monotonic_us + self.tick_us;
        self.replicas.give_each(|replica| replica.on_tick(now.monotonic_us));
        if self.figures_due_us <= now.monotonic_us {
            self.figures_due_us = now.monotonic_us + TOLD_EVERY_US;
            self.publish_metrics();
        }
        match self.stopping {
            Stopping::HandsOver(until) if self.leads.is_empty() || until <= now.monotonic_us => {
                self.stopping = Stopping::Closes(now.monotonic_us + CLOSE_US);
                self.node.on_input(now, Input::Shutdown);
            }
            Stopping::Closes(until) if until <= now.monotonic_us => {
                // Without a majority nothing of theirs becomes durable: they end as if killed.
                for partition in std::mem::take(&mut self.leads).into_keys() {
                    self.node.on_input(now, Input::Follow { partition });
                }
            }
            _ => {}
        }
    }

    /// Lets node and replicas work until neither has anything for the other.
    fn run(&mut self, now: Now) {
        while self.seat.is_replicated {
            let mut worked = false;
            while let Some(output) = self.node.next_output() {
                worked = true;
                self.on_output(now, output);
            }
            for partition in self.replicas.take_given() {
                while let Some(output) = self.replicas.next_output(partition) {
                    worked = true;
                    self.on_replica(now, partition, output);
                }
            }
            if !worked {
                break;
            }
        }
        if self.stopping == Stopping::Replicas
            && self.replicas.iter().all(|(_, replica)| replica.is_stopped())
        {
            self.stopping = Stopping::Done;
            self.outputs.push_back(Output::Stopped);
        }
    }

    fn on_output(&mut self, now: Now, output: Output) {
        self.note_read(&output);
        match output {
            Output::Disk { partition, op } => match self.replicas.give(partition) {
                Some(replica) => replica.on_request(op),
                None => self.outputs.push_back(Output::Disk { partition, op }),
            },
            Output::Errand { session, number, errand: Errand::Group { partition, wish } } => {
                self.query_group(now, Asking { session, number, partition, wish });
            }
            Output::Errand { session, number, errand: Errand::BackupElsewhere { core, words } } => {
                self.ask_elsewhere((session, number), core, words);
            }
            Output::Confirm { partition, number } => {
                if let Some(replica) = self.replicas.give(partition) {
                    replica.confirm(now.monotonic_us, number);
                }
            }
            Output::Trace(Trace::PartitionStopped { partition, reason }) => {
                if let Some(replica) = self.replicas.give(partition) {
                    replica.on_partition_stopped();
                }
                self.outputs.push_back(Output::Trace(Trace::PartitionStopped { partition, reason }));
            }
            Output::Stopped if self.stopping != Stopping::Done => {
                self.stopping = Stopping::Replicas;
                self.replicas.give_each(Replica::shut_down);
            }
            output => self.outputs.push_back(output),
        }
    }

    fn on_replica(&mut self, now: Now, partition: PartitionId, output: ensue_replica::Output) {
        match output {
            ensue_replica::Output::Send { node, message } => {
                let to = CoreName { datacenter: self.own.datacenter, core: CoreId(node) };
                self.send(to, Message::Replica { partition, bytes: message });
            }
            ensue_replica::Output::Disk(op) => self.outputs.push_back(Output::Disk { partition, op }),
            ensue_replica::Output::Done(done) => self.node.on_input(now, Input::Disk { partition, done }),
            ensue_replica::Output::Lead { term, epoch } => {
                self.leads.insert(partition, Led { term, epoch });
                self.read.remove(&partition);
                self.outputs.push_back(Output::Trace(Trace::Leads { partition, term }));
                self.node.on_input(now, Input::Lead { partition, term, epoch });
                self.notify_leads(None);
            }
            ensue_replica::Output::Follow => {
                self.leads.remove(&partition);
                self.outputs.push_back(Output::Trace(Trace::LeadsNoMore { partition }));
                self.node.on_input(now, Input::Follow { partition });
            }
            ensue_replica::Output::Confirmed(number) => {
                self.node.on_input(now, Input::Confirmed { partition, number });
            }
            ensue_replica::Output::Dismissed => {
                self.replicas.remove(partition);
                self.publish_metrics();
                self.outputs.push_back(Output::Trace(Trace::ReplicaDismissed { partition }));
            }
            ensue_replica::Output::Troubled(words) => {
                self.outputs.push_back(Output::Trace(Trace::ReplicaTroubled { partition, words }));
            }
            ensue_replica::Output::Stopped(reason) => {
                if self.stopping == Stopping::Not {
                    self.outputs.push_back(Output::Trace(Trace::ReplicaStopped { partition, reason }));
                }
            }
        }
    }

    /// Tells the node what the replicas are to their groups, for whoever asks it for figures.
    fn publish_metrics(&mut self) {
        if !self.seat.is_replicated {
            return;
        }
        let topology = &self.seat.config.topology;
        let mut figures = ReplicaFigures::default();
        for (partition, replica) in self.replicas.iter() {
            let wanted = topology.replicas(topology.datacenter, partition).len();
            figures.add(replica.role(), replica.report().as_ref(), wanted);
        }
        self.node.on_replica_figures(figures);
    }

    /// Says what lives here to one core, or to all.
    fn notify_leads(&mut self, to: Option<CoreName>) {
        let cores: Vec<CoreName> =
            to.map_or_else(|| self.linked.iter().copied().collect(), |core| vec![core]);
        for core in cores {
            for (partition, Led { term, .. }) in self.leads.clone() {
                self.send(core, Message::Leads { partition, term });
            }
        }
    }

    fn send(&mut self, to: CoreName, message: Message) {
        let address = |name: CoreName| Address::Core { datacenter: name.datacenter, core: name.core };
        let (from, to_address) = (address(self.own), address(to));
        let envelope = Envelope { from, to: to_address, time: LogicalTime::ZERO, message };
        let (datacenter, core): (DatacenterId, CoreId) = (to.datacenter, to.core);
        self.outputs.push_back(Output::Send { datacenter, core, envelope });
    }
}
