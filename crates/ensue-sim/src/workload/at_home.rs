//! Clients of keys with a home: counters that are incremented, by one command or under `WATCH`, locks that are taken
//! and released with a token, and queues whose elements are waited for.
//!
//! They have connections and a history of their own, in a keyspace that nobody else writes, because what is judged is
//! another thing: not causality, but that each command happens at most once, and in one place
//! (`oracle::homes`). An error says nothing about whether a command was executed.

use super::{Workload, next_answer};
use crate::oracle::homes::{HomeHistory, HomeOperation, Kind};
use crate::oracle::{Violation, property};
use crate::random::Random;
use crate::resp::{self, Answer, Answers};
use crate::world::World;
use crate::world::event::{Alarm, ConnectionId};
use crate::world::marks::{Mark, Marks};
use crate::world::options::HOME_KEYSPACE;
use crate::world::shape::Site;
use bytes::Bytes;
use ensue_node::AppendFsync;
use ensue_types::{Args, DatacenterId};

const CLIENTS: usize = 5;
const COUNTERS: u64 = 2;
const LOCKS: u64 = 2;
const QUEUES: u64 = 2;
/// How long a pop waits at most.
const POP_MS_MAX: u64 = 3_000;
const AGAIN_US: u64 = 20_000;
/// So many commands each of them makes at most: a datacenter executes them faster than the smallest window of a stream
/// carries them to the others, and a run in which other clients wait for long must come to rest all the same.
const COMMANDS_MAX: usize = 400;

/// Releases a lock that has this token.
const RELEASE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

/// All of them, and what they did.
#[derive(Debug)]
pub(super) struct AtHome {
    /// The number of the first one among all who have alarms.
    first: usize,
    clients: Vec<HomeClient>,
    pub(super) history: HomeHistory,
}

#[derive(Debug)]
struct HomeClient {
    random: Random,
    site: Site,
    connection: Option<ConnectionId>,
    session: usize,
    incoming: Answers,
    /// The keyspace was chosen.
    selected: bool,
    /// How many commands it has made.
    commands: usize,
    /// What has no answer yet, in the history.
    waiting: Option<usize>,
    /// The counter that it increments under `WATCH`, and the answers so far.
    watching: Option<(u64, Vec<Answer>)>,
    /// A lock that it holds, or may hold.
    lock: Option<(u64, String)>,
}

impl AtHome {
    /// Some clients, in worlds with homes in which nothing that was acknowledged is lost for good.
    pub(super) fn new(world: &mut World, first: usize) -> AtHome {
        let options = &world.options;
        let loses = options.faults.loses_datacenter || options.faults.loses_directories;
        let count = if options.homes.is_empty() || loses { 0 } else { CLIENTS };
        let mut clients = Vec::new();
        for place in 0..count {
            let mut random = Random::stream(options.seed, &format!("client of homes {place}"));
            let site = Site(random.index(options.shape.sites()));
            let incoming = Answers::default();
            let (connection, waiting, watching, lock) = (None, None, None, None);
            clients.push(HomeClient {
                random,
                site,
                connection,
                session: 0,
                incoming,
                selected: false,
                commands: 0,
                waiting,
                watching,
                lock,
            });
        }
        for place in 0..count {
            world.alarm(1_000, Alarm::Client(first + place));
        }
        AtHome { first, clients, history: HomeHistory::default() }
    }

    /// The number behind the last one.
    pub(super) fn end(&self) -> usize {
        self.first + self.clients.len()
    }
}

impl HomeClient {
    fn draw(&mut self, place: usize, operations: usize) -> (HomeOperation, Vec<Args>) {
        if self.random.chance(150) {
            let counter = self.random.below(COUNTERS);
            self.watching = Some((counter, Vec::new()));
            let texts = [format!("WATCH home:c{counter}"), format!("GET home:c{counter}")];
            let operation = HomeOperation::new(Kind::Increment, counter, String::new());
            return (operation, texts.map(|text| resp::args(&text)).to_vec());
        }
        let (operation, args) = self.draw_one(place, operations);
        (operation, vec![args])
    }

    /// One answer of an increment under `WATCH`: the last one is that of `EXEC`, as an increment would be answered, or
    /// the error that ends it. Before that the rest is sent, when it is known what to write.
    fn on_watched(&mut self, world: &mut World, connection: ConnectionId, answer: Answer) -> Option<Answer> {
        let (counter, answers) = self.watching.as_mut()?;
        answers.push(answer);
        let value = match answers.get(1)? {
            Answer::Nil => Some(0),
            answer => answer.text().and_then(|text| text.parse::<i64>().ok()),
        };
        let (Some(value), None) = (value, answers[0].error()) else {
            let (_, answers) = self.watching.take()?;
            return answers.into_iter().rev().find(|answer| answer.error().is_some());
        };
        if answers.len() == 2 {
            let texts = ["MULTI".to_owned(), format!("SET home:c{counter} {}", value + 1), "EXEC".to_owned()];
            world.send(connection, texts.iter().map(|text| resp::args(text)).collect());
        }
        if answers.len() < 5 {
            return None;
        }
        let (_, mut answers) = self.watching.take()?;
        match answers.pop()? {
            Answer::Array(_) => Some(Answer::Integer(value + 1)),
            answer => Some(answer),
        }
    }

