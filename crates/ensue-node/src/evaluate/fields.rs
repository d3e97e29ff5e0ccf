//! Fields with deadlines: what has expired shows nothing, and is removed before anything else is written to it.
//!
//! Arrives: a row, a view and a time. Promises: a field whose deadline has passed is absent at that time, whatever
//! has been deleted by then, and who looks at a field or at all of them has observed their deadlines. A deadline is of
//! one value (`FieldDeadline`): what is put later has none. It does not decide when what has expired is deleted.

use super::{Evaluation, Halt, Observed, is_live};
use bytes::Bytes;
use ensue_store::compact::RowRef;
use ensue_store::row::{Gone, Row};
use ensue_store::view::View;
use ensue_types::{Column, FieldDeadline, LogicalTime};

/// Looks at the deadline of a column's field, if it is a field's; says whether it has passed.
pub(super) fn look(
    observed: &mut Observed,
    row: RowRef<'_>,
    column: &Column,
    (view, at): (View<'_>, LogicalTime),
) -> Result<bool, Gone> {
    let (RowRef::Whole(row), Column::Field(name)) = (row, column) else { return Ok(false) };
    if !row.has_field_deadlines() {
        return Ok(false);
    }
    let Some(cell) = row.cell(&Column::FieldDeadline(name.clone())) else { return Ok(false) };
    observed.record(&cell.at(view).ok_or(Gone)?);
    let Some(deadline) = row.field_deadline_at(name, view)?.filter(|ms| *ms <= at.ms()) else {
        return Ok(false);
    };
    // Its value is a part of what is answered: that it is the one that the deadline is of.
    if let Some(cell) = row.cell(column) {
        observed.record(&cell.at(view).ok_or(Gone)?);
    }
    observed.valid_since(LogicalTime::from_ms(deadline));
    Ok(true)
}

/// Observes that fields have expired, by the latest of their deadlines. All of the row has been observed.
pub(super) fn observe_expired(
    observed: &mut Observed,
    row: RowRef<'_>,
    (view, at): (View<'_>, LogicalTime),
) -> Result<(), Gone> {
    let RowRef::Whole(row) = row else { return Ok(()) };
    let latest = row.latest_expired(view, at.ms())?;
    latest.into_iter().for_each(|deadline| observed.valid_since(LogicalTime::from_ms(deadline)));
    Ok(())
}

/// How many fields have expired. All of the row has been observed.
pub(super) fn expired_count(
    observed: &mut Observed,
    row: RowRef<'_>,
    (view, at): (View<'_>, LogicalTime),
) -> Result<usize, Gone> {
    observe_expired(observed, row, (view, at))?;
    if let RowRef::Whole(row) = row { row.expired_count(view, at.ms()) } else { Ok(0) }
}

/// Whether a column is a field that has expired.
pub(super) fn is_expired(
    row: &Row,
    column: &Column,
    (view, at): (View<'_>, LogicalTime),
) -> Result<bool, Gone> {
    let Column::Field(name) = column else { return Ok(false) };
    Ok(row.field_deadline_at(name, view)?.is_some_and(|ms| ms <= at.ms()))
}

/// Whether a row shows no field.
pub(super) fn are_none(row: &Row, view: View<'_>, at: LogicalTime) -> bool {
    row.shows_field(view, at.ms()).is_ok_and(|shows| !shows)
}

impl Evaluation<'_> {
    /// Whether a row may have fields with deadlines.
    pub fn has_field_deadlines(&self, key: &[u8]) -> bool {
        matches!(self.keyspace.row(key), Some(RowRef::Whole(row)) if row.has_field_deadlines())
    }

    /// The deadline of a field that is there, in milliseconds since 1970. The field has been looked at.
    pub fn field_deadline(&self, key: &[u8], name: &Bytes) -> Result<Option<u64>, Halt> {
        let Some(RowRef::Whole(row)) = self.keyspace.row(key) else { return Ok(None) };
        Ok(row.field_deadline_at(name, self.view)?)
    }

    /// Sets the deadline of the value that a field has now.
    pub fn put_field_deadline(&mut self, key: &Bytes, name: &Bytes, ms: u64) -> Result<(), Halt> {
        let of = match self.keyspace.row(key) {
            Some(row) => row.whole().field_put_by(name, self.view)?,
            None => return Ok(()),
        };
        let deadline = FieldDeadline { ms, of };
        self.put(key, Column::FieldDeadline(name.clone()), deadline.to_bytes());
        Ok(())
    }

    /// Removes the deadline of a field that is seen, whatever value it is of.
    pub fn remove_field_deadline(&mut self, key: &Bytes, name: &Bytes) {
        let Some(RowRef::Whole(row)) = self.keyspace.row(key) else { return };
        if !row.has_field_deadlines() {
            return;
        }
        let column = Column::FieldDeadline(name.clone());
        if row.cell(&column).is_some_and(|cell| is_live(&cell, self.view)) {
            self.remove_column(key, column, self.view);
        }
    }

    /// Removes a field that is there, with its deadline.
    pub fn delete_field(&mut self, key: &Bytes, name: &Bytes) -> Result<(), Halt> {
        self.delete(key, Column::Field(name.clone()))?;
        self.remove_field_deadline(key, name);
        Ok(())
    }

    /// Makes a field ready for a write that adds to it: what has expired is removed before. Every such command calls
    /// this, or removes the deadline, after `begin_write` and before it changes the field.
    pub fn begin_field(&mut self, key: &Bytes, name: &Bytes) -> Result<(), Halt> {
        if !self.has_field_deadlines(key) {
            return Ok(());
        }
        let column = Column::Field(name.clone());
        let is_expired = self.field_deadline(key, name)?.is_some_and(|ms| ms <= self.at.ms());
        if is_expired {
            self.remove_column(key, column.clone(), self.view);
        }
        // Additions alone have one name, and so has what was removed of them: its deadline is not that of new ones.
        let shows = |row: RowRef<'_>| row.whole().cell(&column).is_some_and(|cell| is_live(&cell, self.view));
        if is_expired || !self.keyspace.row(key).is_some_and(shows) {
            self.remove_field_deadline(key, name);
        }
        Ok(())
    }

    /// Removes a field whose deadline has passed, and a deadline that has, of whatever value it was.
    pub fn clear_expired_field(&mut self, key: &Bytes, name: &Bytes) -> Result<(), Halt> {
        self.begin_field(key, name)?;
        let Some(RowRef::Whole(row)) = self.keyspace.row(key) else { return Ok(()) };
        if row.has_passed(name, self.view, self.at.ms())? {
            self.remove_field_deadline(key, name);
        }
        Ok(())
    }
}
