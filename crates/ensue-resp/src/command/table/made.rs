//! How a row of the table is made: what is not said of a command is nothing.

use crate::command::{CommandSpec, Flags, Route};

/// A row without keys and words.
pub(super) const fn row(name: &'static str, arity: i16, flags: Flags, route: Route) -> CommandSpec {
    CommandSpec {
        name,
        arity,
        flags,
        first_key: 0,
        last_key: 0,
        step: 0,
        counted_keys: 0,
        keys_behind: &[],
        keys_of_streams: false,
        route,
        group: "",
        since: "",
        summary: "",
        concurrency: "",
        subcommands: &[],
    }
}

pub(super) const fn flags(all: &[Flags]) -> Flags {
    let mut union = Flags::NONE;
    let mut index = 0;
    while index < all.len() {
        union = union.union(all[index]);
        index += 1;
    }
    union
}

impl CommandSpec {
    pub(super) const fn keys(mut self, first: i16, last: i16, step: i16) -> CommandSpec {
        self.first_key = first;
        self.last_key = last;
        self.step = step;
        self
    }

    /// More keys behind their number, which stands there.
    pub(super) const fn counted_keys(mut self, place: u16) -> CommandSpec {
        self.counted_keys = place;
        self.flags = self.flags.union(Flags::MOVABLE_KEYS);
        self
    }

    /// More keys behind words, which may stand anywhere.
    pub(super) const fn keys_behind(mut self, words: &'static [&'static str]) -> CommandSpec {
        self.keys_behind = words;
        self.flags = self.flags.union(Flags::MOVABLE_KEYS);
        self
    }

    /// Keys behind the word `STREAMS`, and behind them as many ids.
    pub(super) const fn keys_of_streams(mut self) -> CommandSpec {
        self.keys_of_streams = true;
        self.flags = self.flags.union(Flags::MOVABLE_KEYS);
        self
    }

    pub(super) const fn listed(mut self, group: &'static str, since: &'static str) -> CommandSpec {
        self.group = group;
        self.since = since;
        self
    }

    pub(super) const fn subcommands(mut self, names: &'static [&'static str]) -> CommandSpec {
        self.subcommands = names;
        self
    }

    pub(super) const fn says(mut self, summary: &'static str, concurrency: &'static str) -> CommandSpec {
        self.summary = summary;
        self.concurrency = concurrency;
        self
    }
}
