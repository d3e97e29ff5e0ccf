//! The clients of a comparison: each asks, waits for the answer, thinks, and asks again.
//!
//! For each `SET` there are so many `GET`s and one `MGET` of four keys. All keys are written once before.
//! One write in ten is of a key of its own, for the probes.

use super::demand::{Demand, Draw};
use super::probes::Probes;
use super::reads::{Acknowledged, Read};
use ensue_node::Trace;
use ensue_sim::random::Random;
use ensue_sim::resp::args;
use ensue_sim::resp::{Answer, Answers};
use ensue_sim::world::event::{Alarm, ConnectionId};
use ensue_sim::world::shape::{Shape, Site};
use ensue_sim::world::traffic::{Key, WriteNumber};
use ensue_sim::world::{Happening, World};
use ensue_types::{DatacenterId, PartitionId, partition_of};
use std::collections::{BTreeMap, BTreeSet};

/// The exponent of the usual benchmark.
const ZIPF: f64 = 0.99;
/// Nodes have met by then.
const BEGIN_US: u64 = 500_000;

#[derive(Clone, Debug)]
enum Operation {
    Get(Key),
    Set(Key, WriteNumber),
    Mget(Vec<Key>),
}

#[derive(Debug)]
struct Client {
    site: Site,
    connection: ConnectionId,
    random: Random,
    answers: Answers,
    waiting: Option<(u64, Operation)>,
    has_begun: bool,
    /// Its first writes that have not been answered.
    loading: usize,
}

/// All clients, and what they did and saw.
#[derive(Debug)]
pub struct Load {
    demand: Demand,
    clients: Vec<Client>,
    connections: BTreeMap<ConnectionId, usize>,
    /// For each key, how many of all accesses are to it or to one before it.
    shares: Vec<f64>,
    shape: Shape,
    writes: u64,
    operations: u64,
    /// Requests that partitions got, each share of an `MGET` one.
    requests: u64,
    /// Whether what is seen is written down, and probes are sent.
    watches: bool,
    is_counting: bool,
    is_over: bool,
    probes: Probes,
    pub reads: Vec<Read>,
    pub acknowledged: Vec<Acknowledged>,
    /// From the question to the answer, of what counts: operations on one key, and on several.
    pub single_us: Vec<u64>,
    pub several_us: Vec<u64>,
    written_us: BTreeMap<WriteNumber, u64>,
    /// Where figures are asked for, and what was answered: at the beginning and at the end, summed over datacenters.
    surveys: BTreeMap<ConnectionId, (bool, Answers)>,
    before: BTreeMap<String, u64>,
    after: BTreeMap<String, u64>,
}

impl Load {
    /// Clients that begin when the nodes have met: with a share of the keys each, all at once.
    pub fn new(world: &mut World, demand: Demand, watches: bool) -> Load {
        let shape = world.options.shape;
        let sites = (0..shape.sites()).map(Site).filter(|site| shape.datacenter(*site).0 < demand.asked);
        let mut clients = Vec::new();
        let mut connections = BTreeMap::new();
        for (index, site) in sites.flat_map(|site| std::iter::repeat_n(site, demand.clients)).enumerate() {
            let connection = world.connect(site);
            let mut random = Random::stream(world.options.seed, &format!("client {index}"));
            connections.insert(connection, index);
            world.alarm(BEGIN_US + demand.think_us(&mut random), Alarm::Client(index));
            let answers = Answers::default();
            clients.push(Client {
                site,
                connection,
                random,
                answers,
                waiting: None,
                has_begun: false,
                loading: 0,
            });
        }
        Load {
            demand,
            probes: Probes::new(clients.len()),
            clients,
            connections,
            shares: shares_of(demand.draw, demand.keys),
            shape: world.options.shape,
            writes: 0,
            operations: 0,
            requests: 0,
            watches,
            is_counting: false,
            is_over: false,
            reads: Vec::new(),
            acknowledged: Vec::new(),
            single_us: Vec::new(),
            several_us: Vec::new(),
            written_us: BTreeMap::new(),
            surveys: BTreeMap::new(),
            before: BTreeMap::new(),
            after: BTreeMap::new(),
        }
    }

