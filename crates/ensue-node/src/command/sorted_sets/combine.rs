//! Several sorted sets made one: unions, intersections and differences. A set counts as one whose scores are all 1.

use crate::command::{integer, name_of};
use crate::evaluate::{Evaluation, Halt, Scored};
use bytes::Bytes;
use ensue_resp::request::{Aggregate, SetOperation};
use ensue_store::row::Kind;
use ensue_types::{Reply, Score};
use std::collections::{BTreeMap, BTreeSet};

/// The members of one source.
type Members = BTreeMap<Bytes, f64>;

/// What an operation makes, in its order.
pub(super) fn result(evaluation: &mut Evaluation<'_>, operation: &SetOperation) -> Result<Vec<Scored>, Halt> {
    let members = match operation {
        SetOperation::Union { weighted, aggregate } => union(by_size(evaluation, weighted)?, *aggregate),
        SetOperation::Intersection { weighted, aggregate } => {
            intersection(by_size(evaluation, weighted)?, *aggregate)
        }
        SetOperation::Difference { keys } => difference(evaluation, keys)?,
    };
    let scored = |(name, score)| (Score::new(score).unwrap_or(Score::ZERO), name);
    let mut members: Vec<Scored> = members.into_iter().map(scored).collect();
    members.sort_unstable();
    Ok(members)
}

/// `ZINTERCARD`.
pub(super) fn intersection_length(
    evaluation: &mut Evaluation<'_>,
    keys: &[Bytes],
    limit: Option<usize>,
) -> Result<Reply, Halt> {
    let weighted: Vec<_> = keys.iter().map(|key| (key.clone(), Score::ONE)).collect();
    let common = intersection(by_size(evaluation, &weighted)?, Aggregate::Max).len();
    Ok(integer(limit.map_or(common, |limit| common.min(limit))))
}

/// Each source with its weight, the smallest first: in this order scores are added up.
fn by_size(
    evaluation: &mut Evaluation<'_>,
    weighted: &[(Bytes, Score)],
) -> Result<Vec<(Members, f64)>, Halt> {
    let mut sources = Vec::new();
    for (key, weight) in weighted {
        sources.push((members(evaluation, key)?, weight.value()));
    }
    sources.sort_by_key(|(members, _)| members.len());
    Ok(sources)
}

fn members(evaluation: &mut Evaluation<'_>, key: &Bytes) -> Result<Members, Halt> {
    let kind = match evaluation.kind(key)? {
        None => return Ok(Members::new()),
        Some(kind @ (Kind::Set | Kind::SortedSet)) => kind,
        Some(Kind::Text | Kind::Hash | Kind::List | Kind::Stream | Kind::Bounded) => {
            return Err(Halt::WrongType);
        }
    };
    let columns = evaluation.columns(key, kind)?.into_iter();
    Ok(columns
        .map(|(column, content)| {
            let score = if kind == Kind::Set { None } else { content.score() };
            (name_of(column), score.unwrap_or(Score::ONE).value())
        })
        .collect())
}

fn union(sources: Vec<(Members, f64)>, aggregate: Aggregate) -> Members {
    let mut all = Members::new();
    for (members, weight) in sources {
        for (name, score) in members {
            let score = number_or_zero(score * weight);
            all.entry(name)
                .and_modify(|total| *total = aggregated(aggregate, *total, score))
                .or_insert(score);
        }
    }
    all
}

fn intersection(sources: Vec<(Members, f64)>, aggregate: Aggregate) -> Members {
    let mut sources = sources.into_iter();
    let Some((first, weight)) = sources.next() else { return Members::new() };
    let others: Vec<(Members, f64)> = sources.collect();
    let total = |(name, score): (Bytes, f64)| {
        let mut total = number_or_zero(score * weight);
        for (members, weight) in &others {
            total = aggregated(aggregate, total, members.get(&name)? * weight);
        }
        Some((name, total))
    };
    first.into_iter().filter_map(total).collect()
}

fn difference(evaluation: &mut Evaluation<'_>, keys: &[Bytes]) -> Result<Members, Halt> {
    let mut all = Vec::new();
    for key in keys {
        all.push(members(evaluation, key)?);
    }
    let mut all = all.into_iter();
    let mut left = all.next().unwrap_or_default();
    let others: BTreeSet<Bytes> = all.flat_map(Members::into_keys).collect();
    left.retain(|name, _| !others.contains(name));
    Ok(left)
}

/// Infinity less infinity counts as nothing.
fn aggregated(aggregate: Aggregate, total: f64, score: f64) -> f64 {
    match aggregate {
        Aggregate::Sum => number_or_zero(total + score),
        Aggregate::Min if score < total => score,
        Aggregate::Max if score > total => score,
        Aggregate::Min | Aggregate::Max => total,
    }
}

fn number_or_zero(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value }
}
