//! Commands on sorted sets.
//!
//! Arguments of the right number arrive, a request or Redis's error leaves. The errors come in the order in which Redis
//! finds them. Members that stand twice are not removed here.

mod ranges;

use super::{ScanOptions, integer, is_word, scan_options};
use crate::{CommandError, number};
use bytes::Bytes;
use ensue_types::Score;

pub use ranges::{LexBound, RankRange, ScoreBound, SortedRange, SortedSelection};

/// What the owner of sorted sets evaluates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SortedSet {
    /// `ZADD`: the number of members that are new, or changed with `changed`.
    Add { key: Bytes, pairs: Vec<(Score, Bytes)>, condition: AddCondition, changed: bool },
    /// `ZINCRBY`, and `ZADD` with `INCR`: the new score, or nil if the condition does not hold.
    Increment { key: Bytes, member: Bytes, amount: Score, condition: AddCondition },
    /// `ZREM`: the number of members removed.
    Remove { key: Bytes, members: Vec<Bytes> },
    /// `ZSCORE`.
    Score { key: Bytes, member: Bytes },
    /// `ZMSCORE`.
    Scores { key: Bytes, members: Vec<Bytes> },
    /// `ZCARD`.
    Length { key: Bytes },
    /// `ZCOUNT`, `ZLEXCOUNT`.
    Count { key: Bytes, range: SortedRange },
    /// `ZRANK`, `ZREVRANK`.
    Rank { key: Bytes, member: Bytes, reverse: bool, with_score: bool },
    /// `ZRANGE` and its kind.
    Range { key: Bytes, selection: SortedSelection, with_scores: bool },
    /// `ZRANGESTORE`: the number of members stored.
    RangeStore { target: Bytes, source: Bytes, selection: SortedSelection },
    /// `ZREMRANGEBYRANK`, `ZREMRANGEBYSCORE`, `ZREMRANGEBYLEX`: the number of members removed.
    RemoveRange { key: Bytes, range: SortedRange },
    /// `ZPOPMIN`, `ZPOPMAX`: the members removed, with their scores.
    Pop { key: Bytes, highest: bool, count: Option<usize> },
    /// `ZMPOP`: the key, and the members removed from it.
    PopFirst { keys: Vec<Bytes>, highest: bool, count: usize },
    /// `ZRANDMEMBER`: as `SRANDMEMBER`.
    Random { key: Bytes, count: Option<i64>, with_scores: bool },
    /// `ZSCAN`: the next cursor, members and scores.
    Scan { key: Bytes, options: ScanOptions },
    /// `ZUNION`, `ZINTER`, `ZDIFF`: the members of the result.
    Combine { operation: SetOperation, with_scores: bool },
    /// `ZUNIONSTORE`, `ZINTERSTORE`, `ZDIFFSTORE`: the number of members stored.
    CombineStore { target: Bytes, operation: SetOperation },
    /// `ZINTERCARD`: how many members all have, at most as many as the limit.
    IntersectionLength { keys: Vec<Bytes>, limit: Option<usize> },
}

/// When `ZADD` applies to a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddCondition {
    /// `NX`: only to members that are not there.
    pub absent: bool,
    /// `XX`: only to members that are there.
    pub present: bool,
    /// `GT`: to a member that is there only if the new score is greater.
    pub greater: bool,
    /// `LT`: to a member that is there only if the new score is less.
    pub less: bool,
}

/// Several sorted sets, or sets, made one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetOperation {
    /// The members of any. Each set has a weight that its scores are multiplied by.
    Union { weighted: Vec<(Bytes, Score)>, aggregate: Aggregate },
    /// The members of all.
    Intersection { weighted: Vec<(Bytes, Score)>, aggregate: Aggregate },
    /// The members of the first that no other has.
    Difference { keys: Vec<Bytes> },
}

/// What becomes of the scores of a member that several sets have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aggregate {
    #[default]
    Sum,
    Min,
    Max,
}

