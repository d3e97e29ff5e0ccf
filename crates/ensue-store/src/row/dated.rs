//! The fields of a row that have deadlines, by name and by time.
//!
//! A field's deadline is a column of its own (`FieldDeadline`), and counts if it names the operation that put the
//! field's value. So that asking for the kind of a row, or for how many fields it has, need not look at all of them,
//! the row keeps those that count in its newest state in the order of their times. If it shows more fields than have
//! one, or the latest of them has not passed, it shows a field. A view that is not the newest state may show others:
//! those of columns with versions, or, of a past state, any.

use super::{Gone, Kind, Row};
use crate::cell::{Content, State};
use crate::view::View;
use bytes::Bytes;
use ensue_types::{Column, FieldDeadline, OperationId};
use std::collections::{BTreeMap, BTreeSet};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Dated {
    /// Each column of a deadline that is here, with its newest time if that counts.
    names: BTreeMap<Bytes, Option<u64>>,
    /// Those that count, each of a live field.
    counting: BTreeSet<(u64, Bytes)>,
    #[cfg(test)]
    looked_at: std::cell::Cell<usize>,
}

/// The deadline that is in a column of one, whatever it is of.
pub(crate) fn deadline_of(state: &State) -> Option<FieldDeadline> {
    match state.content() {
        Content::Bytes(bytes) => FieldDeadline::of_bytes(&bytes),
        _ => None,
    }
}

/// What put the value that a state shows; the default if nothing has, but additions. It is the same everywhere,
/// whatever was forgotten where.
fn put_by(state: &State) -> OperationId {
    if state.base.value.is_some() { state.base.operation } else { OperationId::default() }
}

impl Dated {
    fn set(&mut self, name: &Bytes, ms: Option<u64>) {
        let before = match self.names.get_mut(name) {
            Some(known) => std::mem::replace(known, ms),
            None => {
                // Of its own, so that it does not keep a client's whole read buffer alive.
                self.names.insert(Bytes::copy_from_slice(name), ms);
                None
            }
        };
        if before == ms {
            return;
        }
        if let Some(before) = before {
            self.counting.remove(&(before, name.clone()));
        }
        if let (Some(ms), Some((name, _))) = (ms, self.names.get_key_value(name)) {
            self.counting.insert((ms, name.clone()));
        }
    }

    fn forget(&mut self, name: &Bytes) {
        if let Some(Some(ms)) = self.names.remove(name) {
            self.counting.remove(&(ms, name.clone()));
        }
    }

    /// Those that count and have passed, in the order of their times.
    fn passed(&self, at_ms: u64) -> impl DoubleEndedIterator<Item = &(u64, Bytes)> {
        self.counting.range(..(at_ms.saturating_add(1), Bytes::new()))
    }
}

impl Row {
    /// Whether it has columns of fields' deadlines, live or dead.
    pub fn has_field_deadlines(&self) -> bool {
        self.dated.is_some()
    }

    /// Keeps the order of times after a column has changed.
    pub(super) fn date(&mut self, column: &Column) {
        let is_dated = |name| self.dated.as_ref().is_some_and(|dated| dated.names.contains_key(name));
        match column {
            Column::Field(name) if is_dated(name) => self.date_field(name),
            Column::FieldDeadline(name) if self.columns.get(column).is_some() => {
                self.dated.get_or_insert_default();
                self.date_field(name);
            }
            Column::FieldDeadline(name) => {
                let Some(dated) = &mut self.dated else { return };
                dated.forget(name);
                if dated.names.is_empty() {
                    self.dated = None;
                }
            }
            _ => {}
        }
    }

    fn date_field(&mut self, name: &Bytes) {
        let ms = self.field_deadline_at(name, View::Newest).ok().flatten();
        if let Some(dated) = &mut self.dated {
            dated.set(name, ms);
        }
    }

    /// What put the value that a view shows of a field.
    pub fn field_put_by(&self, name: &Bytes, view: View<'_>) -> Result<OperationId, Gone> {
        let Some(cell) = self.cell(&Column::Field(name.clone())) else { return Ok(OperationId::default()) };
        Ok(put_by(&cell.at(view).ok_or(Gone)?.state))
    }

    /// The deadline that a view shows of the value that it shows of a field, in milliseconds since 1970.
    pub fn field_deadline_at(&self, name: &Bytes, view: View<'_>) -> Result<Option<u64>, Gone> {
        if self.dated.is_none() {
            return Ok(None);
        }
        self.note_look();
        let Some(cell) = self.cell(&Column::FieldDeadline(name.clone())) else { return Ok(None) };
        let Some(deadline) = deadline_of(&cell.at(view).ok_or(Gone)?.state) else { return Ok(None) };
        let Some(field) = self.cell(&Column::Field(name.clone())) else { return Ok(None) };
        let shown = field.at(view).ok_or(Gone)?;
        let counts = shown.state.is_live() && put_by(&shown.state) == deadline.of;
        Ok(counts.then_some(deadline.ms))
    }

