//! The table of commands: what each is called, how many arguments it takes, where its keys stand, who answers it.
//!
//! A name or a whole command arrives; a row of the table leaves. Every other module asks this table and keeps no list
//! of its own: the session to route, `COMMAND` to describe, the documentation to say what two datacenters converge
//! to. It does not read options, and does not evaluate anything.

mod access;
mod table;

use crate::{CommandError, number};
use bytes::Bytes;
use std::ops::{BitOr, Range};

pub use access::{Access, SortOption, first_access, key_accesses, key_places, unplaced_keys};
pub use table::TABLE;

/// One row: everything that is known of a command without reading its arguments.
#[derive(Clone, Copy, Debug)]
pub struct CommandSpec {
    /// In lower case.
    pub name: &'static str,
    /// Arguments with the name, as Redis counts: exactly this many, or at least `-arity` if negative.
    pub arity: i16,
    /// What kind of command this is.
    pub flags: Flags,
    /// Place of the first key; 0 if there is none.
    pub first_key: i16,
    /// Place of the last key; negative counts from the end.
    pub last_key: i16,
    /// From one key to the next.
    pub step: i16,
    /// Place of the number of more keys, which follow it; 0 if there is none.
    pub counted_keys: u16,
    /// Words behind each of which another key stands, in upper case.
    pub keys_behind: &'static [&'static str],
    /// Whether keys stand behind the word `STREAMS`, and behind them as many ids.
    pub keys_of_streams: bool,
    /// Who answers.
    pub route: Route,
    /// The group that the documentation lists it under.
    pub group: &'static str,
    /// The version of Redis, or of Ensue for its own commands, that had it first.
    pub since: &'static str,
    /// What it does, in a few words.
    pub summary: &'static str,
    /// What concurrent use in two datacenters converges to.
    pub concurrency: &'static str,
    /// Names of what may stand at argument 1, in lower case and sorted; empty if it is no container.
    pub subcommands: &'static [&'static str],
}

/// Who answers a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The session that received it.
    Session,
    /// The owner of the one key at argument 1.
    Key,
    /// The owners of its keys: each gets the same command with its own keys, and the answers are combined.
    Split(Combine),
    /// The owner of a branching keyspace, which has all of its keys.
    Owner,
    /// Every partition of the datacenter.
    AllPartitions,
    /// The owners of two keys, one after the other, coordinated by the session.
    Rename,
    /// The owner of all of its keys, which are refused if they have several owners.
    Together,
    /// The one owner of its keys, which stand after their number at argument 2.
    Script,
}

/// How the answers to the parts of a split command become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// An array with one element a key, in the order of the keys.
    Gather,
    /// The sum of integers.
    Sum,
    /// `OK` if all are.
    AllOk,
}

/// A set of properties of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u32);

impl Flags {
    /// No property.
    pub const NONE: Flags = Flags(0);
    /// May change data.
    pub const WRITE: Flags = Flags(1);
    /// Reads data and changes none.
    pub const READONLY: Flags = Flags(1 << 1);
    /// May make data grow, so it is refused when memory is short.
    pub const DENYOOM: Flags = Flags(1 << 2);
    /// For those who operate the server.
    pub const ADMIN: Flags = Flags(1 << 3);
    /// Not for scripts.
    pub const NOSCRIPT: Flags = Flags(1 << 4);
    /// Answered while the store is still being loaded.
    pub const LOADING: Flags = Flags(1 << 5);
    /// Answered while the data may be old.
    pub const STALE: Flags = Flags(1 << 6);
    /// Takes constant time, or near it.
    pub const FAST: Flags = Flags(1 << 7);
    /// Answered before authentication.
    pub const NO_AUTH: Flags = Flags(1 << 8);
    /// Answered while the server is busy with a long command.
    pub const ALLOW_BUSY: Flags = Flags(1 << 9);
    /// Not recorded as slow.
    pub const SKIP_SLOWLOG: Flags = Flags(1 << 10);
    /// Can take a server down when used carelessly. Not a flag of Redis, but the source of its category.
    pub const DANGEROUS: Flags = Flags(1 << 11);
    /// Some keys stand where the arguments say.
    pub const MOVABLE_KEYS: Flags = Flags(1 << 12);
    /// It may do without keys.
    pub const NO_MANDATORY_KEYS: Flags = Flags(1 << 13);
    /// Not shown to those who watch commands.
    pub const SKIP_MONITOR: Flags = Flags(1 << 14);
    /// About channels.
    pub const PUBSUB: Flags = Flags(1 << 15);

