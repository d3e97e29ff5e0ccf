//! Where rows stand, found by key: compact while they are settled strings, packed while they are few settled columns,
//! whole while they are more.

use super::{Keyspace, hash};
use crate::cell::{Outcome, Write};
use crate::columns::PutSettled;
use crate::compact::{Compact, RowRef, plain_value};
use crate::counted::Shows;
use crate::packed::{Merged, Packed};
use crate::row::Row;
use bytes::Bytes;
use ensue_types::{Column, Effect, LogicalTime, RowEffect, Stamp};
use std::num::NonZeroUsize;

/// Bytes counted for a compact row beside its key and its value, roughly: its header, its slot, what finds it, and the
/// allocator's share.
const COMPACT_BYTES: u64 = 84;
/// The same of a packed row beside its bytes.
const PACKED_BYTES: u64 = 48;
/// The same of a whole row beside its cells and its key.
const ROW_BYTES: u64 = 112;

/// Bits of a cursor that say of which start it is.
const SALT_BITS: u32 = u16::BITS;

/// Where a row stands.
#[derive(Clone, Debug)]
pub(super) enum Slot {
    Free,
    Compact(Compact),
    Packed(Packed),
    Whole(Box<Row>),
    /// By a flush: it shows nothing.
    Hidden(Hidden),
}

/// A row that a flush hides, as it was before.
#[derive(Clone, Debug)]
pub(super) enum Hidden {
    Text(Compact),
    Columns(Packed),
}

// There are as many slots as rows.
const _: () = assert!(size_of::<Slot>() == 24);

impl Hidden {
    fn row(&self) -> RowRef<'_> {
        match self {
            Hidden::Text(row) => RowRef::Compact(row),
            Hidden::Columns(row) => RowRef::Packed(row),
        }
    }

    pub(super) fn key(&self) -> &[u8] {
        self.row().key()
    }

    pub(super) fn since(&self) -> LogicalTime {
        self.row().since()
    }

    /// The highest stamp of its values.
    pub(super) fn newest(&self) -> Stamp {
        match self {
            Hidden::Text(row) => row.stamp(),
            Hidden::Columns(row) => {
                let values = row.settled().filter_map(|settled| settled.only_value());
                values.map(|(stamp, _)| stamp).max().unwrap_or_default()
            }
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        match self {
            Hidden::Text(row) => compact_bytes(row),
            Hidden::Columns(row) => packed_bytes(row),
        }
    }

    pub(super) fn cells_count(&self) -> u64 {
        match self {
            Hidden::Text(row) => row.cells_count() as u64,
            Hidden::Columns(row) => row.count() as u64,
        }
    }
}

impl Slot {
    /// What it shows, or may show.
    fn row(&self) -> Option<RowRef<'_>> {
        match self {
            Slot::Free | Slot::Hidden(_) => None,
            Slot::Compact(row) => Some(RowRef::Compact(row)),
            Slot::Packed(row) => Some(RowRef::Packed(row)),
            Slot::Whole(row) => Some(RowRef::Whole(row)),
        }
    }

    pub(super) fn whole(&self) -> Option<&Row> {
        match self {
            Slot::Whole(row) => Some(row),
            _ => None,
        }
    }

    pub(super) fn whole_mut(&mut self) -> Option<&mut Row> {
        match self {
            Slot::Whole(row) => Some(row),
            _ => None,
        }
    }

    /// The same, hidden or not.
    fn any_row(&self) -> Option<RowRef<'_>> {
        match self {
            Slot::Hidden(hidden) => Some(hidden.row()),
            slot => slot.row(),
        }
    }

    pub(super) fn key(&self) -> &[u8] {
        self.any_row().map_or(&[], RowRef::key)
    }

    fn is_of(&self, key: &[u8]) -> bool {
        self.any_row().is_some_and(|row| row.key() == key)
    }
}

pub(super) fn row_bytes(key: &[u8]) -> u64 {
    ROW_BYTES + key.len() as u64
}

fn compact_bytes(row: &Compact) -> u64 {
    let deadline = row.deadline().map_or(0, |_| size_of::<u64>());
    COMPACT_BYTES + (deadline + row.key().len() + row.value().len()) as u64
}

fn packed_bytes(row: &Packed) -> u64 {
    PACKED_BYTES + row.bytes() as u64
}

/// Bytes counted for a whole row.
fn whole_bytes(row: &Row) -> u64 {
    row_bytes(row.key()) + row.counted_all().map(|counted| counted.bytes).sum::<u64>()
}