    /// Lets the world go on until then. An answer that is an error ends the comparison.
    pub fn run(&mut self, world: &mut World, until_us: u64) -> Result<(), String> {
        while let Some(happening) = world.step(until_us) {
            match happening {
                Happening::Alarm(Alarm::Client(number)) if number < self.clients.len() => {
                    self.ask(world, number)
                }
                Happening::Alarm(Alarm::Client(number)) => self.probes.on_alarm(world, number),
                Happening::Answer { connection, bytes, .. } => self.on_answer(world, connection, &bytes)?,
                Happening::Trace { site, trace, .. } => self.on_trace(world, site, &trace),
                _ => {}
            }
        }
        Ok(())
    }

    /// From now on everything counts.
    pub fn begin(&mut self, world: &mut World) {
        self.is_counting = true;
        self.requests = 0;
        if let Some(traffic) = &mut world.traffic {
            traffic.count(true);
        }
        self.survey(world, false);
    }

    /// Nothing counts any more, and nothing new is asked.
    pub fn end(&mut self, world: &mut World) {
        self.is_counting = false;
        self.is_over = true;
        if let Some(traffic) = &mut world.traffic {
            traffic.count(false);
        }
        self.survey(world, true);
    }

    /// Operations that were answered.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// How much a figure of the nodes rose.
    pub fn figure(&self, name: &str) -> u64 {
        let at = |figures: &BTreeMap<String, u64>| figures.get(name).copied().unwrap_or(0);
        at(&self.after).saturating_sub(at(&self.before))
    }

    /// How long updates took to be seen, and how many were not seen at all.
    pub fn visibility(&self) -> (&[u64], usize) {
        (&self.probes.delays_us, self.probes.unfound())
    }

    fn ask(&mut self, world: &mut World, index: usize) {
        if self.is_over {
            return;
        }
        if !std::mem::replace(&mut self.clients[index].has_begun, true) {
            return self.load_keys(world, index);
        }
        let operation = self.draw(index);
        let (words, keys) = match &operation {
            Operation::Get(key) => (format!("GET {key}"), vec![*key]),
            Operation::Set(key, number) => {
                (format!("SET {key} {}", number.value(self.demand.value_bytes)), vec![*key])
            }
            Operation::Mget(keys) => {
                let words: Vec<String> = keys.iter().map(Key::to_string).collect();
                (format!("MGET {}", words.join(" ")), keys.clone())
            }
        };
        let spread = world.options.promises().spread(self.shape.partitions);
        let owner = |key: &Key| partition_of(key.to_string().as_bytes(), spread);
        let owners: BTreeSet<PartitionId> = keys.iter().map(owner).collect();
        self.requests += owners.len() as u64;
        let client = &mut self.clients[index];
        client.waiting = Some((world.now(), operation));
        world.send(client.connection, vec![args(&words)]);
    }

    /// Writes every key that is this client's to write first.
    fn load_keys(&mut self, world: &mut World, index: usize) {
        let mut commands = Vec::new();
        for key in (index..self.keys()).step_by(self.clients.len()) {
            self.writes += 1;
            let value = WriteNumber(self.writes).value(self.demand.value_bytes);
            commands.push(args(&format!("SET {} {value}", Key::Shared(key as u64))));
        }
        self.clients[index].loading = commands.len();
        world.send(self.clients[index].connection, commands);
    }

    /// How many keys there are, beside those of one write.
    fn keys(&self) -> usize {
        match self.demand.draw {
            Draw::Groups { keys, .. } => keys * self.clients.len(),
            Draw::Zipfian | Draw::Uniform => self.demand.keys,
        }
    }

