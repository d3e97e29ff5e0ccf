//! A small row of settled columns in one allocation: a hash, a set or a sorted set, or a string that is a counter.
//!
//! Its columns stand one behind the other, in their order (`settled`). A write that leaves its column settled is merged
//! into the bytes. Any other makes the row whole, and so do more columns or bytes than are looked through quickly.
//!
//! ```text
//! since u64 | stamp's time u64 | position u64 | stamp's partition u16 | partition u16 | incarnation u16 |
//!     stamp's datacenter u8 | datacenter u8: the origin | columns u8 | key length u16 | key | columns, each:
//!     length | a settled column
//! ```

use crate::cell::{Outcome, Write};
use crate::compact::Compact;
use crate::row::{Gone, Kind, Row};
use crate::settled::{self, Encoded, Item, Origin, Settled};
use crate::view::View;
use bytes::Bytes;
use ensue_types::{
    Column, DatacenterId, Effect, Incarnation, LogicalTime, OperationId, PartitionId, Position, Stamp,
};
use std::ops::Range;

const HEADER: usize = 35;
/// Where the number of columns stands.
const COUNT: usize = 32;
/// A row of more columns is never packed: each look at one may walk over all.
pub const COLUMNS_MAX: usize = 128;
/// Nor is one of more bytes, which every change moves.
pub const BYTES_MAX: usize = 8_192;
const KEY_MAX: usize = 1_024;

/// See the module.
#[derive(Clone, Debug)]
pub struct Packed(Box<[u8]>);

/// What a write has done to a packed row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Merged {
    pub(crate) outcome: Outcome,
    pub(crate) is_new: bool,
}

impl Packed {
    /// A row of one column that this write has made, if that can be packed.
    pub(crate) fn new(
        key: &[u8],
        column: &Column,
        effect: &Effect,
        write: &Write,
        empty_since: LogicalTime,
    ) -> Option<Packed> {
        let settled = Settled::first(effect, write, empty_since)?;
        let origin = Origin::of(write);
        let mut row = Packed::empty(key, settled.since, &origin)?;
        row.push(column, &settled, &origin)?;
        Some(row)
    }

    /// A string of which additions are going to be known.
    pub(crate) fn of_text(row: &Compact) -> Option<Packed> {
        let (stamp, operation) = (row.stamp(), row.operation());
        let origin = Origin { stamp, operation };
        let settled = Settled::of_value(row.since(), (stamp, operation), row.value());
        let mut packed = Packed::empty(row.key(), row.since(), &origin)?;
        packed.push(&Column::Text, &settled, &origin)?;
        Some(packed)
    }

    /// The same as this row, if that can be packed.
    pub(crate) fn of(row: &Row, columns_max: u16) -> Option<Packed> {
        let can_be = match row.sole_kind()? {
            Kind::Text => row.only_text()?.state().counter.is_some(),
            Kind::Hash | Kind::Set | Kind::SortedSet => true,
            Kind::List | Kind::Stream | Kind::Bounded => false,
        };
        if !can_be
            || row.columns_count() > usize::from(columns_max).min(COLUMNS_MAX)
            || row.is_large()
            || row.cell(&Column::Deadline).is_some()
            || row.cell(&Column::Row).is_some()
            || row.has_field_deadlines()
        {
            return None;
        }
        let mut packed: Option<(Packed, Origin)> = None;
        for (column, cell) in row.cells() {
            let settled = Settled::of(&cell)?;
            let (packed, origin) = match &mut packed {
                Some(packed) => packed,
                None => {
                    let first = settled.sources().next()?;
                    let origin = Origin { stamp: first.stamp, operation: first.operation };
                    packed.insert((Packed::empty(row.key(), row.since(), &origin)?, origin))
                }
            };
            packed.push(&column, &settled, origin)?;
        }
        packed.map(|(packed, _)| packed)
    }

