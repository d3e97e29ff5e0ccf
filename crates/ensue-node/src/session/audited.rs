//! Which commands are recorded as an operator's, and their words without secrets.
//!
//! A command that begins arrives; an entry leaves, if it is one of the category `@admin`, one that clears whole
//! keyspaces, or a login, of which only failures are recorded. The entry is kept until the command has its answer and
//! becomes the record then. What is shown of an argument is decided by what is known to hold no secret: an unknown rule
//! of `ACL SETUSER` may be a password whose sign was forgotten.

use crate::audit::{AUDITED_WORD_BYTES_MAX, AUDITED_WORDS_MAX, Audit, AuditOutcome};
use bytes::Bytes;
use ensue_resp::{CommandSpec, category};
use ensue_types::{KeyspaceId, Reply, SessionId};
use std::borrow::Cow;

/// A command that is to be recorded when it has its answer.
#[derive(Clone, Debug)]
pub(super) struct Audited {
    words: Vec<Bytes>,
    left_out: usize,
    /// A login.
    only_failures: bool,
    /// Its place in a transaction, of whose answers one is its own.
    place: Option<usize>,
}

/// Whose command it was.
pub(super) struct Sender<'a> {
    pub(super) user: Bytes,
    pub(super) address: &'a str,
    pub(super) client: SessionId,
    pub(super) client_name: &'a Bytes,
    pub(super) keyspace: KeyspaceId,
}

impl Audited {
    /// What is to be recorded of a command, if it is to be.
    pub(super) fn of(
        spec: &CommandSpec,
        subcommand: Option<&str>,
        args: &[Bytes],
        place: Option<usize>,
    ) -> Option<Audited> {
        let only_failures = is_login(spec, args);
        let is_recorded = category::is_administrative(spec, subcommand) && !reads_a_backup(subcommand, args);
        if !only_failures && !is_recorded {
            return None;
        }
        let secrets = Secrets::of(spec.name, subcommand, args);
        let shown = |place: usize| match secrets.has(place) {
            true => Bytes::from_static(HIDDEN),
            false => args[place].slice(..args[place].len().min(AUDITED_WORD_BYTES_MAX)),
        };
        let words = (0..args.len().min(AUDITED_WORDS_MAX)).map(shown).collect();
        let left_out = args.len().saturating_sub(AUDITED_WORDS_MAX);
        Some(Audited { words, left_out, only_failures, place })
    }

    /// The record, now that its command, or the transaction that it is in, is answered; nothing for a login that
    /// succeeded.
    pub(super) fn into_record(self, sender: &Sender<'_>, answer: &Reply) -> Option<Audit> {
        let own = match (self.place, answer) {
            (Some(place), Reply::Array(answers)) => answers.get(place).unwrap_or(answer),
            _ => answer,
        };
        let outcome = outcome(own);
        if self.only_failures && outcome == AuditOutcome::Done {
            return None;
        }
        Some(Audit {
            user: sender.user.clone(),
            address: sender.address.to_owned(),
            client: sender.client,
            client_name: sender.client_name.clone(),
            keyspace: sender.keyspace,
            // Slices of what arrived would keep all of it.
            words: self.words.iter().map(|word| Bytes::copy_from_slice(word)).collect(),
            left_out: self.left_out,
            outcome,
        })
    }
}

fn outcome(answer: &Reply) -> AuditOutcome {
    let Reply::Error(words) = answer else { return AuditOutcome::Done };
    match words.split(' ').next().unwrap_or_default() {
        "NOPERM" => AuditOutcome::Refused,
        code => AuditOutcome::Failed(code.chars().take(CODE_LETTERS_MAX).collect()),
    }
}

/// Letters of the code of an error that are recorded.
const CODE_LETTERS_MAX: usize = 32;

fn is_login(spec: &CommandSpec, args: &[Bytes]) -> bool {
    spec.name == "auth" || spec.name == "hello" && args.iter().any(|word| word.eq_ignore_ascii_case(b"auth"))
}

/// The arguments of a command without secrets, as they are shown to operators. Those of most commands are not copied.
pub(super) fn without_secrets<'a>(spec: &CommandSpec, args: &'a [Bytes]) -> Cow<'a, [Bytes]> {
    if !matches!(spec.name, "auth" | "hello" | "acl" | "config") {
        return Cow::Borrowed(args);
    }
    let subcommand = spec.subcommand(args);
    let secrets = Secrets::of(spec.name, subcommand, args);
    let shown = |place: usize| match secrets.has(place) {
        true => Bytes::from_static(HIDDEN),
        false => args[place].clone(),
    };
    (0..args.len()).map(shown).collect()
}

