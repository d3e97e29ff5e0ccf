//! What flushes hide: rows that show nothing any more, and of which what they were is kept as it is until nothing older
//! can arrive. A late write below the flush has to lose or win against it as it would have without the flush.
//!
//! A flush costs no allocation a row, and what it hides takes no more memory than before; it goes in parts. Whole rows,
//! counters and rows that a second round may ask for are changed column by column instead, and so is everything where
//! readers may not see the flush, or where values stand beside each other.

use super::slots::{Hidden, Slot};
use super::{Keyspace, hash};
use crate::cell::Write;
use crate::view::View;
use ensue_types::{Source, Stamp};

/// The last flush that every reader sees, until nothing older can arrive; and what it hides.
#[derive(Clone, Debug, Default)]
pub(super) struct LastFlush {
    /// The one with the highest stamp.
    write: Option<Write>,
    /// Whether nobody was told of it yet who finds out when nothing older can arrive.
    is_news: bool,
    /// The slot at which giving hidden rows back goes on.
    swept_to: usize,
    /// Rows that are hidden.
    pub(super) rows: usize,
}

impl Keyspace {
    /// Why a row may be missing for a reader, or a column, if not every datacenter knows of it: who finds nothing
    /// depends on it.
    pub fn flush_seen(&self, view: View<'_>) -> Option<Source> {
        let known = self.flushes.iter().chain(self.last_flush());
        let seen = known.filter(|flush| view.is_visible(&flush.source(), flush.at));
        // Of all flushes the one with the highest stamp hides what each of the others does.
        seen.max_by_key(|flush| flush.stamp).map(Write::source)
    }

    /// The last flush that every reader sees, until every datacenter knows of it.
    pub fn last_flush(&self) -> Option<&Write> {
        self.last_flush.write.as_ref()
    }

    /// The stamp of a flush that has come since the last call. Once nothing older can arrive,
    /// [`Keyspace::sweep_hidden`] is to be called with it.
    pub fn take_flushed(&mut self) -> Option<Stamp> {
        let is_news = std::mem::take(&mut self.last_flush.is_news);
        self.last_flush.write.as_ref().filter(|_| is_news).map(|write| write.stamp)
    }

    /// Notes a flush that all readers see.
    pub(super) fn note_flush(&mut self, flush: &Write) {
        if self.last_flush.write.as_ref().is_none_or(|known| known.stamp < flush.stamp) {
            (self.last_flush.write, self.last_flush.is_news) = (Some(flush.clone()), true);
        }
    }

    /// Hides all rows that can be, and changes the others, column by column.
    pub(super) fn hide_rows(&mut self, flush: &Write) {
        for slot in 0..self.slots.len() {
            if !self.hide(slot, flush.stamp) {
                self.flush_slot(slot as u32, flush);
            }
        }
    }

    fn hide(&mut self, slot: usize, flush: Stamp) -> bool {
        let is_below = match &self.slots[slot] {
            Slot::Compact(row) => row.stamp() < flush,
            Slot::Packed(row) => row.settled().all(|settled| settled.is_value_below(flush)),
            Slot::Free | Slot::Hidden(_) => return true,
            Slot::Whole(_) => false,
        };
        if !is_below || self.handlers.is_some() || self.is_marked(self.slots[slot].key()) {
            return false;
        }
        let hidden = match self.put_slot(slot, Slot::Free) {
            Slot::Compact(row) => Hidden::Text(row),
            Slot::Packed(row) => Hidden::Columns(row),
            slot => unreachable!("{slot:?} is not hidden"),
        };
        self.put_slot(slot, Slot::Hidden(hidden));
        self.last_flush.rows += 1;
        true
    }

    /// A row is about to be written to. What it shows does not change.
    pub fn expect_write(&mut self, key: &[u8]) {
        if self.last_flush.rows == 0 {
            return;
        }
        if let Some(slot) = self.slot_of(key) {
            self.unhide(slot);
        }
    }

    /// The same of all rows.
    #[cfg(test)]
    pub(crate) fn expect_all_writes(&mut self) {
        (0..self.slots.len()).for_each(|slot| self.unhide(slot as u32));
    }

    /// A hidden row is written to: it becomes what it would be, had the flush changed it column by column.
    pub(super) fn unhide(&mut self, slot: u32) {
        let there = slot as usize;
        if !matches!(self.slots[there], Slot::Hidden(_)) {
            return;
        }
        if let Slot::Hidden(hidden) = self.put_slot(there, Slot::Free) {
            let row = match hidden {
                Hidden::Text(row) => Slot::Compact(row),
                Hidden::Columns(row) => Slot::Packed(row),
            };
            self.put_slot(there, row);
        }
        self.last_flush.rows -= 1;
        let flush = self.last_flush.write.clone().expect("what hides a row is known while it does");
        // Its past was not asked for when it was hidden.
        self.flush_row(slot, &flush, false);
    }

    /// Nothing older than a flush can arrive: gives back what it hides of the next `budget` slots, except what the
    /// caller is busy with. Answers whether there may be more.
    pub fn sweep_hidden(&mut self, flush: Stamp, budget: usize, is_busy: &dyn Fn(&[u8]) -> bool) -> bool {
        let end = self.slots.len().min(self.last_flush.swept_to.saturating_add(budget));
        for slot in self.last_flush.swept_to..end {
            let Slot::Hidden(hidden) = &self.slots[slot] else { continue };
            let (newest, since) = (hidden.newest(), hidden.since());
            if newest >= flush || is_busy(hidden.key()) {
                continue;
            }
            self.forgotten = self.forgotten.max(newest);
            self.absent_since = self.absent_since.max(since);
            self.bytes = self.bytes + super::slots::row_bytes(hidden.key()) - hidden.bytes();
            self.cells -= hidden.cells_count();
            self.last_flush.rows -= 1;
            self.release(slot as u32);
        }
        self.last_flush.swept_to = end;
        if end < self.slots.len() {
            return true;
        }
        self.last_flush.swept_to = 0;
        let is_last = self.last_flush.write.as_ref().is_some_and(|write| write.stamp <= flush);
        if is_last && self.last_flush.rows > 0 {
            // The caller was busy with some.
            return true;
        }
        if is_last {
            self.last_flush.write = None;
        }
        if self.table.is_empty() {
            self.give_back_slots();
        }
        false
    }

    /// Of a keyspace without rows.
    fn give_back_slots(&mut self) {
        (self.slots, self.free, self.filled) = (Vec::new(), Vec::new(), Default::default());
        self.dated = Default::default();
        self.table.shrink_to(0, |_| hash(b""));
        self.latest.set(0);
        self.forgotten_to = (0, 0);
    }
}
