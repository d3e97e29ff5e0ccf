//! Streams: the ids of entries, and the parts of a stream by their names.
//!
//! A stream is a row whose columns are its parts. Each part has a name, and the order of names puts the entries of each
//! datacenter together, in the order of their ids: a log a datacenter, which readers merge.
//!
//! ```text
//! name      1 | datacenter u8                                   head: its writer made the stream, and what it knows of it
//!           1 | 128 + datacenter u8                             removals: what its writer has removed of the stream
//!           2 | group | 1 | datacenter u8                       cursor: how far a group is, as its writer knows
//!           2 | group | 2 | consumer                            consumer of a group
//!           2 | group | 3 | id                                  pending entry of a group
//!           3 | datacenter u8 | id                              entry, by the datacenter that added it
//! group     length u32, bytes
//! id        ms u64 | sequence u64                               all big endian
//! ```
//!
//! Entries and heads make a stream be there. The other parts are beneath it: where they alone are left, because another
//! datacenter has deleted the stream without having seen them, there is none.

use crate::DatacenterId;
use bytes::{Buf, BufMut, Bytes};
use std::fmt;
use std::ops::Range;

/// The id of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    pub ms: u64,
    pub sequence: u64,
}

impl StreamId {
    pub const MIN: StreamId = StreamId { ms: 0, sequence: 0 };
    pub const MAX: StreamId = StreamId { ms: u64::MAX, sequence: u64::MAX };

    pub fn next(self) -> Option<StreamId> {
        match self.sequence.checked_add(1) {
            Some(sequence) => Some(StreamId { sequence, ..self }),
            None => Some(StreamId { ms: self.ms.checked_add(1)?, sequence: 0 }),
        }
    }

    pub fn previous(self) -> Option<StreamId> {
        match self.sequence.checked_sub(1) {
            Some(sequence) => Some(StreamId { sequence, ..self }),
            None => Some(StreamId { ms: self.ms.checked_sub(1)?, sequence: u64::MAX }),
        }
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.sequence)
    }
}

/// A part of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamPart {
    Head(DatacenterId),
    Removals(DatacenterId),
    Cursor(Bytes, DatacenterId),
    Consumer(Bytes, Bytes),
    Pending(Bytes, StreamId),
    Entry(DatacenterId, StreamId),
}

/// Parts whose names stand together.
#[derive(Clone, Copy, Debug)]
pub enum Section<'g> {
    /// Heads and removals.
    Heads,
    /// Heads alone.
    Makers,
    /// All parts of all groups.
    Groups,
    /// All parts of a group.
    Group(&'g [u8]),
    Cursors(&'g [u8]),
    Consumers(&'g [u8]),
    Pending(&'g [u8]),
    Entries,
    EntriesOf(DatacenterId),
}

const HEAD: u8 = 1;
/// Beside the datacenter in the name of its removals.
const REMOVALS: u8 = 128;
const GROUP: u8 = 2;
const ENTRY: u8 = 3;

const CURSOR: u8 = 1;
const CONSUMER: u8 = 2;
const PENDING: u8 = 3;

impl StreamPart {
    pub fn name(&self) -> Bytes {
        let mut name = Vec::with_capacity(32);
        match self {
            StreamPart::Head(by) => name.extend_from_slice(&[HEAD, by.0]),
            StreamPart::Removals(by) => name.extend_from_slice(&[HEAD, REMOVALS | by.0]),
            StreamPart::Cursor(group, by) => {
                put_group(&mut name, group);
                name.extend_from_slice(&[CURSOR, by.0]);
            }
            StreamPart::Consumer(group, consumer) => {
                put_group(&mut name, group);
                name.put_u8(CONSUMER);
                name.extend_from_slice(consumer);
            }
            StreamPart::Pending(group, id) => {
                put_group(&mut name, group);
                name.put_u8(PENDING);
                put_id(&mut name, *id);
            }
            StreamPart::Entry(source, id) => {
                name.extend_from_slice(&[ENTRY, source.0]);
                put_id(&mut name, *id);
            }
        }
        Bytes::from(name)
    }

    /// The part of a name; nothing if it is none.
    pub fn of(name: &Bytes) -> Option<StreamPart> {
        let mut rest = name.clone();
        match rest.try_get_u8().ok()? {
            HEAD => Some(match rest.try_get_u8().ok()? {
                by if by & REMOVALS == 0 => StreamPart::Head(DatacenterId(by)),
                by => StreamPart::Removals(DatacenterId(by - REMOVALS)),
            }),
            ENTRY => Some(StreamPart::Entry(DatacenterId(rest.try_get_u8().ok()?), take_id(&mut rest)?)),
            GROUP => {
                let length = rest.try_get_u32().ok()? as usize;
                let group = (rest.len() >= length).then(|| rest.split_to(length))?;
                match rest.try_get_u8().ok()? {
                    CURSOR => Some(StreamPart::Cursor(group, DatacenterId(rest.try_get_u8().ok()?))),
                    CONSUMER => Some(StreamPart::Consumer(group, rest)),
                    PENDING => Some(StreamPart::Pending(group, take_id(&mut rest)?)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Whether the part of a name is nothing without others.
    pub fn is_beneath(name: &[u8]) -> bool {
        match name {
            [GROUP, ..] => true,
            [HEAD, by, ..] => by & REMOVALS != 0,
            _ => false,
        }
    }
}

impl Section<'_> {
    /// From the first name to the one behind the last.
    pub fn names(self) -> Range<Vec<u8>> {
        let mut start = Vec::with_capacity(32);
        match self {
            Section::Heads => start.put_u8(HEAD),
            Section::Makers => return vec![HEAD]..vec![HEAD, REMOVALS],
            Section::Groups => start.put_u8(GROUP),
            Section::Entries => start.put_u8(ENTRY),
            Section::EntriesOf(source) => start.extend_from_slice(&[ENTRY, source.0]),
            Section::Group(group) => {
                put_group(&mut start, group);
                let end = [&start[..], &[PENDING + 1]].concat();
                return start..end;
            }
            Section::Cursors(group) => {
                put_group(&mut start, group);
                start.put_u8(CURSOR);
            }
            Section::Consumers(group) => {
                put_group(&mut start, group);
                start.put_u8(CONSUMER);
            }
            Section::Pending(group) => {
                put_group(&mut start, group);
                start.put_u8(PENDING);
            }
        }
        let mut end = start.clone();
        // Each of these ends with a number that is far below the highest of a byte.
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        start..end
    }

    /// The same, of parts with ids from one to another alone.
    pub fn names_between(self, from: StreamId, to: StreamId) -> Range<Vec<u8>> {
        let Range { mut start, end: behind } = self.names();
        let mut end = start.clone();
        put_id(&mut start, from);
        match to.next() {
            Some(next) => put_id(&mut end, next),
            None => end = behind,
        }
        start..end
    }
}

fn put_group(name: &mut Vec<u8>, group: &[u8]) {
    name.put_u8(GROUP);
    name.put_u32(u32::try_from(group.len()).expect("limits.rs bounds every argument far below 4 GiB"));
    name.extend_from_slice(group);
}

fn put_id(name: &mut Vec<u8>, id: StreamId) {
    name.put_u64(id.ms);
    name.put_u64(id.sequence);
}

fn take_id(rest: &mut Bytes) -> Option<StreamId> {
    let (ms, sequence) = (rest.try_get_u64().ok()?, rest.try_get_u64().ok()?);
    rest.is_empty().then_some(StreamId { ms, sequence })
}

#[cfg(test)]
mod tests;
