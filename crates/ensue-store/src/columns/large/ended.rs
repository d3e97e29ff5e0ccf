//! What a removal of the whole row ends: which columns it does not end at once, and the others, freed some at a time.

use super::{Found, Large, Slot};
use crate::cell::{Cell, Write};
use crate::counted::Counted;
use crate::settled;
use ensue_types::{Column, Effect, Observed};

/// What is not counted any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Freed {
    pub(crate) columns: u64,
    pub(crate) bytes: u64,
}

impl Slot {
    pub(super) fn is_whole(&self) -> bool {
        matches!(self, Slot::Whole(_))
    }

    /// Whether it is a settled column with additions, or of a bounded counter, whose shares outlive it.
    pub(super) fn adds(&self) -> bool {
        matches!(self, Slot::Settled(bytes) if settled::stays_apart(bytes))
    }
}

impl Large {
    /// Notes what a write has put into a settled column.
    pub(super) fn note_effect(&mut self, effect: &Effect, write: &Write) {
        if matches!(effect, Effect::Put { .. }) {
            self.put.see(write.stamp);
        }
    }

    /// A set in which every value of a settled column is, if none of these has additions.
    pub(crate) fn values(&self) -> Option<&Observed> {
        (self.added == 0).then_some(&self.put)
    }

    /// Of how many datacenters settled columns have values, at most.
    pub(crate) fn put_by(&self) -> usize {
        self.put.puts().len()
    }

    /// How many settled columns have additions, or are of a bounded counter.
    pub(crate) fn added_count(&self) -> usize {
        self.added
    }

    /// How many columns are not settled.
    pub(crate) fn whole_count(&self) -> usize {
        self.whole.len()
    }

    /// Those columns.
    pub(crate) fn whole_columns(&self) -> impl Iterator<Item = (&Column, &Cell)> {
        self.whole.iter().filter_map(|slot| self.at(*slot)?.whole())
    }

    /// Takes out the columns that this does not end at once, each with what was counted of it: those that are not
    /// settled, that have additions, or whose values are not in it. Where no value can be of these, the settled columns
    /// are not looked at. Nothing if these are not the fewer.
    pub(crate) fn take_others(&mut self, ended: &Observed) -> Option<Vec<(Column, Cell, Counted)>> {
        if 2 * self.whole.len() > self.len() {
            return None;
        }
        let slots: Vec<u32> = match self.values().is_some_and(|values| ended.includes(values)) {
            true => self.whole.iter().copied().collect(),
            false => (0..self.slots.len() as u32).filter(|slot| !self.is_ended(*slot, ended)).collect(),
        };
        if 2 * slots.len() > self.len() {
            return None;
        }
        let take = |slot: u32| {
            let column = self.at(slot)?.column().into_owned();
            let counted = self.counted_at(slot)?;
            Some((column.clone(), self.remove(&column)?, counted))
        };
        Some(slots.into_iter().filter_map(take).collect())
    }

    fn is_ended(&self, slot: u32, ended: &Observed) -> bool {
        match self.at(slot) {
            None => true,
            Some(Found::Whole(..)) => false,
            Some(Found::Settled(item, origin)) => {
                item.settled(origin).only_value().is_some_and(|(stamp, _)| ended.covers(stamp))
            }
        }
    }

    /// Frees so many slots, and places in the order. Nobody looks at any of it any more, nor adds to it.
    pub(crate) fn free_some(&mut self, count: usize) -> Freed {
        let mut freed = Freed::default();
        for _ in 0..count {
            let Some(last) = self.slots.len().checked_sub(1) else { break };
            if let Some(counted) = self.counted_at(last as u32) {
                freed.columns += 1;
                freed.bytes += counted.bytes;
            }
            self.slots.pop();
        }
        if let Some(ranked) = &mut self.ranked {
            ranked.order.free_some(count);
        }
        freed
    }

    /// Whether all has been.
    pub(crate) fn is_freed(&self) -> bool {
        self.slots.is_empty() && self.ranked.as_ref().is_none_or(|ranked| ranked.order.is_empty())
    }

    /// Panics if what is known of the columns together differs from the columns.
    pub(crate) fn check_invariants(&self) {
        let slots = || (0..).zip(&self.slots);
        let whole = slots().filter(|(_, slot)| slot.is_whole()).map(|(number, _)| number);
        assert!(whole.eq(self.whole.iter().copied()), "columns that are not settled are noted wrong");
        let added = self.slots.iter().filter(|slot| slot.adds()).count();
        assert_eq!(added, self.added, "columns with additions are counted wrong");
        let found = self.slots.iter().filter_map(|slot| slot.found(&self.origin));
        let settled = found.filter_map(|found| match found {
            Found::Settled(item, origin) => item.settled(origin).put(),
            Found::Whole(..) => None,
        });
        settled.for_each(|put| assert!(self.put.covers(put), "{put:?} is not among the values"));
    }
}
