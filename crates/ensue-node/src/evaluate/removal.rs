//! Rows deleted: column by column, all columns of a large row by one effect where that can be, and a row whose deadline
//! has passed some columns a turn where it cannot. Shares of bounded counters that must outlive a row stay (`escrow`).

use super::{Evaluation, Halt, effect_bytes, is_live};
use bytes::Bytes;
use ensue_store::compact::RowRef;
use ensue_store::keyspace::RowRemoval;
use ensue_store::layout::{encoded_effect_bytes, encoded_previous_bytes};
use ensue_store::view::View;
use ensue_types::escrow::share_of;
use ensue_types::{Column, Effect, RowEffect, Seen, limits};
use std::collections::BTreeSet;

/// Columns of a row whose deadline has passed that one turn deletes.
const CLEARED_AT_ONCE: usize = 1_000;

impl<'a> Evaluation<'a> {
    /// What it takes to delete a row, at most.
    pub fn bytes_to_clear(&self, key: &Bytes) -> usize {
        match self.keyspace.row(key) {
            Some(row) if row.is_large() && self.row_removal(key).is_some() => {
                self.row_removal(key).map_or(0, |removal| removal_bytes(key, &removal))
            }
            None => 0,
            Some(RowRef::Compact(row)) => {
                let deadline = row.deadline().map_or(0, |_| effect_bytes(key, &Column::Deadline, 0));
                effect_bytes(key, &Column::Text, 0) + deadline
            }
            Some(RowRef::Packed(row)) => {
                let bytes: usize = row.columns().map(|(column, _)| effect_bytes(key, &column, 0)).sum();
                bytes + self.bytes_above(key, row.count())
            }
            Some(RowRef::Whole(row)) => {
                let effects = row.columns_count() + 1;
                let bytes = effects * effect_bytes(key, &Column::Deadline, 0) + row.name_bytes();
                bytes + self.bytes_above(key, effects)
            }
        }
    }

    /// Removes all of these columns, or none.
    pub(super) fn remove_columns(
        &mut self,
        key: &Bytes,
        columns: Vec<Column>,
        view: View<'_>,
    ) -> Result<(), Halt> {
        // None of them depends on another, so they may be made before the first is.
        let removals: Vec<RowEffect> =
            columns.into_iter().map(|column| self.removal(key, column, view)).collect();
        let names_previous = self.writer.as_ref().is_some_and(|writer| writer.wants_previous);
        let bytes = |removal: &RowEffect| {
            let previous = names_previous.then(|| self.keyspace.previous(key, &removal.column));
            encoded_effect_bytes(removal) + previous.as_ref().map_or(0, encoded_previous_bytes)
        };
        self.check_room(removals.iter().map(bytes).sum())?;
        removals.into_iter().for_each(|removal| self.change(removal));
        Ok(())
    }

    /// Deletes some of the columns of a row whose deadline has passed and that has too many to be deleted at once: of
    /// those from a place on. The deadline stays, so nobody sees that some are gone. Answers the place of the others.
    pub fn clear_some_expired(&mut self, key: &Bytes, place: usize) -> Option<usize> {
        let view = self.expired_view(key)?;
        let Some(RowRef::Whole(row)) = self.keyspace.row(key) else { return None };
        let (cells, next) = row.cells_from(place, (CLEARED_AT_ONCE, CLEARED_AT_ONCE));
        let live = cells.filter(|(_, cell)| is_live(cell, view));
        let columns: Vec<Column> = live.map(|(column, _)| column.into_owned()).collect();
        for column in columns {
            let removal = self.removal(key, column, view);
            if self.check_room(encoded_effect_bytes(&removal)).is_err() {
                return Some(place);
            }
            self.change(removal);
        }
        next
    }

    /// Whether deleting a row whose deadline has passed takes too long for one turn. What is left of it when all its
    /// columns are deleted does not.
    pub fn is_cleared_in_parts(&self, key: &Bytes) -> bool {
        let Some(RowRef::Whole(row)) = self.keyspace.row(key) else { return false };
        let is_long = row.is_large() && row.columns_count() > CLEARED_AT_ONCE && !row.is_spent();
        is_long && self.expired_view(key).is_some() && self.row_removal(key).is_none()
    }

    /// Deletes a row. One that takes too much for an entry expires now: everybody sees at once that it is gone, and its
    /// columns are deleted in parts.
    pub fn delete_row(&mut self, key: &Bytes) -> Result<(), Halt> {
        if self.bytes_to_clear(key) <= self.bytes_max() {
            return self.clear_row(key, |_| true);
        }
        self.check_room(self.bytes_to_delete(key))?;
        self.put(key, Column::Deadline, Bytes::from_static(&[0; 8]));
        Ok(())
    }

    /// What it takes to delete a row in this way, at most.
    pub fn bytes_to_delete(&self, key: &Bytes) -> usize {
        match self.bytes_to_clear(key) {
            bytes if bytes <= self.bytes_max() => bytes,
            _ => effect_bytes(key, &Column::Deadline, size_of::<u64>()),
        }
    }