    fn draw(&mut self, index: usize) -> Operation {
        let demand = self.demand;
        match self.clients[index].random.weighted(&[demand.gets, demand.sets, demand.mgets]) {
            0 => {
                let is_local = self.is_local(index);
                Operation::Get(self.key_where(index, is_local))
            }
            1 => {
                let is_own = self.clients[index].random.chance(demand.own_per_mille);
                let is_local = demand.writes_at_home || self.is_local(index);
                let site = self.clients[index].site;
                loop {
                    self.writes += 1;
                    let key = match is_own {
                        true => Key::Own(self.writes),
                        false => self.key(index),
                    };
                    if !is_local || is_at_home(key, site, self.shape) {
                        return Operation::Set(key, WriteNumber(self.writes));
                    }
                }
            }
            _ => Operation::Mget((0..demand.mget_keys).map(|_| self.key(index)).collect()),
        }
    }

    /// Whether the next operation on one key is certainly on the client's own core.
    fn is_local(&mut self, index: usize) -> bool {
        self.demand.local_percent > 0 && self.clients[index].random.chance(10 * self.demand.local_percent)
    }

    fn key_where(&mut self, index: usize, is_local: bool) -> Key {
        let site = self.clients[index].site;
        loop {
            let key = self.key(index);
            if !is_local || is_at_home(key, site, self.shape) {
                return key;
            }
        }
    }

    fn key(&mut self, index: usize) -> Key {
        let groups = self.clients.len() as u64;
        let random = &mut self.clients[index].random;
        match self.demand.draw {
            Draw::Zipfian | Draw::Uniform => shared_key(&self.shares, random),
            Draw::Groups { keys, variance_milli } => {
                let away = away(random, (variance_milli as f64 / 1e3).sqrt());
                let group = (index as i64 + away).rem_euclid(groups as i64) as u64;
                Key::Shared(group * keys as u64 + random.below(keys as u64))
            }
        }
    }

    fn on_answer(&mut self, world: &mut World, connection: ConnectionId, bytes: &[u8]) -> Result<(), String> {
        let Some(&index) = self.connections.get(&connection) else {
            return match self.on_survey(connection, bytes)? {
                true => Ok(()),
                false => self.probes.on_answer(world, connection, bytes),
            };
        };
        let client = &mut self.clients[index];
        client.answers.extend(bytes);
        while client.loading > 0 {
            let Some(answer) = client.answers.pop()? else { return Ok(()) };
            if !matches!(answer, Answer::Status(_)) {
                return Err(format!("a first write was answered {answer}"));
            }
            client.loading -= 1;
            if client.loading == 0 {
                let think_us = self.demand.think_us(&mut client.random);
                world.alarm(world.now() + think_us, Alarm::Client(index));
            }
        }
        let Some(answer) = client.answers.pop()? else { return Ok(()) };
        let think_us = self.demand.think_us(&mut client.random);
        let datacenter = world.options.shape.datacenter(client.site);
        let Some((asked_us, operation)) = client.waiting.take() else {
            return Err(format!("an answer to no question: {answer}"));
        };
        self.operations += 1;
        if self.is_counting {
            let of_its_kind = match operation {
                Operation::Mget(_) => &mut self.several_us,
                Operation::Get(_) | Operation::Set(..) => &mut self.single_us,
            };
            of_its_kind.push(world.now() - asked_us);
        }
        self.note(world.now(), datacenter, asked_us, &operation, &answer)?;
        world.alarm(world.now() + think_us, Alarm::Client(index));
        Ok(())
    }

    /// Writes down what a client has seen.
    fn note(
        &mut self,
        now_us: u64,
        datacenter: DatacenterId,
        asked_us: u64,
        operation: &Operation,
        answer: &Answer,
    ) -> Result<(), String> {
        let values = match (operation, answer) {
            (Operation::Set(key, number), Answer::Status(_)) => {
                if self.watches {
                    let (key, number) = (*key, *number);
                    self.acknowledged.push(Acknowledged { datacenter, key, at_us: now_us, number });
                    self.written_us.insert(number, now_us);
                }
                return Ok(());
            }
            (Operation::Get(key), value @ (Answer::Nil | Answer::Bulk(_))) => vec![(*key, value)],
            (Operation::Mget(keys), Answer::Array(values)) if values.len() == keys.len() => {
                keys.iter().copied().zip(values).collect()
            }
            _ => return Err(format!("{operation:?} was answered {answer}")),
        };
        if self.watches && self.is_counting {
            let among_others = matches!(operation, Operation::Mget(_));
            for (key, value) in values {
                let returned = value.bytes().and_then(WriteNumber::parse);
                self.reads.push(Read { datacenter, key, asked_us, returned, among_others });
            }
        }
        Ok(())
    }