    fn empty(key: &[u8], since: LogicalTime, origin: &Origin) -> Option<Packed> {
        if key.len() > KEY_MAX {
            return None;
        }
        let Origin { stamp, operation } = origin;
        let mut bytes = Vec::with_capacity(HEADER + key.len());
        bytes.extend_from_slice(&since.0.to_le_bytes());
        bytes.extend_from_slice(&stamp.time.0.to_le_bytes());
        bytes.extend_from_slice(&operation.position.0.to_le_bytes());
        bytes.extend_from_slice(&stamp.partition.0.to_le_bytes());
        bytes.extend_from_slice(&operation.partition.0.to_le_bytes());
        bytes.extend_from_slice(&operation.incarnation.0.to_le_bytes());
        bytes.extend_from_slice(&[stamp.datacenter.0, operation.datacenter.0, 0]);
        bytes.extend_from_slice(&(key.len() as u16).to_le_bytes());
        bytes.extend_from_slice(key);
        Some(Packed(bytes.into_boxed_slice()))
    }

    /// The same with cells.
    pub(crate) fn to_row(&self) -> Row {
        let columns = self.columns().map(|(column, settled)| (column, settled.cell()));
        Row::of_cells(Bytes::copy_from_slice(self.key()), self.since(), columns.collect())
    }

    fn u64_at(&self, at: usize) -> u64 {
        u64::from_le_bytes(*self.0[at..].first_chunk().expect("the header is whole"))
    }

