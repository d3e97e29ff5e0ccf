//! The sessions of one core against partitions that say what the test tells them to.

mod batch;
mod blocked;
mod causal;
mod connection;
mod failures;
mod fan_out;
mod homes;
mod homes_moving;
mod homes_serving;
mod homes_waited_at;
mod homes_waiting;
mod links;
mod multi;
mod observation;
mod performance;
mod pubsub;
mod reads;
mod saving;
mod scripts;
mod server;
mod shared;
mod tokens;
mod tracking;
mod turns;
mod users;
mod watch;
mod writes;

use super::{SessionOutput, Sessions};
use crate::config::{DatacenterTopology, Tuning};
use crate::host_parameters::HostParameters;
use crate::observation::Observation;
use crate::{NodeConfig, Topology, Trace};
use bytes::Bytes;
use ensue_types::{
    Args, Causes, Context, CoreId, DatacenterId, LogicalTime, Now, OperationId, PartitionId, Position, Reply,
    RequestId, SessionId, Source, Stamp, limits, partition_of,
};
use ensue_wire::{Address, Envelope, FirstValues, Message};
use std::collections::VecDeque;
use std::sync::Arc;

const PARTITIONS: u16 = 4;
const CLIENT: SessionId = SessionId(7);
const WALL_MS: u64 = 1_700_000_000_000;

/// A core with one client, and everything that it has said and nobody has looked at.
struct World {
    sessions: Sessions,
    now: Now,
    sent: VecDeque<Envelope>,
    bytes: String,
    answered: u32,
    wants_turn: bool,
    disconnected: bool,
    traces: Vec<Trace>,
    /// What was pushed, to whom.
    pushed: Vec<(SessionId, String)>,
    observed: Vec<(SessionId, Observation)>,
    /// How many were done.
    errands: usize,
    /// They wait, with their numbers, for the test to do them.
    keeps_errands: bool,
    kept: Vec<(u64, crate::Errand)>,
    /// Whether the door was opened or closed.
    openness: Vec<bool>,
    configured: Vec<HostParameters>,
    audits: Vec<crate::Audit>,
}

/// Keyspaces 0 and 1 with causality, keyspace 2 without; partitions 0 and 1 on core 0, 2 and 3 on core 1.
fn config() -> NodeConfig {
    let datacenter = |name: &str| DatacenterTopology {
        replicas: Vec::new(),
        name: name.into(),
        cores: 2,
        nodes: vec![1, 1],
        placement: (0..PARTITIONS).map(|partition| CoreId(partition / 2)).collect(),
    };
    let topology = Topology {
        datacenter: DatacenterId(0),
        partitions: PARTITIONS,
        datacenters: vec![datacenter("dc1"), datacenter("dc2")],
    };
    let protocols = ["eiger", "eiger", "eventual"].map(String::from).to_vec();
    NodeConfig {
        boot: 3,
        directives: vec![("appendonly".into(), "yes".into()), ("save".into(), String::new())],
        info: vec![("tcp_port".into(), "6379".into())],
        ..NodeConfig::new(topology, CoreId(0), &ensue_protocol::REGISTRY, protocols)
    }
}

impl World {
    fn new() -> World {
        World::with(config())
    }

    fn with(config: NodeConfig) -> World {
        let protocols = crate::node::protocols(&config).expect("the tests name known ones");
        let mut world = World {
            sessions: Sessions::new(Arc::new(config), protocols),
            now: Now { monotonic_us: 1_000_000, wall_ms: WALL_MS },
            sent: VecDeque::new(),
            bytes: String::new(),
            answered: 0,
            wants_turn: false,
            disconnected: false,
            traces: Vec::new(),
            pushed: Vec::new(),
            observed: Vec::new(),
            errands: 0,
            keeps_errands: false,
            kept: Vec::new(),
            openness: Vec::new(),
            configured: Vec::new(),
            audits: Vec::new(),
        };
        world.sessions.on_link_up(CoreId(1));
        world.sessions.on_connected(world.now, CLIENT, "10.0.0.1:5000".into(), "10.0.0.2:6379".into());
        world
    }

    /// Commands in one arrival, each as words between blanks.
    fn send(&mut self, commands: &[&str]) {
        let commands = commands.iter().map(|line| args(line)).collect();
        self.sessions.on_commands(self.now, CLIENT, commands);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.sessions.next_output() {
            match output {
                SessionOutput::Reply { session, bytes, answered, wants_turn } => {
                    assert_eq!(session, CLIENT);
                    self.bytes.push_str(&String::from_utf8(bytes).expect("the tests use text"));
                    self.answered += answered;
                    self.wants_turn = wants_turn;
                }
                SessionOutput::Push { session, bytes } => {
                    let text = String::from_utf8(bytes.to_vec()).expect("the tests use text");
                    self.pushed.push((session, text.replace("\r\n", "|")));
                }
                SessionOutput::Disconnect { session } => {
                    assert_eq!(session, CLIENT);
                    self.disconnected = true;
                }
                SessionOutput::Observed { session, observation } => {
                    self.observed.push((session, *observation));
                }
                SessionOutput::Audit(audit) => self.audits.push(*audit),
                SessionOutput::Configure(parameters) => self.configured.push(*parameters),
                SessionOutput::Openness { is_open } => self.openness.push(is_open),
                SessionOutput::Errand { session, number, errand } => {
                    self.errands += 1;
                    if self.keeps_errands {
                        self.kept.push((number, errand));
                        continue;
                    }
                    let done = errand.run(|bytes| bytes.fill(7)).expect("no test has a file");
                    self.sessions.on_errand_done(self.now, session, number, done);
                }
                SessionOutput::Send(envelope) => self.sent.push_back(envelope),
                SessionOutput::Trace(trace) => self.traces.push(trace),
            }
        }
    }

