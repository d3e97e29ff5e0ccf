//! `ACL LOG`: who was refused what, most often and lately.
//!
//! On a refusal: it becomes an entry, or counts with an equal one among the latest ten that is no older than a minute.
//! Entries are shown latest first, as Redis 7.2 shows them; there is a bounded number of them, each of bounded length,
//! though those who are refused write them. The time is an argument, in milliseconds since 1970.

use crate::limits::{LOG_ENTRIES_COMPARED, LOG_GROUPING_MS, LOG_TEXT_BYTES_MAX};
use bytes::Bytes;
use ensue_types::Reply;
use std::collections::VecDeque;

/// Why something was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A command.
    Command,
    /// A key.
    Key,
    /// A channel.
    Channel,
    /// A database, which Redis does not have.
    Database,
    /// A name or a password.
    Auth,
}

/// Where the command came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// A client.
    Toplevel,
    /// A transaction.
    Multi,
    /// A script.
    Lua,
    /// A module.
    Module,
}

/// A refusal.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// From where.
    pub context: Context,
    /// The name of the command, the key, the channel; `AUTH` or `HELLO` for a password.
    pub object: Bytes,
    /// The user, or the name that was given with a wrong password.
    pub username: Bytes,
    /// The line of `CLIENT INFO` of the connection.
    pub client_info: Bytes,
}

/// How often something was refused, for `INFO`: `acl_access_denied_…`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusalCounts {
    /// Names and passwords.
    pub auth: u64,
    /// Commands.
    pub command: u64,
    /// Keys.
    pub key: u64,
    /// Channels.
    pub channel: u64,
    /// Databases.
    pub database: u64,
}

/// The log.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// Latest first.
    entries: VecDeque<Entry>,
    next_id: u64,
    counts: RefusalCounts,
}

#[derive(Clone, Debug)]
struct Entry {
    id: u64,
    count: u64,
    refusal: Refusal,
    created_ms: u64,
    updated_ms: u64,
}

impl Log {
    /// Records a refusal; what is more than `entries_max` entries is forgotten, oldest first.
    pub fn record(&mut self, refusal: Refusal, now_ms: u64, entries_max: usize) {
        *self.counts.of(refusal.reason) += 1;
        let refusal = Refusal {
            object: bounded(refusal.object),
            username: bounded(refusal.username),
            client_info: bounded(refusal.client_info),
            ..refusal
        };
        let is_equal = |entry: &&Entry| entry.counts_with(&refusal, now_ms);
        let place = self.entries.iter().take(LOG_ENTRIES_COMPARED).position(|entry| is_equal(&entry));
        if let Some(mut entry) = place.and_then(|place| self.entries.remove(place)) {
            entry.count += 1;
            entry.updated_ms = now_ms;
            entry.refusal.client_info = refusal.client_info;
            self.entries.push_front(entry);
            return;
        }
        let (id, created_ms) = (self.next_id, now_ms);
        self.next_id += 1;
        self.entries.push_front(Entry { id, count: 1, refusal, created_ms, updated_ms: now_ms });
        self.entries.truncate(entries_max);
    }

    /// `ACL LOG count`: the latest entries.
    pub fn latest(&self, count: usize, now_ms: u64) -> Reply {
        Reply::Array(self.entries.iter().take(count).map(|entry| entry.reply(now_ms)).collect())
    }

    /// `ACL LOG RESET`
    pub fn reset(&mut self) {
        self.entries.clear();
    }

    /// What was refused since the start, whether or not it is still in the log.
    pub fn counts(&self) -> RefusalCounts {
        self.counts
    }
}

impl RefusalCounts {
    fn of(&mut self, reason: Reason) -> &mut u64 {
        match reason {
            Reason::Command => &mut self.command,
            Reason::Key => &mut self.key,
            Reason::Channel => &mut self.channel,
            Reason::Database => &mut self.database,
            Reason::Auth => &mut self.auth,
        }
    }
}

impl Entry {
    fn counts_with(&self, other: &Refusal, now_ms: u64) -> bool {
        let own = &self.refusal;
        own.reason == other.reason
            && own.context == other.context
            && now_ms.abs_diff(self.updated_ms) <= LOG_GROUPING_MS
            && own.object == other.object
            && own.username == other.username
    }

    fn reply(&self, now_ms: u64) -> Reply {
        let refusal = &self.refusal;
        let age_seconds = now_ms.saturating_sub(self.updated_ms) as f64 / 1_000.0;
        let number = |value: u64| Reply::Integer(i64::try_from(value).unwrap_or(i64::MAX));
        Reply::Map(vec![
            (Reply::bulk("count"), number(self.count)),
            (Reply::bulk("reason"), Reply::bulk(refusal.reason.word())),
            (Reply::bulk("context"), Reply::bulk(refusal.context.word())),
            (Reply::bulk("object"), Reply::Bulk(refusal.object.clone())),
            (Reply::bulk("username"), Reply::Bulk(refusal.username.clone())),
            (Reply::bulk("age-seconds"), Reply::Double(age_seconds)),
            (Reply::bulk("client-info"), Reply::Bulk(refusal.client_info.clone())),
            (Reply::bulk("entry-id"), number(self.id)),
            (Reply::bulk("timestamp-created"), number(self.created_ms)),
            (Reply::bulk("timestamp-last-updated"), number(self.updated_ms)),
        ])
    }
}

impl Reason {
    fn word(self) -> &'static str {
        match self {
            Reason::Command => "command",
            Reason::Key => "key",
            Reason::Channel => "channel",
            Reason::Database => "database",
            Reason::Auth => "auth",
        }
    }
}

impl Context {
    fn word(self) -> &'static str {
        match self {
            Context::Toplevel => "toplevel",
            Context::Multi => "multi",
            Context::Lua => "lua",
            Context::Module => "module",
        }
    }
}

/// A text cut off at the bound, as a copy if it is cut, so that the log does not hold the buffer that it came in.
fn bounded(text: Bytes) -> Bytes {
    if text.len() <= LOG_TEXT_BYTES_MAX {
        Bytes::copy_from_slice(&text)
    } else {
        Bytes::copy_from_slice(&text[..LOG_TEXT_BYTES_MAX])
    }
}

#[cfg(test)]
mod tests;
