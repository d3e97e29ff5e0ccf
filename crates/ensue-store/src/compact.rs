//! A settled string in one allocation, and rows as callers are lent them, compact or whole.
//!
//! Most rows are strings that were set and are not being changed: one value, written by one write, which every reader
//! sees, often with a deadline by the same write. Such a row is its key, its value, its deadline and its write, and
//! nothing else. What more a row can have (a deadline by another write, versions, past states, siblings, additions,
//! what its write carried, other columns) makes it whole, and when all that is gone it is made compact again. No answer
//! tells the two forms apart.
//!
//! ```text
//! since u64 | stamp's time u64 | position u64 | stamp's partition u16 | partition u16 | incarnation u16 |
//!     stamp's datacenter u8 | datacenter u8 | key length u31, whether there is a deadline u1 |
//!     deadline u64, if there is one | key | value
//! ```

use crate::cell::{Base, Cell, Outcome, Write};
use crate::packed::Packed;
use crate::row::{Gone, Kind, Row};
use crate::view::View;
use bytes::{Buf, Bytes};
use ensue_types::{
    Column, DatacenterId, Effect, Incarnation, LogicalTime, OperationId, PartitionId, Position, Rule, Source,
    Stamp,
};
use std::borrow::Cow;

const HEADER: usize = 36;
/// Beside the length of the key: there is a deadline.
const DATED: u32 = 1 << 31;

pub use crate::settled::VALUE_MAX;

/// See the module.
#[derive(Clone, Debug)]
pub struct Compact(Box<[u8]>);

impl Compact {
    /// A string with these bytes that this write has made.
    pub(crate) fn new(key: &[u8], value: &[u8], base: (Stamp, OperationId), since: LogicalTime) -> Compact {
        Compact::dated(key, value, None, base, since)
    }

    /// The same, with a deadline by the same write, in milliseconds since 1970.
    fn dated(
        key: &[u8],
        value: &[u8],
        deadline: Option<u64>,
        (stamp, operation): (Stamp, OperationId),
        since: LogicalTime,
    ) -> Compact {
        let key_bytes = u32::try_from(key.len()).expect("limits.rs bounds every length far below 2 GiB");
        let flag = deadline.map_or(0, |_| DATED);
        let deadline = deadline.map(u64::to_le_bytes);
        let deadline = deadline.as_ref().map_or(&[][..], |bytes| bytes);
        let mut bytes = Vec::with_capacity(HEADER + deadline.len() + key.len() + value.len());
        bytes.extend_from_slice(&since.0.to_le_bytes());
        bytes.extend_from_slice(&stamp.time.0.to_le_bytes());
        bytes.extend_from_slice(&operation.position.0.to_le_bytes());
        bytes.extend_from_slice(&stamp.partition.0.to_le_bytes());
        bytes.extend_from_slice(&operation.partition.0.to_le_bytes());
        bytes.extend_from_slice(&operation.incarnation.0.to_le_bytes());
        bytes.extend_from_slice(&[stamp.datacenter.0, operation.datacenter.0]);
        bytes.extend_from_slice(&(key_bytes | flag).to_le_bytes());
        bytes.extend_from_slice(deadline);
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(value);
        Compact(bytes.into_boxed_slice())
    }

    /// The same as this row, if it is nothing but a settled string.
    pub(crate) fn of(row: &Row) -> Option<Compact> {
        let (cell, deadline) = row.text_alone()?;
        let plain = |cell: &Cell| match &cell.as_plain()?.base {
            Base { stamp, operation, dependencies: None, value: Some(value) }
                if cell.since() == row.since() =>
            {
                Some(((*stamp, *operation), value.clone()))
            }
            _ => None,
        };
        let (write, value) = plain(cell)?;
        let deadline = match deadline.map(plain) {
            None => None,
            Some(Some((of, bytes))) if of == write => {
                Some(bytes.as_ref().try_into().map(u64::from_le_bytes).ok()?)
            }
            Some(_) => return None,
        };
        let is_small = value.len() <= VALUE_MAX;
        is_small.then(|| Compact::dated(row.key(), &value, deadline, write, row.since()))
    }

    pub(crate) fn to_row(&self) -> Row {
        let base = Base {
            stamp: self.stamp(),
            operation: self.operation(),
            dependencies: None,
            value: Some(Bytes::copy_from_slice(self.value())),
        };
        let cell = Cell::of_base(self.since(), base);
        Row::of_text(Bytes::copy_from_slice(self.key()), cell, self.deadline_cell())
    }

