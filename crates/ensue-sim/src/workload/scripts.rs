//! Scripts that clients ask for: judged by the commands that they stand for, and by having had no effect if they were
//! stopped.

use super::command::{Command, Expect};
use super::mix::{Draft, Drawer};
use crate::oracle::history::Written;
use crate::oracle::values::value_of;
use bytes::Bytes;

/// As `SETNX`.
const SET_NEW: &str = "if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end \
                       redis.call('SET', KEYS[1], ARGV[1]) return 1";
/// As `GETSET`.
const EXCHANGE: &str =
    "local was = redis.call('GET', KEYS[1]) redis.call('SET', KEYS[1], ARGV[1]) return was";
/// As `GETDEL`.
const TAKE: &str =
    "local was = redis.call('GET', KEYS[1]) if was then redis.call('DEL', KEYS[1]) end return was";
/// As `INCRBY`. What it answers is a text, because a number of a script has no 64 bits.
const ADD: &str = "redis.call('INCRBY', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])";
/// As `MSET`.
const SET_SEVERAL: &str = "for _, key in ipairs(KEYS) do redis.call('SET', key, ARGV[1]) end \
                           return redis.status_reply('OK')";
/// It is stopped when it has written.
const ENDLESS: &str = "for _, key in ipairs(KEYS) do redis.call('SET', key, ARGV[1]) end \
                       while true do pcall(redis.call, 'APPEND', KEYS[1], ARGV[1]) end";

impl Drawer<'_> {
    pub(super) fn script(&mut self, draft: &mut Draft) {
        let value = value_of(self.history.next());
        match self.random.below(6) {
            0 => {
                let (key, location) = self.key("d", self.keys.count);
                draft.commands.push(command(SET_NEW, &[key], value, Expect::WrittenIfMissing(location)));
                draft.writes.push((location, Written::Value));
            }
            1 => {
                let (key, location) = self.key("d", self.keys.count);
                draft.commands.push(command(EXCHANGE, &[key], value, Expect::Value(location)));
                draft.writes.push((location, Written::Value));
            }
            2 => {
                let (key, location) = self.key("d", self.keys.count);
                draft.commands.push(command(TAKE, &[key], value, Expect::Taken(location)));
                draft.writes.push((location, Written::Nothing));
            }
            3 => {
                let slot = format!("c{}", self.random.index(3));
                let addition = self.keys.addition(self.history, &slot);
                let amount = (1u64 << addition.bit).to_string();
                draft.commands.push(command(ADD, &[addition.key], amount, Expect::Sum(addition.location)));
                draft.writes.push((addition.location, Written::Bit(addition.bit)));
            }
            choice => {
                let mut keys = self.registers(3);
                let owner = self.owners.of(&keys[0].0);
                keys.retain(|(key, _)| self.owners.of(key) == owner);
                let (script, expect) = match choice {
                    4 => (SET_SEVERAL, Expect::Ok),
                    _ => (ENDLESS, Expect::Stopped),
                };
                let names: Vec<String> = keys.iter().map(|(key, _)| key.clone()).collect();
                draft.commands.push(command(script, &names, value, expect));
                draft.writes.extend(keys.iter().map(|&(_, location)| (location, Written::Value)));
            }
        }
    }
}

fn command(script: &'static str, keys: &[String], argument: String, expect: Expect) -> Command {
    let mut args = vec![Bytes::from("EVAL"), Bytes::from(script), Bytes::from(keys.len().to_string())];
    args.extend(keys.iter().cloned().map(Bytes::from));
    args.push(Bytes::from(argument));
    Command { args, expect }
}
