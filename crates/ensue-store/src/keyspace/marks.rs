//! Rows that a first round has read: their past states are kept as long as a second round may ask for them.

use super::{Keyspace, hash};
use bytes::Bytes;
use hashbrown::HashTable;
use std::collections::VecDeque;

/// Columns whose past states are forgotten in one go: with those of the row that passes it.
const SWEPT_AT_ONCE: usize = 10_000;

/// Keys whose past states are kept, until when.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    until_ms: HashTable<(Bytes, u64)>,
    queue: VecDeque<(u64, Bytes)>,
}

impl Keyspace {
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

    /// Forgets past states that nobody may ask for any more, of some columns at once. Returns how many keys remain
    /// marked.
    pub fn sweep_marks(&mut self, now_ms: u64) -> usize {
        let mut looked_at = 0;
        while let Some((due, _)) = self.marks.queue.front() {
            if *due > now_ms || looked_at > SWEPT_AT_ONCE {
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
            let Some(slot) = self.slot_of(&key) else { continue };
            if let Some(row) = self.slots[slot as usize].whole_mut() {
                let forgotten = row.forget_history();
                looked_at += 1 + forgotten.looked_at;
                self.bytes -= forgotten.saved;
                self.settle_row(slot);
            }
        }
        self.marks.queue.len()
    }

    pub(super) fn is_marked(&self, key: &[u8]) -> bool {
        !self.marks.until_ms.is_empty()
            && self.marks.until_ms.find(hash(key), |(marked, _)| marked == key).is_some()
    }
}
