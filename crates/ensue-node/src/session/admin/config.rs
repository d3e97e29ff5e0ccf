//! `CONFIG`: the parameters that the server was started with. They cannot be changed while it runs.

use super::cluster_query::{ClusterQuery, Purpose};
use crate::session::core_state::CoreState;
use crate::session::cx::Cx;
use crate::session::step::Step;
use bytes::Bytes;
use ensue_resp::{CommandError, glob};
use ensue_types::{Args, Reply};

/// `CONFIG` and its subcommands.
pub(crate) fn on_command(cx: &mut Cx<'_>, args: &Args) -> Step<Box<ClusterQuery>> {
    let subcommand = args[1].to_ascii_lowercase();
    Step::answer(match (subcommand.as_slice(), &args[2..]) {
        (b"get", patterns @ [_, ..]) => matching(cx.core, patterns),
        (b"set", [name, _, ..]) => Reply::Error(
            format!(
                "ERR CONFIG SET failed (possibly related to argument '{}') - can't set immutable config",
                String::from_utf8_lossy(name)
            )
            .into(),
        ),
        (b"resetstat", []) => return ClusterQuery::begin(cx, Purpose::ResetStatistics),
        (b"rewrite", []) => {
            Reply::error("ERR CONFIG REWRITE is not supported: the configuration is only read, at the start")
        }
        (b"help", []) => Reply::Array(HELP.iter().map(|&line| Reply::Status(line.into())).collect()),
        (b"get", _) => CommandError::wrong_arity("config|get").reply(),
        (b"set", _) => CommandError::wrong_arity("config|set").reply(),
        (b"resetstat", _) => CommandError::wrong_arity("config|resetstat").reply(),
        (b"rewrite", _) => CommandError::wrong_arity("config|rewrite").reply(),
        (b"help", _) => CommandError::wrong_arity("config|help").reply(),
        _ => CommandError::unknown_subcommand("config", &args[1]).reply(),
    })
}

fn matching(core: &CoreState, patterns: &[Bytes]) -> Reply {
    let patterns: Vec<Vec<u8>> = patterns.iter().map(|pattern| pattern.to_ascii_lowercase()).collect();
    let directives = core.config.directives.iter();
    let matching = directives
        .filter(|(name, _)| patterns.iter().any(|pattern| glob::matches(pattern, name.as_bytes())))
        .map(|(name, value)| (Reply::bulk(name.clone()), Reply::bulk(value.clone())));
    Reply::Map(matching.collect())
}

const HELP: [&str; 9] = [
    "CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GET <pattern> [<pattern> ...]",
    "    Return parameters matching the glob-like <pattern> and their values.",
    "SET <directive> <value>",
    "    Refused: parameters are set when the server starts.",
    "RESETSTAT",
    "    Reset statistics reported by the INFO command.",
    "HELP",
    "    Print this help.",
];