    /// May wait for data.
    pub const BLOCKING: Flags = Flags(1 << 16);

    /// Whether all of the other properties are here.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The properties of both.
    pub const fn union(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// The properties that the other set has not.
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// The names that `COMMAND INFO` shows, in the order of Redis.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        FLAG_NAMES.iter().filter(move |(flag, _)| self.contains(*flag)).map(|(_, name)| *name)
    }
}

impl BitOr for Flags {
    type Output = Flags;

    fn bitor(self, other: Flags) -> Flags {
        self.union(other)
    }
}

const FLAG_NAMES: [(Flags, &str); 16] = [
    (Flags::WRITE, "write"),
    (Flags::READONLY, "readonly"),
    (Flags::DENYOOM, "denyoom"),
    (Flags::ADMIN, "admin"),
    (Flags::PUBSUB, "pubsub"),
    (Flags::NOSCRIPT, "noscript"),
    (Flags::BLOCKING, "blocking"),
    (Flags::LOADING, "loading"),
    (Flags::STALE, "stale"),
    (Flags::SKIP_MONITOR, "skip_monitor"),
    (Flags::SKIP_SLOWLOG, "skip_slowlog"),
    (Flags::FAST, "fast"),
    (Flags::NO_AUTH, "no_auth"),
    (Flags::ALLOW_BUSY, "allow_busy"),
    (Flags::NO_MANDATORY_KEYS, "no_mandatory_keys"),
    (Flags::MOVABLE_KEYS, "movablekeys"),
];

impl CommandSpec {
    /// Its place in the table.
    pub fn index(&'static self) -> usize {
        let begin = TABLE.as_ptr() as usize;
        (std::ptr::from_ref(self) as usize - begin) / size_of::<CommandSpec>()
    }

    /// The name of the subcommand that the arguments name, if there is such a one.
    pub fn subcommand(&self, args: &[Bytes]) -> Option<&'static str> {
        let word = if self.subcommands.is_empty() { None } else { args.get(1) }?;
        self.subcommands.iter().find(|known| known.as_bytes().eq_ignore_ascii_case(word)).copied()
    }

    /// Why a subcommand that nothing has answered is refused: it takes other arguments, or there is no such one.
    pub fn misused(&self, args: &[Bytes]) -> CommandError {
        match self.subcommand(args) {
            Some(known) => CommandError::wrong_arity(self.full_name(known)),
            None => CommandError::unknown_subcommand(self.name, args.get(1).map_or(&[], |word| word)),
        }
    }

    /// Whether it is described by its subcommands: without one it is no command.
    pub fn is_container(&self) -> bool {
        !self.subcommands.is_empty() && self.arity <= -2
    }

    /// The name of a subcommand as Redis writes it, as in `config|get`.
    pub fn full_name(&self, subcommand: &str) -> String {
        format!("{}|{subcommand}", self.name)
    }

    /// Whether it may change data, or is executed as what does: a script is, whatever it is going to do.
    pub fn is_write(&self) -> bool {
        self.flags.contains(Flags::WRITE) || self.route == Route::Script
    }
}

/// The byte before the name of a command that says in its last argument what its user may do. It is for nodes among
/// themselves: a session lets no client send it.
pub const AS_USER: u8 = 1;

/// The row of a command, by its name in any case.
pub fn lookup(name: &[u8]) -> Option<&'static CommandSpec> {
    let name = name.strip_prefix(&[AS_USER]).unwrap_or(name);
    if name.len() > PACKED_BYTES {
        return TABLE.iter().find(|spec| spec.name.as_bytes().eq_ignore_ascii_case(name));
    }
    let packed = pack(name)?;
    let mut place = place_of(packed);
    loop {
        let row = usize::from(ROWS_BY_NAME[place]).checked_sub(1)?;
        // A longer name may begin with this one.
        if PACKED_NAMES[row] == packed && TABLE[row].name.len() == name.len() {
            return Some(&TABLE[row]);
        }
        place = (place + 1) % PLACES;
    }
}

