//! A row: the columns of one key, of which only those of the newest live column's kind are shown.
//!
//! Strings are rows of one column; hashes and sets are rows whose columns merge one by one. The row keeps counts of
//! its live columns, so that asking for its kind does not walk them.

use crate::cell::{Cell, Content, Keep, Outcome, Write};
use crate::versions::Version;
use crate::view::View;
use bytes::Bytes;
use ensue_types::{Carried, Column, Effect, LogicalTime, OperationId, Source, Stamp, Visibility};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a row is to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Text,
    Hash,
    Set,
}

impl Kind {
    /// The kind that a column belongs to; the deadline belongs to none.
    pub fn of(column: &Column) -> Option<Kind> {
        match column {
            Column::Text => Some(Kind::Text),
            Column::Field(_) => Some(Kind::Hash),
            Column::Member(_) => Some(Kind::Set),
            Column::Deadline => None,
        }
    }

    /// The word that `TYPE` answers.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Text => "string",
            Kind::Hash => "hash",
            Kind::Set => "set",
        }
    }
}

/// The columns: most rows have one, and keep it without a tree.
#[derive(Clone, Debug)]
enum Columns {
    None,
    One(Column, Cell),
    Many(BTreeMap<Column, Cell>),
}

/// A row.
#[derive(Clone, Debug)]
pub struct Row {
    key: Bytes,
    columns: Columns,
    deadline: Option<Box<Cell>>,
    /// Live columns of each kind now, the deadline apart.
    live: [u32; 3],
    /// Versions of all columns that are not settled.
    unsettled: u32,
    /// The latest time at which any column changed.
    since: LogicalTime,
}

impl Row {
    pub fn new(key: Bytes, since: LogicalTime) -> Row {
        Row { key, columns: Columns::None, deadline: None, live: [0; 3], unsettled: 0, since }
    }

    pub fn key(&self) -> &Bytes {
        &self.key
    }

    /// Every column's present state is valid from this time on.
    pub fn since(&self) -> LogicalTime {
        self.since
    }

    /// Versions of all columns that are not settled.
    pub fn unsettled(&self) -> usize {
        self.unsettled as usize
    }

    /// Whether a view shows the row as it is now.
    pub fn is_newest(&self, view: View<'_>) -> bool {
        match view {
            View::At(at) | View::With(at, _) => self.since <= at,
            View::Newest => true,
            View::Visibility(_) | View::Writer(..) => self.unsettled == 0,
        }
    }

    /// A column's cell, whatever the row's kind.
    pub fn cell(&self, column: &Column) -> Option<&Cell> {
        match (column, &self.columns) {
            (Column::Deadline, _) => self.deadline.as_deref(),
            (_, Columns::One(only, cell)) if only == column => Some(cell),
            (_, Columns::Many(cells)) => cells.get(column),
            _ => None,
        }
    }

