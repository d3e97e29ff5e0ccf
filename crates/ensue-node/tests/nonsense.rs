//! What other nodes say that is nonsense, though its framing is valid: a node that hears tens of thousands of such
//! messages
//! goes on serving.
//!
//! Three datacenters of four partitions, with protocols of every kind, work for clients; one node hears, between what
//! is really said,
//! generated messages and changed copies of real ones, in the name of another datacenter, or of another core of its
//! own.

use bytes::Bytes;
use ensue_node::{AppendFsync, DatacenterTopology, Input, Node, NodeConfig, Output, Topology, Trace, Tuning};
use ensue_store::testing::{Files, carry_out};
use ensue_types::{CoreId, DatacenterId, Now, PartitionId, Position, SessionId, limits, partition_of};
use ensue_wire::testing::generated;
use ensue_wire::{Address, Envelope, Message, decode, encode};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::{BTreeMap, VecDeque};

/// One of each kind: by operations, by times, by lists, with siblings, with states, with one stream, without causality.
const PROTOCOLS: [&str; 9] =
    ["eiger", "cure", "pocc", "cops-gt", "cops-cd", "tardis", "log", "eventual", "orbe-clock"];
const PARTITIONS: u16 = 4;
const WALL_MS: u64 = 1_767_225_600_000;
/// The datacenter whose first core hears nonsense.
const VICTIM: Site = (DatacenterId(0), CoreId(0));
const LIAR: DatacenterId = DatacenterId(1);
/// A client of each core that does what it likes, and one of the victim that asks about its own keys.
const WORKER: SessionId = SessionId(1);
const ASKER: SessionId = SessionId(2);
/// Real messages that copies are made of.
const REMEMBERED: usize = 1_000;

type Site = (DatacenterId, CoreId);

/// A source of chance.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound.max(1)
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

struct Cluster {
    nodes: BTreeMap<Site, Node>,
    files: BTreeMap<(DatacenterId, PartitionId), Files>,
    elapsed_us: u64,
    on_their_way: VecDeque<(Site, Envelope)>,
    /// Of what was really said, the latest.
    said: VecDeque<Envelope>,
    /// What the asker was answered.
    answers: Vec<u8>,
    refused: u64,
    /// How far the victim's partitions have said that their streams go.
    ends: BTreeMap<PartitionId, Position>,
    liar: Option<Liar>,
}

/// The first datacenter has two cores.
fn topology(datacenter: DatacenterId) -> Topology {
    let cores = |number: u8| if number == 0 { 2 } else { 1 };
    let one = |number: u8| DatacenterTopology {
        replicas: Vec::new(),
        name: DatacenterId(number).to_string(),
        cores: cores(number),
        nodes: vec![1; usize::from(cores(number))],
        placement: (0..PARTITIONS).map(|partition| CoreId(partition % cores(number))).collect(),
    };
    Topology { datacenter, partitions: PARTITIONS, datacenters: (0..3).map(one).collect() }
}

fn config((datacenter, core): Site, boot: u32, boot_id: u8) -> NodeConfig {
    let protocols = (0..usize::from(limits::KEYSPACES))
        .map(|keyspace| PROTOCOLS[keyspace % PROTOCOLS.len()].to_owned())
        .collect();
    NodeConfig {
        append_fsync: AppendFsync::EverySecond,
        boot,
        boot_id: [boot_id; 16],
        identity_seed: u128::from(datacenter.0) + 1,
        tuning: Tuning { segment_bytes: 256 << 10, checkpoint_bytes: 1 << 20, ..Tuning::default() },
        ..NodeConfig::new(topology(datacenter), core, &ensue_protocol::REGISTRY, protocols)
    }
}

