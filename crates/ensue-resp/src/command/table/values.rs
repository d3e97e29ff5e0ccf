//! The rows of commands on values as a whole, and of HyperLogLogs.

use super::{READS, flags, row};
use crate::command::{CommandSpec, Flags, Route};

const LIKE_SET: &str =
    "The target is deleted as seen and written anew: the later write wins, what was unseen stays.";
const MAXIMUM: &str = "The later resulting string wins, as that of SETRANGE.";

pub(super) const ROWS: [CommandSpec; 13] = [
    row("copy", -3, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Together)
        .keys(1, 2, 1)
        .listed("generic", "6.2.0")
        .says("Copy a value to another key of the keyspace.", LIKE_SET),
    row("dump", 2, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("generic", "2.6.0")
        .says("The value in the format of Redis' files.", READS),
    row("lcs", -3, flags(&[Flags::READONLY]), Route::Together)
        .keys(1, 2, 1)
        .listed("string", "7.0.0")
        .says("The longest common subsequence of two strings.", READS),
    row("memory", -2, flags(&[Flags::READONLY]), Route::Together)
        .keys(2, 2, 1)
        .listed("server", "4.0.0")
        .subcommands(&["doctor", "help", "malloc-stats", "purge", "stats", "usage"])
        .says(
            "The bytes that the store counts for a key, and advice on the memory of the nodes.",
            "Differs between datacenters: each counts what its own memory holds.",
        ),
    row("object", -2, flags(&[Flags::READONLY]), Route::Together)
        .keys(2, 2, 1)
        .listed("generic", "2.2.3")
        .subcommands(&["encoding", "freq", "help", "idletime", "refcount"])
        .says("What Redis would tell of how a value is kept.", READS),
    row("pfadd", -2, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("hyperloglog", "2.8.9")
        .says("Add elements to a HyperLogLog.", MAXIMUM),
    row("pfcount", -2, flags(&[Flags::READONLY]), Route::Together)
        .keys(1, -1, 1)
        .listed("hyperloglog", "2.8.9")
        .says("About how many different elements HyperLogLogs have seen.", READS),
    row("pfdebug", 3, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::ADMIN]), Route::Together)
        .keys(2, 2, 1)
        .listed("hyperloglog", "2.8.9")
        .says("What stands in a HyperLogLog.", MAXIMUM),
    row("pfmerge", -2, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Together)
        .keys(1, -1, 1)
        .listed("hyperloglog", "2.8.9")
        .says("Make a HyperLogLog the union of several.", MAXIMUM),
    row("pfselftest", 1, flags(&[Flags::ADMIN]), Route::Session)
        .listed("hyperloglog", "2.8.9")
        .says("Check that HyperLogLogs count as they should.", "Answered by the session alone."),
    row("restore", -4, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::DANGEROUS]), Route::Key)
        .keys(1, 1, 1)
        .listed("generic", "2.6.0")
        .says("Make a key the value of a dump.", LIKE_SET),
    row("sort", -2, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::DANGEROUS]), Route::Together)
        .keys(1, 1, 1)
        .keys_behind(&["STORE"])
        .listed("generic", "1.0.0")
        .says(
            "The elements of a list, set or sorted set in another order, or what belongs to them.",
            LIKE_SET,
        ),
    row("sort_ro", -2, flags(&[Flags::READONLY, Flags::DANGEROUS, Flags::MOVABLE_KEYS]), Route::Together)
        .keys(1, 1, 1)
        .listed("generic", "7.0.0")
        .says("As SORT, without storing.", READS),
];
