//! Commands on HyperLogLogs, which estimate how many different elements were added.
//!
//! Arguments of the right number arrive, a request leaves. Whether a string is a HyperLogLog is the evaluator's
//! question.

use super::is_word;
use crate::CommandError;
use bytes::Bytes;

/// What the owner of HyperLogLogs evaluates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cardinality {
    /// `PFADD`: 1 if the estimate may have changed.
    Add { key: Bytes, elements: Vec<Bytes> },
    /// `PFCOUNT`: the estimate of the union.
    Count { keys: Vec<Bytes> },
    /// `PFMERGE`: `OK`.
    Merge { target: Bytes, sources: Vec<Bytes> },
    /// `PFDEBUG`.
    Inspect { key: Bytes, what: Inspection },
}

/// What `PFDEBUG` shows, or changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inspection {
    Registers,
    Encoding,
    /// Makes it dense: 1 if it was not.
    ToDense,
    /// The operations of a sparse one, in words.
    Decode,
}

impl Cardinality {
    pub(super) fn is_write(&self) -> bool {
        !matches!(self, Cardinality::Count { .. })
    }

    pub(super) fn key(&self) -> Option<&Bytes> {
        match self {
            Cardinality::Add { key, .. } => Some(key),
            Cardinality::Count { .. } | Cardinality::Merge { .. } | Cardinality::Inspect { .. } => None,
        }
    }
}

pub(super) fn parse(name: &'static str, args: &[Bytes]) -> Result<Option<Cardinality>, CommandError> {
    Ok(Some(match name {
        "pfadd" => Cardinality::Add { key: args[1].clone(), elements: args[2..].to_vec() },
        "pfcount" => Cardinality::Count { keys: args[1..].to_vec() },
        "pfmerge" => Cardinality::Merge { target: args[1].clone(), sources: args[2..].to_vec() },
        "pfdebug" => {
            let what = match &args[1] {
                word if is_word(word, "GETREG") => Inspection::Registers,
                word if is_word(word, "ENCODING") => Inspection::Encoding,
                word if is_word(word, "TODENSE") => Inspection::ToDense,
                word if is_word(word, "DECODE") => Inspection::Decode,
                word => return Err(CommandError::unknown_inspection(word)),
            };
            Cardinality::Inspect { key: args[2].clone(), what }
        }
        _ => return Ok(None),
    }))
}
