//! Clients that send real commands to simulated nodes and write down what they did and saw.
//!
//! A client has one request outstanding, or several sent at once; it thinks, asks again, moves to another core with
//! its token, or shows a token of another client. When its connection is lost, or a command fails, it begins a new
//! session: what was not answered has an unknown outcome, and stands last in its session.

mod at_home;
mod caches;
pub mod client;
pub mod clients;
pub mod command;
mod elements;
mod escrows;
mod fields;
pub mod finals;
pub(crate) mod forgery;
pub mod keys;
mod listeners;
pub mod mix;
pub mod model;
mod named;
mod private;
mod refusal;
mod scores;
mod scripts;
mod streams;
mod tokens;

use crate::oracle::history::{History, Operation, OperationIndex, Outcome};
use crate::oracle::{Violation, property};
use crate::random::Random;
use crate::resp::{self, Answer, Answers};
use crate::workload::clients::Clients;
use crate::world::World;
use crate::world::clock::EPOCH_MS;
use crate::world::event::{Alarm, ConnectionId};
use crate::world::marks::{Mark, Marks};
use crate::world::shape::Site;
use at_home::AtHome;
use bytes::Bytes;
use caches::Caches;
use client::{Client, Purpose, Relic, Request, Token};
use command::{Command, Expect};
use ensue_protocol::Recency;
use ensue_types::{Args, DatacenterId, PartitionId};
use keys::Keys;
use listeners::Listener;
use mix::{Draft, Drawer, Owners};
use named::Named;
use refusal::{Refusal, waiting_commands};
use std::collections::{BTreeMap, BTreeSet};

/// Within a healthy datacenter every answer comes within this time.
const HEALTHY_ANSWER_US: u64 = 1_500_000;
/// Times in a thousand that a token is shown with a time from far in the future.
const FORGED: u64 = 50;

/// All clients of a run.
pub struct Workload {
    pub history: History,
    pub keys: Keys,
    pub relics: Vec<Relic>,
    clients: Vec<Client>,
    connections: BTreeMap<ConnectionId, usize>,
    listeners: Vec<Listener>,
    at_home: AtHome,
    caches: Caches,
    /// Tokens that clients left for others.
    board: Vec<Token>,
    stopping: bool,
    /// The operations of each step of each client.
    pub taken: BTreeMap<(usize, u64), Vec<OperationIndex>>,
}

impl Workload {
    /// Clients that connect, one after another, from the beginning on.
    pub fn new(world: &mut World) -> Workload {
        let options = world.options.clone();
        let promises = options.promises();
        let mut history = History::of(promises.spread(options.shape.partitions));
        history.promises = promises;
        let delays = &options.links.delay_us;
        let ways =
            (0..delays.len()).flat_map(|a| (0..delays.len()).filter(move |b| *b != a).map(move |b| (a, b)));
        history.way_us = ways.map(|(a, b)| delays[a][b]).min().unwrap_or(0);
        let listeners = listeners::listeners(world, options.workload.clients);
        let at_home = AtHome::new(world, options.workload.clients + listeners.len());
        let caches = Caches::new(world, at_home.end());
        let mut workload = Workload {
            history,
            keys: Keys::new(options.workload.keys),
            relics: Vec::new(),
            clients: Vec::new(),
            connections: BTreeMap::new(),
            at_home,
            caches,
            listeners,
            board: Vec::new(),
            stopping: false,
            taken: BTreeMap::new(),
        };
        let clients = options.workload.clients.max(1) as u64;
        for index in 0..options.workload.clients {
            let session = workload.history.session();
            let random = &mut Random::stream(options.seed, &format!("client {index}"));
            let site = Site(random.index(options.shape.sites()));
            let budget = options.workload.operations.div_ceil(clients);
            let named = Named::of(&options, index);
            workload.clients.push(Client { budget, named, ..Client::new(random.clone(), site, session) });
            let at = 1_000 + random.below(20_000);
            world.alarm(at, Alarm::Client(index));
        }
        for place in 0..workload.listeners.len() {
            let session = workload.history.session();
            let random = Random::stream(options.seed, &format!("listener {place}"));
            workload.clients.push(Client::new(random, Site(0), session));
            world.alarm(1_000, Alarm::Client(options.workload.clients + place));
        }
        workload
    }

