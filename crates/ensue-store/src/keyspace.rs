//! The rows of one keyspace in one partition: found by key, walked by slot, merged by effect.
//!
//! Rows stand in slots that never move, so that `SCAN` and checkpoints can walk them in slices while they change. It
//! keeps past states of the rows that a read transaction has read and may read again, and nobody else's. If it keeps
//! versions, every write is kept apart until it is settled: until nobody looks at the rows without it any more.

use crate::cell::{self, Base, Keep, Outcome, State, Write};
use crate::columns::detached;
use crate::compact::RowRef;
use crate::counted::{Changed, Counted};
use crate::fold::{self, Fold, Handlers};
use crate::hint::Hint;
use crate::image::{self, Bounds, WriteImage};
use crate::row::{LARGE, Row};
use crate::siblings::Conflicts;
use crate::versions::Version;
use crate::view::View;
use awaited::Awaited;
use bytes::Bytes;
use ended::{EndedRows, Late};
use ensue_types::{
    Carried, Causes, Column, DatacenterId, Decimal, Effect, EpochSum, LogicalTime, Observed, OperationId,
    Over, Previous, RowEffect, Rule, Seen, SeenSum, Source, Stamp, TimeVector, Visibility,
};
use escrows::Escrows;
use filled::Filled;
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hidden::LastFlush;
use marks::Marks;
use slots::Slot;
use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::hash::BuildHasher;
use std::sync::Arc;
use watches::Watches;
use written::WrittenLog;
pub use written::{Happened, Writer, Written};

mod awaited;
mod ended;
mod escrows;
mod expiry;
mod filled;
mod forget;
mod hidden;
mod marks;
mod overhead;
mod shown;
mod slots;
mod spent;
pub mod undo;
mod watches;
mod written;

pub use ended::RowRemoval;
pub use escrows::Sites;
pub use expiry::Expiry;
pub use overhead::Overhead;
pub use shown::ShownRows;
pub use spent::{Collected, Spent};

/// The rows of a keyspace.
#[derive(Clone, Debug, Default)]
pub struct Keyspace {
    table: HashTable<u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    filled: Filled,
    /// The slots whose rows were given a deadline; some may have lost it since.
    dated: Filled,
    /// The slot that was found last: what is asked of a row is mostly asked for of the row that was asked before.
    latest: Hint,
    /// Base values below this stamp were flushed.
    flushed: Stamp,
    /// Flushes that not every reader sees yet, and the highest of the others.
    flushes: Vec<Write>,
    flushed_settled: Stamp,
    last_flush: LastFlush,
    shown: ShownRows,
    /// What every reader must see: what was settled by.
    floor: TimeVector,
    /// The locations with unsettled versions. A row that has any never leaves its slot.
    unsettled: VecDeque<(u32, Column)>,
    versions: usize,
    /// Versions that came since this was last asked.
    versions_come: usize,
    /// The highest stamp of a counter's tombstone that was collected: every addition up to it, to a column that is not
    /// here or has no base, was seen and deleted.
    collected: Stamp,
    /// The highest stamp of anything that was collected: whatever is below it had been applied here.
    forgotten: Stamp,
    /// What is not here has been absent at least since then.
    absent_since: LogicalTime,
    /// In the cursors of walks: another number after each start.
    walk_salt: u16,
    /// Rows that a first round read, with the time until which a second round may come.
    marks: Marks,
    spent: Vec<Spent>,
    expiries: Vec<Expiry>,
    escrows: Escrows,
    bytes: u64,
    /// Of these, what the values carry.
    dependencies: u64,
    /// The slot, and of a large row the column, at which forgetting that goes on.
    forgotten_to: (usize, usize),
    cells: u64,
    keeps_versions: bool,
    /// Rows of more columns are large.
    columns_max: u16,
    awaited: Awaited,
    /// The slots of large rows.
    large: BTreeSet<u32>,
    ended: EndedRows,
    /// No row is compact, to compare it with those that are.
    #[cfg(test)]
    pub(crate) keeps_whole: bool,
    /// Who folds values that stand beside each other; nothing if the last writer's stands alone.
    handlers: Option<Arc<dyn Handlers>>,
    watches: Watches,
    written: WrittenLog,
}

