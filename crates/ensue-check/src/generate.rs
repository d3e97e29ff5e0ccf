//! A long history of a correct store, to measure a checker with: sessions in datacenters that hear from each other
//! late.
//!
//! Every datacenter applies what others wrote in the order in which it was written there, after what it depends on, and
//! the highest stamp wins. So the history is causal with convergence, and has concurrent writes in plenty.

use crate::builder::Builder;
use crate::history::{History, Operation, Transaction};

/// The shape of a history.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub operations: u64,
    pub sessions: u32,
    pub keys: u32,
    pub seed: u64,
}

/// How many datacenters the sessions are spread over.
const DATACENTERS: usize = 3;
/// One of so many transactions has several operations.
const MULTIPLE_ONE_IN: u64 = 10;

/// A write that travels.
#[derive(Clone, Copy, Debug)]
struct Update {
    key: u32,
    value: u64,
    stamp: u64,
}

/// One datacenter: what it holds, and how far it has heard from each other.
struct Datacenter {
    held: Vec<Option<(u64, u64)>>,
    heard: [usize; DATACENTERS],
    clock: u64,
}

/// What happened at a datacenter, in order: its own updates, and how far it had heard from others before each.
#[derive(Default)]
struct Log {
    updates: Vec<(Vec<Update>, [usize; DATACENTERS])>,
}

pub fn history(shape: Shape) -> History {
    let mut world = World::new(shape);
    let mut done = 0;
    while done < shape.operations {
        done += world.step();
    }
    world.builder.finish()
}

struct World {
    shape: Shape,
    chance: Chance,
    builder: Builder,
    datacenters: Vec<Datacenter>,
    logs: Vec<Log>,
    values: u64,
    now_us: u64,
}

impl World {
    fn new(shape: Shape) -> World {
        let datacenter =
            || Datacenter { held: vec![None; shape.keys as usize], heard: [0; DATACENTERS], clock: 0 };
        World {
            shape,
            chance: Chance(shape.seed),
            builder: Builder::new(),
            datacenters: (0..DATACENTERS).map(|_| datacenter()).collect(),
            logs: (0..DATACENTERS).map(|_| Log::default()).collect(),
            values: 0,
            now_us: 0,
        }
    }

    /// One transaction, and now and then some hearing; how many operations it had.
    fn step(&mut self) -> u64 {
        if self.chance.below(4) == 0 {
            let to = self.chance.below(DATACENTERS as u64) as usize;
            let from = self.chance.below(DATACENTERS as u64) as usize;
            let count = self.chance.below(40);
            self.hear(to, from, count);
        }
        let session = self.chance.below(u64::from(self.shape.sessions)) as u32;
        let at = session as usize % DATACENTERS;
        let count = if self.chance.below(MULTIPLE_ONE_IN) == 0 { 2 + self.chance.below(4) } else { 1 };
        let is_write = self.chance.below(2) == 0;
        let mut keys: Vec<u32> =
            (0..count).map(|_| self.chance.below(u64::from(self.shape.keys)) as u32).collect();
        keys.sort_unstable();
        keys.dedup();
        let operations = if is_write { self.write(at, &keys) } else { self.read(at, &keys) };
        let done = operations.len() as u64;
        self.now_us += 1 + self.chance.below(20);
        let session = self.builder.session(&format!("client-{session}"));
        let datacenter = Some(self.builder.datacenter(&format!("dc{}", at + 1)));
        let start_us = self.now_us;
        let end_us = start_us + 200;
        let transaction =
            Transaction { datacenter, start_us, end_us, operations, ..Transaction::committed(session) };
        self.builder.add(transaction);
        done
    }

    fn write(&mut self, at: usize, keys: &[u32]) -> Vec<Operation> {
        let datacenter = &mut self.datacenters[at];
        datacenter.clock += 1;
        let stamp = datacenter.clock * DATACENTERS as u64 + at as u64;
        let mut updates = Vec::new();
        let mut operations = Vec::new();
        for &key in keys {
            self.values += 1;
            updates.push(Update { key, value: self.values, stamp });
            datacenter.held[key as usize] = Some((stamp, self.values));
            operations.push(self.builder.write(&format!("key-{key}"), Some(&self.values.to_string())));
        }
        let mut heard = datacenter.heard;
        heard[at] = 0;
        self.logs[at].updates.push((updates, heard));
        operations
    }

    fn read(&mut self, at: usize, keys: &[u32]) -> Vec<Operation> {
        let held = &self.datacenters[at].held;
        let mut operations = Vec::new();
        for &key in keys {
            let value = held[key as usize].map(|(_, value)| value.to_string());
            operations.push(self.builder.read(&format!("key-{key}"), value.as_deref()));
        }
        operations
    }

    /// Takes up to so many updates of another datacenter, as far as what they depend on has been heard.
    fn hear(&mut self, to: usize, from: usize, count: u64) {
        if to == from {
            return;
        }
        let datacenter = &mut self.datacenters[to];
        for _ in 0..count {
            let Some((updates, needs)) = self.logs[from].updates.get(datacenter.heard[from]) else { return };
            let is_ready =
                (0..DATACENTERS).all(|other| other == to || datacenter.heard[other] >= needs[other]);
            if !is_ready {
                return;
            }
            for update in updates {
                let held = &mut datacenter.held[update.key as usize];
                if held.is_none_or(|(stamp, _)| stamp < update.stamp) {
                    *held = Some((update.stamp, update.value));
                }
                datacenter.clock = datacenter.clock.max(update.stamp / DATACENTERS as u64);
            }
            datacenter.heard[from] += 1;
        }
    }
}

/// Numbers that look like chance and come from a seed (SplitMix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }
}
