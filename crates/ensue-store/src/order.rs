//! The members of a large sorted set in their order: by score, and of one score by name. Elements of a list,
//! and parts of a stream, are members of one score.
//!
//! A tree of members that counts what is below each branch, so that a place is found from a bound, and a member from
//! its place, in logarithmic time. It holds the newest state of a row's columns; who looks at the row with another view
//! corrects it by the columns of which that view shows something else (`Corrected`).

mod corrected;
mod tree;

pub use corrected::Corrected;

use crate::cell::State;
use bytes::Bytes;
use ensue_types::{Column, Score};
use std::ops::Range;
use tree::Node;

/// The name under which a column stands in an order, if it has a place in one.
pub(crate) fn name_in_order(column: &Column) -> Option<&Bytes> {
    match column {
        Column::Scored(name) | Column::Element(name) | Column::Stream(name) => Some(name),
        Column::Text | Column::Deadline | Column::Row | Column::Member(_) | Column::Escrow(_) => None,
        Column::Field(_) | Column::FieldDeadline(_) => None,
    }
}

/// The score with which a column stands there; nothing if it is not live.
pub(crate) fn score_in_order(column: &Column, state: &State) -> Option<Score> {
    match column {
        Column::Scored(_) => state.content().score(),
        Column::Element(_) | Column::Stream(_) => state.is_live().then_some(Score::ZERO),
        Column::Text | Column::Deadline | Column::Row | Column::Member(_) | Column::Escrow(_) => None,
        Column::Field(_) | Column::FieldDeadline(_) => None,
    }
}

/// A member and its score.
pub type Scored = (Score, Bytes);

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Order {
    root: Node,
    len: usize,
}

impl Order {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a member that is not there.
    pub(crate) fn insert(&mut self, member: Scored) {
        self.len += 1;
        if let Some(right) = self.root.insert(member) {
            let left = std::mem::take(&mut self.root);
            self.root = Node::above([left, right]);
        }
    }

    /// Takes out a member that is there.
    pub(crate) fn remove(&mut self, member: &Scored) {
        if self.root.remove(member) {
            self.len -= 1;
        }
        self.root.shrink();
    }

    /// Takes out so many members, the last ones.
    pub(crate) fn free_some(&mut self, count: usize) {
        self.len -= self.root.free_some(count);
        self.root.shrink();
    }

    /// How many members come first of which this holds, if it holds of none behind one of which it does not.
    pub fn partition_point(&self, holds: impl Fn(Score, &[u8]) -> bool) -> usize {
        self.root.partition_point(&|(score, name)| holds(*score, name))
    }

    /// The members of these places.
    pub fn members(&self, places: Range<usize>) -> Vec<Scored> {
        let mut members = Vec::with_capacity(places.len().min(self.len));
        self.root.collect(places.start, places.len(), &mut members);
        members
    }
}

impl FromIterator<Scored> for Order {
    fn from_iter<I: IntoIterator<Item = Scored>>(members: I) -> Order {
        let mut members: Vec<Scored> = members.into_iter().collect();
        members.sort_unstable();
        Order { len: members.len(), root: Node::of_sorted(members) }
    }
}

#[cfg(test)]
mod tests;
