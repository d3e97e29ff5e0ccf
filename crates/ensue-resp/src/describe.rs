//! The answers of `COMMAND`, from the table alone.
//!
//! The arguments of a `COMMAND` arrive, the answer leaves, in the shapes of Redis 7.0. What the table does not hold,
//! such as the arguments of each option, is left out, which clients expect of older servers. It promises the same
//! order everywhere: that of the table.

use crate::category::{of_command, of_spec};
use crate::command::{self, Access, CommandSpec, Flags, Route, TABLE};
use crate::{Combine, CommandError, glob};
use bytes::Bytes;
use ensue_types::Reply;

pub use crate::category::{CATEGORIES, of_category};

/// Answers `COMMAND` and its subcommands; the first argument is the name itself.
pub fn command(args: &[Bytes]) -> Reply {
    let Some(subcommand) = args.get(1) else { return all() };
    let rest = &args[2..];
    let name = subcommand.to_ascii_lowercase();
    let answer = match (name.as_slice(), rest) {
        (b"count", []) => Ok(count()),
        (b"info", _) => Ok(info(rest)),
        (b"docs", _) => Ok(docs(rest)),
        (b"list", _) => list(rest),
        (b"getkeys", [_, _, ..]) => get_keys(rest),
        (b"getkeysandflags", [_, _, ..]) => get_keys_and_flags(rest),
        (b"help", []) => Ok(help()),
        (b"count", _) => Err(CommandError::wrong_arity("command|count")),
        (b"getkeys", _) => Err(CommandError::wrong_arity("command|getkeys")),
        (b"getkeysandflags", _) => Err(CommandError::wrong_arity("command|getkeysandflags")),
        (b"help", _) => Err(CommandError::wrong_arity("command|help")),
        _ => Err(CommandError::unknown_subcommand("command", subcommand)),
    };
    answer.unwrap_or_else(|error| error.reply())
}

/// `COMMAND`: a row for every command.
pub fn all() -> Reply {
    Reply::Array(TABLE.iter().map(describe).collect())
}

/// `COMMAND COUNT`.
pub fn count() -> Reply {
    Reply::Integer(TABLE.len() as i64)
}

/// `COMMAND INFO`: a row for each name, nil for what is none; every command if no name is given.
pub fn info(names: &[Bytes]) -> Reply {
    if names.is_empty() {
        return all();
    }
    Reply::Array(names.iter().map(|name| find(name).map_or(Reply::Nil, |found| found.describe())).collect())
}

/// `COMMAND DOCS`: a map from name to documentation; names of no command are passed over.
pub fn docs(names: &[Bytes]) -> Reply {
    if names.is_empty() {
        return Reply::Map(TABLE.iter().map(|spec| (text(spec.name), document(spec))).collect());
    }
    let entries = names.iter().filter_map(|name| find(name)).map(|found| match found {
        Found::Command(spec) => (text(spec.name), document(spec)),
        Found::Subcommand(spec, subcommand) => {
            (text(spec.full_name(subcommand)), document_subcommand(spec, subcommand))
        }
    });
    Reply::Map(entries.collect())
}

/// Whether a command is listed, by its name and its categories.
type Filter<'f> = Box<dyn Fn(&str, &[&str]) -> bool + 'f>;

/// `COMMAND LIST`, all or by one filter.
pub fn list(filter: &[Bytes]) -> Result<Reply, CommandError> {
    let word = |index: usize, expected: &str| filter[index].eq_ignore_ascii_case(expected.as_bytes());
    let accepts: Filter<'_> = match filter {
        [] => Box::new(|_, _| true),
        [_, _, wanted] if word(0, "FILTERBY") => {
            if word(1, "PATTERN") {
                Box::new(move |name, _| glob::matches(&wanted.to_ascii_lowercase(), name.as_bytes()))
            } else if word(1, "ACLCAT") {
                Box::new(move |_, categories| {
                    categories.iter().any(|category| category.as_bytes()[1..].eq_ignore_ascii_case(wanted))
                })
            } else if word(1, "MODULE") {
                Box::new(|_, _| false)
            } else {
                return Err(CommandError::Syntax);
            }
        }
        _ => return Err(CommandError::Syntax),
    };
    let mut names = Vec::new();
    for spec in &TABLE {
        if accepts(spec.name, &of_command(spec)) {
            names.push(text(spec.name));
        }
        let accepted =
            |subcommand: &&str| accepts(&spec.full_name(subcommand), &of_spec(spec, Some(subcommand)));
        let subcommands = spec.subcommands.iter().filter(|subcommand| accepted(subcommand));
        names.extend(subcommands.map(|subcommand| text(spec.full_name(subcommand))));
    }
    Ok(Reply::Array(names))
}

