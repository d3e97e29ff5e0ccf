//! When and how often rows were used: noted, told by `OBJECT` and set by `RESTORE`, where the policy of eviction has it
//! kept. Elsewhere nobody counts uses, and `OBJECT` says so.

use super::Keyspaces;
use crate::partition::cx::Cx;
use bytes::Bytes;
use ensue_resp::{CommandSpec, number};
use ensue_types::{Args, KeyspaceId, Reply};

/// Commands that look at a row without using it, as in Redis.
const NO_USE: [&str; 8] = ["exists", "expiretime", "memory", "object", "pexpiretime", "pttl", "ttl", "type"];

impl Keyspaces {
    /// Notes that the keys of a command are used, where the policy wants to know.
    pub(in crate::partition) fn note_uses(
        &mut self,
        cx: &Cx,
        keyspace: KeyspaceId,
        spec: &CommandSpec,
        args: &Args,
    ) {
        if self.accesses.are_kept() && !NO_USE.contains(&spec.name) {
            for key in ensue_resp::keys(spec, args) {
                self.accesses.on_use(keyspace, key, cx.now.monotonic_us);
            }
        }
    }

    /// The arguments of a command that is about uses, if they are kept.
    pub(in crate::partition) fn about_uses(&self, spec: &CommandSpec, args: &Args) -> Option<Args> {
        let is_about = self.accesses.are_kept() && matches!(spec.name, "object" | "restore");
        is_about.then(|| args.clone())
    }

    /// What such a command is answered, and what it sets, when it was executed otherwise.
    pub(in crate::partition) fn with_uses(
        &mut self,
        cx: &Cx,
        keyspace: KeyspaceId,
        args: &Args,
        reply: Reply,
    ) -> Reply {
        let now_us = cx.now.monotonic_us;
        let is = |at: usize, word: &str| {
            args.get(at).is_some_and(|one: &Bytes| one.eq_ignore_ascii_case(word.as_bytes()))
        };
        if is(0, "restore") {
            let number = |name: &str| {
                let at = (4..args.len()).find(|&at| is(at, name))?;
                args.get(at + 1).and_then(|text| number::parse_i64(text)).and_then(|n| u64::try_from(n).ok())
            };
            if !reply.is_error() {
                let (idle_s, count) = (number("idletime"), number("freq"));
                self.accesses.set_use(keyspace, &args[1], now_us, (idle_s, count));
            }
            return reply;
        }
        let (Some(key), false) = (args.get(2), reply == Reply::Nil) else { return reply };
        let counts = self.accesses.policy().counts();
        match (is(1, "idletime"), is(1, "freq")) {
            (true, _) if counts => NO_IDLE_TIME,
            (true, _) => Reply::Integer(self.accesses.idle_s(keyspace, key, now_us) as i64),
            (_, true) if counts => Reply::Integer(self.accesses.count(keyspace, key, now_us).into()),
            _ => reply,
        }
    }
}

const NO_IDLE_TIME: Reply = Reply::error(
    "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies \
     at runtime LRU and LFU data will take some time to adjust.",
);
