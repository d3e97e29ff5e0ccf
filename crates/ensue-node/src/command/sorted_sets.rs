//! Commands on sorted sets: rows whose columns are members, each with its score.
//!
//! A score is a base and what each datacenter has added since, as a counter's value is: `ZADD` sets the base,
//! `ZINCRBY` adds. What is added is the difference between the totals before and after, so that within one datacenter
//! every score is the one that Redis would have, to the last bit, and concurrent additions still add up in any order. A
//! score that no total shows exactly becomes a base. Ranges are in `ranges`, several sets in `combine`, walks over a
//! large sorted set in `walk`.

mod combine;
pub(super) mod ranges;

use crate::command::draw::{self, Drawn};
use crate::command::{integer, leave_no_empty_row, name_of, walk};
use crate::evaluate::{Evaluation, Halt, Scored, element_bytes};
use bytes::Bytes;
use ensue_resp::CommandError;
use ensue_resp::request::{AddCondition, SortedSet};
use ensue_store::cell::Content;
use ensue_store::row::Kind;
use ensue_types::{Column, Decimal, Reply, Score};
use std::collections::BTreeSet;

/// The longest text of a score, nearly: what is counted of an entry is no exact number.
const SCORE_BYTES: usize = 24;

pub(super) fn evaluate(request: &SortedSet, evaluation: &mut Evaluation<'_>) -> Result<Reply, Halt> {
    use SortedSet::*;
    match request {
        Add { key, pairs, condition, changed } => add(evaluation, key, pairs, *condition, *changed),
        Increment { key, member, amount, condition } => {
            increment(evaluation, key, member, *amount, *condition)
        }
        Remove { key, members } => Ok(integer(remove(evaluation, key, members)?)),
        Score { key, member } => {
            Ok(double_or_nil(evaluation.content(key, &Column::Scored(member.clone()))?.score()))
        }
        Scores { key, members } => scores(evaluation, key, members),
        Length { key } => Ok(integer(evaluation.count(key, Kind::SortedSet)?)),
        Count { key, range } => ranges::count(evaluation, key, range),
        Rank { key, member, reverse, with_score } => {
            ranges::rank(evaluation, key, member, *reverse, *with_score)
        }
        Range { key, selection, with_scores } => {
            Ok(members_reply(ranges::select(evaluation, key, selection)?, *with_scores))
        }
        RangeStore { target, source, selection } => {
            let members = ranges::select(evaluation, source, selection)?;
            store(evaluation, target, members)
        }
        RemoveRange { key, range } => {
            let members = ranges::within(evaluation, key, range)?;
            Ok(integer(remove_all(evaluation, key, members)?.len()))
        }
        Pop { key, highest, count } => pop(evaluation, key, *highest, *count),
        PopFirst { keys, highest, count } => pop_first(evaluation, keys, *highest, *count),
        Random { key, count, with_scores } => random(evaluation, key, *count, *with_scores),
        Scan { key, options } => walk::scan_columns(evaluation, key, Kind::SortedSet, options),
        Combine { operation, with_scores } => {
            Ok(members_reply(combine::result(evaluation, operation)?, *with_scores))
        }
        CombineStore { target, operation } => {
            let members = combine::result(evaluation, operation)?;
            store(evaluation, target, members)
        }
        IntersectionLength { keys, limit } => combine::intersection_length(evaluation, keys, *limit),
    }
}

/// `ZADD`: answers how many are new, or changed. A member that has the score already is put again, so that a later add
/// beats an earlier remove that has not arrived yet.
fn add(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    pairs: &[(Score, Bytes)],
    condition: AddCondition,
    changed: bool,
) -> Result<Reply, Halt> {
    let bytes = pairs.iter().map(|(_, member)| element_bytes(key, member, SCORE_BYTES)).sum();
    evaluation.check_room_of(key, pairs.len(), bytes)?;
    let (mut added, mut updated) = (0, 0);
    for (score, member) in pairs {
        let column = Column::Scored(member.clone());
        let present = evaluation.content(key, &column)?.score();
        if !applies(condition, present, *score) {
            continue;
        }
        match present {
            None => added += 1,
            Some(present) => updated += usize::from(present != *score),
        }
        evaluation.begin_write(key)?;
        evaluation.put(key, column, score.to_text());
    }
    Ok(integer(if changed { added + updated } else { added }))
}

fn applies(condition: AddCondition, present: Option<Score>, new: Score) -> bool {
    match present {
        None => !condition.present,
        Some(present) => {
            !condition.absent && (!condition.greater || new > present) && (!condition.less || new < present)
        }
    }
}

/// `ZINCRBY`: answers the new score.
fn increment(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    member: &Bytes,
    amount: Score,
    condition: AddCondition,
) -> Result<Reply, Halt> {
    let column = Column::Scored(member.clone());
    let content = evaluation.content(key, &column)?;
    let present = content.score();
    if present.is_some() && condition.absent {
        return Ok(Reply::Nil);
    }
    let new = match present {
        Some(present) => present.plus(amount.value()).ok_or(CommandError::ScoreNotNumber)?,
        None => amount,
    };
    if !applies(condition, present, new) {
        return Ok(Reply::Nil);
    }
    evaluation.check_room(element_bytes(key, member, SCORE_BYTES))?;
    evaluation.begin_write(key)?;
    let difference = |(new, before): (Decimal, Decimal)| new.checked_sub(before);
    match new.as_total().zip(total_of(&content)).and_then(difference) {
        Some(difference) => evaluation.add(key, column, difference),
        None => evaluation.put(key, column, new.to_text()),
    }
    Ok(Reply::Double(new.value()))
}

