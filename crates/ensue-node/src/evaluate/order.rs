//! Members of a sorted set in their order: by score, and of one score by name.
//!
//! Of a large row the store keeps the order, and the view corrects it; of another one, and of a past state, what the
//! view shows is sorted.

use super::{Evaluation, Halt, observe_row, present};
use ensue_store::cell::Content;
use ensue_store::compact::RowRef;
use ensue_store::order::Corrected;
use ensue_store::row::Kind;
use ensue_types::{Column, Score};
use std::ops::Range;

pub use ensue_store::order::Scored;

/// A sorted set in its order.
#[derive(Clone, Debug)]
pub enum Ordered<'e> {
    Sorted(Vec<Scored>),
    Kept(Corrected<'e>),
}

impl Ordered<'_> {
    pub fn len(&self) -> usize {
        match self {
            Ordered::Sorted(members) => members.len(),
            Ordered::Kept(order) => order.len(),
        }
    }

    /// How many members come first of which this holds, if it holds of none behind one of which it does not.
    pub fn partition_point(&self, holds: impl Fn(Score, &[u8]) -> bool) -> usize {
        match self {
            Ordered::Sorted(members) => members.partition_point(|(score, name)| holds(*score, name)),
            Ordered::Kept(order) => order.partition_point(holds),
        }
    }

    /// The members of these places.
    pub fn members(&self, places: Range<usize>) -> Vec<Scored> {
        match self {
            Ordered::Sorted(members) => members[places].to_vec(),
            Ordered::Kept(order) => order.members(places),
        }
    }
}

impl Evaluation<'_> {
    /// The members of a sorted set.
    pub fn ordered(&mut self, key: &[u8]) -> Result<Ordered<'_>, Halt> {
        self.keyspace.keep_order(key);
        if !self.keeps_order(key, Kind::SortedSet) {
            return Ok(Ordered::Sorted(self.sorted(key)?));
        }
        let row = present(self.keyspace, &mut self.observed, key, self.view, self.at)?;
        let Some(row @ RowRef::Whole(whole)) = row else { return Ok(Ordered::Sorted(Vec::new())) };
        observe_row(&mut self.observed, row, self.view)?;
        self.observed.look_up(row.kind_at(self.view, self.at.ms())?.is_some());
        Ok(whole.ordered(self.view).map_or_else(|| Ordered::Sorted(Vec::new()), Ordered::Kept))
    }

    /// Whether the store keeps the order of a row of this kind, of which the view shows no past state.
    pub(super) fn keeps_order(&self, key: &[u8], kind: Kind) -> bool {
        let Some(RowRef::Whole(row)) = self.keyspace.row(key) else { return false };
        row.sole_kind() == Some(kind)
            && row.keeps_order()
            && (self.view.time().is_none() || row.is_newest(self.view))
    }

    fn sorted(&mut self, key: &[u8]) -> Result<Vec<Scored>, Halt> {
        let columns = self.columns(key, Kind::SortedSet)?.into_iter();
        let scored = |(column, content): (Column, Content)| match column {
            Column::Scored(name) => Some((content.score()?, name)),
            _ => None,
        };
        let mut members: Vec<Scored> = columns.filter_map(scored).collect();
        members.sort_unstable();
        Ok(members)
    }
}
