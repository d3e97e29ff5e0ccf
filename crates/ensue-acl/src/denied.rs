//! What of a command a user may not do, and the words in which Redis 7.2 says so.
//!
//! A check makes a [`Denied`] without allocating; only the answer to the client and the entry of the log are written
//! out. The answer names no key and no channel; `ACL DRYRUN` and the log do.

use crate::call::Call;
use crate::log::Reason;
use crate::rule_error::refused;
use bytes::Bytes;
use ensue_resp::SortOption;
use ensue_types::{KeyspaceId, Reply};

/// The first thing that no set of permissions allows. Of two, the greater says more: it was checked later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Denied {
    /// The command or its subcommand.
    Command,
    /// A database, by its number.
    Database(KeyspaceId),
    /// A key, by its place among the arguments.
    Key {
        /// Its place; the name of the command is at 0.
        place: usize,
    },
    /// A channel, by its place among the arguments.
    Channel {
        /// Its place; the name of the command is at 0.
        place: usize,
    },
    /// Keys that `SORT` makes of elements, which only those may read who may read all.
    Pattern {
        /// The place of the pattern.
        place: usize,
        /// The option that it stands behind.
        option: PatternOption,
    },
}

/// An option of `SORT` with a pattern of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PatternOption {
    /// `BY`
    By,
    /// `GET`
    Get,
}

impl From<SortOption> for PatternOption {
    fn from(option: SortOption) -> PatternOption {
        match option {
            SortOption::By => PatternOption::By,
            SortOption::Get | SortOption::Store => PatternOption::Get,
        }
    }
}

impl Denied {
    /// The answer to the client.
    pub fn reply(&self, user: &[u8], call: &Call<'_>) -> Reply {
        let words = match self {
            Denied::Command => String::from_utf8_lossy(&self.explain(user, call)).into_owned(),
            Denied::Database(_) => "No permissions to access a database".into(),
            Denied::Key { .. } => "No permissions to access a key".into(),
            Denied::Channel { .. } => "No permissions to access a channel".into(),
            Denied::Pattern { option, .. } => return refused(option.words()),
        };
        Reply::Error(format!("NOPERM {words}").into())
    }

    /// What `ACL DRYRUN` answers: a sentence that names what is denied.
    pub fn explain(&self, user: &[u8], call: &Call<'_>) -> Vec<u8> {
        let object = self.object(call);
        let (before, after): (&[u8], &[u8]) = match self {
            Denied::Command => (b" has no permissions to run the '", b"' command"),
            Denied::Database(_) => (b" has no permissions to access the '", b"' database"),
            Denied::Key { .. } => (b" has no permissions to access the '", b"' key"),
            Denied::Channel { .. } => (b" has no permissions to access the '", b"' channel"),
            Denied::Pattern { option, .. } => return option.words().as_bytes().to_vec(),
        };
        [b"User ", user, before, &object, after].concat()
    }

    /// What the log names as the object.
    pub fn object(&self, call: &Call<'_>) -> Bytes {
        match self {
            Denied::Command => call.full_name().into(),
            Denied::Database(KeyspaceId(number)) => number.to_string().into(),
            Denied::Key { place } | Denied::Channel { place } | Denied::Pattern { place, .. } => {
                call.args[*place].clone()
            }
        }
    }

    /// What the log names as the reason. Keys behind a pattern are keys, which Redis does not log.
    pub fn reason(&self) -> Reason {
        match self {
            Denied::Command => Reason::Command,
            Denied::Database(_) => Reason::Database,
            Denied::Key { .. } | Denied::Pattern { .. } => Reason::Key,
            Denied::Channel { .. } => Reason::Channel,
        }
    }
}

impl PatternOption {
    fn words(self) -> &'static str {
        match self {
            PatternOption::By => "BY option of SORT denied due to insufficient ACL permissions.",
            PatternOption::Get => "GET option of SORT denied due to insufficient ACL permissions.",
        }
    }
}

#[cfg(test)]
mod tests;