pub(super) fn parse(name: &'static str, args: &[Bytes]) -> Result<Option<SortedSet>, CommandError> {
    if let Some(ranged) = ranges::parse(name, args)? {
        return Ok(Some(ranged));
    }
    let key = args[1].clone();
    Ok(Some(match name {
        "zadd" => add(key, &args[2..])?,
        "zincrby" => {
            let condition = AddCondition::default();
            SortedSet::Increment { key, member: args[3].clone(), amount: score(&args[2])?, condition }
        }
        "zrem" => SortedSet::Remove { key, members: args[2..].to_vec() },
        "zscore" => SortedSet::Score { key, member: args[2].clone() },
        "zmscore" => SortedSet::Scores { key, members: args[2..].to_vec() },
        "zcard" => SortedSet::Length { key },
        "zrank" | "zrevrank" => rank(name, key, &args[2..])?,
        "zpopmin" | "zpopmax" => {
            SortedSet::Pop { key, highest: name == "zpopmax", count: pop_count(&args[2..])? }
        }
        "zmpop" => pop_first(&args[1..])?,
        "zrandmember" => {
            let (count, with_scores) = random(&args[2..], "WITHSCORES")?;
            SortedSet::Random { key, count, with_scores }
        }
        "zscan" => SortedSet::Scan { key, options: scan_options(&args[2], &args[3..], false)?.0 },
        "zunion" | "zinter" | "zdiff" => {
            let (operation, with_scores) = combine(name, false, &args[1..])?;
            SortedSet::Combine { operation, with_scores }
        }
        "zunionstore" | "zinterstore" | "zdiffstore" => {
            SortedSet::CombineStore { target: key, operation: combine(name, true, &args[2..])?.0 }
        }
        "zintercard" => intersection_length(&args[1..])?,
        _ => return Ok(None),
    }))
}

impl SortedSet {
    pub(super) fn is_write(&self) -> bool {
        use SortedSet::*;
        match self {
            Score { .. } | Scores { .. } | Length { .. } | Count { .. } | Rank { .. } | Range { .. } => false,
            Random { .. } | Scan { .. } | Combine { .. } | IntersectionLength { .. } => false,
            Add { .. } | Increment { .. } | Remove { .. } | RangeStore { .. } | RemoveRange { .. } => true,
            Pop { .. } | PopFirst { .. } | CombineStore { .. } => true,
        }
    }

    pub(super) fn key(&self) -> Option<&Bytes> {
        use SortedSet::*;
        match self {
            Add { key, .. } | Increment { key, .. } | Remove { key, .. } | Score { key, .. } => Some(key),
            Scores { key, .. } | Length { key } | Count { key, .. } | Rank { key, .. } => Some(key),
            Range { key, .. } | RemoveRange { key, .. } | Pop { key, .. } | Random { key, .. } => Some(key),
            Scan { key, .. } => Some(key),
            RangeStore { .. } | PopFirst { .. } | Combine { .. } | CombineStore { .. } => None,
            IntersectionLength { .. } => None,
        }
    }
}

impl SetOperation {
    /// The sets that it is made of.
    pub fn keys(&self) -> Vec<&Bytes> {
        match self {
            SetOperation::Union { weighted, .. } | SetOperation::Intersection { weighted, .. } => {
                weighted.iter().map(|(key, _)| key).collect()
            }
            SetOperation::Difference { keys } => keys.iter().collect(),
        }
    }
}

fn score(argument: &[u8]) -> Result<Score, CommandError> {
    number::parse_score(argument).and_then(Score::new).ok_or(CommandError::NotFloat)
}

