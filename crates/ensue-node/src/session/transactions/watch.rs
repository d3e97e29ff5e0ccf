//! WATCH: the keys that must be unchanged when EXEC is executed.
//!
//! - On WATCH: the owner registers each key, and answers the number of the registration. The first write to the key
//!   ends it.
//! - On EXEC: the transaction carries the keys and their numbers to the owner, which executes it only if all of these
//!   registrations still exist. One partition must therefore own all keys that are watched, read and written.
//! - At a home elsewhere the session asks there for the numbers, and sends them there with the transaction.
//! - On a home that moves between WATCH and EXEC: the transaction is not executed, as after a write.
//! - On EXEC, DISCARD, UNWATCH and RESET the session drops its list. Owners are not notified; they drop the oldest
//!   registrations when there are too many.

use crate::homes::home_of;
use crate::session::cx::Cx;
use crate::session::failure::UNANSWERED;
use crate::session::plan::{Check, Plan};
use bytes::Bytes;
use ensue_resp::number::parse_i64;
use ensue_types::{Args, KeyspaceId, Reply, limits, partition_of};
use std::collections::{BTreeMap, BTreeSet};

/// The watched keys of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched {
    /// With the numbers of their first registrations.
    keys: BTreeMap<(KeyspaceId, Bytes), i64>,
    /// How often homes had moved when the first of them was watched: numbers are those of a partition there.
    homes: Option<u64>,
}

impl Watched {
    /// What the owners of the keys are asked, or why they are not.
    pub(in crate::session) fn plan(&self, cx: &Cx<'_>, args: &Args) -> Result<Plan, Reply> {
        if cx.protocol().needs().branches {
            return Err(in_branches(cx));
        }
        if self.keys.len() + args.len() - 1 > limits::WATCHED_KEYS_MAX {
            let is_new = |key: &&Bytes| !self.keys.contains_key(&(cx.keyspace(), (*key).clone()));
            let new: BTreeSet<&Bytes> = args[1..].iter().filter(is_new).collect();
            if self.keys.len() + new.len() > limits::WATCHED_KEYS_MAX {
                return Err(TOO_MANY);
            }
        }
        let mut plan = Plan::single(cx.spread());
        plan.add_watch(args.clone());
        Ok(plan)
    }

    /// The owners have answered: the numbers of these keys, or an error.
    pub(crate) fn on_numbers(&mut self, keyspace: KeyspaceId, args: Args, reply: Reply) -> Reply {
        match reply {
            Reply::Array(numbers) if numbers.len() + 1 == args.len() => {
                for (key, number) in args.into_iter().skip(1).zip(numbers) {
                    // One that no owner can have given: what is not known to stand does not.
                    let number = if let Reply::Integer(number) = number { number } else { -1 };
                    // Of its own, so that it does not keep a client's whole read buffer alive.
                    self.keys.entry((keyspace, Bytes::copy_from_slice(&key))).or_insert(number);
                }
                Reply::OK
            }
            Reply::Array(_) => UNANSWERED,
            error => error,
        }
    }

    /// A session elsewhere watches these keys: the check of its transaction, with their numbers.
    pub(in crate::session) fn restore(&mut self, keyspace: KeyspaceId, check: &Args) {
        for watch in check[1..].chunks_exact(2) {
            let number = parse_i64(&watch[1]).unwrap_or(-1);
            self.keys.insert((keyspace, Bytes::copy_from_slice(&watch[0])), number);
        }
    }

    /// A key is about to be watched, while homes are known to have moved so often.
    pub(in crate::session) fn note_homes(&mut self, changes: u64) {
        self.homes.get_or_insert(changes);
    }

    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.homes = None;
    }

    /// What an EXEC in the selected keyspace must ask, and of whom; they are watched no longer.
    pub(in crate::session) fn take_check(&mut self, cx: &Cx<'_>) -> Result<Option<Check>, Reply> {
        let keys = std::mem::take(&mut self.keys);
        let homes = self.homes.take();
        let Some(((_, first), _)) = keys.first_key_value() else { return Ok(None) };
        let has_home = |key| home_of(cx.core.homes.lines(), cx.keyspace(), key).is_some();
        let have_moved = homes.is_some_and(|changes| changes != cx.core.homes.changes());
        if have_moved && keys.keys().any(|(_, key)| has_home(key)) {
            // As after a write: what was watched is not known to stand at the home that is the present one.
            return Err(Reply::NilArray);
        }
        let owner = partition_of(first, cx.spread());
        if keys.keys().any(|(keyspace, _)| *keyspace != cx.keyspace()) {
            return Err(ELSEWHERE);
        }
        if keys.keys().any(|(_, key)| partition_of(key, cx.spread()) != owner) {
            return Err(SEVERAL);
        }
        let mut args = vec!["watched".into()];
        for ((_, key), number) in keys {
            args.extend([key, number.to_string().into()]);
        }
        Ok(Some(Check { owner, args }))
    }
}

fn in_branches(cx: &Cx<'_>) -> Reply {
    let words = format!(
        "ERR WATCH in keyspace {} is refused: its protocol is {}, in which transactions are those of branches",
        cx.keyspace().0,
        cx.protocol().name()
    );
    Reply::Error(words.into())
}

/// The watched keys, or those of the transaction, have several owners.
pub(crate) const SEVERAL: Reply = Reply::error(
    "CROSSSLOT the keys that are watched and those of the transaction are of several partitions; give all of them \
     one hash tag, such as {tag}; nothing was executed",
);

const ELSEWHERE: Reply = Reply::error(
    "EXECABORT keys are watched in another keyspace than that of the transaction; nothing was executed",
);

const TOO_MANY: Reply = Reply::error("ERR too many watched keys");
