//! A command as it is checked: its row, its arguments, and the database that is selected.
//!
//! It says which channels and which databases a command names; which keys, the table of commands says. Whether they are
//! allowed is not decided here.

use crate::channels::Channel;
use bytes::Bytes;
use ensue_resp::{CommandSpec, Flags, Route, number};
use ensue_types::KeyspaceId;

/// Keys that a command reads and that the table of commands does not list, for nobody routes by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unlisted {
    None,
    /// One, at this place.
    Key(usize),
    /// Any.
    All,
}

/// A command that a user wants to execute. Its number of arguments has been checked.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Its row of the table.
    pub spec: &'static CommandSpec,
    /// Its name and its arguments.
    pub args: &'a [Bytes],
    /// The database that the session has selected.
    pub database: KeyspaceId,
}

impl<'a> Call<'a> {
    /// The name as Redis shows it, with the subcommand if there is a known one: `get`, `config|get`.
    pub fn full_name(&self) -> String {
        match self.spec.subcommand(self.args) {
            Some(subcommand) => self.spec.full_name(subcommand),
            None => self.spec.name.to_owned(),
        }
    }

    /// The channels that are published or subscribed to, with their places. Unsubscribing takes no permission.
    pub(crate) fn channels(&self) -> impl Iterator<Item = (usize, Channel<'a>)> + use<'a> {
        let is_pubsub = self.spec.flags.contains(Flags::PUBSUB);
        let (count, is_pattern) = match self.spec.name {
            "publish" | "spublish" if is_pubsub => (1, false),
            "subscribe" | "ssubscribe" if is_pubsub => (usize::MAX, false),
            "psubscribe" if is_pubsub => (usize::MAX, true),
            _ => (0, false),
        };
        let named = self.args.iter().enumerate().skip(1).take(count);
        named.map(move |(place, name)| {
            (place, if is_pattern { Channel::Pattern(name) } else { Channel::Literal(name) })
        })
    }

    /// What it reads beside the keys that the table lists: commands of Ensue that show branches and conflicts.
    pub(crate) fn unlisted_reads(&self) -> Unlisted {
        const KEY: usize = 2;
        match (self.spec.name, self.spec.subcommand(self.args)) {
            ("branch", Some("get")) | ("causal", Some("conflicts")) if self.args.len() > KEY => {
                Unlisted::Key(KEY)
            }
            ("branch", Some("conflicts" | "diff")) | ("causal", Some("conflicts" | "discarded")) => {
                Unlisted::All
            }
            _ => Unlisted::None,
        }
    }

    /// Whether it may touch data of every database.
    pub(crate) fn touches_every_database(&self) -> bool {
        match self.spec.name {
            "flushall" | "move" | "swapdb" => true,
            "causal" => self.unlisted_reads() == Unlisted::All,
            _ => false,
        }
    }

    /// The one database that it touches or selects; nothing if it is about no data.
    pub(crate) fn touched_database(&self) -> Option<KeyspaceId> {
        if self.spec.name == "select" {
            // What is no number of a database is an error of the command, not of the user.
            let number = self.args.get(1).and_then(|word| number::parse_i64(word))?;
            return u8::try_from(number).ok().map(KeyspaceId);
        }
        // A session answers alone what is not data, but it watches keys, and tells of those of a slot.
        let tells_of_keys =
            matches!(self.spec.subcommand(self.args), Some("countkeysinslot" | "getkeysinslot"))
                || self.unlisted_reads() != Unlisted::None;
        let touches = self.spec.route != Route::Session || self.spec.first_key > 0 || tells_of_keys;
        touches.then_some(self.database)
    }
}

#[cfg(test)]
mod tests;
