//! The rows of one keyspace in one partition: found by key, walked by slot, merged by effect.
//!
//! Rows stand in slots that never move, so that `SCAN` and checkpoints can walk them in slices while they change. It
//! keeps past states of the rows that a read transaction has read and may read again, and nobody else's.

use crate::cell::{Outcome, State, Write};
use crate::row::Row;
use bytes::Bytes;
use ensue_types::{
    Column, DatacenterId, Decimal, Effect, LogicalTime, RowEffect, Rule, Rules, Seen, SeenTally, Stamp, Tally,
};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::collections::VecDeque;
use std::hash::BuildHasher;

/// Bytes counted for a cell beside its key, name and value: what the structures around it take, roughly.
const CELL_BYTES: u64 = 160;

/// A tombstone, or an expired row, that may be removed once nothing older can arrive (trap 14).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spent {
    pub key: Bytes,
    /// The column; nothing for a whole row whose deadline has passed.
    pub column: Option<Column>,
    /// The stamp of the tombstone, or of the deadline.
    pub stamp: Stamp,
    /// The deadline in milliseconds since 1970; 0 for a tombstone.
    pub deadline_ms: u64,
}

/// The rows of a keyspace.
#[derive(Clone, Debug, Default)]
pub struct Keyspace {
    table: HashTable<u32>,
    slots: Vec<Option<Row>>,
    free: Vec<u32>,
    /// Base values below this stamp were flushed.
    flushed: Stamp,
    /// The highest stamp of a counter's tombstone that was collected.
    collected: Stamp,
    /// What is not here has been absent at least since then.
    absent_since: LogicalTime,
    /// Rows that a first round read, with the time until which a second round may come.
    marks: Marks,
    spent: Vec<Spent>,
    bytes: u64,
    cells: u64,
    rules: Rules,
}

/// Keys whose past states are kept, until when.
#[derive(Clone, Debug, Default)]
struct Marks {
    until_ms: HashTable<(Bytes, u64)>,
    queue: VecDeque<(u64, Bytes)>,
}

fn hash(key: &[u8]) -> u64 {
    FixedState::default().hash_one(key)
}

impl Keyspace {
    pub fn new(rules: Rules) -> Keyspace {
        Keyspace { rules, ..Keyspace::default() }
    }

    pub fn rules(&self) -> Rules {
        self.rules
    }

    pub fn row(&self, key: &[u8]) -> Option<&Row> {
        let slot = self.table.find(hash(key), |&slot| self.key_at(slot) == key)?;
        self.slots[*slot as usize].as_ref()
    }

