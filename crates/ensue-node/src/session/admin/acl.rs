//! `ACL`. What changes users is an order to all cores of the datacenter; passwords and files are errands before that.

use super::errand::{Outcome, Then, Waiting};
use super::order;
use crate::errand::{Errand, ErrandDone};
use crate::session::cx::Cx;
use crate::session::step::Step;
use bytes::Bytes;
use ensue_acl::limits::GENPASS_BITS_MAX;
use ensue_acl::{Hasher, Prepared, Unhashed, User, Users, Work, needs_hashing, query};
use ensue_resp::{CommandError, command, number};
use ensue_types::{Args, Reply};

/// `ACL` and its subcommands, of a session of this user.
pub(crate) fn on_command(cx: &mut Cx<'_>, own: &User, args: &Args) -> Step<Outcome> {
    let word = args[1].to_ascii_lowercase();
    let users = cx.core.access.users();
    Step::answer(match (word.as_slice(), &args[2..]) {
        (b"whoami", []) => Reply::Bulk(own.name().clone()),
        (b"users", []) => users.names(),
        (b"list", []) => users.list(),
        (b"getuser", [user]) => users.describe(user),
        (b"cat", []) => query::categories(),
        (b"cat", [category]) => query::members(category),
        (b"dryrun", [user, command @ ..]) if !command.is_empty() => {
            query::dry_run(users, user, command, cx.keyspace())
        }
        (b"setuser", [_, ..]) => return set_user(cx, &args[2..].to_vec()),
        (b"deluser", names @ [_, ..]) => return delete(cx, names),
        (b"log", words) => return log(cx, words),
        (b"genpass", words @ ([] | [_])) => match query::genpass_bits(words.first().map(|bits| &bits[..])) {
            Ok(bits) => return send_for(cx, Errand::Draw(GENPASS_BITS_MAX / 8), Then::Generate(bits)),
            Err(refusal) => refusal,
        },
        (b"load" | b"save", []) if !cx.core.config.has_users_file => NO_FILE,
        (b"load", []) => {
            let opens_channels = cx.core.parameters.value("acl-pubsub-default") == "allchannels";
            return send_for(cx, Errand::LoadUsers { opens_channels }, Then::Load);
        }
        (b"save", []) => {
            let text = users.save().into();
            return send_for(cx, Errand::SaveUsers(text), Then::Save);
        }
        (b"help", []) => Reply::Array(HELP.iter().map(|&line| Reply::Status(line.into())).collect()),
        (b"cat", _) => {
            Reply::error("ERR unknown subcommand or wrong number of arguments for 'CAT'. Try ACL HELP.")
        }
        _ => command::misused(args).reply(),
    })
}

pub(super) fn send_for(cx: &mut Cx<'_>, errand: Errand, then: Then) -> Step<Outcome> {
    Step::Waits(Outcome::Waits(Waiting::begin(cx, errand, then)))
}

fn set_user(cx: &mut Cx<'_>, words: &Args) -> Step<Outcome> {
    let rules = &words[1..];
    if !needs_hashing(rules) {
        return apply(cx, words, Prepared::default());
    }
    match Work::of(rules, cx.core.access.users().user(&words[0]).map(|user| &**user)) {
        Ok(work) => send_for(cx, Errand::Hash(work), Then::SetUser(words.clone())),
        // Which rule is wrong, applying them tells.
        Err(_) => apply(cx, words, Prepared::default()),
    }
}

/// Applies the rules to a copy, and tells all cores what the user is then.
fn apply(cx: &mut Cx<'_>, words: &Args, mut hasher: impl Hasher) -> Step<Outcome> {
    let mut users: Users = cx.core.access.users().clone();
    match users.set(&words[0], &words[1..], &mut hasher) {
        Ok(user) => {
            let stamp = cx.core.access.stamp(cx.now);
            order::set_user(cx, stamp, user.describe().into()).map(Outcome::from)
        }
        Err(error) => Step::answer(error.reply()),
    }
}