    /// Every client's private keys, those in use included.
    pub fn relics(&mut self) -> Vec<Relic> {
        for index in 0..self.clients.len() {
            self.bury(index);
        }
        self.relics.clone()
    }

    /// These datacenters are lost for good, with what only they had, and writes of these keys were discarded. Of what
    /// the history does not tell of, all that may be among it is unknown.
    pub(crate) fn lose_datacenters(&mut self, lost: &[DatacenterId], discarded: &BTreeSet<String>) {
        self.history.dead = lost.iter().copied().collect();
        for index in 0..self.clients.len() {
            self.bury(index);
        }
        let there = |operation: &&Operation| self.history.dead.contains(&operation.datacenter);
        let words = self.history.operations.iter().filter(there).flat_map(|operation| &operation.commands);
        let mut words: BTreeSet<&[u8]> = words.flatten().map(|word| &word[..]).collect();
        words.extend(discarded.iter().map(String::as_bytes));
        for relic in &mut self.relics {
            let prefix = relic.prefix.as_bytes();
            relic.certain &= !words.range(prefix..).next().is_some_and(|word| word.starts_with(prefix));
        }
        self.keys.doubt_lost(&self.history, discarded);
    }

    /// The tokens that clients left last.
    pub fn latest_tokens(&self, count: usize) -> Vec<Token> {
        self.board.iter().rev().take(count).cloned().collect()
    }

    fn work(&mut self, world: &World, index: usize) -> Vec<Args> {
        let client = &mut self.clients[index];
        if client.budget == 0 {
            return Vec::new();
        }
        client.budget -= 1;
        let mut random = client.random.clone();
        let kind = mix::kind(random.weighted(&world.options.workload.mix));
        let mut drawer = Drawer {
            history: &mut self.history,
            keys: &mut self.keys,
            random: &mut random,
            now_us: world.now(),
            datacenter: world.options.shape.datacenter(client.site),
            slack_ms: slack_ms(world),
            owners: owners(world),
        };
        let draft = drawer.draft(kind, client);
        client.random = random;
        self.enqueue(world, index, draft, Purpose::Work)
    }

    /// Reads that are sent together may be read as one.
    fn read_as_one(&mut self, index: usize) {
        if self.history.promises.recency != Recency::Everywhere {
            for request in &self.clients[index].waiting {
                self.history.operations[request.operation].recent = false;
            }
        }
    }

    fn token(&mut self, world: &mut World, index: usize, to: Option<Site>) {
        let draft =
            Draft { commands: vec![Command::new("CAUSAL TOKEN", Expect::Anything)], ..Draft::default() };
        let commands = self.enqueue(world, index, draft, Purpose::Token { to });
        self.send(world, index, commands);
    }

    fn merge(&mut self, world: &mut World, index: usize, token: Token, own: bool) {
        let timeout = world.options.workload.merge_timeout_ms;
        let mut args = resp::args("CAUSAL MERGE");
        args.push(Bytes::from(token.text));
        args.extend(resp::args(&format!("TIMEOUT {timeout}")));
        let draft = Draft { commands: vec![Command { args, expect: Expect::Ok }], ..Draft::default() };
        let commands = self.enqueue(world, index, draft, Purpose::Merge { own, of: token.operation });
        if let Some(request) = self.clients[index].waiting.back() {
            self.history.operations[request.operation].merges = Some(token.operation);
        }
        self.send(world, index, commands);
    }

