//! Clients of a keyspace with branches: sessions in all datacenters that begin, commit, abort, abandon and merge.
//!
//! A client says a few commands at once and waits for all their answers. Refusals that a transaction may meet are part
//! of its life; any other error ends the session, and needs a reason if the datacenter is healthy.

use super::draw::Drawer;
use super::options::BranchOptions;
use crate::oracle::history::{History, OperationIndex, Outcome, SessionIndex};
use crate::oracle::{Violation, property};
use crate::random::Random;
use crate::resp::args;
use crate::resp::{Answer, Answers};
use crate::workload::clients::Clients;
use crate::world::World;
use crate::world::event::{Alarm, ConnectionId};
use crate::world::marks::{Mark, Marks};
use crate::world::shape::Site;
use ensue_types::Args;
use std::collections::BTreeMap;

/// Within a healthy datacenter every answer comes within this time.
const HEALTHY_ANSWER_US: u64 = 1_500_000;
/// Ids that clients remember together.
const IDS_MAX: usize = 200;
/// Errors that say what became of a transaction, or of a question about states; the oracle judges whether they may be
/// said.
pub const REFUSALS: [&str; 10] = [
    "ABORT ",
    "ERR ",
    "NOSTATE ",
    "COLLECTED ",
    "NOTRANSACTION",
    "NOTMERGER ",
    "BRANCHFULL ",
    "EXECABORT ",
    "WRONGTYPE ",
    "NOTOKEN",
];

/// A transaction that a client has begun.
#[derive(Clone, Debug, Default)]
pub struct Open {
    pub is_merge: bool,
    /// Where the branches forked, and how often each fork point counts.
    pub fork_points: Option<Vec<(String, i64)>>,
    /// Conflicting keys that are counters, and their merged values.
    pub counters: Vec<String>,
    pub sums: Vec<(String, i64)>,
    /// Something was written beside these.
    pub has_written: bool,
    /// When it was begun, and when something was last said in it.
    began_us: u64,
    last_us: u64,
}

/// What a client waits for.
#[derive(Debug)]
struct Request {
    operation: OperationIndex,
    commands: Vec<Args>,
    invoked_us: u64,
    answers: Vec<(u64, Answer)>,
    /// With the token that it asks for it goes to this core, or leaves it for others.
    token: Option<Option<Site>>,
}

#[derive(Debug)]
struct Client {
    random: Random,
    steps: u64,
    budget: u64,
    site: Site,
    connection: Option<ConnectionId>,
    session: SessionIndex,
    incoming: Answers,
    waiting: Option<Request>,
    /// Shown first on the next connection.
    token: Option<Vec<u8>>,
    open: Option<Open>,
}

/// All clients of a run.
pub struct BranchClients {
    pub history: History,
    pub options: BranchOptions,
    clients: Vec<Client>,
    connections: BTreeMap<ConnectionId, usize>,
    ids: Vec<String>,
    tokens: Vec<Vec<u8>>,
    stopping: bool,
    taken: BTreeMap<(usize, u64), Vec<OperationIndex>>,
}

impl BranchClients {
    pub fn new(world: &mut World) -> BranchClients {
        let options = world.options.clone();
        let mut history = History::of(1);
        history.promises = options.promises();
        let mut clients = BranchClients {
            history,
            options: BranchOptions::of(&options),
            clients: Vec::new(),
            connections: BTreeMap::new(),
            ids: Vec::new(),
            tokens: Vec::new(),
            stopping: false,
            taken: BTreeMap::new(),
        };
        let count = options.workload.clients.max(1) as u64;
        for index in 0..options.workload.clients {
            let random = &mut Random::stream(options.seed, &format!("client {index}"));
            let session = clients.history.session();
            clients.clients.push(Client {
                random: random.clone(),
                steps: 0,
                budget: options.workload.operations.div_ceil(count),
                site: Site(random.index(options.shape.sites())),
                connection: None,
                session,
                incoming: Answers::default(),
                waiting: None,
                token: None,
                open: None,
            });
            world.alarm(1_000 + random.below(20_000), Alarm::Client(index));
        }
        clients
    }

