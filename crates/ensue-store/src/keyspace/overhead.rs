//! What effects on a row's columns take in an entry beside keys, names and values: they name the puts that they end or
//! overwrite, and the additions that they cover, of each datacenter.
//!
//! Arrives: a key. Promises: a bound for any effects on its columns, from what the row holds. It looks at each column
//! that is not settled. It does not say what one effect takes: `layout::encoded_effect_bytes` does, once it is made.

use super::Keyspace;
use crate::cell::{Cell, State};
use crate::compact::RowRef;
use crate::layout::effect_bytes_beside;
use crate::row::Row;
use crate::view::View;
use ensue_types::{Column, Stamp};

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overhead {
    /// Datacenters whose puts one effect may name.
    pub puts: usize,
    /// Additions that one effect may cover, and those of all columns.
    seen_max: usize,
    seen: usize,
    /// An effect on what is not there covers what was forgotten.
    forgotten: usize,
}

impl Overhead {
    /// The bytes of so many effects, at most, of which each column has two at most: a removal and a put.
    pub fn bytes(&self, effects: usize) -> usize {
        let each = effect_bytes_beside(self.puts, self.forgotten);
        let covered = effects.saturating_mul(self.seen_max).min(2 * self.seen);
        let seen = effect_bytes_beside(0, 1) - effect_bytes_beside(0, 0);
        effects.saturating_mul(each).saturating_add(covered.saturating_mul(seen))
    }

    /// So many columns hold the additions of so many datacenters each.
    fn counters(&mut self, count: usize, seen: usize) {
        if count > 0 && seen > 0 {
            self.seen_max = self.seen_max.max(seen + self.forgotten);
            self.seen += count * (seen + self.forgotten);
        }
    }

    fn cell(&mut self, cell: &Cell) {
        self.puts = self.puts.max(cell.observed(View::Newest, Stamp::ZERO).puts().len());
        self.counters(1, State::seen(cell.state()).len());
    }

    fn row(&mut self, row: &Row) {
        match row.large() {
            Some(large) => {
                self.puts = self.puts.max(large.put_by());
                self.counters(large.added_count(), 1);
                large.whole_columns().for_each(|(_, cell)| self.cell(cell));
            }
            None => row.cells().for_each(|(_, cell)| self.cell(&cell)),
        }
        row.cell(&Column::Deadline).into_iter().for_each(|cell| self.cell(&cell));
        // Whatever a column holds, an effect on it names what removals of the whole row had observed, too.
        self.puts += row.ended_by().map_or(0, |(_, observed)| observed.puts().len());
    }
}

impl Keyspace {
    /// The bound for effects on a row.
    pub fn overhead(&self, key: &[u8]) -> Overhead {
        let forgotten = usize::from(self.collected != Stamp::ZERO);
        let mut overhead = Overhead { forgotten, ..Overhead::default() };
        match self.row(key) {
            None => {}
            Some(RowRef::Compact(_)) => overhead.puts = 1,
            Some(RowRef::Packed(row)) => {
                overhead.puts = 1;
                overhead.counters(row.settled().filter(|settled| settled.is_counter()).count(), 1);
            }
            Some(RowRef::Whole(row)) => overhead.row(row),
        }
        overhead
    }
}
