//! A branching keyspace in one datacenter, in two, in three: what one more costs those that are there (TARDiS, section
//! 7.1.6).
//!
//! In each datacenter the same clients run transactions one command after the other: begin, three reads, three writes
//! of uniform keys, commit. One session of the first merges all leaves again and again. Latency is told in virtual
//! time, in which a turn of a node takes a time of its own; what the work is worth is told in processor time, measured
//! around each call of a node.

pub mod chart;
pub mod table;

use super::Span;
use super::cost::percentile;
use ensue_sim::random::Random;
use ensue_sim::resp::args;
use ensue_sim::resp::{Answer, Answers};
use ensue_sim::stopwatch::Stopwatch;
use ensue_sim::world::event::{Alarm, ConnectionId};
use ensue_sim::world::options::Options;
use ensue_sim::world::shape::{Shape, Site};
use ensue_sim::world::{Happening, World};
use ensue_types::{CoreId, DatacenterId};
use std::collections::BTreeMap;

/// Of each datacenter.
const CLIENTS: usize = 8;
const KEYS: u64 = 10_000;
const READS: usize = 3;
const WRITES: usize = 3;
const THINK_US: u64 = 8_000;
const MERGE_EVERY_US: u64 = 50_000;
/// The longest that a turn of a node takes.
const TURN_US: u64 = 20;
/// Nodes have met.
const BEGIN_US: u64 = 500_000;
/// One way, from a datacenter to another, in milliseconds; the delays of the other comparisons.
const DELAYS_MS: [[u64; 3]; 3] = [[0, 40, 80], [40, 0, 60], [80, 60, 0]];
pub const SITES_MAX: u8 = DELAYS_MS.len() as u8;

/// What a run showed.
#[derive(Clone, Debug)]
pub struct Scale {
    pub sites: u8,
    /// How long was counted.
    pub counted_us: u64,
    /// Transactions that were committed in each datacenter; merges are none.
    pub commits: Vec<u64>,
    pub aborts: u64,
    pub merges: u64,
    /// How long a commit took in the first datacenter, from being asked for to its answer, and a whole transaction;
    /// ascending.
    pub commit_us: Vec<u64>,
    pub transaction_us: Vec<u64>,
    /// Processor time of all nodes.
    pub spent_ns: u64,
    /// Leaves in the first datacenter, the most that a merge found.
    pub leaves: usize,
}

impl Scale {
    pub fn committed(&self) -> u64 {
        self.commits.iter().sum()
    }

    /// Of all datacenters, in a virtual second.
    pub fn rate(&self) -> f64 {
        self.committed() as f64 * 1e6 / self.counted_us.max(1) as f64
    }

    /// Of the transactions in the first datacenter, and of their commits, in milliseconds.
    pub fn transaction_ms(&self, percent: usize) -> f64 {
        milliseconds(&self.transaction_us, percent)
    }

    pub fn commit_ms(&self, percent: usize) -> f64 {
        milliseconds(&self.commit_us, percent)
    }

    /// Processor time of all nodes for a transaction of any client, in microseconds.
    pub fn node_us(&self) -> f64 {
        self.spent_ns as f64 / 1e3 / self.committed().max(1) as f64
    }

    /// Transactions a second of all datacenters, if each had one core and nothing but this to do.
    pub fn capacity(&self) -> f64 {
        f64::from(self.sites) * 1e6 / self.node_us()
    }
}

fn milliseconds(ascending_us: &[u64], percent: usize) -> f64 {
    percentile(ascending_us, percent).unwrap_or_default() as f64 / 1e3
}

/// Runs so many datacenters.
pub fn run(sites: u8, seed: u64, span: Span, stopwatch: Stopwatch) -> Result<Scale, String> {
    let mut world = world(sites, seed);
    let mut clients = Clients::new(&mut world);
    let begin_us = BEGIN_US + span.warmup_us;
    clients.step(&mut world, begin_us)?;
    clients.begin(sites, span.counted_us);
    world.stopwatch = Some(stopwatch);
    clients.step(&mut world, begin_us + span.counted_us)?;
    let mut scale = clients.scale;
    scale.spent_ns = world.stopwatch.take().map_or(0, |stopwatch| stopwatch.spent_ns());
    scale.commit_us.sort_unstable();
    scale.transaction_us.sort_unstable();
    Ok(scale)
}

fn world(sites: u8, seed: u64) -> World {
    let shape = Shape { replicas: 1, datacenters: sites, cores: 1, partitions: 1, one_process: true };
    let mut options = Options::calm(shape, 0, ensue_sim::rules::Rules::default());
    options.seed = seed;
    options.protocol = ensue_protocol::find("tardis").expect("it is registered");
    options.tuning = ensue_node::Tuning::default();
    options.turn_us_max = TURN_US;
    options.links.local_us = (50, 150);
    options.links.jitter_us = 2_000;
    let of = |row: [u64; 3]| row.iter().take(usize::from(sites)).map(|ms| ms * 1_000).collect();
    options.links.delay_us = DELAYS_MS.into_iter().take(usize::from(sites)).map(of).collect();
    let mut world = World::new(options);
    world.events_max = u64::MAX;
    world
}

/// What a client asks, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Begin,
    Read(usize),
    Write(usize),
    Commit,
    /// Of the session that merges.
    Merge,
    Join,
}

