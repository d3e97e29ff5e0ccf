//! Members of a sorted set in their order: by score, and of one score by name.

use super::{Evaluation, Halt};
use bytes::Bytes;
use ensue_store::cell::Content;
use ensue_store::row::Kind;
use ensue_types::{Column, Score};
use std::ops::Range;

/// A member and its score.
pub type Scored = (Score, Bytes);

/// A sorted set in its order.
#[derive(Clone, Debug, Default)]
pub struct Ordered {
    members: Vec<Scored>,
}

impl Ordered {
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// How many members come first of which this holds, if it holds of none behind one of which it does not.
    pub fn partition_point(&self, holds: impl Fn(Score, &[u8]) -> bool) -> usize {
        self.members.partition_point(|(score, name)| holds(*score, name))
    }

    /// The members of these places.
    pub fn members(&self, places: Range<usize>) -> Vec<Scored> {
        self.members[places].to_vec()
    }
}

impl Evaluation<'_> {
    /// The members of a sorted set.
    pub fn ordered(&mut self, key: &[u8]) -> Result<Ordered, Halt> {
        let columns = self.columns(key, Kind::SortedSet)?.into_iter();
        let scored = |(column, content)| match column {
            Column::Scored(name) => Some((score_of(&content)?, name)),
            _ => None,
        };
        let mut members: Vec<Scored> = columns.filter_map(scored).collect();
        members.sort_unstable();
        Ok(Ordered { members })
    }
}

/// The score that a content of a sorted set's column is.
pub fn score_of(content: &Content) -> Option<Score> {
    match content {
        Content::Nothing => None,
        Content::Number(total) => Some(Score::from(*total)),
        // Only commands on sorted sets write such columns, and they write numbers.
        Content::Bytes(text) => Some(Score::from_text(text).unwrap_or(Score::ZERO)),
    }
}