    fn bytes_max(&self) -> usize {
        self.writer.as_ref().map_or(limits::ENTRY_BYTES_MAX, |writer| writer.bytes_max)
    }

    /// How one effect can remove all columns of a large row, if it can. A script may be stopped, and what it has
    /// changed taken back column by column; of what the write itself has changed there it says nothing.
    fn row_removal(&self, key: &Bytes) -> Option<RowRemoval> {
        let writer = self.writer.as_ref().filter(|writer| writer.removes_rows && writer.kept.is_none())?;
        if writer.wants_previous || !matches!(self.view, View::Newest) || writer.has_changed(key) {
            return None;
        }
        self.keyspace.row_removal(key, writer.write.stamp)
    }

    /// Removes all columns of a large row by one effect, if that can be, and its deadline; says whether it has.
    pub(super) fn remove_large_row(&mut self, key: &Bytes, with_deadline: bool) -> Result<bool, Halt> {
        let Some(removal) = self.row_removal(key) else { return Ok(false) };
        self.check_room(removal_bytes(key, &removal))?;
        let RowRemoval { observed, mut others } = removal;
        let row = self.keyspace.row(key).map(RowRef::whole);
        let deadline = row.as_ref().and_then(|row| row.cell(&Column::Deadline));
        let has_deadline = with_deadline && deadline.is_some_and(|cell| is_live(&cell, self.view));
        others.extend(has_deadline.then_some(Column::Deadline));
        others.into_iter().for_each(|column| self.remove_column(key, column, self.view));
        let effect = Effect::Remove { observed, seen: Seen::new() };
        self.change(RowEffect { key: key.clone(), column: Column::Row, effect });
        Ok(true)
    }

    /// Deletes the live columns and the deadline, those that the filter names, without observing them.
    pub fn clear_row(&mut self, key: &Bytes, doomed: impl Fn(&Column) -> bool) -> Result<(), Halt> {
        let Some(row) = self.keyspace.row(key) else { return Ok(()) };
        if let RowRef::Compact(row) = row {
            let is_shown = row.at(self.view).is_ok();
            let columns = [Some(Column::Text), row.deadline().map(|_| Column::Deadline)];
            let columns = columns.map(|column| column.filter(|column| is_shown && doomed(column)));
            self.check_room(columns.iter().flatten().map(|column| effect_bytes(key, column, 0)).sum())?;
            columns.into_iter().flatten().for_each(|column| self.remove_column(key, column, self.view));
            return Ok(());
        }
        if row.is_large() && self.remove_large_row(key, doomed(&Column::Deadline))? {
            return Ok(());
        }
        let Some(row) = self.keyspace.row(key) else { return Ok(()) };
        let mut columns = removable(row, self.view);
        columns.retain(doomed);
        self.remove_columns(key, columns, self.view)
    }
}

/// What it takes in an entry at most, a deadline counted.
fn removal_bytes(key: &Bytes, removal: &RowRemoval) -> usize {
    let others: usize = removal.others.iter().map(|column| effect_bytes(key, column, 0)).sum();
    others + 2 * effect_bytes(key, &Column::Row, 0)
}

/// The live columns of a row that may be removed together: all but shares whose counters are not among them.
pub(super) fn removable(row: RowRef<'_>, view: View<'_>) -> Vec<Column> {
    let mut columns = live_columns(row, view);
    let is_counter = |column: &Column| matches!(column, Column::Escrow(name) if share_of(name).is_none());
    if !columns.iter().any(|column| matches!(column, Column::Escrow(_))) {
        return columns;
    }
    let counters: BTreeSet<Column> = columns.iter().filter(|column| is_counter(column)).cloned().collect();
    columns.retain(|column| match column {
        Column::Escrow(name) => share_of(name)
            .is_none_or(|(counter, _)| counters.contains(&Column::Escrow(Bytes::copy_from_slice(counter)))),
        _ => true,
    });
    columns
}

fn live_columns(row: RowRef<'_>, view: View<'_>) -> Vec<Column> {
    let row = match row {
        RowRef::Whole(row) => row,
        RowRef::Compact(row) => {
            let deadline = row.deadline().map(|_| Column::Deadline);
            return if row.at(view).is_ok() {
                [Column::Text].into_iter().chain(deadline).collect()
            } else {
                Vec::new()
            };
        }
        RowRef::Packed(row) => {
            let shown = row.columns().filter(|(_, settled)| settled.at(view).is_ok());
            return shown.map(|(column, _)| column).collect();
        }
    };
    if row.is_spent() {
        let deadlines = row.field_deadlines().chain([Column::Deadline]);
        let live = |column: &Column| row.cell(column).is_some_and(|cell| is_live(&cell, view));
        return deadlines.filter(live).collect();
    }
    row.all_cells().filter(|(_, cell)| is_live(cell, view)).map(|(column, _)| column.into_owned()).collect()
}