    /// The operations of each step of each client.
    pub fn into_taken(self) -> (History, BTreeMap<(usize, u64), Vec<OperationIndex>>) {
        (self.history, self.taken)
    }

    /// All clients go, and with them what they have begun.
    pub fn go(&mut self, world: &mut World) {
        for client in &mut self.clients {
            if let Some(connection) = client.connection.take() {
                world.close(connection);
                self.connections.remove(&connection);
            }
        }
    }

    fn say(&mut self, world: &mut World, index: usize, commands: Vec<Args>, token: Option<Option<Site>>) {
        let client = &mut self.clients[index];
        let datacenter = world.options.shape.datacenter(client.site);
        let now = world.now();
        let operation = self.history.invoke(client.session, datacenter, now, commands.clone(), Vec::new());
        self.taken.entry((index, client.steps)).or_default().push(operation);
        let answers = Vec::new();
        client.waiting =
            Some(Request { operation, commands: commands.clone(), invoked_us: now, answers, token });
        if let Some(open) = &mut client.open {
            open.last_us = now;
        }
        if let Some(connection) = client.connection {
            world.send(connection, commands);
        }
    }

    fn think(&mut self, world: &mut World, index: usize) {
        let most = world.options.workload.think_us_max;
        let at = world.now() + self.clients[index].random.skewed(1, most);
        world.alarm(at, Alarm::Client(index));
    }

    fn leave(&mut self, world: &mut World, index: usize) {
        if let Some(connection) = self.clients[index].connection.take() {
            world.close(connection);
            self.connections.remove(&connection);
        }
        self.begin_anew(world, index);
    }

    /// A new session at a core drawn anew.
    fn begin_anew(&mut self, world: &mut World, index: usize) {
        let session = self.history.session();
        let client = &mut self.clients[index];
        client.waiting = None;
        client.open = None;
        client.session = session;
        client.incoming = Answers::default();
        client.token = None;
        client.site = Site(client.random.index(world.options.shape.sites()));
        let at = world.now() + client.random.between(1_000, 50_000);
        world.alarm(at, Alarm::Client(index));
    }

    /// All answers to what a client said.
    fn finish(
        &mut self,
        world: &mut World,
        marks: &mut Marks,
        index: usize,
        request: Request,
    ) -> Result<bool, Violation> {
        let operation = &mut self.history.operations[request.operation];
        operation.answered_us = world.now();
        operation.outcome = Outcome::Done;
        let mut is_over = false;
        for (command, (_, answer)) in request.commands.iter().zip(&request.answers) {
            remember(&mut self.ids, answer);
            mark(marks, command, answer);
            if let Some(error) = answer.error() {
                marks.add(Mark::ErrorAnswer);
                is_over |= !self.is_part_of_life(world, index, &request, command, error)?;
            }
            let client = &mut self.clients[index];
            follow(&mut client.open, command, answer, request.invoked_us);
        }
        if let Some(open) = &mut self.clients[index].open {
            open.last_us = world.now();
        }
        if is_over {
            self.leave(world, index);
            return Ok(false);
        }
        if let Some(to) = request.token {
            return Ok(self.take_token(world, index, to, &request.answers));
        }
        self.think(world, index);
        Ok(true)
    }

    fn take_token(
        &mut self,
        world: &mut World,
        index: usize,
        to: Option<Site>,
        answers: &[(u64, Answer)],
    ) -> bool {
        let token = answers.first().and_then(|(_, answer)| answer.bytes()).map(<[u8]>::to_vec);
        let (Some(token), Some(site)) = (token.clone(), to) else {
            self.tokens.extend(token);
            self.think(world, index);
            return true;
        };
        if let Some(connection) = self.clients[index].connection.take() {
            world.close(connection);
            self.connections.remove(&connection);
        }
        let session = self.history.session();
        let client = &mut self.clients[index];
        client.token = Some(token);
        client.site = site;
        client.session = session;
        client.open = None;
        client.incoming = Answers::default();
        self.think(world, index);
        false
    }

