//! Commands on several sets, and those that take members out.

use crate::CommandError;
use crate::request::sorted_sets::{self, SortedSet};
use bytes::Bytes;

/// What the owner of several sets evaluates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetAlgebra {
    /// `SUNION`, `SINTER`, `SDIFF`: a set.
    Combine { operator: SetOperator, keys: Vec<Bytes> },
    /// `SUNIONSTORE`, `SINTERSTORE`, `SDIFFSTORE`: the number of members stored.
    CombineStore { operator: SetOperator, target: Bytes, keys: Vec<Bytes> },
    /// `SINTERCARD`: how many members all have, at most as many as the limit.
    IntersectionLength { keys: Vec<Bytes>, limit: Option<usize> },
    /// `SPOP`: a member or nil; with a count a set of them.
    Pop { key: Bytes, count: Option<usize> },
    /// `SMOVE`: 1 or 0.
    Move { source: Bytes, target: Bytes, member: Bytes },
}

/// How one set is made of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOperator {
    /// The members of any.
    Union,
    /// The members of all.
    Intersection,
    /// The members of the first that no other has.
    Difference,
}

impl SetAlgebra {
    pub(in crate::request) fn is_write(&self) -> bool {
        match self {
            SetAlgebra::Combine { .. } | SetAlgebra::IntersectionLength { .. } => false,
            SetAlgebra::CombineStore { .. } | SetAlgebra::Pop { .. } | SetAlgebra::Move { .. } => true,
        }
    }

    pub(in crate::request) fn key(&self) -> Option<&Bytes> {
        match self {
            SetAlgebra::Pop { key, .. } => Some(key),
            SetAlgebra::Combine { .. } | SetAlgebra::CombineStore { .. } => None,
            SetAlgebra::IntersectionLength { .. } | SetAlgebra::Move { .. } => None,
        }
    }
}

pub(super) fn parse(name: &'static str, args: &[Bytes]) -> Result<Option<SetAlgebra>, CommandError> {
    let operator = match name {
        "sunion" | "sunionstore" => SetOperator::Union,
        "sinter" | "sinterstore" => SetOperator::Intersection,
        _ => SetOperator::Difference,
    };
    let key = args[1].clone();
    Ok(Some(match name {
        "sunion" | "sinter" | "sdiff" => SetAlgebra::Combine { operator, keys: args[1..].to_vec() },
        "sunionstore" | "sinterstore" | "sdiffstore" => {
            SetAlgebra::CombineStore { operator, target: key, keys: args[2..].to_vec() }
        }
        "sintercard" => intersection_length(&args[1..])?,
        "spop" => SetAlgebra::Pop { key, count: sorted_sets::pop_count(&args[2..])? },
        "smove" => SetAlgebra::Move { source: key, target: args[2].clone(), member: args[3].clone() },
        _ => return Ok(None),
    }))
}

/// `SINTERCARD` behind its name. Its errors differ from those of `ZINTERCARD` in words.
fn intersection_length(args: &[Bytes]) -> Result<SetAlgebra, CommandError> {
    let count = sorted_sets::at_least(&args[0], 1, "numkeys should be greater than 0")?;
    if count > args.len() - 1 {
        return Err(CommandError::Argument("Number of keys can't be greater than number of args"));
    }
    match sorted_sets::intersection_length(args)? {
        SortedSet::IntersectionLength { keys, limit } => Ok(SetAlgebra::IntersectionLength { keys, limit }),
        _ => Err(CommandError::Syntax),
    }
}