impl Cluster {
    fn new() -> Cluster {
        let mut cluster = Cluster {
            nodes: BTreeMap::new(),
            files: BTreeMap::new(),
            elapsed_us: 1_000_000,
            on_their_way: VecDeque::new(),
            said: VecDeque::new(),
            answers: Vec::new(),
            refused: 0,
            ends: BTreeMap::new(),
            liar: None,
        };
        let sites = [(0, 0), (0, 1), (1, 0), (2, 0)].map(|(d, core)| (DatacenterId(d), CoreId(core)));
        sites.into_iter().for_each(|site| cluster.start(site, 1, 1));
        for one in sites {
            sites.into_iter().filter(|other| *other != one).for_each(|other| cluster.link(one, other, true));
        }
        cluster.settle();
        cluster
    }

    fn now(&self) -> Now {
        Now { monotonic_us: self.elapsed_us, wall_ms: WALL_MS + self.elapsed_us / 1_000 }
    }

    fn start(&mut self, site: Site, boot: u32, boot_id: u8) {
        let node = Node::new(config(site, boot, boot_id), self.now()).expect("the protocols are known");
        self.nodes.insert(site, node);
        self.drain(site);
        for session in [WORKER, ASKER] {
            let (address, local_address) = (String::new(), String::new());
            self.give(site, Input::ClientConnected { session, address, local_address });
        }
    }

    /// The victim dies and starts again, on the same boot of its machine or, its log perhaps without its end, on
    /// another.
    fn restart_victim(&mut self, boot: u32, boot_id: u8) {
        self.nodes.remove(&VICTIM);
        self.on_their_way.retain(|(to, _)| *to != VICTIM);
        let others: Vec<Site> = self.nodes.keys().copied().collect();
        others.iter().for_each(|other| self.link(*other, VICTIM, false));
        self.start(VICTIM, boot, boot_id);
        for other in others {
            self.link(other, VICTIM, true);
            self.link(VICTIM, other, true);
        }
    }

    fn link(&mut self, at: Site, (datacenter, core): Site, up: bool) {
        let input = match up {
            true => Input::LinkUp { datacenter, core },
            false => Input::LinkDown { datacenter, core },
        };
        self.give(at, input);
    }

    /// The link between the liar's datacenter and the victim breaks, and comes back.
    fn flap(&mut self) {
        let liar = (LIAR, CoreId(0));
        for up in [false, true] {
            self.on_their_way.retain(|(to, envelope)| {
                let from = envelope.from.datacenter();
                (*to, from) != (VICTIM, LIAR) && (*to, from) != (liar, VICTIM.0)
            });
            self.link(VICTIM, liar, up);
            self.link(liar, VICTIM, up);
        }
    }

    fn give(&mut self, site: Site, input: Input) {
        let now = self.now();
        self.nodes.get_mut(&site).expect("it runs").on_input(now, input);
        self.drain(site);
    }

    fn drain(&mut self, site: Site) {
        let now = self.now();
        while let Some(output) = self.nodes.get_mut(&site).expect("it runs").next_output() {
            match output {
                Output::Send { datacenter, core, envelope } => self.send(site, (datacenter, core), envelope),
                Output::Disk { partition, op } => {
                    let done = carry_out(self.files.entry((site.0, partition)).or_default(), op);
                    let node = self.nodes.get_mut(&site).expect("it runs");
                    node.on_input(now, Input::Disk { partition, done });
                }
                Output::Reply { session: ASKER, bytes, .. } => self.answers.extend_from_slice(&bytes),
                // That another datacenter is dead may be said, and then it is told: nobody here can know better. And
                // who lies about its own
                // stream is harmed by that itself: here, the real one by the false one.
                Output::Trace(Trace::PartitionStopped { reason, .. })
                    if site.0 != VICTIM.0 && reason.contains("was declared dead")
                        || site.0 == LIAR && self.liar == Some(Liar::AnotherDatacenter) => {}
                Output::Trace(Trace::PartitionStopped { partition, reason }) => {
                    panic!("partition {partition} of {} has stopped: {reason}", site.0)
                }
                Output::Trace(Trace::Refused { .. }) if site == VICTIM => self.refused += 1,
                _ => {}
            }
        }
    }