fn hash(key: &[u8]) -> u64 {
    FixedState::default().hash_one(key)
}

impl Keyspace {
    /// An empty keyspace. With `keeps_versions`, what has not been settled can be hidden from readers.
    pub fn new(keeps_versions: bool) -> Keyspace {
        Keyspace { keeps_versions, columns_max: LARGE as u16, ..Keyspace::default() }
    }

    /// The same, in which rows of more columns than this are large, of some fewer lists and streams.
    pub fn with_columns_max(self, columns_max: u16) -> Keyspace {
        Keyspace { columns_max: columns_max.clamp(1, LARGE as u16), ..self }
    }

    /// The same, but values that nothing has replaced stand beside each other. Not for keyspaces that keep versions.
    pub fn with_siblings(self, handlers: Arc<dyn Handlers>) -> Keyspace {
        Keyspace { handlers: Some(handlers), ..self }
    }

    /// Who folds the values of a key, if they stand beside each other.
    pub fn handler(&self, key: &[u8]) -> Option<&dyn Fold> {
        self.handlers.as_ref().map(|handlers| handlers.of(key))
    }

    pub fn keeps_versions(&self) -> bool {
        self.keeps_versions
    }

    /// What a write is to remember of its dependencies here.
    pub fn carried(&self, dependencies: &Causes) -> Option<Arc<Carried>> {
        self.keeps_versions.then(|| Arc::new(Carried::new(dependencies.clone())))
    }

    /// Estimated bytes of all rows.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of what the values, and their versions, depend on.
    pub fn dependency_bytes(&self) -> u64 {
        self.dependencies
    }

    /// Forgets which write made which column of large rows, of those that are settled: nobody need remember them one by
    /// one.
    pub fn summarise(&mut self, is_settled: &dyn Fn(&OperationId) -> bool) {
        for &slot in &self.large {
            if let Some(row) = self.slots[slot as usize].whole_mut() {
                row.summarise(is_settled);
            }
        }
    }

    /// Columns held, tombstones among them.
    pub fn cells(&self) -> u64 {
        self.cells
    }

    /// A key or column that is not here has been absent at least since then.
    pub fn absent_since(&self) -> LogicalTime {
        self.absent_since
    }

    /// What a checkpoint keeps of what is no longer here.
    pub fn bounds(&self) -> Bounds {
        Bounds { flushed: self.flushed(), collected: self.collected, forgotten: self.forgotten }
    }

    /// Base values with stamps below this one were flushed, and no reader sees them any more.
    pub fn flushed(&self) -> Stamp {
        if self.keeps_versions { self.flushed_settled } else { self.flushed }
    }

    /// Flushes that not every reader sees yet.
    pub fn flushes(&self) -> &[Write] {
        &self.flushes
    }

    /// What every reader must see since the last call of `raise_floor`, also before a restart.
    pub fn floor(&self) -> &TimeVector {
        &self.floor
    }

    /// Notes what rows are settled by, before they are: checkpoints keep it, because below it they are no longer whole.
    pub fn raise_floor(&mut self, floor: &TimeVector) {
        self.floor.join(floor);
    }

