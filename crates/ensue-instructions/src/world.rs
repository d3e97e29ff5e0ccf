//! Two datacenters of one core each, with disks in memory and a clock that is told the time.

use bytes::{Bytes, BytesMut};
use ensue_node::{DatacenterTopology, Input, Node, NodeConfig, Output, Topology, Tuning};
use ensue_resp::{ParseLimits, Parser};
use ensue_store::testing::{Files, carry_out};
use ensue_types::{CoreId, DatacenterId, Now, SessionId, limits};
use ensue_wire::{Envelope, codec};
use std::collections::VecDeque;
use std::hint::black_box;

/// The datacenter whose instructions are counted, and the other one.
pub const LOCAL: usize = 0;
pub const REMOTE: usize = 1;

const WALL_MS: u64 = 1_767_225_600_000;
/// A turn takes so long.
const TURN_US: u64 = 20;
/// Between two batches of clients, and over the link between datacenters, where both have clients: a core of a busy
/// store, not far from the other.
const EXCHANGE_US: u64 = 300;
const LINK_US: u64 = 1_000;
/// After this long without a client nothing moves any more but what always does.
const QUIET_US: u64 = 3_000_000;

struct Site {
    node: Node,
    /// Of each partition.
    files: Vec<Files>,
    parser: Parser,
    input: BytesMut,
    client: SessionId,
    answers: u32,
    last_answer: Vec<u8>,
    sent: VecDeque<Envelope>,
    /// What was sent over a link that takes its time, and when it arrives.
    under_way: VecDeque<(u64, Envelope)>,
}

pub struct World {
    sites: [Site; 2],
    elapsed_us: u64,
}

impl World {
    /// Both serve so many partitions, and know each other.
    pub fn new(protocol: &str, partitions: u16, tuning: &Tuning) -> World {
        let now = Now { monotonic_us: 1, wall_ms: WALL_MS };
        let site = |site| Site::new(config(site, protocol, partitions, tuning), now);
        let mut world = World { sites: [LOCAL, REMOTE].map(site), elapsed_us: 1 };
        for site in [LOCAL, REMOTE] {
            world.sites[site].drain(now);
            let other = DatacenterId(1 - site as u8);
            world.give(site, Input::LinkUp { datacenter: other, core: CoreId(0) });
        }
        world.settle();
        world
    }

    /// A new client; the one before stays silent.
    pub fn connect(&mut self, site: usize) {
        let session = SessionId(self.sites[site].client.0 + 1);
        self.sites[site].client = session;
        let (address, local_address) = ("10.0.0.1:40000".to_owned(), "10.0.0.2:6379".to_owned());
        self.give(site, Input::ClientConnected { session, address, local_address });
    }

    /// The client's bytes arrive together.
    pub fn say(&mut self, site: usize, bytes: &Bytes) {
        let Site { parser, input, client, .. } = &mut self.sites[site];
        input.extend_from_slice(bytes);
        let mut commands = Vec::new();
        while let Ok(Some(args)) = parser.next(input) {
            commands.push(args);
        }
        let session = *client;
        self.give(site, Input::ClientCommands { session, commands });
    }

    /// The same of an earlier client.
    pub fn say_as(&mut self, site: usize, client: u64, bytes: &Bytes) {
        self.sites[site].client = SessionId(client);
        self.say(site, bytes);
    }

    /// Some time passes. What has been under way for a link's time arrives, through bytes as over a link, and what is
    /// due is done.
    pub fn exchange(&mut self) {
        self.elapsed_us += EXCHANGE_US;
        for site in [LOCAL, REMOTE] {
            let sent = std::mem::take(&mut self.sites[1 - site].sent);
            let under_way = &mut self.sites[1 - site].under_way;
            under_way.extend(sent.into_iter().map(|envelope| (self.elapsed_us + LINK_US, envelope)));
            let arrived = under_way.partition_point(|(due_us, _)| *due_us <= self.elapsed_us);
            let arrived: Vec<Envelope> = under_way.drain(..arrived).map(|(_, envelope)| envelope).collect();
            for envelope in arrived {
                let mut bytes = Vec::new();
                codec::encode(&envelope, &mut bytes).expect("it is no longer than a frame");
                let envelope = codec::decode(&bytes.into()).expect("it was encoded by the same code");
                self.give(site, Input::Message(envelope));
            }
            if self.sites[site].node.next_timer().is_some_and(|due_us| due_us <= self.elapsed_us) {
                self.give(site, Input::Timer);
            }
        }
    }