    fn send(&mut self, from: Site, to: Site, envelope: Envelope) {
        if let (VICTIM, Address::Partition { partition, .. }, Message::StreamAcknowledge(said)) =
            (from, envelope.from, &envelope.message)
        {
            self.ends.insert(partition, said.end);
        }
        if self.said.len() == REMEMBERED {
            self.said.pop_front();
        }
        self.said.push_back(envelope.clone());
        self.on_their_way.push_back((to, envelope));
    }

    /// Time passes by some milliseconds, and all that was said arrives.
    fn settle(&mut self) {
        self.elapsed_us += 5_000;
        let sites: Vec<Site> = self.nodes.keys().copied().collect();
        for site in &sites {
            self.give(*site, Input::Timer);
            self.give(*site, Input::TurnEnd);
        }
        for _ in 0..50 {
            if self.on_their_way.is_empty() {
                return;
            }
            for (to, envelope) in std::mem::take(&mut self.on_their_way) {
                self.give(to, Input::Message(envelope));
            }
            sites.iter().for_each(|site| self.give(*site, Input::TurnEnd));
        }
    }

    fn command(&mut self, site: Site, session: SessionId, line: &str) {
        let args = line.split(' ').map(|word| Bytes::from(word.to_owned())).collect();
        self.give(site, Input::ClientCommands { session, commands: vec![args] });
        self.give(site, Input::TurnEnd);
    }

    /// What the victim's asker is answered.
    fn ask(&mut self, line: &str) -> String {
        self.answers.clear();
        self.command(VICTIM, ASKER, line);
        for _ in 0..1_500 {
            if !self.answers.is_empty() {
                break;
            }
            self.settle();
        }
        String::from_utf8_lossy(&self.answers).into_owned()
    }

    /// Clients everywhere write what they like, in every keyspace.
    fn work(&mut self, chance: &mut Chance, number: usize) {
        let key = || format!("shared{}", number % 37);
        for site in self.nodes.keys().copied().collect::<Vec<_>>() {
            self.command(site, WORKER, &format!("SELECT {}", chance.below(PROTOCOLS.len())));
            let line = match chance.below(8) {
                0 => format!("SET {} {number}", key()),
                1 => format!("INCR counter{}", number % 5),
                2 => format!("HSET hash{} f{} {number}", number % 7, number % 3),
                3 => format!("MSET {} 1 other{} 2", key(), number % 11),
                4 => format!("DEL {}", key()),
                5 => format!("MGET {} other1 counter1", key()),
                6 => "BRANCH CEILING".to_owned(),
                _ => format!("GET {}", key()),
            };
            self.command(site, WORKER, &line);
        }
        self.settle();
    }
}

/// In whose name nonsense is said.
#[derive(Clone, Copy, PartialEq)]
enum Liar {
    AnotherDatacenter,
    AnotherCore,
}

struct Lies {
    chance: Chance,
    runner: TestRunner,
    liar: Liar,
    /// Whether the third datacenter may be declared dead.
    may_kill: bool,
    /// Whether more may be claimed than the victim has sent: then it refuses the liar until that introduces itself
    /// again.
    may_claim: bool,
}

impl Lies {
    fn new(seed: u64, liar: Liar) -> Lies {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let runner =
            TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
        Lies { chance: Chance(seed), runner, liar, may_kill: seed % 3 == 0, may_claim: seed % 2 == 0 }
    }

    /// Something that the victim is told.
    fn next(&mut self, cluster: &Cluster) -> Envelope {
        loop {
            let mut envelope = match self.chance.below(4) {
                0 => generated::envelope().new_tree(&mut self.runner).expect("an envelope").current(),
                _ => {
                    let copied = cluster.said[self.chance.below(cluster.said.len())].clone();
                    let Some(changed) = self.changed(&copied) else { continue };
                    changed
                }
            };
            self.address(&mut envelope);
            if !self.is_skipped(&envelope, cluster) {
                return envelope;
            }
        }
    }