    /// What a value of a datacenter has seen and replaces that is put now, in this view: the additions that it covers,
    /// and what it replaces of other datacenters. The latter is nothing where values stand beside each other.
    pub fn beneath(&self, key: &[u8], column: &Column, view: View<'_>, by: DatacenterId) -> (Seen, Over) {
        let names = self.handlers.is_none() && Rule::PutsNameWhatTheyOverwrite.holds();
        match self.row(key) {
            Some(RowRef::Compact(row)) if *column == Column::Text => {
                let is_named = names && row.stamp().datacenter != by;
                let over = || {
                    let mut over = Observed::default();
                    over.see(row.stamp());
                    Box::new(over)
                };
                // Its base has seen nothing, and is one.
                (Seen::new(), is_named.then(over))
            }
            Some(RowRef::Packed(row)) => match row.get(column).map(|settled| (settled.only_value(), settled))
            {
                None => (self.seen_by(None), None),
                Some((Some((stamp, _)), _)) if !names || stamp.datacenter == by => (Seen::new(), None),
                Some((_, settled)) => self.beneath_cell(Some(&settled.cell()), view, names.then_some(by)),
            },
            Some(RowRef::Whole(row)) => {
                let ended = row.ended().filter(|_| names).is_some();
                if let Some((stamp, _)) = row.settled(column).and_then(|settled| settled.only_value()) {
                    if !ended && (!names || stamp.datacenter == by) {
                        return (Seen::new(), None);
                    }
                }
                let (seen, over) = self.beneath_cell(row.cell(column).as_deref(), view, names.then_some(by));
                (seen, if ended { Self::over_with_ended(row, column, over, by) } else { over })
            }
            Some(RowRef::Compact(row)) if row.deadline().is_some() => {
                self.beneath_cell(row.to_row().cell(column).as_deref(), view, names.then_some(by))
            }
            _ => (self.seen_by(None), None),
        }
    }

    /// The same of a cell; it names what a datacenter overwrites, if one is given.
    fn beneath_cell(
        &self,
        cell: Option<&cell::Cell>,
        view: View<'_>,
        by: Option<DatacenterId>,
    ) -> (Seen, Over) {
        let over = cell.zip(by).and_then(|(cell, by)| cell.overwritten(view, by));
        (self.seen_in(cell, view), over)
    }

    /// What a value or tombstone put here now would replace.
    pub fn previous(&self, key: &[u8], column: &Column) -> Previous {
        let replaced = |state: &State| {
            let newest = state.base.operation;
            if state.siblings().is_empty() || !Rule::ReplaceEverySibling.holds() {
                return Previous::Operation(newest);
            }
            let others = state.siblings().iter().map(|sibling| sibling.base.operation);
            Previous::Several { operations: others.chain([newest]).collect(), forgotten: Stamp::ZERO }
        };
        let nothing = || Previous::Nothing { forgotten: self.forgotten.max(self.flushed) };
        self.with_state(key, column, replaced).unwrap_or_else(nothing)
    }

    /// What stands where a write from elsewhere is about to be merged, and is not what the write replaced at its
    /// writer: who wrote the one did not know of the other.
    pub fn conflicts(&self, change: &RowEffect, previous: &Previous, write: &Write) -> Vec<Base> {
        // What was here and has been forgotten, everybody has; or it was flushed.
        let unknown = |here: &&Base| {
            if here.operation == write.operation || here.stamp <= self.flushed {
                return false;
            }
            if !Rule::ConflictsByThePrevious.holds() {
                return here.value.is_some();
            }
            !previous.operations().contains(&here.operation) && here.stamp > previous.forgotten()
        };
        let met = |state: &State| {
            let all = state.siblings().iter().map(|sibling| &sibling.base).chain([&state.base]);
            match state.has_replaced(write.operation, write.stamp) {
                true => Vec::new(),
                false => all.filter(unknown).cloned().collect(),
            }
        };
        self.with_state(&change.key, &change.column, met).unwrap_or_default()
    }

    /// Asks a location that holds a value or a tombstone, unless it was flushed.
    fn with_state<T>(&self, key: &[u8], column: &Column, ask: impl FnOnce(&State) -> T) -> Option<T> {
        let row = self.row(key)?.whole();
        let cell = row.cell(column)?;
        let state = cell.state();
        (state.base.stamp > self.flushed).then(|| ask(state))
    }

    /// Versions that are not settled.
    pub fn versions(&self) -> usize {
        self.versions
    }

    /// Locations with versions that are not settled.
    pub fn unsettled_locations(&self) -> usize {
        self.unsettled.len()
    }

    /// How many versions have come since the last call.
    pub fn take_versions_come(&mut self) -> usize {
        std::mem::take(&mut self.versions_come)
    }

    /// After a restart: what is not here is only known to be absent since now, and nothing is known of the past. Rows
    /// and columns have other slots.
    pub fn forget_past(&mut self, at: LogicalTime) {
        self.absent_since = self.absent_since.max(at);
        self.walk_salt = hash(&at.0.to_be_bytes()) as u16;
    }

