//! Virtual time, and all that happens in it.

mod judge;

use super::application::Style;
use super::client::{Client, Trouble};
use super::host::{Host, Wants};
use super::plan::{Fault, HOSTS, Harm, Plan};
use super::random::Random;
use super::tcp::Tcp;
use crate::balance::{Balancer, HEARTBEAT_US};
use crate::config::{Config, Mode, Objects, Rules};
use crate::gateway::Trods;
use crate::output::{Counters, Now};
use crate::packet::{self, Endpoint, Flags, Packet, Timestamps};
use crate::seq::Seq;
use crate::store::{Key, StoreOp, StoreOutcome, Ticket};
use core::net::Ipv4Addr;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

const SERVICE: Endpoint = Endpoint { address: Ipv4Addr::new(192, 0, 2, 1), port: 80 };
const LOCAL: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
/// A client that has not finished by then is stuck, in microseconds.
const PATIENCE_US: u64 = 400_000_000;
const TICK_US: u64 = 250_000;
/// How long the world goes on after the last client is done: longer than a gateway remembers what is over.
const SETTLING_US: u64 = 30_000_000;
/// How long it goes on after that without clients: longer than a gateway remembers what a single packet began.
const SILENCE_US: u64 = 11_000_000;

/// What came of a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// What a client noticed, or `None` if nothing.
    pub failure: Option<String>,
    /// Packets that the gateways handled.
    pub packets: u64,
    /// What the gateways counted, added up.
    pub counters: Counters,
    /// Simulated time, in microseconds.
    pub time_us: u64,
    /// Whether more went wrong than servers and packets.
    pub harmed: bool,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Start(usize),
    ToService(Vec<u8>),
    /// What is in a client's name and not the client's.
    FromStranger(Vec<u8>),
    ToClient(Vec<u8>),
    Stored {
        host: usize,
        key: Key,
        ticket: Ticket,
        op: usize,
    },
    Outcome {
        host: usize,
        key: Key,
        ticket: Ticket,
        outcome: usize,
    },
    Heartbeat,
    Tick,
}

struct Peer {
    tcp: Option<Tcp>,
    application: Client,
    end: Endpoint,
    failure: Option<Trouble>,
    /// Packets that it sent.
    sent: u64,
    /// Its application died: its kernel resets what still arrives.
    aborted: bool,
}

struct World<'a> {
    plan: &'a Plan,
    now: u64,
    order: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    hosts: Vec<Host>,
    suspected_until: Vec<u64>,
    peers: Vec<Peer>,
    balancer: Balancer,
    records: BTreeMap<Key, BTreeMap<u32, Vec<u8>>>,
    ops: Vec<StoreOp>,
    outcomes: Vec<StoreOutcome>,
    packets: u64,
    /// Clients of which a gateway gave up a connection because of a stranger's packet.
    moved: BTreeSet<Endpoint>,
    faults: Vec<(u64, Fault)>,
    network: Random,
    store: Random,
    harm: Random,
    trace: Option<Vec<String>>,
    /// Clients, and strangers in their name, send nothing any more.
    silent: bool,
}

/// Runs the world of a seed.
#[must_use]
pub fn run(seed: u64, mode: Mode, rules: Rules) -> Report {
    run_traced(seed, mode, rules, false).0
}

/// Runs the world of a seed; with `trace`, also returns a line for each packet, operation and fault.
#[must_use]
pub fn run_traced(seed: u64, mode: Mode, rules: Rules, trace: bool) -> (Report, Vec<String>) {
    let plan = Plan::of_seed(seed, mode);
    let mut world = World::new(&plan, seed, rules);
    world.trace = trace.then(Vec::new);
    world.run();
    world.settle();
    let mut counters = Counters::default();
    for host in &world.hosts {
        counters.add(&host.gateway.counters());
    }
    let failure = world.failure();
    let report = Report {
        seed,
        failure,
        packets: world.packets,
        counters,
        time_us: world.now - plan.start_us,
        harmed: plan.harm != Harm::default(),
    };
    (report, world.trace.unwrap_or_default())
}