/// Why a command with subcommands is refused, after nothing has answered the one that its second word names.
pub fn misused(args: &[Bytes]) -> CommandError {
    let spec = args.first().and_then(|name| lookup(name));
    spec.map_or_else(|| CommandError::unknown_subcommand("", b""), |spec| spec.misused(args))
}

/// Whether a command of `count` arguments, its name among them, has as many as it takes.
pub fn check_arity(spec: &CommandSpec, count: usize) -> bool {
    let expected = usize::from(spec.arity.unsigned_abs());
    if spec.arity >= 0 { count == expected } else { count >= expected }
}

/// The keys of a command, in the order in which they stand; [`key_places`] tells where.
pub fn keys<'a>(spec: &CommandSpec, args: &'a [Bytes]) -> impl Iterator<Item = &'a Bytes> + use<'a> {
    let (first, last) = key_range(spec, args.len());
    let step = usize::from(spec.step.unsigned_abs()).max(1);
    let placed = args.get(first..=last).unwrap_or(&[]).iter().step_by(step);
    placed.chain(&args[listed_keys(spec, args)]).chain(places_behind(spec, args).map(|place| &args[place]))
}

/// Where the keys stand that are counted, or behind the word `STREAMS`; an empty range if there are none.
fn listed_keys(spec: &CommandSpec, args: &[Bytes]) -> Range<usize> {
    counted_keys(spec, args).or_else(|| keys_of_streams(spec, args)).unwrap_or(0..0)
}

/// Before it a `GEORADIUS` has its key, its member or place, and its radius.
const FIRST_OPTION: usize = 5;

/// Where keys stand behind words; nowhere, mostly, without a look at the arguments.
fn places_behind<'a>(spec: &CommandSpec, args: &'a [Bytes]) -> impl Iterator<Item = usize> + use<'a> {
    let words = spec.keys_behind;
    let is_sort = spec.name == "sort";
    let target = if is_sort { sort_target(args) } else { None };
    let args = if words.is_empty() || is_sort { &[] } else { args };
    let is_word = |word: &Bytes| words.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()));
    let mut place = FIRST_OPTION;
    let behind = std::iter::from_fn(move || {
        // The key behind a word is not a word, whatever its name is.
        let option = (place..args.len().saturating_sub(1)).find(|&place| is_word(&args[place]))?;
        place = option + 2;
        Some(option + 1)
    });
    target.into_iter().chain(behind)
}

/// Where the key stands in which `SORT` stores what it has sorted: the last one that it is told.
fn sort_target(args: &[Bytes]) -> Option<usize> {
    let stored = access::sort_options(args).filter(|(option, _)| *option == SortOption::Store);
    stored.map(|(_, place)| place).last()
}

/// The places of the keys behind their number, if there are so many.
fn counted_keys(spec: &CommandSpec, args: &[Bytes]) -> Option<Range<usize>> {
    let place = usize::from(spec.counted_keys);
    if place == 0 {
        return None;
    }
    let count = usize::try_from(crate::number::parse_i64(args.get(place)?)?).ok()?;
    let first = place + 1;
    (count <= args.len() - first).then(|| first..first + count)
}

/// The places of the keys behind the word `STREAMS`, which are half of what follows it.
fn keys_of_streams(spec: &CommandSpec, args: &[Bytes]) -> Option<Range<usize>> {
    const SKIPPED: [(&str, usize); 4] = [("block", 2), ("count", 2), ("group", 3), ("noack", 1)];
    if !spec.keys_of_streams {
        return None;
    }
    let mut place = 1;
    loop {
        let word = args.get(place)?;
        if word.eq_ignore_ascii_case(b"streams") {
            break;
        }
        place += SKIPPED.iter().find(|(known, _)| word.eq_ignore_ascii_case(known.as_bytes()))?.1;
    }
    let first = place + 1;
    let count = args.len() - first;
    (count % 2 == 0).then(|| first..first + count / 2)
}