    fn u16_at(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.0[at], self.0[at + 1]])
    }

    /// Every column's present state is valid from this time on.
    pub fn since(&self) -> LogicalTime {
        LogicalTime(self.u64_at(0))
    }

    fn origin(&self) -> Origin {
        let stamp = Stamp {
            time: LogicalTime(self.u64_at(8)),
            datacenter: DatacenterId(self.0[30]),
            partition: PartitionId(self.u16_at(24)),
        };
        let operation = OperationId {
            datacenter: DatacenterId(self.0[31]),
            incarnation: Incarnation(self.u16_at(28)),
            partition: PartitionId(self.u16_at(26)),
            position: Position(self.u64_at(16)),
        };
        Origin { stamp, operation }
    }

    pub fn count(&self) -> usize {
        usize::from(self.0[COUNT])
    }

    fn columns_at(&self) -> usize {
        HEADER + usize::from(self.u16_at(33))
    }

    pub fn key(&self) -> &[u8] {
        &self.0[HEADER..self.columns_at()]
    }

    /// Of all its columns; it has at least one.
    pub fn kind(&self) -> Kind {
        let mut rest = &self.0[self.columns_at()..];
        settled::read_number(&mut rest);
        settled::kind_of(Item::of(rest).number_of_kind())
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.len()
    }

    fn items(&self) -> Items<'_> {
        Items { row: &self.0, at: self.columns_at() }
    }

    /// Its columns in their order.
    pub fn columns(&self) -> impl Iterator<Item = (Column, Settled<'_>)> {
        let origin = self.origin();
        self.items().map(move |(_, item)| (item.column(), item.settled(&origin)))
    }

    /// What stands in them.
    pub fn settled(&self) -> impl Iterator<Item = Settled<'_>> {
        let origin = self.origin();
        self.items().map(move |(_, item)| item.settled(&origin))
    }

    /// One of its columns.
    pub fn get(&self, column: &Column) -> Option<Settled<'_>> {
        let (kind, name) = settled::parts_of(column)?;
        let (_, item) = self.items().find(|(_, item)| item.name == name)?;
        (item.number_of_kind() == kind).then(|| item.settled(&self.origin()))
    }

    /// Whether a view shows all of it; the state of an earlier time is gone.
    pub fn at(&self, view: View<'_>) -> Result<(), Gone> {
        match view {
            View::At(at) | View::With(at, _) if self.since() > at => {
                self.settled().try_for_each(|settled| settled.at(view))
            }
            _ => Ok(()),
        }
    }

    /// Whether a view shows the row as it is now.
    pub fn is_newest(&self, view: View<'_>) -> bool {
        match view {
            View::At(at) | View::With(at, _) => self.since() <= at,
            View::Newest | View::Visibility(_) | View::Writer(..) => true,
        }
    }

    /// Merges a write into a column, if the row stays packed.
    pub(crate) fn merge(
        &mut self,
        column: &Column,
        effect: &Effect,
        write: &Write,
        (empty_since, columns_max): (LogicalTime, u16),
    ) -> Option<Merged> {
        let (kind, name) = settled::parts_of(column)?;
        let origin = self.origin();
        let found = self.items().find(|(_, item)| item.name == name);
        let (place, outcome, merged, is_new) = match found {
            Some((_, item)) if item.number_of_kind() != kind => return None,
            Some((place, item)) => {
                let (outcome, merged) = item.settled(&origin).merged(effect, write)?;
                if outcome == Outcome::Lost {
                    return Some(Merged { outcome, is_new: false });
                }
                (place, outcome, merged, false)
            }
            None => {
                let is_of_kind = self.kind() == settled::kind_of(kind);
                if !is_of_kind || self.count() >= usize::from(columns_max).min(COLUMNS_MAX) {
                    return None;
                }
                let merged = Settled::first(effect, write, empty_since)?;
                let behind = self.items().find(|(_, item)| item.name > name);
                let at = behind.map_or(self.0.len(), |(place, _)| place.start);
                (at..at, Outcome::Won, merged, true)
            }
        };
        let since = self.since().max(write.at);
        let encoded = Encoded::new((kind, name), &merged, &origin);
        let (mut short, mut long) = ([0; settled::SHORT], Vec::new());
        let bytes = written(&encoded, &mut short, &mut long);
        self.replace(place, bytes)?;
        self.0[..8].copy_from_slice(&since.0.to_le_bytes());
        Some(Merged { outcome, is_new })
    }

    /// Adds a column behind the others.
    fn push(&mut self, column: &Column, settled: &Settled<'_>, origin: &Origin) -> Option<()> {
        let encoded = Encoded::new(settled::parts_of(column)?, settled, origin);
        let (mut short, mut long) = ([0; settled::SHORT], Vec::new());
        let bytes = written(&encoded, &mut short, &mut long);
        let end = self.0.len();
        self.replace(end..end, bytes)
    }

    /// Puts a column's bytes into a place, unless the row would be too long.
    fn replace(&mut self, place: Range<usize>, column: &[u8]) -> Option<()> {
        let mut length = [0; 4];
        let length_bytes = settled::write_number(column.len() as u64, &mut length);
        let (length, added) = (&length[..length_bytes], length_bytes + column.len());
        self.0[COUNT] += u8::from(place.is_empty());
        if place.len() == added {
            let (before, behind) = self.0[place].split_at_mut(length_bytes);
            before.copy_from_slice(length);
            behind.copy_from_slice(column);
            return Some(());
        }
        let total = self.0.len() - place.len() + added;
        if total > BYTES_MAX {
            self.0[COUNT] -= u8::from(place.is_empty());
            return None;
        }
        let mut bytes = Vec::with_capacity(total);
        for part in [&self.0[..place.start], length, column, &self.0[place.end..]] {
            bytes.extend_from_slice(part);
        }
        self.0 = bytes.into_boxed_slice();
        Some(())
    }
}

fn written<'b>(
    encoded: &Encoded<'_>,
    short: &'b mut [u8; settled::SHORT],
    long: &'b mut Vec<u8>,
) -> &'b [u8] {
    let bytes = match encoded.len() {
        length if length <= settled::SHORT => &mut short[..length],
        length => {
            long.resize(length, 0);
            &mut long[..]
        }
    };
    encoded.write(bytes);
    bytes
}

/// The columns of a row, each with its place.
struct Items<'a> {
    row: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Items<'a> {
    type Item = (Range<usize>, Item<'a>);

    #[inline]
    fn next(&mut self) -> Option<(Range<usize>, Item<'a>)> {
        let mut rest = &self.row[self.at..];
        if rest.is_empty() {
            return None;
        }
        let length = settled::read_number(&mut rest) as usize;
        let (start, end) = (self.at, self.row.len() - rest.len() + length);
        self.at = end;
        Some((start..end, Item::of(&rest[..length])))
    }
}
