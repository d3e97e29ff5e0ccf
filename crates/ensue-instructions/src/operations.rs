//! The operations that are counted: what is there before, and what is asked then.

use crate::world::{LOCAL, REMOTE, World};
use bytes::Bytes;
use ensue_node::Input;
use std::fmt::Write;

/// Commands that a client sends at once.
const PIPELINE: usize = 16;
const COMMANDS: usize = 40 * PIPELINE;
/// Where entries are applied. What an entry depends on is mostly elsewhere, and asked for there.
const PARTITIONS: u16 = 16;
/// Keys, fields or members that are there before.
const ELEMENTS: usize = 1_000;
const ENTRIES: usize = 200;

/// One kind of operation.
pub struct Operation {
    pub name: &'static str,
    pub title: &'static str,
    /// Runs it, and says how often.
    pub run: fn() -> usize,
}

pub const ALL: [Operation; 11] = [
    Operation { name: "get", title: "GET", run: || commands(&["SET @ %"], "GET @") },
    Operation { name: "set", title: "SET", run: || commands(&["SET @ %"], "SET @ %") },
    Operation { name: "incr", title: "INCR", run: || commands(&["SET @ 5", "INCR @"], "INCR @") },
    Operation { name: "hset", title: "HSET, one hash", run: || commands(&["HSET h @ %"], "HSET h @ %") },
    Operation { name: "sadd", title: "SADD, one set", run: || commands(&["SADD s @"], "SADD s new@") },
    Operation {
        name: "mget",
        title: "MGET of 10",
        run: || commands(&["SET @ %"], "MGET @ @ @ @ @ @ @ @ @ @"),
    },
    Operation {
        name: "mset",
        title: "MSET of 10",
        run: || commands(&["SET @ %"], "MSET @ % @ % @ % @ % @ % @ % @ % @ % @ % @ %"),
    },
    Operation { name: "apply-0", title: "an entry applied that depends on nothing", run: || applied(0) },
    Operation { name: "apply-1", title: "the same, on one operation", run: || applied(1) },
    Operation { name: "apply-5", title: "on 5", run: || applied(5) },
    Operation { name: "apply-130", title: "on 130", run: || applied(130) },
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
    let mut world = World::new(1);
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
    let mut world = World::new(PARTITIONS);
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