/// `ZADD` behind its key.
fn add(key: Bytes, args: &[Bytes]) -> Result<SortedSet, CommandError> {
    let mut condition = AddCondition::default();
    let (mut changed, mut increment) = (false, false);
    let mut rest = args;
    while let [option, others @ ..] = rest {
        match option {
            option if is_word(option, "NX") => condition.absent = true,
            option if is_word(option, "XX") => condition.present = true,
            option if is_word(option, "GT") => condition.greater = true,
            option if is_word(option, "LT") => condition.less = true,
            option if is_word(option, "CH") => changed = true,
            option if is_word(option, "INCR") => increment = true,
            _ => break,
        }
        rest = others;
    }
    if rest.is_empty() || rest.len() % 2 != 0 {
        return Err(CommandError::Syntax);
    }
    let AddCondition { absent, present, greater, less } = condition;
    if absent && present {
        return Err(CommandError::Argument("XX and NX options at the same time are not compatible"));
    }
    if absent && (greater || less) || greater && less {
        return Err(CommandError::Argument("GT, LT, and/or NX options at the same time are not compatible"));
    }
    if increment && rest.len() > 2 {
        return Err(CommandError::Argument("INCR option supports a single increment-element pair"));
    }
    let pairs = rest.chunks_exact(2).map(|pair| Ok((score(&pair[0])?, pair[1].clone())));
    let mut pairs = pairs.collect::<Result<Vec<_>, CommandError>>()?;
    if !increment {
        return Ok(SortedSet::Add { key, pairs, condition, changed });
    }
    let (amount, member) = pairs.pop().ok_or(CommandError::Syntax)?;
    Ok(SortedSet::Increment { key, member, amount, condition })
}

fn rank(name: &'static str, key: Bytes, args: &[Bytes]) -> Result<SortedSet, CommandError> {
    let (member, with_score) = match args {
        [member] => (member, false),
        [member, word] if is_word(word, "WITHSCORE") => (member, true),
        [_, _] => return Err(CommandError::Syntax),
        _ => return Err(CommandError::wrong_arity(name)),
    };
    Ok(SortedSet::Rank { key, member: member.clone(), reverse: name == "zrevrank", with_score })
}

/// An integer that is not below a number.
pub(super) fn at_least(argument: &[u8], least: i64, otherwise: &'static str) -> Result<usize, CommandError> {
    let count = number::parse_i64(argument).filter(|&count| count >= least);
    count.and_then(|count| usize::try_from(count).ok()).ok_or(CommandError::Argument(otherwise))
}

pub(super) fn pop_count(args: &[Bytes]) -> Result<Option<usize>, CommandError> {
    match args {
        [] => Ok(None),
        [count] => at_least(count, 0, "value is out of range, must be positive").map(Some),
        _ => Err(CommandError::Syntax),
    }
}

/// `ZMPOP` behind its name.
fn pop_first(args: &[Bytes]) -> Result<SortedSet, CommandError> {
    let (keys, highest, count) = pop_first_of(args, end_of_scores)?;
    Ok(SortedSet::PopFirst { keys, highest, count })
}

/// Whether an end is that of the highest scores.
pub(super) fn end_of_scores(word: &Bytes) -> Option<bool> {
    match word {
        word if is_word(word, "MIN") => Some(false),
        word if is_word(word, "MAX") => Some(true),
        _ => None,
    }
}

/// What `ZMPOP` and `LMPOP` name behind theirs: keys, an end, and how many.
pub(super) fn pop_first_of<End>(
    args: &[Bytes],
    end_named: impl Fn(&Bytes) -> Option<End>,
) -> Result<(Vec<Bytes>, End, usize), CommandError> {
    let keys = at_least(&args[0], 1, "numkeys should be greater than 0")?;
    let rest = &args[1..];
    let (Some(names), Some(end)) = (rest.get(..keys), rest.get(keys)) else {
        return Err(CommandError::Syntax);
    };
    let end = end_named(end).ok_or(CommandError::Syntax)?;
    let count = match &rest[keys + 1..] {
        [] => 1,
        [word, count, more @ ..] if is_word(word, "COUNT") => {
            let count = at_least(count, 1, "count should be greater than 0")?;
            if !more.is_empty() {
                return Err(CommandError::Syntax);
            }
            count
        }
        _ => return Err(CommandError::Syntax),
    };
    Ok((names.to_vec(), end, count))
}