/// `COMMAND GETKEYS`: the keys of a whole command, which is not evaluated.
pub fn get_keys(args: &[Bytes]) -> Result<Reply, CommandError> {
    let spec = spec_of_keys(args)?;
    Ok(Reply::Array(command::keys(spec, args).cloned().map(Reply::Bulk).collect()))
}

/// `COMMAND GETKEYSANDFLAGS`: the same, and what the command does with them.
pub fn get_keys_and_flags(args: &[Bytes]) -> Result<Reply, CommandError> {
    let spec = spec_of_keys(args)?;
    let entry = |(place, access): (usize, Access)| {
        Reply::Array(vec![Reply::Bulk(args[place].clone()), words(access.names())])
    };
    Ok(Reply::Array(command::key_accesses(spec, args).map(entry).collect()))
}

/// The row of a whole command that has keys.
fn spec_of_keys(args: &[Bytes]) -> Result<&'static CommandSpec, CommandError> {
    let spec = args.first().and_then(|name| command::lookup(name)).ok_or(CommandError::InvalidCommand)?;
    if spec.first_key == 0 && spec.counted_keys == 0 && !spec.keys_of_streams {
        return Err(CommandError::NoKeyArguments);
    }
    if !command::check_arity(spec, args.len()) {
        return Err(CommandError::InvalidCommandArity);
    }
    if spec.route == Route::Script {
        // It may do without keys, but not with a wrong number of them.
        command::script_keys(args)?;
    }
    Ok(spec)
}

/// `COMMAND HELP`.
pub fn help() -> Reply {
    Reply::Array(HELP.iter().map(|line| Reply::Status((*line).into())).collect())
}

/// What a name of `COMMAND INFO` stands for.
#[derive(Clone, Copy)]
enum Found {
    Command(&'static CommandSpec),
    Subcommand(&'static CommandSpec, &'static str),
}

impl Found {
    fn describe(self) -> Reply {
        match self {
            Found::Command(spec) => describe(spec),
            Found::Subcommand(spec, subcommand) => describe_subcommand(spec, subcommand),
        }
    }
}

/// Finds `get` or `config|get`.
fn find(name: &[u8]) -> Option<Found> {
    let mut parts = name.splitn(2, |&byte| byte == b'|');
    let spec = command::lookup(parts.next()?)?;
    let Some(subcommand) = parts.next() else { return Some(Found::Command(spec)) };
    let known = spec.subcommands.iter().find(|known| known.as_bytes().eq_ignore_ascii_case(subcommand))?;
    Some(Found::Subcommand(spec, known))
}

/// The ten elements of a row.
fn describe(spec: &'static CommandSpec) -> Reply {
    let subcommands = spec.subcommands.iter().map(|name| describe_subcommand(spec, name));
    let flags = if spec.is_container() { Flags::NONE } else { spec.flags };
    Reply::Array(vec![
        text(spec.name),
        Reply::Integer(i64::from(spec.arity)),
        words(flags.names()),
        Reply::Integer(i64::from(spec.first_key)),
        Reply::Integer(i64::from(spec.last_key)),
        Reply::Integer(i64::from(spec.step)),
        words(of_command(spec)),
        Reply::Set(tips(spec).iter().map(|tip| text(*tip)).collect()),
        Reply::Set(key_specs(spec)),
        Reply::Array(subcommands.collect()),
    ])
}

fn describe_subcommand(spec: &CommandSpec, subcommand: &str) -> Reply {
    Reply::Array(vec![
        text(spec.full_name(subcommand)),
        Reply::Integer(SUBCOMMAND_ARITY),
        words(spec.flags.names()),
        Reply::Integer(0),
        Reply::Integer(0),
        Reply::Integer(0),
        words(of_spec(spec, Some(subcommand))),
        Reply::Set(Vec::new()),
        Reply::Set(Vec::new()),
        Reply::Array(Vec::new()),
    ])
}

fn document(spec: &CommandSpec) -> Reply {
    let mut entries = vec![
        (text("summary"), text(spec.summary)),
        (text("since"), text(spec.since)),
        (text("group"), text(spec.group)),
        (text("concurrency"), text(spec.concurrency)),
    ];
    if !spec.subcommands.is_empty() {
        let subcommands =
            spec.subcommands.iter().map(|name| (text(spec.full_name(name)), document_subcommand(spec, name)));
        entries.push((text("subcommands"), Reply::Map(subcommands.collect())));
    }
    Reply::Map(entries)
}

fn document_subcommand(spec: &CommandSpec, subcommand: &str) -> Reply {
    let summary = format!("{} Here: {}.", spec.summary, subcommand.to_ascii_uppercase());
    Reply::Map(vec![
        (text("summary"), text(summary)),
        (text("since"), text(spec.since)),
        (text("group"), text(spec.group)),
    ])
}

/// What a client that routes by itself should know.
fn tips(spec: &CommandSpec) -> &'static [&'static str] {
    match (spec.route, spec.name) {
        (Route::Split(Combine::Gather), _) => &["request_policy:multi_shard"],
        (Route::Split(Combine::Sum), _) => &["request_policy:multi_shard", "response_policy:agg_sum"],
        (Route::Split(Combine::AllOk), _) => &["request_policy:multi_shard", "response_policy:all_succeeded"],
        (_, "ping" | "flushall" | "flushdb") => {
            &["request_policy:all_shards", "response_policy:all_succeeded"]
        }
        (_, "dbsize") => &["request_policy:all_shards", "response_policy:agg_sum"],
        (_, "keys") => &["request_policy:all_shards", "nondeterministic_output_order"],
        (_, "randomkey") => &["request_policy:all_shards", "nondeterministic_output"],
        (_, "scan") => &["nondeterministic_output", "request_policy:special"],
        (_, "info") => &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
        (_, "time" | "ttl" | "pttl" | "hscan" | "sscan" | "zscan" | "srandmember" | "zrandmember") => {
            &["nondeterministic_output"]
        }
        (_, "command" | "hgetall" | "hkeys" | "hvals" | "smembers") => &["nondeterministic_output_order"],
        _ => &[],
    }
}

