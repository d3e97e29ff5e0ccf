//! How many rows show something, and of what else there are how many: counted as rows change, so that nobody has to
//! walk them for it.

use super::Keyspace;
use super::slots::{Slot, row_bytes};
use crate::counted::{Counted, Shows};

/// Of a keyspace, as its newest writes have made it; what has expired and was not deleted yet is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShownRows {
    /// Rows that show something.
    pub rows: u64,
    /// Those of them with a deadline.
    pub dated: u64,
    /// Columns that show nothing.
    pub dead: u64,
    /// Bytes that are counted for these, without their dependencies, and for rows that show nothing.
    pub dead_bytes: u64,
    /// Values that stand beside newer ones.
    pub beside: u64,
}

impl ShownRows {
    fn add(&mut self, shows: Shows) {
        self.rows += u64::from(shows.something);
        self.dated += u64::from(shows.deadline);
    }

    fn subtract(&mut self, shows: Shows) {
        self.rows -= u64::from(shows.something);
        self.dated -= u64::from(shows.deadline);
    }

    /// A column has changed.
    pub(super) fn column(&mut self, before: Counted, after: Counted) {
        self.dead = self.dead + after.is_dead() - before.is_dead();
        self.dead_bytes = self.dead_bytes + after.dead_bytes() - before.dead_bytes();
        self.beside = self.beside + after.beside - before.beside;
    }
}

impl Keyspace {
    /// What is counted of all rows. In a keyspace that keeps versions not every reader may see it.
    pub fn shown_rows(&self) -> ShownRows {
        self.shown
    }

    /// What is counted of a slot.
    fn counted_as(&self, slot: usize) -> Shows {
        match &self.slots[slot] {
            Slot::Free | Slot::Hidden(_) => Shows::default(),
            Slot::Compact(row) => Shows::of_text(row.deadline().is_some()),
            Slot::Packed(_) => Shows::SETTLED,
            Slot::Whole(row) => row.counted_as,
        }
    }

    /// What is counted for a row in a slot beside its columns, if it shows nothing; all of a hidden row.
    fn dead_row_bytes(&self, slot: usize) -> u64 {
        match &self.slots[slot] {
            Slot::Hidden(hidden) => hidden.bytes(),
            Slot::Whole(row) if !row.counted_as.something => row_bytes(row.key()),
            Slot::Free | Slot::Compact(_) | Slot::Packed(_) | Slot::Whole(_) => 0,
        }
    }

    /// Puts something else into a slot.
    pub(super) fn put_slot(&mut self, slot: usize, there: Slot) -> Slot {
        self.shown.subtract(self.counted_as(slot));
        self.shown.dead_bytes -= self.dead_row_bytes(slot);
        let before = std::mem::replace(&mut self.slots[slot], there);
        self.shown.add(self.counted_as(slot));
        self.shown.dead_bytes += self.dead_row_bytes(slot);
        before
    }

    /// A whole row has changed.
    pub(super) fn recount_row(&mut self, slot: u32) {
        let slot = slot as usize;
        let dead_bytes = self.dead_row_bytes(slot);
        let Some(row) = self.slots[slot].whole_mut() else { return };
        let (before, now) = (row.counted_as, row.shows());
        row.counted_as = now;
        self.shown.subtract(before);
        self.shown.add(now);
        self.shown.dead_bytes = self.shown.dead_bytes + self.dead_row_bytes(slot) - dead_bytes;
    }

    /// The same counts, by a walk over all rows.
    pub(super) fn count_shown_rows(&self) -> ShownRows {
        let mut counted = ShownRows::default();
        (0..self.slots.len()).for_each(|slot| counted.add(self.counted_as(slot)));
        counted.dead_bytes = (0..self.slots.len()).map(|slot| self.dead_row_bytes(slot)).sum();
        for row in self.whole_rows() {
            assert_eq!(row.counted_as, row.shows(), "it is not known what {:?} shows", row.key());
            row.counted_all().for_each(|column| counted.column(Counted::default(), column));
        }
        counted
    }
}
