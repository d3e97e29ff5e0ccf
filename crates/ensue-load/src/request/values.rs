//! Operations on one key of a plain type, one command each, and what they find when a run begins.
//!
//! However long a run lasts, a value stays as small as its operations find it useful: members, elements of sketches and
//! bits are drawn from a few, streams have a length at most, and some pushes trim their list.

use super::{Composer, begin, bulk};
use crate::random::Random;
use crate::workload::{Family, Operation};

/// Elements, members and entries of a value when a run begins; also what ranges ask for.
const FILLED: u64 = 10;
/// Members of a sorted set at most.
const MEMBERS_MAX: u64 = 64;
/// Different elements that a sketch is given, few enough for the sparse encoding.
const SKETCHED_MAX: u64 = 256;
/// Elements that a trimmed list keeps.
const ELEMENTS_KEPT: &[u8] = b"63";
/// One of so many pushes trims.
const PUSHES_A_TRIM: u64 = 64;
/// Entries that a stream keeps; servers may keep some more.
const ENTRIES_KEPT: &[u8] = b"100";
/// An hour: no run lives to see it.
const EXPIRES_S: &[u8] = b"3600";
const SCORES: u64 = 1 << 20;
const SCRIPT: &[u8] = b"return redis.call('INCR', KEYS[1])";
/// The last of ten.
const LAST: &[u8] = b"9";

impl Composer {
    /// An operation on one key. Says how many answers will come.
    pub(super) fn of_one_value(
        &self,
        operation: Operation,
        key: u64,
        random: &mut Random,
        out: &mut Vec<u8>,
    ) -> u32 {
        let family = operation.family();
        let mut simple = |command: &str, words: &[&[u8]]| self.simple(command, family, key, words, out).1;
        match operation {
            Operation::Get => simple("GET", &[]),
            Operation::Set => simple("SET", &[self.value(random)]),
            Operation::Del => simple("DEL", &[]),
            Operation::Expire => simple("EXPIRE", &[EXPIRES_S]),
            Operation::Incr => simple("INCR", &[]),
            Operation::IncrByFloat => simple("INCRBYFLOAT", &[b"0.5"]),
            Operation::SetBit => {
                let (bits, bit) = (8 * self.workload.sizes.draw(random).max(1) as u64, random.below(2));
                simple("SETBIT", &[random.below(bits).to_string().as_bytes(), bit.to_string().as_bytes()])
            }
            Operation::HGet => simple("HGET", &[b"field"]),
            Operation::HSet => simple("HSET", &[b"field", self.value(random)]),
            Operation::SAdd => simple("SADD", &[self.value(random)]),
            Operation::LPush => {
                let pushed = simple("LPUSH", &[self.value(random)]);
                match random.below(PUSHES_A_TRIM) {
                    0 => pushed + self.trim(key, out),
                    _ => pushed,
                }
            }
            Operation::LPop => simple("LPOP", &[]),
            Operation::LRange => simple("LRANGE", &[b"0", LAST]),
            Operation::ZAdd => {
                let (score, member) = (random.below(SCORES).to_string(), member(random.below(MEMBERS_MAX)));
                simple("ZADD", &[score.as_bytes(), member.as_bytes()])
            }
            Operation::ZIncrBy => simple("ZINCRBY", &[b"1", member(random.below(MEMBERS_MAX)).as_bytes()]),
            Operation::ZRange => simple("ZRANGE", &[b"0", LAST]),
            Operation::XAdd => self.append(key, random, out),
            Operation::XRange => simple("XRANGE", &[b"-", b"+", b"COUNT", FILLED.to_string().as_bytes()]),
            Operation::PfAdd => simple("PFADD", &[member(random.below(SKETCHED_MAX)).as_bytes()]),
            Operation::Eval => {
                begin("EVAL", 4, out);
                bulk(SCRIPT, out);
                bulk(b"1", out);
                self.key(family, key, out);
                1
            }
            several => unreachable!("`{several}` is more than a command on one key"),
        }
    }

    /// Writes a value that is there when a run begins, of the same size however often it is written.
    pub(super) fn fill_one_value(
        &self,
        family: Family,
        key: u64,
        random: &mut Random,
        out: &mut Vec<u8>,
    ) -> u32 {
        let mut simple = |command: &str, words: &[&[u8]]| self.simple(command, family, key, words, out).1;
        match family {
            Family::Strings => simple("SET", &[self.value(random)]),
            Family::Bitmaps => simple("SET", &[self.value(random)]),
            Family::Counters | Family::Floats => simple("SET", &[b"0"]),
            Family::Hashes => simple("HSET", &[b"field", self.value(random)]),
            Family::Sets => simple("SADD", &[self.value(random)]),
            Family::Lists => {
                let elements: Vec<&[u8]> = (0..FILLED).map(|_| self.value(random)).collect();
                simple("LPUSH", &elements) + self.trim(key, out)
            }
            Family::SortedSets => {
                let members: Vec<String> = (0..FILLED).map(member).collect();
                let scores: Vec<String> = (0..FILLED).map(|_| random.below(SCORES).to_string()).collect();
                let pairs = scores.iter().zip(&members).flat_map(|(score, member)| [score, member]);
                simple("ZADD", &pairs.map(String::as_bytes).collect::<Vec<&[u8]>>())
            }
            Family::Streams => (0..FILLED).map(|_| self.append(key, random, out)).sum(),
            Family::Sketches => simple("PFADD", &[member(0).as_bytes()]),
            several => unreachable!("{several:?} take more than a command on one key"),
        }
    }

    fn trim(&self, key: u64, out: &mut Vec<u8>) -> u32 {
        self.simple("LTRIM", Family::Lists, key, &[b"0", ELEMENTS_KEPT], out).1
    }

    fn append(&self, key: u64, random: &mut Random, out: &mut Vec<u8>) -> u32 {
        let words: [&[u8]; 6] = [b"MAXLEN", b"~", ENTRIES_KEPT, b"*", b"field", self.value(random)];
        self.simple("XADD", Family::Streams, key, &words, out).1
    }
}

fn member(number: u64) -> String {
    format!("member{number}")
}
