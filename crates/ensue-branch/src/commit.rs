//! What sites tell each other: commits, ceilings, and states sent whole; and their bytes, all little endian.
//!
//! ```text
//! note:    kind u8 (0 commit, 1 ceiling) | commit, or state id u64
//! commit:  id u64 | parents u16 count, u64 each | writes u32 count, each: key | value
//! rebuilt: id u64 | equals u16 count, u64 each | parents u32 count, u64 each | versions u32 count, each: written by u64 | key | value
//! key:     u32 length, bytes        value: u8 1, u32 length, bytes; or u8 0, deleted
//! ```

use crate::error::Malformed;
use crate::id::StateId;
use crate::{Key, Value};
use bytes::{Buf, BufMut, Bytes};

/// A state as it was made: what travels, and what is logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    pub id: StateId,
    /// Highest first; one, or several of a merge.
    pub parents: Vec<StateId>,
    /// In the order of keys, each once.
    pub writes: Vec<Write>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    pub key: Key,
    pub value: Value,
}

impl Commit {
    /// The same in bytes of its own: what it came in, a frame or a piece of a log, is long and would be kept with it.
    pub fn detached(mut self) -> Commit {
        self.writes.iter_mut().for_each(Write::detach);
        self
    }
}

impl Write {
    fn detach(&mut self) {
        self.key = detached(&self.key);
        self.value = self.value.as_ref().map(detached);
    }
}

/// The same bytes in memory of their own.
pub fn detached(bytes: &Bytes) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

/// What stands in the stream of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    Commit(Commit),
    /// No transaction of the site begins above this state any more.
    Ceiling(StateId),
}

/// A state sent whole to a site that has collected what it came from: it stands below states that the receiver has, and
/// brings all that these do not see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebuilt {
    pub id: StateId,
    /// Other names of it: of equal merges.
    pub equals: Vec<StateId>,
    pub parents: Vec<StateId>,
    /// Each with the state that wrote it.
    pub versions: Vec<(StateId, Write)>,
}

impl Note {
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        match self {
            Note::Commit(commit) => {
                out.put_u8(0);
                put_commit(&mut out, commit);
            }
            Note::Ceiling(state) => {
                out.put_u8(1);
                out.put_u64_le(state.bits());
            }
        }
        Bytes::from(out)
    }

    pub fn decode(mut from: Bytes) -> Result<Note, Malformed> {
        let note = match take(&mut from, 1)?.get_u8() {
            0 => Note::Commit(commit(&mut from)?),
            1 => Note::Ceiling(state(&mut from)?),
            _ => return Err(Malformed),
        };
        if from.is_empty() { Ok(note) } else { Err(Malformed) }
    }
}

impl Rebuilt {
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        out.put_u64_le(self.id.bits());
        put_states(&mut out, &self.equals);
        out.put_u32_le(self.parents.len() as u32);
        self.parents.iter().for_each(|parent| out.put_u64_le(parent.bits()));
        out.put_u32_le(self.versions.len() as u32);
        for (id, write) in &self.versions {
            out.put_u64_le(id.bits());
            put_write(&mut out, write);
        }
        Bytes::from(out)
    }

    pub fn decode(mut from: Bytes) -> Result<Rebuilt, Malformed> {
        let id = state(&mut from)?;
        let equals = states(&mut from)?;
        let mut parents = Vec::new();
        for _ in 0..take(&mut from, 4)?.get_u32_le() {
            parents.push(state(&mut from)?);
        }
        let count = take(&mut from, 4)?.get_u32_le();
        let mut versions = Vec::new();
        for _ in 0..count {
            versions.push((state(&mut from)?, write(&mut from)?));
        }
        if from.is_empty() { Ok(Rebuilt { id, equals, parents, versions }) } else { Err(Malformed) }
    }
}

pub fn put_commit(out: &mut Vec<u8>, commit: &Commit) {
    out.put_u64_le(commit.id.bits());
    put_states(out, &commit.parents);
    out.put_u32_le(commit.writes.len() as u32);
    commit.writes.iter().for_each(|write| put_write(out, write));
}

pub fn commit(from: &mut Bytes) -> Result<Commit, Malformed> {
    let id = state(from)?;
    let parents = states(from)?;
    let count = take(from, 4)?.get_u32_le();
    let mut writes = Vec::new();
    for _ in 0..count {
        writes.push(write(from)?);
    }
    let in_order = writes.windows(2).all(|pair| pair[0].key < pair[1].key);
    let above = parents.iter().all(|parent| *parent < id);
    let sorted = parents.windows(2).all(|pair| pair[0] > pair[1]);
    if in_order && above && sorted && !parents.is_empty() {
        Ok(Commit { id, parents, writes })
    } else {
        Err(Malformed)
    }
}

pub fn put_states(out: &mut Vec<u8>, states: &[StateId]) {
    out.put_u16_le(u16::try_from(states.len()).expect("leaves are bounded below 65536"));
    states.iter().for_each(|state| out.put_u64_le(state.bits()));
}

pub fn states(from: &mut Bytes) -> Result<Vec<StateId>, Malformed> {
    let count = usize::from(take(from, 2)?.get_u16_le());
    let mut bytes = take(from, 8 * count)?;
    Ok((0..count).map(|_| StateId::from_bits(bytes.get_u64_le())).collect())
}

pub fn state(from: &mut Bytes) -> Result<StateId, Malformed> {
    Ok(StateId::from_bits(take(from, 8)?.get_u64_le()))
}

pub fn put_key(out: &mut Vec<u8>, key: &[u8]) {
    out.put_u32_le(u32::try_from(key.len()).expect("keys and values are shorter than 4 GiB"));
    out.extend_from_slice(key);
}

pub fn key(from: &mut Bytes) -> Result<Key, Malformed> {
    let length = take(from, 4)?.get_u32_le();
    take(from, length as usize)
}

pub fn put_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        None => out.put_u8(0),
        Some(value) => {
            out.put_u8(1);
            put_key(out, value);
        }
    }
}

pub fn value(from: &mut Bytes) -> Result<Value, Malformed> {
    match take(from, 1)?.get_u8() {
        0 => Ok(None),
        1 => Ok(Some(key(from)?)),
        _ => Err(Malformed),
    }
}

/// How long the encoding of a write is.
pub fn write_bytes(key: &Key, value: &Value) -> usize {
    4 + key.len() + 1 + value.as_ref().map_or(0, |value| 4 + value.len())
}

fn put_write(out: &mut Vec<u8>, write: &Write) {
    put_key(out, &write.key);
    put_value(out, &write.value);
}

fn write(from: &mut Bytes) -> Result<Write, Malformed> {
    Ok(Write { key: key(from)?, value: value(from)? })
}

/// The next bytes, without copying them.
pub fn take(from: &mut Bytes, count: usize) -> Result<Bytes, Malformed> {
    if from.len() < count { Err(Malformed) } else { Ok(from.split_to(count)) }
}