    /// Whether a view shows a deadline of a field that has passed, of whatever value it is.
    pub fn has_passed(&self, name: &Bytes, view: View<'_>, at_ms: u64) -> Result<bool, Gone> {
        let Some(cell) = self.cell(&Column::FieldDeadline(name.clone())) else { return Ok(false) };
        let deadline = deadline_of(&cell.at(view).ok_or(Gone)?.state);
        Ok(deadline.is_some_and(|deadline| deadline.ms <= at_ms))
    }

    /// The live fields that a view shows and whose deadlines have passed, in the order of their names, with these.
    pub fn expired_fields(&self, view: View<'_>, at_ms: u64) -> Result<BTreeMap<Bytes, u64>, Gone> {
        let Some(dated) = &self.dated else { return Ok(BTreeMap::new()) };
        let passed = dated.passed(at_ms).inspect(|_| self.note_look());
        if self.is_newest(view) {
            return Ok(passed.map(|(ms, name)| (name.clone(), *ms)).collect());
        }
        let candidates: BTreeSet<Bytes> = match self.columns.large() {
            Some(large) if view.time().is_none() => {
                let named = |column: &Column| match column {
                    Column::Field(name) | Column::FieldDeadline(name) => Some(name.clone()),
                    _ => None,
                };
                let waiting = large.waiting().filter_map(|(column, _)| named(column));
                passed.map(|(_, name)| name.clone()).chain(waiting).collect()
            }
            _ => dated.names.keys().cloned().collect(),
        };
        let mut expired = BTreeMap::new();
        for name in candidates {
            if let Some(ms) = self.field_deadline_at(&name, view)?.filter(|ms| *ms <= at_ms) {
                expired.insert(name, ms);
            }
        }
        Ok(expired)
    }

    /// How many these are.
    pub fn expired_count(&self, view: View<'_>, at_ms: u64) -> Result<usize, Gone> {
        match &self.dated {
            Some(dated) if self.is_newest(view) => {
                Ok(dated.passed(at_ms).inspect(|_| self.note_look()).count())
            }
            _ => Ok(self.expired_fields(view, at_ms)?.len()),
        }
    }

    /// The latest of their deadlines.
    pub fn latest_expired(&self, view: View<'_>, at_ms: u64) -> Result<Option<u64>, Gone> {
        match &self.dated {
            Some(dated) if self.is_newest(view) => Ok(dated.passed(at_ms).next_back().map(|(ms, _)| *ms)),
            _ => Ok(self.expired_fields(view, at_ms)?.into_values().max()),
        }
    }

    /// Whether a view shows a field that has not expired.
    pub fn shows_field(&self, view: View<'_>, at_ms: u64) -> Result<bool, Gone> {
        let live = self.live_count_at(Kind::Hash, view)?;
        match &self.dated {
            Some(dated) if self.is_newest(view) => {
                let is_to_come = |(ms, _): &(u64, Bytes)| *ms > at_ms;
                Ok(live > dated.counting.len() || dated.counting.last().is_some_and(is_to_come))
            }
            _ => Ok(live > self.expired_fields(view, at_ms)?.len()),
        }
    }

    /// Counts a look at the deadline of one field, for tests.
    fn note_look(&self) {
        #[cfg(test)]
        if let Some(dated) = &self.dated {
            dated.looked_at.set(dated.looked_at.get() + 1);
        }
    }

    /// The columns of fields' deadlines, live or dead.
    pub fn field_deadlines(&self) -> impl Iterator<Item = Column> {
        let names = self.dated.iter().flat_map(|dated| dated.names.keys());
        names.map(|name| Column::FieldDeadline(name.clone()))
    }

    /// The kind shown at a time, the row's own deadline apart: that of the newest column that is live and has not
    /// expired.
    pub fn kind_at(&self, view: View<'_>, at_ms: u64) -> Result<Option<Kind>, Gone> {
        let kind = self.live_kind_at(view)?;
        if kind != Some(Kind::Hash) || self.dated.is_none() {
            return Ok(kind);
        }
        match self.sole_kind() {
            Some(_) => Ok(if self.shows_field(view, at_ms)? { kind } else { None }),
            None => match self.expired_fields(view, at_ms)? {
                expired if expired.is_empty() => Ok(kind),
                expired => self.newest_kind(view, &expired),
            },
        }
    }
}

#[cfg(test)]
mod tests;