    /// Shows a token that claims to be from beyond the bound on clocks, or names what the client's own datacenter has
    /// never issued.
    /// It must be refused.
    fn forge(&mut self, world: &mut World, index: usize, token: &Token) {
        let now_ms = EPOCH_MS + world.now() / 1_000;
        let options = &world.options;
        // A wild clock may have come to any time that others believe.
        let far = options.clock.wild_ms > 0 || now_ms & 1 == 0;
        let why = if far { "CLOCKAHEAD " } else { "NEVERISSUED " };
        let text = if far {
            forgery::at(&token.text, now_ms + forgery::far_ms(options))
        } else {
            let partition = PartitionId((now_ms / 2 % u64::from(options.shape.partitions)) as u16);
            let place = (options.shape.datacenter(self.clients[index].site), partition);
            let at_ms = now_ms + options.tuning.clock_ahead_ms_max / 2;
            forgery::naming(&token.text, options.protocol, place, at_ms)
        };
        let Some(text) = text else { return };
        let mut args = resp::args("CAUSAL MERGE");
        args.push(Bytes::from(text));
        let draft =
            Draft { commands: vec![Command { args, expect: Expect::Refused(why) }], ..Draft::default() };
        let purpose = Purpose::Merge { own: false, of: token.operation };
        let commands = self.enqueue(world, index, draft, purpose);
        self.send(world, index, commands);
    }

    fn enqueue(&mut self, world: &World, index: usize, draft: Draft, purpose: Purpose) -> Vec<Args> {
        self.keys.note_deadlines(&draft.commands);
        self.note_asked(world, index);
        let client = &mut self.clients[index];
        let mut commands: Vec<Args> = draft.commands.iter().map(|command| command.args.clone()).collect();
        if draft.multi {
            let first = usize::from(draft.watched);
            commands.insert(first, resp::args("MULTI"));
            commands.push(resp::args("EXEC"));
        }
        if draft.watched {
            let key = String::from_utf8_lossy(&commands[0][1]).into_owned();
            commands.insert(0, resp::args(&format!("WATCH {key}")));
        }
        let datacenter = world.options.shape.datacenter(client.site);
        client.places.insert(datacenter, world.now());
        let operation =
            self.history.invoke(client.session, datacenter, world.now(), commands.clone(), draft.writes);
        let promises = self.history.promises;
        // A row is read by one owner at one moment. Where visibility is causal, that is one state.
        let one_row = draft.commands.len() == 1 && !names_several(&draft.commands[0]);
        let invoked = &self.history.operations[operation];
        let places = invoked.writes.iter().map(|write| write.0);
        let together = promises.writes_together() || owners(world).have_one(&self.history, places);
        let invoked = &mut self.history.operations[operation];
        invoked.together = together;
        invoked.snapshot = !draft.mixed && (promises.snapshots || promises.causality && one_row);
        invoked.recent = match promises.recency {
            Recency::Everywhere => true,
            Recency::SingleReads => one_row && !draft.multi && &draft.commands[0].args[0][..] != b"MGET",
            Recency::OwnPast => false,
        };
        self.taken.entry((index, client.steps)).or_default().push(operation);
        client.waiting.push_back(Request {
            operation,
            purpose,
            commands: draft.commands,
            multi: draft.multi,
            watched: draft.watched,
            total: draft.total,
            expiring: draft.expiring,
            private: draft.private,
            invoked_us: world.now(),
            first_since_us: world.now(),
            missing: commands.len(),
            answers: Vec::new(),
        });
        commands
    }

    fn send(&mut self, world: &mut World, index: usize, commands: Vec<Args>) {
        if let Some(connection) = self.clients[index].connection {
            if !commands.is_empty() {
                world.send(connection, commands);
            }
        }
    }

