//! The columns of a row: most rows have one, and keep it without a tree; large ones are found by hash.

mod large;

use crate::cell::Cell;
use crate::packed;
use crate::row::Kind;
use bytes::Bytes;
use ensue_types::{Column, LogicalTime};
use std::borrow::Cow;
use std::collections::BTreeMap;

pub(crate) use large::{Freed, Large, PutSettled};

/// A row with more columns than this is large, and stays so, unless its keyspace has another bound.
pub const LARGE: usize = packed::COLUMNS_MAX;

/// The same of lists and streams, whose commands mostly ask for the whole row and for its ends.
pub const LARGE_LIST: usize = 32;

/// How many columns a row has before this one makes it large, where others may have so many.
fn most_beside(column: &Column, others: usize) -> usize {
    if let Column::Element(_) | Column::Stream(_) = column { LARGE_LIST.min(others) } else { others }
}

/// The columns of a row, its deadline apart.
#[derive(Clone, Debug, Default)]
pub(crate) enum Columns {
    #[default]
    None,
    One(Column, Cell),
    Many(BTreeMap<Column, Cell>),
    Large(Box<Large>),
}

impl Columns {
    pub(crate) fn len(&self) -> usize {
        match self {
            Columns::None => 0,
            Columns::One(..) => 1,
            Columns::Many(cells) => cells.len(),
            Columns::Large(large) => large.len(),
        }
    }

    pub(crate) fn large(&self) -> Option<&Large> {
        match self {
            Columns::Large(large) => Some(large),
            _ => None,
        }
    }

    pub(crate) fn large_mut(&mut self) -> Option<&mut Large> {
        match self {
            Columns::Large(large) => Some(large),
            _ => None,
        }
    }

    pub(crate) fn get(&self, column: &Column) -> Option<Cow<'_, Cell>> {
        match self {
            Columns::One(only, cell) if only == column => Some(Cow::Borrowed(cell)),
            Columns::Many(cells) => cells.get(column).map(Cow::Borrowed),
            Columns::Large(large) => large.get(column),
            _ => None,
        }
    }

    pub(crate) fn get_mut(&mut self, column: &Column) -> Option<&mut Cell> {
        match self {
            Columns::One(only, cell) if only == column => Some(cell),
            Columns::Many(cells) => cells.get_mut(column),
            Columns::Large(large) => large.get_mut(column),
            _ => None,
        }
    }

    /// All of them: of a large row in no order, else in their own.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Cow<'_, Column>, Cow<'_, Cell>)> {
        let (one, many, large) = match self {
            Columns::None => (None, None, None),
            Columns::One(column, cell) => (Some((column, cell)), None, None),
            Columns::Many(cells) => (None, Some(cells.iter()), None),
            Columns::Large(large) => (None, None, Some(large.iter())),
        };
        let few = one.into_iter().chain(many.into_iter().flatten());
        let few = few.map(|(column, cell)| (Cow::Borrowed(column), Cow::Borrowed(cell)));
        few.chain(large.into_iter().flatten())
    }

    /// The cells, of a large row those of columns that are not the same to every view.
    pub(crate) fn whole(&self) -> impl Iterator<Item = &Cell> {
        let (one, many, large) = match self {
            Columns::None => (None, None, None),
            Columns::One(_, cell) => (Some(cell), None, None),
            Columns::Many(cells) => (None, Some(cells.values()), None),
            Columns::Large(large) => (None, None, Some(large.waiting().map(|(_, cell)| cell))),
        };
        one.into_iter().chain(many.into_iter().flatten()).chain(large.into_iter().flatten())
    }

    /// The cells, of a large row those of columns that are not settled.
    pub(crate) fn cells_mut(&mut self) -> impl Iterator<Item = &mut Cell> {
        let (one, many, large) = match self {
            Columns::None => (None, None, None),
            Columns::One(_, cell) => (Some(cell), None, None),
            Columns::Many(cells) => (None, Some(cells.values_mut()), None),
            Columns::Large(large) => (None, None, Some(large.cells_mut())),
        };
        one.into_iter().chain(many.into_iter().flatten()).chain(large.into_iter().flatten())
    }

    /// The kind of all of them, if there are any and they are of one.
    pub(crate) fn sole_kind(&self) -> Option<Kind> {
        match self {
            Columns::None => None,
            Columns::One(column, _) => Kind::of(column),
            Columns::Many(cells) => {
                // Columns of one kind stand together.
                let (first, _) = cells.first_key_value()?;
                let (last, _) = cells.last_key_value()?;
                Kind::of(first).filter(|kind| Kind::of(last) == Some(*kind))
            }
            Columns::Large(large) => large.sole_kind(),
        }
    }

    /// The cell of a column, made if it is not there: empty since then. Says whether it was made. A row of more columns
    /// than `most` becomes large.
    pub(crate) fn entry(
        &mut self,
        column: &Column,
        empty_since: LogicalTime,
        most: usize,
    ) -> (&mut Cell, bool) {
        let (is_there, fits) = match &*self {
            Columns::None => (false, false),
            Columns::One(only, _) => (only == column, only == column),
            Columns::Many(cells) => {
                let is_there = cells.contains_key(column);
                (is_there, is_there || cells.len() < most_beside(column, most))
            }
            Columns::Large(large) => (large.counted(column).is_some(), true),
        };
        if !fits {
            *self = match std::mem::take(self) {
                Columns::One(only, cell) => Columns::Many(BTreeMap::from([(only, cell)])),
                Columns::Many(cells) => Columns::Large(Box::new(cells.into_iter().collect())),
                _ => Columns::One(detached(column), Cell::new(empty_since)),
            };
        }
        let cell = match self {
            Columns::One(_, cell) => cell,
            Columns::Many(cells) => match is_there {
                true => cells.get_mut(column).expect("looked for above"),
                false => cells.entry(detached(column)).or_insert_with(|| Cell::new(empty_since)),
            },
            Columns::Large(large) => large.entry(column, empty_since),
            Columns::None => unreachable!("replaced above"),
        };
        (cell, !is_there)
    }

    pub(crate) fn remove(&mut self, column: &Column) -> Option<Cell> {
        let removed = match self {
            Columns::Many(cells) => cells.remove(column),
            Columns::Large(large) => large.remove(column),
            Columns::One(only, _) if only == column => match std::mem::take(self) {
                Columns::One(_, cell) => Some(cell),
                _ => None,
            },
            _ => None,
        };
        if self.len() == 0 {
            *self = Columns::None;
        }
        removed
    }
}

/// A column with its own bytes, so that it does not keep a client's whole read buffer alive.
pub(crate) fn detached(column: &Column) -> Column {
    match column {
        Column::Field(name) => Column::Field(Bytes::copy_from_slice(name)),
        Column::FieldDeadline(name) => Column::FieldDeadline(Bytes::copy_from_slice(name)),
        Column::Member(name) => Column::Member(Bytes::copy_from_slice(name)),
        Column::Scored(name) => Column::Scored(Bytes::copy_from_slice(name)),
        Column::Element(name) => Column::Element(Bytes::copy_from_slice(name)),
        Column::Stream(name) => Column::Stream(Bytes::copy_from_slice(name)),
        Column::Escrow(name) => Column::Escrow(Bytes::copy_from_slice(name)),
        Column::Text | Column::Deadline | Column::Row => column.clone(),
    }
}

#[cfg(test)]
mod tests;
