//! What need not be kept for ever: tombstones, removals and undominated puts, noted when they come, and forgotten when
//! nothing older can arrive any more. It does not decide when that is.

use super::Keyspace;
use crate::cell::Outcome;
use crate::columns::detached;
use crate::counted::{Changed, Counted};
use bytes::Bytes;
use ensue_types::{Column, Stamp};

/// A tombstone, or the removals and undominated puts of a column, that may be forgotten once nothing older can arrive
/// (trap 14).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spent {
    pub key: Bytes,
    pub column: Column,
    /// The tombstone's stamp, or the highest of all of these.
    pub stamp: Stamp,
    /// Up to which of their changes; nothing for a mere tombstone.
    pub changes: Option<u32>,
}

/// What became of a candidate for removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collected {
    Removed,
    /// Something newer is there; if it is spent too, it has been noted by itself.
    Changed,
    /// A second round may ask for it, or not every reader sees it yet; try again.
    Later,
}

impl Keyspace {
    /// Tombstones noted since the last call.
    pub fn take_spent(&mut self) -> Vec<Spent> {
        std::mem::take(&mut self.spent)
    }

    /// Forgets what was noted, unless it has changed since or a second round may ask for it. Answers whether it should
    /// be tried again.
    pub fn collect(&mut self, spent: &Spent) -> Collected {
        if self.is_marked(&spent.key) {
            return Collected::Later;
        }
        let Some(slot) = self.slot_of(&spent.key) else { return Collected::Changed };
        // A compact row is live, and holds no tombstone.
        let Some(row) = self.slots[slot as usize].whole_mut() else { return Collected::Changed };
        let Some(cell) = row.cell(&spent.column) else { return Collected::Changed };
        let is_the_same = match spent.changes {
            Some(_) => cell.state().changes() == spent.changes,
            None => cell.state().newest() == spent.stamp,
        };
        if !is_the_same {
            // Nothing stands behind a settled column any more.
            if spent.changes.and(cell.state().changes()).is_some() {
                row.unnote_undominated(&spent.column);
                self.note_undominated(slot, &spent.column);
            }
            return Collected::Changed;
        }
        if cell.unsettled() > 0 {
            return Collected::Later;
        }
        if spent.changes.is_some() {
            self.forgotten = self.forgotten.max(spent.stamp);
            let before = row.counted(&spent.column).unwrap_or_default();
            row.forget_undominated(&spent.column);
            let after = row.counted(&spent.column).unwrap_or_default();
            self.count(before, after);
        }
        let row = self.slots[slot as usize].whole_mut().expect("looked at above");
        let Some(cell) = row.cell(&spent.column) else { return Collected::Changed };
        if !cell.is_spent() {
            self.settle_row(slot);
            return Collected::Changed;
        }
        if cell.state().newest() > spent.stamp {
            // Additions have come since, which it covers.
            self.note_spent(slot, &spent.column);
            return Collected::Changed;
        }
        self.forgotten = self.forgotten.max(spent.stamp);
        if cell.state().counter.is_some() {
            self.collected = self.collected.max(spent.stamp);
        }
        let row = self.slots[slot as usize].whole_mut().expect("looked at above");
        let left = row.counted(&spent.column).unwrap_or_default();
        self.bytes -= left.bytes;
        self.dependencies -= left.dependencies;
        self.cells -= 1;
        self.shown.column(left, Counted::default());
        row.remove(&spent.column);
        if spent.column == Column::Row {
            self.ended.forget_row();
        }
        self.absent_since = self.absent_since.max(row.since());
        match row.is_empty() {
            true => self.release(slot),
            false => self.settle_row(slot),
        }
        Collected::Removed
    }

    /// Notes what a change of a column leaves behind: a tombstone, removals and undominated puts, or a deadline.
    pub(super) fn note_change(&mut self, slot: u32, column: &Column, changed: Changed) {
        let Changed { outcome, before, after, .. } = changed;
        let is_new = outcome == Outcome::Won || !before.is_there;
        self.note_escrow(slot, column);
        if is_new {
            self.note_deadline(slot, column);
        }
        match after.changes {
            Some(_) if after.changes != before.changes => self.note_undominated(slot, column),
            None if is_new && !after.is_live => self.note_spent(slot, column),
            _ => {}
        }
    }

    pub(super) fn note_spent(&mut self, slot: u32, column: &Column) {
        let Some(row) = self.slots[slot as usize].whole() else { return };
        let Some(cell) = row.cell(column) else { return };
        let state = cell.state();
        if state.last_change().is_some() {
            return self.note_undominated(slot, column);
        }
        if !state.is_live() {
            let (key, column, stamp) = (row.key().clone(), detached(column), state.newest());
            self.spent.push(Spent { key, column, stamp, changes: None });
        }
    }

    /// Notes the removals and undominated puts of a column, once until it is looked at: a hot location changes often.
    fn note_undominated(&mut self, slot: u32, column: &Column) {
        let Some(row) = self.slots[slot as usize].whole_mut() else { return };
        if let Some((changes, stamp)) = row.note_undominated(column) {
            let (key, column) = (row.key().clone(), detached(column));
            self.spent.push(Spent { key, column, stamp, changes: Some(changes) });
        }
    }
}