    /// A whole answer. False if the client left the connection over it.
    fn finish(
        &mut self,
        world: &mut World,
        marks: &mut Marks,
        index: usize,
        request: Request,
    ) -> Result<bool, Violation> {
        match request.results() {
            Err(error) => {
                marks.add(Mark::ErrorAnswer);
                if request.is_executed() {
                    let operation = request.operation;
                    self.unknown(index, request);
                    self.leave(world, index);
                    // Its session may have fallen back between the two.
                    self.history.begin_with(&[operation]);
                    return Ok(false);
                }
                let is_forgotten = self.is_forgotten(world, index, &request, &error);
                // Who shows a token and fails begins anew, whatever the error is.
                if is_forgotten && !matches!(request.purpose, Purpose::Merge { .. }) {
                    self.go_on_without_name(world, marks, index, &request);
                    if self.clients[index].waiting.is_empty() {
                        self.think(world, index);
                    }
                    return Ok(true);
                }
                if let Some(refusal) = Refusal::of(&error, &request, self.history.promises) {
                    self.refuse(world, marks, index, request, refusal)?;
                    if self.clients[index].waiting.is_empty() {
                        self.think(world, index);
                    }
                    return Ok(true);
                }
                if !is_forgotten {
                    self.check_availability(world, &request, &error)?;
                }
                self.unknown(index, request);
                self.leave(world, index);
                Ok(false)
            }
            Ok(results) => {
                self.clients[index].fell_back_us = None;
                self.learn(world, index, &request, &results)?;
                self.note_answered(world, marks, index, &request)?;
                if request.watched {
                    self.note_watched(world, marks, &request, &results);
                }
                let goes_on = self.follow(world, marks, index, request, &results);
                if goes_on && self.clients[index].waiting.is_empty() {
                    self.think(world, index);
                }
                Ok(goes_on)
            }
        }
    }

    fn learn(
        &mut self,
        world: &World,
        index: usize,
        request: &Request,
        results: &[Answer],
    ) -> Result<(), Violation> {
        let now = world.now();
        for (command, answer) in request.commands.iter().zip(results) {
            let mut command = command.clone();
            if let Expect::Members(members) | Expect::Elements(_, members) | Expect::Entries(_, members) =
                &mut command.expect
            {
                let key = String::from_utf8_lossy(&command.args[1]).into_owned();
                members.clone_from(self.keys.members.entry(key).or_default());
            }
            if matches!(command.expect, Expect::Expiring { .. }) && *answer == Answer::Nil {
                let datacenter = self.history.operations[request.operation].datacenter;
                let key = String::from_utf8_lossy(&command.args[1]).into_owned();
                self.keys.gone.push((datacenter, key));
            }
            self.knows_its_counter(request.operation, &command, answer)?;
            let finding = command.interpret(answer, request.invoked_us, now).map_err(|mut violation| {
                violation.words += &format!("\n{}", self.history.describe(request.operation));
                violation
            })?;
            finding.record(&mut self.history, request.operation);
        }
        let operation = &mut self.history.operations[request.operation];
        operation.outcome = Outcome::Done;
        operation.answered_us = now;
        self.clients[index].places.insert(operation.datacenter, now);
        let is_done = results.iter().all(|result| result.error().is_none());
        if let Some((key, amount)) = request.total.as_ref().filter(|_| is_done) {
            self.keys.totals.entry(key.clone()).or_default().acknowledged += amount;
            self.keys.added.push((key.clone(), *amount, request.operation));
        }
        if let Some(mut expiring) = request.expiring.clone() {
            expiring.gone_after_us = now + (expiring.ms + slack_ms(world)) * 1_000;
            self.keys.expiring.push((expiring.key.clone(), expiring.gone_after_us));
            self.clients[index].expiring = Some(expiring);
        }
        Ok(())
    }

