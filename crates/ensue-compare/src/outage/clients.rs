//! The clients of an outage: each asks, waits for the answer or loses patience, thinks, and asks again.

use super::{ALONE, PATIENCE_US, Question, Served};
use ensue_sim::random::Random;
use ensue_sim::resp::args;
use ensue_sim::resp::{Answer, Answers};
use ensue_sim::world::event::{Alarm, ConnectionId};
use ensue_sim::world::shape::Site;
use ensue_sim::world::{Happening, World};
use ensue_types::{Args, CoreId, DatacenterId};
use std::collections::{BTreeMap, BTreeSet};

/// Of each core.
const CLIENTS: usize = 4;
const KEYS: u64 = 2_000;
const THINK_US: u64 = 50_000;
const VALUE_BYTES: usize = 64;
/// How often each question is asked, in the order of `QUESTIONS`.
const WEIGHTS: [u64; 6] = [8, 3, 3, 2, 1, 1];
/// Nodes have met, and what was written first is everywhere.
const BEGIN_US: u64 = 500_000;
const LOADED_US: u64 = 4_000_000;

/// What is under way.
#[derive(Clone, Debug)]
struct Asked {
    question: Question,
    second: u64,
    at_us: u64,
    /// Where the answer is expected: of a move first at home, then at the other side.
    connection: ConnectionId,
    step: Step,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// The answer is what was asked for.
    Only,
    /// The token comes, and is shown elsewhere.
    Token,
    /// The write is acknowledged, and looked for elsewhere when it should be there.
    Written { key: String },
    /// Nothing is asked until the write should be there.
    Travels { key: String },
}

#[derive(Debug)]
struct Client {
    site: Site,
    home: ConnectionId,
    random: Random,
    asked: Option<Asked>,
    /// Nothing is asked before this.
    thinks_until_us: u64,
    answers: Answers,
}

/// All clients, and what they were served.
#[derive(Debug)]
pub(super) struct Clients {
    clients: Vec<Client>,
    connections: BTreeMap<ConnectionId, usize>,
    /// The current second.
    pub second: u64,
    written: u64,
    is_over: bool,
    served: BTreeMap<Question, Vec<Served>>,
    /// What the protocol refuses by name: it is not asked again.
    refused: BTreeSet<Question>,
}

impl Clients {
    pub fn new(world: &mut World) -> Clients {
        let mut connections = BTreeMap::new();
        let mut clients = Vec::new();
        let sites = (0..world.options.shape.sites()).map(Site).flat_map(|site| [site; CLIENTS]);
        for (index, site) in sites.enumerate() {
            let home = world.connect(site);
            connections.insert(home, index);
            let random = Random::stream(world.options.seed, &format!("client {index}"));
            let answers = Answers::default();
            clients.push(Client { site, home, random, asked: None, thinks_until_us: 0, answers });
        }
        let (served, refused) = (BTreeMap::new(), BTreeSet::new());
        Clients { clients, connections, second: 0, written: 0, is_over: false, served, refused }
    }

    /// Writes every key once, and lets the clients begin.
    pub fn load(&mut self, world: &mut World) -> Result<(), String> {
        while world.step(BEGIN_US).is_some() {}
        let connection = world.connect(Site(0));
        let writes: Vec<Args> = (0..KEYS).map(|key| args(&format!("SET s{key} {}", self.value()))).collect();
        world.send(connection, writes);
        let mut answers = Answers::default();
        while let Some(happening) = world.step(LOADED_US) {
            if let Happening::Answer { bytes, .. } = happening {
                answers.extend(&bytes);
            }
        }
        for _ in 0..KEYS {
            match answers.pop()? {
                Some(Answer::Status(_)) => {}
                other => return Err(format!("a first write was answered {other:?}")),
            }
        }
        for index in 0..self.clients.len() {
            self.think(world, index);
        }
        Ok(())
    }

    /// Nothing new is asked.
    pub fn stop(&mut self) {
        self.is_over = true;
    }

    pub fn served(self) -> BTreeMap<Question, Vec<Served>> {
        let Clients { mut served, refused, .. } = self;
        served.retain(|question, _| !refused.contains(question));
        served
    }

    /// A client has thought enough, or loses patience, or looks for what it wrote.
    pub fn on_alarm(&mut self, world: &mut World, index: usize) {
        let Some(asked) = self.clients[index].asked.clone() else {
            // It may be the alarm of a question that was answered.
            if world.now() >= self.clients[index].thinks_until_us {
                self.ask(world, index);
            }
            return;
        };
        if let (Step::Travels { key }, true) = (&asked.step, world.now() >= asked.at_us) {
            let other = self.beside(world, index);
            let commands = vec![args(&format!("GET {key}"))];
            return self.go_on(world, index, other, commands, Step::Only);
        }
        if world.now() >= asked.at_us + PATIENCE_US {
            self.count(index, false);
            self.leave(world, index);
            self.think(world, index);
        }
    }

