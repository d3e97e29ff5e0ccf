//! The rows of the table, sorted by name.
//!
//! Data only. Arity, flags, places of keys and versions are those of Redis 7.0, so that clients route and document
//! themselves as they are used to; the last line of a row is ours. The words there use: *the later write* for the one
//! with the higher stamp, *unseen* for what another datacenter has done and this one has not received.

mod algebra;
mod bits;
mod bounded;
mod geo;
mod hashes;
mod lists;
mod made;
mod server;
mod sorted_sets;
mod streams;
mod values;

use super::{Combine, CommandSpec, Flags, Route};
use made::{flags, row};

/// Every command, sorted by name.
pub static TABLE: [CommandSpec; ROWS] = {
    let mut all = [OTHERS[0]; ROWS];
    let mut count = place(&mut all, 0, &OTHERS);
    count = place(&mut all, count, &algebra::ROWS);
    count = place(&mut all, count, &bits::ROWS);
    count = place(&mut all, count, &bounded::ROWS);
    count = place(&mut all, count, &geo::ROWS);
    count = place(&mut all, count, &hashes::ROWS);
    count = place(&mut all, count, &lists::ROWS);
    count = place(&mut all, count, &server::ROWS);
    count = place(&mut all, count, &sorted_sets::ROWS);
    count = place(&mut all, count, &streams::ROWS);
    count = place(&mut all, count, &values::ROWS);
    assert!(count == ROWS);
    all
};

const ROWS: usize = OTHERS.len()
    + algebra::ROWS.len()
    + bits::ROWS.len()
    + bounded::ROWS.len()
    + geo::ROWS.len()
    + hashes::ROWS.len()
    + lists::ROWS.len()
    + server::ROWS.len()
    + sorted_sets::ROWS.len()
    + streams::ROWS.len()
    + values::ROWS.len();

/// Inserts rows where they stand by name among the first `count`; answers how many there are then.
const fn place(all: &mut [CommandSpec; ROWS], mut count: usize, rows: &[CommandSpec]) -> usize {
    let mut row = 0;
    while row < rows.len() {
        let mut at = count;
        while at > 0 && is_before(rows[row].name.as_bytes(), all[at - 1].name.as_bytes()) {
            all[at] = all[at - 1];
            at -= 1;
        }
        all[at] = rows[row];
        count += 1;
        row += 1;
    }
    count
}

const fn is_before(name: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < name.len() && at < other.len() {
        if name[at] != other[at] {
            return name[at] < other[at];
        }
        at += 1;
    }
    name.len() < other.len()
}

const READS: &str = "Reads what this datacenter has received; equal everywhere once writes cease.";
const READS_TOGETHER: &str = "Reads what this datacenter has received, all keys at one moment. Keys of several \
    partitions are refused: hash tags put them into one.";
const SCRIPT: &str = "One step at the owner of its keys, which are of one partition. Its effects are \
    replicated, and merge as those of its commands.";
const POPS: &str = "Removes the members that this datacenter sees; another may have answered the same ones.";

const RUNS_SCRIPT: Flags = flags(&[
    Flags::NOSCRIPT,
    Flags::STALE,
    Flags::SKIP_MONITOR,
    Flags::NO_MANDATORY_KEYS,
    Flags::MOVABLE_KEYS,
]);
const RUNS_READING: Flags = flags(&[Flags::READONLY, RUNS_SCRIPT]);