/// For patterns behind `BY` and `GET` of `SORT`, what tells where the keys are that they make: a hash tag before the
/// star. Without one nothing does, and the answer is no bytes.
pub fn key_patterns<'a>(spec: &CommandSpec, args: &'a [Bytes]) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let has_patterns = matches!(spec.name, "sort" | "sort_ro");
    let args = if has_patterns { args.get(2..).unwrap_or_default() } else { &[] };
    let is_behind =
        |pair: &&[Bytes]| [&b"by"[..], b"get"].iter().any(|word| pair[0].eq_ignore_ascii_case(word));
    args.windows(2).filter(is_behind).filter_map(|pair| {
        let star = pair[1].iter().position(|&byte| byte == b'*')?;
        let before = &pair[1][..star];
        let open = before.iter().position(|&byte| byte == b'{');
        let close = open.and_then(|open| before[open..].iter().position(|&byte| byte == b'}'));
        Some(if close.is_some_and(|length| length > 1) { before } else { b"" })
    })
}

/// Where the keys of a script stand among its arguments; what follows them are its own arguments.
pub fn script_keys(args: &[Bytes]) -> Result<Range<usize>, CommandError> {
    const FIRST: usize = 3;
    let number = args.get(FIRST - 1).and_then(|number| number::parse_i64(number));
    let is_call =
        args.first().is_some_and(|name| name.len() >= 5 && name[..5].eq_ignore_ascii_case(b"fcall"));
    let no_number = if is_call {
        CommandError::Argument("Bad number of keys provided")
    } else {
        CommandError::NotInteger
    };
    match number.ok_or(no_number)? {
        ..0 => Err(CommandError::NegativeKeys),
        count => match usize::try_from(count) {
            Ok(count) if count <= args.len() - FIRST => Ok(FIRST..FIRST + count),
            _ => Err(CommandError::TooManyKeys),
        },
    }
}

/// First and last place of a key; an empty range if there is none.
fn key_range(spec: &CommandSpec, count: usize) -> (usize, usize) {
    const NONE: (usize, usize) = (1, 0);
    let last =
        if spec.last_key < 0 { count as i64 + i64::from(spec.last_key) } else { i64::from(spec.last_key) };
    let last = last.min(count as i64 - 1);
    match (usize::try_from(spec.first_key), usize::try_from(last)) {
        (Ok(first), Ok(last)) if first > 0 && first <= last => (first, last),
        _ => NONE,
    }
}

/// The names of the table as numbers, in its order: the order of numbers is that of names.
static PACKED_NAMES: [u128; TABLE.len()] = {
    let mut packed = [0; TABLE.len()];
    let mut index = 0;
    while index < TABLE.len() {
        packed[index] = match pack(TABLE[index].name.as_bytes()) {
            Some(name) => name,
            None => panic!("a name of the table is empty"),
        };
        index += 1;
    }
    packed
};

/// Places for rows by their names: more than twice as many as there are rows, so that few names share one.
const PLACES: usize = 1_024;
const _: () = assert!(2 * TABLE.len() < PLACES);

/// One more than the row of each name, at its place or the next that was free; 0 where nothing is.
static ROWS_BY_NAME: [u16; PLACES] = {
    let mut rows = [0; PLACES];
    let mut row = 0;
    while row < TABLE.len() {
        let mut place = place_of(PACKED_NAMES[row]);
        while rows[place] > 0 {
            place = (place + 1) % PLACES;
        }
        row += 1;
        rows[place] = row as u16;
    }
    rows
};

/// Where the row of a name is looked for first.
const fn place_of(packed: u128) -> usize {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let folded = (packed >> 64) as u64 ^ (packed as u64).rotate_left(29);
    (folded.wrapping_mul(ODD) >> (64 - PLACES.trailing_zeros())) as usize
}

/// A name in lower case as one number, first byte highest; of a long one its beginning. Nothing if it is empty.
const fn pack(name: &[u8]) -> Option<u128> {
    if name.is_empty() {
        return None;
    }
    let mut packed: u128 = 0;
    let mut index = 0;
    let count = if name.len() < PACKED_BYTES { name.len() } else { PACKED_BYTES };
    while index < count {
        packed = packed << 8 | name[index].to_ascii_lowercase() as u128;
        index += 1;
    }
    // A zero byte must not pass for the end of a shorter name.
    if name[name.len() - 1] == 0 {
        return None;
    }
    Some(packed << (8 * (PACKED_BYTES - count)))
}

const PACKED_BYTES: usize = 16;

#[cfg(test)]
mod tests;
