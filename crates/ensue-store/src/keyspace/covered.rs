//! Which additions a value covers, and when that need not be remembered any more.
//!
//! A tombstone of a counter that was collected is known by its stamp alone: what is put where nothing is covers every
//! addition up to there (`DatacenterId::EVERY`), because elsewhere the tombstone and the additions may still stand.
//! That is part of the write. In a row it stands only until everything up to there has come here: what comes then is
//! later, and what had come is gone, or stands beside the value and is covered by name. Whoever puts something over
//! such a value covers as much again.

use super::Keyspace;
use super::slots::Slot;
use crate::cell::{self, Counter, State};
use crate::columns::detached;
use crate::compact::RowRef;
use crate::view::View;
use ensue_types::{Column, DatacenterId, Decimal, Effect, EpochSum, RowEffect, Rule, Seen, SeenSum, Stamp};
use std::collections::VecDeque;

/// Columns whose values cover additions of which some may still come.
#[derive(Clone, Debug, Default)]
pub(super) struct Covering {
    columns: VecDeque<(u32, Column)>,
    /// They were looked at when everything up to there had been forgotten, but for so many.
    through: Stamp,
    left: usize,
    /// More than that must be forgotten of some of them first.
    is_delayed: bool,
}

impl Keyspace {
    /// The additions that a base written now, in this view, must cover.
    pub fn seen(&self, key: &[u8], column: &Column, view: View<'_>) -> Seen {
        match self.row(key) {
            Some(RowRef::Whole(row)) => self.seen_in(row.cell(column).as_deref(), view),
            Some(RowRef::Packed(row)) => {
                self.seen_in(row.get(column).map(|settled| settled.cell()).as_ref(), view)
            }
            Some(RowRef::Compact(_)) if *column == Column::Text => self.seen_by_settled(),
            _ => self.seen_by(None),
        }
    }

    /// The same where a settled value stands and no addition is known.
    pub(super) fn seen_by_settled(&self) -> Seen {
        if self.handlers.is_some() { Seen::new() } else { self.seen_by(None) }
    }

    pub(super) fn seen_in(&self, cell: Option<&cell::Cell>, view: View<'_>) -> Seen {
        let Some(cell) = cell else { return self.seen_by(None) };
        if cell.versions().is_none() {
            return self.seen_by(Some(cell.state()));
        }
        if !cell.state().knows_additions() && self.collected == Stamp::ZERO {
            // No view shows an addition.
            return Seen::new();
        }
        let mut seen = cell.seen(view);
        let has_base = cell.at(view).is_some_and(|shown| !shown.state.has_no_base());
        if !has_base || self.may_have_forgotten(cell.state()) {
            // Not those that are here and hidden: they have not been deleted.
            let hidden = cell.versions().and_then(|versions| versions.lowest_hidden_addition(view));
            let forgotten = hidden.map_or(self.collected, |hidden| self.collected.min(hidden.before()));
            self.cover_forgotten(&mut seen, forgotten);
        }
        seen
    }

    pub(super) fn seen_by(&self, state: Option<&State>) -> Seen {
        let mut seen = state.map(State::seen).unwrap_or_default();
        if state.is_none_or(|state| state.has_no_base() || self.may_have_forgotten(state)) {
            self.cover_forgotten(&mut seen, self.collected);
        }
        seen
    }

    /// Whether what stands here may cover additions without saying so.
    fn may_have_forgotten(&self, state: &State) -> bool {
        self.handlers.is_none() && !state.knows_additions()
    }

    fn cover_forgotten(&self, seen: &mut Seen, forgotten: Stamp) {
        if forgotten != Stamp::ZERO && Rule::CoverForgottenAdditions.holds() {
            let epoch_sum = EpochSum { epoch: Stamp::ZERO, sum: Decimal::ZERO };
            cell::see(seen, SeenSum { datacenter: DatacenterId::EVERY, epoch_sum, stamp: forgotten });
        }
    }

    /// A value without the additions that it covers, if all of these had come here and none is known.
    pub(super) fn without_covered(&mut self, change: &RowEffect) -> Option<RowEffect> {
        let Effect::Put { value, seen, over } = &change.effect else { return None };
        let covered = cell::of_every(seen).filter(|covered| *covered <= self.forgotten)?;
        if self.handlers.is_some() || self.knows_additions(change) {
            return None;
        }
        self.collected = self.collected.max(covered);
        let effect = Effect::Put { value: value.clone(), seen: Seen::new(), over: over.clone() };
        Some(RowEffect { effect, ..change.clone() })
    }

    fn knows_additions(&self, change: &RowEffect) -> bool {
        match self.row(&change.key) {
            None | Some(RowRef::Compact(_)) => false,
            Some(RowRef::Packed(row)) => row.get(&change.column).is_some_and(|known| known.is_counter()),
            Some(RowRef::Whole(row)) => match row.settled(&change.column) {
                Some(known) => known.is_counter(),
                None => row.cell(&change.column).is_some_and(|cell| cell.state().knows_additions()),
            },
        }
    }

    /// Notes a value that covers additions of which some may still come here, once.
    pub(super) fn note_covering(&mut self, slot: u32, change: &RowEffect) {
        let Effect::Put { seen, .. } = &change.effect else { return };
        if cell::of_every(seen).is_none() || self.handlers.is_some() {
            return;
        }
        let Some(row) = self.slots[slot as usize].whole_mut() else { return };
        if row.note_covering(&change.column) {
            self.covering.columns.push_back((slot, detached(&change.column)));
        }
    }

    /// Has the values looked at from now on of which all may have come here that they cover.
    pub fn begin_forgetting_covered(&mut self) {
        if self.covering.through < self.forgotten || self.covering.is_delayed {
            let left = self.covering.columns.len();
            self.covering = Covering {
                through: self.forgotten,
                is_delayed: false,
                left,
                ..std::mem::take(&mut self.covering)
            };
        }
    }

    /// Forgets what values cover when all of it has come here, of not more than `budget` columns.
    pub fn forget_covered(&mut self, budget: usize) {
        for _ in 0..budget.min(self.covering.left) {
            self.covering.left -= 1;
            let Some((slot, column)) = self.covering.columns.pop_front() else { return };
            if self.forget_covered_by(slot, &column) {
                self.covering.columns.push_back((slot, column));
            }
        }
    }

    /// Whether it is to be looked at once more.
    fn forget_covered_by(&mut self, slot: u32, column: &Column) -> bool {
        let forgotten = self.forgotten;
        let Some(row) = self.slots.get_mut(slot as usize).and_then(Slot::whole_mut) else { return false };
        let known = row.cell(column).map(|cell| {
            let covered = cell.state().counter.as_deref().and_then(Counter::covered_unnamed);
            (covered, cell.as_undisputed().is_some())
        });
        let Some((Some(covered), is_alone)) = known else {
            row.unnote_covering(column);
            return false;
        };
        if covered > forgotten {
            return true;
        }
        if !is_alone {
            self.covering.is_delayed = true;
            return true;
        }
        let before = row.counted(column).unwrap_or_default();
        row.forget_covered(column);
        let after = row.counted(column).unwrap_or_default();
        self.collected = self.collected.max(covered);
        self.count(before, after);
        self.settle_row(slot);
        false
    }
}

#[cfg(test)]
mod tests;