    fn draw_one(&mut self, place: usize, operations: usize) -> (HomeOperation, Args) {
        let counter = self.random.below(COUNTERS);
        if let Some((lock, token)) = self.lock.clone() {
            if self.random.chance(600) {
                let key = format!("home:l{lock}");
                let words = ["EVAL", RELEASE, "1", &key, &token];
                let args = words.iter().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
                return (HomeOperation::new(Kind::Release, lock, token), args);
            }
        }
        if self.random.chance(350) {
            return self.draw_of_queues(place, operations);
        }
        let (kind, number, token, text) = match self.random.below(10) {
            0..5 => (Kind::Increment, counter, String::new(), format!("INCR home:c{counter}")),
            5..7 => (Kind::Read, counter, String::new(), format!("GET home:c{counter}")),
            _ if self.lock.is_some() => {
                (Kind::Increment, counter, String::new(), format!("INCR home:c{counter}"))
            }
            _ => {
                let lock = self.random.below(LOCKS);
                let token = format!("t{place}-{operations}");
                let text = format!("SET home:l{lock} {token} NX");
                (Kind::Acquire, lock, token, text)
            }
        };
        (HomeOperation::new(kind, number, token), resp::args(&text))
    }
}

impl HomeClient {
    fn draw_of_queues(&mut self, place: usize, operations: usize) -> (HomeOperation, Args) {
        let queue = self.random.below(QUEUES);
        let (kind, token, text) = match self.random.below(9) {
            0..5 => {
                let token = format!("e{place}-{operations}");
                let text = format!("RPUSH home:q{queue} {token}");
                (Kind::Push, token, text)
            }
            number => {
                let name = if number < 7 { "BLPOP" } else { "BRPOP" };
                let ms = self.random.skewed(1, POP_MS_MAX);
                let text = format!("{name} home:q{queue} {}.{:03}", ms / 1_000, ms % 1_000);
                (Kind::Pop, String::new(), text)
            }
        };
        (HomeOperation::new(kind, queue, token), resp::args(&text))
    }
}

impl Workload {
    /// Where the queues are and what asks for all that is in them, if everybody who asked has an answer.
    pub fn queue_questions(&self, world: &World) -> Option<(DatacenterId, Vec<Args>)> {
        let (_, home) = world.options.homes.first()?;
        let AtHome { clients, .. } = &self.at_home;
        if clients.is_empty() || clients.iter().any(|client| client.waiting.is_some()) {
            return None;
        }
        let ranges = (0..QUEUES).map(|queue| format!("LRANGE home:q{queue} 0 -1"));
        let texts = std::iter::once(format!("SELECT {HOME_KEYSPACE}")).chain(ranges);
        Some((*home, texts.map(|text| resp::args(&text)).collect()))
    }

    /// What asks for the digest of the keyspace of these clients, if there are any.
    pub fn digest_of_homes(&self) -> Option<String> {
        (!self.at_home.clients.is_empty()).then(|| format!("CAUSAL DIGEST {HOME_KEYSPACE}"))
    }

    /// Whether it is known what is left in the queues.
    pub fn has_noted_queues(&self) -> bool {
        self.at_home.history.left.is_some()
    }

    /// These are the answers.
    pub fn note_queues(&mut self, answers: &[Answer]) {
        let elements = |answer: &Answer| match answer {
            Answer::Array(elements) => {
                Some(elements.iter().filter_map(|one| Some(one.text()?.to_owned())).collect())
            }
            _ => None,
        };
        self.at_home.history.left = answers.iter().skip(1).map(elements).collect();
    }

    /// One of these clients does something, if this is one.
    pub(super) fn asks_home(&mut self, world: &mut World, index: usize) -> bool {
        let AtHome { first, clients, history } = &mut self.at_home;
        let Some(client) = index.checked_sub(*first).and_then(|place| clients.get_mut(place)) else {
            return false;
        };
        if self.stopping || client.waiting.is_some() || client.commands >= COMMANDS_MAX {
            return true;
        }
        let Some(connection) = client.connection else {
            let connection = world.connect(client.site);
            client.connection = Some(connection);
            client.incoming = Answers::default();
            client.selected = false;
            client.session = history.begin_session();
            world.send(connection, vec![resp::args(&format!("SELECT {HOME_KEYSPACE}"))]);
            return true;
        };
        if !client.selected {
            return true;
        }
        let (drawn, commands) = client.draw(index - *first, history.operations.len());
        if drawn.kind == Kind::Acquire {
            client.lock = Some((drawn.number, drawn.token.clone()));
        }
        let operation = HomeOperation { session: client.session, invoked_us: world.now(), ..drawn };
        client.waiting = Some(history.operations.len());
        client.commands += 1;
        history.operations.push(operation);
        world.send(connection, commands);
        true
    }