    /// Whether a session goes on after an error. A violation if a healthy datacenter must not say it.
    fn is_part_of_life(
        &mut self,
        world: &mut World,
        index: usize,
        request: &Request,
        command: &Args,
        error: &str,
    ) -> Result<bool, Violation> {
        let client = &self.clients[index];
        let datacenter = world.options.shape.datacenter(client.site);
        let is_merge = command.first().is_some_and(|word| &word[..] == b"CAUSAL");
        let refused =
            error.starts_with("DISKFULL") && world.has_refused_since(datacenter, request.invoked_us);
        let is_refusal = REFUSALS.iter().any(|refusal| error.starts_with(refusal));
        let healthy = world.healthy_since(datacenter);
        let timeout_us = self.options.transaction_timeout_ms * 1_000;
        let is_lost = error.starts_with("NOTRANSACTION");
        let wrong = match &client.open {
            // It was neither too slow nor interrupted.
            Some(open) if is_lost => {
                healthy.is_some_and(|since| since <= open.began_us) && world.now() < open.last_us + timeout_us
            }
            _ if is_refusal || is_merge || refused => false,
            _ => healthy.is_some_and(|since| since <= request.invoked_us),
        };
        if wrong {
            let words = format!("answered {error}: {}", self.history.describe(request.operation));
            return Err(Violation::new(property::AVAILABILITY, words));
        }
        Ok(is_refusal || is_merge)
    }

    fn draw(&mut self, world: &mut World, index: usize) {
        let options = world.options.workload.clone();
        let client = &mut self.clients[index];
        let mut random = client.random.clone();
        let to_move = client.open.is_none() && random.chance(options.move_rate);
        let to_merge = client.open.is_none() && random.chance(options.merge_rate);
        if to_move {
            let site = Site(random.index(world.options.shape.sites()));
            return self.say(world, index, vec![args("CAUSAL TOKEN")], Some(Some(site)));
        }
        if to_merge {
            if self.tokens.is_empty() || random.chance(500) {
                return self.say(world, index, vec![args("CAUSAL TOKEN")], Some(None));
            }
            let token = self.tokens[random.index(self.tokens.len())].clone();
            return self.show(world, index, token);
        }
        let mut drawer = Drawer {
            random: &mut random,
            ids: &self.ids,
            keys: options.keys,
            ceiling_rate: self.options.ceiling_rate,
            name: format!("{index}-{}", client.steps),
            count: 0,
        };
        let draft = drawer.step(client.open.as_ref());
        client.random = random;
        match draft.leaves {
            true => self.leave(world, index),
            false => self.say(world, index, draft.commands, None),
        }
    }

    fn show(&mut self, world: &mut World, index: usize, token: Vec<u8>) {
        let mut merge = args("CAUSAL MERGE");
        merge.push(token.into());
        merge.extend(args(&format!("TIMEOUT {}", world.options.workload.merge_timeout_ms)));
        self.say(world, index, vec![merge, args("BRANCH SESSION")], None);
    }
}

impl Clients for BranchClients {
    fn is_idle(&self) -> bool {
        let idle = |client: &Client| client.waiting.is_none() && (client.budget == 0 || self.stopping);
        self.clients.iter().all(idle)
    }

    fn stop(&mut self) {
        self.stopping = true;
    }

    fn waits_us(&self, _world: &World) -> u64 {
        0
    }