impl<'a> World<'a> {
    fn new(plan: &'a Plan, seed: u64, rules: Rules) -> Self {
        let names =
            plan.objects[..plan.named].iter().map(|object| format!("{} service", object.path()).into_bytes());
        let config = Config {
            mode: plan.mode,
            ports: vec![SERVICE.port],
            local_address: LOCAL,
            cluster_key: [7; 32],
            epoch_us: plan.epoch_us,
            objects: Objects::new(names.collect()).expect("few objects, each once"),
            streams: true,
            rules,
        };
        let host = |(index, (name, ranges, offer)): (usize, &(String, bool, super::tcp::Offer))| {
            let style = Style { name: name.clone(), ranges: *ranges, ill_permille: plan.harm.ill_permille };
            Host::new(Trods::new(config.clone()), style, *offer, Random::new(seed, 100 + index as u64))
        };
        let peer = |(index, (wish, _)): (usize, &(super::client::Wish, super::tcp::Offer))| Peer {
            tcp: None,
            application: Client::new(wish.clone()),
            end: Endpoint {
                address: Ipv4Addr::new(203, 0, 113, u8::try_from(index + 1).expect("few clients")),
                port: 40_000,
            },
            failure: None,
            sent: 0,
            aborted: false,
        };
        Self {
            plan,
            now: plan.start_us,
            order: 0,
            events: BinaryHeap::new(),
            hosts: plan.servers.iter().enumerate().map(host).collect(),
            suspected_until: vec![0; HOSTS],
            peers: plan.clients.iter().enumerate().map(peer).collect(),
            balancer: Balancer::new(HOSTS, seed),
            records: BTreeMap::new(),
            ops: Vec::new(),
            outcomes: Vec::new(),
            packets: 0,
            moved: BTreeSet::new(),
            faults: plan.faults.clone(),
            network: Random::new(seed, 2),
            store: Random::new(seed, 3),
            harm: Random::new(seed, 7),
            trace: None,
            silent: false,
        }
    }

