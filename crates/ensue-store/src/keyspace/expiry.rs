//! Rows and fields with deadlines, noted when these come, for whoever deletes what has expired. It does not decide when
//! that is.

use super::Keyspace;
use crate::cell::Cell;
use crate::compact::RowRef;
use crate::row::dated;
use crate::view::View;
use bytes::Bytes;
use ensue_types::{Column, Stamp};
use std::borrow::Cow;

/// A row or a field with a deadline, which has to be deleted by a write when it has passed: what one datacenter just
/// dropped would hide from another one's readers what is written to it afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expiry {
    pub key: Bytes,
    /// The field that it is the deadline of; nothing if it is the row's.
    pub field: Option<Bytes>,
    /// The deadline, in milliseconds since 1970.
    pub deadline_ms: u64,
    /// The stamp of the deadline.
    pub stamp: Stamp,
}

impl Expiry {
    fn column(&self) -> Column {
        self.field.as_ref().map_or(Column::Deadline, |name| Column::FieldDeadline(name.clone()))
    }
}

impl Keyspace {
    /// Deadlines noted since the last call.
    pub fn take_expiries(&mut self) -> Vec<Expiry> {
        std::mem::take(&mut self.expiries)
    }

    /// Whether the row, or the field, still has this deadline. A field's may be of a value that is no longer there.
    pub fn expires(&self, expiry: &Expiry) -> bool {
        let row = match self.row(&expiry.key) {
            Some(RowRef::Whole(row)) => row,
            Some(RowRef::Compact(row)) => {
                return expiry.field.is_none() && row.deadline().is_some() && row.stamp() == expiry.stamp;
            }
            _ => return false,
        };
        let is_the_same =
            |cell: Cow<'_, Cell>| cell.state().newest() == expiry.stamp && cell.state().is_live();
        row.cell(&expiry.column()).is_some_and(is_the_same)
    }

    pub(super) fn note_deadline(&mut self, slot: u32, column: &Column) {
        if !column.is_deadline() {
            return;
        }
        let Some(row) = self.slots[slot as usize].whole() else { return };
        let Some(cell) = row.cell(column) else { return };
        let deadline_ms = match column {
            Column::FieldDeadline(_) => dated::deadline_of(cell.state()).map(|deadline| deadline.ms),
            _ => row.deadline_at(View::Newest).ok().flatten(),
        };
        let Some(deadline_ms) = deadline_ms else { return };
        let slot = slot as usize;
        if *column == Column::Deadline && !self.dated.contains(slot) {
            self.dated.insert(slot);
        }
        // Of its own, so that it does not keep a client's whole read buffer alive.
        let (key, stamp) = (Bytes::copy_from_slice(row.key()), cell.state().newest());
        let field = match column {
            Column::FieldDeadline(name) => Some(Bytes::copy_from_slice(name)),
            _ => None,
        };
        self.expiries.push(Expiry { key, field, deadline_ms, stamp });
    }
}
