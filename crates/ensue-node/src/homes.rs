//! Which datacenter is the home of which key: by patterns, the first that matches (decision 33).

use bytes::Bytes;
use ensue_resp::{CommandSpec, Route, glob};
use ensue_types::{DatacenterId, HomeMove, KeyspaceId, Reply};
use ensue_wire::Address;

/// One line of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    pub keyspace: KeyspaceId,
    /// A pattern as `KEYS` has it.
    pub pattern: Bytes,
    pub datacenter: DatacenterId,
}

/// The home of a key; none if it has none.
pub(crate) fn home_of(homes: &[Home], keyspace: KeyspaceId, key: &[u8]) -> Option<DatacenterId> {
    home_at(homes, keyspace, key).map(|place| homes[place].datacenter)
}

/// The place of the first pattern that matches a key.
pub(crate) fn home_at<'h>(
    homes: impl IntoIterator<Item = &'h Home>,
    keyspace: KeyspaceId,
    key: &[u8],
) -> Option<usize> {
    homes.into_iter().position(|home| home.keyspace == keyspace && glob::matches(&home.pattern, key))
}

/// Where homes are, as sessions know it: they send commands there. A partition that knows better refuses them.
#[derive(Clone, Debug)]
pub(crate) struct KnownHomes {
    lines: Vec<Home>,
    moves: Vec<Option<HomeMove>>,
    changes: u64,
}

impl KnownHomes {
    pub(crate) fn new(configured: &[Home]) -> KnownHomes {
        KnownHomes { lines: configured.to_vec(), moves: vec![None; configured.len()], changes: 0 }
    }

    /// The patterns, each with the datacenter that is the home now.
    pub(crate) fn lines(&self) -> &[Home] {
        &self.lines
    }

    /// What is known of moves.
    pub(crate) fn moves(&self) -> Vec<HomeMove> {
        self.moves.iter().flatten().cloned().collect()
    }

    /// How often a home was heard to have moved.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Somebody says so. `configured` are the homes of the configuration.
    pub(crate) fn learn(&mut self, configured: &[Home], moved: &HomeMove, from: Address) {
        let is_it = |home: &Home| {
            (home.keyspace, &home.pattern, home.datacenter)
                == (moved.keyspace, &moved.pattern, moved.configured)
        };
        let Some(line) = configured.iter().position(is_it) else { return };
        let known = self.moves[line].as_ref().map_or((0, moved.home), |known| (known.version, known.home));
        // Of two claims of one number a partition knows which counts, and says it last.
        let knows = matches!(from, Address::Partition { .. }) && moved.home != known.1;
        if moved.version > known.0 || knows && moved.version == known.0 {
            self.lines[line].datacenter = moved.home;
            self.moves[line] = Some(moved.clone());
            self.changes += 1;
        }
    }
}

/// Whether a command can be part of what goes to the home of its keys.
pub(crate) fn may_run_at_home(spec: &CommandSpec) -> bool {
    is_on_keys(spec) || matches!(spec.name, "ping" | "echo" | "time" | "unwatch" | "select")
}

/// What stands before the commands of a transaction that goes to the home of its keys, if keys are watched: a word that
/// is no command of clients, and each watched key with its number.
pub(crate) fn is_check(args: &[Bytes]) -> bool {
    args.first().is_some_and(|name| name.eq_ignore_ascii_case(b"watched"))
}

/// The keys of such a check.
pub(crate) fn checked_keys(args: &[Bytes]) -> impl Iterator<Item = &Bytes> {
    let args = if is_check(args) { &args[1..] } else { &[] };
    args.iter().step_by(2)
}

/// Whether a command names the keys that it is about.
pub(crate) fn is_on_keys(spec: &CommandSpec) -> bool {
    matches!(spec.route, Route::Key | Route::Split(_) | Route::Together | Route::Script | Route::Rename)
}

/// Whether any key of a keyspace has a home.
pub(crate) fn has_homes(homes: &[Home], keyspace: KeyspaceId) -> bool {
    homes.iter().any(|home| home.keyspace == keyspace)
}

/// The answer to a command at a home that has stopped, or has not started.
pub(crate) const MOVING: Reply =
    Reply::error("HOMEAWAY the home of these keys is moving, or has moved: nothing was executed, try again");

/// The answer to a session that reads only what is stable.
pub(crate) const STABLE_AT_HOME: Reply = Reply::error(
    "BLOCKED this session has fallen back on what is stable, and could miss what was written at the home of these \
     keys: nothing was executed; go on when it reads here what is newest, or connect again",
);

#[cfg(test)]
mod tests {
    use super::*;
    use ensue_resp::{Flags, TABLE};
    use std::collections::BTreeSet;

    /// The column *Home* of the document: every command on keys has a row, and each row says what happens.
    #[test]
    fn the_document_says_where_a_command_is_executed() {
        let mut named = BTreeSet::new();
        for row in include_str!("../../../docs/commands.md").lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let (commands, says) = (cells[1], cells[3]);
            for word in commands.split('`').skip(1).step_by(2) {
                let name = word.split(' ').next().unwrap_or(word);
                // Others are options and subcommands.
                let Some(spec) = ensue_resp::lookup(name.as_bytes()) else { continue };
                let writes = spec.is_write() && !spec.flags.contains(Flags::READONLY);
                let place = match (is_on_keys(spec), writes) {
                    (true, true) => "once",
                    (true, false) => "read",
                    (false, _) => "here",
                };
                assert_eq!(says, place, "{name} in {row}");
                named.insert(spec.name);
            }
        }
        let missing: Vec<&str> = TABLE
            .iter()
            .filter(|spec| is_on_keys(spec))
            .map(|spec| spec.name)
            .filter(|name| !named.contains(name))
            .collect();
        assert_eq!(missing, Vec::<&str>::new());
    }

    #[test]
    fn the_first_pattern_that_matches_names_the_home() {
        let home = |keyspace, pattern: &'static str, datacenter| Home {
            keyspace: KeyspaceId(keyspace),
            pattern: Bytes::from(pattern),
            datacenter: DatacenterId(datacenter),
        };
        let homes = [home(1, "lock:*", 2), home(0, "*", 0), home(1, "l*", 1)];
        let of = |keyspace, key: &str| home_of(&homes, KeyspaceId(keyspace), key.as_bytes());
        assert_eq!(of(1, "lock:a"), Some(DatacenterId(2)));
        assert_eq!(of(1, "list"), Some(DatacenterId(1)));
        assert_eq!(of(1, "other"), None);
        assert_eq!(of(0, "other"), Some(DatacenterId(0)));
        assert!(has_homes(&homes, KeyspaceId(0)) && !has_homes(&homes, KeyspaceId(2)));
    }
}
