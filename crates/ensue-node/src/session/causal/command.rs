//! `CAUSAL` and its subcommands: the session's past as something that the client can hold.
//!
//! What waits has a module of its own: `merge`, `replicas`, `shared`. A keyspace whose protocol carries no causality
//! refuses them by name, `DIGEST` and `HELP` excepted; one that looks for no conflicts refuses `CONFLICTS`. What `DEAD`
//! with a name, `BACKUP`, `REPLICAS` and `MOVE` do is no matter of the session's past, and stands elsewhere.

use super::Exchange;
use super::merge::TokenMerge;
use super::replicas::{ReplicaWait, Wish};
use super::shared::SharedContext;
use super::token::{Sealing, Token};
use crate::session::contexts::KEYSPACE_OUT_OF_RANGE;
use crate::session::cx::Cx;
use crate::session::plan::combine::Combination;
use crate::session::plan::{Keyspaces, Plan};
use crate::session::step::Step;
use bytes::Bytes;
use ensue_resp::{CommandError, command, number};
use ensue_types::{Args, Reply, limits, partition_of};

/// How long MERGE and WAIT wait unless told.
const TIMEOUT_MS: u64 = 1_000;
/// Longest name of a shared context.
const SESSION_NAME_BYTES_MAX: usize = 256;

/// `CAUSAL` with a subcommand other than `DEAD name`.
pub(crate) fn on_command(cx: &mut Cx<'_>, shared: &mut SharedContext, args: &Args) -> Step<Exchange> {
    let subcommand = args[1].to_ascii_lowercase();
    let carries = cx.protocol().capabilities().causality;
    let answered = match (subcommand.as_slice(), &args[2..]) {
        (b"help", []) => Reply::Array(HELP.iter().map(|&line| status(line)).collect()),
        (b"digest", rest) if rest.len() <= 1 => return digest(cx, rest.first()),
        (b"token" | b"merge" | b"wait" | b"session", _) if !carries => no_causality(cx),
        (b"token", []) => {
            let (keyspace, context) = (cx.keyspace(), cx.contexts.own().clone());
            Reply::bulk(Token { keyspace, context }.encode(Sealing::of(&cx.core.config)))
        }
        (b"merge", [token, rest @ ..]) => match timeout(rest) {
            Ok(timeout_ms) => return TokenMerge::begin(cx, token, timeout_ms),
            Err(error) => error,
        },
        (b"wait", [datacenters, rest @ ..]) => match (number::parse_i64(datacenters), timeout(rest)) {
            (Some(wanted), Ok(timeout_ms)) if wanted >= 0 => {
                return ReplicaWait::begin(cx, Wish::Datacenters(wanted), timeout_ms);
            }
            (_, Err(error)) => error,
            _ => CommandError::NotInteger.reply(),
        },
        (b"session", rest) if rest.len() <= 1 => session(shared, rest.first()),
        (b"readmit", [name]) => return readmit(cx, name),
        (b"discarded", []) => return fan_out(cx, Combination::Concatenate, false, &[b"discarded"]),
        (b"conflicts", rest) if rest.len() <= 1 => return conflicts(cx, rest.first()),
        _ => command::misused(args).reply(),
    };
    Step::answer(answered)
}

/// `WAIT`: how many other datacenters have all of the session's past, and `WAITAOF`: the same, and whether this one has
/// it. A timeout of zero is none.
pub(crate) fn wait(cx: &mut Cx<'_>, name: &str, args: &Args) -> Step<Exchange> {
    if !cx.protocol().capabilities().causality {
        return Step::answer(no_causality(cx));
    }
    let wish = match (name, number::parse_i64(&args[1])) {
        (_, None) => Err(CommandError::NotInteger.reply()),
        ("waitaof", Some(here)) => disks(here, &args[2]),
        (_, Some(others)) => Ok(Wish::Others(others.max(0))),
    };
    match (wish, args.last().and_then(|ms| number::parse_i64(ms))) {
        (Err(refusal), _) => Step::answer(refusal),
        (_, None) => Step::answer(Reply::error("ERR timeout is not an integer or out of range")),
        (_, Some(..0)) => Step::answer(Reply::error("ERR timeout is negative")),
        (_, Some(ms)) if cx.now.wall_ms.saturating_add(ms as u64) > i64::MAX as u64 => {
            Step::answer(Reply::error("ERR timeout is out of range"))
        }
        (Ok(wish), Some(0)) => ReplicaWait::begin(cx, wish, limits::CAUSAL_TIMEOUT_MS_MAX),
        (Ok(wish), Some(ms)) => ReplicaWait::begin(cx, wish, (ms as u64).min(limits::CAUSAL_TIMEOUT_MS_MAX)),
    }
}

