//! The rows of commands that clients of a cluster and those who operate a server send.

use super::{flags, row};
use crate::command::{CommandSpec, Flags, Route};

const ALONE: &str = "Answered by the session alone.";
const CHECKPOINTS: &str = "Of the datacenter that is asked. Every write is in the log already.";
const OPERATES: Flags = flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE]);
const ANSWERED: Flags = flags(&[Flags::LOADING, Flags::STALE]);
const FAST: Flags = flags(&[Flags::LOADING, Flags::STALE, Flags::FAST]);

pub(super) const ROWS: [CommandSpec; 20] = [
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
    row("asking", 1, flags(&[Flags::FAST]), Route::Session)
        .listed("cluster", "3.0.0")
        .says("Accepted: nothing moves from one node to another under a client.", ALONE),
    row("bgrewriteaof", 1, flags(&[Flags::ADMIN, Flags::NOSCRIPT]), Route::Session)
        .listed("server", "1.0.0")
        .says("Begin a checkpoint of every partition.", CHECKPOINTS),
    row("bgsave", -1, flags(&[Flags::ADMIN, Flags::NOSCRIPT]), Route::Session)
        .listed("server", "1.0.0")
        .says("Begin a checkpoint of every partition.", CHECKPOINTS),
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
    row("failover", -1, flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::STALE]), Route::Session)
        .listed("server", "6.2.0")
        .says("Refused: no node is another one's replica as a whole.", ALONE),
    row("lastsave", 1, FAST, Route::Session)
        .listed("server", "1.0.0")
        .says("When the last checkpoint ended.", "Of the partitions of the datacenter, the earliest."),
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
    row("replicaof", 3, flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::STALE]), Route::Session)
        .listed("server", "5.0.0")
        .says("Accepted with NO ONE, and refused otherwise: every datacenter takes writes.", ALONE),
    row("role", 1, flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST]), Route::Session)
        .listed("server", "2.8.12")
        .says("Tell that this node takes writes.", "Every datacenter takes writes."),
    row("save", 1, flags(&[Flags::ADMIN, Flags::NOSCRIPT]), Route::Session)
        .listed("server", "1.0.0")
        .says("Begin a checkpoint of every partition.", CHECKPOINTS),
    row("shutdown", -1, OPERATES.union(Flags::ALLOW_BUSY), Route::Session)
        .listed("server", "1.0.0")
        .says("Refused: the process is stopped by who runs it.", ALONE),
    row("slaveof", 3, flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::STALE]), Route::Session)
        .listed("server", "1.0.0")
        .says("Accepted with NO ONE, and refused otherwise: every datacenter takes writes.", ALONE),
    row("swapdb", 3, flags(&[Flags::FAST, Flags::DANGEROUS]), Route::Session)
        .listed("server", "4.0.0")
        .says("Refused: keyspaces have protocols and partitions of their own.", ALONE),
    row("waitaof", 4, Flags::NONE, Route::Session).listed("generic", "7.2.0").says(
        "Wait until what the session has written and seen is on the disks of this datacenter, and of others.",
        "Answers whether it is here, and in how many other datacenters, for the keyspace.",
    ),
];
