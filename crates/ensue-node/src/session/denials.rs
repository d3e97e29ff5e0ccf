//! `ACL LOG`: who was refused for a wrong user or password, as far as this core knows.
//!
//! The same user is noted once a minute, with how often it was refused since. Nothing here reads a clock.

use ensue_types::{Now, Reply};
use std::collections::VecDeque;
use std::fmt;

/// See the module.
#[derive(Clone, Default)]
pub(super) struct Denials {
    /// The latest first.
    entries: VecDeque<Denial>,
    made: u64,
}

#[derive(Clone)]
struct Denial {
    id: u64,
    count: u64,
    command: &'static str,
    user: String,
    /// The line of `CLIENT LIST`.
    client: String,
    created_ms: u64,
    updated_ms: u64,
}

/// Nothing that happens later depends on it, so two nodes that differ in it alone are in the same state.
impl fmt::Debug for Denials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Denials")
    }
}

impl Denials {
    /// A command named a user or a password that is wrong.
    pub(super) fn note(&mut self, now: Now, command: &'static str, user: &[u8], client: String) {
        let user: String = String::from_utf8_lossy(user).chars().take(USER_CHARS_MAX).collect();
        let is_same = |one: &Denial| {
            let age_ms = now.wall_ms.saturating_sub(one.updated_ms);
            one.command == command && one.user == user && age_ms <= SAME_MS
        };
        if let Some(known) = self.entries.iter().position(is_same).and_then(|at| self.entries.remove(at)) {
            let count = known.count + 1;
            self.entries.push_front(Denial { count, client, updated_ms: now.wall_ms, ..known });
            return;
        }
        let (created_ms, updated_ms) = (now.wall_ms, now.wall_ms);
        self.entries.push_front(Denial {
            id: self.made,
            count: 1,
            command,
            user,
            client,
            created_ms,
            updated_ms,
        });
        self.made += 1;
        self.entries.truncate(ENTRIES_MAX);
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    /// The entries, the latest first.
    pub(super) fn replies(&self, now: Now) -> Reply {
        Reply::Array(self.entries.iter().map(|entry| entry.reply(now)).collect())
    }
}

impl Denial {
    fn reply(&self, now: Now) -> Reply {
        let age_s = now.wall_ms.saturating_sub(self.updated_ms) as f64 / 1e3;
        Reply::Map(vec![
            (Reply::bulk("count"), Reply::Integer(self.count as i64)),
            (Reply::bulk("reason"), Reply::bulk("auth")),
            (Reply::bulk("context"), Reply::bulk("toplevel")),
            (Reply::bulk("object"), Reply::bulk(self.command)),
            (Reply::bulk("username"), Reply::bulk(self.user.clone())),
            (Reply::bulk("age-seconds"), Reply::bulk(format!("{age_s:.3}"))),
            (Reply::bulk("client-info"), Reply::bulk(self.client.clone())),
            (Reply::bulk("entry-id"), Reply::Integer(self.id as i64)),
            (Reply::bulk("timestamp-created"), Reply::Integer(self.created_ms as i64)),
            (Reply::bulk(UPDATED), Reply::Integer(self.updated_ms as i64)),
        ])
    }
}

/// The field by which the entries of several cores are put into one order.
pub(super) const UPDATED: &str = "timestamp-last-updated";
/// As many as Redis keeps.
const ENTRIES_MAX: usize = 128;
const SAME_MS: u64 = 60_000;
const USER_CHARS_MAX: usize = 128;