    /// A copy of which some numbers are others, if it still can be read.
    fn changed(&mut self, envelope: &Envelope) -> Option<Envelope> {
        let mut bytes = Vec::new();
        encode(envelope, &mut bytes).expect("it was sent");
        for _ in 0..self.chance.below(4) {
            let width = self.chance.pick(&[1, 1, 2, 4, 8]);
            let at = self.chance.below(bytes.len());
            let Some(field) = bytes.get_mut(at..at + width) else { continue };
            let mut number = [0; 8];
            number[..width].copy_from_slice(field);
            let number = u64::from_le_bytes(number);
            let changed = match self.chance.below(6) {
                0 => number.wrapping_add(1),
                1 => number.wrapping_sub(1),
                2 => 0,
                3 => u64::MAX,
                4 => u64::MAX >> self.chance.below(64),
                _ => number ^ 1 << self.chance.below(8 * width),
            };
            field.copy_from_slice(&changed.to_le_bytes()[..width]);
        }
        decode(&Bytes::from(bytes)).ok()
    }

    /// The link proves who speaks; to whom it is said is mostly somebody there.
    fn address(&mut self, envelope: &mut Envelope) {
        let any = PartitionId(2 * self.chance.below(usize::from(PARTITIONS) / 2) as u16);
        let own = match envelope.to {
            Address::Partition { partition, .. } if partition.0 % 2 == 0 && partition.0 < PARTITIONS => {
                partition
            }
            _ => any,
        };
        let beside = match envelope.from {
            Address::Partition { partition, .. } if partition.0 % 2 == 1 && partition.0 < PARTITIONS => {
                partition
            }
            _ => PartitionId(any.0 + 1),
        };
        let of_core = matches!(envelope.from, Address::Core { .. }) || self.chance.below(16) == 0;
        let (datacenter, core) = match self.liar {
            Liar::AnotherDatacenter => (LIAR, CoreId(0)),
            Liar::AnotherCore => (VICTIM.0, CoreId(1)),
        };
        envelope.from = match self.liar {
            Liar::AnotherCore if of_core => Address::Core { datacenter, core },
            Liar::AnotherCore => Address::Partition { datacenter, partition: beside },
            Liar::AnotherDatacenter if of_core && self.chance.below(4) == 0 => {
                Address::Core { datacenter, core }
            }
            Liar::AnotherDatacenter => Address::Partition { datacenter, partition: own },
        };
        envelope.to = match (self.chance.below(32), envelope.to) {
            (0, to) => to,
            (_, Address::Core { .. }) => Address::Core { datacenter: VICTIM.0, core: VICTIM.1 },
            _ => Address::Partition { datacenter: VICTIM.0, partition: own },
        };
    }

    /// What is no nonsense for whoever hears it: that its datacenter was declared dead, which an operator of another
    /// one has done. And what
    /// would end all talk with the liar, in worlds that are about the rest.
    fn is_skipped(&self, envelope: &Envelope, cluster: &Cluster) -> bool {
        let Address::Partition { partition, .. } = envelope.to else { return false };
        let is_beyond = |received: &Position| cluster.ends.get(&partition).is_none_or(|end| received > end);
        match &envelope.message {
            Message::DatacenterFailed { datacenter, .. } => *datacenter == VICTIM.0 || !self.may_kill,
            _ if self.may_claim => false,
            Message::StreamResume { received, .. } => is_beyond(received),
            Message::StreamAcknowledge(acknowledge) => is_beyond(&acknowledge.received),
            Message::Introduce(_) => true,
            _ => false,
        }
    }
}

/// A key of the victim's own partitions, over however many partitions its keyspace is spread.
fn private_key(number: usize) -> String {
    let is_owned = |key: &String| partition_of(key.as_bytes(), PARTITIONS).0 % 2 == 0;
    (0..).map(|salt| format!("private{number}:{salt}")).find(is_owned).expect("half of them are")
}