    /// Whether a transaction was executed that watches a key. That one of a healthy datacenter was not must have a
    /// cause: one that was restarted may not know any more what was watched.
    fn note_watched(&mut self, world: &mut World, marks: &mut Marks, request: &Request, results: &[Answer]) {
        let datacenter = self.history.operations[request.operation].datacenter;
        let is_healthy = world.healthy_since(datacenter).is_some_and(|since| since <= request.invoked_us);
        match results.last() {
            Some(Answer::Nil) if is_healthy && !world.options.shape.is_replicated() => {
                self.history.aborted.push(request.operation);
            }
            Some(Answer::Nil) => {}
            _ => marks.add(Mark::WatchedExecuted),
        }
    }

    /// What a token or a merge leads to. False if the client leaves its connection.
    fn follow(
        &mut self,
        world: &mut World,
        marks: &mut Marks,
        index: usize,
        request: Request,
        results: &[Answer],
    ) -> bool {
        match request.purpose {
            Purpose::Work | Purpose::Name => true,
            Purpose::Merge { own, .. } => {
                marks.add(if own { Mark::SessionMoved } else { Mark::PastMerged });
                true
            }
            Purpose::Token { to } => {
                let Some(text) = results.first().and_then(Answer::bytes) else { return true };
                let token = Token { operation: request.operation, text: text.to_vec() };
                let Some(site) = to else {
                    self.board.push(token);
                    return true;
                };
                if let Some(connection) = self.clients[index].connection.take() {
                    world.close(connection);
                    self.connections.remove(&connection);
                }
                let client = &mut self.clients[index];
                client.token = Some(token);
                client.site = site;
                client.session = self.history.session();
                client.incoming = Default::default();
                self.think(world, index);
                false
            }
        }
    }

    fn check_availability(
        &mut self,
        world: &mut World,
        request: &Request,
        error: &Answer,
    ) -> Result<(), Violation> {
        let operation = &self.history.operations[request.operation];
        let healthy = world.healthy_since(operation.datacenter);
        if healthy.is_none_or(|since| since > request.invoked_us) {
            return Ok(());
        }
        if let Purpose::Merge { of, .. } = request.purpose {
            if self.excuses_token(world, request, of, error.error().unwrap_or_default()) {
                return Ok(());
            }
        }
        // A full disk excuses a refused write, and nothing else.
        let refused = error.error().is_some_and(|text| text.starts_with("DISKFULL"));
        if refused && world.has_refused_since(operation.datacenter, request.invoked_us) {
            return Ok(());
        }
        let words = format!("answered {error}: {}", self.history.describe(request.operation));
        Err(Violation::new(property::AVAILABILITY, words))
    }

    fn unknown(&mut self, index: usize, request: Request) {
        if let Some((key, amount)) = request.total {
            self.keys.totals.entry(key).or_default().unknown.push(amount);
        }
        self.clients[index].model_uncertain |= request.private;
    }

    fn leave(&mut self, world: &mut World, index: usize) {
        if let Some(connection) = self.clients[index].connection.take() {
            world.close(connection);
            self.connections.remove(&connection);
        }
        self.begin_anew(world, index);
    }

    /// A new session, with private keys of its own, at a core drawn anew.
    fn begin_anew(&mut self, world: &mut World, index: usize) {
        while let Some(request) = self.clients[index].waiting.pop_back() {
            self.history.isolate(request.operation);
            self.unknown(index, request);
        }
        self.bury(index);
        let session = self.history.session();
        let client = &mut self.clients[index];
        client.places.clear();
        client.session = session;
        client.incoming = Default::default();
        client.token = None;
        client.prefix = format!("k{session}-");
        client.expiring = None;
        client.fell_back_us = None;
        let site = self.next_site(world, index);
        let client = &mut self.clients[index];
        client.site = site;
        let at = world.now() + client.random.between(1_000, 50_000);
        world.alarm(at, Alarm::Client(index));
    }

    fn bury(&mut self, index: usize) {
        let client = &mut self.clients[index];
        let prefix = client.prefix.clone();
        let model = std::mem::take(&mut client.model);
        let certain = !std::mem::take(&mut client.model_uncertain);
        let places = client.places.clone();
        self.relics.push(Relic { prefix, model, certain, places });
    }