    /// Rows, live and dead.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.slots.iter().flatten()
    }

    pub fn rows_count(&self) -> usize {
        self.table.len()
    }

    /// Rows from a slot on, at most `count` slots, and the slot to go on from; nothing when the end was reached.
    pub fn rows_from(&self, slot: usize, count: usize) -> (impl Iterator<Item = &Row>, Option<usize>) {
        let end = self.slots.len().min(slot.saturating_add(count));
        let rows = self.slots[slot.min(end)..end].iter().flatten();
        (rows, (end < self.slots.len()).then_some(end))
    }

    /// Estimated bytes of all rows.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Columns held, tombstones among them.
    pub fn cells(&self) -> u64 {
        self.cells
    }

    /// A key or column that is not here has been absent at least since then.
    pub fn absent_since(&self) -> LogicalTime {
        self.absent_since
    }

    /// Every addition with a stamp up to this, to a column that is not here or has no base, was seen and deleted.
    pub fn collected(&self) -> Stamp {
        self.collected
    }

    /// Base values with stamps below this one were flushed.
    pub fn flushed(&self) -> Stamp {
        self.flushed
    }

    /// After a restart: what is not here is only known to be absent since now, and nothing is known of the past.
    pub fn forget_past(&mut self, at: LogicalTime) {
        self.absent_since = self.absent_since.max(at);
    }

    /// Merges one effect.
    pub fn apply(&mut self, change: &RowEffect, write: &Write) -> Outcome {
        let flushed_put;
        let effect = match &change.effect {
            Effect::Put { seen, .. }
                if write.stamp < self.flushed && self.rules.hold(Rule::FlushHidesLateWrites) =>
            {
                flushed_put = Effect::Delete { seen: seen.clone() };
                &flushed_put
            }
            effect => effect,
        };
        let keep = self.is_marked(&change.key) && self.rules.hold(Rule::KeepOldVersions);
        let (rules, absent_since) = (self.rules, self.absent_since);
        let slot = self.slot_for(&change.key);
        let row = self.slots[slot as usize].as_mut().expect("slot_for fills the slot");
        let had_cell = row.cell(&change.column).is_some();
        let bytes_before = value_bytes(row, &change.column);
        let outcome = row.apply(&change.column, effect, write, keep, absent_since, rules);
        let state = row.cell(&change.column).expect("apply makes the cell").state();
        let (live, stamp) = (state.is_live(rules), state.newest());
        self.bytes = self.bytes + value_bytes(row, &change.column) - bytes_before;
        if !had_cell {
            self.cells += 1;
            self.bytes += CELL_BYTES + column_bytes(&change.column);
        }
        if outcome == Outcome::Won || !had_cell {
            self.note_spent(change, live, stamp);
        }
        outcome
    }

    /// Hides every base value with a stamp below the flush's, and drops rows that nothing else needs.
    pub fn flush(&mut self, stamp: Stamp, at: LogicalTime) {
        if stamp <= self.flushed {
            return;
        }
        self.flushed = stamp;
        self.absent_since = self.absent_since.max(at);
        for slot in 0..self.slots.len() {
            self.flush_slot(slot, stamp, at);
        }
    }

    /// The counters that a flush must delete by name, because their additions do not go by stamp.
    pub fn counters(&self) -> Vec<(Bytes, Column, Seen)> {
        let mut counters = Vec::new();
        for row in self.rows() {
            for (column, cell) in row.cells().filter(|(_, cell)| cell.state().counter.is_some()) {
                counters.push((row.key().clone(), column.clone(), self.seen_by(Some(cell.state()))));
            }
        }
        counters
    }

    /// The additions that a base written now must cover.
    pub fn seen(&self, key: &[u8], column: &Column) -> Seen {
        self.seen_by(self.row(key).and_then(|row| row.cell(column)).map(|cell| cell.state()))
    }

    fn seen_by(&self, state: Option<&State>) -> Seen {
        let mut seen = state.map(State::seen).unwrap_or_default();
        let forgotten = self.collected != Stamp::ZERO && state.is_none_or(State::has_no_base);
        if forgotten && self.rules.hold(Rule::CoverForgottenAdditions) {
            let tally = Tally { series: Stamp::ZERO, sum: Decimal::ZERO };
            seen.push(SeenTally { datacenter: DatacenterId::EVERY, tally, stamp: self.collected });
        }
        seen
    }

    /// Keeps past states of a key until a time: a first round has read it.
    pub fn mark(&mut self, key: &[u8], until_ms: u64) {
        let hasher = |(key, _): &(Bytes, u64)| hash(key);
        match self.marks.until_ms.find_mut(hash(key), |(marked, _)| marked == key) {
            Some((_, until)) => *until = until_ms.max(*until),
            None => {
                let key = Bytes::copy_from_slice(key);
                self.marks.queue.push_back((until_ms, key.clone()));
                self.marks.until_ms.insert_unique(hash(&key), (key, until_ms), hasher);
            }
        }
    }

    /// Forgets past states that nobody may ask for any more. Returns how many keys remain marked.
    pub fn sweep_marks(&mut self, now_ms: u64) -> usize {
        while let Some((due, _)) = self.marks.queue.front() {
            if *due > now_ms {
                break;
            }
            let (_, key) = self.marks.queue.pop_front().expect("front was there");
            let found = self.marks.until_ms.find_entry(hash(&key), |(marked, _)| *marked == key);
            let Ok(entry) = found else { continue };
            let until = entry.get().1;
            if until > now_ms {
                self.marks.queue.push_back((until, key));
                continue;
            }
            entry.remove();
            let slot = self.table.find(hash(&key), |&slot| self.key_at(slot) == key).copied();
            if let Some(row) = slot.and_then(|slot| self.slots[slot as usize].as_mut()) {
                row.forget_history();
            }
        }
        self.marks.queue.len()
    }

    /// Tombstones and deadlines noted since the last call.
    pub fn take_spent(&mut self) -> Vec<Spent> {
        std::mem::take(&mut self.spent)
    }

    /// Removes a tombstone or an expired row, unless it has changed since or a second round may ask for it. Answers
    /// whether it should be tried again.
    pub fn collect(&mut self, spent: &Spent) -> Collected {
        if self.is_marked(&spent.key) {
            return Collected::Later;
        }
        let rules = self.rules;
        let Some(&slot) = self.table.find(hash(&spent.key), |&slot| self.key_at(slot) == spent.key) else {
            return Collected::Changed;
        };
        let row = self.slots[slot as usize].as_mut().expect("table points at filled slots");
        let judged = spent.column.as_ref().unwrap_or(&Column::Deadline);
        let Some(cell) = row.cell(judged) else { return Collected::Changed };
        if cell.state().newest() != spent.stamp || (spent.column.is_some() && !cell.is_spent(rules)) {
            return Collected::Changed;
        }
        let doomed = match &spent.column {
            Some(column) => vec![column.clone()],
            None => row.all_cells().map(|(column, _)| column.clone()).collect(),
        };
        let mut freed = 0;
        for column in &doomed {
            let state = row.cell(column).map(|cell| cell.state());
            if let Some(state) = state.filter(|state| state.counter.is_some()) {
                self.collected = self.collected.max(state.newest());
            }
            freed += CELL_BYTES + column_bytes(column) + value_bytes(row, column);
            row.remove(column, rules);
        }
        self.absent_since = self.absent_since.max(row.since());
        self.cells -= doomed.len() as u64;
        self.bytes -= freed;
        if row.is_empty() {
            self.release(slot);
        }
        Collected::Removed
    }

    /// Restores the stamps of the last flush and of what was collected from a checkpoint.
    pub fn restore_bounds(&mut self, flushed: Stamp, collected: Stamp) {
        self.flushed = self.flushed.max(flushed);
        self.collected = self.collected.max(collected);
    }

    fn is_marked(&self, key: &[u8]) -> bool {
        !self.marks.until_ms.is_empty()
            && self.marks.until_ms.find(hash(key), |(marked, _)| marked == key).is_some()
    }

    fn note_spent(&mut self, change: &RowEffect, live: bool, stamp: Stamp) {
        let deadline = (change.column == Column::Deadline && live)
            .then(|| self.row(&change.key).and_then(|row| row.deadline_at(LogicalTime::MAX, self.rules).ok()))
            .flatten()
            .flatten();
        if let Some(deadline_ms) = deadline {
            let key = Bytes::copy_from_slice(&change.key);
            self.spent.push(Spent { key, column: None, stamp, deadline_ms });
        } else if !live {
            let key = Bytes::copy_from_slice(&change.key);
            self.spent.push(Spent { key, column: Some(change.column.clone()), stamp, deadline_ms: 0 });
        }
    }

    fn flush_slot(&mut self, slot: usize, stamp: Stamp, at: LogicalTime) {
        let Some(row) = self.slots[slot].as_ref() else { return };
        let keep = self.is_marked(row.key());
        let hidden: Vec<Column> = row
            .all_cells()
            .filter(|(_, cell)| cell.state().base.stamp < stamp)
            .map(|(column, _)| column.clone())
            .collect();
        let rules = self.rules;
        let mut noted = Vec::new();
        let row = self.slots[slot].as_mut().expect("looked at above");
        for column in hidden {
            let before = value_bytes(row, &column);
            row.hide_base(&column, at, keep, rules);
            self.bytes -= before - value_bytes(row, &column);
            let cell = row.cell(&column).expect("hiding keeps the cell");
            if cell.state().counter.is_some() || cell.has_history() {
                noted.push((column.clone(), cell.state().newest(), cell.state().is_live(rules)));
            } else {
                self.bytes -= CELL_BYTES + column_bytes(&column);
                self.cells -= 1;
                row.remove(&column, rules);
            }
        }
        let key = row.key().clone();
        if row.is_empty() {
            self.release(slot as u32);
        }
        for (column, stamp, live) in noted {
            let effect = Effect::Delete { seen: Vec::new() };
            self.note_spent(&RowEffect { key: key.clone(), column, effect }, live, stamp);
        }
    }

    fn key_at(&self, slot: u32) -> &[u8] {
        self.slots[slot as usize].as_ref().map_or(&[], |row| row.key())
    }

    fn slot_for(&mut self, key: &[u8]) -> u32 {
        let hashed = hash(key);
        if let Some(&slot) = self.table.find(hashed, |&slot| self.key_at(slot) == key) {
            return slot;
        }
        let row = Row::new(Bytes::copy_from_slice(key), self.absent_since);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(row);
                slot
            }
            None => {
                self.slots.push(Some(row));
                (self.slots.len() - 1) as u32
            }
        };
        self.bytes += key.len() as u64;
        let slots = &self.slots;
        self.table.insert_unique(hashed, slot, |&slot| {
            hash(slots[slot as usize].as_ref().map_or(&[], |row| row.key()))
        });
        slot
    }

    fn release(&mut self, slot: u32) {
        let Some(row) = self.slots[slot as usize].take() else { return };
        self.bytes -= row.key().len() as u64;
        let entry = self.table.find_entry(hash(row.key()), |&candidate| candidate == slot);
        if let Ok(entry) = entry {
            entry.remove();
        }
        self.free.push(slot);
    }
}

/// What became of a candidate for removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collected {
    Removed,
    /// Something newer is there; if it is spent too, it has been noted by itself.
    Changed,
    /// A second round may ask for it; try again.
    Later,
}

fn value_bytes(row: &Row, column: &Column) -> u64 {
    row.cell(column).and_then(|cell| cell.state().base.value.as_ref()).map_or(0, |value| value.len() as u64)
}

fn column_bytes(column: &Column) -> u64 {
    match column {
        Column::Field(name) | Column::Member(name) => name.len() as u64,
        Column::Text | Column::Deadline => 0,
    }
}
