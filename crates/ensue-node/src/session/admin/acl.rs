//! `ACL`: there is one user, `default`, who may do everything, with the password of the configuration or with none.
//!
//! What would make other users or restrict this one is refused by name. Commands have the categories of Redis.

use super::cluster_query::ClusterQuery;
use super::order;
use crate::session::cx::Cx;
use crate::session::step::Step;
use bytes::Bytes;
use ensue_resp::{CommandError, describe, number};
use ensue_types::{Args, Reply};

/// `ACL` and its subcommands.
pub(crate) fn on_command(cx: &mut Cx<'_>, args: &Args) -> Step<Box<ClusterQuery>> {
    let has_password = cx.core.config.password.is_some();
    let word = args[1].to_ascii_lowercase();
    Step::answer(match (word.as_slice(), &args[2..]) {
        (b"whoami", []) => Reply::bulk(USER),
        (b"users", []) => Reply::Array(vec![Reply::bulk(USER)]),
        (b"list", []) => {
            let nopass = if has_password { "" } else { " nopass" };
            Reply::Array(vec![Reply::bulk(format!("user {USER} on{nopass} sanitize-payload ~* &* +@all"))])
        }
        (b"getuser", [user]) if user[..] == *USER.as_bytes() => described(has_password),
        (b"getuser", [_]) => Reply::Nil,
        (b"cat", []) => {
            Reply::Array(describe::CATEGORIES.iter().map(|name| Reply::bulk(&name[1..])).collect())
        }
        (b"cat", [category]) => match describe::of_category(category) {
            Some(names) => Reply::Array(names.into_iter().map(Reply::bulk).collect()),
            None => {
                let category = String::from_utf8_lossy(category);
                Reply::Error(format!("ERR Unknown category '{category}'").into())
            }
        },
        (b"dryrun", [user, command @ ..]) if !command.is_empty() => dry_run(user, command),
        (b"log", []) => return order::denials(cx, LOGGED),
        (b"log", [word]) if word.eq_ignore_ascii_case(b"reset") => return order::forget_denials(cx),
        (b"log", [count]) => match number::parse_i64(count) {
            Some(count @ 0..) => return order::denials(cx, count),
            _ => CommandError::NotInteger.reply(),
        },
        (b"genpass", [] | [_]) => GENPASS,
        (b"setuser" | b"deluser" | b"load" | b"save", _) => refused(&word),
        (b"help", []) => Reply::Array(HELP.iter().map(|&line| Reply::Status(line.into())).collect()),
        (name, _) => match KNOWN.iter().find(|known| known.as_bytes() == name) {
            Some(known) => CommandError::wrong_arity(format!("acl|{known}")).reply(),
            None => CommandError::unknown_subcommand("acl", &args[1]).reply(),
        },
    })
}

fn described(has_password: bool) -> Reply {
    let flags: &[&str] =
        if has_password { &["on", "sanitize-payload"] } else { &["on", "nopass", "sanitize-payload"] };
    Reply::Map(vec![
        (Reply::bulk("flags"), Reply::Set(flags.iter().map(|&flag| Reply::bulk(flag)).collect())),
        // Its digest would tell of a password that is short.
        (Reply::bulk("passwords"), Reply::Array(Vec::new())),
        (Reply::bulk("commands"), Reply::bulk("+@all")),
        (Reply::bulk("keys"), Reply::bulk("~*")),
        (Reply::bulk("channels"), Reply::bulk("&*")),
        (Reply::bulk("selectors"), Reply::Array(Vec::new())),
    ])
}

/// Whether a user may execute a command: this one may execute each that there is.
fn dry_run(user: &Bytes, command: &[Bytes]) -> Reply {
    let shown = |word: &Bytes| String::from_utf8_lossy(word).into_owned();
    if user[..] != *USER.as_bytes() {
        return Reply::Error(format!("ERR User '{}' not found", shown(user)).into());
    }
    match ensue_resp::lookup(&command[0]) {
        None => Reply::Error(format!("ERR Command '{}' not found", shown(&command[0])).into()),
        Some(spec) if !ensue_resp::check_arity(spec, command.len()) => {
            CommandError::wrong_arity(spec.name).reply()
        }
        Some(_) => Reply::OK,
    }
}

fn refused(word: &[u8]) -> Reply {
    let word = String::from_utf8_lossy(word).to_ascii_uppercase();
    let words = format!(
        "ERR ACL {word} is refused: there is one user, default, who may do everything; its password is the directive \
         requirepass"
    );
    Reply::Error(words.into())
}

const USER: &str = "default";
/// Entries that are shown unless told.
const LOGGED: i64 = 10;

const GENPASS: Reply = Reply::error(
    "ERR ACL GENPASS is refused: a session has no source of secrets; `openssl rand -hex 32` makes a password",
);

const KNOWN: [&str; 9] = ["cat", "dryrun", "genpass", "getuser", "help", "list", "log", "users", "whoami"];

const HELP: [&str; 19] = [
    "ACL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CAT [<category>]",
    "    List all commands that belong to <category>, or all command categories",
    "    when no category is specified.",
    "DRYRUN <username> <command> [<arg> ...]",
    "    Returns whether the user can execute the given command without executing the command.",
    "GETUSER <username>",
    "    Get the user's details.",
    "LIST",
    "    Show users details in config file format.",
    "LOG [<count> | RESET]",
    "    Show the ACL log entries: who named a wrong user or password.",
    "USERS",
    "    List all the registered usernames.",
    "WHOAMI",
    "    Return the current connection username.",
    "HELP",
    "    Print this help.",
    "There is one user; what would change it is refused.",
];
