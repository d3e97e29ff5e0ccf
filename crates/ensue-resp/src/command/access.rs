//! What a command does with each of its keys: whether it reads the value, and whether it changes it.
//!
//! A row and a whole command arrive; the places of the keys leave, each with its [`Access`], as the key
//! specifications of Redis 7.2 have it. `COMMAND GETKEYSANDFLAGS` shows them, and access rules with `%R~` and `%W~`
//! are about them. It allocates nothing, and does not decide who may.

use super::{CommandSpec, Flags, key_range, listed_keys, places_behind};
use bytes::Bytes;
use std::ops::BitOr;

/// What is done with one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access(u8);

impl Access {
    /// The key is read, if only for its length, and not changed.
    pub const READ_ONLY: Access = Access(1);
    /// The value is changed, and what it becomes depends on what it was.
    pub const READ_WRITE: Access = Access(1 << 1);
    /// The value is replaced, whatever it was.
    pub const OVERWRITE: Access = Access(1 << 2);
    /// The key is deleted.
    pub const REMOVE: Access = Access(1 << 3);
    /// What the value holds is answered, copied or used; its existence, type and length alone are not.
    pub const ACCESS: Access = Access(1 << 4);
    /// What is there is changed.
    pub const UPDATE: Access = Access(1 << 5);
    /// Something is added, and nothing that is there is changed.
    pub const INSERT: Access = Access(1 << 6);
    /// Something is removed.
    pub const DELETE: Access = Access(1 << 7);

    const READS: Access = Access(Access::READ_ONLY.0 | Access::ACCESS.0);
    const STORES: Access = Access(Access::OVERWRITE.0 | Access::UPDATE.0);
    const TAKES: Access = Access(Access::READ_WRITE.0 | Access::ACCESS.0 | Access::DELETE.0);
    const ADDS: Access = Access(Access::READ_WRITE.0 | Access::INSERT.0);
    const CHANGES: Access = Access(Access::READ_WRITE.0 | Access::UPDATE.0);
    const REMOVES: Access = Access(Access::READ_WRITE.0 | Access::DELETE.0);

    /// Whether all of the other are here.
    pub const fn contains(self, other: Access) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether the value is read, so that it takes the permission to read.
    pub const fn reads(self) -> bool {
        self.contains(Access::ACCESS)
    }

    /// Whether the value is changed, so that it takes the permission to write.
    pub const fn writes(self) -> bool {
        self.0 & (Access::UPDATE.0 | Access::INSERT.0 | Access::DELETE.0) != 0
    }

    /// The names that `COMMAND GETKEYSANDFLAGS` shows, in the order of Redis.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        const NAMES: [&str; 8] = ["RO", "RW", "OW", "RM", "access", "update", "insert", "delete"];
        NAMES.into_iter().enumerate().filter(move |(bit, _)| self.0 >> bit & 1 == 1).map(|(_, name)| name)
    }
}

impl BitOr for Access {
    type Output = Access;

    fn bitor(self, other: Access) -> Access {
        Access(self.0 | other.0)
    }
}

/// The option of `SORT` behind which something stands that is no element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortOption {
    /// A pattern of keys to sort by.
    By,
    /// A pattern of keys to answer.
    Get,
    /// A key to store the result in.
    Store,
}

/// The places of the keys among the arguments, in the order of [`keys`](super::keys).
pub fn key_places<'a>(spec: &CommandSpec, args: &'a [Bytes]) -> impl Iterator<Item = usize> + use<'a> {
    let (first, last) = key_range(spec, args.len());
    let step = usize::from(spec.step.unsigned_abs()).max(1);
    (first..=last).step_by(step).chain(listed_keys(spec, args)).chain(places_behind(spec, args))
}

/// The places of the keys, and what the command does with each.
pub fn key_accesses<'a>(
    spec: &CommandSpec,
    args: &'a [Bytes],
) -> impl Iterator<Item = (usize, Access)> + use<'a> {
    let accesses = Accesses::of(spec, args);
    let (first, others) = (accesses.first, accesses.others);
    key_places(spec, args).enumerate().map(move |(nth, place)| (place, if nth == 0 { first } else { others }))
}

/// What a command does with its first key, as far as its row tells.
pub fn first_access(spec: &CommandSpec) -> Access {
    Accesses::of(spec, &[]).first
}

/// Where `BY` and `GET` of `SORT` have a pattern that makes keys of elements, which no list of keys can hold.
pub fn unplaced_keys<'a>(
    spec: &CommandSpec,
    args: &'a [Bytes],
) -> impl Iterator<Item = (SortOption, usize)> + use<'a> {
    let args = if matches!(spec.name, "sort" | "sort_ro") { args } else { &[] };
    // A pattern without a star makes no key: `BY nosort` does not sort, and `GET #` is the element itself.
    sort_options(args).filter(|&(option, place)| option != SortOption::Store && args[place].contains(&b'*'))
}

