//! Encoded entries one behind the other in memory: what is written at about the same time is let go of at about the
//! same time, and need not be allocated one by one. It keeps nothing itself but room for the next ones.

use super::entry::{encode_entry, encode_entry_into, encoded_entry_bytes};
use crate::entry::Entry;
use bytes::{Bytes, BytesMut};

/// Entries stand together in so many bytes, which stay for as long as one of them does.
const CHUNK_BYTES: usize = 8 << 10;
/// Longer ones stand by themselves.
const TOGETHER_BYTES_MAX: usize = 1 << 10;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct EntryArena {
    encoded: Vec<u8>,
    chunk: BytesMut,
}

impl EntryArena {
    /// The same bytes as `encode_entry` makes.
    pub fn encode(&mut self, entry: &Entry) -> Bytes {
        if encoded_entry_bytes(entry) > TOGETHER_BYTES_MAX {
            return encode_entry(entry);
        }
        self.encoded.clear();
        encode_entry_into(&mut self.encoded, entry);
        if self.chunk.capacity() < self.encoded.len() {
            self.chunk = BytesMut::with_capacity(CHUNK_BYTES);
        }
        self.chunk.extend_from_slice(&self.encoded);
        self.chunk.split().freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Change;
    use ensue_types::{Causes, KeyspaceId, LogicalTime, Position, Stamp};

    #[test]
    fn an_entry_has_the_same_bytes_wherever_it_stands() {
        let mut arena = EntryArena::default();
        let lengths = [0, 900, 1_100, 3, 980, 200_000];
        let entries = (0..100).map(|number: usize| Entry {
            position: Position(number as u64),
            stamp: Stamp { time: LogicalTime(7), ..Stamp::ZERO },
            dependencies: Causes::Nothing,
            change: Change::Branch {
                keyspace: KeyspaceId(3),
                note: vec![number as u8; lengths[number % lengths.len()]].into(),
            },
            previous: Vec::new(),
        });
        let entries: Vec<Entry> = entries.collect();
        let encoded: Vec<Bytes> = entries.iter().map(|entry| arena.encode(entry)).collect();
        assert!(entries.iter().zip(&encoded).all(|(entry, bytes)| encode_entry(entry) == *bytes));
    }
}