/// What additions go on top of.
fn total_of(content: &Content) -> Option<Decimal> {
    match content {
        Content::Nothing => Some(Decimal::ZERO),
        Content::Number(total) => Some(*total),
        Content::Bytes(text) => Decimal::parse_nearest(text),
    }
}

/// `ZREM`: how many were there.
fn remove(evaluation: &mut Evaluation<'_>, key: &Bytes, members: &[Bytes]) -> Result<usize, Halt> {
    let bytes = members.iter().map(|member| element_bytes(key, member, 0)).sum();
    evaluation.check_room_of(key, members.len(), bytes)?;
    let mut removed = 0;
    for member in members {
        removed += usize::from(evaluation.delete(key, Column::Scored(member.clone()))?);
    }
    if removed > 0 {
        leave_no_empty_row(evaluation, key, Kind::SortedSet);
    }
    Ok(removed)
}

/// Removes members that were seen; answers them.
fn remove_all(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    members: Vec<Scored>,
) -> Result<Vec<Scored>, Halt> {
    let names: Vec<Bytes> = members.iter().map(|(_, name)| name.clone()).collect();
    remove(evaluation, key, &names)?;
    Ok(members)
}

/// `ZMSCORE`.
fn scores(evaluation: &mut Evaluation<'_>, key: &Bytes, members: &[Bytes]) -> Result<Reply, Halt> {
    let score = |member: &Bytes| {
        let content = evaluation.content(key, &Column::Scored(member.clone()))?;
        Ok(double_or_nil(content.score()))
    };
    Ok(Reply::Array(members.iter().map(score).collect::<Result<_, Halt>>()?))
}

/// Makes a row the sorted set of these members; answers how many they are.
pub(super) fn store(
    evaluation: &mut Evaluation<'_>,
    target: &Bytes,
    members: Vec<Scored>,
) -> Result<Reply, Halt> {
    let stored = members.iter().map(|(_, name)| element_bytes(target, name, SCORE_BYTES)).sum::<usize>();
    let bytes = stored.saturating_add(evaluation.bytes_to_clear(target));
    evaluation.check_room_of(target, members.len(), bytes)?;
    evaluation.begin_write(target)?;
    let names: BTreeSet<&Bytes> = members.iter().map(|(_, name)| name).collect();
    evaluation.clear_row(target, |column| match column {
        Column::Scored(name) => !names.contains(name),
        _ => true,
    })?;
    let count = members.len();
    for (score, name) in members {
        evaluation.put(target, Column::Scored(name), score.to_text());
    }
    Ok(integer(count))
}

/// `ZPOPMIN`, `ZPOPMAX`.
fn pop(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    highest: bool,
    count: Option<usize>,
) -> Result<Reply, Halt> {
    let members = ranges::end(evaluation, key, highest, count.unwrap_or(1))?;
    let members = remove_all(evaluation, key, members)?;
    let flat = |(score, name)| [Reply::Bulk(name), double(score)];
    Ok(match count {
        Some(_) => members_reply(members, true),
        None => Reply::Array(members.into_iter().flat_map(flat).collect()),
    })
}

/// `ZMPOP`: of the first key that is there.
pub(super) fn pop_first(
    evaluation: &mut Evaluation<'_>,
    keys: &[Bytes],
    highest: bool,
    count: usize,
) -> Result<Reply, Halt> {
    for key in keys {
        let members = ranges::end(evaluation, key, highest, count)?;
        if members.is_empty() {
            continue;
        }
        let members = remove_all(evaluation, key, members)?;
        let pair = |(score, name)| Reply::Array(vec![Reply::Bulk(name), double(score)]);
        let members = Reply::Array(members.into_iter().map(pair).collect());
        return Ok(Reply::Array(vec![Reply::Bulk(key.clone()), members]));
    }
    Ok(Reply::NilArray)
}

/// `BZPOPMIN` and `BZPOPMAX`, of the first key that is there.
pub(super) fn pop_one(evaluation: &mut Evaluation<'_>, keys: &[Bytes], highest: bool) -> Result<Reply, Halt> {
    for key in keys {
        let members = ranges::end(evaluation, key, highest, 1)?;
        if let Some((score, name)) = remove_all(evaluation, key, members)?.into_iter().next() {
            return Ok(Reply::Array(vec![Reply::Bulk(key.clone()), Reply::Bulk(name), double(score)]));
        }
    }
    Ok(Reply::NilArray)
}

/// `ZRANDMEMBER`.
fn random(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    count: Option<i64>,
    with_scores: bool,
) -> Result<Reply, Halt> {
    Ok(match draw::some_of(evaluation, key, Kind::SortedSet, count)? {
        Drawn::One(member) => member.map_or(Reply::Nil, |(column, _)| Reply::Bulk(name_of(column))),
        Drawn::Several(members) => {
            let scored = |(column, content): (Column, Content)| Some((content.score()?, name_of(column)));
            members_reply(members.into_iter().filter_map(scored).collect(), with_scores)
        }
    })
}

fn members_reply(members: Vec<Scored>, with_scores: bool) -> Reply {
    match with_scores {
        true => Reply::Pairs(
            members.into_iter().map(|(score, name)| (Reply::Bulk(name), double(score))).collect(),
        ),
        false => Reply::Array(members.into_iter().map(|(_, name)| Reply::Bulk(name)).collect()),
    }
}

fn double(score: Score) -> Reply {
    Reply::Double(score.value())
}

fn double_or_nil(score: Option<Score>) -> Reply {
    score.map_or(Reply::Nil, double)
}