    fn overdue(&self, world: &mut World, patience_us: u64) -> Option<Violation> {
        let now = world.now();
        for client in &self.clients {
            let Some(request) = &client.waiting else { continue };
            let datacenter = world.options.shape.datacenter(client.site);
            let is_merge = |command: &Args| command.get(1).is_some_and(|word| &word[..] == b"MERGE");
            let waits = &request.commands[0][0][..] == b"CAUSAL" && is_merge(&request.commands[0]);
            let extra = if waits { world.options.workload.merge_timeout_ms * 1_000 } else { 0 };
            let healthy = world.healthy_since(datacenter).unwrap_or(u64::MAX);
            let from = request.invoked_us.max(healthy);
            let runs_us = request.invoked_us.max(world.occupied_until(datacenter));
            let late =
                now > from.saturating_add(HEALTHY_ANSWER_US + extra) || now > runs_us + patience_us + extra;
            if late {
                let words = format!("no answer: {}", self.history.describe(request.operation));
                return Some(Violation::new(property::AVAILABILITY, words));
            }
        }
        None
    }

    fn on_alarm(&mut self, world: &mut World, index: usize) {
        let client = &mut self.clients[index];
        if self.stopping || client.budget == 0 || client.waiting.is_some() {
            return;
        }
        if let Some(kept) = &world.options.workload.kept {
            let Some((&(_, step), &at)) = kept.range((index, client.steps + 1)..(index + 1, 0)).next() else {
                client.budget = 0;
                return;
            };
            if world.now() < at {
                return world.alarm(at, Alarm::Client(index));
            }
            client.steps = step - 1;
        }
        client.budget -= 1;
        client.steps += 1;
        client.random = Random::stream(world.options.seed, &format!("client {index} step {}", client.steps));
        if client.connection.is_none() {
            let connection = world.connect(client.site);
            client.connection = Some(connection);
            let token = client.token.take();
            self.connections.insert(connection, index);
            if let Some(token) = token {
                return self.show(world, index, token);
            }
        }
        self.draw(world, index);
    }

    fn on_answer(
        &mut self,
        world: &mut World,
        marks: &mut Marks,
        connection: ConnectionId,
        bytes: &[u8],
    ) -> Result<(), Violation> {
        let Some(&index) = self.connections.get(&connection) else { return Ok(()) };
        self.clients[index].incoming.extend(bytes);
        loop {
            let client = &mut self.clients[index];
            let popped = client.incoming.pop().map_err(|why| Violation::new(property::PROTOCOL, why))?;
            let Some(answer) = popped else { return Ok(()) };
            let Some(request) = &mut client.waiting else {
                return Err(Violation::new(property::PROTOCOL, format!("unasked answer {answer}")));
            };
            self.history.said.entry(request.operation).or_default().push((world.now(), answer.clone()));
            request.answers.push((world.now(), answer));
            if request.answers.len() < request.commands.len() {
                continue;
            }
            if let Some(request) = client.waiting.take() {
                if !self.finish(world, marks, index, request)? {
                    return Ok(());
                }
            }
        }
    }

    fn on_hangup(&mut self, world: &mut World, connection: ConnectionId) {
        if let Some(index) = self.connections.remove(&connection) {
            self.clients[index].connection = None;
            self.begin_anew(world, index);
        }
    }

    fn on_power_losses(&mut self, world: &World) {
        let known = self.history.power_losses.len();
        self.history.power_losses.extend_from_slice(&world.power_losses[known..]);
    }
}

/// Ids in answers are what others ask about.
pub fn remember(ids: &mut Vec<String>, answer: &Answer) {
    match answer {
        Answer::Array(items) => items.iter().take(8).for_each(|item| remember(ids, item)),
        other => {
            let Some(text) = other.text().filter(|text| super::id::StateId::parse(text).is_some()) else {
                return;
            };
            if !ids.iter().rev().take(40).any(|known| known == text) {
                ids.push(text.to_owned());
            }
            if ids.len() > IDS_MAX {
                ids.remove(0);
            }
        }
    }
}

