//! The rows of commands on several sets, of those that take members out, and of `MSETNX`.

use super::{POPS, READS_TOGETHER, flags, row};
use crate::command::{CommandSpec, Flags, Route};

const REPLACES: &str = "Replaces the members of the target that are seen by what is seen of the sources; unseen \
    members stay. Keys of several partitions are refused: hash tags put them into one.";

pub(super) const ROWS: [CommandSpec; 10] = [
    row("msetnx", -3, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Together)
        .keys(1, -1, 2)
        .listed("string", "1.0.1")
        .says(
            "Set several keys if none of them exists.",
            "For each key the later write wins. Both datacenters may answer 1. Keys of several partitions are \
            refused: hash tags put them into one.",
        ),
    row("sdiff", -2, flags(&[Flags::READONLY]), Route::Together)
        .keys(1, -1, 1)
        .listed("set", "1.0.0")
        .says("The members of a set that no other one has.", READS_TOGETHER),
    row("sdiffstore", -3, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Together)
        .keys(1, -1, 1)
        .listed("set", "1.0.0")
        .says("Store the members of a set that no other one has.", REPLACES),
    row("sinter", -2, flags(&[Flags::READONLY]), Route::Together)
        .keys(1, -1, 1)
        .listed("set", "1.0.0")
        .says("The members that all sets have.", READS_TOGETHER),
    row("sintercard", -3, flags(&[Flags::READONLY]), Route::Together)
        .counted_keys(1)
        .listed("set", "7.0.0")
        .says("The number of members that all sets have.", READS_TOGETHER),
    row("sinterstore", -3, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Together)
        .keys(1, -1, 1)
        .listed("set", "1.0.0")
        .says("Store the members that all sets have.", REPLACES),
    row("smove", 4, flags(&[Flags::WRITE, Flags::FAST]), Route::Together)
        .keys(1, 2, 1)
        .listed("set", "1.0.0")
        .says(
            "Move a member from one set to another.",
            "For each set and member the later of adding and removing it wins; two datacenters may move the same \
            member to different sets. Keys of several partitions are refused: hash tags put them into one.",
        ),
    row("spop", -2, flags(&[Flags::WRITE, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("set", "1.0.0")
        .says("Remove and answer some member of a set, or several.", POPS),
    row("sunion", -2, flags(&[Flags::READONLY]), Route::Together)
        .keys(1, -1, 1)
        .listed("set", "1.0.0")
        .says("The members that any set has.", READS_TOGETHER),
    row("sunionstore", -3, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Together)
        .keys(1, -1, 1)
        .listed("set", "1.0.0")
        .says("Store the members that any set has.", REPLACES),
];
