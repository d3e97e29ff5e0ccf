//! What a keyspace counts of a column, before a change to it and after.

use crate::cell::{Cell, Outcome};

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) is_there: bool,
    pub(crate) is_live: bool,
    pub(crate) bytes: u64,
    pub(crate) dependencies: u64,
    pub(crate) unsettled: usize,
    /// How often its removals and undominated puts have changed, if it has any.
    pub(crate) changes: Option<u32>,
}

impl Counted {
    pub(crate) fn of(cell: &Cell) -> Counted {
        let dependencies = cell.dependency_bytes();
        Counted {
            is_there: true,
            is_live: cell.state().is_live(),
            bytes: cell.bytes_beside_dependencies() + dependencies,
            dependencies,
            unsettled: cell.unsettled(),
            changes: cell.state().changes(),
        }
    }

    /// The same, of a column that may not be there.
    pub(crate) fn of_any(cell: Option<&Cell>) -> Counted {
        cell.map_or_else(Counted::default, Counted::of)
    }
}

/// What a write has made of a column.
#[derive(Clone, Copy, Debug)]
pub struct Changed {
    pub(crate) outcome: Outcome,
    pub(crate) before: Counted,
    pub(crate) after: Counted,
}

impl Changed {
    /// Makes a change to a cell, which was there before it or was made for it.
    pub(crate) fn by(cell: &mut Cell, is_new: bool, change: impl FnOnce(&mut Cell) -> Outcome) -> Changed {
        let before = if is_new { Counted::default() } else { Counted::of(cell) };
        let outcome = change(cell);
        Changed { outcome, before, after: Counted::of(cell) }
    }

    pub(crate) fn nothing() -> Changed {
        Changed { outcome: Outcome::Lost, before: Counted::default(), after: Counted::default() }
    }
}
