//! Commands that wait until there is something to pop, or to read of a stream.
//!
//! Arguments of the right number arrive, a request or Redis's error leaves. Whether a command waits is decided by its
//! caller: within `MULTI` and in scripts none does.

use super::lists::{End, end_named};
use super::sorted_sets::{end_of_scores, pop_first_of};
use super::streams::{GroupRead, StreamRead};
use super::{Request, is_word};
use crate::{CommandError, number};
use bytes::Bytes;

/// A pop that may wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocking {
    pub pop: WaitingPop,
    /// How long it waits at most; nothing is for ever.
    pub timeout_ms: Option<u64>,
}

/// What is popped of the first key that has something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitingPop {
    /// `BLPOP`, `BRPOP`: the key and the element.
    Element { keys: Vec<Bytes>, end: End },
    /// `BLMPOP`: as `LMPOP`.
    Elements { keys: Vec<Bytes>, end: End, count: usize },
    /// `BLMOVE`, `BRPOPLPUSH`: as `LMOVE`.
    Move { source: Bytes, target: Bytes, from: End, to: End },
    /// `BZPOPMIN`, `BZPOPMAX`: the key, the member and its score.
    Member { keys: Vec<Bytes>, highest: bool },
    /// `BZMPOP`: as `ZMPOP`.
    Members { keys: Vec<Bytes>, highest: bool, count: usize },
    /// `XREAD BLOCK`.
    Entries(StreamRead),
    /// `XREADGROUP BLOCK`.
    Delivered(GroupRead),
}

/// Of what a pop wants some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    Elements,
    Members,
    Entries,
}

impl WaitingPop {
    /// The keys at which something may come to be popped.
    pub fn keys(&self) -> Vec<Bytes> {
        let of_streams = |streams: &[(Bytes, _)]| streams.iter().map(|(key, _)| key.clone()).collect();
        match self {
            WaitingPop::Element { keys, .. } | WaitingPop::Elements { keys, .. } => keys.clone(),
            WaitingPop::Member { keys, .. } | WaitingPop::Members { keys, .. } => keys.clone(),
            WaitingPop::Move { source, .. } => vec![source.clone()],
            WaitingPop::Entries(read) => of_streams(&read.streams),
            WaitingPop::Delivered(read) => of_streams(&read.streams),
        }
    }

    /// Whether it is offered what a row has; nothing is a row that has none of these.
    pub fn wants(&self, there: Option<Awaited>) -> bool {
        match self {
            WaitingPop::Member { .. } | WaitingPop::Members { .. } => there == Some(Awaited::Members),
            WaitingPop::Entries(_) => there == Some(Awaited::Entries),
            // Its group is gone with the stream, which it is told.
            WaitingPop::Delivered(_) => true,
            _ => there == Some(Awaited::Elements),
        }
    }

    /// Whether what it answers may change data.
    pub fn is_write(&self) -> bool {
        !matches!(self, WaitingPop::Entries(_))
    }

    /// The same of this key alone.
    #[must_use]
    pub fn of(self, key: &Bytes) -> WaitingPop {
        let keys = vec![key.clone()];
        match self {
            WaitingPop::Element { end, .. } => WaitingPop::Element { keys, end },
            WaitingPop::Elements { end, count, .. } => WaitingPop::Elements { keys, end, count },
            WaitingPop::Member { highest, .. } => WaitingPop::Member { keys, highest },
            WaitingPop::Members { highest, count, .. } => WaitingPop::Members { keys, highest, count },
            WaitingPop::Move { .. } => self,
            WaitingPop::Entries(mut read) => {
                read.streams.retain(|(stream, _)| stream == key);
                WaitingPop::Entries(read)
            }
            WaitingPop::Delivered(mut read) => {
                read.streams.retain(|(stream, _)| stream == key);
                WaitingPop::Delivered(read)
            }
        }
    }
}

impl Blocking {
    /// Reads a command, its name first, if it is one that waits.
    pub fn parse(args: &[Bytes]) -> Option<Blocking> {
        match Request::parse(args) {
            Ok(Request::Blocking(blocking)) => Some(blocking),
            _ => None,
        }
    }
}

pub(super) fn parse(name: &'static str, args: &[Bytes]) -> Result<Option<Blocking>, CommandError> {
    let last = &args[args.len() - 1];
    let keys = || args[1..args.len() - 1].to_vec();
    let (pop, timeout_ms) = match name {
        "blpop" | "brpop" => {
            let end = if name == "brpop" { End::Right } else { End::Left };
            (WaitingPop::Element { keys: keys(), end }, timeout(last)?)
        }
        "bzpopmin" | "bzpopmax" => {
            (WaitingPop::Member { keys: keys(), highest: name == "bzpopmax" }, timeout(last)?)
        }
        "blmpop" => {
            let timeout = timeout(&args[1])?;
            let (keys, end, count) = pop_first_of(&args[2..], end_named)?;
            (WaitingPop::Elements { keys, end, count }, timeout)
        }
        "bzmpop" => {
            let timeout = timeout(&args[1])?;
            let (keys, highest, count) = pop_first_of(&args[2..], end_of_scores)?;
            (WaitingPop::Members { keys, highest, count }, timeout)
        }
        "blmove" => {
            let ends = (end_named(&args[3]), end_named(&args[4]));
            let (Some(from), Some(to)) = ends else { return Err(CommandError::Syntax) };
            let (source, target) = (args[1].clone(), args[2].clone());
            (WaitingPop::Move { source, target, from, to }, timeout(last)?)
        }
        "brpoplpush" => {
            let (source, target) = (args[1].clone(), args[2].clone());
            (WaitingPop::Move { source, target, from: End::Right, to: End::Left }, timeout(last)?)
        }
        _ => return Ok(None),
    };
    Ok(Some(Blocking { pop, timeout_ms }))
}

/// Seconds, with a fraction that is rounded up to milliseconds.
fn timeout(argument: &[u8]) -> Result<Option<u64>, CommandError> {
    let ms = match number::parse_score(argument) {
        Some(seconds) if !is_word(argument, "nan") => (seconds * 1_000.0).ceil(),
        _ => return Err(CommandError::Argument("timeout is not a float or out of range")),
    };
    if ms >= i64::MAX as f64 {
        return Err(CommandError::Argument("timeout is out of range"));
    }
    if ms < 0.0 {
        return Err(CommandError::Argument("timeout is negative"));
    }
    Ok(Some(ms as u64).filter(|&ms| ms > 0))
}