/// What stands behind the options of `SORT` that name keys: the option, and the place of its argument.
pub(super) fn sort_options(args: &[Bytes]) -> impl Iterator<Item = (SortOption, usize)> + use<'_> {
    const OPTIONS: [(&str, SortOption); 3] =
        [("by", SortOption::By), ("get", SortOption::Get), ("store", SortOption::Store)];
    let mut next = 2;
    std::iter::from_fn(move || {
        while let Some(word) = args.get(next) {
            let is = |known: &str| word.eq_ignore_ascii_case(known.as_bytes());
            let found = OPTIONS.iter().find(|(known, _)| is(known));
            let place = next + 1;
            next = place + if is("limit") { 2 } else { usize::from(found.is_some()) };
            match found {
                Some((_, option)) if place < args.len() => return Some((*option, place)),
                _ => {}
            }
        }
        None
    })
}

/// What is done with the first key, and what with all others.
#[derive(Clone, Copy)]
struct Accesses {
    first: Access,
    others: Access,
}

impl Accesses {
    fn of(spec: &CommandSpec, args: &[Bytes]) -> Accesses {
        match spec.name {
            // The result goes to the first key.
            "bitop" | "geosearchstore" | "sdiffstore" | "sinterstore" | "sunionstore" | "zdiffstore"
            | "zinterstore" | "zrangestore" | "zunionstore" => {
                Accesses { first: Access::STORES, others: Access::READS }
            }
            "pfmerge" => Accesses { first: Access::ADDS | Access::ACCESS, others: Access::READS },
            "copy" | "georadius" | "georadiusbymember" | "sort" => {
                Accesses { first: Access::READS, others: Access::STORES }
            }
            "lmove" | "blmove" | "rpoplpush" | "brpoplpush" | "smove" => {
                Accesses { first: Access::TAKES, others: Access::ADDS }
            }
            "rename" => Accesses { first: Access::TAKES, others: Access::STORES },
            "renamenx" => Accesses { first: Access::TAKES, others: Access::OVERWRITE | Access::INSERT },
            _ => {
                let same = access(spec, args);
                Accesses { first: same, others: same }
            }
        }
    }
}

/// What a command does with each of its keys, if that is the same.
fn access(spec: &CommandSpec, args: &[Bytes]) -> Access {
    match spec.name {
        "exists" | "touch" | "type" | "hexists" | "hstrlen" | "sismember" | "strlen" | "hlen" | "llen"
        | "scard" | "zcard" | "xlen" | "watch" | "object" | "memory" => Access::READ_ONLY,
        "set" => access_of_set(args),
        "bitfield" => access_of_bitfield(args),
        "xgroup" => access_of_xgroup(spec, args),
        "setex" | "psetex" | "mset" | "restore" => Access::STORES,
        "setnx" | "msetnx" => Access::OVERWRITE | Access::INSERT,
        "del" | "unlink" => Access::REMOVE | Access::DELETE,
        "append" | "hsetnx" | "linsert" | "lpush" | "lpushx" | "rpush" | "rpushx" | "sadd" | "pfadd" => {
            Access::ADDS
        }
        "lpop" | "rpop" | "blpop" | "brpop" | "lmpop" | "blmpop" | "spop" | "zpopmin" | "zpopmax"
        | "bzpopmin" | "bzpopmax" | "zmpop" | "bzmpop" | "getdel" => Access::TAKES,
        "hdel" | "lrem" | "ltrim" | "srem" | "zrem" | "zremrangebylex" | "zremrangebyrank"
        | "zremrangebyscore" | "xdel" | "xtrim" | "xautoclaim" => Access::REMOVES,
        "expire" | "expireat" | "pexpire" | "pexpireat" | "persist" | "geoadd" | "hmset" | "hset"
        | "lset" | "setrange" | "xack" | "xadd" | "xclaim" | "xsetid" | "zadd" => Access::CHANGES,
        // It may write what it has counted beside the value, which no reader sees.
        "pfcount" | "pfdebug" => Access::READ_WRITE | Access::ACCESS,
        // The group moves on, and what is read is what it is about.
        "xreadgroup" => Access::READS,
        _ if spec.flags.contains(Flags::READONLY) => Access::READS,
        // What is not listed above takes both permissions, so that a new command is not open by oversight.
        _ => Access::CHANGES | Access::ACCESS,
    }
}

/// `SET` reads the old value if it is told to.
fn access_of_set(args: &[Bytes]) -> Access {
    let options = args.get(3..).unwrap_or_default();
    let reads = options.iter().any(|word| word.eq_ignore_ascii_case(b"get"));
    if reads { Access::CHANGES | Access::ACCESS } else { Access::STORES }
}

/// `BITFIELD` reads only if all that it is told is to read.
fn access_of_bitfield(args: &[Bytes]) -> Access {
    // Without arguments it is the row that is asked about.
    let Some(operations) = args.get(2..) else { return Access::CHANGES | Access::ACCESS };
    let is_write = |word: &Bytes| word.eq_ignore_ascii_case(b"set") || word.eq_ignore_ascii_case(b"incrby");
    let writes = operations.iter().any(is_write);
    if writes { Access::CHANGES | Access::ACCESS } else { Access::READS }
}

fn access_of_xgroup(spec: &CommandSpec, args: &[Bytes]) -> Access {
    match spec.subcommand(args) {
        Some("create" | "createconsumer") => Access::ADDS,
        Some("delconsumer" | "destroy") => Access::REMOVES,
        _ => Access::CHANGES,
    }
}

#[cfg(test)]
mod tests;