    fn ask(&mut self, world: &mut World, index: usize) {
        if self.is_over {
            return;
        }
        let question = loop {
            let drawn = super::QUESTIONS[self.clients[index].random.weighted(&WEIGHTS)];
            let alone = world.options.shape.datacenter(self.clients[index].site) == ALONE;
            if !(self.refused.contains(&drawn) || drawn == Question::News && alone) {
                break drawn;
            }
        };
        let (words, step) = match question {
            Question::Get => (format!("GET {}", self.key(index)), Step::Only),
            Question::Set => (format!("SET {} {}", self.key(index), self.value()), Step::Only),
            Question::Mget => {
                let keys: Vec<String> = (0..4).map(|_| self.key(index)).collect();
                (format!("MGET {}", keys.join(" ")), Step::Only)
            }
            Question::Mset => {
                let (one, other) = (self.key(index), self.key(index));
                (format!("MSET {one} {0} {other} {0}", self.value()), Step::Only)
            }
            Question::Move => ("CAUSAL TOKEN".to_owned(), Step::Token),
            Question::News => {
                let value = self.value();
                let key = format!("n{}", self.written);
                (format!("SET {key} {value}"), Step::Written { key })
            }
        };
        let connection = self.clients[index].home;
        let asked = Asked { question, second: self.second, at_us: world.now(), connection, step };
        self.clients[index].asked = Some(asked);
        world.send(connection, vec![args(&words)]);
        world.alarm(world.now() + PATIENCE_US, Alarm::Client(index));
    }

    pub fn on_answer(
        &mut self,
        world: &mut World,
        connection: ConnectionId,
        bytes: &[u8],
    ) -> Result<(), String> {
        let Some(&index) = self.connections.get(&connection) else { return Ok(()) };
        let client = &mut self.clients[index];
        let Some(asked) = client.asked.clone().filter(|asked| asked.connection == connection) else {
            return Ok(());
        };
        client.answers.extend(bytes);
        let Some(answer) = client.answers.pop()? else { return Ok(()) };
        let refused = |text: &str| text.contains(" is refused: ") || text.contains("carries no causality");
        if answer.error().is_some_and(refused) {
            self.refused.insert(asked.question);
            self.clients[index].asked = None;
            self.think(world, index);
            return Ok(());
        }
        match (asked.step, answer) {
            (Step::Token, Answer::Bulk(token)) => {
                let other = self.across(world, index);
                let mut merge = args("CAUSAL MERGE");
                merge.push(token.into());
                merge.extend(args("TIMEOUT 500"));
                self.go_on(world, index, other, vec![merge], Step::Only);
            }
            (Step::Written { key }, Answer::Status(_)) => {
                let asked = self.clients[index].asked.as_mut().expect("found above");
                (asked.step, asked.at_us) = (Step::Travels { key }, world.now() + PATIENCE_US);
                world.alarm(asked.at_us, Alarm::Client(index));
            }
            (_, answer) => {
                let unseen = asked.question == Question::News && answer == Answer::Nil;
                let fails = answer.error().is_some();
                self.count(index, !unseen && !fails);
                if connection != self.clients[index].home {
                    self.connections.remove(&connection);
                    world.close(connection);
                }
                self.clients[index].asked = None;
                self.think(world, index);
            }
        }
        Ok(())
    }

    /// Asks on, at another place.
    fn go_on(&mut self, world: &mut World, index: usize, site: Site, commands: Vec<Args>, step: Step) {
        let connection = world.connect(site);
        self.connections.insert(connection, index);
        let client = &mut self.clients[index];
        client.answers = Answers::default();
        if let Some(asked) = &mut client.asked {
            (asked.connection, asked.step, asked.at_us) = (connection, step, world.now());
        }
        world.send(connection, commands);
        world.alarm(world.now() + PATIENCE_US, Alarm::Client(index));
    }

    fn count(&mut self, index: usize, served: bool) {
        let Some(Asked { question, second, .. }) = self.clients[index].asked.clone() else { return };
        let seconds = self.served.entry(question).or_default();
        seconds.resize(seconds.len().max(second as usize + 1), Served::default());
        seconds[second as usize].add(served);
    }

    /// A client that lost patience is a new session.
    fn leave(&mut self, world: &mut World, index: usize) {
        let client = &mut self.clients[index];
        let asked = client.asked.take().map(|asked| asked.connection);
        for connection in std::iter::once(client.home).chain(asked) {
            self.connections.remove(&connection);
            world.close(connection);
        }
        client.home = world.connect(client.site);
        client.answers = Answers::default();
        self.connections.insert(client.home, index);
    }

    fn think(&mut self, world: &mut World, index: usize) {
        let client = &mut self.clients[index];
        client.thinks_until_us = world.now() + client.random.below(2 * THINK_US);
        world.alarm(client.thinks_until_us, Alarm::Client(index));
    }

    fn key(&mut self, index: usize) -> String {
        format!("s{}", self.clients[index].random.below(KEYS))
    }

    fn value(&mut self) -> String {
        self.written += 1;
        format!("{:0>VALUE_BYTES$}", self.written)
    }

    /// A core at the other side of the cut.
    fn across(&mut self, world: &World, index: usize) -> Site {
        let here = world.options.shape.datacenter(self.clients[index].site);
        let datacenter = match here == ALONE {
            true => DatacenterId(1 + self.clients[index].random.below(2) as u8),
            false => ALONE,
        };
        self.core_of(world, index, datacenter)
    }

    /// A core of the other one of the two that hear each other.
    fn beside(&mut self, world: &World, index: usize) -> Site {
        let here = world.options.shape.datacenter(self.clients[index].site);
        self.core_of(world, index, DatacenterId(3 - here.0))
    }

    fn core_of(&mut self, world: &World, index: usize, datacenter: DatacenterId) -> Site {
        let shape = world.options.shape;
        let core = self.clients[index].random.below(u64::from(shape.cores)) as u16;
        shape.site(datacenter, CoreId(core))
    }
}
