//! From an operation to the bytes of its commands.
//!
//! An operation takes one round of commands, or two: a read-modify-write writes when it has read, and a scan reads the
//! records that the index named. What a command says depends on the operation, the stream of chance and the keys that
//! exist, and on nothing else.

use crate::keys::KeyChooser;
use crate::random::{Random, mix};
use crate::workload::{Family, Operation, Workload};
use bytes::Bytes;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};

mod values;

/// Fields of a record, as YCSB has it.
const FIELDS: u64 = 10;
/// Records of a scan at most, as YCSB's workload E has it.
const SCAN_MAX: u64 = 100;
/// Bytes from which values are cut, beside the longest value.
const FILLER_BYTES: usize = 4_096;

/// How many keys a store has. Shared by all clients of the store.
#[derive(Debug)]
pub struct KeyCount {
    initial: u64,
    next: AtomicU64,
    present: AtomicU64,
}

impl KeyCount {
    pub fn new(keys: u64) -> KeyCount {
        KeyCount { initial: keys, next: AtomicU64::new(keys), present: AtomicU64::new(keys) }
    }

    /// Those that are there when a run begins.
    pub fn initial(&self) -> u64 {
        self.initial
    }

    /// The number of a key that nobody has written.
    fn take_next(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// A key more has been acknowledged.
    pub fn inserted(&self) {
        self.present.fetch_add(1, Ordering::Relaxed);
    }

    fn present(&self) -> u64 {
        self.present.load(Ordering::Relaxed)
    }
}

/// Writes commands.
#[derive(Debug)]
pub struct Composer {
    workload: Workload,
    prefix: String,
    filler: Vec<u8>,
}

/// What chance and choice a client has of its own.
pub struct Chance<'a> {
    pub random: &'a mut Random,
    pub chooser: &'a mut KeyChooser,
    pub keys: &'a KeyCount,
}

impl Composer {
    pub fn new(workload: Workload, prefix: String, seed: u64) -> Composer {
        let mut random = Random::new(seed);
        let length = workload.sizes.max() + FILLER_BYTES;
        let filler = (0..length).map(|_| b'a' + random.below(26) as u8).collect();
        Composer { workload, prefix, filler }
    }

    pub fn workload(&self) -> &Workload {
        &self.workload
    }

    /// The first round of an operation. Says which key it is about and how many answers will come.
    pub fn first(&self, operation: Operation, chance: Chance<'_>, out: &mut Vec<u8>) -> (u64, u32) {
        let Chance { random, chooser, keys } = chance;
        let present = keys.present();
        let mut draw = |random: &mut Random| chooser.draw(present, random);
        let family = operation.family();
        let replies = match operation {
            Operation::Read | Operation::ReadModifyWrite => {
                return self.simple("HGETALL", family, draw(random), &[], out);
            }
            Operation::Update => {
                let key = draw(random);
                self.update(key, random, out);
                return (key, 1);
            }
            Operation::Insert => {
                let key = keys.take_next();
                return (key, self.insert(key, random, out));
            }
            Operation::Scan => {
                let (key, records) = (draw(random), 1 + random.below(SCAN_MAX));
                let (from, records) = (score(key), records.to_string());
                let words: [&[u8]; 5] = [from.as_bytes(), b"+inf", b"LIMIT", b"0", records.as_bytes()];
                begin("ZRANGEBYSCORE", 2 + words.len(), out);
                bulk(self.index().as_bytes(), out);
                words.iter().for_each(|word| bulk(word, out));
                return (key, 1);
            }
            Operation::MGet(count) => {
                begin("MGET", 1 + usize::from(count), out);
                (0..count).for_each(|_| self.key(family, draw(random), out));
                1
            }
            Operation::MSet(count) => {
                begin("MSET", 1 + 2 * usize::from(count), out);
                for _ in 0..count {
                    self.key(family, draw(random), out);
                    bulk(self.value(random), out);
                }
                1
            }
            Operation::ColumnsRead => {
                let count = self.workload.columns.keys_read.draw(random);
                self.multi(true, count, out, |out| self.read_columns(draw(random), out))
            }
            Operation::ColumnsWrite | Operation::ColumnsWriteAtomic => {
                let count = self.workload.columns.keys_written.draw(random);
                let atomic = operation == Operation::ColumnsWriteAtomic;
                self.multi(atomic, count, out, |out| {
                    let key = draw(random);
                    self.write_columns(key, random, out);
                })
            }
            of_one_value => {
                let key = draw(random);
                return (key, self.of_one_value(of_one_value, key, random, out));
            }
        };
        (0, replies)
    }

    /// The push of a hand-over.
    pub fn hand_over(&self, list: &[u8], random: &mut Random, out: &mut Vec<u8>) -> u32 {
        begin("RPUSH", 3, out);
        bulk(list, out);
        bulk(self.value(random), out);
        1
    }

    /// A list that nobody else uses, if the name is nobody else's.
    pub fn list_of(&self, name: &str) -> Vec<u8> {
        format!("{}handover:{name}", self.prefix).into_bytes()
    }

    /// The write of a read-modify-write.
    pub fn write_back(&self, key: u64, random: &mut Random, out: &mut Vec<u8>) -> u32 {
        self.update(key, random, out);
        1
    }

