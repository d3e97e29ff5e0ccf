//! Rows that somebody waits for: which of them have changed.

use super::Keyspace;
use bytes::Bytes;
use std::collections::BTreeSet;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Awaited {
    keys: BTreeSet<Bytes>,
    changed: BTreeSet<Bytes>,
}

impl Awaited {
    pub(super) fn note(&mut self, key: &Bytes) {
        if !self.keys.is_empty() && self.keys.contains(key) {
            self.changed.insert(key.clone());
        }
    }
}

impl Keyspace {
    /// Notes from now on when this row changes.
    pub fn await_change(&mut self, key: &Bytes) {
        self.awaited.keys.insert(Bytes::copy_from_slice(key));
    }

    /// Nobody waits for this row any more.
    pub fn stop_awaiting(&mut self, key: &Bytes) {
        self.awaited.keys.remove(key);
        self.awaited.changed.remove(key);
    }

    /// Whether changes of this row are noted.
    pub fn is_awaited(&self, key: &[u8]) -> bool {
        self.awaited.keys.contains(key)
    }

    /// Of how many rows changes are noted.
    pub fn awaited_count(&self) -> usize {
        self.awaited.keys.len()
    }

    /// An awaited row that has changed since it was last asked for, in the order of their keys.
    pub fn next_changed(&mut self) -> Option<Bytes> {
        self.awaited.changed.pop_first()
    }
}
