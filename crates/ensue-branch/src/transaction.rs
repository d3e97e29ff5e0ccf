//! A transaction that runs: what it reads at, what it has read and what it will write.

use crate::commit::write_bytes;
use crate::id::StateId;
use crate::{Key, Value};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// On one branch.
    Single,
    /// Over several, to join them.
    Merge,
}

#[derive(Clone, Debug)]
pub struct Transaction {
    pub mode: Mode,
    /// What the session committed last.
    pub anchors: Vec<StateId>,
    /// Its read states, highest first: one, or several of a merge.
    pub at: Vec<StateId>,
    pub read: BTreeSet<Key>,
    /// What their names take.
    pub read_bytes: usize,
    /// It looked at all keys.
    pub read_all: bool,
    pub writes: BTreeMap<Key, Value>,
    /// What the writes will take in the commit's note.
    pub bytes: usize,
}

/// What a key that was read takes beside its bytes, rounded up.
const READ_BYTES: usize = 64;

impl Transaction {
    /// What the writes would take with these, too.
    pub fn bytes_with(&self, writes: &BTreeMap<Key, Value>) -> usize {
        let replaced = |key: &Key| self.writes.get(key).map_or(0, |value| write_bytes(key, value));
        writes.iter().fold(self.bytes, |bytes, (key, value)| bytes + write_bytes(key, value) - replaced(key))
    }

    /// What the names of the keys that it has read would take with these, too. Of all keys none is named.
    pub fn read_bytes_with<'a>(&self, keys: impl IntoIterator<Item = &'a Key>) -> usize {
        let more = keys.into_iter().filter(|key| !self.read_all && !self.read.contains(*key));
        more.fold(self.read_bytes, |bytes, key| bytes + READ_BYTES + key.len())
    }

    /// What it takes in memory.
    pub fn open_bytes(&self) -> usize {
        self.bytes + self.read_bytes
    }

    /// Whether a state with these writes wrote something that this one read.
    pub fn has_read(&self, writes: &[Key]) -> bool {
        self.read_all && !writes.is_empty() || writes.iter().any(|key| self.read.contains(key))
    }

    pub fn writes_too(&self, writes: &[Key]) -> bool {
        writes.iter().any(|key| self.writes.contains_key(key))
    }
}
