//! The entries of the replicated log that a replica holds in memory, as the consensus engine asks for them.

use crate::codec::Malformed;
use crate::contents::Contents;
use crate::journal::Base;
use crate::operation::Operation;
use bytes::Bytes;
use raft::eraftpb::{ConfState, Entry, EntryType, HardState, Snapshot};
use raft::{Error, GetEntriesContext, RaftState, Storage, StorageError};
use std::collections::VecDeque;

/// What an entry takes beside its data.
const ENTRY_BYTES: usize = 160;

/// The end of the log, and the state before it.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) hard: HardState,
    pub(crate) members: ConfState,
    /// The entry before the first held one.
    before: (u64, u64),
    entries: VecDeque<Entry>,
    bytes: usize,
    /// The last applied entry, and what the directory is after it: for who lacks entries that are not held.
    pub(crate) applied: (u64, u64),
    pub(crate) contents: Contents,
}

impl Held {
    /// After a base, of this index and term.
    pub(crate) fn new(hard: HardState, base: &Base) -> Held {
        let before = (base.index, base.term);
        let (members, contents) = (base.members.clone(), base.contents.clone());
        Held { hard, members, before, entries: VecDeque::new(), bytes: 0, applied: before, contents }
    }

    pub(crate) fn first(&self) -> u64 {
        self.before.0 + 1
    }

    pub(crate) fn last(&self) -> u64 {
        self.before.0 + self.entries.len() as u64
    }

    pub(crate) fn get(&self, index: u64) -> Option<&Entry> {
        let at = index.checked_sub(self.first())?;
        self.entries.get(at as usize)
    }

    /// Entries from this one on.
    pub(crate) fn from(&self, index: u64) -> impl Iterator<Item = &Entry> {
        let skipped = index.saturating_sub(self.first());
        self.entries.iter().skip(skipped as usize)
    }

    pub(crate) fn term_of(&self, index: u64) -> Option<u64> {
        if index == self.before.0 {
            return Some(self.before.1);
        }
        self.get(index).map(|entry| entry.term)
    }

    /// Takes an entry, in place of this one and all after it.
    pub(crate) fn push(&mut self, entry: Entry) {
        self.cut(entry.index - 1);
        self.bytes += bytes_of(&entry);
        self.entries.push_back(entry);
    }

    /// Gives up entries after this one.
    pub(crate) fn cut(&mut self, index: u64) {
        while self.last() > index.max(self.before.0) {
            let gone = self.entries.pop_back();
            self.bytes -= gone.map_or(0, |entry| bytes_of(&entry));
        }
    }

    /// Forgets the oldest of the entries up to this one, as long as more than so many bytes are held.
    pub(crate) fn forget(&mut self, applied: u64, bytes: usize) {
        while self.bytes > bytes && self.first() < applied {
            let Some(gone) = self.entries.pop_front() else { return };
            self.bytes -= bytes_of(&gone);
            self.before = (gone.index, gone.term);
        }
    }

    /// Begins anew after this entry, with another replica's directory.
    pub(crate) fn restart(&mut self, index: u64, term: u64, members: ConfState, contents: Contents) {
        self.entries.clear();
        self.bytes = 0;
        self.before = (index, term);
        self.members = members;
        self.applied = (index, term);
        self.contents = contents;
    }

    /// The directory as it is when all entries up to this one are in its files; those up to `executed` are carried out.
    pub(crate) fn contents_at(&self, index: u64, executed: u64) -> Result<Contents, Malformed> {
        let mut contents = self.contents.clone();
        for entry in self.from(self.applied.0 + 1).take_while(|entry| entry.index <= index) {
            if let Some(operation) = operation_of(entry)? {
                contents.write(&operation, entry.index <= executed);
            }
        }
        Ok(contents)
    }
}

/// The memory that an entry takes: beside its data the entry itself, and what the allocator adds.
fn bytes_of(entry: &Entry) -> usize {
    entry.data.len() + ENTRY_BYTES
}

/// What an entry changes in the directory: nothing if it is the consensus engine's own.
pub(crate) fn operation_of(entry: &Entry) -> Result<Option<Operation>, Malformed> {
    if entry.get_entry_type() != EntryType::EntryNormal || entry.data.is_empty() {
        return Ok(None);
    }
    Operation::decode(entry.data.clone()).map(Some)
}

impl Storage for Held {
    fn initial_state(&self) -> raft::Result<RaftState> {
        Ok(RaftState::new(self.hard.clone(), self.members.clone()))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        if low < self.first() {
            return Err(Error::Store(StorageError::Compacted));
        }
        if high > self.last() + 1 {
            return Err(Error::Store(StorageError::Unavailable));
        }
        let (most, mut size) = (max_size.into().unwrap_or(u64::MAX), 0u64);
        let wanted = self.from(low).take((high - low) as usize);
        // At least one, however long it is.
        let fits = |entry: &&Entry| {
            let is_first = size == 0;
            size += 1 + entry.data.len() as u64;
            is_first || size <= most
        };
        Ok(wanted.take_while(fits).cloned().collect())
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        let missing = if index < self.first() { StorageError::Compacted } else { StorageError::Unavailable };
        self.term_of(index).ok_or(Error::Store(missing))
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.first())
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last())
    }

    fn snapshot(&self, request_index: u64, _to: u64) -> raft::Result<Snapshot> {
        if self.applied.0 < request_index {
            return Err(Error::Store(StorageError::SnapshotTemporarilyUnavailable));
        }
        let mut snapshot = Snapshot::new();
        let mut data = Vec::new();
        self.contents.put(&mut data);
        snapshot.data = Bytes::from(data);
        let metadata = snapshot.mut_metadata();
        (metadata.index, metadata.term) = self.applied;
        metadata.set_conf_state(self.members.clone());
        Ok(snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_without_data_are_bounded_too() {
        let mut held = Held::new(HardState::new(), &Base::default());
        for index in 1..=200_000 {
            let mut entry = Entry::new();
            (entry.index, entry.data) = (index, Bytes::from_static(b"sync"));
            held.push(entry);
            held.forget(index, 8 << 20);
        }
        let count = held.entries.len();
        assert!(count * (size_of::<Entry>() + 4) <= 8 << 20 && count > 10_000, "{count} entries are held");
        held.cut(200_000 - 5);
        assert_eq!((held.last(), held.bytes), (200_000 - 5, (count - 5) * (4 + ENTRY_BYTES)));
    }
}