    /// The oldest message that nobody has looked at.
    fn next(&mut self) -> Envelope {
        self.sent.pop_front().expect("a message was sent")
    }

    fn answer(&mut self, to: &Envelope, time: u64, message: Message) {
        let envelope = Envelope { from: to.to, to: to.from, time: LogicalTime(time), message };
        self.sessions.on_message(self.now, envelope);
        self.drain();
    }

    /// What the client received since the last call, `\r\n` as `|`.
    fn received(&mut self) -> String {
        std::mem::take(&mut self.bytes).replace("\r\n", "|")
    }

    /// Sends one command that is answered at once.
    fn ask(&mut self, command: &str) -> String {
        self.send(&[command]);
        assert!(self.sent.is_empty(), "{command} asked someone");
        self.received()
    }

    /// Answers the oldest message, an `Execute`, with these replies and no context.
    fn executed(&mut self, replies: Vec<Reply>) {
        let envelope = self.next();
        let request = request(&envelope);
        assert!(matches!(envelope.message, Message::Execute { .. }), "{:?}", envelope.message);
        self.answer(&envelope, 1, Message::Executed { request, context: Context::default(), replies });
    }

    /// Its next turn, without new commands.
    fn give_turn(&mut self) {
        assert!(std::mem::take(&mut self.wants_turn), "nobody asked for a turn");
        self.send(&[]);
    }

    fn leave(&mut self) {
        self.sessions.on_gone(self.now, CLIENT);
        self.drain();
    }

    fn pass_ms(&mut self, ms: u64) {
        self.now.monotonic_us += ms * 1_000;
        self.now.wall_ms += ms;
        self.sessions.on_timer(self.now);
        self.drain();
    }
}

fn args(line: &str) -> Args {
    line.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
}

fn bulk(text: &str) -> Reply {
    Reply::bulk(text.to_owned())
}

/// The `number`th key that lives in a partition.
fn key(partition: u16, number: usize) -> String {
    let keys = (0..).map(|index| format!("k{index}"));
    keys.filter(|key| partition_of(key.as_bytes(), PARTITIONS) == PartitionId(partition))
        .nth(number)
        .expect("there is no end of keys")
}

fn request(envelope: &Envelope) -> RequestId {
    match &envelope.message {
        Message::Execute { request, .. }
        | Message::ReadFirst { request, .. }
        | Message::ReadAt { request, .. }
        | Message::Transact { request, .. }
        | Message::AwaitReplicas { request, .. }
        | Message::CountReplicas { request, .. }
        | Message::ContextFetch { request, .. }
        | Message::ContextMerge { request, .. }
        | Message::MetricsQuery { request }
        | Message::CoreQuery { request, .. } => *request,
        other => panic!("{other:?} is no request"),
    }
}

fn partition(envelope: &Envelope) -> u16 {
    match envelope.to {
        Address::Partition { datacenter: DatacenterId(0), partition } => partition.0,
        other => panic!("{other:?} is no partition of this datacenter"),
    }
}

fn executes(envelope: &Envelope) -> Vec<String> {
    match &envelope.message {
        Message::Execute { commands, .. }
        | Message::ReadFirst { commands, .. }
        | Message::ReadAt { commands, .. } => commands.iter().map(words).collect(),
        other => panic!("{other:?} has no commands"),
    }
}

fn words(args: &Args) -> String {
    let words: Vec<_> = args.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    words.join(" ")
}

/// Causes of the protocol that name these operations.
fn causes(operations: &[(u8, u16, u64)]) -> Causes {
    let protocol = ensue_protocol::by_name("eiger", Default::default()).expect("known");
    let source = |&(datacenter, partition, position): &(u8, u16, u64)| Source {
        operation: OperationId {
            datacenter: DatacenterId(datacenter),
            partition: PartitionId(partition),
            position: Position(position),
            ..OperationId::default()
        },
        stamp: Stamp::default(),
        dependencies: None,
    };
    let sources: Vec<Source> = operations.iter().map(source).collect();
    let mut causes = Causes::Nothing;
    protocol.record_reads(&mut causes, &sources, &[]);
    causes
}

/// A first round's answer with values valid from and to these times, which saw one operation.
fn first(envelope: &Envelope, from: u64, to: u64, replies: Vec<Reply>) -> Message {
    let seen = causes(&[(0, partition(envelope), from)]);
    let values = FirstValues { replies, earliest_valid: LogicalTime(from), seen };
    Message::ReadFirstDone { request: request(envelope), latest_valid: LogicalTime(to), values: Some(values) }
}

/// Users of whom the default one has this password.
fn users_with_password(password: &str) -> ensue_acl::Users {
    let mut users = ensue_acl::Users::new();
    let rule = format!("#{}", ensue_acl::Verifier::sha256(password.as_bytes()));
    let mut salts = ensue_acl::Immediate(|| ensue_acl::Salt([7; 16]));
    users.set(b"default", &["resetpass", rule.as_str()], &mut salts).unwrap();
    users
}
