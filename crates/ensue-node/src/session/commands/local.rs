//! Commands that the session answers without asking anyone.

use crate::command;
use crate::session::contexts::{Contexts, KEYSPACE_OUT_OF_RANGE};
use crate::session::cx::Cx;
use ensue_resp::{CommandError, CommandSpec, describe, number};
use ensue_types::{Args, Now, Reply};

/// The answer to a command that neither changes the session nor waits.
pub(crate) fn answer(now: Now, spec: &CommandSpec, args: &Args) -> Reply {
    match spec.name {
        "ping" => match &args[1..] {
            [] => Reply::Status("PONG".into()),
            [message] => Reply::Bulk(message.clone()),
            _ => CommandError::wrong_arity("ping").reply(),
        },
        "echo" => Reply::Bulk(args[1].clone()),
        "time" => time(now),
        "command" => describe::command(args),
        "lolwut" => Reply::Verbatim("Redis ver. 7.2.4\n".into()),
        "asking" | "readonly" | "readwrite" => Reply::OK,
        "failover" => failover(args),
        "replicaof" | "slaveof" => replica_of(spec, args),
        "module" => module(args),
        // To a client of Redis, whoever takes writes is a master; none follows it.
        "role" => Reply::Array(vec![Reply::bulk("master"), Reply::Integer(0), Reply::Array(Vec::new())]),
        "move" if number::parse_i64(&args[2]).is_none() => CommandError::NotInteger.reply(),
        "move" | "swapdb" => between_keyspaces(spec),
        "shutdown" => SHUTDOWN,
        "pfselftest" => command::self_test(),
        // Only inside MULTI, whose watched keys EXEC has asked for.
        "unwatch" => Reply::OK,
        // Only inside MULTI, where it was checked to name the selected keyspace.
        "select" => Reply::OK,
        "exec" => Reply::error("ERR EXEC without MULTI"),
        "discard" => Reply::error("ERR DISCARD without MULTI"),
        _ => CommandError::unknown_command(args).reply(),
    }
}

/// `REPLICAOF`: a datacenter replicates from all others, by itself.
fn replica_of(spec: &CommandSpec, args: &Args) -> Reply {
    if args[1].eq_ignore_ascii_case(b"no") && args[2].eq_ignore_ascii_case(b"one") {
        return Reply::OK;
    }
    let words = format!(
        "ERR {} is refused: every datacenter takes writes, and no node follows another server; 'ensue import --from' \
         takes over the data of one while its clients write",
        spec.name.to_uppercase()
    );
    Reply::Error(words.into())
}

/// `FAILOVER`: partitions have owners, which their replicas elect.
fn failover(args: &Args) -> Reply {
    match &args[1..] {
        [word] if word.eq_ignore_ascii_case(b"abort") => Reply::error("ERR No failover in progress."),
        _ => FAILOVER,
    }
}

const FAILOVER: Reply = Reply::error(
    "ERR FAILOVER is refused: no node is another one's replica as a whole; 'ensue cluster drain' takes the partitions \
     of a node away, and CAUSAL HOME moves the home of keys",
);
const SHUTDOWN: Reply =
    Reply::error("ERR SHUTDOWN is refused: stop the process with SIGTERM, which loses nothing");

/// `MODULE`: there are none.
fn module(args: &Args) -> Reply {
    match (args[1].to_ascii_lowercase().as_slice(), &args[2..]) {
        (b"list", []) => Reply::Array(Vec::new()),
        (b"help", []) => Reply::Array(MODULE_HELP.iter().map(|&line| Reply::Status(line.into())).collect()),
        (b"load" | b"loadex" | b"unload", _) => Reply::error("ERR modules are not loaded by this server"),
        (b"list", _) => CommandError::wrong_arity("module|list").reply(),
        (b"help", _) => CommandError::wrong_arity("module|help").reply(),
        _ => CommandError::unknown_subcommand("module", &args[1]).reply(),
    }
}

const MODULE_HELP: [&str; 5] = [
    "MODULE <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "LIST",
    "    Return no modules: none can be loaded.",
    "HELP",
    "    Print this help.",
];

/// The answer to what would carry keys from one keyspace to another.
fn between_keyspaces(spec: &CommandSpec) -> Reply {
    let name = spec.name.to_uppercase();
    let words = format!(
        "ERR {name} is refused: each keyspace has a protocol and partitions of its own, and no key goes to another"
    );
    Reply::Error(words.into())
}

fn time(now: Now) -> Reply {
    let ms = now.wall_ms;
    let microseconds = (ms % 1_000) * 1_000;
    Reply::Array(vec![Reply::bulk((ms / 1_000).to_string()), Reply::bulk(microseconds.to_string())])
}

/// `SELECT` outside a MULTI.
pub(crate) fn select(contexts: &mut Contexts, args: &Args) -> Reply {
    match contexts.named_by_select(args) {
        Some(keyspace) => {
            contexts.select(keyspace);
            Reply::OK
        }
        None if number::parse_i64(&args[1]).is_none() => CommandError::NotInteger.reply(),
        None => KEYSPACE_OUT_OF_RANGE,
    }
}

/// The answer to a script in a keyspace of branches.
pub(crate) fn no_scripts(cx: &Cx<'_>) -> Reply {
    let (keyspace, protocol) = (cx.keyspace(), cx.protocol().name());
    let words = format!(
        "ERR a script in keyspace {} is refused: its protocol is {protocol}, in which transactions are \
         those of branches",
        keyspace.0
    );
    Reply::Error(words.into())
}

/// The answer to a command that waits, in a keyspace of branches.
pub(crate) fn no_waiting(cx: &Cx<'_>, spec: &CommandSpec) -> Reply {
    let (keyspace, protocol) = (cx.keyspace(), cx.protocol().name());
    let words = format!(
        "ERR '{}' in keyspace {} is refused: its protocol is {protocol}, in which a session waits on a branch of its \
         own, where nothing comes; ask without waiting, or within MULTI",
        spec.name, keyspace.0
    );
    Reply::Error(words.into())
}

/// The answer to a command on branches in a keyspace that has none.
pub(crate) fn no_branches(cx: &Cx<'_>) -> Reply {
    let (keyspace, protocol) = (cx.keyspace(), cx.protocol().name());
    let words = format!("NOBRANCHES keyspace {} has no branches: its protocol is {protocol}", keyspace.0);
    Reply::Error(words.into())
}