    /// Merges one effect, of a write that says what it replaced where that is asked for.
    pub fn apply(&mut self, change: &RowEffect, previous: Option<&Previous>, write: &Write) -> Outcome {
        if !self.watches.is_empty() {
            self.watches.on_change(hash(&change.key));
        }
        self.awaited.note(&change.key);
        self.written.note(change, write);
        if change.column == Column::Row {
            return self.end_row(change, write);
        }
        match self.late_for_row(change, write) {
            Some(Late::Nothing) => Outcome::Lost,
            Some(Late::Overwrites(ended)) => {
                self.apply_in_time(&ended, previous, write);
                Outcome::Lost
            }
            None => self.apply_in_time(change, previous, write),
        }
    }

    /// The same of one that no removal of its whole row has ended.
    fn apply_in_time(&mut self, change: &RowEffect, previous: Option<&Previous>, write: &Write) -> Outcome {
        let (ended, hidden) = self.late_put(change, write, self.keeps_versions);
        if let Some(ended) = ended {
            self.apply(&ended, previous, write);
        }
        let change = hidden.as_ref().unwrap_or(change);
        let handlers = self.handlers.clone();
        let history = self.is_marked(&change.key) && Rule::KeepOldVersions.holds();
        let siblings = siblings_of(handlers.as_deref(), &change.key, &change.column, previous);
        let flushed = if Rule::FlushHidesLateWrites.holds() { self.flushed_settled } else { Stamp::ZERO };
        let keep = Keep { history, versions: self.keeps_versions, siblings, flushed };
        if !history && !keep.versions && keep.siblings.is_none() {
            if let Some(outcome) = self.put_compact(change, write) {
                return outcome;
            }
        }
        self.merge(change, write, |row, effect, empty_since| {
            row.apply(&change.column, effect, write, keep, empty_since)
        })
    }

    /// What stands for a value that a flush hides: what it has ended of others all the same, and its tombstone. A
    /// version stays as it was written, and its location hides it: it may be listed as discarded one day.
    fn late_put(
        &self,
        change: &RowEffect,
        write: &Write,
        is_version: bool,
    ) -> (Option<RowEffect>, Option<RowEffect>) {
        let Effect::Put { seen, over, .. } = &change.effect else { return (None, None) };
        if is_version || write.stamp >= self.flushed() || !Rule::FlushHidesLateWrites.holds() {
            return (None, None);
        }
        let ended = over.as_deref().map(|over| Effect::Remove { observed: over.clone(), seen: Seen::new() });
        let instead = |effect| RowEffect { effect, ..change.clone() };
        (ended.map(instead), Some(instead(Effect::Delete { seen: seen.clone() })))
    }

    /// Merges an effect that every reader sees: of the settled state in a checkpoint.
    fn restore(&mut self, change: &RowEffect, previous: Option<&Previous>, write: &Write) -> Outcome {
        if change.column == Column::Row {
            return self.end_row(change, write);
        }
        let (_, hidden) = self.late_put(change, write, false);
        // It may have been kept as it was before the flush.
        let hides = self.last_flush().filter(|flush| hidden.is_some() && flush.at > write.at);
        let later = hides.map(|flush| Write { at: flush.at, ..write.clone() });
        let write = later.as_ref().unwrap_or(write);
        let change = hidden.as_ref().unwrap_or(change);
        let handlers = self.handlers.clone();
        let siblings = siblings_of(handlers.as_deref(), &change.key, &change.column, previous);
        let keep = Keep { siblings, ..Keep::default() };
        if keep.siblings.is_none() {
            if let Some(outcome) = self.put_compact(change, write) {
                return outcome;
            }
        }
        self.merge(change, write, |row, effect, empty_since| {
            row.restore(&change.column, effect, write, keep, empty_since)
        })
    }