    fn at(&mut self, delay: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((self.now + delay, self.order, event)));
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        let time = self.now - self.plan.start_us;
        if let Some(lines) = &mut self.trace {
            lines.push(format!("{:>4}.{:06} {}", time / 1_000_000, time % 1_000_000, line()));
        }
    }

    fn run(&mut self) {
        let mut random = Random::new(self.order, 4);
        for index in 0..self.peers.len() {
            self.at(random.below(50_000), Event::Start(index));
        }
        self.at(HEARTBEAT_US, Event::Heartbeat);
        self.at(TICK_US, Event::Tick);
        self.run_until(self.plan.start_us + PATIENCE_US, true);
    }

    /// A while after the last byte, nothing is left of connections that no fault moved.
    fn settle(&mut self) {
        self.run_until(self.now + SETTLING_US, false);
        // A client whose FIN nobody answers any more repeats it, and strangers send beside it, until the last moment.
        self.silent = true;
        self.run_until(self.now + SILENCE_US, false);
    }

    fn run_until(&mut self, end: u64, ends_early: bool) {
        while self.now < end && !(ends_early && self.is_settled()) {
            let event = self.events.peek().map_or(u64::MAX, |Reverse((at, ..))| *at);
            let hosts = self.hosts.iter().filter_map(Host::timer);
            let peers = self.peers.iter().filter_map(|peer| peer.tcp.as_ref()?.timer());
            let timer = hosts.chain(peers).min().unwrap_or(u64::MAX);
            if timer < event {
                self.now = self.now.max(timer);
                self.on_timers();
            } else if let Some(Reverse((at, _, event))) = self.events.pop() {
                self.now = self.now.max(at);
                self.on_event(event);
            }
        }
    }

    /// Every client has what it wished, or noticed something.
    fn is_settled(&self) -> bool {
        let is_over = |peer: &Peer| peer.failure.is_some() || peer.aborted || peer.application.is_done();
        self.peers.iter().all(is_over)
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Start(index) => self.start(index),
            Event::ToService(bytes) => self.reach_service(bytes, false),
            Event::FromStranger(bytes) => self.reach_service(bytes, true),
            Event::ToClient(bytes) => self.reach_client(&bytes),
            Event::Stored { host, key, ticket, op } => self.on_stored(host, key, ticket, op),
            Event::Outcome { host, key, ticket, outcome } => {
                let outcome = self.outcomes[outcome].clone();
                if self.hosts[host].is_reachable(self.now) {
                    let now = self.now;
                    self.act(host, |gateway| gateway.on_store(Now(now), key, ticket, outcome));
                }
            }
            Event::Heartbeat => {
                for host in 0..HOSTS {
                    let healthy =
                        self.hosts[host].is_reachable(self.now) && self.hosts[host].has_application(self.now);
                    self.balancer.set(host, healthy && self.now >= self.suspected_until[host]);
                }
                self.at(HEARTBEAT_US, Event::Heartbeat);
            }
            Event::Tick => {
                let now = self.now;
                for host in 0..HOSTS {
                    self.act(host, |gateway| gateway.on_tick(Now(now)));
                }
                self.at(TICK_US, Event::Tick);
            }
        }
    }

    fn act(&mut self, host: usize, act: impl FnOnce(&mut Trods)) {
        if !self.hosts[host].dead {
            let wants = self.hosts[host].act(self.now, &self.plan.objects, act);
            self.carry_out(host, wants);
        }
    }

    fn on_timers(&mut self) {
        for host in 0..HOSTS {
            if self.hosts[host].timer().is_some_and(|at| at <= self.now) {
                let wants = self.hosts[host].on_timer(self.now, &self.plan.objects);
                self.carry_out(host, wants);
            }
        }
        for index in 0..self.peers.len() {
            let mut out = Vec::new();
            if let Some(tcp) = &mut self.peers[index].tcp {
                tcp.on_timer(self.now, &mut out);
            }
            self.send(out);
        }
    }

    fn start(&mut self, index: usize) {
        let first = Seq(u32::try_from(self.network.next() >> 32).unwrap_or(0));
        let mut out = Vec::new();
        let peer = &mut self.peers[index];
        peer.sent = 0;
        let offer = self.plan.clients[index].1;
        let mut tcp = Tcp::connect(self.now, peer.end, SERVICE, first, offer, &mut out);
        tcp.write(&peer.application.requests());
        peer.tcp = Some(tcp);
        self.send(out);
    }

    /// Sends packets of a client towards the service.
    fn send(&mut self, packets: Vec<Packet>) {
        if self.silent {
            return;
        }
        for packet in packets {
            self.transmit(packet.build(), Event::ToService);
            if self.harm.permille(self.plan.harm.stranger_permille) {
                let stranger = self.stranger(&packet);
                self.transmit(stranger.build(), Event::FromStranger);
            }
            let abort_at = self.plan.harm.abort_at;
            let first = self.peers.first_mut().filter(|peer| peer.end == packet.source && !peer.aborted);
            if let Some(peer) = first {
                peer.sent += 1;
                if Some(peer.sent) == abort_at && !peer.application.is_done() {
                    self.abort();
                }
            }
        }
    }

    /// The first client's application dies, and leaves what it has not read to its kernel.
    fn abort(&mut self) {
        let mut out = Vec::new();
        let peer = &mut self.peers[0];
        peer.aborted = true;
        if let Some(tcp) = &mut peer.tcp {
            tcp.abort(self.now, &mut out);
        }
        self.note(|| "client 1 dies".to_string());
        self.send(out);
    }

    /// A packet in the name of whoever sent this one, of somebody who cannot read what is sent to it.
    fn stranger(&mut self, packet: &Packet) -> Packet {
        let mut number = || Seq(u32::try_from(self.harm.next() >> 32).unwrap_or(0));
        let mut made = Packet::acknowledgment(packet.source, packet.destination, number(), number());
        if packet.options.timestamps.is_some() {
            made.options.timestamps = Some(Timestamps { value: number().0, echo: number().0 });
        }
        match self.harm.below(4) {
            0 => made.flags = Flags::RST,
            1 => made.flags = Flags::SYN,
            2 => made.payload = b"GET /object-1 HTTP/1.1\r\nHost: service\r\n\r\n".to_vec(),
            _ => {}
        }
        made
    }

    fn transmit(&mut self, bytes: Vec<u8>, event: fn(Vec<u8>) -> Event) {
        let network = self.plan.network;
        let copies = 1 + u64::from(self.network.permille(network.duplicate_permille));
        for _ in 0..copies {
            if !self.network.permille(network.loss_permille) {
                let delay = network.delay_us + self.network.below(network.jitter_us + 1);
                self.at(delay, event(bytes.clone()));
            }
        }
    }

    fn reach_service(&mut self, bytes: Vec<u8>, is_strange: bool) {
        let client = packet::ends(&bytes).map_or(SERVICE, |(client, _)| client);
        let Some(host) = self.balancer.pick(client) else { return };
        self.packets += 1;
        self.strike();
        let reachable = self.hosts[host].is_reachable(self.now);
        self.note(|| {
            format!("server {} {} {}", host + 1, if reachable { "<-" } else { "x-" }, shown(&bytes))
        });
        if reachable {
            let moves = |host: &Host| host.gateway.counters().came_back;
            let before = moves(&self.hosts[host]);
            let wants = self.hosts[host].on_packet(self.now, bytes, &self.plan.objects);
            if is_strange && moves(&self.hosts[host]) > before {
                self.moved.insert(client);
            }
            self.carry_out(host, wants);
        }
    }

    /// Faults that are due strike the server of the first client.
    fn strike(&mut self) {
        while let Some(at) = self.faults.iter().position(|(at, _)| *at <= self.packets) {
            let (_, fault) = self.faults.remove(at);
            let Some(host) = self.balancer.pick(self.peers[0].end) else { continue };
            self.note(|| format!("server {} {fault:?}", host + 1));
            match fault {
                Fault::Die => self.hosts[host].dead = true,
                Fault::Cut { us } => self.hosts[host].cut_until = self.now + us,
                Fault::Suspect { us } => {
                    self.suspected_until[host] = self.now + us;
                    self.balancer.set(host, false);
                }
                Fault::Application { us, reset } => {
                    if !self.hosts[host].dead {
                        let objects = &self.plan.objects;
                        let wants =
                            self.hosts[host].kill_application(self.now, self.now + us, reset, objects);
                        self.carry_out(host, wants);
                    }
                }
            }
        }
    }

    fn carry_out(&mut self, host: usize, wants: Wants) {
        if wants.failed {
            self.note(|| format!("server {} reports that its application failed", host + 1));
            self.balancer.set(host, false);
        }
        if !self.hosts[host].is_reachable(self.now) {
            return;
        }
        for bytes in wants.packets {
            self.packets += 1;
            self.strike();
            if self.hosts[host].is_reachable(self.now) {
                self.note(|| format!("server {} -> {}", host + 1, shown(&bytes)));
                self.transmit(bytes, Event::ToClient);
            }
        }
        for (ticket, op) in wants.stores {
            let delay = 1 + self.store.below(self.plan.network.store_us_max);
            let key = op.key();
            self.ops.push(op);
            self.at(delay, Event::Stored { host, key, ticket, op: self.ops.len() - 1 });
        }
    }

    fn on_stored(&mut self, host: usize, key: Key, ticket: Ticket, op: usize) {
        if self.harm.permille(self.plan.harm.forget_permille) {
            self.records.remove(&key);
        }
        if self.harm.permille(self.plan.harm.fail_permille) {
            self.note(|| format!("server {} has an operation that fails", host + 1));
            self.outcomes.push(StoreOutcome::Failed);
            return self.at(1, Event::Outcome { host, key, ticket, outcome: self.outcomes.len() - 1 });
        }
        let records = self.records.entry(key).or_default();
        let outcome = match &self.ops[op] {
            StoreOp::Get { .. } => StoreOutcome::Found(records.values().cloned().collect()),
            StoreOp::Put { exchange, record, .. } => match records.get(&exchange.0) {
                Some(other) => StoreOutcome::Exists(other.clone()),
                None => {
                    records.insert(exchange.0, record.clone());
                    StoreOutcome::Stored
                }
            },
            StoreOp::Delete { exchange, .. } => {
                records.remove(&exchange.0);
                StoreOutcome::Deleted
            }
        };
        let delay = 1 + self.store.below(self.plan.network.store_us_max);
        let name = match &self.ops[op] {
            StoreOp::Get { .. } => "get",
            StoreOp::Put { .. } => "put",
            StoreOp::Delete { .. } => "delete",
        };
        self.note(|| format!("server {} {name} {}: {}", host + 1, key.client, outcome_name(&outcome)));
        self.outcomes.push(outcome);
        self.at(delay, Event::Outcome { host, key, ticket, outcome: self.outcomes.len() - 1 });
    }

    fn reach_client(&mut self, bytes: &[u8]) {
        let Ok(packet) = Packet::parse(bytes) else { return };
        self.note(|| format!("  client <- {}", shown(bytes)));
        let Some(index) = self.peers.iter().position(|peer| peer.end == packet.destination) else { return };
        let peer = &mut self.peers[index];
        let Some(tcp) = &mut peer.tcp else { return };
        let mut out = Vec::new();
        if is_too_large(&packet, self.plan.clients[index].1.segment) {
            return;
        }
        if peer.aborted && !packet.has(Flags::RST) {
            let mut reset = Packet::acknowledgment(packet.destination, packet.source, packet.ack, Seq(0));
            reset.flags = Flags::RST;
            return self.send(vec![reset]);
        }
        tcp.on_packet(self.now, &packet, &mut out);
        let bytes = tcp.read();
        let done = peer.application.is_done();
        if tcp.is_reset() && !done && !peer.aborted {
            peer.failure.get_or_insert(Trouble::Broken("the connection was reset".to_string()));
        }
        if let Err(failure) = peer.application.on_bytes(&bytes, tcp.is_ended()) {
            peer.failure.get_or_insert(failure);
        }
        tcp.write(&peer.application.requests());
        if peer.application.is_done() {
            tcp.close();
        }
        tcp.poll(self.now, &mut out);
        self.send(out);
    }
}

