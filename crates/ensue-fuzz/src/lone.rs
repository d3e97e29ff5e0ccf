//! A real node of one core and two partitions, with disks in memory and a clock that is told the time.

use bytes::BytesMut;
use ensue_node::{DatacenterTopology, Input, Node, NodeConfig, Output, Topology};
use ensue_resp::Decoder;
use ensue_store::testing::{Files, carry_out};
use ensue_types::{Args, CoreId, DatacenterId, Now, PartitionId, SessionId, limits};
use std::collections::BTreeMap;

/// Partitions of the node.
pub const PARTITIONS: u16 = 2;
/// The one client.
const CLIENT: SessionId = SessionId(1);
const WALL_MS: u64 = 1_767_225_600_000;
/// No command may ask for more time than this: what is not answered then never is.
const PATIENCE_US: u64 = 120_000_000;

/// The node and what surrounds it.
#[derive(Clone)]
pub struct Lone {
    node: Node,
    pub disks: BTreeMap<PartitionId, Files>,
    elapsed_us: u64,
    /// Everything that the client was sent.
    pub replies: BytesMut,
    pub answered: u32,
    pub disconnected: bool,
}

impl Lone {
    /// A node in the first of so many datacenters that has read these files.
    pub fn new(datacenters: u8, disks: BTreeMap<PartitionId, Files>) -> Lone {
        let config = config(datacenters);
        let now = Now { monotonic_us: 1, wall_ms: WALL_MS };
        let node = Node::new(config, now).expect("the protocol exists");
        let mut lone =
            Lone { node, disks, elapsed_us: 1, replies: BytesMut::new(), answered: 0, disconnected: false };
        lone.drain();
        lone
    }

    pub fn connect(&mut self) {
        let (address, local_address) = ("10.0.0.1:40000".to_owned(), "10.0.0.2:6379".to_owned());
        self.give(Input::ClientConnected { session: CLIENT, address, local_address });
    }

    pub fn say(&mut self, commands: Vec<Args>) {
        self.give(Input::ClientCommands { session: CLIENT, commands });
    }

    pub fn break_client(&mut self, error: String) {
        self.give(Input::ClientBroke { session: CLIENT, error });
    }

    pub fn give(&mut self, input: Input) {
        self.node.on_input(self.now(), input);
        self.drain();
        self.node.on_input(self.now(), Input::TurnEnd);
        self.drain();
    }

    /// Lets timers run until this many commands are answered, or nobody can expect an answer any more.
    pub fn await_answers(&mut self, count: u32) {
        while self.answered < count && !self.disconnected {
            let Some(next) = self.node.next_timer().filter(|&next| next < PATIENCE_US) else { return };
            self.elapsed_us = self.elapsed_us.max(next);
            self.give(Input::Timer);
        }
    }

    /// The replies must be whole answers, nothing before, between or behind them. How many.
    pub fn check_replies(&mut self) -> u32 {
        let mut decoder = Decoder::new();
        let mut count = 0;
        loop {
            match decoder.next(&mut self.replies) {
                Ok(Some(_)) => count += 1,
                Ok(None) => break,
                Err(error) => panic!("a client cannot read its answers: {error}"),
            }
        }
        assert!(self.replies.is_empty(), "an answer is cut short: {:?}", self.replies);
        count
    }

    fn now(&self) -> Now {
        Now { monotonic_us: self.elapsed_us, wall_ms: WALL_MS + self.elapsed_us / 1_000 }
    }

    fn drain(&mut self) {
        while let Some(output) = self.node.next_output() {
            match output {
                Output::Disk { partition, op } => {
                    let done = carry_out(self.disks.entry(partition).or_default(), op);
                    self.node.on_input(self.now(), Input::Disk { partition, done });
                }
                Output::Reply { bytes, answered, wants_turn, .. } => {
                    self.replies.extend_from_slice(&bytes);
                    self.answered += answered;
                    if wants_turn {
                        let commands = Vec::new();
                        self.node.on_input(self.now(), Input::ClientCommands { session: CLIENT, commands });
                    }
                }
                Output::Push { bytes, .. } => self.replies.extend_from_slice(&bytes),
                Output::Disconnect { .. } => self.disconnected = true,
                Output::Errand { session, number, errand } => {
                    if let Ok(done) = errand.run(|bytes| bytes.fill(7)) {
                        self.node.on_input(self.now(), Input::ErrandDone { session, number, done });
                    }
                }
                Output::Send { .. } | Output::Trace(_) | Output::Stopped | Output::Observed { .. } => {}
                Output::Openness { .. }
                | Output::Audit(_)
                | Output::Configure(_)
                | Output::Confirm { .. } => {}
            }
        }
    }
}

fn config(datacenters: u8) -> NodeConfig {
    let datacenters = (0..datacenters).map(|number| DatacenterTopology {
        replicas: Vec::new(),
        name: DatacenterId(number).to_string(),
        cores: 1,
        nodes: vec![1],
        placement: vec![CoreId(0); usize::from(PARTITIONS)],
    });
    let topology =
        Topology { datacenter: DatacenterId(0), partitions: PARTITIONS, datacenters: datacenters.collect() };
    let protocols = vec![ensue_protocol::NAMES[0].to_owned(); usize::from(limits::KEYSPACES)];
    NodeConfig::new(topology, CoreId(0), &ensue_protocol::REGISTRY, protocols)
}
