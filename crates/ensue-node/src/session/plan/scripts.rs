//! Where a script is executed: at the owner of its keys, which are of one partition, and without keys at the first.

use crate::session::plan::Plan;
use crate::session::plan::combine::Combination;
use bytes::Bytes;
use ensue_resp::{AS_USER, CommandError, CommandSpec};
use ensue_types::{Args, PartitionId, Reply, partition_of};

/// The owner of a script's keys, or why there is none.
pub(in crate::session) fn owner(args: &Args, partitions: u16) -> Result<PartitionId, Reply> {
    let keys = ensue_resp::script_keys(args).map_err(|error| error.reply())?;
    let mut owners = args[keys].iter().map(|key| partition_of(key, partitions));
    let Some(owner) = owners.next() else { return Ok(PartitionId(0)) };
    if owners.all(|other| other == owner) { Ok(owner) } else { Err(SEVERAL) }
}

/// Whether a command comes with the text of its script.
pub(in crate::session) fn has_text(name: &str) -> bool {
    matches!(name, "eval" | "eval_ro")
}

/// Has every partition know a script.
pub(in crate::session) fn load(partitions: u16, args: &Args) -> Plan {
    Plan::fan_out(Combination::First, false, partitions, args)
}

/// Asks a partition whether a script or a function that a command names says that it writes nothing: 1 if so.
pub(in crate::session) fn query_whether_it_reads(
    spec: &CommandSpec,
    args: &Args,
    partitions: u16,
) -> Option<Plan> {
    let word: &'static [u8] = match spec.name {
        "evalsha" => b"script",
        "fcall" => b"function",
        _ => return None,
    };
    let mut plan = Plan::single(partitions);
    let question = vec![Bytes::from_static(word), Bytes::from_static(b"reads"), args[1].clone()];
    plan.add_at(PartitionId(0), false, question);
    Some(plan)
}

/// Asks a partition for the text of a script that a command names by its digest.
pub(in crate::session) fn show(spec: &CommandSpec, args: &Args, partitions: u16) -> Option<Plan> {
    let is_digest = matches!(spec.name, "evalsha" | "evalsha_ro");
    is_digest.then(|| show_text(partitions, args[1].clone()))
}

fn show_text(partitions: u16, digest: Bytes) -> Plan {
    let mut plan = Plan::single(partitions);
    plan.add_at(
        PartitionId(0),
        false,
        vec![Bytes::from_static(b"script"), Bytes::from_static(b"show"), digest],
    );
    plan
}

/// The command with the text in the place of the digest, if that is the answer.
pub(in crate::session) fn with_text(mut args: Args, shown: Reply) -> Args {
    if let Reply::Bulk(text) = shown {
        // What its user may do stays with it: a byte before the name says that the last argument tells.
        let (mark, name) = args[0].split_at(usize::from(args[0].first() == Some(&AS_USER)));
        let is_read_only = name.len() > b"evalsha".len();
        args[0] = Bytes::from([mark, if is_read_only { b"eval_ro" } else { b"eval" }].concat());
        args[1] = text;
    }
    args
}

/// What every partition is asked by `SCRIPT`, or what the session answers itself.
pub(in crate::session) fn admin(partitions: u16, args: &Args) -> Result<Plan, Reply> {
    let word = args[1].to_ascii_lowercase();
    let wrong_arity = |name: &'static str| Err(CommandError::wrong_arity(name).reply());
    match (&word[..], &args[2..]) {
        (b"debug", [word]) => Err(debug(word)),
        (b"debug", _) => wrong_arity("script|debug"),
        (b"load", [_]) => Ok(load(partitions, args)),
        (b"load", _) => wrong_arity("script|load"),
        (b"exists", []) => wrong_arity("script|exists"),
        (b"exists", _) => Ok(Plan::fan_out(Combination::Every, false, partitions, args)),
        (b"show", [digest]) => Ok(show_text(partitions, digest.clone())),
        (b"show", _) => wrong_arity("script|show"),
        (b"flush", []) => Ok(Plan::fan_out(Combination::AllOk, false, partitions, args)),
        (b"flush", [mode]) if mode.eq_ignore_ascii_case(b"sync") || mode.eq_ignore_ascii_case(b"async") => {
            Ok(Plan::fan_out(Combination::AllOk, false, partitions, args))
        }
        (b"flush", _) => Err(Reply::error("ERR SCRIPT FLUSH only support SYNC|ASYNC option")),
        (b"kill", []) => Ok(Plan::fan_out(Combination::Kill, false, partitions, args)),
        (b"kill", _) => wrong_arity("script|kill"),
        (b"help", []) => Err(Reply::Array(HELP.map(|line| Reply::Status(line.into())).to_vec())),
        _ => Err(CommandError::unknown_subcommand("script", &args[1]).reply()),
    }
}

/// `SCRIPT DEBUG`, which clients of a debugger turn off again.
fn debug(word: &Bytes) -> Reply {
    match word.to_ascii_lowercase().as_slice() {
        b"no" => Reply::OK,
        b"yes" | b"sync" => NO_DEBUGGER,
        _ => Reply::error("ERR Use SCRIPT DEBUG YES/SYNC/NO"),
    }
}

const NO_DEBUGGER: Reply =
    Reply::error("ERR SCRIPT DEBUG is refused: this server has no debugger of scripts");

const SEVERAL: Reply = Reply::error(
    "CROSSSLOT the keys of a script are of several partitions; give all of them one hash tag, such as {tag}; \
     nothing was executed",
);

const HELP: [&str; 14] = [
    "SCRIPT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "DEBUG (YES|SYNC|NO)",
    "    Accepted with NO: there is no debugger of scripts.",
    "EXISTS <sha1> [<sha1> ...]",
    "    Return which of the scripts are known in every partition of this datacenter.",
    "FLUSH [ASYNC|SYNC]",
    "    Forget all scripts.",
    "KILL",
    "    Stop the script that runs, unless it has written.",
    "LOAD <script>",
    "    Make a script known without executing it.",
    "SHOW <sha1>",
    "    Return the text of a script.",
    "HELP",
];