    fn deadline_cell(&self) -> Option<Cell> {
        let value = Bytes::copy_from_slice(&self.deadline()?.to_le_bytes());
        let (stamp, operation) = (self.stamp(), self.operation());
        let base = Base { stamp, operation, dependencies: None, value: Some(value) };
        Some(Cell::of_base(self.since(), base))
    }

    /// The same, with this allocation as the value's, unless more stands before it than it is long.
    pub(crate) fn into_row(self) -> Row {
        let at = self.value_at();
        if self.0.len() < 2 * at {
            return self.to_row();
        }
        let (key, since) = (Bytes::copy_from_slice(self.key()), self.since());
        let (stamp, operation, deadline) = (self.stamp(), self.operation(), self.deadline_cell());
        let mut value = Bytes::from(self.0);
        value.advance(at);
        let base = Base { stamp, operation, dependencies: None, value: Some(value) };
        Row::of_text(key, Cell::of_base(since, base), deadline)
    }

    fn u64_at(&self, at: usize) -> u64 {
        let bytes = self.0[at..].first_chunk().expect("the header is whole");
        u64::from_le_bytes(*bytes)
    }

    fn u16_at(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.0[at], self.0[at + 1]])
    }

    /// Its present state is valid from this time on.
    pub fn since(&self) -> LogicalTime {
        LogicalTime(self.u64_at(0))
    }

    pub(crate) fn stamp(&self) -> Stamp {
        Stamp {
            time: LogicalTime(self.u64_at(8)),
            datacenter: DatacenterId(self.0[30]),
            partition: PartitionId(self.u16_at(24)),
        }
    }

    pub(crate) fn operation(&self) -> OperationId {
        OperationId {
            datacenter: DatacenterId(self.0[31]),
            incarnation: Incarnation(self.u16_at(28)),
            partition: PartitionId(self.u16_at(26)),
            position: Position(self.u64_at(16)),
        }
    }

    /// Whether there is a deadline, and where the value begins.
    fn extent(&self) -> (bool, usize) {
        let bytes = self.0[32..].first_chunk().expect("the header is whole");
        let word = u32::from_le_bytes(*bytes);
        let (is_dated, key_bytes) = (word & DATED != 0, (word & !DATED) as usize);
        (is_dated, HEADER + if is_dated { size_of::<u64>() } else { 0 } + key_bytes)
    }

    fn value_at(&self) -> usize {
        self.extent().1
    }

    /// When it ends, in milliseconds since 1970.
    pub fn deadline(&self) -> Option<u64> {
        self.extent().0.then(|| self.u64_at(HEADER))
    }

    /// The text, and the deadline if there is one.
    pub(crate) fn cells_count(&self) -> usize {
        1 + usize::from(self.extent().0)
    }

    pub fn key(&self) -> &[u8] {
        let (is_dated, end) = self.extent();
        &self.0[HEADER + if is_dated { size_of::<u64>() } else { 0 }..end]
    }

    pub fn value(&self) -> &[u8] {
        &self.0[self.value_at()..]
    }

    /// The write that made it.
    pub fn source(&self) -> Source {
        Source { operation: self.operation(), stamp: self.stamp(), dependencies: None }
    }

    /// Whether a view shows it; the state of an earlier time is gone.
    pub fn at(&self, view: View<'_>) -> Result<(), Gone> {
        match view {
            View::At(at) | View::With(at, _) if self.since() > at => Err(Gone),
            _ => Ok(()),
        }
    }

    /// Merges a value that another write of the same datacenter has put, without a trace of what the write had seen,
    /// into a row without a deadline.
    pub(crate) fn put(&mut self, value: &[u8], write: &Write) -> Outcome {
        let known = self.stamp();
        let older = match Rule::TiesByDatacenter.holds() {
            true => write.stamp < known,
            false => write.stamp.time < known.time,
        };
        if older && Rule::LastWriterWins.holds() || write.stamp == known && self.value() == value {
            return Outcome::Lost;
        }
        let since = self.since().max(write.at);
        *self = Compact::new(self.key(), value, (write.stamp, write.operation), since);
        Outcome::Won
    }
}

/// The value of an effect that a compact row can be made of or take.
pub(crate) fn plain_value<'a>(effect: &'a Effect, write: &Write) -> Option<&'a Bytes> {
    match effect {
        Effect::Put { value, seen, over: None }
            if seen.is_empty() && value.len() <= VALUE_MAX && write.dependencies.is_none() =>
        {
            Some(value)
        }
        _ => None,
    }
}