impl Keyspace {
    pub fn row(&self, key: &[u8]) -> Option<RowRef<'_>> {
        self.slots[self.slot_of(key)? as usize].row()
    }

    /// The same, of a row that is likely another one than was asked for last.
    pub fn another_row(&self, key: &[u8]) -> Option<RowRef<'_>> {
        self.slots[self.search(key)? as usize].row()
    }

    pub(super) fn slot_of(&self, key: &[u8]) -> Option<u32> {
        let latest = self.latest.get();
        if self.slots.get(latest as usize).is_some_and(|slot| slot.is_of(key)) {
            return Some(latest);
        }
        self.search(key)
    }

    fn search(&self, key: &[u8]) -> Option<u32> {
        let found = self.table.find(hash(key), |&slot| self.key_at(slot) == key).copied()?;
        self.latest.set(found);
        Some(found)
    }

    /// Rows, live and dead, but for those that a flush hides.
    pub fn rows(&self) -> impl Iterator<Item = RowRef<'_>> {
        self.slots.iter().filter_map(Slot::row)
    }

    /// Those that are not compact.
    pub fn whole_rows(&self) -> impl Iterator<Item = &Row> {
        self.slots.iter().filter_map(Slot::whole)
    }

    pub(super) fn packed_rows(&self) -> impl Iterator<Item = &Packed> {
        self.slots.iter().filter_map(|slot| match slot {
            Slot::Packed(row) => Some(row),
            _ => None,
        })
    }

    pub fn rows_count(&self) -> usize {
        self.table.len()
    }

    /// Rows from a slot on, hidden ones too, at most `count` slots, and the slot to go on from; nothing when the end
    /// was reached.
    pub fn rows_from(&self, slot: usize, count: usize) -> (impl Iterator<Item = RowRef<'_>>, Option<usize>) {
        let end = self.slots.len().min(slot.saturating_add(count));
        let rows = self.slots[slot.min(end)..end].iter().filter_map(Slot::any_row);
        (rows, (end < self.slots.len()).then_some(end))
    }

    /// Slots, of rows or free.
    pub fn slots_count(&self) -> usize {
        self.slots.len()
    }

    /// Rows from a slot on, each with its slot. Free slots cost nothing.
    pub fn rows_with_slots(&self, slot: usize) -> impl Iterator<Item = (usize, RowRef<'_>)> {
        let first = self.filled.next(slot);
        let slots = std::iter::successors(first, |slot| self.filled.next(slot + 1));
        slots.filter_map(|slot| Some((slot, self.slots[slot].row()?)))
    }

    /// The cursor of a walk over rows, or over the columns of a large one, that goes on from a slot.
    pub fn cursor_at(&self, slot: usize) -> u64 {
        (slot as u64) << SALT_BITS | u64::from(self.walk_salt)
    }

    /// The slot that a cursor goes on from. One of before a restart begins anew: what it has not passed may have any
    /// slot since.
    pub fn slot_at(&self, cursor: u64) -> usize {
        let is_of_now = cursor & u64::from(u16::MAX) == u64::from(self.walk_salt);
        if is_of_now { usize::try_from(cursor >> SALT_BITS).unwrap_or(usize::MAX) } else { 0 }
    }

    /// The row that has so many others in slots before its own.
    pub fn nth_row(&self, before: usize) -> Option<RowRef<'_>> {
        self.slots[self.filled.nth(before)?].row()
    }

    /// How many rows may have a deadline.
    pub fn dated_count(&self) -> usize {
        self.dated.count()
    }

    /// The row that has so many others in slots before its own that may have a deadline.
    pub fn nth_dated(&self, before: usize) -> Option<RowRef<'_>> {
        self.slots[self.dated.nth(before)?].row()
    }

    /// This one has none any more.
    pub fn note_undated(&mut self, before: usize) {
        if let Some(slot) = self.dated.nth(before) {
            self.dated.remove(slot);
        }
    }

    /// Keeps the order of a row's members from now on, if it is a large sorted set.
    pub fn keep_order(&mut self, key: &[u8]) {
        let Some(slot) = self.slot_of(key) else { return };
        if let Some(row) = self.slots[slot as usize].whole_mut() {
            self.bytes += row.keep_order();
        }
    }

    /// Notes that a write depends on all of a row.
    pub fn observe(&mut self, key: &[u8], by: &Write) {
        let Some(slot) = self.slot_of(key) else { return };
        if let Some(row) = self.slots[slot as usize].whole_mut() {
            row.observe(by);
        }
    }

    /// Bytes that are counted for the row of a key. Of a large row so many columns are looked at, and the others taken
    /// to be like them; all are where none is said.
    pub fn counted_bytes(&self, key: &[u8], samples: Option<NonZeroUsize>) -> Option<u64> {
        Some(match self.row(key)? {
            RowRef::Compact(row) => compact_bytes(row),
            RowRef::Packed(row) => packed_bytes(row),
            RowRef::Whole(row) => row_bytes(row.key()) + row.columns_bytes(samples),
        })
    }

    pub(super) fn compact_bytes(&self) -> u64 {
        let compact = self.slots.iter().filter_map(|slot| match slot {
            Slot::Compact(row) => Some(compact_bytes(row)),
            Slot::Packed(row) => Some(packed_bytes(row)),
            Slot::Hidden(hidden) => Some(hidden.bytes()),
            Slot::Free | Slot::Whole(_) => None,
        });
        compact.sum()
    }

    pub(super) fn key_at(&self, slot: u32) -> &[u8] {
        self.slots[slot as usize].key()
    }

    /// The slot of a row, which is made if there is none, and has cells from now on.
    pub(super) fn slot_for(&mut self, key: &[u8]) -> u32 {
        match self.slot_of(key) {
            Some(slot) => {
                self.whole(slot);
                slot
            }
            None => {
                self.bytes += row_bytes(key);
                let row = Row::new(Bytes::copy_from_slice(key), self.absent_since);
                let row = row.with_columns_max(self.columns_max);
                self.insert(Slot::Whole(Box::new(row)))
            }
        }
    }

    fn insert(&mut self, row: Slot) -> u32 {
        let hashed = hash(row.key());
        let slot = match self.free.pop() {
            Some(slot) => {
                self.put_slot(slot as usize, row);
                slot
            }
            None => {
                self.slots.push(Slot::Free);
                self.put_slot(self.slots.len() - 1, row);
                (self.slots.len() - 1) as u32
            }
        };
        self.filled.insert(slot as usize);
        self.latest.set(slot);
        let slots = &self.slots;
        self.table.insert_unique(hashed, slot, |&slot| hash(slots[slot as usize].key()));
        slot
    }

    /// Merges a value into a row, if that is compact and stays so: values of two datacenters stand against each other.
    fn put_at(&mut self, slot: u32, value: &[u8], write: &Write) -> Option<Outcome> {
        let Slot::Compact(row) = &mut self.slots[slot as usize] else { return None };
        if row.stamp().datacenter != write.stamp.datacenter || row.deadline().is_some() {
            return None;
        }
        let before = compact_bytes(row);
        let outcome = row.put(value, write);
        self.bytes = self.bytes + compact_bytes(row) - before;
        Some(outcome)
    }

    /// A row with cells, as it is or made so.
    pub(super) fn whole(&mut self, slot: u32) -> &mut Row {
        self.unhide(slot);
        let there = &mut self.slots[slot as usize];
        let (row, bytes, shows) = match std::mem::replace(there, Slot::Free) {
            Slot::Compact(row) => {
                let (bytes, shows) = (compact_bytes(&row), Shows::of_text(row.deadline().is_some()));
                (row.into_row(), bytes, shows)
            }
            Slot::Packed(row) => (row.to_row(), packed_bytes(&row), Shows::SETTLED),
            Slot::Whole(row) => {
                *there = Slot::Whole(row);
                return there.whole_mut().expect("just put there");
            }
            Slot::Free | Slot::Hidden(_) => {
                unreachable!("the table points at filled slots")
            }
        };
        self.bytes = self.bytes + whole_bytes(&row) - bytes;
        let mut row = row.with_columns_max(self.columns_max);
        row.counted_as = shows;
        *there = Slot::Whole(Box::new(row));
        there.whole_mut().expect("just put there")
    }

    fn may_be_compact(&self) -> bool {
        #[cfg(test)]
        if self.keeps_whole {
            return false;
        }
        true
    }

    /// Merges a value or an addition into a column that is settled and stays so, or makes one of it. Answers nothing if
    /// more than that may be known of the row.
    pub(super) fn put_compact(&mut self, change: &RowEffect, write: &Write) -> Option<Outcome> {
        let is_flushed = !self.flushes.is_empty() || write.stamp < self.flushed();
        if is_flushed || !self.may_be_compact() {
            return None;
        }
        if matches!(change.column, Column::FieldDeadline(_) | Column::Escrow(_)) {
            // Its row has to know of it, or its keyspace.
            return None;
        }
        let Some(slot) = self.slot_of(&change.key) else { return self.put_new(change, write) };
        match &self.slots[slot as usize] {
            Slot::Compact(_) if change.column == Column::Text => match plain_value(&change.effect, write) {
                Some(value) => self.put_at(slot, value, write),
                None => self.add_at(slot, &change.effect, write),
            },
            Slot::Packed(_) => self.merge_packed(slot, change, write),
            Slot::Whole(row) if row.is_large() => self.put_large(slot, change, write),
            _ => None,
        }
    }

    fn put_new(&mut self, change: &RowEffect, write: &Write) -> Option<Outcome> {
        let row = match (&change.column, plain_value(&change.effect, write)) {
            (Column::Text, Some(value)) => {
                let since = self.absent_since.max(write.at);
                Slot::Compact(Compact::new(&change.key, value, (write.stamp, write.operation), since))
            }
            (Column::Element(_) | Column::Stream(_), _) => return None,
            (Column::Escrow(_) | Column::Deadline | Column::FieldDeadline(_) | Column::Row, _) => {
                return None;
            }
            (column, _) => {
                let row = Packed::new(&change.key, column, &change.effect, write, self.absent_since)?;
                Slot::Packed(row)
            }
        };
        self.bytes += match &row {
            Slot::Compact(row) => compact_bytes(row),
            Slot::Packed(row) => packed_bytes(row),
            Slot::Free | Slot::Whole(_) | Slot::Hidden(_) => 0,
        };
        self.cells += 1;
        self.insert(row);
        Some(Outcome::Won)
    }

    /// Adds to a string that was put.
    fn add_at(&mut self, slot: u32, effect: &Effect, write: &Write) -> Option<Outcome> {
        let Slot::Compact(row) = &self.slots[slot as usize] else { return None };
        if row.deadline().is_some() {
            return None;
        }
        let mut packed = Packed::of_text(row)?;
        let Merged { outcome, .. } =
            packed.merge(&Column::Text, effect, write, (self.absent_since, self.columns_max))?;
        self.bytes = self.bytes + packed_bytes(&packed) - compact_bytes(row);
        self.slots[slot as usize] = Slot::Packed(packed);
        Some(outcome)
    }

    fn merge_packed(&mut self, slot: u32, change: &RowEffect, write: &Write) -> Option<Outcome> {
        let Slot::Packed(row) = &mut self.slots[slot as usize] else { return None };
        let before = packed_bytes(row);
        let Merged { outcome, is_new } =
            row.merge(&change.column, &change.effect, write, (self.absent_since, self.columns_max))?;
        self.bytes = self.bytes + packed_bytes(row) - before;
        self.cells += u64::from(is_new);
        Some(outcome)
    }

    fn put_large(&mut self, slot: u32, change: &RowEffect, write: &Write) -> Option<Outcome> {
        let row = self.slots[slot as usize].whole_mut()?;
        let put = row.put_settled(&change.column, &change.effect, write, self.absent_since)?;
        let PutSettled { outcome, before, after } = put;
        self.recount(slot, &change.column, before, after);
        self.recount_row(slot);
        Some(outcome)
    }

    /// Makes a row compact that is nothing but a settled string.
    pub(super) fn compact(&mut self, slot: u32) {
        if !self.may_be_compact() {
            return;
        }
        let Slot::Whole(row) = &self.slots[slot as usize] else { return };
        let Some(row) = Compact::of(row) else { return };
        self.take_form(slot, compact_bytes(&row), Slot::Compact(row));
    }

    /// The same, or packs a row that is few settled columns. A row that each write makes whole for some time is packed
    /// when it is forgotten what the last one carries.
    pub(super) fn settle_row(&mut self, slot: u32) {
        self.compact(slot);
        if !self.keeps_versions {
            self.pack(slot);
        }
    }

    /// Packs a row that is few settled columns. All of them are looked at.
    pub(super) fn pack(&mut self, slot: u32) {
        if self.handlers.is_some() || !self.may_be_compact() {
            return;
        }
        let Slot::Whole(row) = &self.slots[slot as usize] else { return };
        let Some(row) = Packed::of(row, self.columns_max) else { return };
        self.take_form(slot, packed_bytes(&row), Slot::Packed(row));
    }

    fn take_form(&mut self, slot: u32, bytes: u64, form: Slot) {
        let Some(row) = self.slots[slot as usize].whole() else { return };
        self.bytes = self.bytes + bytes - whole_bytes(row);
        self.put_slot(slot as usize, form);
    }

    pub(super) fn release(&mut self, slot: u32) {
        let row = self.put_slot(slot as usize, Slot::Free);
        let key = row.key();
        self.bytes -= row_bytes(key);
        let entry = self.table.find_entry(hash(key), |&candidate| candidate == slot);
        if let Ok(entry) = entry {
            entry.remove();
        }
        self.large.remove(&slot);
        self.filled.remove(slot as usize);
        if self.dated.contains(slot as usize) {
            self.dated.remove(slot as usize);
        }
        self.free.push(slot);
    }
}