    /// An update that probes look for has been applied in another datacenter.
    fn on_trace(&mut self, world: &mut World, site: Site, trace: &Trace) {
        let Trace::Applied { partition, origin, position } = trace else { return };
        let here = world.options.shape.datacenter(site);
        let Some(traffic) = world.traffic.as_ref().filter(|_| self.is_counting) else { return };
        let Some(update) = traffic.update(*origin, *partition, *position) else { return };
        let (Key::Own(_), Some(&written_us), Some(link_us)) =
            (update.key, self.written_us.get(&update.number), traffic.link_us(update.number, here))
        else {
            return;
        };
        self.probes.seek(world, site, (update.key, update.number), written_us, link_us);
    }

    /// Asks one core of each datacenter for the figures of all of it.
    fn survey(&mut self, world: &mut World, is_after: bool) {
        let shape = world.options.shape;
        for datacenter in (0..shape.datacenters).map(DatacenterId) {
            let connection = world.connect(shape.site(datacenter, ensue_types::CoreId(0)));
            world.send(connection, vec![args("INFO")]);
            self.surveys.insert(connection, (is_after, Answers::default()));
        }
    }

    fn on_survey(&mut self, connection: ConnectionId, bytes: &[u8]) -> Result<bool, String> {
        let Some((is_after, answers)) = self.surveys.get_mut(&connection) else { return Ok(false) };
        answers.extend(bytes);
        let Some(answer) = answers.pop()? else { return Ok(true) };
        let figures = if *is_after { &mut self.after } else { &mut self.before };
        for line in answer.text().ok_or_else(|| format!("INFO was answered {answer}"))?.lines() {
            let figure = line.strip_prefix("ensue_").and_then(|line| line.split_once(':'));
            if let Some((name, Ok(value))) = figure.map(|(name, value)| (name, value.trim().parse::<u64>())) {
                *figures.entry(name.to_owned()).or_default() += value;
            }
        }
        Ok(true)
    }
}

/// Whether the core that a client talks to holds the key.
fn is_at_home(key: Key, site: Site, shape: Shape) -> bool {
    shape.owner(partition_of(key.to_string().as_bytes(), shape.partitions)) == shape.core(site)
}

/// A number of a normal distribution around zero, to the nearest whole one: twelve uniform numbers together have the
/// variance 1.
fn away(random: &mut Random, deviation: f64) -> i64 {
    let uniform = |random: &mut Random| random.below(1 << 32) as f64 / (1_u64 << 32) as f64;
    let normal = (0..12).map(|_| uniform(random)).sum::<f64>() - 6.0;
    (normal * deviation).round() as i64
}

fn shared_key(shares: &[f64], random: &mut Random) -> Key {
    let point = random.below(1 << 32) as f64 / (1_u64 << 32) as f64;
    Key::Shared(shares.partition_point(|share| *share <= point) as u64)
}

/// For each key, the share of all accesses that goes to it or to one before it.
fn shares_of(draw: Draw, keys: usize) -> Vec<f64> {
    let exponent = match draw {
        Draw::Zipfian => ZIPF,
        Draw::Uniform => 0.0,
        Draw::Groups { .. } => return Vec::new(),
    };
    let mut shares = Vec::with_capacity(keys);
    let mut sum = 0.0;
    for rank in 1..=keys {
        sum += (rank as f64).powf(-exponent);
        shares.push(sum);
    }
    shares.iter_mut().for_each(|share| *share /= sum);
    shares
}