    /// The records that an index named.
    pub fn read_found(&self, found: &[Bytes], out: &mut Vec<u8>) -> u32 {
        for key in found {
            begin("HGETALL", 2, out);
            bulk(key, out);
        }
        found.len() as u32
    }

    /// Writes one key of each kind that the workload uses, before it runs.
    pub fn fill(&self, number: u64, random: &mut Random, out: &mut Vec<u8>) -> u32 {
        let families = self.workload.families();
        let mut replies = 0;
        for family in families {
            replies += match family {
                Family::Records => self.insert(number, random, out),
                Family::Columns => {
                    self.write_columns(number, random, out);
                    1
                }
                of_one_value => self.fill_one_value(of_one_value, number, random, out),
            };
        }
        replies
    }

    /// The name of a key that `fill` has written.
    pub fn filled_key(&self, number: u64) -> Vec<u8> {
        let family = self.workload.families().first().copied().unwrap_or(Family::Strings);
        self.name(family, number).into_bytes()
    }

    /// The names of all keys that `fill` has written with this number.
    pub fn filled_keys(&self, number: u64) -> Vec<String> {
        let families = self.workload.families();
        families.into_iter().map(|family| self.name(family, number)).collect()
    }

    fn multi(
        &self,
        atomic: bool,
        count: usize,
        out: &mut Vec<u8>,
        mut each: impl FnMut(&mut Vec<u8>),
    ) -> u32 {
        if atomic {
            begin("MULTI", 1, out);
        }
        (0..count).for_each(|_| each(out));
        if atomic {
            begin("EXEC", 1, out);
        }
        count as u32 + if atomic { 2 } else { 0 }
    }

    fn simple(
        &self,
        command: &str,
        family: Family,
        key: u64,
        words: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> (u64, u32) {
        begin(command, 2 + words.len(), out);
        self.key(family, key, out);
        words.iter().for_each(|word| bulk(word, out));
        (key, 1)
    }

    fn update(&self, key: u64, random: &mut Random, out: &mut Vec<u8>) {
        let field = format!("field{}", random.below(FIELDS));
        self.simple("HSET", Family::Records, key, &[field.as_bytes(), self.value(random)], out);
    }

    fn insert(&self, key: u64, random: &mut Random, out: &mut Vec<u8>) -> u32 {
        begin("HSET", 2 + 2 * FIELDS as usize, out);
        self.key(Family::Records, key, out);
        for field in 0..FIELDS {
            bulk(format!("field{field}").as_bytes(), out);
            bulk(self.value(random), out);
        }
        if !self.workload.scans() {
            return 1;
        }
        begin("ZADD", 4, out);
        bulk(self.index().as_bytes(), out);
        bulk(score(key).as_bytes(), out);
        self.key(Family::Records, key, out);
        2
    }

    fn read_columns(&self, key: u64, out: &mut Vec<u8>) {
        let columns = self.columns_of(key);
        begin("HMGET", 2 + columns, out);
        self.key(Family::Columns, key, out);
        (0..columns).for_each(|column| bulk(format!("c{column}").as_bytes(), out));
    }

    fn write_columns(&self, key: u64, random: &mut Random, out: &mut Vec<u8>) {
        let columns = self.columns_of(key);
        begin("HSET", 2 + 2 * columns, out);
        self.key(Family::Columns, key, out);
        for column in 0..columns {
            bulk(format!("c{column}").as_bytes(), out);
            bulk(self.value(random), out);
        }
    }

    /// A key always has the same columns, so that reads find what was written.
    fn columns_of(&self, key: u64) -> usize {
        self.workload.columns.per_key.draw(&mut Random::new(mix(key))).max(1)
    }

    fn value(&self, random: &mut Random) -> &[u8] {
        let length = self.workload.sizes.draw(random);
        let start = random.below(FILLER_BYTES as u64) as usize;
        &self.filler[start..start + length]
    }

    fn index(&self) -> String {
        format!("{}index", self.prefix)
    }

    fn key(&self, family: Family, number: u64, out: &mut Vec<u8>) {
        bulk(self.name(family, number).as_bytes(), out);
    }

    fn name(&self, family: Family, number: u64) -> String {
        let kind = match family {
            Family::Strings => "s",
            Family::Counters => "n",
            Family::Hashes => "h",
            Family::Sets => "m",
            Family::Bitmaps => "b",
            Family::Floats => "f",
            Family::Lists => "l",
            Family::SortedSets => "z",
            Family::Streams => "x",
            Family::Sketches => "p",
            Family::HandOvers => "handover:",
            Family::Records => "user",
            Family::Columns => "c",
        };
        format!("{}{kind}{number}", self.prefix)
    }
}

/// The pop of a hand-over, which waits for as long as it takes.
pub fn pop_waiting(list: &[u8], out: &mut Vec<u8>) {
    begin("BLPOP", 3, out);
    bulk(list, out);
    bulk(b"0", out);
}

/// Where a record stands in the index: anywhere, but always at the same place.
fn score(key: u64) -> String {
    (mix(key) >> 11).to_string()
}

fn begin(command: &str, words: usize, out: &mut Vec<u8>) {
    write!(out, "*{words}\r\n").expect("a vector takes all");
    bulk(command.as_bytes(), out);
}

fn bulk(word: &[u8], out: &mut Vec<u8>) {
    write!(out, "${}\r\n", word.len()).expect("a vector takes all");
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}