/// Whether a packet does not fit through the client's tunnel, which is as wide as the segments that the client offers.
/// A server that never heard of them assumes no less than 1220.
fn is_too_large(packet: &Packet, segment: u16) -> bool {
    let stamps = if packet.options.timestamps.is_some() { 12 } else { 0 };
    segment >= 1220 && packet.payload.len() + stamps > usize::from(segment)
}

fn outcome_name(outcome: &StoreOutcome) -> String {
    match outcome {
        StoreOutcome::Found(records) => format!("{} records", records.len()),
        StoreOutcome::Stored => "stored".to_string(),
        StoreOutcome::Exists(_) => "exists".to_string(),
        StoreOutcome::Deleted => "deleted".to_string(),
        StoreOutcome::Failed => "failed".to_string(),
    }
}

/// A packet as one line.
fn shown(bytes: &[u8]) -> String {
    let Ok(packet) = Packet::parse(bytes) else { return "a broken packet".to_string() };
    let names = [(Flags::SYN, 'S'), (Flags::FIN, 'F'), (Flags::RST, 'R'), (Flags::ACK, '.')];
    let flags: String = names.iter().filter(|(flag, _)| packet.has(*flag)).map(|(_, name)| name).collect();
    let (from, to, length) = (packet.source, packet.destination, packet.payload.len());
    let stamps = packet
        .options
        .timestamps
        .map_or(String::new(), |stamps| format!(" ts {:x}/{:x}", stamps.value, stamps.echo));
    let sacks: String =
        packet.options.sacks.iter().map(|(first, after)| format!(" sack {first}-{after}")).collect();
    format!(
        "{from} {to} {flags} seq {} ack {} len {length} win {}{stamps}{sacks}",
        packet.seq, packet.ack, packet.window
    )
}
