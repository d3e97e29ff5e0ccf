//! Rows of which one effect removes all columns (`Column::Row`), however many they are.
//!
//! Such a removal names what it had observed of each column: of each datacenter the last put of the row, which stands
//! for all before it, because one owner takes all writes of a row in a datacenter. So it is only to be made where
//! everything that a datacenter had put there before has been applied, too (`Keyspace::row_removal`), and in keyspaces
//! that keep no versions. Its state stands beside the columns until it is forgotten, as a tombstone's does, and ends
//! what comes late.
//!
//! The settled columns of a large row that it ends are taken out of the row as they are, without a look at them. No
//! tombstones are left of them. They are freed a bounded number a turn, and are counted until then.

use super::Keyspace;
use crate::cell::{Keep, Outcome, Write};
use crate::columns::{Freed, Large};
use crate::compact::RowRef;
use crate::row::Row;
use ensue_types::{Column, DatacenterId, Effect, Observed, Over, RowEffect, Rule, Seen, Stamp};
use std::collections::VecDeque;

/// Columns that are freed at once, for each that a row may have before it is large.
const FREED_AT_ONCE: usize = 16;
/// A row with more columns than these that are not settled is not removed as a whole.
const OTHERS_MAX: usize = 1_024;

/// Columns that were ended and are to be freed, and rows whose columns were.
#[derive(Clone, Debug, Default)]
pub(super) struct EndedRows {
    columns: VecDeque<Box<Large>>,
    /// Rows with removals of all columns.
    rows: usize,
}

/// How all columns of a row can be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowRemoval {
    /// What the removal of all of them is to observe.
    pub observed: Observed,
    /// The live ones of which it does not observe enough, and that are to be removed by themselves before.
    pub others: Vec<Column>,
}

impl EndedRows {
    pub(super) fn forget_row(&mut self) {
        self.rows -= 1;
    }

    /// Columns that are not freed yet.
    pub(super) fn columns(&self) -> impl Iterator<Item = &Large> {
        self.columns.iter().map(|columns| &**columns)
    }
}

impl Keyspace {
    /// How one effect of a write with this stamp can remove all columns of a row but its deadline, if the row is large
    /// and it can. Only for who has applied all that the observed datacenters had put there before, and shows it.
    pub fn row_removal(&self, key: &[u8], stamp: Stamp) -> Option<RowRemoval> {
        if self.keeps_versions || self.handlers.is_some() {
            return None;
        }
        let Some(RowRef::Whole(row)) = self.row(key) else { return None };
        let large = row.large().filter(|large| large.whole_count() <= OTHERS_MAX)?;
        if row.has_field_deadlines() || row.is_spent() {
            return None;
        }
        let mut observed = Observed::all_through(self.forgotten);
        observed.join(large.values()?);
        if let Some((_, known)) = row.ended_by() {
            observed.join(known);
        }
        // A write that meets later ones is evaluated again, and ends none of them.
        let is_latest = observed.through() < stamp && observed.puts().iter().all(|put| *put < stamp);
        if large.whole_columns().any(|(column, _)| matches!(column, Column::Escrow(_))) {
            return None;
        }
        let live = large.whole_columns().filter(|(_, cell)| cell.state().is_live());
        let others = live.map(|(column, _)| column.clone()).collect();
        is_latest.then_some(RowRemoval { observed, others })
    }

    /// Merges a removal of all columns of a row.
    pub(super) fn end_row(&mut self, change: &RowEffect, write: &Write) -> Outcome {
        let Effect::Remove { observed, seen } = &change.effect else { return Outcome::Lost };
        let slot = self.slot_for(&change.key);
        let row = self.slots[slot as usize].whole_mut().expect("slot_for fills the slot");
        self.ended.rows += usize::from(row.ended().is_none());
        if !row.has_ended(observed) || !Rule::RemovedRowsStayRemoved.holds() {
            self.end_columns(slot, (observed, seen), write);
        }
        self.merge(change, write, |row, effect, empty_since| {
            let changed = row.apply(&Column::Row, effect, write, Keep::default(), empty_since);
            row.ended_since(write.at);
            changed
        });
        Outcome::Won
    }

