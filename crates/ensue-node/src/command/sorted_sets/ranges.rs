//! Ranges of one sorted set, by place, by score and by name, and the place of a member.
//!
//! What is asked is put as places among the members in their order; only the members of these places are taken.

use crate::command::integer;
use crate::command::sorted_sets::double;
use crate::evaluate::{Evaluation, Halt, Ordered, Scored};
use bytes::Bytes;
use ensue_resp::request::{LexBound, RankRange, ScoreBound, SortedRange, SortedSelection};
use ensue_types::{Column, Reply};
use std::ops::Range;

/// `ZCOUNT` and `ZLEXCOUNT`.
pub(super) fn count(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    range: &SortedRange,
) -> Result<Reply, Halt> {
    let ordered = evaluation.ordered(key)?;
    Ok(integer(places(&ordered, range).len()))
}

/// `ZRANK` and `ZREVRANK`.
pub(super) fn rank(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    member: &Bytes,
    reverse: bool,
    with_score: bool,
) -> Result<Reply, Halt> {
    let Some(score) = evaluation.content(key, &Column::Scored(member.clone()))?.score() else {
        return Ok(if with_score { Reply::NilArray } else { Reply::Nil });
    };
    let ordered = evaluation.ordered(key)?;
    let before = ordered.partition_point(|other, name| (other, name) < (score, &member[..]));
    let place = integer(if reverse { ordered.len() - 1 - before } else { before });
    Ok(if with_score { Reply::Array(vec![place, double(score)]) } else { place })
}

/// The members of a range.
pub(super) fn within(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    range: &SortedRange,
) -> Result<Vec<Scored>, Halt> {
    let ordered = evaluation.ordered(key)?;
    Ok(ordered.members(places(&ordered, range)))
}

/// The members with scores in one of several ranges, which do not overlap.
pub(in crate::command) fn within_any(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    ranges: &[SortedRange],
) -> Result<Vec<Scored>, Halt> {
    let ordered = evaluation.ordered(key)?;
    Ok(ranges.iter().flat_map(|range| ordered.members(places(&ordered, range))).collect())
}

/// So many members of one end, that end first.
pub(super) fn end(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    highest: bool,
    count: usize,
) -> Result<Vec<Scored>, Halt> {
    let ordered = evaluation.ordered(key)?;
    let count = count.min(ordered.len());
    if !highest {
        return Ok(ordered.members(0..count));
    }
    let mut members = ordered.members(ordered.len() - count..ordered.len());
    members.reverse();
    Ok(members)
}

/// What `ZRANGE` and its kind select, in the order in which it is answered.
pub(super) fn select(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    selection: &SortedSelection,
) -> Result<Vec<Scored>, Halt> {
    let ordered = evaluation.ordered(key)?;
    let mut places = places(&ordered, &selection.range);
    let by_rank = matches!(selection.range, SortedRange::Rank(_));
    if selection.reverse && by_rank {
        // Places were counted from the highest.
        places = ordered.len() - places.end..ordered.len() - places.start;
    }
    if let Some((skipped, count)) = selection.limit {
        places = limited(places, selection.reverse, skipped, count);
    }
    let mut members = ordered.members(places);
    if selection.reverse {
        members.reverse();
    }
    Ok(members)
}

fn limited(places: Range<usize>, reverse: bool, skipped: i64, count: i64) -> Range<usize> {
    let Ok(skipped) = usize::try_from(skipped) else { return 0..0 };
    let skipped = skipped.min(places.len());
    let left = places.len() - skipped;
    let count = usize::try_from(count).map_or(left, |count| count.min(left));
    match reverse {
        false => places.start + skipped..places.start + skipped + count,
        true => places.end - skipped - count..places.end - skipped,
    }
}

/// The places of a range, which may be none.
fn places(ordered: &Ordered, range: &SortedRange) -> Range<usize> {
    let (start, end) = match range {
        SortedRange::Rank(range) => return places_by_rank(ordered.len(), *range),
        SortedRange::Score { min, max } => {
            let ScoreBound { score: least, is_exclusive: above } = *min;
            let ScoreBound { score: most, is_exclusive: below } = *max;
            let start = ordered.partition_point(|score, _| score < least || above && score == least);
            (start, ordered.partition_point(|score, _| score < most || !below && score == most))
        }
        SortedRange::Lex { min, max } => (place_of(ordered, min, false), place_of(ordered, max, true)),
    };
    start..end.max(start)
}

fn places_by_rank(len: usize, range: RankRange) -> Range<usize> {
    let length = i64::try_from(len).unwrap_or(i64::MAX);
    let from_start = |place: i64| if place < 0 { place.saturating_add(length) } else { place };
    let start = from_start(range.start).max(0);
    let stop = from_start(range.stop).min(length - 1);
    if start > stop { 0..0 } else { start as usize..stop as usize + 1 }
}

/// How many names stand before a bound; as the end of a range a name that it includes stands before it.
fn place_of(ordered: &Ordered, bound: &LexBound, is_end: bool) -> usize {
    match bound {
        LexBound::Lowest => 0,
        LexBound::Highest => ordered.len(),
        LexBound::Included(name) | LexBound::Excluded(name) => {
            let is_included = matches!(bound, LexBound::Included(_));
            let with_name = is_included == is_end;
            ordered.partition_point(|_, other| other < &name[..] || with_name && other == &name[..])
        }
    }
}
