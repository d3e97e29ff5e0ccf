//! Rows at which there may be something for those that wait, in the order in which they came to be such.

use crate::partition::order::RowName;
use std::collections::{BTreeMap, BTreeSet};

/// Each row is there once.
#[derive(Clone, Debug, Default)]
pub(super) struct Ready {
    places: BTreeMap<RowName, u64>,
    rows: BTreeMap<u64, RowName>,
    next_place: u64,
}

impl Ready {
    pub(super) fn insert(&mut self, row: RowName) {
        if !self.places.contains_key(&row) {
            self.places.insert(row.clone(), self.next_place);
            self.rows.insert(self.next_place, row);
            self.next_place += 1;
        }
    }

    pub(super) fn remove(&mut self, row: &RowName) {
        if let Some(place) = self.places.remove(row) {
            self.rows.remove(&place);
        }
    }

    /// All of these, in the order of their names.
    pub(super) fn append(&mut self, rows: &mut BTreeSet<RowName>) {
        std::mem::take(rows).into_iter().for_each(|row| self.insert(row));
    }

    pub(super) fn pop_first(&mut self) -> Option<RowName> {
        let (_, row) = self.rows.pop_first()?;
        self.places.remove(&row);
        Some(row)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &RowName> {
        self.rows.values()
    }
}