/// Where the keys stand, for clients that do not read the three numbers.
fn key_specs(spec: &CommandSpec) -> Vec<Reply> {
    if spec.route == Route::Script {
        let begin = map([("index", Reply::Integer(2))]);
        let counted = [("keynumidx", 0), ("firstkey", 1), ("keystep", 1)];
        let counted = map(counted.map(|(name, value)| (name, Reply::Integer(value))));
        return vec![map([
            ("flags", words(command::first_access(spec).names())),
            ("begin_search", map([("type", text("index")), ("spec", begin)])),
            ("find_keys", map([("type", text("keynum")), ("spec", counted)])),
        ])];
    }
    if spec.first_key == 0 {
        return Vec::new();
    }
    let last = if spec.last_key < 0 { spec.last_key } else { spec.last_key - spec.first_key };
    let begin = map([("index", Reply::Integer(i64::from(spec.first_key)))]);
    let range = map([
        ("lastkey", Reply::Integer(i64::from(last))),
        ("keystep", Reply::Integer(i64::from(spec.step))),
        ("limit", Reply::Integer(0)),
    ]);
    vec![map([
        ("flags", words(command::first_access(spec).names())),
        ("begin_search", map([("type", text("index")), ("spec", begin)])),
        ("find_keys", map([("type", text("range")), ("spec", range)])),
    ])]
}

fn text(words: impl Into<Bytes>) -> Reply {
    Reply::Bulk(words.into())
}

fn words(names: impl IntoIterator<Item = &'static str>) -> Reply {
    Reply::Set(names.into_iter().map(|name| Reply::Status(name.into())).collect())
}

fn map<const N: usize>(entries: [(&'static str, Reply); N]) -> Reply {
    Reply::Map(entries.into_iter().map(|(key, value)| (text(key), value)).collect())
}

/// At least the container's name and its own.
const SUBCOMMAND_ARITY: i64 = -2;

const HELP: [&str; 16] = [
    "COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "(no subcommand)",
    "    Return details about all commands.",
    "COUNT",
    "    Return the number of commands.",
    "LIST [FILTERBY (MODULE <name>|ACLCAT <category>|PATTERN <pattern>)]",
    "    Return the names of commands.",
    "INFO [<command-name> ...]",
    "    Return details about the named commands, or about all.",
    "DOCS [<command-name> ...]",
    "    Return documentation of the named commands, or of all.",
    "GETKEYS <full-command>",
    "    Return the keys of a full command.",
    "GETKEYSANDFLAGS <full-command>",
    "    Return the keys of a full command, each with what the command does with it.",
    "HELP",
];

#[cfg(test)]
mod tests;
