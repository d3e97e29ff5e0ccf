//! Commands on values as a whole: copies, dumps, what is told of an object, and sorting.
//!
//! Arguments of the right number arrive, a request or Redis's error leaves. A dump is only bytes here: whoever
//! evaluates reads it.

use super::{Deadline, integer, is_word};
use crate::CommandError;
use bytes::Bytes;
use ensue_types::limits;
use std::num::NonZeroUsize;

/// What the owner of whole values evaluates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whole {
    /// `COPY`: 1, or 0 if nothing is there, or something where it goes to.
    Copy { source: Bytes, target: Bytes, replace: bool },
    /// `DUMP`: the value in the format of an RDB file, or nil.
    Dump { key: Bytes },
    /// `RESTORE`: `OK`. That something is there is refused before a wrong deadline is.
    Restore { key: Bytes, deadline: Result<Option<Deadline>, CommandError>, dump: Bytes, replace: bool },
    /// `OBJECT`.
    Describe { key: Bytes, property: Property },
    /// `OBJECT HELP`.
    DescribeHelp,
    /// `MEMORY USAGE`: the bytes counted for a key, or nil. Of a large row so many columns are looked at, all of them
    /// with nothing given.
    MemoryUsage { key: Bytes, samples: Option<NonZeroUsize> },
    /// `MEMORY HELP`.
    MemoryHelp,
    /// `SORT`, `SORT_RO`: the values, or with a target how many were stored there.
    Sort(Sort),
}

/// What `OBJECT` tells of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    Encoding,
    Frequency,
    IdleTime,
    References,
}

/// `SORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sort {
    pub key: Bytes,
    /// Where the weight of an element is found.
    pub by: Option<Bytes>,
    /// Which of the sorted, from which one on and how many; fewer than none is all.
    pub limit: Option<(i64, i64)>,
    /// What is answered for each; nothing is the element itself.
    pub values: Vec<Bytes>,
    pub descending: bool,
    /// By bytes, and not by numbers.
    pub alphabetic: bool,
    pub target: Option<Bytes>,
    /// `SORT_RO`.
    pub reads_only: bool,
}

impl Whole {
    pub(super) fn is_write(&self) -> bool {
        match self {
            Whole::Copy { .. } | Whole::Restore { .. } => true,
            Whole::Sort(sort) => !sort.reads_only,
            Whole::Dump { .. } | Whole::Describe { .. } | Whole::DescribeHelp => false,
            Whole::MemoryUsage { .. } | Whole::MemoryHelp => false,
        }
    }

    pub(super) fn key(&self) -> Option<&Bytes> {
        match self {
            Whole::Dump { key } | Whole::Restore { key, .. } => Some(key),
            Whole::Copy { .. } | Whole::Describe { .. } | Whole::DescribeHelp | Whole::Sort(_) => None,
            Whole::MemoryUsage { .. } | Whole::MemoryHelp => None,
        }
    }
}

/// Columns of a large row that `MEMORY USAGE` looks at, as in Redis.
const MEMORY_SAMPLES: usize = 5;

pub(super) fn parse(name: &'static str, args: &[Bytes]) -> Result<Option<Whole>, CommandError> {
    Ok(Some(match name {
        "copy" => copy(args)?,
        "dump" => Whole::Dump { key: args[1].clone() },
        "restore" => restore(args)?,
        "object" => describe(args)?,
        "memory" => memory(args)?,
        "sort" => Whole::Sort(sort(args, false)?),
        "sort_ro" => Whole::Sort(sort(args, true)?),
        _ => return Ok(None),
    }))
}

fn copy(args: &[Bytes]) -> Result<Whole, CommandError> {
    let mut replace = false;
    let mut rest = &args[3..];
    while let [word, others @ ..] = rest {
        rest = match others {
            others if is_word(word, "REPLACE") => {
                replace = true;
                others
            }
            [number, ..] if is_word(word, "DB") => {
                return Err(match (0..i64::from(limits::KEYSPACES)).contains(&integer(number)?) {
                    true => CommandError::OtherKeyspace,
                    false => CommandError::Argument("DB index is out of range"),
                });
            }
            _ => return Err(CommandError::Syntax),
        };
    }
    Ok(Whole::Copy { source: args[1].clone(), target: args[2].clone(), replace })
}