    fn think(&mut self, world: &mut World, index: usize) {
        let most = world.options.workload.think_us_max;
        let at = world.now() + self.clients[index].random.skewed(1, most);
        world.alarm(at, Alarm::Client(index));
    }
}

impl Clients for Workload {
    fn is_idle(&self) -> bool {
        let idle = |client: &Client| client.waiting.is_empty() && (client.budget == 0 || self.stopping);
        self.clients.iter().all(idle)
    }

    fn stop(&mut self) {
        self.stopping = true;
    }

    fn waits_us(&self, world: &World) -> u64 {
        Workload::waits_us(self, world)
    }

    fn overdue(&self, world: &mut World, patience_us: u64) -> Option<Violation> {
        let now = world.now();
        let waits_us = self.waits_us(world);
        for client in &self.clients {
            let Some(request) = client.waiting.front() else { continue };
            let datacenter = world.options.shape.datacenter(client.site);
            let extra = match request.purpose {
                Purpose::Merge { .. } => world.options.workload.merge_timeout_ms * 1_000,
                _ => waits_us * waiting_commands(&self.history.operations[request.operation].commands),
            };
            // Where one request may wait, those behind it wait first for their turn.
            let asked_us = if waits_us > 0 { request.first_since_us } else { request.invoked_us };
            let healthy = world.healthy_since(datacenter);
            let from = asked_us.max(healthy.unwrap_or(u64::MAX));
            let runs_us = asked_us.max(world.occupied_until(datacenter));
            let late =
                now > from.saturating_add(HEALTHY_ANSWER_US + extra) || now > runs_us + patience_us + extra;
            if late {
                let words = format!("no answer: {}", self.history.describe(request.operation));
                return Some(Violation::new(property::AVAILABILITY, words));
            }
        }
        self.overdue_at_home(world, patience_us)
    }

