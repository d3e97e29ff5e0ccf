//! The rows of streams.

use super::{READS, flags, row};
use crate::command::{CommandSpec, Flags, Route};

const REMOVES: &str = "Removes entries that this datacenter sees; others stay.";
const OF_GROUPS: &str = "State of groups merges part by part: what was delivered in two datacenters at once is \
    delivered twice.";

pub(super) const ROWS: [CommandSpec; 15] = [
    row("xack", -4, flags(&[Flags::WRITE, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("stream", "5.0.0")
        .says(
            "Acknowledge entries that were delivered to a group.",
            "Ends what this datacenter sees as pending; what another one delivers again concurrently stays pending.",
        ),
    row("xadd", -5, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("stream", "5.0.0")
        .says(
            "Add an entry to a stream.",
            "Every entry stays; each datacenter has a log of its own, and readers merge them by id. No two \
            datacenters draw the same id.",
        ),
    row("xautoclaim", -6, flags(&[Flags::WRITE, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("stream", "6.2.0")
        .says("Claim pending entries that nobody has acknowledged for a time.", OF_GROUPS),
    row("xclaim", -6, flags(&[Flags::WRITE, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("stream", "5.0.0")
        .says("Make another consumer the owner of pending entries.", OF_GROUPS),
    row("xdel", -3, flags(&[Flags::WRITE, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("stream", "5.0.0")
        .says("Remove entries of a stream.", REMOVES),
    row("xgroup", -2, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Together)
        .keys(2, 2, 1)
        .listed("stream", "5.0.0")
        .subcommands(&["create", "createconsumer", "delconsumer", "destroy", "help", "setid"])
        .says(
            "Make, move and remove groups of consumers.",
            "A group that two datacenters make is one; it is where either has come to. One that is removed stays if \
            another datacenter uses it concurrently.",
        ),
    row("xinfo", -2, flags(&[Flags::READONLY]), Route::Together)
        .keys(2, 2, 1)
        .listed("stream", "5.0.0")
        .subcommands(&["consumers", "groups", "help", "stream"])
        .says("What is known of a stream, its groups and their consumers.", READS),
    row("xlen", 2, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("stream", "5.0.0")
        .says("The number of entries of a stream.", READS),
    row("xpending", -3, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("stream", "5.0.0")
        .says("Entries that were delivered to a group and not acknowledged.", READS),
    row("xrange", -4, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("stream", "5.0.0")
        .says("Entries in a range of ids.", READS),
    row("xread", -4, flags(&[Flags::READONLY, Flags::BLOCKING]), Route::Together)
        .keys_of_streams()
        .listed("stream", "5.0.0")
        .says(
            "Entries behind an id, of one stream or several, or wait for some.",
            "Reads what this datacenter has received. An entry of another datacenter that arrives later with a lower \
            id is passed over: groups do not, and at a home there is none.",
        ),
    row("xreadgroup", -7, flags(&[Flags::WRITE, Flags::BLOCKING]), Route::Together)
        .keys_of_streams()
        .listed("stream", "5.0.0")
        .says(
            "Deliver entries to a consumer of a group, or wait for some.",
            "Passes over no entry, as a group knows for each datacenter how far it is. Two datacenters that do not \
            see each other's reading deliver the same entries.",
        ),
    row("xrevrange", -4, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("stream", "5.0.0")
        .says("Entries in a range of ids, the last one first.", READS),
    row("xsetid", -3, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("stream", "5.0.0")
        .says("Set the last id of a stream.", "Of two datacenters that do so, the higher id is the last one."),
    row("xtrim", -4, flags(&[Flags::WRITE]), Route::Key)
        .keys(1, 1, 1)
        .listed("stream", "5.0.0")
        .says("Remove the oldest entries of a stream.", REMOVES),
];