/// A row as it is kept.
#[derive(Clone, Copy, Debug)]
pub enum RowRef<'a> {
    Whole(&'a Row),
    Compact(&'a Compact),
    Packed(&'a Packed),
}

impl<'a> RowRef<'a> {
    pub fn key(self) -> &'a [u8] {
        match self {
            RowRef::Whole(row) => row.key(),
            RowRef::Compact(row) => row.key(),
            RowRef::Packed(row) => row.key(),
        }
    }

    /// Every column's present state is valid from this time on.
    pub fn since(self) -> LogicalTime {
        match self {
            RowRef::Whole(row) => row.since(),
            RowRef::Compact(row) => row.since(),
            RowRef::Packed(row) => row.since(),
        }
    }

    /// The row with its cells, made if it is compact or packed.
    pub fn whole(self) -> Cow<'a, Row> {
        match self {
            RowRef::Whole(row) => Cow::Borrowed(row),
            RowRef::Compact(row) => Cow::Owned(row.to_row()),
            RowRef::Packed(row) => Cow::Owned(row.to_row()),
        }
    }

    /// See `Row::is_newest`.
    pub fn is_newest(self, view: View<'_>) -> bool {
        match self {
            RowRef::Whole(row) => row.is_newest(view),
            RowRef::Compact(row) => row.at(view).is_ok(),
            RowRef::Packed(row) => row.is_newest(view),
        }
    }

    /// See `Row::kind`.
    pub fn kind(self) -> Option<Kind> {
        match self {
            RowRef::Whole(row) => row.kind(),
            RowRef::Compact(_) => Some(Kind::Text),
            RowRef::Packed(row) => Some(row.kind()),
        }
    }

    /// See `Row::kind_at`.
    pub fn kind_at(self, view: View<'_>, at_ms: u64) -> Result<Option<Kind>, Gone> {
        match self {
            RowRef::Whole(row) => row.kind_at(view, at_ms),
            RowRef::Compact(row) => row.at(view).map(|()| Some(Kind::Text)),
            RowRef::Packed(row) => row.at(view).map(|()| Some(row.kind())),
        }
    }

    /// See `Row::sole_kind`.
    pub fn sole_kind(self) -> Option<Kind> {
        match self {
            RowRef::Whole(row) => row.sole_kind(),
            RowRef::Compact(_) => Some(Kind::Text),
            RowRef::Packed(row) => Some(row.kind()),
        }
    }

    /// See `Row::live_count_at`.
    pub fn live_count_at(self, kind: Kind, view: View<'_>) -> Result<usize, Gone> {
        match self {
            RowRef::Whole(row) => row.live_count_at(kind, view),
            RowRef::Compact(row) if kind == Kind::Text => row.at(view).map(|()| 1),
            RowRef::Packed(row) if kind == row.kind() => row.at(view).map(|()| row.count()),
            RowRef::Compact(_) | RowRef::Packed(_) => Ok(0),
        }
    }

    /// See `Row::has_live`.
    pub fn has_live(self, kind: Kind, view: View<'_>) -> bool {
        match self {
            RowRef::Whole(row) => row.has_live(kind, view),
            RowRef::Compact(row) => kind == Kind::Text && row.at(view).is_ok(),
            RowRef::Packed(row) => {
                kind == row.kind() && row.settled().any(|settled| settled.at(view).is_ok())
            }
        }
    }

    /// See `Row::deadline_at`.
    pub fn deadline_at(self, view: View<'_>) -> Result<Option<u64>, Gone> {
        match self {
            RowRef::Whole(row) => row.deadline_at(view),
            RowRef::Compact(row) => match row.deadline() {
                Some(deadline) => row.at(view).map(|()| Some(deadline)),
                None => Ok(None),
            },
            RowRef::Packed(_) => Ok(None),
        }
    }

    /// Whether it has a deadline, or had one.
    pub fn may_expire(self) -> bool {
        match self {
            RowRef::Whole(row) => row.cell(&Column::Deadline).is_some() || row.has_field_deadlines(),
            RowRef::Compact(row) => row.deadline().is_some(),
            RowRef::Packed(_) => false,
        }
    }

    pub fn columns_count(self) -> usize {
        match self {
            RowRef::Whole(row) => row.columns_count(),
            RowRef::Compact(_) => 1,
            RowRef::Packed(row) => row.count(),
        }
    }

    /// See `Row::is_large`.
    pub fn is_large(self) -> bool {
        matches!(self, RowRef::Whole(row) if row.is_large())
    }
}

#[cfg(test)]
mod tests;