    fn on_alarm(&mut self, world: &mut World, index: usize) {
        if let Some(listener) = self.listener_of(index) {
            return self.listen(world, listener);
        }
        if self.asks_home(world, index) || self.caches(world, index) {
            return;
        }
        let client = &mut self.clients[index];
        if self.stopping || client.budget == 0 || !client.waiting.is_empty() {
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
        client.next_step(world.options.seed, index);
        if self.clients[index].connection.is_none() {
            let connection = world.connect(self.clients[index].site);
            self.clients[index].connection = Some(connection);
            self.connections.insert(connection, index);
            self.give_name(world, index);
            if let Some(token) = self.clients[index].token.take() {
                return self.merge(world, index, token, true);
            }
        }
        if self.leaves_its_name(world, index) {
            return;
        }
        let options = world.options.workload.clone();
        let random = &mut self.clients[index].random;
        if random.chance(options.move_rate) {
            let site = Site(random.index(world.options.shape.sites()));
            // Without causality there are no tokens: who goes elsewhere is somebody else there.
            return match self.history.promises.causality {
                true => self.token(world, index, Some(site)),
                false => self.leave(world, index),
            };
        }
        if self.history.promises.causality && random.chance(options.merge_rate) {
            if self.board.is_empty() || random.chance(500) {
                return self.token(world, index, None);
            }
            let token = self.board[random.index(self.board.len())].clone();
            if random.chance(FORGED) {
                return self.forge(world, index, &token);
            }
            return self.merge(world, index, token, false);
        }
        if options.publish_rate > 0 && random.chance(options.publish_rate) {
            let draft = listeners::publication(&self.history);
            let commands = self.enqueue(world, index, draft, Purpose::Work);
            return self.send(world, index, commands);
        }
        let count = if random.chance(options.pipeline) { random.between(2, 5) } else { 1 };
        let mut commands = Vec::new();
        for _ in 0..count {
            commands.extend(self.work(world, index));
        }
        if count > 1 {
            self.read_as_one(index);
        }
        self.send(world, index, commands);
    }

    fn on_answer(
        &mut self,
        world: &mut World,
        marks: &mut Marks,
        connection: ConnectionId,
        bytes: &[u8],
    ) -> Result<(), Violation> {
        if self.hears(world, marks, connection, bytes)?
            || self.home_answers(world, marks, connection, bytes)?
            || self.cache_answers(world, marks, connection, bytes)?
        {
            return Ok(());
        }
        let Some(&index) = self.connections.get(&connection) else { return Ok(()) };
        self.clients[index].incoming.extend(bytes);
        loop {
            let client = &mut self.clients[index];
            let Some(answer) = next_answer(&mut client.incoming)? else { return Ok(()) };
            let Some(request) = client.waiting.front_mut() else {
                return Err(Violation::new(property::PROTOCOL, format!("unasked answer {answer}")));
            };
            request.answers.push(answer);
            request.missing -= 1;
            if request.missing > 0 {
                continue;
            }
            if let Some(request) = client.waiting.pop_front() {
                if let Some(next) = client.waiting.front_mut() {
                    next.first_since_us = world.now();
                }
                if !self.finish(world, marks, index, request)? {
                    return Ok(());
                }
            }
        }
    }

    fn on_hangup(&mut self, world: &mut World, connection: ConnectionId) {
        let is_of_others = self.stops_listening(world, connection)
            || self.loses_home(world, connection)
            || self.loses_cache(world, connection);
        if is_of_others {
            return;
        }
        if let Some(index) = self.connections.remove(&connection) {
            let client = &mut self.clients[index];
            client.connection = None;
            self.begin_anew(world, index);
        }
    }

    fn on_power_losses(&mut self, world: &World) {
        let known = self.history.power_losses.len();
        if world.power_losses.len() == known {
            return;
        }
        let losses = &world.power_losses[known..];
        self.history.power_losses.extend_from_slice(losses);
        for index in 0..self.clients.len() {
            let client = &mut self.clients[index];
            // Of what has no answer yet it will not be known which keys it has changed.
            let waits = client.waiting.iter().any(|request| request.private);
            let may_have_lost = client::may_have_lost(&client.places, losses);
            client.model_uncertain |= waits || may_have_lost;
            self.bury(index);
            let client = &mut self.clients[index];
            client.prefix = format!("k{}-{}-", client.session, world.power_losses.len());
            client.expiring = None;
            for request in &mut client.waiting {
                request.expiring = None;
                for command in request.commands.iter_mut().filter(|_| may_have_lost) {
                    if matches!(command.expect, Expect::Exactly(_) | Expect::Expiring { .. }) {
                        command.expect = Expect::Anything;
                    }
                }
            }
        }
        for relic in &mut self.relics {
            relic.certain &= !client::may_have_lost(&relic.places, losses);
        }
    }
}

/// The next whole answer of a connection.
fn next_answer(incoming: &mut Answers) -> Result<Option<Answer>, Violation> {
    incoming.pop().map_err(|why| Violation::new(property::PROTOCOL, why))
}

fn owners(world: &World) -> Owners {
    let promises = world.options.promises();
    let partitions = promises.spread(world.options.shape.partitions);
    Owners { partitions, several_writes: promises.several_writes }
}

/// Whether a command reads or writes several rows.
fn names_several(command: &Command) -> bool {
    match &command.args[0][..] {
        b"MGET" => command.args.len() > 2,
        b"MSET" => command.args.len() > 3,
        _ => false,
    }
}

/// How far a logical time of one core may be from that of another: clocks differ, drift a little beyond their bound,
/// and each restart may move one ahead.
fn slack_ms(world: &World) -> u64 {
    let options = &world.options;
    2 * options.clock.bound_ms
        + options.clock.wild_ms
        + options.tuning.clock_persist_ahead_ms * (world.restarts() + 1)
        + 350
}
