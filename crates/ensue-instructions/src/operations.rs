//! The operations that are counted: what is there before, and what is asked then.

use crate::world::{LOCAL, REMOTE, World};
use bytes::Bytes;
use ensue_node::{Input, Tuning};
use std::fmt::Write;

/// Commands that a client sends at once.
const PIPELINE: usize = 16;
const COMMANDS: usize = 40 * PIPELINE;
/// Where entries are applied. What an entry depends on is mostly elsewhere, and asked for there.
const PARTITIONS: u16 = 16;
/// Keys, fields or members that are there before.
const ELEMENTS: usize = 1_000;
const ENTRIES: usize = 200;
/// So many writes that the session of an entry has read are named by it.
const DEPENDENCIES_MAX: usize = 1_000;

/// Batches of each client of both datacenters, where a protocol is counted, and before that.
const BATCHES: usize = 20;
const BATCHES_BEFORE: usize = 10;
const CLIENTS: u64 = 4;
/// Of a hundred commands.
const GETS: [u64; 2] = [100, 0];

/// One kind of operation.
pub struct Operation {
    pub name: String,
    pub title: String,
    /// Runs it, and says how often.
    pub run: Box<dyn Fn() -> usize>,
}

/// What is counted: of the default protocol in parts, of all of them as a whole.
pub fn all() -> Vec<Operation> {
    let part = |(name, title, run): (&str, &str, fn() -> usize)| Operation {
        name: name.into(),
        title: title.into(),
        run: Box::new(run),
    };
    let whole = |protocol: &'static str| {
        GETS.map(|gets| Operation {
            name: format!("{protocol}-{gets}"),
            title: format!("`{protocol}`, {gets} % GET and else SET, in both datacenters"),
            run: Box::new(move || mixed(protocol, gets)),
        })
    };
    PARTS.into_iter().map(part).chain(ensue_protocol::NAMES.into_iter().flat_map(whole)).collect()
}

type Part = (&'static str, &'static str, fn() -> usize);

const PARTS: [Part; 12] = [
    ("get", "GET", || commands(&["SET @ %"], "GET @")),
    ("set", "SET", || commands(&["SET @ %"], "SET @ %")),
    ("incr", "INCR", || commands(&["SET @ 5", "INCR @"], "INCR @")),
    ("hset", "HSET, one hash", || commands(&["HSET h @ %"], "HSET h @ %")),
    ("sadd", "SADD, one set", || commands(&["SADD s @"], "SADD s new@")),
    ("del", "DEL", || commands(&["SET @ %"], "DEL @")),
    ("mget", "MGET of 10", || commands(&["SET @ %"], "MGET @ @ @ @ @ @ @ @ @ @")),
    ("mset", "MSET of 10", || commands(&["SET @ %"], "MSET @ % @ % @ % @ % @ % @ % @ % @ % @ % @ %")),
    ("apply-0", "an entry applied that depends on nothing", || applied(0)),
    ("apply-1", "the same, on one operation", || applied(1)),
    ("apply-5", "on 5", || applied(5)),
    ("apply-130", "on 130", || applied(130)),
];

/// What is counted: a client's bytes go in, its answers come out, and the disk is answered.
#[inline(never)]
fn measured_commands(world: &mut World, requests: &[Bytes]) {
    requests.iter().for_each(|request| world.say(LOCAL, request));
}

/// What is counted: messages of another datacenter go in.
#[inline(never)]
fn measured_messages(world: &mut World, inputs: Vec<Input>) {
    inputs.into_iter().for_each(|input| world.give(LOCAL, input));
}

/// A pattern is one command, in which `@` is the next element and `%` a value of 64 bytes.
fn commands(before: &[&str], pattern: &str) -> usize {
    let mut world = World::new(ensue_protocol::NAMES[0], 1, &Tuning::default());
    world.connect(LOCAL);
    for pattern in before {
        let mut elements = Elements::default();
        requests(&mut elements, pattern, ELEMENTS).iter().for_each(|request| world.say(LOCAL, request));
    }
    world.settle();
    let requests = requests(&mut Elements::default(), pattern, COMMANDS);
    let answers = world.answers(LOCAL);
    measured_commands(&mut world, &requests);
    assert_eq!(world.answers(LOCAL) - answers, COMMANDS as u32, "every command is answered in its turn");
    COMMANDS
}