    /// All cells but the deadline's, in the order of their columns.
    pub fn cells(&self) -> impl Iterator<Item = (&Column, &Cell)> {
        let (one, many) = match &self.columns {
            Columns::None => (None, None),
            Columns::One(column, cell) => (Some((column, cell)), None),
            Columns::Many(cells) => (None, Some(cells.iter())),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    /// All cells, the deadline's last.
    pub fn all_cells(&self) -> impl Iterator<Item = (&Column, &Cell)> {
        self.cells().chain(self.deadline.as_deref().map(|cell| (&Column::Deadline, cell)))
    }

    /// Whether columns of more than one kind stand here, live or dead: what is shown then depends on all of them.
    pub fn is_mixed(&self) -> bool {
        match &self.columns {
            Columns::Many(cells) => {
                let ends = (cells.first_key_value(), cells.last_key_value());
                matches!(ends, (Some((a, _)), Some((b, _))) if Kind::of(a) != Kind::of(b))
            }
            _ => false,
        }
    }

    pub fn is_empty(&self) -> bool {
        matches!(self.columns, Columns::None) && self.deadline.is_none()
    }

    pub fn columns_count(&self) -> usize {
        match &self.columns {
            Columns::None => 0,
            Columns::One(..) => 1,
            Columns::Many(cells) => cells.len(),
        }
    }

    /// Live columns of a kind now, not counting the deadline's passing.
    pub fn live_count(&self, kind: Kind) -> usize {
        self.live[kind as usize] as usize
    }

    /// The kind shown now, not counting the deadline's passing: that of the newest live column.
    pub fn kind(&self) -> Option<Kind> {
        let kinds = [Kind::Text, Kind::Hash, Kind::Set];
        let mut live = kinds.into_iter().filter(|&k| self.live_count(k) > 0);
        let first = live.next()?;
        if live.next().is_none() {
            return Some(first);
        }
        self.newest_kind(View::Newest).unwrap_or_default()
    }

    /// The kind that a view shows; `Err` if a column's state of a past time is gone.
    pub fn kind_at(&self, view: View<'_>) -> Result<Option<Kind>, Gone> {
        if self.is_newest(view) { Ok(self.kind()) } else { self.newest_kind(view) }
    }

    fn newest_kind(&self, view: View<'_>) -> Result<Option<Kind>, Gone> {
        let mut newest: Option<(Stamp, &Column)> = None;
        for (column, cell) in self.cells() {
            let state = cell.at(view).ok_or(Gone)?.state;
            if state.is_live() && newest.is_none_or(|(stamp, _)| stamp <= state.newest()) {
                newest = Some((state.newest(), column));
            }
        }
        Ok(newest.and_then(|(_, column)| Kind::of(column)))
    }

    /// Whether a view shows a live column of a kind, not counting the deadline's passing.
    pub fn has_live(&self, kind: Kind, view: View<'_>) -> bool {
        if self.is_newest(view) {
            return self.live_count(kind) > 0;
        }
        let mut cells = self.cells().filter(|(column, _)| Kind::of(column) == Some(kind));
        cells.any(|(_, cell)| cell.at(view).is_some_and(|shown| shown.state.is_live()))
    }

    /// The deadline that a view shows, in milliseconds since 1970.
    pub fn deadline_at(&self, view: View<'_>) -> Result<Option<u64>, Gone> {
        let Some(cell) = &self.deadline else { return Ok(None) };
        match cell.at(view).ok_or(Gone)?.state.content() {
            Content::Bytes(bytes) => Ok(bytes.as_ref().try_into().ok().map(u64::from_le_bytes)),
            _ => Ok(None),
        }
    }

    /// Merges a write into a column that was empty, if it is new here, since `empty_since`.
    pub fn apply(
        &mut self,
        column: &Column,
        effect: &Effect,
        write: &Write,
        keep: Keep<'_>,
        empty_since: LogicalTime,
    ) -> Outcome {
        let cell = self.entry(column, empty_since);
        let change = change(cell, |cell| cell.apply(effect, write, keep));
        self.note(column, write.at, change)
    }

    /// Merges a settled write in the same way.
    pub fn restore(
        &mut self,
        column: &Column,
        effect: &Effect,
        write: &Write,
        keep: Keep<'_>,
        empty_since: LogicalTime,
    ) -> Outcome {
        let cell = self.entry(column, empty_since);
        let change = change(cell, |cell| cell.restore(effect, write, keep));
        self.note(column, write.at, change)
    }

    /// Hides the base of a column that a flush covers.
    pub fn flush(&mut self, column: &Column, flush: &Write, keep: Keep<'_>) -> Outcome {
        let Some(cell) = self.cell_mut(column) else { return Outcome::Lost };
        let change = change(cell, |cell| cell.flush(flush, keep));
        self.note(column, flush.at, change)
    }

    /// Folds what is settled of a column.
    pub(crate) fn settle(&mut self, column: &Column, settled: &dyn Visibility) {
        let Some(cell) = self.cell_mut(column) else { return };
        let before = cell.unsettled();
        cell.settle(settled);
        let folded = before - cell.unsettled();
        self.unsettled -= folded as u32;
    }

    /// Takes out of a column the writes that are as if they had never been.
    pub(crate) fn discard(&mut self, column: &Column, discarded: &dyn Fn(&Source) -> bool) -> Vec<Version> {
        let Some(cell) = self.cell_mut(column) else { return Vec::new() };
        let was_live = cell.state().is_live();
        let gone = cell.discard(discarded);
        let is_live = cell.state().is_live();
        self.count(column, was_live, is_live);
        self.unsettled -= gone.len() as u32;
        gone
    }

    /// Notes what a write of this stamp carries.
    pub(crate) fn carry(&mut self, column: &Column, stamp: Stamp, dependencies: &Arc<Carried>) {
        if let Some(cell) = self.cell_mut(column) {
            cell.carry(stamp, dependencies);
        }
    }

    /// Removes a column for good.
    pub fn remove(&mut self, column: &Column) -> Option<Cell> {
        let removed = match (column, &mut self.columns) {
            (Column::Deadline, _) => self.deadline.take().map(|cell| *cell),
            (_, Columns::Many(cells)) => cells.remove(column),
            (_, Columns::One(only, _)) if only == column => {
                match std::mem::replace(&mut self.columns, Columns::None) {
                    Columns::One(_, cell) => Some(cell),
                    _ => None,
                }
            }
            _ => None,
        }?;
        if matches!(&self.columns, Columns::Many(cells) if cells.is_empty()) {
            self.columns = Columns::None;
        }
        self.count(column, removed.state().is_live(), false);
        self.unsettled -= removed.unsettled() as u32;
        Some(removed)
    }

    /// Forgets the past states of every column.
    pub fn forget_history(&mut self) {
        self.all_cells_mut().for_each(Cell::forget_history);
    }

    /// Forgets what settled values depend on that were written by such operations; says how many bytes that was.
    pub(crate) fn forget_dependencies(&mut self, is_globally_stable: &dyn Fn(&OperationId) -> bool) -> u64 {
        self.all_cells_mut().map(|cell| cell.forget_dependencies(is_globally_stable)).sum()
    }

    fn all_cells_mut(&mut self) -> impl Iterator<Item = &mut Cell> {
        let (one, many) = match &mut self.columns {
            Columns::None => (None, None),
            Columns::One(_, cell) => (Some(cell), None),
            Columns::Many(cells) => (None, Some(cells.values_mut())),
        };
        one.into_iter().chain(many.into_iter().flatten()).chain(self.deadline.as_deref_mut())
    }

    /// The newest stamp of any column: a write above it wins everywhere in the row.
    pub fn newest(&self) -> Stamp {
        self.all_cells().map(|(_, cell)| cell.state().newest()).fold(Stamp::ZERO, Stamp::max)
    }

    fn cell_mut(&mut self, column: &Column) -> Option<&mut Cell> {
        match (column, &mut self.columns) {
            (Column::Deadline, _) => self.deadline.as_deref_mut(),
            (_, Columns::One(only, cell)) if only == column => Some(cell),
            (_, Columns::Many(cells)) => cells.get_mut(column),
            _ => None,
        }
    }

    fn entry(&mut self, column: &Column, empty_since: LogicalTime) -> &mut Cell {
        if *column == Column::Deadline {
            return self.deadline.get_or_insert_with(|| Box::new(Cell::new(empty_since)));
        }
        let fits = match &self.columns {
            Columns::None => false,
            Columns::One(only, _) => only == column,
            Columns::Many(_) => true,
        };
        if !fits {
            self.columns = match std::mem::replace(&mut self.columns, Columns::None) {
                Columns::One(only, cell) => Columns::Many(BTreeMap::from([(only, cell)])),
                _ => Columns::One(detached(column), Cell::new(empty_since)),
            };
        }
        match &mut self.columns {
            Columns::One(_, cell) => cell,
            Columns::Many(cells) => {
                if !cells.contains_key(column) {
                    cells.insert(detached(column), Cell::new(empty_since));
                }
                cells.get_mut(column).expect("inserted above")
            }
            Columns::None => unreachable!("replaced above"),
        }
    }

    fn note(&mut self, column: &Column, at: LogicalTime, change: Change) -> Outcome {
        // A row holds fewer versions than there are bytes of memory, which are bounded.
        self.unsettled += change.versions_added as u32;
        if change.outcome == Outcome::Won {
            self.since = self.since.max(at);
            self.count(column, change.was_live, change.is_live);
        }
        change.outcome
    }

    fn count(&mut self, column: &Column, was_live: bool, is_live: bool) {
        let Some(kind) = Kind::of(column) else { return };
        let live = &mut self.live[kind as usize];
        match (was_live, is_live) {
            (false, true) => *live += 1,
            (true, false) => *live -= 1,
            _ => {}
        }
    }
}

/// What the row's counts must know of a change to a cell.
struct Change {
    outcome: Outcome,
    was_live: bool,
    is_live: bool,
    versions_added: usize,
}

fn change(cell: &mut Cell, change: impl FnOnce(&mut Cell) -> Outcome) -> Change {
    let (was_live, unsettled) = (cell.state().is_live(), cell.unsettled());
    let outcome = change(cell);
    let is_live = cell.state().is_live();
    Change { outcome, was_live, is_live, versions_added: cell.unsettled() - unsettled }
}

/// The state of the asked time is no longer known: the reader must start again (trap 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// A column with its own bytes, so that it does not keep a client's whole read buffer alive.
pub(crate) fn detached(column: &Column) -> Column {
    match column {
        Column::Field(name) => Column::Field(Bytes::copy_from_slice(name)),
        Column::Member(name) => Column::Member(Bytes::copy_from_slice(name)),
        Column::Text | Column::Deadline => column.clone(),
    }
}
