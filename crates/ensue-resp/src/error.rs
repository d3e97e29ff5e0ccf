//! What can be wrong with a client's bytes or with its command, in the very words that Redis uses.
//!
//! A [`ParseError`] means that the byte stream has lost its framing: the connection answers it and closes. A
//! [`CommandError`] is the answer to one command, and the next one is fine. Clients match on these words, so they are
//! part of the interface. This module does not decide when an error applies.

use bytes::Bytes;
use ensue_types::{Reply, limits};
use std::borrow::Cow;
use thiserror::Error;

/// The bytes cannot be framed, and neither can anything after them.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ParseError {
    /// The count after `*` is no number, or above the limit.
    #[error("ERR Protocol error: invalid multibulk length")]
    InvalidMultibulkLength,
    /// The length after `$` is no number, negative, or above the limit.
    #[error("ERR Protocol error: invalid bulk length")]
    InvalidBulkLength,
    /// An argument begins with something else than `$`.
    #[error("ERR Protocol error: expected '$', got '{}'", printable(*got))]
    ExpectedBulk {
        /// The byte that stands there.
        got: u8,
    },
    /// The line of a `*` header does not end.
    #[error("ERR Protocol error: too big mbulk count string")]
    TooBigMultibulkCount,
    /// The line of a `$` header does not end.
    #[error("ERR Protocol error: too big bulk count string")]
    TooBigBulkCount,
    /// An inline command does not end.
    #[error("ERR Protocol error: too big inline request")]
    TooBigInline,
    /// The arguments of one command are together longer than any command may be.
    #[error("ERR Protocol error: too big request")]
    TooBigRequest,
    /// An inline command's quotes do not close, or something touches the closing one.
    #[error("ERR Protocol error: unbalanced quotes in request")]
    UnbalancedQuotes,
    /// More arguments than a client may send before it has authenticated.
    #[error("ERR Protocol error: unauthenticated multibulk length")]
    UnauthenticatedMultibulkLength,
    /// A longer argument than a client may send before it has authenticated.
    #[error("ERR Protocol error: unauthenticated bulk length")]
    UnauthenticatedBulkLength,
    /// A reply begins with a byte that names no type.
    #[error("ERR Protocol error: unexpected reply type '{}'", printable(*got))]
    UnexpectedReplyType {
        /// The byte that stands there.
        got: u8,
    },
    /// A reply's first line does not say what its type asks for.
    #[error("ERR Protocol error: invalid reply line")]
    InvalidReplyLine,
    /// A reply nests deeper than any that we send.
    #[error("ERR Protocol error: reply nested too deep")]
    ReplyTooDeep,
}

impl ParseError {
    /// The last answer that the connection gets.
    pub fn reply(&self) -> Reply {
        Reply::Error(Cow::Owned(self.to_string()))
    }
}