/// What an answer changes for a client's transaction.
pub fn follow(open: &mut Option<Open>, command: &Args, answer: &Answer, asked_us: u64) {
    let texts: Vec<String> = command.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let words: Vec<&str> = texts.iter().map(String::as_str).collect();
    let is_refused = answer.error().is_some();
    if answer.error().is_some_and(|error| error.starts_with("NOTRANSACTION")) {
        *open = None;
    }
    match (words.as_slice(), &mut *open) {
        (["BRANCH", "BEGIN" | "MERGE", ..], None) if !is_refused => {
            let is_merge = words[1] == "MERGE";
            *open = Some(Open { is_merge, began_us: asked_us, ..Open::default() });
        }
        (["BRANCH", "COMMIT", ..], Some(_)) => {
            let stays = answer.error().is_some_and(|error| error.starts_with("ERR "));
            open.take_if(|_| !stays);
        }
        (["SET" | "INCRBY" | "HSET" | "SADD" | "DEL" | "PEXPIRE", ..], Some(open)) => open.has_written = true,
        (["BRANCH", "ABORT"], Some(_)) if !is_refused => *open = None,
        (["BRANCH", "FORKPOINTS"], Some(open)) => {
            open.fork_points = weights(answer);
        }
        (["BRANCH", "CONFLICTS"], Some(open)) => {
            if let Answer::Array(keys) = answer {
                let keys = keys.iter().filter_map(Answer::text);
                open.counters = keys.filter(|key| key.starts_with('c')).take(2).map(str::to_owned).collect();
            }
        }
        (["BRANCH", "GET", key], Some(open)) => {
            open.sums.retain(|(known, _)| known != key);
            open.sums.extend(numbers(answer).map(|sum| ((*key).to_owned(), sum.iter().sum())));
        }
        (["BRANCH", "GET", key, ..], Some(open)) => {
            let Some(points) = &open.fork_points else { return };
            let named = points.iter().map(|(id, _)| id.as_str()).eq(words[3..].iter().copied());
            if let (true, Some(values)) = (named, numbers(answer)) {
                let weighed: i64 = points.iter().zip(values).map(|((_, weight), value)| weight * value).sum();
                let sums = open.sums.iter_mut().filter(|(known, _)| known == key);
                sums.for_each(|(_, sum)| *sum += weighed);
            }
        }
        _ => {}
    }
}

/// Fork points with their weights.
fn weights(answer: &Answer) -> Option<Vec<(String, i64)>> {
    let Answer::Array(lines) = answer else { return None };
    let weight = |line: &Answer| match line {
        Answer::Array(parts) => match parts.as_slice() {
            [id, Answer::Integer(weight)] => Some((id.text()?.to_owned(), *weight)),
            _ => None,
        },
        _ => None,
    };
    lines.iter().map(weight).collect()
}

/// Counters: what is not there counts 0.
fn numbers(answer: &Answer) -> Option<Vec<i64>> {
    let Answer::Array(values) = answer else { return None };
    let number = |value: &Answer| match value {
        Answer::Nil => Some(0),
        other => other.text()?.parse().ok(),
    };
    values.iter().map(number).collect()
}

fn mark(marks: &mut Marks, command: &Args, answer: &Answer) {
    let word = |at: usize| command.get(at).map(|word| String::from_utf8_lossy(word).to_ascii_uppercase());
    let (first, second) = (word(0).unwrap_or_default(), word(1).unwrap_or_default());
    let error = answer.error().unwrap_or_default();
    match (first.as_str(), second.as_str()) {
        _ if error.starts_with("ABORT ") => marks.add(Mark::Aborted),
        _ if error.starts_with("COLLECTED ") => marks.add(Mark::StateCollected),
        ("BRANCH", "MERGE") if answer.error().is_none() => marks.add(Mark::MergeBegun),
        ("BRANCH", "LIST") => {
            if let Answer::Array(leaves) = answer {
                if leaves.len() > 1 {
                    marks.add(Mark::Branched);
                }
            }
        }
        ("CAUSAL", "MERGE") if answer.error().is_none() => marks.add(Mark::PastMerged),
        _ => {}
    }
}