    fn merge(
        &mut self,
        change: &RowEffect,
        write: &Write,
        merge: impl FnOnce(&mut Row, &Effect, LogicalTime) -> Changed,
    ) -> Outcome {
        let absent_since = self.absent_since;
        let slot = self.slot_for(&change.key);
        let row = self.slots[slot as usize].whole_mut().expect("slot_for fills the slot");
        let Changed { mut outcome, before, mut after, saved } = merge(row, &change.effect, absent_since);
        self.bytes -= saved;
        if !before.is_there && row.is_large() {
            self.large.insert(slot);
        }
        if !self.flushes.is_empty() && Rule::FlushHidesLateWrites.holds() {
            let late = self.flushes.iter().filter(|flush| write.stamp < flush.stamp);
            for flush in late.map(|flush| Write { at: flush.at.max(write.at), ..flush.clone() }) {
                let keep = Keep { versions: true, ..Keep::default() };
                let flushed = row.flush(&change.column, &flush, keep);
                after = flushed.after;
                if flushed.outcome == Outcome::Won {
                    outcome = Outcome::Won;
                }
            }
        }
        self.recount(slot, &change.column, before, after);
        self.recount_row(slot);
        self.note_change(slot, &change.column, Changed { outcome, before, after, saved });
        self.compact(slot);
        outcome
    }

    /// The number under which a transaction watches a key, which is there or is not. `at` is the present.
    pub fn watch(&mut self, key: &[u8], is_there: bool, at: LogicalTime) -> u64 {
        self.watches.watch(hash(key), is_there, at)
    }

    /// Whether nothing was written to a key since it was watched under this number, and it has not expired. Where that
    /// is no longer known, the answer is no.
    pub fn is_as_watched(&self, key: &[u8], number: u64, is_there: bool) -> bool {
        self.watches.stands(hash(key), number, is_there)
    }

    /// Hides every base value with a stamp below the flush's. Its stamp and what it saw stay until nothing older can
    /// arrive, as for any tombstone: a late write below it must lose against it here, too.
    pub fn flush(&mut self, flush: &Write) {
        self.watches.on_flush();
        self.awaited.note_all();
        self.written.note_everything(flush);
        let known = |known: &Write| known.stamp == flush.stamp;
        if self.flushes.iter().any(known) {
            return;
        }
        // Even one that hides nothing any more: the additions that it deletes by name are not discarded without it.
        match self.keeps_versions {
            true => self.flushes.push(flush.clone()),
            false => self.note_flush(flush),
        }
        if flush.stamp <= self.flushed() {
            return;
        }
        self.flushed = self.flushed.max(flush.stamp);
        self.absent_since = self.absent_since.max(flush.at);
        match self.keeps_versions {
            true => (0..self.slots.len()).for_each(|slot| self.flush_slot(slot as u32, flush)),
            false => self.hide_rows(flush),
        }
    }

    /// Notes what a write carries, which is known only after it was evaluated.
    pub fn carry(&mut self, effects: &[RowEffect], stamp: Stamp, dependencies: &Arc<Carried>) {
        for change in effects {
            let Some(slot) = self.slot_of(&change.key) else { continue };
            let row = self.whole(slot);
            if let Some((before, after)) = row.carry(&change.column, stamp, dependencies) {
                self.recount(slot, &change.column, before, after);
            }
        }
    }

    /// Folds what is settled at not more than `budget` locations, the longest unsettled first; returns how many
    /// versions are left. From now on nobody may look at the rows who does not see all that is settled.
    pub fn settle(&mut self, settled: &dyn Visibility, budget: usize) -> usize {
        for flush in std::mem::take(&mut self.flushes) {
            if settled.is_visible(&flush.source(), flush.at) {
                self.flushed_settled = self.flushed_settled.max(flush.stamp);
                self.note_flush(&flush);
            } else {
                self.flushes.push(flush);
            }
        }
        for _ in 0..budget.min(self.unsettled.len()) {
            let Some((slot, column)) = self.unsettled.pop_front() else { break };
            let row = self.slots[slot as usize].whole_mut().expect("a row with versions stays");
            let before = row.counted(&column).unwrap_or_default();
            row.settle(&column, settled);
            let after = row.counted(&column).unwrap_or_default();
            self.count(before, after);
            match after.unsettled {
                0 => self.settle_row(slot),
                _ => self.unsettled.push_back((slot, column)),
            }
        }
        self.versions
    }