/// What `WAITAOF` waits for: the log of this datacenter, 0 or 1, and so many others.
fn disks(here: i64, others: &Bytes) -> Result<Wish, Reply> {
    if !(0..=1).contains(&here) {
        return Err(Reply::error("ERR value is out of range, value must between 0 and 1"));
    }
    let others = number::parse_i64(others).filter(|others| *others >= 0);
    let others = others.ok_or(Reply::error("ERR value is out of range, must be positive"))?;
    Ok(Wish::Disks { here: here == 1, others })
}

/// Has every partition execute this subcommand.
fn fan_out(cx: &mut Cx<'_>, how: Combination, writes: bool, words: &[&[u8]]) -> Step<Exchange> {
    cx.requests.ask(1);
    Step::InParallel(Plan::fan_out(how, writes, cx.core.partitions(), &command(words)))
}

fn command(words: &[&[u8]]) -> Args {
    let words = words.iter().map(|word| Bytes::copy_from_slice(word));
    std::iter::once(Bytes::from_static(b"causal")).chain(words).collect()
}

/// Joins or leaves a shared context.
fn session(shared: &mut SharedContext, name: Option<&Bytes>) -> Reply {
    if name.is_some_and(|name| name.len() > SESSION_NAME_BYTES_MAX) {
        return Reply::error("ERR the name of a causal session is too long");
    }
    // The client's own bytes would keep all that came with them in memory.
    let name = name.filter(|name| !name.is_empty());
    shared.join(name.map(|name| Bytes::copy_from_slice(name)));
    Reply::OK
}

fn digest(cx: &mut Cx<'_>, keyspace: Option<&Bytes>) -> Step<Exchange> {
    let keyspace = match keyspace {
        None => Some(cx.keyspace()),
        Some(number) => cx.contexts.keyspace_of(number),
    };
    let Some(keyspace) = keyspace else { return Step::answer(KEYSPACE_OUT_OF_RANGE) };
    cx.requests.ask(1);
    let plan = Plan::fan_out(Combination::Digest, false, cx.core.partitions(), &command(&[b"digest"]));
    Step::InParallel(plan.in_keyspaces(Keyspaces::One(keyspace)))
}

/// The owner of a key lists what stands there beside each other; without a key, all list the conflicts that they saw.
fn conflicts(cx: &mut Cx<'_>, key: Option<&Bytes>) -> Step<Exchange> {
    if !cx.protocol().needs().previous_versions {
        let words = format!(
            "ERR keyspace {} uses protocol {}, which looks for no conflicts",
            cx.keyspace().0,
            cx.protocol().name()
        );
        return Step::answer(Reply::Error(words.into()));
    }
    let Some(key) = key else { return fan_out(cx, Combination::Concatenate, false, &[b"conflicts"]) };
    let mut plan = Plan::single(cx.core.partitions());
    plan.add_at(partition_of(key, cx.spread()), false, command(&[b"conflicts", key]));
    cx.requests.ask(1);
    Step::InParallel(plan)
}