/// How many elements are drawn, and whether a word asks for what belongs to them.
pub(super) fn random(args: &[Bytes], with: &str) -> Result<(Option<i64>, bool), CommandError> {
    let count = match args.first().map(|count| integer(count)).transpose()? {
        Some(i64::MIN) => return Err(CommandError::CountOutOfRange),
        count => count,
    };
    let is_with = match args {
        [] | [_] => false,
        [_, word] if is_word(word, with) => true,
        _ => return Err(CommandError::Syntax),
    };
    if is_with && count.is_some_and(|count| count.unsigned_abs() > i64::MAX as u64 / 2) {
        return Err(CommandError::Argument("value is out of range"));
    }
    Ok((count, is_with))
}

/// So many keys, which are counted first, and what follows them.
pub(super) fn counted<'a>(
    name: &'static str,
    args: &'a [Bytes],
) -> Result<(&'a [Bytes], &'a [Bytes]), CommandError> {
    let count = integer(&args[0])?;
    if count < 1 {
        return Err(CommandError::NoInputKey(name));
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    args[1..].split_at_checked(count).ok_or(CommandError::Syntax)
}

/// The union, intersection or difference behind its name and target.
fn combine(name: &'static str, stores: bool, args: &[Bytes]) -> Result<(SetOperation, bool), CommandError> {
    let (keys, mut rest) = counted(name, args)?;
    let is_difference = name.starts_with("zdiff");
    let mut weights = vec![Score::ONE; keys.len()];
    let (mut aggregate, mut with_scores) = (Aggregate::Sum, false);
    while let [word, others @ ..] = rest {
        if !is_difference && is_word(word, "WEIGHTS") && others.len() >= keys.len() {
            for (weight, argument) in weights.iter_mut().zip(others) {
                *weight =
                    score(argument).map_err(|_| CommandError::Argument("weight value is not a float"))?;
            }
            rest = &others[keys.len()..];
        } else if !is_difference && is_word(word, "AGGREGATE") && !others.is_empty() {
            aggregate = aggregate_named(&others[0])?;
            rest = &others[1..];
        } else if !stores && is_word(word, "WITHSCORES") {
            with_scores = true;
            rest = others;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    let weighted = keys.iter().cloned().zip(weights).collect();
    let operation = match name {
        "zunion" | "zunionstore" => SetOperation::Union { weighted, aggregate },
        "zinter" | "zinterstore" => SetOperation::Intersection { weighted, aggregate },
        _ => SetOperation::Difference { keys: keys.to_vec() },
    };
    Ok((operation, with_scores))
}

fn aggregate_named(word: &[u8]) -> Result<Aggregate, CommandError> {
    match word {
        word if is_word(word, "SUM") => Ok(Aggregate::Sum),
        word if is_word(word, "MIN") => Ok(Aggregate::Min),
        word if is_word(word, "MAX") => Ok(Aggregate::Max),
        _ => Err(CommandError::Syntax),
    }
}

pub(super) fn intersection_length(args: &[Bytes]) -> Result<SortedSet, CommandError> {
    let (keys, mut rest) = counted("zintercard", args)?;
    let mut limit = None;
    while let [word, count, others @ ..] = rest {
        if !is_word(word, "LIMIT") {
            return Err(CommandError::Syntax);
        }
        limit = Some(at_least(count, 0, "LIMIT can't be negative")?).filter(|&limit| limit > 0);
        rest = others;
    }
    if !rest.is_empty() {
        return Err(CommandError::Syntax);
    }
    Ok(SortedSet::IntersectionLength { keys: keys.to_vec(), limit })
}
