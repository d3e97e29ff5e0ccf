//! An order as a view shows it: the newest one, without members that the view shows in other places or not at all, and
//! with those that it shows there.

use super::{Order, Scored};
use ensue_types::Score;
use std::ops::Range;

/// See the module.
#[derive(Clone, Debug)]
pub struct Corrected<'a> {
    newest: &'a Order,
    /// Members of the newest order that are not shown, in their order.
    hidden: Vec<Scored>,
    /// Members that are shown instead, in their order.
    shown: Vec<Scored>,
}

impl<'a> Corrected<'a> {
    pub fn new(newest: &'a Order, mut hidden: Vec<Scored>, mut shown: Vec<Scored>) -> Corrected<'a> {
        hidden.sort_unstable();
        shown.sort_unstable();
        Corrected { newest, hidden, shown }
    }

    pub fn len(&self) -> usize {
        self.newest.len() - self.hidden.len() + self.shown.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// As of an order.
    pub fn partition_point(&self, holds: impl Fn(Score, &[u8]) -> bool) -> usize {
        let among = |members: &[Scored]| members.partition_point(|(score, name)| holds(*score, name));
        self.newest.partition_point(&holds) - among(&self.hidden) + among(&self.shown)
    }

    /// As of an order.
    pub fn members(&self, places: Range<usize>) -> Vec<Scored> {
        if places.is_empty() || self.hidden.is_empty() && self.shown.is_empty() {
            return self.newest.members(places);
        }
        // Corrections move a place by as many as they are at most.
        let first = places.start.saturating_sub(self.shown.len());
        let end = self.newest.len().min(places.end + self.hidden.len());
        let mut members = self.newest.members(first..end);
        let (skipped, begin) = match members.first().filter(|_| first > 0).cloned() {
            Some(from) => {
                let before = |score: Score, name: &[u8]| (score, name) < (from.0, &from.1[..]);
                let begin = self.shown.partition_point(|(score, name)| before(*score, name));
                (self.partition_point(before), begin)
            }
            None => (0, 0),
        };
        members.retain(|member| self.hidden.binary_search(member).is_err());
        members.extend_from_slice(&self.shown[begin..]);
        members.sort_unstable();
        members.into_iter().skip(places.start - skipped).take(places.len()).collect()
    }
}
