//! A row: the columns of one key, of which only those of the newest live column's kind are shown.
//!
//! Strings are rows of one column; hashes and sets are rows whose columns merge one by one. The row keeps counts of
//! its live columns, so that asking for its kind does not walk them.

use crate::cell::{Cell, Content, Outcome, State, Write};
use bytes::Bytes;
use ensue_types::{Column, Effect, LogicalTime, Rules, Stamp};
use std::collections::BTreeMap;

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
    /// The latest time at which any column changed.
    since: LogicalTime,
}

impl Row {
    pub fn new(key: Bytes, since: LogicalTime) -> Row {
        Row { key, columns: Columns::None, deadline: None, live: [0; 3], since }
    }

    pub fn key(&self) -> &Bytes {
        &self.key
    }

    /// Every column's present state is valid from this time on.
    pub fn since(&self) -> LogicalTime {
        self.since
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
    pub fn kind(&self, rules: Rules) -> Option<Kind> {
        let kinds = [Kind::Text, Kind::Hash, Kind::Set];
        let mut live = kinds.into_iter().filter(|&k| self.live_count(k) > 0);
        let first = live.next()?;
        if live.next().is_none() {
            return Some(first);
        }
        self.newest_kind(self.cells().map(|(column, cell)| (column, cell.state())), rules)
    }

    /// The kind shown at a past time; `Err` if a column's state of that time is gone.
    pub fn kind_at(&self, at: LogicalTime, rules: Rules) -> Result<Option<Kind>, Gone> {
        if self.since <= at {
            return Ok(self.kind(rules));
        }
        let mut states = Vec::new();
        for (column, cell) in self.cells() {
            states.push((column, cell.at(at).ok_or(Gone)?.1));
        }
        Ok(self.newest_kind(states.into_iter(), rules))
    }

    fn newest_kind<'a>(
        &self,
        states: impl Iterator<Item = (&'a Column, &'a State)>,
        rules: Rules,
    ) -> Option<Kind> {
        let live = states.filter(|(_, state)| state.is_live(rules));
        live.max_by_key(|(_, state)| state.newest()).and_then(|(column, _)| Kind::of(column))
    }

    /// The deadline at a time, in milliseconds since 1970.
    pub fn deadline_at(&self, at: LogicalTime, rules: Rules) -> Result<Option<u64>, Gone> {
        let Some(cell) = &self.deadline else { return Ok(None) };
        let (_, state) = cell.at(at).ok_or(Gone)?;
        match state.content(rules) {
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
        keep: bool,
        empty_since: LogicalTime,
        rules: Rules,
    ) -> Outcome {
        let since = self.since.max(write.at);
        let cell = self.entry(column, empty_since);
        let was_live = cell.state().is_live(rules);
        let outcome = cell.apply(effect, write, keep, rules);
        if outcome == Outcome::Won {
            let is_live = cell.state().is_live(rules);
            self.since = since;
            self.count(column, was_live, is_live);
        }
        outcome
    }

    /// Hides the base of a column that a flush covers.
    pub fn hide_base(&mut self, column: &Column, at: LogicalTime, keep: bool, rules: Rules) {
        let since = self.since.max(at);
        if self.cell(column).is_none() {
            return;
        }
        let cell = self.entry(column, at);
        let was_live = cell.state().is_live(rules);
        if cell.hide_base(at, keep) == Outcome::Won {
            let is_live = cell.state().is_live(rules);
            self.since = since;
            self.count(column, was_live, is_live);
        }
    }

    /// Removes a column for good.
    pub fn remove(&mut self, column: &Column, rules: Rules) -> Option<Cell> {
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
        self.count(column, removed.state().is_live(rules), false);
        Some(removed)
    }

    /// Forgets the past states of every column.
    pub fn forget_history(&mut self) {
        if let Some(cell) = &mut self.deadline {
            cell.forget_history();
        }
        match &mut self.columns {
            Columns::None => {}
            Columns::One(_, cell) => cell.forget_history(),
            Columns::Many(cells) => cells.values_mut().for_each(Cell::forget_history),
        }
    }

    /// The newest stamp of any column: a write above it wins everywhere in the row.
    pub fn newest(&self) -> Stamp {
        self.all_cells().map(|(_, cell)| cell.state().newest()).fold(Stamp::ZERO, Stamp::max)
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

/// The state of the asked time is no longer known: the reader must start again (trap 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// A column with its own bytes, so that it does not keep a client's whole read buffer alive.
fn detached(column: &Column) -> Column {
    match column {
        Column::Field(name) => Column::Field(Bytes::copy_from_slice(name)),
        Column::Member(name) => Column::Member(Bytes::copy_from_slice(name)),
        Column::Text | Column::Deadline => column.clone(),
    }
}