    fn end_columns(&mut self, slot: u32, (observed, seen): (&Observed, &Seen), write: &Write) {
        let row = self.whole(slot);
        let key = row.key().clone();
        let ended = row.take_ended(observed, write.at);
        let is_large = row.is_large();
        if let Some(ended) = ended {
            ended.others.into_iter().for_each(|(before, after)| self.count(before, after));
            self.ended.columns.push_back(ended.columns);
            if !is_large {
                self.large.remove(&slot);
            }
        }
        let history = self.is_marked(&key) && Rule::KeepOldVersions.holds();
        for column in self.whole(slot).touched_by(observed) {
            let effect = Effect::Remove { observed: observed.clone(), seen: seen.clone() };
            let change = RowEffect { key: key.clone(), column, effect };
            let keep = Keep { history, versions: self.keeps_versions, ..Keep::default() };
            self.merge(&change, write, |row, effect, empty_since| {
                row.apply(&change.column, effect, write, keep, empty_since)
            });
        }
    }

    /// What becomes of a put or a tombstone that comes after a removal of all columns which had observed it: nothing,
    /// but that what it has overwritten is ended all the same.
    ///
    /// Additions that it had seen are not covered by it. Whoever removed the row had seen them, too: the column was
    /// removed by itself then, with these additions, or had been overwritten by what covers them.
    pub(super) fn late_for_row(&self, change: &RowEffect, write: &Write) -> Option<Late> {
        if self.ended.rows == 0 || matches!(change.column, Column::Row | Column::Deadline) {
            return None;
        }
        let over = match &change.effect {
            Effect::Put { over, .. } => over.as_deref(),
            Effect::Delete { .. } => None,
            Effect::Remove { .. } | Effect::Add { .. } => return None,
        };
        let Some(RowRef::Whole(row)) = self.row(&change.key) else { return None };
        let (_, observed) = row.ended_by()?;
        if !observed.covers(write.stamp) || !Rule::RemovedRowsStayRemoved.holds() {
            return None;
        }
        Some(match over {
            None => Late::Nothing,
            Some(over) => {
                let effect = Effect::Remove { observed: over.clone(), seen: Seen::new() };
                Late::Overwrites(Box::new(RowEffect { effect, ..change.clone() }))
            }
        })
    }

    /// Frees some of the columns that were ended; says whether there are more.
    pub fn free_ended(&mut self) -> bool {
        let count = FREED_AT_ONCE * usize::from(self.columns_max);
        if let Some(columns) = self.ended.columns.front_mut() {
            let Freed { columns: freed, bytes } = columns.free_some(count);
            self.cells -= freed;
            self.bytes -= bytes;
            if columns.is_freed() {
                self.ended.columns.pop_front();
            }
        }
        !self.ended.columns.is_empty()
    }

    /// Columns that were ended and are not freed yet.
    pub fn ended_columns(&self) -> usize {
        self.ended.columns().map(Large::slots_count).sum()
    }

    /// What a put of a datacenter that names these overwrites, with what removals of the whole row had observed of the
    /// others: who ends the put alone must not bring it back where those have not come.
    pub(super) fn over_with_ended(row: &Row, column: &Column, over: Over, by: DatacenterId) -> Over {
        let ended = row.ended_of_others(by).filter(|_| *column != Column::Deadline);
        match (over, ended) {
            (Some(mut over), Some(ended)) => {
                over.join(&ended);
                Some(over)
            }
            (over, ended) => over.or(ended),
        }
    }
}

/// See [`Keyspace::late_for_row`].
pub(super) enum Late {
    Nothing,
    /// It ends this of what others have put.
    Overwrites(Box<RowEffect>),
}