fn delete(cx: &mut Cx<'_>, names: &[Bytes]) -> Step<Outcome> {
    let mut users = cx.core.access.users().clone();
    match users.delete(names) {
        Ok(gone) => {
            let stamp = cx.core.access.stamp(cx.now);
            order::delete_users(cx, stamp, names, gone.len()).map(Outcome::from)
        }
        Err(refusal) => Step::answer(refusal),
    }
}

fn log(cx: &mut Cx<'_>, words: &[Bytes]) -> Step<Outcome> {
    match words {
        [] => order::refusals(cx, LOGGED).map(Outcome::from),
        [word] if word.eq_ignore_ascii_case(b"reset") => order::forget_refusals(cx).map(Outcome::from),
        [count] => match number::parse_i64(count) {
            Some(count @ 0..) => order::refusals(cx, count).map(Outcome::from),
            _ => Step::answer(CommandError::NotInteger.reply()),
        },
        _ => Step::answer(CommandError::wrong_arity("acl|log").reply()),
    }
}

/// An errand is done that is not about who logs in.
pub(super) fn on_done(cx: &mut Cx<'_>, then: Then, done: ErrandDone) -> Step<Outcome> {
    match (then, done) {
        (Then::SetUser(words), ErrandDone::Hashed(prepared)) => apply(cx, &words, prepared),
        (Then::Generate(bits), ErrandDone::Drawn(bytes)) => {
            let random = bytes.try_into().unwrap_or([0; GENPASS_BITS_MAX / 8]);
            Step::answer(query::genpass(bits, &random))
        }
        (Then::Load, ErrandDone::Loaded(Ok(text))) => load(cx, &text),
        (Then::Load, ErrandDone::Loaded(Err(why))) => Step::answer(failed("loading", &why)),
        (Then::Save, ErrandDone::Saved(Ok(()))) => Step::answer(Reply::OK),
        (Then::Save, ErrandDone::Saved(Err(why))) => Step::answer(failed("saving", &why)),
        _ => Step::answer(UNEXPECTED),
    }
}

/// The file was read, and what it says is told to all cores, with verifiers in place of passwords.
fn load(cx: &mut Cx<'_>, text: &[u8]) -> Step<Outcome> {
    let mut users = cx.core.access.users().clone();
    // A file that somebody wrote may hold passwords; those are hashed where it is read.
    match users.load(FILE, text, &mut Unhashed) {
        Ok(_) => {
            let stamp = cx.core.access.stamp(cx.now);
            order::load_users(cx, stamp, users.save().into()).map(Outcome::from)
        }
        Err(error) => Step::answer(error.reply()),
    }
}

fn failed(what: &str, why: &str) -> Reply {
    Reply::Error(format!("ERR There was an error {what} the ACLs: {why}").into())
}

/// What errors name as the file.
const FILE: &str = "aclfile";
/// Entries that are shown unless told.
const LOGGED: i64 = 10;
const UNEXPECTED: Reply = Reply::error("ERR what was sent for came back as something else");
const NO_FILE: Reply = Reply::error(
    "ERR This Redis instance is not configured to use an ACL file. Name one with the directive `aclfile` to use ACL \
     LOAD and ACL SAVE.",
);

const HELP: [&str; 29] = [
    "ACL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CAT [<category>]",
    "    List all commands that belong to <category>, or all command categories",
    "    when no category is specified.",
    "DELUSER <username> [<username> ...]",
    "    Delete a list of users, in all cores of the datacenter.",
    "DRYRUN <username> <command> [<arg> ...]",
    "    Returns whether the user can execute the given command without executing the command.",
    "GETUSER <username>",
    "    Get the user's details.",
    "GENPASS [<bits>]",
    "    Generate a secure user password of 256 bits, or of so many.",
    "LIST",
    "    Show users details in config file format.",
    "LOAD",
    "    Reload users from the ACL file of this node, for all cores of the datacenter.",
    "LOG [<count> | RESET]",
    "    Show the ACL log entries: who was refused what.",
    "SAVE",
    "    Save the users to the ACL file of this node.",
    "SETUSER <username> <attribute> [<attribute> ...]",
    "    Create or modify a user with the specified attributes, in all cores of the",
    "    datacenter.",
    "USERS",
    "    List all the registered usernames.",
    "WHOAMI",
    "    Return the current connection username.",
    "HELP",
    "    Print this help.",
];
