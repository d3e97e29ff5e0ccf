//! `DEBUG`: what the test suites of Redis and of its clients ask of a server. It has to be allowed by
//! `enable-debug-command`.

use super::populating::Populating;
use crate::command::samples::sample;
use bytes::Bytes;
use ensue_resp::{CommandError, ProtocolVersion, number};
use ensue_types::{Args, Reply};

/// What a `DEBUG` comes to.
pub(crate) enum Debugged {
    Answered(Reply),
    /// Bytes that no other command answers.
    Raw(&'static [u8]),
    /// Nothing is begun on this core for so many milliseconds; then it is answered.
    Sleeps(u64),
    /// Deadlines are looked at by time, as they are, or only after a command has found nothing.
    Expires(bool),
    /// What is told of the value of this key.
    Object(Bytes),
    /// Strings are written that are not there yet.
    Populates(Populating),
}

/// `DEBUG`, of a client that comes from this address.
pub(crate) fn on_command(
    directives: &[(String, String)],
    (address, version): (&str, ProtocolVersion),
    args: &Args,
) -> Debugged {
    let allowed = directives.iter().find(|(name, _)| name == "enable-debug-command");
    let is_local = address.starts_with("127.") || address.starts_with("[::1]");
    let may = match allowed.map(|(_, value)| value.as_str()) {
        Some("yes") => true,
        Some("local") => is_local,
        _ => false,
    };
    if !may {
        return Debugged::Answered(NOT_ALLOWED);
    }
    let word = args[1].to_ascii_lowercase();
    Debugged::Answered(match (word.as_slice(), &args[2..]) {
        (b"sleep", [seconds]) => match number::parse_score(seconds) {
            Some(seconds) => return Debugged::Sleeps((seconds.clamp(0.0, SLEEP_S_MAX) * 1_000.0) as u64),
            None => CommandError::NotFloat.reply(),
        },
        (b"object", [key, ..]) => return Debugged::Object(key.clone()),
        (b"populate", words @ ([_] | [_, _] | [_, _, _])) => match Populating::new(words) {
            Ok(populating) => return Debugged::Populates(populating),
            Err(refusal) => refusal,
        },
        (b"protocol", [kind]) => match raw(&kind.to_ascii_lowercase(), version) {
            Some(bytes) => return Debugged::Raw(bytes),
            None => sample(&kind.to_ascii_lowercase()).unwrap_or(NO_SUCH_KIND),
        },
        (b"error", [words]) => {
            let words = String::from_utf8_lossy(words).replace(['\r', '\n'], " ");
            Reply::Error(words.into())
        }
        (b"log", [_]) => Reply::OK,
        // What is on the disk is what is in memory: there is nothing else to load.
        (b"reload", _) | (b"loadaof", []) => Reply::OK,
        // Rows are absent from their deadline on, deleted or not; this is about when they are deleted and told of.
        (b"set-active-expire", [word]) if number::parse_i64(word).is_some() => {
            return Debugged::Expires(number::parse_i64(word) != Some(0));
        }
        // There is nothing that these would change.
        (b"quicklist-packed-threshold" | b"pause-cron" | b"set-disable-deny-scripts", [_]) => Reply::OK,
        (b"change-repl-id", []) | (b"replybuffer" | b"dict-resizing", [_, ..]) => Reply::OK,
        (b"stringmatch-len", [_, _]) => Reply::OK,
        (b"jmap", _) => Reply::error("ERR DEBUG JMAP is not supported"),
        (b"help", []) => Reply::Array(HELP.iter().map(|&line| Reply::Status(line.into())).collect()),
        _ => {
            let word = String::from_utf8_lossy(&args[1]);
            let words =
                format!("ERR unknown subcommand or wrong number of arguments for '{word}'. Try DEBUG HELP.");
            Reply::Error(words.into())
        }
    })
}

/// Answers of kinds that nothing else has: attributes and pushes.
fn raw(kind: &[u8], version: ProtocolVersion) -> Option<&'static [u8]> {
    let is_new = version == ProtocolVersion::Resp3;
    Some(match kind {
        b"attrib" if is_new => {
            b"|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n$39\r\n\
              Some real reply following the attribute\r\n"
        }
        b"attrib" => b"$39\r\nSome real reply following the attribute\r\n",
        b"push" if is_new => {
            b">2\r\n$16\r\nserver-cpu-usage\r\n:42\r\n$40\r\nSome real reply following the push reply\r\n"
        }
        _ => return None,
    })
}

/// What `DEBUG OBJECT` tells, of the answer to `OBJECT ENCODING`.
pub(crate) fn object(encoding: Reply) -> Reply {
    match encoding {
        Reply::Bulk(encoding) => {
            let encoding = String::from_utf8_lossy(&encoding).into_owned();
            let words = format!(
                "Value at:0x0 refcount:1 encoding:{encoding} serializedlength:0 lru:0 lru_seconds_idle:0"
            );
            Reply::Status(words.into())
        }
        Reply::Nil => CommandError::NoSuchKey.reply(),
        reply => reply,
    }
}

/// An operator who makes a core sleep for longer has made a mistake.
const SLEEP_S_MAX: f64 = 600.0;

const NO_SUCH_KIND: Reply = Reply::error(
    "ERR Wrong protocol type name. Please use one of the following: \
     string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
);

const NOT_ALLOWED: Reply = Reply::error(
    "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a \
     local connection, otherwise you need to set this option in the configuration file, and then restart the server.",
);

const HELP: [&str; 21] = [
    "DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ERROR <string>",
    "    Return an error with these words.",
    "LOADAOF",
    "RELOAD",
    "    Accepted: what is on the disk is what is in memory.",
    "OBJECT <key>",
    "    Show low level info about <key> and the associated value.",
    "POPULATE <count> [<prefix>] [<size>]",
    "    Create <count> strings with names such as key:0, except those that are there.",
    "LOG <message>",
    "    Accepted; nothing is logged.",
    "PROTOCOL <type>",
    "    Reply with a test value of the specified type.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Delete expired keys by time, or only after a command found none; absent they are at once.",
    "SLEEP <seconds>",
    "    Begin no command on this core for so long.",
    "QUICKLIST-PACKED-THRESHOLD | PAUSE-CRON | SET-DISABLE-DENY-SCRIPTS <value>",
    "    Accepted.",
    "HELP",
];