    /// Panics if what is counted differs from what is there. It walks every row.
    pub fn check_invariants(&self) {
        let cells = || self.whole_rows().flat_map(|row| row.all_cells());
        let counted = || self.whole_rows().flat_map(|row| row.counted_all());
        let unsettled: usize = counted().map(|counted| counted.unsettled).sum();
        assert_eq!(self.versions(), unsettled, "versions are counted wrong");
        assert_eq!(
            self.whole_rows().map(Row::unsettled).sum::<usize>(),
            unsettled,
            "a row counts its versions wrong"
        );
        let waiting = cells().filter(|(_, cell)| cell.versions().is_some()).count();
        assert_eq!(self.unsettled.len(), waiting, "a location with versions is not noted, or one without");
        let ended = self.ended.columns().map(|columns| columns.bytes(None)).sum::<u64>();
        let bytes: u64 = counted().map(|counted| counted.bytes).sum::<u64>() + ended;
        let keys: u64 = self.whole_rows().map(|row| slots::row_bytes(row.key())).sum();
        assert_eq!(self.bytes(), bytes + keys + self.compact_bytes(), "bytes are counted wrong");
        let hidden = self.slots.iter().filter(|slot| matches!(slot, Slot::Hidden(_))).count();
        assert_eq!(self.last_flush.rows, hidden, "hidden rows are counted wrong");
        assert_eq!(self.shown, self.count_shown_rows(), "what rows show is counted wrong");
        assert_eq!(self.rows().count() + hidden, self.rows_count(), "a row is not found, or is found twice");
        self.whole_rows().filter_map(Row::large).for_each(|large| large.check_invariants());
        self.watches.check_invariants();
        self.check_escrows();
    }

    /// Takes out the unsettled writes that are as if they had never been, and says what they had done where. A flush
    /// stays: what it hid may be forgotten.
    pub fn discard(&mut self, discarded: &dyn Fn(&Source) -> bool) -> Vec<(Bytes, Column, Version)> {
        self.watches.clear();
        let flushes: Vec<Stamp> = self.flushes.iter().map(|flush| flush.stamp).collect();
        let discarded = |source: &Source| discarded(source) && !flushes.contains(&source.stamp);
        let mut all = Vec::new();
        for _ in 0..self.unsettled.len() {
            let Some((slot, column)) = self.unsettled.pop_front() else { break };
            let row = self.slots[slot as usize].whole_mut().expect("a row with versions stays");
            let before = row.counted(&column).unwrap_or_default();
            let gone = row.discard(&column, &discarded);
            let after = row.counted(&column).unwrap_or_default();
            self.count(before, after);
            self.recount_row(slot);
            if after.unsettled > 0 {
                self.unsettled.push_back((slot, column.clone()));
            }
            if !gone.is_empty() {
                self.note_escrow(slot, &column);
                let key = Bytes::copy_from_slice(self.key_at(slot));
                self.note_discarded(slot, &column);
                all.extend(gone.into_iter().map(|version| (key.clone(), column.clone(), version)));
            }
        }
        all
    }

    /// What is left of a column may be nothing that ever was, or a tombstone.
    fn note_discarded(&mut self, slot: u32, column: &Column) {
        let Some(row) = self.slots[slot as usize].whole_mut() else { return };
        let Some(cell) = row.cell(column) else { return };
        if cell.state().newest() > Stamp::ZERO || cell.unsettled() > 0 {
            self.note_deadline(slot, column);
            return self.note_spent(slot, column);
        }
        let left = Counted::of(column, &cell);
        self.bytes -= left.bytes;
        self.dependencies -= left.dependencies;
        self.cells -= 1;
        self.shown.column(left, Counted::default());
        row.remove(column);
        if row.is_empty() {
            self.release(slot);
        }
    }

    /// Keeps the keyspace's counts after a column has changed.
    fn recount(&mut self, slot: u32, column: &Column, before: Counted, after: Counted) {
        if !before.is_there {
            self.cells += 1;
        }
        self.count(before, after);
        if before.unsettled == 0 && after.unsettled > 0 {
            self.unsettled.push_back((slot, detached(column)));
        }
    }

