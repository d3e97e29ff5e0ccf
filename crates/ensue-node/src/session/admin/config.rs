//! `CONFIG`: the directives that the server was started with, and the parameters that can be set while it runs.

use super::cluster_query::{ClusterQuery, Purpose};
use super::order;
use crate::session::core_state::CoreState;
use crate::session::cx::Cx;
use crate::session::parameters;
use crate::session::step::Step;
use bytes::Bytes;
use ensue_resp::{CommandError, glob};
use ensue_types::{Args, Reply};

/// `CONFIG` and its subcommands.
pub(crate) fn on_command(cx: &mut Cx<'_>, args: &Args) -> Step<Box<ClusterQuery>> {
    let subcommand = args[1].to_ascii_lowercase();
    Step::answer(match (subcommand.as_slice(), &args[2..]) {
        (b"get", patterns @ [_, ..]) => matching(cx.core, patterns),
        (b"set", pairs @ [_, _, ..]) => match parameters::check(pairs, &cx.core.config.directives) {
            Ok(settings) if settings.is_empty() => Reply::OK,
            Ok(settings) => return order::set(cx, settings),
            Err(refusal) => refusal,
        },
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
    let is_wanted = |name: &str| patterns.iter().any(|pattern| glob::matches(pattern, name.as_bytes()));
    let fixed = core.config.directives.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let fixed = fixed.filter(|(name, _)| !parameters::is_known(name));
    // What only tests of Redis set is told to those who name it.
    let is_hidden =
        |name: &str| name.ends_with("-delay") && !patterns.iter().any(|one| one == name.as_bytes());
    let all = fixed.chain(core.parameters.all()).filter(|(name, _)| is_wanted(name) && !is_hidden(name));
    let pair = |(name, value): (&str, &str)| (Reply::bulk(name.to_owned()), Reply::bulk(value.to_owned()));
    Reply::Map(all.map(pair).collect())
}

const HELP: [&str; 9] = [
    "CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GET <pattern> [<pattern> ...]",
    "    Return parameters matching the glob-like <pattern> and their values.",
    "SET <parameter> <value> [<parameter> <value> ...]",
    "    Set parameters in all cores of the datacenter, until they are started again.",
    "RESETSTAT",
    "    Reset statistics reported by the INFO command.",
    "HELP",
    "    Print this help.",
];
