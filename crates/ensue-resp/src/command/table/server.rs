//! The rows of commands that clients of a cluster and those who operate a server send.

use super::{flags, row};
use crate::command::{CommandSpec, Flags, Route};

const ALONE: &str = "Answered by the session alone.";
const OPERATES: Flags = flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE]);
const ANSWERED: Flags = flags(&[Flags::LOADING, Flags::STALE]);
const FAST: Flags = flags(&[Flags::LOADING, Flags::STALE, Flags::FAST]);

pub(super) const ROWS: [CommandSpec; 12] = [
    row("acl", -2, OPERATES, Route::Session)
        .listed("server", "6.0.0")
        .subcommands(&[
            "cat", "deluser", "dryrun", "genpass", "getuser", "help", "list", "load", "log", "save",
            "setuser", "users", "whoami",
        ])
        .says(
            "Say who the users are, what each may do, and who was refused.",
            "Users are of a datacenter: a change reaches all its cores, and no other datacenter.",
        ),
    row("cluster", -2, ANSWERED, Route::Session)
        .listed("cluster", "3.0.0")
        .subcommands(&[
            "countkeysinslot",
            "getkeysinslot",
            "help",
            "info",
            "keyslot",
            "links",
            "myid",
            "myshardid",
            "nodes",
            "shards",
            "slots",
        ])
        .says(
            "Tell clients of Redis Cluster that the node which they ask has all slots.",
            "Each datacenter answers for itself: its node has all slots.",
        ),
    row("latency", -2, OPERATES, Route::Session)
        .listed("server", "2.8.13")
        .subcommands(&["doctor", "graph", "help", "histogram", "history", "latest", "reset"])
        .says("How long commands took.", "Tells of the datacenter that is asked."),
    row("module", -2, flags(&[Flags::ADMIN, Flags::NOSCRIPT]), Route::Session)
        .listed("server", "4.0.0")
        .subcommands(&["help", "list"])
        .says("Tell that there are no modules.", ALONE),
    row("monitor", 1, OPERATES, Route::Session)
        .listed("server", "1.0.0")
        .says("Tell this connection of every command.", "Tells of the datacenter that is asked."),
    row("move", 3, flags(&[Flags::FAST]), Route::Session)
        .listed("generic", "1.0.0")
        .says("Refused: keyspaces have protocols and partitions of their own.", ALONE),
    row("readonly", 1, FAST, Route::Session)
        .listed("cluster", "3.0.0")
        .says("Accepted: every node reads and writes.", ALONE),
    row("readwrite", 1, FAST, Route::Session)
        .listed("cluster", "3.0.0")
        .says("Accepted: every node reads and writes.", ALONE),
    row("role", 1, flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST]), Route::Session)
        .listed("server", "2.8.12")
        .says("Tell that this node takes writes.", "Every datacenter takes writes."),
    row("save", 1, flags(&[Flags::ADMIN, Flags::NOSCRIPT]), Route::Session)
        .listed("server", "1.0.0")
        .says("Refused: every write is in the log.", ALONE),
    row("shutdown", -1, OPERATES.union(Flags::ALLOW_BUSY), Route::Session)
        .listed("server", "1.0.0")
        .says("Refused: the process is stopped by who runs it.", ALONE),
    row("swapdb", 3, flags(&[Flags::FAST, Flags::DANGEROUS]), Route::Session)
        .listed("server", "4.0.0")
        .says("Refused: keyspaces have protocols and partitions of their own.", ALONE),
];