#[derive(Debug)]
struct Client {
    datacenter: DatacenterId,
    connection: ConnectionId,
    random: Random,
    answers: Answers,
    /// What it asked last, or asks next.
    step: Step,
    began_us: u64,
    asked_us: u64,
}

#[derive(Debug)]
struct Clients {
    clients: Vec<Client>,
    connections: BTreeMap<ConnectionId, usize>,
    written: u64,
    is_counting: bool,
    scale: Scale,
}

impl Clients {
    fn new(world: &mut World) -> Clients {
        let shape = world.options.shape;
        let workers = (0..shape.datacenters).flat_map(|site| [(DatacenterId(site), Step::Begin); CLIENTS]);
        let mut clients = Vec::new();
        let mut connections = BTreeMap::new();
        for (index, (datacenter, step)) in workers.chain([(DatacenterId(0), Step::Merge)]).enumerate() {
            let site: Site = shape.site(datacenter, CoreId(0));
            let connection = world.connect(site);
            let mut random = Random::stream(world.options.seed, &format!("client {index}"));
            world.alarm(BEGIN_US + random.below(2 * THINK_US), Alarm::Client(index));
            connections.insert(connection, index);
            let (answers, began_us, asked_us) = (Answers::default(), 0, 0);
            clients.push(Client { datacenter, connection, random, answers, step, began_us, asked_us });
        }
        let scale = Scale::new(shape.datacenters, 0);
        Clients { clients, connections, written: 0, is_counting: false, scale }
    }

    /// From now on everything counts.
    fn begin(&mut self, sites: u8, counted_us: u64) {
        self.is_counting = true;
        self.scale = Scale::new(sites, counted_us);
    }

    fn step(&mut self, world: &mut World, until_us: u64) -> Result<(), String> {
        while let Some(happening) = world.step(until_us) {
            match happening {
                Happening::Alarm(Alarm::Client(index)) => self.ask(world, index),
                Happening::Answer { connection, bytes, .. } => {
                    let index = *self.connections.get(&connection).ok_or("an answer to nobody")?;
                    self.clients[index].answers.extend(&bytes);
                    while let Some(answer) = self.clients[index].answers.pop()? {
                        self.on_answer(world, index, &answer)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn ask(&mut self, world: &mut World, index: usize) {
        let now_us = world.now();
        let client = &mut self.clients[index];
        client.asked_us = now_us;
        let words = match client.step {
            Step::Begin => {
                client.began_us = now_us;
                "BRANCH BEGIN".to_owned()
            }
            Step::Read(_) => format!("GET key:{}", client.random.below(KEYS)),
            Step::Write(_) => {
                self.written += 1;
                format!("SET key:{} value-{:010}", client.random.below(KEYS), self.written)
            }
            Step::Commit | Step::Join => "BRANCH COMMIT".to_owned(),
            Step::Merge => "BRANCH MERGE".to_owned(),
        };
        world.send(client.connection, vec![args(&words)]);
    }

    fn on_answer(&mut self, world: &mut World, index: usize, answer: &Answer) -> Result<(), String> {
        let now_us = world.now();
        let client = &mut self.clients[index];
        let step = client.step;
        let is_aborted = answer.error().is_some_and(|error| error.starts_with("ABORT"));
        if let Some(error) = answer.error().filter(|_| !is_aborted) {
            return Err(format!("{step:?} was answered {error}"));
        }
        client.step = match step {
            Step::Begin => Step::Read(1),
            Step::Read(READS) => Step::Write(1),
            Step::Read(count) => Step::Read(count + 1),
            Step::Write(WRITES) => Step::Commit,
            Step::Write(count) => Step::Write(count + 1),
            Step::Commit => Step::Begin,
            // One leaf is nothing to merge.
            Step::Merge if !is_aborted => Step::Join,
            Step::Merge | Step::Join => Step::Merge,
        };
        let wait_us = match client.step {
            Step::Begin => client.random.below(2 * THINK_US),
            Step::Merge => MERGE_EVERY_US,
            _ => 0,
        };
        if self.is_counting {
            self.count(index, step, answer, is_aborted, now_us);
        }
        world.alarm(now_us + wait_us, Alarm::Client(index));
        Ok(())
    }

    fn count(&mut self, index: usize, step: Step, answer: &Answer, is_aborted: bool, now_us: u64) {
        let client = &self.clients[index];
        let first = client.datacenter == DatacenterId(0);
        match (step, answer) {
            (Step::Merge, Answer::Array(leaves)) => self.scale.leaves = self.scale.leaves.max(leaves.len()),
            (Step::Join, _) => self.scale.merges += u64::from(!is_aborted),
            (Step::Commit, _) if is_aborted => self.scale.aborts += 1,
            (Step::Commit, _) => {
                self.scale.commits[usize::from(client.datacenter.0)] += 1;
                if first {
                    self.scale.commit_us.push(now_us - client.asked_us);
                    self.scale.transaction_us.push(now_us - client.began_us);
                }
            }
            _ => {}
        }
    }
}

impl Scale {
    fn new(sites: u8, counted_us: u64) -> Scale {
        Scale {
            sites,
            counted_us,
            commits: vec![0; usize::from(sites)],
            aborts: 0,
            merges: 0,
            commit_us: Vec::new(),
            transaction_us: Vec::new(),
            spent_ns: 0,
            leaves: 0,
        }
    }
}

#[cfg(test)]
mod tests;