    fn count(&mut self, before: Counted, after: Counted) {
        self.bytes = self.bytes + after.bytes - before.bytes;
        self.dependencies = self.dependencies + after.dependencies - before.dependencies;
        self.versions = self.versions + after.unsettled - before.unsettled;
        self.versions_come += after.unsettled.saturating_sub(before.unsettled);
        self.shown.column(before, after);
    }

    /// The counters that a flush must delete by name, because their additions do not go by stamp.
    pub fn counters(&self) -> Vec<(Bytes, Column, Seen)> {
        let mut counters = Vec::new();
        for row in self.whole_rows() {
            for (column, cell) in row.cells().filter(|(_, cell)| cell.state().counter.is_some()) {
                counters.push((row.key().clone(), column.into_owned(), self.seen_by(Some(cell.state()))));
            }
        }
        for row in self.packed_rows() {
            let key = Bytes::copy_from_slice(row.key());
            for (column, settled) in row.columns().filter(|(_, settled)| settled.is_counter()) {
                counters.push((key.clone(), column, self.seen_by(Some(settled.cell().state()))));
            }
        }
        counters
    }

    /// The additions that a base written now, in this view, must cover.
    pub fn seen(&self, key: &[u8], column: &Column, view: View<'_>) -> Seen {
        match self.row(key) {
            // Its base has seen nothing, and is one.
            Some(RowRef::Compact(_)) if *column == Column::Text => Seen::new(),
            Some(RowRef::Whole(row)) => self.seen_in(row.cell(column).as_deref(), view),
            Some(RowRef::Packed(row)) => {
                self.seen_in(row.get(column).map(|settled| settled.cell()).as_ref(), view)
            }
            Some(RowRef::Compact(row)) if row.deadline().is_some() => {
                self.seen_in(row.to_row().cell(column).as_deref(), view)
            }
            _ => self.seen_by(None),
        }
    }

    fn seen_in(&self, cell: Option<&cell::Cell>, view: View<'_>) -> Seen {
        let Some(cell) = cell else { return self.seen_by(None) };
        if cell.versions().is_none() {
            return self.seen_by(Some(cell.state()));
        }
        if !cell.state().knows_additions() && self.collected == Stamp::ZERO {
            // No view shows an addition.
            return Seen::new();
        }
        let mut seen = cell.seen(view);
        let has_base = cell.at(view).is_some_and(|shown| !shown.state.has_no_base());
        if !has_base {
            // Not those that are here and hidden: they have not been deleted.
            let hidden = cell.versions().and_then(|versions| versions.lowest_hidden_addition(view));
            let forgotten = hidden.map_or(self.collected, |hidden| self.collected.min(hidden.before()));
            self.cover_forgotten(&mut seen, forgotten);
        }
        seen
    }

    fn seen_by(&self, state: Option<&State>) -> Seen {
        let mut seen = state.map(State::seen).unwrap_or_default();
        if state.is_none_or(State::has_no_base) {
            self.cover_forgotten(&mut seen, self.collected);
        }
        seen
    }

    fn cover_forgotten(&self, seen: &mut Seen, forgotten: Stamp) {
        if forgotten != Stamp::ZERO && Rule::CoverForgottenAdditions.holds() {
            let epoch_sum = EpochSum { epoch: Stamp::ZERO, sum: Decimal::ZERO };
            cell::see(seen, SeenSum { datacenter: DatacenterId::EVERY, epoch_sum, stamp: forgotten });
        }
    }

    /// Takes back from a checkpoint what is known of what is no longer here.
    pub fn restore_bounds(&mut self, bounds: Bounds) {
        self.flushed = self.flushed.max(bounds.flushed);
        self.flushed_settled = self.flushed_settled.max(bounds.flushed);
        self.collected = self.collected.max(bounds.collected);
        self.forgotten = self.forgotten.max(bounds.forgotten);
    }

