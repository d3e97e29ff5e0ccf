//! Streams with their consumer groups.
//!
//! ```text
//! stream   number of nodes, nodes, length, last id, [first id, highest deleted id, entries added,] groups
//! node     id of 16 bytes, packed list: count, deleted, fields of the first entry, 0, entries
//! entry    flags, id as two differences to the node's, [number of fields, names and] values, number of elements
//! group    name, last id, [entries read,] pending: id of 16 bytes, delivered at, deliveries; consumers
//! consumer name, seen at, [active at,] ids of 16 bytes that are pending there
//! ```
//!
//! What is in brackets came with later versions, or is left out where an entry has the fields of its node.

use crate::error::{Damage, RdbError};
use crate::reader::{Budget, Reader};
use crate::{layout, packed};
use bytes::Bytes;
use ensue_resp::number;
use ensue_types::StreamId;
use std::collections::BTreeMap;
use std::io::BufRead;

/// A stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    pub entries: Vec<StreamEntry>,
    pub last_id: StreamId,
    pub max_deleted_id: StreamId,
    pub entries_added: u64,
    pub groups: Vec<Group>,
}

/// An entry of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEntry {
    pub id: StreamId,
    pub fields: Vec<(Bytes, Bytes)>,
}

/// A group of consumers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    pub name: Bytes,
    pub last_id: StreamId,
    /// Nothing if it is not known.
    pub entries_read: Option<u64>,
    pub consumers: Vec<Consumer>,
    /// In the order of their ids.
    pub pending: Vec<Pending>,
}

/// A consumer of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumer {
    pub name: Bytes,
    pub seen_ms: u64,
    pub active_ms: Option<u64>,
}

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    pub id: StreamId,
    pub consumer: Bytes,
    pub delivered_ms: u64,
    pub deliveries: u64,
}

pub(crate) const DELETED: i64 = 1;
pub(crate) const SAME_FIELDS: i64 = 2;

impl Stream {
    pub(crate) fn bytes(&self) -> usize {
        let fields = self.entries.iter().flat_map(|entry| &entry.fields);
        fields.map(|(name, value)| name.len() + value.len()).sum()
    }
}

pub(crate) fn read(reader: &mut Reader<impl BufRead>, layout: u8) -> Result<Stream, RdbError> {
    let nodes = reader.length()?;
    let mut entries = Vec::new();
    for _ in 0..nodes {
        let master = reader.text()?;
        let list = reader.text()?;
        let master = <[u8; 16]>::try_from(&master[..]).map(id_of_bytes);
        let master = master.map_err(|_| reader.damaged(Damage::Stream))?;
        read_node(master, &list, &mut entries, reader.budget()).map_err(|damage| reader.damaged(damage))?;
    }
    let length = reader.length()?;
    if length != entries.len() as u64 {
        return Err(reader.damaged(Damage::Stream));
    }
    let last_id = read_id(reader)?;
    let (mut max_deleted_id, mut entries_added) = (StreamId::MIN, length);
    if layout != layout::STREAM {
        let _first_id = read_id(reader)?;
        max_deleted_id = read_id(reader)?;
        entries_added = reader.length()?;
    }
    let count = reader.length()?;
    let mut groups = Vec::new();
    for _ in 0..count {
        groups.push(read_group(reader, layout)?);
    }
    Ok(Stream { entries, last_id, max_deleted_id, entries_added, groups })
}

fn read_id(reader: &mut Reader<impl BufRead>) -> Result<StreamId, RdbError> {
    Ok(StreamId { ms: reader.length()?, sequence: reader.length()? })
}

fn id_of_bytes(bytes: [u8; 16]) -> StreamId {
    let whole = u128::from_be_bytes(bytes);
    StreamId { ms: (whole >> 64) as u64, sequence: whole as u64 }
}

pub(crate) fn id_bytes(id: StreamId) -> [u8; 16] {
    (u128::from(id.ms) << 64 | u128::from(id.sequence)).to_be_bytes()
}

/// The elements of a node, taken one after the other.
struct Elements(std::vec::IntoIter<Bytes>);

impl Elements {
    fn text(&mut self) -> Result<Bytes, Damage> {
        self.0.next().ok_or(Damage::Stream)
    }

