//! Requests on keys that one client has to itself, whose answers a model knows in advance.

use super::client::Client;
use super::command::{Command, Expect};
use super::mix::{Draft, Owners};
use crate::random::Random;
use crate::resp::args;

pub(super) fn single(random: &mut Random, draft: &mut Draft, client: &mut Client) {
    let text = draw(random, &client.prefix);
    push(draft, client, &text);
}

/// All keys of it are allowed beside each other.
pub(super) fn transaction(random: &mut Random, draft: &mut Draft, client: &mut Client, owners: Owners) {
    let mut first: Option<String> = None;
    draft.multi = true;
    for _ in 0..random.between(2, 4) {
        let text = draw(random, &client.prefix);
        let key = text.split(' ').nth(1).unwrap_or_default().to_owned();
        if first.as_ref().is_none_or(|first| owners.allow(first, &key)) {
            push(draft, client, &text);
            first.get_or_insert(key);
        }
    }
}

fn push(draft: &mut Draft, client: &mut Client, text: &str) {
    let args = args(text);
    if let Some(answer) = client.model.apply(&args) {
        let expect = Expect::Exactly(super::model::normal(&args, answer));
        draft.commands.push(Command { args, expect });
        draft.private = true;
    }
}

fn draw(random: &mut Random, prefix: &str) -> String {
    let slot = random.below(3);
    let number = random.below(50);
    let part = random.below(3);
    match random.below(35) {
        0 | 1 => format!("SET {prefix}t{slot} {number}"),
        2 | 3 => format!("GET {prefix}t{slot}"),
        4 | 5 => format!("INCRBY {prefix}t{slot} {number}"),
        6 => format!("DECRBY {prefix}t{slot} {number}"),
        // Of whatever kind: all of it goes at once.
        7 => format!("DEL {prefix}{}{slot}", ["t", "h", "s", "s", "z", "q"][random.index(6)]),
        8 => format!("APPEND {prefix}t{slot} {part}"),
        9 => format!("SETNX {prefix}t{slot} {number}"),
        10 => format!("GETSET {prefix}t{slot} {number}"),
        11 => format!("HSET {prefix}h{slot} f{part} {number}"),
        12 => format!("HINCRBY {prefix}h{slot} f{part} {number}"),
        13 => format!("HDEL {prefix}h{slot} f{part}"),
        14 => format!("HGETALL {prefix}h{slot}"),
        15 => format!("HGET {prefix}h{slot} f{part}"),
        16 => format!("SADD {prefix}s{slot} m{part} m{}", random.below(6)),
        17 => format!("SREM {prefix}s{slot} m{part}"),
        18 => format!("SMEMBERS {prefix}s{slot}"),
        19 => format!("ZADD {prefix}z{slot} {number} m{part}"),
        20 => format!("ZINCRBY {prefix}z{slot} {number} m{part}"),
        21 => format!("ZREM {prefix}z{slot} m{part}"),
        22 => format!("ZRANGE {prefix}z{slot} 0 -1 WITHSCORES"),
        23 => format!("ZRANK {prefix}z{slot} m{part}"),
        24 => format!("ZPOPMAX {prefix}z{slot}"),
        25 | 26 => format!("RPUSH {prefix}q{slot} e{number} e{part}"),
        27 => format!("LPUSH {prefix}q{slot} e{number}"),
        28 => format!("LPOP {prefix}q{slot}"),
        29 => format!("RPOP {prefix}q{slot}"),
        30 => format!("LINSERT {prefix}q{slot} BEFORE e{part} e{number}"),
        31 => match part {
            0 => format!("LSET {prefix}q{slot} {part} e{number}"),
            1 => format!("LREM {prefix}q{slot} 0 e{part}"),
            _ => format!("LINDEX {prefix}q{slot} {part}"),
        },
        33 => format!("BLPOP {prefix}q{slot} 0.0{}", part + 1),
        32 => format!("LRANGE {prefix}q{slot} 0 -1"),
        _ => format!("STRLEN {prefix}t{slot}"),
    }
}
