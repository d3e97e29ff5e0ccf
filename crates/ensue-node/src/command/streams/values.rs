//! What the parts of a stream hold, as bytes.
//!
//! ```text
//! head      last id | highest removed id | entries of the past i64
//! cursor    last id | base id | entries read i64, -1 unknown | (datacenter u8 | id)*
//! consumer  seen ms u64 | active ms u64, 0 never
//! pending   delivered ms u64 | deliveries u64 | consumer
//! entry     (length u32 | bytes)*, fields and values in turns
//! id        ms u64 | sequence u64, all big endian
//! ```
//!
//! What cannot be read is as if it held nothing.

use bytes::{Buf, BufMut, Bytes};
use ensue_types::{DatacenterId, StreamId};
use std::collections::BTreeMap;

/// What one datacenter knows of a stream beside its entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub last: StreamId,
    /// The highest id that `XDEL` has removed.
    pub removed: StreamId,
    /// How many entries were added that are not there: a sum over all datacenters.
    pub past: i64,
}

/// How far a group is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    /// The last id that was delivered, of any datacenter.
    pub last: StreamId,
    /// Where the group begins in the logs of which nothing was delivered.
    pub base: StreamId,
    pub entries_read: Option<u64>,
    /// The last id that was delivered of each datacenter's log.
    pub positions: BTreeMap<DatacenterId, StreamId>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Consumer {
    pub seen_ms: u64,
    pub active_ms: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pending {
    pub delivered_ms: u64,
    pub deliveries: u64,
    pub consumer: Bytes,
}

impl Head {
    pub fn of(mut from: &[u8]) -> Head {
        let read = |from: &mut &[u8]| {
            Some(Head { last: take_id(from)?, removed: take_id(from)?, past: from.try_get_i64().ok()? })
        };
        read(&mut from).unwrap_or_default()
    }

    pub fn bytes(self) -> Bytes {
        let mut out = Vec::with_capacity(40);
        put_id(&mut out, self.last);
        put_id(&mut out, self.removed);
        out.put_i64(self.past);
        Bytes::from(out)
    }

    /// What two datacenters know together.
    pub fn join(self, other: Head) -> Head {
        Head {
            last: self.last.max(other.last),
            removed: self.removed.max(other.removed),
            past: self.past.saturating_add(other.past),
        }
    }
}

impl Cursor {
    pub fn of(mut from: &[u8]) -> Cursor {
        let read = |from: &mut &[u8]| {
            let mut cursor = Cursor {
                last: take_id(from)?,
                base: take_id(from)?,
                entries_read: u64::try_from(from.try_get_i64().ok()?).ok(),
                positions: BTreeMap::new(),
            };
            while let Ok(source) = from.try_get_u8() {
                cursor.positions.insert(DatacenterId(source), take_id(from)?);
            }
            Some(cursor)
        };
        read(&mut from).unwrap_or_default()
    }

    pub fn bytes(&self) -> Bytes {
        let mut out = Vec::with_capacity(64);
        put_id(&mut out, self.last);
        put_id(&mut out, self.base);
        out.put_i64(self.entries_read.and_then(|count| i64::try_from(count).ok()).unwrap_or(-1));
        for (source, id) in &self.positions {
            out.put_u8(source.0);
            put_id(&mut out, *id);
        }
        Bytes::from(out)
    }

    /// What either has passed, both have.
    pub fn join(mut self, other: Cursor) -> Cursor {
        if other.last > self.last || other.last == self.last && other.entries_read > self.entries_read {
            self.entries_read = other.entries_read;
        }
        self.last = self.last.max(other.last);
        self.base = self.base.max(other.base);
        for (source, id) in other.positions {
            let known = self.positions.entry(source).or_default();
            *known = (*known).max(id);
        }
        self
    }

    /// Behind which id of a datacenter's log the group reads.
    pub fn position(&self, source: DatacenterId) -> StreamId {
        self.positions.get(&source).copied().unwrap_or_default().max(self.base)
    }
}

impl Consumer {
    pub fn of(mut from: &[u8]) -> Consumer {
        let seen_ms = from.try_get_u64().unwrap_or_default();
        Consumer { seen_ms, active_ms: from.try_get_u64().unwrap_or_default() }
    }

    pub fn bytes(self) -> Bytes {
        Bytes::from([self.seen_ms.to_be_bytes(), self.active_ms.to_be_bytes()].concat())
    }
}

impl Pending {
    pub fn of(value: &Bytes) -> Pending {
        let mut from = value.clone();
        let delivered_ms = from.try_get_u64().unwrap_or_default();
        Pending { delivered_ms, deliveries: from.try_get_u64().unwrap_or_default(), consumer: from }
    }

    pub fn bytes(&self) -> Bytes {
        let numbers = [self.delivered_ms.to_be_bytes(), self.deliveries.to_be_bytes()].concat();
        Bytes::from([&numbers[..], &self.consumer].concat())
    }
}

/// The fields and values of an entry.
pub(super) fn fields_bytes(fields: &[Bytes]) -> Bytes {
    let mut out = Vec::with_capacity(fields_length(fields));
    for field in fields {
        out.put_u32(u32::try_from(field.len()).expect("limits.rs bounds every argument far below 4 GiB"));
        out.extend_from_slice(field);
    }
    Bytes::from(out)
}

pub(super) fn fields_length(fields: &[Bytes]) -> usize {
    fields.iter().map(|field| 4 + field.len()).sum()
}

pub(super) fn fields_of(value: &Bytes) -> Vec<Bytes> {
    let mut from = value.clone();
    let mut fields = Vec::new();
    while let Ok(length) = from.try_get_u32() {
        if from.len() < length as usize {
            break;
        }
        fields.push(from.split_to(length as usize));
    }
    fields
}

fn put_id(out: &mut Vec<u8>, id: StreamId) {
    out.put_u64(id.ms);
    out.put_u64(id.sequence);
}

fn take_id(from: &mut &[u8]) -> Option<StreamId> {
    Some(StreamId { ms: from.try_get_u64().ok()?, sequence: from.try_get_u64().ok()? })
}
