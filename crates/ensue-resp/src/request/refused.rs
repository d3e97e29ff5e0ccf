//! Commands with an argument that is wrong, where Redis looks at a key before it reads that argument.
//!
//! A command and the error about its arguments arrive. If Redis would have answered the error at once, nothing leaves;
//! otherwise what is looked at first: a key that is absent, or of another type, may be the answer. What is wrong with
//! several arguments is not asked again: the error is the first one that was found.

use super::{sorted_sets, streams};
use crate::CommandError;
use bytes::Bytes;

/// What is looked at before a command is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// In this order, until one of them is the answer.
    pub keys: Vec<Bytes>,
    pub sought: Sought,
    pub absent: Absent,
    /// The answer if none of the keys is.
    pub error: CommandError,
    pub(super) is_write: bool,
}

/// What a key has to be, unless it is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sought {
    Text,
    Hash,
    Set,
    SortedSet,
    /// A set, sorted or not.
    AnySet,
    List,
    Stream,
    /// A stream, which counts as absent if it has no such group.
    Group(Bytes),
}

/// The answer if a key is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// None: the command is refused for its arguments.
    Refused,
    Nil,
    Zero,
    /// As of a walk that is over.
    Page,
    NoSuchKey,
    /// That groups are of streams that are there; of a stream that is, that it has no such group.
    NoStream,
    /// That there is no such group.
    NoGroup,
    /// The same, in the words of `XREADGROUP`.
    NoGroupToRead,
}

impl Refused {
    /// What is looked at first; nothing if the error is answered at once.
    pub(super) fn of(name: &'static str, args: &[Bytes], error: &CommandError) -> Option<Refused> {
        let (keys, sought, absent) = match name {
            "xread" | "xreadgroup" => {
                let (keys, group) = streams::keys_before_error(name, args)?;
                match group {
                    Some(group) => (keys, Sought::Group(group), Absent::NoGroupToRead),
                    None => (keys, Sought::Stream, Absent::Refused),
                }
            }
            "zunion" | "zinter" | "zdiff" | "zintercard" => {
                (sorted_sets::counted(name, &args[1..]).ok()?.0.to_vec(), Sought::AnySet, Absent::Refused)
            }
            "zunionstore" | "zinterstore" | "zdiffstore" => {
                (sorted_sets::counted(name, &args[2..]).ok()?.0.to_vec(), Sought::AnySet, Absent::Refused)
            }
            _ => {
                let (place, sought, absent) = of_one_key(name, args, error)?;
                (vec![args.get(place)?.clone()], sought, absent)
            }
        };
        // The caller knows whether the command writes.
        Some(Refused { keys, sought, absent, error: error.clone(), is_write: false })
    }
}

/// Where the key stands that is looked at first.
fn of_one_key(name: &str, args: &[Bytes], error: &CommandError) -> Option<(usize, Sought, Absent)> {
    let is_number = *error != CommandError::Syntax;
    Some(match name {
        "lindex" => (1, Sought::List, Absent::Nil),
        "lset" => (1, Sought::List, Absent::NoSuchKey),
        "hscan" | "sscan" | "zscan" if *error != CommandError::InvalidCursor => {
            let sought = match name {
                "hscan" => Sought::Hash,
                "sscan" => Sought::Set,
                _ => Sought::SortedSet,
            };
            (1, sought, Absent::Page)
        }
        // Its words are read first, and then the numbers behind them.
        "getex" if is_number => (1, Sought::Text, Absent::Nil),
        "incrbyfloat" => (1, Sought::Text, Absent::Refused),
        "setrange" if *error == CommandError::StringTooLong => (1, Sought::Text, Absent::Refused),
        "geosearchstore" => (2, Sought::SortedSet, Absent::Refused),
        "geosearch" | "georadius" | "georadius_ro" | "georadiusbymember" | "georadiusbymember_ro" => {
            (1, Sought::SortedSet, Absent::Refused)
        }
        "xdel" => (1, Sought::Stream, Absent::Zero),
        "xack" => (1, Sought::Group(args[2].clone()), Absent::Zero),
        "xclaim" => (1, Sought::Group(args[2].clone()), Absent::NoGroup),
        "xgroup" if *error == streams::INVALID_ID => match args[1].eq_ignore_ascii_case(b"setid") {
            true => (2, Sought::Group(args[3].clone()), Absent::NoStream),
            false => (2, Sought::Stream, absent_of_created(args)),
        },
        "xinfo" if args.len() > 3 && args[1].eq_ignore_ascii_case(b"stream") => {
            (2, Sought::Stream, Absent::NoSuchKey)
        }
        _ => return None,
    })
}

/// Of `XGROUP CREATE`: `MKSTREAM` would have made the stream.
fn absent_of_created(args: &[Bytes]) -> Absent {
    let makes_stream = args[5..].iter().any(|word| word.eq_ignore_ascii_case(b"mkstream"));
    if makes_stream { Absent::Refused } else { Absent::NoStream }
}