    /// Whether bytes are for one of these clients.
    pub(super) fn home_answers(
        &mut self,
        world: &mut World,
        marks: &mut Marks,
        connection: ConnectionId,
        bytes: &[u8],
    ) -> Result<bool, Violation> {
        let AtHome { first, clients, history } = &mut self.at_home;
        let Some(place) = clients.iter().position(|client| client.connection == Some(connection)) else {
            return Ok(false);
        };
        let client = &mut clients[place];
        client.incoming.extend(bytes);
        while let Some(answer) = next_answer(&mut client.incoming)? {
            if !client.selected {
                // A partition that does not serve yet is no reason to refuse this.
                client.selected = answer == Answer::Status("OK".into());
                continue;
            }
            let answer = match client.watching {
                Some(_) => match client.on_watched(world, connection, answer) {
                    Some(answer) => answer,
                    None => continue,
                },
                None => answer,
            };
            let Some(index) = client.waiting.take() else {
                return Err(Violation::new(property::PROTOCOL, format!("unasked answer {answer}")));
            };
            let operation = &mut history.operations[index];
            operation.answered_us = Some(world.now());
            let falls_back = answer.error().is_some_and(|words| words.starts_with("FALLBACK"));
            if answer.error().is_none() {
                marks.add(Mark::AnsweredAtHome);
            }
            let has_none = matches!(
                (operation.kind, &answer),
                (Kind::Acquire, Answer::Nil) | (Kind::Release, Answer::Integer(_))
            );
            operation.answer = Some(answer);
            if falls_back {
                // The session begins anew, with an empty past.
                client.session = history.begin_session();
            }
            if has_none {
                client.lock = None;
            }
        }
        if client.waiting.is_none() {
            let at = world.now() + client.random.skewed(1, world.options.workload.think_us_max);
            world.alarm(at, Alarm::Client(*first + place));
        }
        Ok(true)
    }

    /// Whether a lost connection was that of one of these clients, which connects again, perhaps elsewhere.
    pub(super) fn loses_home(&mut self, world: &mut World, connection: ConnectionId) -> bool {
        let AtHome { first, clients, .. } = &mut self.at_home;
        let Some(place) = clients.iter().position(|client| client.connection == Some(connection)) else {
            return false;
        };
        let client = &mut clients[place];
        client.connection = None;
        client.waiting = None;
        client.watching = None;
        client.site = Site(client.random.index(world.options.shape.sites()));
        world.alarm(world.now() + AGAIN_US, Alarm::Client(*first + place));
        true
    }

    /// A command of these clients that should have been answered by now.
    pub(super) fn overdue_at_home(&self, world: &World, patience_us: u64) -> Option<Violation> {
        let tuning = &world.options.tuning;
        let waits_us = 6_000 * (tuning.home_wait_ms + tuning.request_timeout_ms + POP_MS_MAX);
        self.at_home.clients.iter().find_map(|client| {
            let operation = &self.at_home.history.operations[client.waiting?];
            let datacenter = world.options.shape.datacenter(client.site);
            let since_us = operation.invoked_us.max(world.occupied_until(datacenter));
            let late = world.now() > since_us + patience_us + waits_us;
            late.then(|| Violation::new(property::AVAILABILITY, format!("no answer: {operation:?}")))
        })
    }

    /// Each of their commands happened at most once, and in one place.
    pub fn judge_homes(&self, world: &World) -> Result<(), Violation> {
        let options = &world.options;
        // What was acknowledged and lost with the power may happen again.
        let may_be_lost = options.append_fsync != AppendFsync::Always && !world.power_losses.is_empty();
        match may_be_lost {
            true => Ok(()),
            false => self.at_home.history.judge(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;
    use crate::workload::clients::Clients;
    use crate::world::Happening;
    use crate::world::options::Options;
    use crate::world::shape::Shape;

    /// Seed 500394 of `pocc`: other clients waited for 80 s, while these wrote more than a window of 1,065 bytes brings
    /// to the other datacenters in the time in which a run must come to rest.
    #[test]
    fn who_works_while_others_wait_stops_after_so_many_commands() {
        let shape = Shape { datacenters: 2, cores: 1, partitions: 2, one_process: true, replicas: 1 };
        let mut options = Options::calm(shape, 1_000, Rules::default());
        options.homes.push(("home:*".to_owned(), DatacenterId(0)));
        options.workload.think_us_max = 100;
        let mut world = World::new(options);
        let (mut workload, mut marks) = (Workload::new(&mut world), Marks::default());
        while let Some(happening) = world.step(10_000_000) {
            match happening {
                Happening::Alarm(Alarm::Client(index)) => workload.on_alarm(&mut world, index),
                Happening::Answer { connection, bytes, .. } => {
                    let answered = workload.on_answer(&mut world, &mut marks, connection, &bytes);
                    answered.expect("each of them is asked for");
                }
                Happening::Hangup { connection } => workload.on_hangup(&mut world, connection),
                _ => {}
            }
        }
        assert_eq!(workload.at_home.history.operations.len(), CLIENTS * COMMANDS_MAX);
    }
}