/// A backup is read by one command a mebibyte; that it was begun and ended is recorded.
fn reads_a_backup(subcommand: Option<&str>, args: &[Bytes]) -> bool {
    let is = |place: usize, name: &[u8]| args.get(place).is_some_and(|word| word.eq_ignore_ascii_case(name));
    subcommand == Some("backup") && (is(2, b"read") || is(2, b"node") && is(4, b"read"))
}

/// Which arguments of a command may be secrets.
struct Secrets<'a> {
    name: &'a str,
    subcommand: Option<&'a str>,
    args: &'a [Bytes],
    login: Login,
}

impl<'a> Secrets<'a> {
    fn of(name: &'a str, subcommand: Option<&'a str>, args: &'a [Bytes]) -> Secrets<'a> {
        let login = if name == "hello" { Login::of_hello(args) } else { Login::none() };
        Secrets { name, subcommand, args, login }
    }

    /// Whether the argument at a place may be a secret.
    fn has(&self, place: usize) -> bool {
        let Secrets { name, subcommand, args, login } = self;
        let argument = &args[place];
        match (*name, *subcommand) {
            // The last word is a password; before it there may be a user.
            ("auth", _) => place > 0 && (place != 1 || args.len() != 3),
            ("hello", _) => login.has_password(place),
            ("acl", Some("setuser")) => place > 2 && !is_open_rule(argument),
            // The command that is tried may be any.
            ("acl", Some("dryrun")) => place > 3,
            ("config", Some("set")) => place > 2 && place % 2 == 1 && !is_open_parameter(&args[place - 1]),
            _ => false,
        }
    }
}

/// Where the words of a login stand among the arguments of a `HELLO`, which is read as it is executed: the name of a
/// client may be the word `auth`.
struct Login {
    /// The places of passwords, in their order.
    passwords: Vec<usize>,
    /// From here on it is not known what the words are.
    unread: usize,
}

impl Login {
    fn none() -> Login {
        Login { passwords: Vec::new(), unread: usize::MAX }
    }

    fn of_hello(args: &[Bytes]) -> Login {
        let is =
            |place: usize, name: &[u8]| args.get(place).is_some_and(|word| word.eq_ignore_ascii_case(name));
        let mut login = Login::none();
        // Without the version it is refused, but what follows may be a login all the same.
        let mut place = if is(1, b"auth") { 1 } else { 2 };
        while place < args.len() {
            if is(place, b"auth") && place + 2 < args.len() {
                login.passwords.push(place + 2);
                place += 3;
            } else if is(place, b"setname") {
                place += 2;
            } else {
                login.unread = place + 1;
                break;
            }
        }
        login
    }

    fn has_password(&self, place: usize) -> bool {
        place >= self.unread || self.passwords.binary_search(&place).is_ok()
    }
}

/// Whether a rule of a user is one that holds no password.
fn is_open_rule(rule: &[u8]) -> bool {
    let rule = rule.to_ascii_lowercase();
    let has_password = rule.iter().any(|byte| b"><#!".contains(byte));
    match rule.first() {
        // Passwords have no place in a selector, but somebody may have put one there.
        Some(b'(') => !has_password,
        Some(b'~' | b'%' | b'&' | b'+' | b'-') => true,
        _ => rule.starts_with(b"db=") || OPEN_RULES.iter().any(|open| open.as_bytes() == rule),
    }
}

const OPEN_RULES: [&str; 16] = [
    "on",
    "off",
    "nopass",
    "resetpass",
    "reset",
    "allkeys",
    "resetkeys",
    "allchannels",
    "resetchannels",
    "allcommands",
    "nocommands",
    "alldbs",
    "resetdbs",
    "clearselectors",
    "sanitize-payload",
    "skip-sanitize-payload",
];

/// Whether the value of a parameter is no secret, by the name of the parameter.
fn is_open_parameter(name: &[u8]) -> bool {
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    !["pass", "auth", "secret", "user"].iter().any(|word| name.contains(word)) || name == "tls-auth-clients"
}

const HIDDEN: &[u8] = b"(hidden)";

#[cfg(test)]
mod tests;