    fn integer(&mut self) -> Result<i64, Damage> {
        number::parse_i64(&self.text()?).ok_or(Damage::Stream)
    }

    /// A number of things, each of which takes so many of the elements that are left.
    fn count(&mut self, elements_each: usize) -> Result<usize, Damage> {
        let count = usize::try_from(self.integer()?).map_err(|_| Damage::Stream)?;
        if count > self.0.len() / elements_each { Err(Damage::Stream) } else { Ok(count) }
    }
}

/// What an element of a node takes at least: an entry, which has five or more, counts as one write.
const NODE_ELEMENT_BYTES: usize = 16;

fn read_node(
    master: StreamId,
    list: &[u8],
    entries: &mut Vec<StreamEntry>,
    budget: &mut Budget,
) -> Result<(), Damage> {
    let mut elements = Elements(packed::packed_of(list, NODE_ELEMENT_BYTES, budget)?.into_iter());
    let (live, deleted) = (elements.integer()?, elements.integer()?);
    let fields = elements.count(1)?;
    let names: Vec<Bytes> = (0..fields).map(|_| elements.text()).collect::<Result<_, _>>()?;
    if elements.integer()? != 0 {
        return Err(Damage::Stream);
    }
    let (mut seen_live, mut seen_deleted) = (0, 0);
    while elements.0.len() > 0 {
        let flags = elements.integer()?;
        let (ms, sequence) = (elements.integer()?, elements.integer()?);
        // Differences wrap as they did when they were made.
        let id = StreamId {
            ms: master.ms.wrapping_add(ms as u64),
            sequence: master.sequence.wrapping_add(sequence as u64),
        };
        let fields = if flags & SAME_FIELDS != 0 {
            let pair = |name: &Bytes| Ok((name.clone(), elements.text()?));
            names.iter().map(pair).collect::<Result<Vec<_>, Damage>>()?
        } else {
            let count = elements.count(2)?;
            let pair = |_| Ok((elements.text()?, elements.text()?));
            (0..count).map(pair).collect::<Result<Vec<_>, Damage>>()?
        };
        let _elements = elements.integer()?;
        if flags & DELETED != 0 {
            seen_deleted += 1;
        } else {
            seen_live += 1;
            entries.push(StreamEntry { id, fields });
        }
    }
    if (live, deleted) == (seen_live, seen_deleted) { Ok(()) } else { Err(Damage::Stream) }
}

fn read_group(reader: &mut Reader<impl BufRead>, layout: u8) -> Result<Group, RdbError> {
    let name = reader.text()?;
    let last_id = read_id(reader)?;
    let mut entries_read = None;
    if layout != layout::STREAM {
        // Minus one says that it is not known.
        entries_read = i64::try_from(reader.length()?).ok().map(|count| count as u64);
    }
    let mut pending = BTreeMap::new();
    for _ in 0..reader.length()? {
        let id = id_of_bytes(reader.array()?);
        pending.insert(id, (reader.unsigned(8)?, reader.length()?, None));
    }
    let mut consumers = Vec::new();
    for _ in 0..reader.length()? {
        let name = reader.text()?;
        let seen_ms = reader.unsigned(8)?;
        let active_ms = if layout == layout::STREAM_3 { Some(reader.unsigned(8)?) } else { None };
        for _ in 0..reader.length()? {
            let id = id_of_bytes(reader.array()?);
            match pending.get_mut(&id) {
                Some((_, _, owner)) => *owner = Some(name.clone()),
                None => return Err(reader.damaged(Damage::Stream)),
            }
        }
        consumers.push(Consumer { name, seen_ms, active_ms: active_ms.filter(|ms| *ms != u64::MAX) });
    }
    let owned = pending.into_iter().map(|(id, (delivered_ms, deliveries, owner))| {
        owner.map(|consumer| Pending { id, consumer, delivered_ms, deliveries })
    });
    let pending: Option<Vec<Pending>> = owned.collect();
    let pending = pending.ok_or_else(|| reader.damaged(Damage::Stream))?;
    Ok(Group { name, last_id, entries_read, consumers, pending })
}