/// All that have no file of their own.
const OTHERS: [CommandSpec; 92] = [
    row("append", 3, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("string", "2.0.0")
        .says(
            "Append to a value.",
            "The later resulting value wins whole; the appended bytes of the other are lost.",
        ),
    row("auth", -2, flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::NO_AUTH, Flags::ALLOW_BUSY]), Route::Session)
        .listed("connection", "1.0.0")
        .says(
            "Authenticate the connection.",
            "Answered by the session alone.",
        ),
    row("branch", -2, flags(&[Flags::WRITE, Flags::NOSCRIPT]), Route::Owner)
        .listed("branch", "0.2.0")
        .subcommands(&[
            "abort", "begin", "ceiling", "checkout", "commit", "conflicts", "defaults", "diff", "digest", "forkpoints", "get",
            "help", "info", "list", "log", "merge", "session",
        ])
        .says(
            "Run transactions on branches, and compare and merge branches.",
            "Commits that conflict fork the keyspace's state; a merge joins branches. Only in branching keyspaces.",
        ),
    row("causal", -2, flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST]), Route::Session)
        .listed("causal", "0.1.0")
        .subcommands(&[
            "backup", "conflicts", "dead", "digest", "discarded", "help", "home", "merge", "move",
            "readmit", "replicas", "retire", "session", "token", "wait",
        ])
        .says(
            "Carry the causal past of a session to another connection or datacenter.",
            "A token read in one datacenter and merged in another makes its writes visible there before the next answer.",
        ),
    row("client", -2, flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE]), Route::Session)
        .listed("connection", "2.4.0")
        .subcommands(&[
            "caching", "getname", "getredir", "help", "id", "info", "kill", "list", "no-evict",
            "no-touch", "pause", "reply", "setinfo", "setname", "tracking", "trackinginfo",
            "unblock", "unpause",
        ])
        .says(
            "Name, list and close connections.",
            "Answered by the session alone.",
        ),
    row("command", -1, flags(&[Flags::LOADING, Flags::STALE]), Route::Session)
        .listed("server", "2.8.13")
        .subcommands(&["count", "docs", "getkeys", "getkeysandflags", "help", "info", "list"])
        .says(
            "Describe the commands.",
            "Answered by the session alone.",
        ),
    row("config", -2, flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::DANGEROUS]), Route::Session)
        .listed("server", "2.0.0")
        .subcommands(&["get", "help", "resetstat", "rewrite", "set"])
        .says(
            "Read and change parameters of the server.",
            "Applies to one node; parameters are not replicated.",
        ),
    row("dbsize", 1, flags(&[Flags::READONLY, Flags::FAST]), Route::AllPartitions)
        .listed("server", "1.0.0")
        .says(
            "Number of keys in the keyspace.",
            "Counts what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("debug", -2, flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE]), Route::Session)
        .listed("server", "1.0.0")
        .says("What test suites ask of a server.", "Answered by the session alone."),
    row("decr", 2, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("string", "1.0.0")
        .says(
            "Subtract one from a counter.",
            "Increments add up, from every datacenter, also those a concurrent SET had not seen.",
        ),
    row("decrby", 3, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("string", "1.0.0")
        .says(
            "Subtract an integer from a counter.",
            "Increments add up, from every datacenter, also those a concurrent SET had not seen.",
        ),
    row("del", -2, flags(&[Flags::WRITE]), Route::Split(Combine::Sum))
        .keys(1, -1, 1)
        .listed("generic", "1.0.0")
        .says(
            "Delete keys.",
            "Deletes what was seen; a later write stays, and so do unseen fields, members and increments.",
        ),
    row("discard", 1, flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::ALLOW_BUSY]), Route::Session)
        .listed("transactions", "2.0.0")
        .says(
            "Forget the queued commands.",
            "Answered by the session alone.",
        ),
    row("echo", 2, flags(&[Flags::LOADING, Flags::STALE, Flags::FAST]), Route::Session)
        .listed("connection", "1.0.0")
        .says(
            "Answer the argument.",
            "Answered by the session alone.",
        ),
    row("eval", -3, RUNS_SCRIPT, Route::Script)
        .counted_keys(2)
        .listed("scripting", "2.6.0")
        .says(
            "Run a Lua script.",
            SCRIPT,
        ),
    row("eval_ro", -3, RUNS_READING, Route::Script)
        .counted_keys(2)
        .listed("scripting", "7.0.0")
        .says(
            "Run a Lua script that does not write.",
            "Reads what the owner of its keys has received; equal everywhere once writes cease.",
        ),
    row("evalsha", -3, RUNS_SCRIPT, Route::Script)
        .counted_keys(2)
        .listed("scripting", "2.6.0")
        .says(
            "Run a Lua script by the SHA-1 of its text.",
            SCRIPT,
        ),
    row("evalsha_ro", -3, RUNS_READING, Route::Script)
        .counted_keys(2)
        .listed("scripting", "7.0.0")
        .says(
            "Run a Lua script that does not write by the SHA-1 of its text.",
            "Reads what the owner of its keys has received; equal everywhere once writes cease.",
        ),
    row("exec", 1, flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::SKIP_SLOWLOG]), Route::Session)
        .listed("transactions", "1.2.0")
        .says(
            "Evaluate the queued commands.",
            "Reads alone are one snapshot where the keyspace's protocol has snapshot reads. Writes of several partitions become visible together in every datacenter where it has write transactions, and are refused where it has none; those of one partition are always one step. Against concurrent writes each column is merged as by its own command. `INFO keyspaces` says what each protocol has.",
        ),
    row("exists", -2, flags(&[Flags::READONLY, Flags::FAST]), Route::Split(Combine::Sum))
        .keys(1, -1, 1)
        .listed("generic", "1.0.0")
        .says(
            "Count which of the keys exist.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("expire", -3, flags(&[Flags::WRITE, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("generic", "1.0.0")
        .says(
            "Set a deadline in seconds from now.",
            "The later deadline setting wins, as a register of its own beside the value.",
        ),
    row("expireat", -3, flags(&[Flags::WRITE, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("generic", "1.2.0")
        .says(
            "Set a deadline in seconds since 1970.",
            "The later deadline setting wins, as a register of its own beside the value.",
        ),
    row("expiretime", 2, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("generic", "7.0.0")
        .says(
            "The deadline of a key in seconds since 1970.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("fcall", -3, RUNS_SCRIPT, Route::Script)
        .counted_keys(2)
        .listed("scripting", "7.0.0")
        .says(
            "Call a function of a library.",
            SCRIPT,
        ),
    row("fcall_ro", -3, RUNS_READING, Route::Script)
        .counted_keys(2)
        .listed("scripting", "7.0.0")
        .says(
            "Call a function that does not write.",
            "Reads what the owner of its keys has received; equal everywhere once writes cease.",
        ),
    row("flushall", -1, flags(&[Flags::WRITE, Flags::DANGEROUS]), Route::AllPartitions)
        .listed("server", "1.0.0")
        .says(
            "Delete every key of every keyspace.",
            "Deletes what this datacenter has received; unseen writes and later ones stay.",
        ),
    row("flushdb", -1, flags(&[Flags::WRITE, Flags::DANGEROUS]), Route::AllPartitions)
        .listed("server", "1.0.0")
        .says(
            "Delete every key of the keyspace.",
            "Deletes what this datacenter has received; unseen writes and later ones stay.",
        ),
    row("delex", -2, flags(&[Flags::WRITE, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("string", "8.4.0")
        .says(
            "Delete a key if its value is, or is not, the one that is named.",
            "Deletes what was seen, as DEL. Conditions are checked against what this datacenter has received.",
        ),
    row("digest", 2, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("string", "8.4.0")
        .says(
            "A digest of a string.",
            READS,
        ),
    row("function", -2, flags(&[Flags::NOSCRIPT]), Route::Session)
        .listed("scripting", "7.0.0")
        .subcommands(&["delete", "dump", "flush", "help", "kill", "list", "load", "restore", "stats"])
        .says(
            "Make libraries of functions known and forget them.",
            "Libraries are known in one datacenter, in all of its partitions; a restarted node has forgotten them.",
        ),
    row("get", 2, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("string", "1.0.0")
        .says(
            "The value of a key.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("getdel", 2, flags(&[Flags::WRITE, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("string", "6.2.0")
        .says(
            "Answer a value and delete the key.",
            "Both datacenters may answer the same value; a later write stays, and so do unseen increments.",
        ),
    row("getex", -2, flags(&[Flags::WRITE, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("string", "6.2.0")
        .says(
            "Answer a value and set its deadline.",
            "The later deadline setting wins, as a register of its own beside the value.",
        ),
    row("getrange", 4, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("string", "2.4.0")
        .says(
            "A part of a value.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("getset", 3, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("string", "1.0.0")
        .says(
            "Set a value and answer the one before.",
            "The later write wins. Both datacenters may answer the same value.",
        ),
    row("hello", -1, flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::NO_AUTH, Flags::ALLOW_BUSY]), Route::Session)
        .listed("connection", "6.0.0")
        .says(
            "Handshake: choose the protocol version, authenticate, name the connection.",
            "Answered by the session alone.",
        ),
    row("incr", 2, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("string", "1.0.0")
        .says(
            "Add one to a counter.",
            "Increments add up, from every datacenter, also those a concurrent SET had not seen.",
        ),
    row("incrby", 3, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("string", "1.0.0")
        .says(
            "Add an integer to a counter.",
            "Increments add up, from every datacenter, also those a concurrent SET had not seen.",
        ),
    row("incrbyfloat", 3, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("string", "2.6.0")
        .says(
            "Add a decimal number to a counter.",
            "Increments add up, from every datacenter, also those a concurrent SET had not seen. Decimal sums are exact.",
        ),
    row("info", -1, flags(&[Flags::LOADING, Flags::STALE, Flags::DANGEROUS]), Route::Session)
        .listed("server", "1.0.0")
        .says(
            "Information and statistics of the server.",
            "Answered for this datacenter.",
        ),
    row("keys", 2, flags(&[Flags::READONLY, Flags::DANGEROUS]), Route::AllPartitions)
        .listed("generic", "1.0.0")
        .says(
            "Every key that matches a pattern.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("lolwut", -1, flags(&[Flags::FAST]), Route::Session)
        .listed("server", "5.0.0")
        .says("The version, in a friendly way.", "Answered by the session alone."),
    row("mget", -2, flags(&[Flags::READONLY, Flags::FAST]), Route::Split(Combine::Gather))
        .keys(1, -1, 1)
        .listed("string", "1.0.0")
        .says(
            "The values of several keys.",
            "Reads from one causally consistent snapshot of this datacenter where the keyspace's protocol has snapshot reads; elsewhere the keys of several partitions are parallel reads. `INFO keyspaces` says which.",
        ),
    row("mset", -3, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Split(Combine::AllOk))
        .keys(1, -1, 2)
        .listed("string", "1.0.1")
        .says(
            "Set several keys.",
            "For each key the later write wins. Keys of several partitions become visible together where the keyspace's protocol has write transactions, and are refused where it has none, except in one without causality, where they are parallel writes. `INFO keyspaces` says which.",
        ),
    row("multi", 1, flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::ALLOW_BUSY]), Route::Session)
        .listed("transactions", "1.2.0")
        .says(
            "Begin to queue the commands of a transaction.",
            "Answered by the session alone; what EXEC then does depends on the keyspace's protocol.",
        ),
    row("persist", 2, flags(&[Flags::WRITE, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("generic", "2.2.0")
        .says(
            "Remove the deadline of a key.",
            "Wins over earlier deadlines and loses to later ones.",
        ),
    row("pexpire", -3, flags(&[Flags::WRITE, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("generic", "2.6.0")
        .says(
            "Set a deadline in milliseconds from now.",
            "The later deadline setting wins, as a register of its own beside the value.",
        ),
    row("pexpireat", -3, flags(&[Flags::WRITE, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("generic", "2.6.0")
        .says(
            "Set a deadline in milliseconds since 1970.",
            "The later deadline setting wins, as a register of its own beside the value.",
        ),
    row("pexpiretime", 2, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("generic", "7.0.0")
        .says(
            "The deadline of a key in milliseconds since 1970.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("ping", -1, flags(&[Flags::FAST]), Route::Session)
        .listed("connection", "1.0.0")
        .says(
            "Answer PONG, or the argument.",
            "Answered by the session alone.",
        ),
    row("psetex", 4, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Key)
        .keys(1, 1, 1)
        .listed("string", "2.6.0")
        .says(
            "Set a value and its deadline in milliseconds.",
            "The later write wins. Value and deadline come from the same one.",
        ),
    row("psubscribe", -2, flags(&[Flags::PUBSUB, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE]), Route::Session)
        .listed("pubsub", "2.0.0")
        .says(
            "Subscribe to the channels that match patterns.",
            "Receives what is published in any datacenter, when what its publisher had seen is visible here.",
        ),
    row("pttl", 2, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("generic", "2.6.0")
        .says(
            "The time a key has left, in milliseconds.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("publish", 3, flags(&[Flags::PUBSUB, Flags::LOADING, Flags::STALE, Flags::FAST]), Route::Session)
        .listed("pubsub", "2.0.0")
        .says(
            "Send a message to the subscribers of a channel.",
            "Reaches the subscribers of every datacenter, in others when its past is visible there; answers how \
            many this one has.",
        ),
    row("pubsub", -2, flags(&[]), Route::Session)
        .subcommands(&["channels", "help", "numpat", "numsub", "shardchannels", "shardnumsub"])
        .listed("pubsub", "2.8.0")
        .says(
            "Tell what is subscribed to.",
            "Counts the clients of this datacenter.",
        ),
    row("punsubscribe", -1, flags(&[Flags::PUBSUB, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE]), Route::Session)
        .listed("pubsub", "2.0.0")
        .says(
            "Unsubscribe from patterns.",
            "Answered by the session alone.",
        ),
    row("quit", -1, flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::NO_AUTH, Flags::ALLOW_BUSY]), Route::Session)
        .listed("connection", "1.0.0")
        .says(
            "Close the connection.",
            "Answered by the session alone.",
        ),
    row("randomkey", 1, flags(&[Flags::READONLY]), Route::AllPartitions)
        .listed("generic", "1.0.0")
        .says(
            "Some key of the keyspace.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("rename", 3, flags(&[Flags::WRITE]), Route::Rename)
        .keys(1, 2, 1)
        .listed("generic", "1.0.0")
        .says(
            "Move a value to another key.",
            "Copies what was seen and deletes it at the source; two concurrent ones to different targets leave both. Between keys of two partitions it needs a protocol with write transactions, or one without causality, where it is parallel writes; elsewhere it is refused. `INFO keyspaces` says which.",
        ),
    row("renamenx", 3, flags(&[Flags::WRITE, Flags::FAST]), Route::Rename)
        .keys(1, 2, 1)
        .listed("generic", "1.0.0")
        .says(
            "Move a value to a key that does not exist.",
            "As RENAME; two concurrent ones to the same target may both answer 1.",
        ),
    row("reset", 1, flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::NO_AUTH, Flags::ALLOW_BUSY]), Route::Session)
        .listed("connection", "6.2.0")
        .says(
            "Return the connection to its first state.",
            "Answered by the session alone. The session forgets its causal past.",
        ),
    row("sadd", -3, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("set", "1.0.0")
        .says(
            "Add members to a set.",
            "Each member is a register of its own: the later of adding and removing it wins.",
        ),
    row("scan", -2, flags(&[Flags::READONLY]), Route::AllPartitions)
        .listed("generic", "2.8.0")
        .says(
            "Iterate over the keys of the keyspace.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("scard", 2, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("set", "1.0.0")
        .says(
            "The number of members of a set.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("script", -2, flags(&[Flags::NOSCRIPT]), Route::Session)
        .listed("scripting", "2.6.0")
        .subcommands(&["debug", "exists", "flush", "help", "kill", "load", "show"])
        .says(
            "Make scripts known and forget them.",
            "Scripts are known in one datacenter, in all of its partitions; a restarted node has forgotten them.",
        ),
    row("select", 2, flags(&[Flags::LOADING, Flags::STALE, Flags::FAST]), Route::Session)
        .listed("connection", "1.0.0")
        .says(
            "Choose the keyspace of the connection.",
            "Answered by the session alone. Each keyspace has a causal past of its own.",
        ),
    row("set", -3, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Key)
        .keys(1, 1, 1)
        .listed("string", "1.0.0")
        .says(
            "Set the value of a key.",
            "The later write wins. Conditions are checked against what this datacenter has received, so two NX may both succeed.",
        ),
    row("setex", 4, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Key)
        .keys(1, 1, 1)
        .listed("string", "2.0.0")
        .says(
            "Set a value and its deadline in seconds.",
            "The later write wins. Value and deadline come from the same one.",
        ),
    row("setnx", 3, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("string", "1.0.0")
        .says(
            "Set the value of a key that does not exist.",
            "The later write wins. Both datacenters may answer 1.",
        ),
    row("setrange", 4, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Key)
        .keys(1, 1, 1)
        .listed("string", "2.2.0")
        .says(
            "Overwrite a part of a value.",
            "The later resulting value wins whole; the other overwritten part is lost.",
        ),
    row("sismember", 3, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("set", "1.0.0")
        .says(
            "Whether a set has a member.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("slowlog", -2, flags(&[Flags::ADMIN, Flags::LOADING, Flags::STALE]), Route::Session)
        .subcommands(&["get", "help", "len", "reset"])
        .listed("server", "2.2.12")
        .says("Commands that took long.", "Tells of the datacenter that is asked."),
    row("smembers", 2, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("set", "1.0.0")
        .says(
            "All members of a set.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("smismember", -3, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("set", "6.2.0")
        .says(
            "Which of the members a set has.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("spublish", 3, flags(&[Flags::PUBSUB, Flags::LOADING, Flags::STALE, Flags::FAST]), Route::Session)
        .listed("pubsub", "7.0.0")
        .says(
            "Send a message to the subscribers of a shard channel.",
            "As PUBLISH: there are no shards, and the names of the two kinds of channels are apart.",
        ),
    row("srandmember", -2, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("set", "1.0.0")
        .says(
            "Some member of a set, or several.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("srem", -3, flags(&[Flags::WRITE, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("set", "1.0.0")
        .says(
            "Remove members from a set.",
            "Each member is a register of its own: the later of adding and removing it wins.",
        ),
    row("sscan", -3, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("set", "2.8.0")
        .says(
            "Iterate over the members of a set.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("ssubscribe", -2, flags(&[Flags::PUBSUB, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE]), Route::Session)
        .listed("pubsub", "7.0.0")
        .says(
            "Subscribe to shard channels.",
            "As SUBSCRIBE: there are no shards, and the names of the two kinds of channels are apart.",
        ),
    row("strlen", 2, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("string", "2.2.0")
        .says(
            "The length of a value.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("subscribe", -2, flags(&[Flags::PUBSUB, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE]), Route::Session)
        .listed("pubsub", "2.0.0")
        .says(
            "Subscribe to channels.",
            "Receives what is published in any datacenter, when what its publisher had seen is visible here.",
        ),
    row("substr", 4, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("string", "1.0.0")
        .says(
            "A part of a value; the same as GETRANGE.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("sunsubscribe", -1, flags(&[Flags::PUBSUB, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE]), Route::Session)
        .listed("pubsub", "7.0.0")
        .says(
            "Unsubscribe from shard channels.",
            "Answered by the session alone.",
        ),
    row("time", 1, flags(&[Flags::LOADING, Flags::STALE, Flags::FAST]), Route::Session)
        .listed("server", "2.6.0")
        .says(
            "The server's wall clock.",
            "Answered by the session alone. Clocks of two datacenters may differ.",
        ),
    row("touch", -2, flags(&[Flags::READONLY, Flags::FAST]), Route::Split(Combine::Sum))
        .keys(1, -1, 1)
        .listed("generic", "3.2.1")
        .says(
            "Count which of the keys exist; there is no access time to alter.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("ttl", 2, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("generic", "1.0.0")
        .says(
            "The time a key has left, in seconds.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("type", 2, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("generic", "1.0.0")
        .says(
            "The type of the value of a key.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("unlink", -2, flags(&[Flags::WRITE, Flags::FAST]), Route::Split(Combine::Sum))
        .keys(1, -1, 1)
        .listed("generic", "4.0.0")
        .says(
            "Delete keys; the same as DEL.",
            "Deletes what was seen; a later write stays, and so do unseen fields, members and increments.",
        ),
    row("unsubscribe", -1, flags(&[Flags::PUBSUB, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE]), Route::Session)
        .listed("pubsub", "2.0.0")
        .says(
            "Unsubscribe from channels.",
            "Answered by the session alone.",
        ),
    row("unwatch", 1, flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::ALLOW_BUSY]), Route::Session)
        .listed("transactions", "2.2.0")
        .says(
            "Forget the watched keys.",
            "Answered by the session alone.",
        ),
    row("wait", 3, flags(&[]), Route::Session)
        .listed("generic", "3.0.0")
        .says(
            "Wait until other datacenters have what the session has written and seen.",
            "Answers how many other datacenters have all of the session's past in the keyspace.",
        ),
    row("watch", -2, flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::ALLOW_BUSY]), Route::Session)
        .keys(1, -1, 1)
        .listed("transactions", "2.2.0")
        .says(
            "Have EXEC do nothing if one of these keys has changed.",
            "EXEC notices every write of this datacenter, and of others what has arrived; one that arrives later is \
            merged as concurrent. Watched keys and those of the transaction are of one partition: hash tags.",
        ),
];
