//! Rollback of changes that no one but their writer has seen.
//!
//! [`Keyspace::keep`] saves a column before it changes; [`Keyspace::take_back`] restores it. Columns must be restored
//! in the reverse order, and before anything else changes the rows.

use super::Keyspace;
use crate::cell::Cell;
use crate::compact::RowRef;
use crate::row::Row;
use bytes::Bytes;
use ensue_types::{Column, LogicalTime};
use std::borrow::Cow;

/// A location as it was.
#[derive(Clone, Debug)]
pub struct Kept {
    key: Bytes,
    column: Column,
    cell: Option<Cell>,
    /// Of the row.
    since: LogicalTime,
    versions_come: usize,
    spent: usize,
    expiries: usize,
    written: usize,
}

impl Keyspace {
    /// A location as it is, before it changes.
    pub fn keep(&mut self, key: &Bytes, column: &Column) -> Kept {
        self.expect_write(key);
        let row = self.row(key);
        let cell = match row {
            Some(RowRef::Packed(row)) => row.get(column).map(|settled| settled.cell()),
            _ => row.and_then(|row| row.whole().cell(column).map(Cow::into_owned)),
        };
        Kept {
            key: key.clone(),
            column: column.clone(),
            cell,
            since: row.map_or(self.absent_since, RowRef::since),
            versions_come: self.versions_come,
            spent: self.spent.len(),
            expiries: self.expiries.len(),
            written: self.written.len(),
        }
    }

    /// Makes a location as it was kept.
    pub fn take_back(&mut self, kept: Kept) {
        let Kept { key, column, cell, since, versions_come, spent, expiries, written } = kept;
        self.written.truncate(written);
        let Some(slot) = self.slot_of(&key) else { return };
        let row = self.whole(slot);
        let before = row.counted(&column).unwrap_or_default();
        row.put_back(&column, cell, since);
        let after = row.counted(&column).unwrap_or_default();
        let is_empty = row.is_empty();
        if before.is_there && !after.is_there {
            self.cells -= 1;
        }
        self.count(before, after);
        self.versions_come = versions_come;
        if before.unsettled > 0 && after.unsettled == 0 {
            let place = self.unsettled.iter().rposition(|(at, named)| *at == slot && *named == column);
            place.and_then(|place| self.unsettled.remove(place));
        }
        self.recount_row(slot);
        self.spent.truncate(spent);
        self.expiries.truncate(expiries);
        match is_empty {
            true => self.release(slot),
            false => self.settle_row(slot),
        }
    }
}

impl Row {
    /// Makes a column, and what the row knows of all of them, as it was.
    fn put_back(&mut self, column: &Column, cell: Option<Cell>, since: LogicalTime) {
        match cell {
            Some(cell) => self.replace(column, cell),
            None => drop(self.remove(column)),
        }
        self.set_since(since);
    }
}

#[cfg(test)]
mod tests;
