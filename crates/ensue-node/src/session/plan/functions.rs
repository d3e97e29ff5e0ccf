//! `FUNCTION`: what every partition is asked, or one of them for all, or what the session answers itself.

use crate::session::plan::Plan;
use crate::session::plan::combine::Combination;
use bytes::Bytes;
use ensue_resp::command;
use ensue_types::{Args, Reply};

/// The plan of a `FUNCTION`, or its answer.
pub(in crate::session) fn admin(partitions: u16, args: &Args) -> Result<Plan, Reply> {
    let word = args[1].to_ascii_lowercase();
    let all = |how: Combination, args: &Args| Ok(Plan::fan_out(how, false, partitions, args));
    match (&word[..], &args[2..]) {
        (b"load", [options @ .., text]) => {
            let is_replace = |option: &&Bytes| option.eq_ignore_ascii_case(b"replace");
            if let Some(option) = options.iter().find(|option| !is_replace(option)) {
                let words = format!("ERR Unknown option given: {}", String::from_utf8_lossy(option));
                return Err(Reply::Error(words.into()));
            }
            let mut load = args[..2].to_vec();
            load.extend(options.first().cloned());
            load.push(text.clone());
            all(Combination::Loaded, &load)
        }
        (b"delete", [_]) => all(Combination::Deleted, args),
        (b"flush", []) => all(Combination::AllOk, args),
        (b"flush", [mode]) if mode.eq_ignore_ascii_case(b"sync") || mode.eq_ignore_ascii_case(b"async") => {
            all(Combination::AllOk, args)
        }
        (b"flush", [_]) => Err(Reply::error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")),
        (b"restore", [_] | [_, _]) => all(Combination::Loaded, args),
        (b"list", _) | (b"dump", []) => all(Combination::Same, args),
        (b"kill", []) => all(Combination::Kill, args),
        (b"stats", []) => all(Combination::Running, args),
        (b"help", []) => Err(Reply::Array(HELP.map(|line| Reply::Status(line.into())).to_vec())),
        (b"flush" | b"restore", _) => Err(wrong_number(&word)),
        _ => Err(command::misused(args).reply()),
    }
}

fn wrong_number(word: &[u8]) -> Reply {
    let words = format!(
        "ERR unknown subcommand or wrong number of arguments for '{}'. Try FUNCTION HELP.",
        String::from_utf8_lossy(word)
    );
    Reply::Error(words.into())
}

const HELP: [&str; 22] = [
    "FUNCTION <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "LOAD [REPLACE] <FUNCTION CODE>",
    "    Make a library of functions known in every partition of this datacenter.",
    "DELETE <LIBRARY NAME>",
    "    Forget a library.",
    "LIST [LIBRARYNAME PATTERN] [WITHCODE]",
    "    Return the libraries and their functions.",
    "STATS",
    "    Return the function that runs, and how many libraries and functions there are.",
    "KILL",
    "    Stop the function that runs, unless it has written.",
    "FLUSH [ASYNC|SYNC]",
    "    Forget all libraries.",
    "DUMP",
    "    Return all libraries in the format of Redis.",
    "RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]",
    "    Load the libraries of a dump. APPEND refuses those that are there, REPLACE replaces them, FLUSH forgets",
    "    all others.",
    "HELP",
    "    Print this help.",
    "FCALL <FUNCTION> <NUMKEYS> [<KEY> ...] [<ARG> ...]",
    "    calls a function.",
];
