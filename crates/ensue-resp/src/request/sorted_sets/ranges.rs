//! Ranges of a sorted set: by place, by score, by name, and the options of `ZRANGE` and its kind.

use super::SortedSet;
use crate::request::{integer, is_word};
use crate::{CommandError, number};
use bytes::Bytes;
use ensue_types::Score;

/// Some neighbouring members, the lowest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SortedRange {
    Rank(RankRange),
    Score {
        min: ScoreBound,
        max: ScoreBound,
    },
    /// Where all members have one score.
    Lex {
        min: LexBound,
        max: LexBound,
    },
}

/// The first and the last place; negative ones count from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankRange {
    pub start: i64,
    pub stop: i64,
}

/// An end of a range of scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScoreBound {
    pub score: Score,
    pub is_exclusive: bool,
}

/// An end of a range of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LexBound {
    /// `-`: before every name.
    Lowest,
    /// `+`: behind every name.
    Highest,
    Included(Bytes),
    Excluded(Bytes),
}

/// What `ZRANGE` answers: a range in one direction, and a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortedSelection {
    pub range: SortedRange,
    /// From the highest to the lowest. Places then count from the highest.
    pub reverse: bool,
    /// How many are passed over, and how many are answered at most. A negative number of the first answers none, and of
    /// the second all.
    pub limit: Option<(i64, i64)>,
}

/// What a range is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Lex,
}

/// What the name of a command says of its range; nothing where the options do.
#[derive(Clone, Copy, Debug, Default)]
struct Named {
    by: Option<By>,
    reverse: Option<bool>,
    stores: bool,
}

pub(super) fn parse(name: &str, args: &[Bytes]) -> Result<Option<SortedSet>, CommandError> {
    let key = args[1].clone();
    let ends = |by| range(by, &args[2], &args[3]);
    let (by, reverse) = match name {
        "zcount" => return Ok(Some(SortedSet::Count { key, range: ends(By::Score)? })),
        "zlexcount" => return Ok(Some(SortedSet::Count { key, range: ends(By::Lex)? })),
        "zremrangebyrank" => return Ok(Some(SortedSet::RemoveRange { key, range: ends(By::Rank)? })),
        "zremrangebyscore" => return Ok(Some(SortedSet::RemoveRange { key, range: ends(By::Score)? })),
        "zremrangebylex" => return Ok(Some(SortedSet::RemoveRange { key, range: ends(By::Lex)? })),
        "zrange" => (None, None),
        "zrevrange" => (Some(By::Rank), Some(true)),
        "zrangebyscore" => (Some(By::Score), Some(false)),
        "zrevrangebyscore" => (Some(By::Score), Some(true)),
        "zrangebylex" => (Some(By::Lex), Some(false)),
        "zrevrangebylex" => (Some(By::Lex), Some(true)),
        "zrangestore" => {
            let named = Named { stores: true, ..Named::default() };
            let (selection, _) = selection(named, &args[3..])?;
            let source = args[2].clone();
            return Ok(Some(SortedSet::RangeStore { target: key, source, selection }));
        }
        _ => return Ok(None),
    };
    let (selection, with_scores) = selection(Named { by, reverse, stores: false }, &args[2..])?;
    Ok(Some(SortedSet::Range { key, selection, with_scores }))
}

/// Both ends and the options, and whether scores are answered.
fn selection(named: Named, args: &[Bytes]) -> Result<(SortedSelection, bool), CommandError> {
    let Named { mut by, mut reverse, stores } = named;
    let (mut limit, mut with_scores) = (None, false);
    let mut rest = &args[2..];
    while let [word, others @ ..] = rest {
        rest = others;
        if !stores && is_word(word, "WITHSCORES") {
            with_scores = true;
        } else if is_word(word, "LIMIT") && others.len() >= 2 {
            limit = Some((integer(&others[0])?, integer(&others[1])?));
            rest = &others[2..];
        } else if reverse.is_none() && is_word(word, "REV") {
            reverse = Some(true);
        } else if by.is_none() && is_word(word, "BYLEX") {
            by = Some(By::Lex);
        } else if by.is_none() && is_word(word, "BYSCORE") {
            by = Some(By::Score);
        } else {
            return Err(CommandError::Syntax);
        }
    }
    let (by, reverse) = (by.unwrap_or(By::Rank), reverse.unwrap_or(false));
    if by == By::Rank && limit.is_some_and(|(_, count)| count != -1) {
        let words = "syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX";
        return Err(CommandError::Argument(words));
    }
    if by == By::Lex && with_scores {
        let words = "syntax error, WITHSCORES not supported in combination with BYLEX";
        return Err(CommandError::Argument(words));
    }
    // In reverse the highest score or name stands first, and places stay as they are.
    let range = match by {
        By::Rank => range(by, &args[0], &args[1])?,
        _ if reverse => range(by, &args[1], &args[0])?,
        _ => range(by, &args[0], &args[1])?,
    };
    let limit = limit.filter(|_| by != By::Rank);
    Ok((SortedSelection { range, reverse, limit }, with_scores))
}

fn range(by: By, min: &Bytes, max: &Bytes) -> Result<SortedRange, CommandError> {
    Ok(match by {
        By::Rank => SortedRange::Rank(RankRange { start: integer(min)?, stop: integer(max)? }),
        By::Score => SortedRange::Score { min: score_bound(min)?, max: score_bound(max)? },
        By::Lex => SortedRange::Lex { min: lex_bound(min)?, max: lex_bound(max)? },
    })
}

fn score_bound(argument: &[u8]) -> Result<ScoreBound, CommandError> {
    let (is_exclusive, text) = match argument {
        [b'(', rest @ ..] => (true, rest),
        text => (false, text),
    };
    let score = number::parse_score_bound(text).and_then(Score::new);
    let score = score.ok_or(CommandError::Argument("min or max is not a float"))?;
    Ok(ScoreBound { score, is_exclusive })
}

fn lex_bound(argument: &Bytes) -> Result<LexBound, CommandError> {
    match &argument[..] {
        b"-" => Ok(LexBound::Lowest),
        b"+" => Ok(LexBound::Highest),
        [b'[', ..] => Ok(LexBound::Included(argument.slice(1..))),
        [b'(', ..] => Ok(LexBound::Excluded(argument.slice(1..))),
        _ => Err(CommandError::Argument("min or max not valid string range item")),
    }
}