fn write_private(cluster: &mut Cluster) {
    for (keyspace, protocol) in PROTOCOLS.iter().enumerate() {
        assert_eq!(cluster.ask(&format!("SELECT {keyspace}")), "+OK\r\n");
        let key = private_key(keyspace);
        assert_eq!(cluster.ask(&format!("SET {key} mine{keyspace}")), "+OK\r\n", "{protocol}");
    }
}

fn read_private(cluster: &mut Cluster, seed: u64) {
    for (keyspace, protocol) in PROTOCOLS.iter().enumerate() {
        assert_eq!(cluster.ask(&format!("SELECT {keyspace}")), "+OK\r\n", "seed {seed}");
        let expected = format!("$5\r\nmine{keyspace}\r\n");
        let answer = cluster.ask(&format!("GET {}", private_key(keyspace)));
        assert_eq!(answer, expected, "seed {seed}: {protocol}");
    }
}

/// Real work with nonsense in between.
fn torment(cluster: &mut Cluster, lies: &mut Lies, rounds: usize, lies_a_round: usize) {
    cluster.liar = Some(lies.liar);
    for number in 0..rounds {
        if number % 16 == 15 {
            cluster.flap();
        }
        cluster.work(&mut lies.chance, number);
        for _ in 0..lies_a_round {
            let envelope = lies.next(cluster);
            cluster.give(VICTIM, Input::Message(envelope));
        }
        cluster.give(VICTIM, Input::TurnEnd);
    }
}

/// So many, or as the environment says: `NONSENSE_SEED=7` is that one, `NONSENSE_SEEDS=500` is so many.
#[expect(clippy::disallowed_methods, reason = "a test has no arguments")]
fn seeds(count: u64) -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("NONSENSE_SEED") {
        Some(one) => one..one + 1,
        None => 1..1 + number("NONSENSE_SEEDS").unwrap_or(count),
    }
}

#[test]
fn whatever_another_datacenter_says_clients_get_right_answers() {
    for seed in seeds(6) {
        let mut cluster = Cluster::new();
        let mut lies = Lies::new(seed, Liar::AnotherDatacenter);
        torment(&mut cluster, &mut lies, 10, 0);
        write_private(&mut cluster);
        torment(&mut cluster, &mut lies, 60, 60);
        read_private(&mut cluster, seed);
        assert!(cluster.refused > 1_000, "seed {seed}: of all that nonsense {} was refused", cluster.refused);
    }
}

#[test]
fn whatever_another_core_says_no_partition_stops_and_clients_are_answered() {
    for seed in seeds(6) {
        let mut cluster = Cluster::new();
        let mut lies = Lies::new(seed, Liar::AnotherCore);
        torment(&mut cluster, &mut lies, 10, 0);
        torment(&mut cluster, &mut lies, 60, 60);
        for (keyspace, protocol) in PROTOCOLS.iter().enumerate() {
            assert_eq!(cluster.ask(&format!("SELECT {keyspace}")), "+OK\r\n", "seed {seed}");
            let answer = cluster.ask(&format!("GET {}", private_key(keyspace)));
            assert!(!answer.is_empty(), "seed {seed}: {protocol} is silent");
        }
    }
}

/// While a log is read again, or its lost end comes back, nonsense stops nothing either.
#[test]
fn whatever_is_said_to_a_partition_that_starts_it_does_not_stop() {
    for seed in seeds(8) {
        let liar = if seed % 2 == 0 { Liar::AnotherCore } else { Liar::AnotherDatacenter };
        let mut cluster = Cluster::new();
        let mut lies = Lies::new(seed, liar);
        torment(&mut cluster, &mut lies, 20, 10);
        for boot in 2..5 {
            // On the same boot of the machine, or on another one: then the log may have lost its end.
            cluster.restart_victim(boot, if seed % 4 < 2 { 1 } else { boot as u8 });
            torment(&mut cluster, &mut lies, 8, 40);
        }
        assert_eq!(cluster.ask("PING"), "+PONG\r\n", "seed {seed}");
    }
}