/// The answer to a command that cannot be carried out.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CommandError {
    /// No command has this name; the text holds the name and the first arguments.
    #[error("{0}")]
    UnknownCommand(String),
    /// The command has no such subcommand; the text holds both.
    #[error("{0}")]
    UnknownSubcommand(String),
    /// `COPY` with `DB`.
    #[error(
        "ERR COPY with DB is refused: each keyspace has a protocol and partitions of its own; without DB the copy \
         stays in the keyspace that is selected"
    )]
    OtherKeyspace,
    /// `PFDEBUG` has no such subcommand.
    #[error("ERR Unknown PFDEBUG subcommand '{0}'")]
    UnknownInspection(String),
    /// Too few or too many arguments.
    #[error("ERR wrong number of arguments for '{0}' command")]
    WrongArity(Cow<'static, str>),
    /// An option that the command does not have, or not together with another.
    #[error("ERR syntax error")]
    Syntax,
    /// An argument or a stored value is no 64-bit integer.
    #[error("ERR value is not an integer or out of range")]
    NotInteger,
    /// An argument or a stored value is no decimal number.
    #[error("ERR value is not a valid float")]
    NotFloat,
    /// Around what is searched is not said, or said twice.
    #[error("ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for {0}")]
    OneOrigin(&'static str),
    /// How far is searched is not said, or said twice.
    #[error("ERR exactly one of BYRADIUS and BYBOX can be specified for {0}")]
    OneShape(&'static str),
    /// A place on the earth that no sorted set holds; the text has both numbers.
    #[error("ERR invalid longitude,latitude pair {0}")]
    InvalidPlace(String),
    /// The argument of `HINCRBYFLOAT` is beyond every number.
    #[error("ERR value is NaN or Infinity")]
    NotFinite,
    /// A sum with a fraction leaves the range of numbers.
    #[error("ERR increment would produce NaN or Infinity")]
    IncrementNotFinite,
    /// A sum leaves the range of 64-bit integers.
    #[error("ERR increment or decrement would overflow")]
    IncrementOverflow,
    /// `DECRBY` with an amount that has no negative.
    #[error("ERR decrement would overflow")]
    DecrementOverflow,
    /// The field of a hash holds no integer.
    #[error("ERR hash value is not an integer")]
    HashNotInteger,
    /// The field of a hash holds no decimal number.
    #[error("ERR hash value is not a float")]
    HashNotFloat,
    /// A deadline at or before zero, or beyond the end of time.
    #[error("ERR invalid expire time in '{0}' command")]
    InvalidExpire(&'static str),
    /// A word after `EXPIRE` and its kind that is no condition.
    #[error("ERR Unsupported option {0}")]
    UnsupportedOption(String),
    /// `NX` with another condition.
    #[error("ERR NX and XX, GT or LT options at the same time are not compatible")]
    ExpireConditionsNx,
    /// `GT` with `LT`.
    #[error("ERR GT and LT options at the same time are not compatible")]
    ExpireConditionsGtLt,
    /// A cursor that no `SCAN` has given.
    #[error("ERR invalid cursor")]
    InvalidCursor,
    /// A count that has no negative.
    #[error("ERR value is out of range, value must between {} and {}", -i64::MAX, i64::MAX)]
    CountOutOfRange,
    /// A negative offset.
    #[error("ERR offset is out of range")]
    OffsetOutOfRange,
    /// The string that would result is longer than a client could send.
    #[error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")]
    StringTooLong,
    /// The command is longer than any that is executed, and was read past.
    #[error(
        "ERR the command exceeds the maximum allowed size (proto-max-bulk-len): an argument has at most {} MiB, and all \
         of a command together {} MiB; nothing was executed",
        limits::BULK_BYTES_MAX >> 20,
        limits::BULK_BYTES_MAX >> 19
    )]
    TooLong,
    /// A key longer than a log record holds.
    #[error("ERR key exceeds maximum allowed size of {} bytes", limits::KEY_BYTES_MAX)]
    KeyTooLong,
    /// A pattern longer than the matcher accepts.
    #[error("ERR pattern exceeds maximum allowed size of {} bytes", crate::glob::PATTERN_BYTES_MAX)]
    PatternTooLong,
    /// Arguments that a command refuses in words of its own.
    #[error("ERR {0}")]
    Argument(&'static str),
    /// A word that `XCLAIM` does not know.
    #[error("ERR Unrecognized XCLAIM option '{0}'")]
    UnsupportedClaim(String),
    /// A command on several keys that names none.
    #[error("ERR at least 1 input key is needed for '{0}' command")]
    NoInputKey(&'static str),
    /// A score would be infinity less infinity.
    #[error("ERR resulting score is not a number (NaN)")]
    ScoreNotNumber,
    /// The keys of a command that needs them together have several owners.
    #[error(
        "CROSSSLOT the keys of '{0}' are in several partitions, and it is not executed over several; a hash tag, \
         such as the x of {{x}}1 and {{x}}2, keeps keys together"
    )]
    SeveralOwners(&'static str),
    /// The key holds another type than the command works on.
    #[error("WRONGTYPE Operation against a key holding the wrong kind of value")]
    WrongType,
    /// The source of `RENAME` does not exist.
    #[error("ERR no such key")]
    NoSuchKey,
    /// The command is answered by the session, so no owner can evaluate it.
    #[error("ERR command '{0}' is not evaluated by the owner of a key")]
    NotAnOwnersCommand(&'static str),
    /// A script has fewer arguments than it says that it has keys.
    #[error("ERR Number of keys can't be greater than number of args")]
    TooManyKeys,
    /// A script says that it has fewer keys than none.
    #[error("ERR Number of keys can't be negative")]
    NegativeKeys,
    /// `COMMAND GETKEYS` of a command that does not exist.
    #[error("ERR Invalid command specified")]
    InvalidCommand,
    /// `COMMAND GETKEYS` of a command with too few or too many arguments.
    #[error("ERR Invalid number of arguments specified for command")]
    InvalidCommandArity,
    /// `COMMAND GETKEYS` of a command without keys.
    #[error("ERR The command has no key arguments")]
    NoKeyArguments,
}

impl CommandError {
    /// The answer to the command.
    pub fn reply(&self) -> Reply {
        Reply::Error(Cow::Owned(self.to_string()))
    }

    /// For a command that is not in the table. One without a word is one that the parser has read past.
    pub fn no_such_command(args: &[Bytes]) -> CommandError {
        if args.is_empty() { CommandError::TooLong } else { CommandError::unknown_command(args) }
    }

    /// For a name that is not in the table. Clients look for `ERR` and `unknown` to fall back to RESP2.
    pub fn unknown_command(args: &[Bytes]) -> CommandError {
        let mut shown = Vec::new();
        for argument in args.iter().skip(1) {
            if shown.len() >= SHOWN_BYTES_MAX {
                break;
            }
            let room = SHOWN_BYTES_MAX - shown.len();
            shown.push(b'\'');
            shown.extend_from_slice(shown_part(argument, room));
            shown.extend_from_slice(b"' ");
        }
        let name = args.first().map_or(&b""[..], |name| shown_part(name, SHOWN_BYTES_MAX));
        CommandError::UnknownCommand(format!(
            "ERR unknown command '{}', with args beginning with: {}",
            String::from_utf8_lossy(name),
            String::from_utf8_lossy(&shown)
        ))
    }

    /// For the second word of a command such as `CLIENT`.
    pub fn unknown_subcommand(command: &str, subcommand: &[u8]) -> CommandError {
        CommandError::UnknownSubcommand(format!(
            "ERR unknown subcommand '{}'. Try {} HELP.",
            String::from_utf8_lossy(shown_part(subcommand, SHOWN_BYTES_MAX)),
            command.to_ascii_uppercase()
        ))
    }

    /// For a command, by its name in lower case, or a subcommand such as `config|get`.
    pub fn wrong_arity(name: impl Into<Cow<'static, str>>) -> CommandError {
        CommandError::WrongArity(name.into())
    }

    /// For the second word of `PFDEBUG`.
    pub fn unknown_inspection(word: &[u8]) -> CommandError {
        CommandError::UnknownInspection(
            String::from_utf8_lossy(shown_part(word, SHOWN_BYTES_MAX)).into_owned(),
        )
    }

    /// For a word after `EXPIRE` that is no condition.
    pub fn unsupported_option(word: &[u8]) -> CommandError {
        CommandError::UnsupportedOption(
            String::from_utf8_lossy(shown_part(word, SHOWN_BYTES_MAX)).into_owned(),
        )
    }
}

impl From<CommandError> for Reply {
    fn from(error: CommandError) -> Reply {
        error.reply()
    }
}

/// How much of a client's own bytes an error repeats.
const SHOWN_BYTES_MAX: usize = 128;

/// The beginning of an argument, up to a zero byte as in Redis.
fn shown_part(bytes: &[u8], length_max: usize) -> &[u8] {
    let cut = &bytes[..bytes.len().min(length_max)];
    cut.split(|&byte| byte == 0).next().unwrap_or(cut)
}

fn printable(byte: u8) -> char {
    if byte.is_ascii() { char::from(byte) } else { char::REPLACEMENT_CHARACTER }
}

#[cfg(test)]
mod tests;