/// `IDLETIME` and `FREQ` are checked here, and set where uses of keys are counted.
fn restore(args: &[Bytes]) -> Result<Whole, CommandError> {
    let (mut replace, mut absolute, mut has_idle, mut has_frequency) = (false, false, false, false);
    let mut rest = &args[4..];
    while let [word, others @ ..] = rest {
        rest = match others {
            others if is_word(word, "REPLACE") => {
                replace = true;
                others
            }
            others if is_word(word, "ABSTTL") => {
                absolute = true;
                others
            }
            [number, others @ ..] if is_word(word, "IDLETIME") && !has_frequency => {
                if integer(number)? < 0 {
                    return Err(CommandError::Argument("Invalid IDLETIME value, must be >= 0"));
                }
                has_idle = true;
                others
            }
            [number, others @ ..] if is_word(word, "FREQ") && !has_idle => {
                if !(0..=255).contains(&integer(number)?) {
                    return Err(CommandError::Argument("Invalid FREQ value, must be >= 0 and <= 255"));
                }
                has_frequency = true;
                others
            }
            _ => return Err(CommandError::Syntax),
        };
    }
    let deadline = integer(&args[2]).and_then(|ms| match ms {
        ..0 => Err(CommandError::Argument("Invalid TTL value, must be >= 0")),
        0 => Ok(None),
        ms if absolute => Ok(Some(Deadline::AtMs(ms))),
        ms => Ok(Some(Deadline::InMs(ms))),
    });
    Ok(Whole::Restore { key: args[1].clone(), deadline, dump: args[3].clone(), replace })
}

fn describe(args: &[Bytes]) -> Result<Whole, CommandError> {
    let property = match &args[1] {
        word if is_word(word, "HELP") && args.len() == 2 => return Ok(Whole::DescribeHelp),
        word if is_word(word, "ENCODING") => Property::Encoding,
        word if is_word(word, "FREQ") => Property::Frequency,
        word if is_word(word, "IDLETIME") => Property::IdleTime,
        word if is_word(word, "REFCOUNT") => Property::References,
        word if is_word(word, "HELP") => return Err(CommandError::wrong_arity("object|help")),
        word => return Err(CommandError::unknown_subcommand("object", word)),
    };
    match &args[2..] {
        [key] => Ok(Whole::Describe { key: key.clone(), property }),
        _ => Err(CommandError::wrong_arity(match property {
            Property::Encoding => "object|encoding",
            Property::Frequency => "object|freq",
            Property::IdleTime => "object|idletime",
            Property::References => "object|refcount",
        })),
    }
}

fn memory(args: &[Bytes]) -> Result<Whole, CommandError> {
    match &args[1..] {
        [word] if is_word(word, "HELP") => Ok(Whole::MemoryHelp),
        [word, ..] if is_word(word, "HELP") => Err(CommandError::wrong_arity("memory|help")),
        [word] if is_word(word, "USAGE") => Err(CommandError::wrong_arity("memory|usage")),
        [word, key, options @ ..] if is_word(word, "USAGE") => {
            let mut samples = NonZeroUsize::new(MEMORY_SAMPLES);
            for option in options.chunks(2) {
                samples = match option {
                    [word, count] if is_word(word, "SAMPLES") => match usize::try_from(integer(count)?) {
                        Ok(count) => NonZeroUsize::new(count),
                        Err(_) => return Err(CommandError::Syntax),
                    },
                    _ => return Err(CommandError::Syntax),
                };
            }
            Ok(Whole::MemoryUsage { key: key.clone(), samples })
        }
        _ => Err(CommandError::unknown_subcommand("memory", &args[1])),
    }
}

fn sort(args: &[Bytes], reads_only: bool) -> Result<Sort, CommandError> {
    let mut sort = Sort {
        key: args[1].clone(),
        by: None,
        limit: None,
        values: Vec::new(),
        descending: false,
        alphabetic: false,
        target: None,
        reads_only,
    };
    let mut rest = &args[2..];
    while let [word, others @ ..] = rest {
        rest = match others {
            others if is_word(word, "ASC") || is_word(word, "DESC") => {
                sort.descending = is_word(word, "DESC");
                others
            }
            others if is_word(word, "ALPHA") => {
                sort.alphabetic = true;
                others
            }
            [start, count, others @ ..] if is_word(word, "LIMIT") => {
                sort.limit = Some((integer(start)?, integer(count)?));
                others
            }
            [target, others @ ..] if is_word(word, "STORE") && !reads_only => {
                sort.target = Some(target.clone());
                others
            }
            [pattern, others @ ..] if is_word(word, "BY") => {
                sort.by = Some(pattern.clone());
                others
            }
            [pattern, others @ ..] if is_word(word, "GET") => {
                sort.values.push(pattern.clone());
                others
            }
            _ => return Err(CommandError::Syntax),
        };
    }
    Ok(sort)
}