    /// One turn with one input.
    pub fn give(&mut self, site: usize, input: Input) {
        self.elapsed_us += TURN_US;
        let now = self.now();
        let site = &mut self.sites[site];
        site.node.on_input(now, input);
        site.drain(now);
        site.node.on_input(now, Input::TurnEnd);
        site.drain(now);
    }

    /// Delivers everything and lets timers run until nothing is on its way.
    pub fn settle(&mut self) {
        let until_us = self.elapsed_us + QUIET_US;
        while self.elapsed_us < until_us {
            for site in [LOCAL, REMOTE] {
                for input in self.take_sent(site) {
                    self.give(site, input);
                }
                if self.sites[site].node.next_timer().is_some_and(|due_us| due_us <= self.elapsed_us) {
                    self.give(site, Input::Timer);
                }
            }
            let timers = self.sites.iter().filter_map(|site| site.node.next_timer());
            let next_us = timers.min().unwrap_or(until_us);
            if self.sites.iter().all(|site| site.sent.is_empty()) {
                self.elapsed_us = self.elapsed_us.max(next_us);
            }
        }
    }

    /// Takes what the other site has sent to this one.
    pub fn take_sent(&mut self, to: usize) -> Vec<Input> {
        self.sites[1 - to].sent.drain(..).map(Input::Message).collect()
    }

    /// Commands that were answered.
    pub fn answers(&self, site: usize) -> u32 {
        self.sites[site].answers
    }

    /// Keys that the first keyspace shows.
    pub fn applied(&mut self, site: usize) -> usize {
        let before = self.sites[site].answers;
        self.connect(site);
        self.say(site, &Bytes::from_static(b"*1\r\n$6\r\nDBSIZE\r\n"));
        assert!(self.sites[site].answers > before, "a count of keys is answered at once");
        self.sites[site].last_number()
    }

    fn now(&self) -> Now {
        Now { monotonic_us: self.elapsed_us, wall_ms: WALL_MS + self.elapsed_us / 1_000 }
    }
}

impl Site {
    fn new(config: NodeConfig, now: Now) -> Site {
        let partitions = config.topology.partitions;
        let node = Node::new(config, now).expect("the protocol exists");
        Site {
            node,
            files: (0..partitions).map(|_| Files::default()).collect(),
            parser: Parser::new(ParseLimits::default()),
            input: BytesMut::new(),
            client: SessionId(0),
            answers: 0,
            last_answer: Vec::new(),
            sent: VecDeque::new(),
            under_way: VecDeque::new(),
        }
    }

    /// Does at once what the node asks for.
    fn drain(&mut self, now: Now) {
        while let Some(output) = self.node.next_output() {
            match output {
                Output::Disk { partition, op } => {
                    let done = carry_out(&mut self.files[usize::from(partition.0)], op);
                    self.node.on_input(now, Input::Disk { partition, done });
                }
                Output::Reply { session, bytes, answered, wants_turn } => {
                    self.answers += answered;
                    self.last_answer = black_box(bytes);
                    if wants_turn {
                        self.node.on_input(now, Input::ClientCommands { session, commands: Vec::new() });
                    }
                }
                Output::Send { envelope, .. } => self.sent.push_back(envelope),
                Output::Push { .. } | Output::Disconnect { .. } | Output::Trace(_) => {}
                Output::Stopped
                | Output::Observed { .. }
                | Output::Errand { .. }
                | Output::Audit(_)
                | Output::Confirm { .. }
                | Output::Configure(_)
                | Output::Openness { .. } => {}
            }
        }
    }

    fn last_number(&self) -> usize {
        let text = std::str::from_utf8(&self.last_answer).unwrap_or_default();
        let number = text.trim_start_matches(':').trim_end();
        number.parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
    }
}

fn config(number: usize, protocol: &str, partitions: u16, tuning: &Tuning) -> NodeConfig {
    let datacenter = |number: usize| DatacenterTopology {
        replicas: Vec::new(),
        name: DatacenterId(number as u8).to_string(),
        cores: 1,
        nodes: vec![1],
        placement: vec![CoreId(0); usize::from(partitions)],
    };
    let topology = Topology {
        datacenter: DatacenterId(number as u8),
        partitions,
        datacenters: [LOCAL, REMOTE].map(datacenter).into(),
    };
    let protocols = vec![protocol.to_owned(); usize::from(limits::KEYSPACES)];
    NodeConfig {
        tuning: tuning.clone(),
        ..NodeConfig::new(topology, CoreId(0), &ensue_protocol::REGISTRY, protocols)
    }
}