/// Every partition of this datacenter looks again at another datacenter that it refuses.
fn readmit(cx: &mut Cx<'_>, name: &Bytes) -> Step<Exchange> {
    let topology = &cx.core.config.topology;
    match topology.datacenter_named(name) {
        None => Step::answer(Reply::error("ERR there is no datacenter of this name")),
        Some(datacenter) if datacenter == topology.datacenter => {
            Step::answer(Reply::error("ERR this is the datacenter itself; name the one that is refused here"))
        }
        Some(_) => fan_out(cx, Combination::AllOk, true, &[b"readmit", name]),
    }
}

fn no_causality(cx: &Cx<'_>) -> Reply {
    let (keyspace, protocol) = (cx.keyspace(), cx.protocol().name());
    let words = format!("ERR keyspace {} uses protocol {protocol}, which carries no causality", keyspace.0);
    Reply::Error(words.into())
}

/// Reads `[TIMEOUT ms]`.
fn timeout(words: &[Bytes]) -> Result<u64, Reply> {
    match words {
        [] => Ok(TIMEOUT_MS),
        [word, ms] if word.eq_ignore_ascii_case(b"timeout") => number::parse_i64(ms)
            .and_then(|ms| u64::try_from(ms).ok())
            .filter(|&ms| ms <= limits::CAUSAL_TIMEOUT_MS_MAX)
            .ok_or(Reply::error("ERR timeout is not an integer or out of range")),
        _ => Err(CommandError::Syntax.reply()),
    }
}

fn status(line: &'static str) -> Reply {
    Reply::Status(line.into())
}

const HELP: [&str; 39] = [
    "CAUSAL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "TOKEN",
    "    Return this connection's causal past in the selected keyspace, as text.",
    "MERGE <token> [TIMEOUT <milliseconds>]",
    "    Wait until this datacenter has everything the token depends on, then add it to this connection's past.",
    "WAIT <datacenters> [TIMEOUT <milliseconds>]",
    "    Wait until that many datacenters, this one included, hold this connection's past durably; return how many do.",
    "SESSION [<name>]",
    "    Share one causal past with every connection of this datacenter that names it; without a name, leave it.",
    "DIGEST [<keyspace>]",
    "    Return a digest of a keyspace, equal in all datacenters once they have received the same writes.",
    "DEAD <datacenter>",
    "    Show what is known of a datacenter that may be lost for good, and a digest of that.",
    "DEAD <datacenter> CONFIRM <digest> [FORCE]",
    "    Declare it lost for good: all others agree on what they have of it and go on without it, for ever.",
    "RETIRE <datacenter> [CONFIRM <digest>]",
    "    Show what the removal of this datacenter means, and a digest; or begin it: it takes no more writes, for ever.",
    "HOME [<pattern> <datacenter> [CONFIRM <digest>]]",
    "    Tell where the homes of keys are; or move one, said at its present home, or, if that was declared dead, at the new.",
    "BACKUP [NODE <number>] BEGIN <name> [HOLD <ms>] | LIST <name> | READ <name> <file> <offset> <length> | END <name>",
    "    Keep what the disks of this datacenter hold at one moment, and read it file by file; `ensue backup` does.",
    "REPLICAS <partition>",
    "    Tell which nodes of this datacenter replicate a partition, and how far each one is.",
    "MOVE <partition> <from> <to>",
    "    Move a replica from one node to another, by their numbers; `ensue cluster move` repeats it until it is done.",
    "READMIT <datacenter>",
    "    Ask a datacenter whose messages are refused here to introduce its directories again.",
    "DISCARDED",
    "    List the updates of all keyspaces that were discarded here with dead datacenters, each as a line of JSON.",
    "CONFLICTS [<key>]",
    "    List the values of a key that stand beside each other, or the conflicts seen here, each as a line of JSON.",
    "HELP",
    "    Print this help.",
    "Errors:",
    "    NOTYET        this datacenter has not received everything a token depends on",
    "    NEVERISSUED   a token names what this datacenter itself has never issued",
    "    DISCARDED     a token's past was lost with a dead datacenter",
    "    CLOCKAHEAD    a token is from further in the future than clocks may differ",
    "    UNAVAILABLE   a partition did not answer; UNKNOWN the same of a write",
];
