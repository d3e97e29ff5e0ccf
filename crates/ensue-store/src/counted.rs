//! What a keyspace counts of a column, before a change to it and after, and of a row.

use crate::cell::{Cell, Counter, Outcome};
use crate::settled::Item;
use ensue_types::Column;

/// Bytes counted for a cell beside its name and value: what the structures around it take, roughly.
const CELL_BYTES: u64 = 184;
/// The same of a settled column of a large row beside its bytes: its slot, what finds it, and the allocator's share.
const SETTLED_BYTES: u64 = 36;
/// The same of a field's deadline beside its cell: where it stands by its name and by its time (`row::dated`).
const DATED_BYTES: u64 = 128;

impl Counter {
    /// What it takes, with what it holds.
    pub(crate) fn bytes(&self) -> u64 {
        let beside = size_of_val(&*self.additions) + size_of_val(&*self.seen);
        (size_of::<Counter>() + beside) as u64
    }
}

/// Makes no more room than for this one: mostly few datacenters add, and what is not filled is memory, too.
pub(crate) fn insert_exactly<T>(all: &mut Vec<T>, at: usize, one: T) {
    all.reserve_exact(1);
    all.insert(at, one);
}

/// What is counted of a settled column of a large row.
pub(crate) fn of_settled(item: Item<'_>) -> Counted {
    let dated = if item.is_field_deadline() { dated_bytes(item.name) } else { 0 };
    let bytes = SETTLED_BYTES + item.bytes() as u64 + dated;
    Counted { is_there: true, is_live: true, bytes, ..Counted::default() }
}

fn dated_bytes(name: &[u8]) -> u64 {
    DATED_BYTES + name.len() as u64
}

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) is_there: bool,
    pub(crate) is_live: bool,
    pub(crate) bytes: u64,
    pub(crate) dependencies: u64,
    pub(crate) unsettled: usize,
    /// Values beside its newest.
    pub(crate) beside: u64,
    /// How often its removals and undominated puts have changed, if it has any.
    pub(crate) changes: Option<u32>,
}

impl Counted {
    pub(crate) fn of(column: &Column, cell: &Cell) -> Counted {
        let dependencies = cell.dependency_bytes();
        Counted {
            is_there: true,
            is_live: cell.state().is_live(),
            bytes: CELL_BYTES + column_bytes(column) + cell.bytes_beside_dependencies() + dependencies,
            dependencies,
            unsettled: cell.unsettled(),
            beside: cell.state().siblings().len() as u64,
            changes: cell.state().changes(),
        }
    }

    /// 1 if the column is there and shows nothing.
    pub(crate) fn is_dead(&self) -> u64 {
        u64::from(self.is_there && !self.is_live)
    }

    /// Its bytes then, but for what it depends on, which is forgotten without a change of the column.
    pub(crate) fn dead_bytes(&self) -> u64 {
        self.is_dead() * (self.bytes - self.dependencies)
    }
}

/// What is counted of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shows {
    /// It shows something, unless its deadline has passed.
    pub(crate) something: bool,
    pub(crate) deadline: bool,
}

impl Shows {
    pub(crate) fn of_text(has_deadline: bool) -> Shows {
        Shows { something: true, deadline: has_deadline }
    }

    /// A row of settled columns.
    pub(crate) const SETTLED: Shows = Shows { something: true, deadline: false };
}

/// What a write has made of a column.
#[derive(Clone, Copy, Debug)]
pub struct Changed {
    pub(crate) outcome: Outcome,
    pub(crate) before: Counted,
    pub(crate) after: Counted,
    /// Bytes less that are counted of the row's other columns.
    pub(crate) saved: u64,
}

impl Changed {
    pub(crate) fn nothing() -> Changed {
        let nothing = Counted::default();
        Changed { outcome: Outcome::Lost, before: nothing, after: nothing, saved: 0 }
    }
}

fn column_bytes(column: &Column) -> u64 {
    match column {
        Column::Field(name) | Column::Member(name) | Column::Scored(name) => name.len() as u64,
        Column::Element(name) | Column::Stream(name) | Column::Escrow(name) => name.len() as u64,
        Column::FieldDeadline(name) => name.len() as u64 + dated_bytes(name),
        Column::Text | Column::Deadline | Column::Row => 0,
    }
}
