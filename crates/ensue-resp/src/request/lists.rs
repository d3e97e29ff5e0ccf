//! Commands on lists.
//!
//! Arguments of the right number arrive, a request or Redis's error leaves.

use super::sorted_sets::{at_least, pop_first_of};
use super::{integer, is_word};
use crate::{CommandError, number};
use bytes::Bytes;

/// What the owner of lists evaluates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum List {
    /// `LPUSH`, `RPUSH`, and with `if_present` `LPUSHX`, `RPUSHX`: the number of elements then.
    Push { key: Bytes, end: End, values: Vec<Bytes>, if_present: bool },
    /// `LPOP`, `RPOP`: the element, or with a count the elements.
    Pop { key: Bytes, end: End, count: Option<usize> },
    /// `LMPOP`: the key, and the elements removed from it.
    PopFirst { keys: Vec<Bytes>, end: End, count: usize },
    /// `LLEN`.
    Length { key: Bytes },
    /// `LINDEX`.
    Index { key: Bytes, place: i64 },
    /// `LRANGE`.
    Range { key: Bytes, start: i64, stop: i64 },
    /// `LSET`: `OK`.
    Set { key: Bytes, place: i64, value: Bytes },
    /// `LINSERT`: the number of elements then, 0 without the key, -1 without the pivot.
    Insert { key: Bytes, before: bool, pivot: Bytes, value: Bytes },
    /// `LREM`: the number of elements removed. A negative count begins at the end, and 0 is all.
    Remove { key: Bytes, count: i64, value: Bytes },
    /// `LTRIM`: `OK`.
    Trim { key: Bytes, start: i64, stop: i64 },
    /// `LPOS`: a place or nil; with a count places.
    Position { key: Bytes, value: Bytes, search: ListSearch },
    /// `LMOVE`, `RPOPLPUSH`: the element, or nil.
    Move { source: Bytes, target: Bytes, from: End, to: End },
}

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Left,
    Right,
}

/// Which places `LPOS` answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListSearch {
    /// Which match is the first; negative counts matches from the end. Not zero.
    pub rank: i64,
    /// How many, zero for all; nothing for one that is no array.
    pub count: Option<usize>,
    /// How many elements are compared, zero for all.
    pub compared: usize,
}

pub(super) fn parse(name: &'static str, args: &[Bytes]) -> Result<Option<List>, CommandError> {
    let key = args[1].clone();
    let end = if name.starts_with('r') { End::Right } else { End::Left };
    Ok(Some(match name {
        "lpush" | "rpush" | "lpushx" | "rpushx" => {
            List::Push { key, end, values: args[2..].to_vec(), if_present: name.ends_with('x') }
        }
        "lpop" | "rpop" => List::Pop { key, end, count: pop_count(name, &args[2..])? },
        "lmpop" => {
            let (keys, end, count) = pop_first_of(&args[1..], end_named)?;
            List::PopFirst { keys, end, count }
        }
        "llen" => List::Length { key },
        "lindex" => List::Index { key, place: integer(&args[2])? },
        "lrange" => List::Range { key, start: integer(&args[2])?, stop: integer(&args[3])? },
        "lset" => List::Set { key, place: integer(&args[2])?, value: args[3].clone() },
        "linsert" => {
            let before = match &args[2] {
                word if is_word(word, "BEFORE") => true,
                word if is_word(word, "AFTER") => false,
                _ => return Err(CommandError::Syntax),
            };
            List::Insert { key, before, pivot: args[3].clone(), value: args[4].clone() }
        }
        "lrem" => List::Remove { key, count: integer(&args[2])?, value: args[3].clone() },
        "ltrim" => List::Trim { key, start: integer(&args[2])?, stop: integer(&args[3])? },
        "lpos" => List::Position { key, value: args[2].clone(), search: search(&args[3..])? },
        "lmove" => {
            let (from, to) = (end_named(&args[3]), end_named(&args[4]));
            let (Some(from), Some(to)) = (from, to) else { return Err(CommandError::Syntax) };
            List::Move { source: key, target: args[2].clone(), from, to }
        }
        "rpoplpush" => List::Move { source: key, target: args[2].clone(), from: End::Right, to: End::Left },
        _ => return Ok(None),
    }))
}

impl List {
    pub(super) fn is_write(&self) -> bool {
        use List::*;
        match self {
            Length { .. } | Index { .. } | Range { .. } | Position { .. } => false,
            Push { .. } | Pop { .. } | PopFirst { .. } | Set { .. } | Insert { .. } => true,
            Remove { .. } | Trim { .. } | Move { .. } => true,
        }
    }

    pub(super) fn key(&self) -> Option<&Bytes> {
        use List::*;
        match self {
            Push { key, .. } | Pop { key, .. } | Length { key } | Index { key, .. } => Some(key),
            Range { key, .. } | Set { key, .. } | Insert { key, .. } | Remove { key, .. } => Some(key),
            Trim { key, .. } | Position { key, .. } => Some(key),
            PopFirst { .. } | Move { .. } => None,
        }
    }
}

pub(super) fn end_named(word: &Bytes) -> Option<End> {
    match word {
        word if is_word(word, "LEFT") => Some(End::Left),
        word if is_word(word, "RIGHT") => Some(End::Right),
        _ => None,
    }
}

fn pop_count(name: &'static str, args: &[Bytes]) -> Result<Option<usize>, CommandError> {
    match args {
        [] => Ok(None),
        [count] => at_least(count, 0, "value is out of range, must be positive").map(Some),
        _ => Err(CommandError::wrong_arity(name)),
    }
}

fn search(options: &[Bytes]) -> Result<ListSearch, CommandError> {
    let mut search = ListSearch { rank: 1, count: None, compared: 0 };
    for option in options.chunks(2) {
        let [word, value] = option else { return Err(CommandError::Syntax) };
        if is_word(word, "RANK") {
            search.rank = rank(value)?;
        } else if is_word(word, "COUNT") {
            search.count = Some(at_least(value, 0, "COUNT can't be negative")?);
        } else if is_word(word, "MAXLEN") {
            search.compared = at_least(value, 0, "MAXLEN can't be negative")?;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Ok(search)
}

fn rank(argument: &[u8]) -> Result<i64, CommandError> {
    match number::parse_i64(argument) {
        None => Err(CommandError::NotInteger),
        Some(i64::MIN) => Err(CommandError::CountOutOfRange),
        Some(0) => Err(CommandError::Argument(
            "RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start \
             from the end of the list",
        )),
        Some(rank) => Ok(rank),
    }
}
