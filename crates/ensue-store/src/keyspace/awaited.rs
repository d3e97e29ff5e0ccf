//! Rows that somebody waits for: which of them have changed, in which order.

use super::Keyspace;
use bytes::Bytes;
use std::collections::BTreeMap;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Awaited {
    /// Each with the place of its first change since it was last asked for.
    keys: BTreeMap<Bytes, Option<u64>>,
    changed: BTreeMap<u64, Bytes>,
    next_place: u64,
}

impl Awaited {
    pub(super) fn note(&mut self, key: &Bytes) {
        if self.keys.is_empty() {
            return;
        }
        if let Some(place @ None) = self.keys.get_mut(key) {
            *place = Some(self.next_place);
            self.changed.insert(self.next_place, key.clone());
            self.next_place += 1;
        }
    }

    /// Every row may have changed.
    pub(super) fn note_all(&mut self) {
        let keys: Vec<Bytes> = self.keys.keys().cloned().collect();
        keys.iter().for_each(|key| self.note(key));
    }
}

impl Keyspace {
    /// Notes from now on when this row changes.
    pub fn await_change(&mut self, key: &Bytes) {
        self.awaited.keys.entry(Bytes::copy_from_slice(key)).or_default();
    }

    /// Nobody waits for this row any more.
    pub fn stop_awaiting(&mut self, key: &Bytes) {
        if let Some(Some(place)) = self.awaited.keys.remove(key) {
            self.awaited.changed.remove(&place);
        }
    }

    /// Whether changes of this row are noted.
    pub fn is_awaited(&self, key: &[u8]) -> bool {
        self.awaited.keys.contains_key(key)
    }

    /// Of how many rows changes are noted.
    pub fn awaited_count(&self) -> usize {
        self.awaited.keys.len()
    }

    /// An awaited row that has changed since it was last asked for; the one whose first change came first.
    pub fn next_changed(&mut self) -> Option<Bytes> {
        let (_, key) = self.awaited.changed.pop_first()?;
        if let Some(place) = self.awaited.keys.get_mut(&key) {
            *place = None;
        }
        Some(key)
    }
}