/// Entries of another datacenter arrive, each of a session that has read so many others.
fn applied(dependencies: usize) -> usize {
    let tuning = Tuning { context_operations_max: DEPENDENCIES_MAX, ..Tuning::default() };
    let mut world = World::new(ensue_protocol::NAMES[0], PARTITIONS, &tuning);
    for element in 0..dependencies {
        // A session of its own: none depends on another one.
        world.connect(REMOTE);
        world.say(REMOTE, &request(&["SET".into(), name(element), "old".into()]));
    }
    // They arrive, but nobody hears that they have: what is known to be everywhere is no dependency.
    let messages = world.take_sent(LOCAL);
    messages.into_iter().for_each(|message| world.give(LOCAL, message));
    let applied = world.applied(LOCAL);
    for number in 0..ENTRIES {
        world.connect(REMOTE);
        if dependencies > 0 {
            let read = std::iter::once("MGET".to_owned()).chain((0..dependencies).map(name));
            world.say(REMOTE, &request(&read.collect::<Vec<_>>()));
        }
        world.say(REMOTE, &request(&["SET".into(), format!("new{number}"), "v".repeat(64)]));
    }
    let messages = world.take_sent(LOCAL);
    measured_messages(&mut world, messages);
    assert_eq!(world.applied(LOCAL) - applied, ENTRIES, "every entry is applied when it has come");
    ENTRIES
}

/// What is counted: clients of both datacenters say something in turns, and everything that follows from it is done in
/// both.
#[inline(never)]
fn measured_clients(world: &mut World, requests: &[(usize, u64, Bytes)]) {
    for (site, client, request) in requests {
        world.say_as(*site, *client, request);
        world.exchange();
    }
}

/// Clients of both datacenters read and write keys of two partitions, some much more often than others.
fn mixed(protocol: &str, gets: u64) -> usize {
    let mut world = World::new(protocol, 2, &Tuning::default());
    (0..CLIENTS).for_each(|_| [LOCAL, REMOTE].into_iter().for_each(|site| world.connect(site)));
    let mut elements = Elements::default();
    for batch in requests(&mut elements, "SET @ %", ELEMENTS) {
        world.say(LOCAL, &batch);
    }
    world.settle();
    let mut chance = Chance(0x9E37_79B9_7F4A_7C15);
    let mut drawn = |batches: usize| {
        let turns = (0..batches as u64 * CLIENTS)
            .flat_map(|turn| [LOCAL, REMOTE].map(|site| (site, 1 + turn % CLIENTS)));
        let batch = |(site, client)| {
            let commands = (0..PIPELINE).map(|_| chance.command(gets));
            (site, client, commands.collect::<Vec<_>>().concat().into())
        };
        turns.map(batch).collect::<Vec<(usize, u64, Bytes)>>()
    };
    let (before, counted) = (drawn(BATCHES_BEFORE), drawn(BATCHES));
    for (site, client, request) in &before {
        world.say_as(*site, *client, request);
        world.exchange();
    }
    measured_clients(&mut world, &counted);
    counted.len() * PIPELINE
}

/// Chance that is the same in every run.
struct Chance(u64);

impl Chance {
    fn draw(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) % below
    }

    fn command(&mut self, gets: u64) -> Bytes {
        let elements = ELEMENTS as u64;
        let element = name(
            (self.draw(elements) * self.draw(elements) * self.draw(elements) / elements / elements) as usize,
        );
        match self.draw(100) < gets {
            true => request(&["GET".into(), element]),
            false => request(&["SET".into(), element, "v".repeat(64)]),
        }
    }
}

/// Names in an order that is not theirs.
#[derive(Default)]
struct Elements(usize);

impl Elements {
    fn next(&mut self) -> String {
        self.0 += 1;
        name(self.0 * 389 % ELEMENTS)
    }
}

fn name(element: usize) -> String {
    format!("element:{element:06}")
}

fn requests(elements: &mut Elements, pattern: &str, count: usize) -> Vec<Bytes> {
    let mut word = |word: &str| match word {
        "%" => "v".repeat(64),
        word if word.contains('@') => word.replace('@', &elements.next()),
        word => word.to_owned(),
    };
    let commands: Vec<Bytes> =
        (0..count).map(|_| request(&pattern.split(' ').map(&mut word).collect::<Vec<_>>())).collect();
    commands.chunks(PIPELINE).map(|commands| commands.concat().into()).collect()
}

fn request(words: &[String]) -> Bytes {
    let mut text = format!("*{}\r\n", words.len());
    for word in words {
        // Writing to a string cannot fail.
        let _ = write!(text, "${}\r\n{word}\r\n", word.len());
    }
    text.into()
}