    /// Takes back a write that a checkpoint kept, as an item of this kind.
    pub fn restore_image(&mut self, kind: u8, image: WriteImage) {
        let WriteImage { since: at, stamp, operation, dependencies, change, previous, .. } = image;
        let previous = previous.as_ref();
        let carried = (kind != image::BARE_EFFECT).then(|| self.carried(&dependencies)).flatten();
        let write = Write { stamp, at, operation, dependencies: carried };
        match change {
            None => self.flush(&write),
            Some(change) if kind == image::VERSION => drop(self.apply(&change, previous, &write)),
            Some(change) => drop(self.restore(&change, previous, &write)),
        }
    }

    /// What a removal ends that is made now, in this view; nothing where a removal is a value that the last writer's
    /// replaces.
    pub fn observed(&self, key: &[u8], column: &Column, view: View<'_>) -> Option<Observed> {
        if self.handlers.is_some() {
            return None;
        }
        let row = match self.row(key) {
            Some(RowRef::Compact(row)) if *column == Column::Text => {
                let mut observed = Observed::all_through(self.forgotten);
                observed.see(row.stamp());
                return Some(observed);
            }
            Some(RowRef::Packed(row)) => {
                let cell = row.get(column).map(|settled| settled.cell());
                return Some(cell.map_or_else(Observed::default, |cell| cell.observed(view, self.forgotten)));
            }
            Some(RowRef::Whole(row)) => Cow::Borrowed(row),
            Some(RowRef::Compact(row)) if row.deadline().is_some() => Cow::Owned(row.to_row()),
            _ => return Some(Observed::default()),
        };
        let cell = row.cell(column);
        let mut observed = cell.map_or_else(Observed::default, |cell| cell.observed(view, self.forgotten));
        if let Some((_, ended)) = row.ended_by().filter(|_| *column != Column::Deadline) {
            observed.join(ended);
        }
        Some(observed)
    }

    fn flush_slot(&mut self, slot: u32, flush: &Write) {
        match &self.slots[slot as usize] {
            Slot::Free | Slot::Hidden(_) => return,
            Slot::Compact(row) if row.stamp() >= flush.stamp => return,
            _ => {}
        }
        let history = self.is_marked(self.key_at(slot));
        self.flush_row(slot, flush, history);
    }

    /// Flushes a row column by column. `history`: its past states are kept.
    fn flush_row(&mut self, slot: u32, flush: &Write, history: bool) {
        let key = self.whole(slot).key().clone();
        let row = self.slots[slot as usize].whole().expect("made whole above");
        let handlers = self.handlers.clone();
        let oldest = |state: &State| {
            let beside = state.siblings().iter().chain(state.undominated());
            beside.map(|one| one.base.stamp).fold(state.base.stamp, Stamp::min)
        };
        let covered = |cell: &cell::Cell| cell.versions().is_some() || oldest(cell.state()) < flush.stamp;
        let hidden: Vec<Column> = row
            .all_cells()
            .filter(|(_, cell)| covered(cell))
            .map(|(column, _)| column.into_owned())
            .collect();
        for column in hidden {
            let row = self.slots[slot as usize].whole_mut().expect("made whole above");
            let siblings = siblings_of(handlers.as_deref(), &key, &column, None);
            let keep = Keep { history, versions: self.keeps_versions, siblings, ..Keep::default() };
            let changed = row.flush(&column, flush, keep);
            self.recount(slot, &column, changed.before, changed.after);
            self.note_change(slot, &column, changed);
        }
        self.recount_row(slot);
        self.settle_row(slot);
    }
}

/// How a location treats writes that did not know of each other. A deadline has one value: the last writer's.
fn siblings_of<'a>(
    handlers: Option<&'a dyn Handlers>,
    key: &[u8],
    column: &Column,
    previous: Option<&'a Previous>,
) -> Option<Conflicts<'a>> {
    let fold = handlers.filter(|_| !column.is_deadline() && !matches!(column, Column::Escrow(_)))?.of(key);
    let fold = if matches!(column, Column::Scored(_)) { fold::of_scores(fold) } else { fold };
    Some(Conflicts { fold, previous })
}

#[cfg(test)]
mod tests;
