//! The records of a replica's journal: what it needs beside the files of its partition to be a member of the group.
//!
//! Bytes that are appended to a file are not written a second time: the journal has where they stand, and their
//! checksum. A journal begins with a base, the directory after one entry. When it is long, a new one takes its place.

use crate::codec::{Fields, Malformed, put_bytes, put_file};
use crate::contents::Contents;
use crate::operation::Operation;
use bytes::{BufMut, Bytes};
use ensue_store::disk::FileName;
use raft::eraftpb::{ConfState, EntryType, HardState};

/// A journal longer than this is damaged: one is given up at a small part of it.
pub(crate) const JOURNAL_BYTES_MAX: u64 = 1 << 30;
const FRAME: usize = 8;
/// The first byte of a record is at most this.
const KIND_MAX: u8 = 6;

/// Where a journal begins.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Base {
    /// The name of this replica in its group.
    pub(crate) id: u64,
    /// The last entry that is in `contents`.
    pub(crate) index: u64,
    pub(crate) term: u64,
    pub(crate) members: ConfState,
    pub(crate) contents: Contents,
}

/// What of an entry stands in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// Its bytes stand in the file.
    Appended { file: FileName, offset: u64, length: u32, checksum: u32, more: bool },
    /// All of it.
    Whole(Bytes),
}

/// One record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record {
    Base(Box<Base>),
    Entry {
        index: u64,
        term: u64,
        kind: EntryType,
        body: Body,
    },
    Hard(HardState),
    /// The replica starts, for the how manyth time, within this boot of its machine.
    Start {
        life: u32,
        boot_id: [u8; 16],
        /// It holds what was committed before.
        whole: bool,
    },
    /// It holds all that a leader has confirmed since its power failed.
    Whole,
    /// It stopped in good order: everything before is durable.
    Clean,
    /// The members of the group after the entry that changed them.
    Members {
        index: u64,
        members: ConfState,
    },
}

impl Record {
    /// Appends the record with its length and checksum.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_slice(&[0; FRAME]);
        match self {
            Record::Base(base) => {
                out.put_u8(0);
                put_base(out, base);
            }
            Record::Entry { index, term, kind, body } => {
                out.put_u8(1);
                out.put_u64_le(*index);
                out.put_u64_le(*term);
                out.put_u8(kind_number(*kind));
                match body {
                    Body::Whole(bytes) => {
                        out.put_u8(0);
                        put_bytes(out, bytes);
                    }
                    Body::Appended { file, offset, length, checksum, more } => {
                        out.put_u8(1);
                        put_file(out, *file);
                        out.put_u64_le(*offset);
                        out.put_u32_le(*length);
                        out.put_u32_le(*checksum);
                        out.put_u8(u8::from(*more));
                    }
                }
            }
            Record::Hard(hard) => {
                out.put_u8(2);
                out.put_u64_le(hard.term);
                out.put_u64_le(hard.vote);
                out.put_u64_le(hard.commit);
            }
            Record::Start { life, boot_id, whole } => {
                out.put_u8(3);
                out.put_u32_le(*life);
                out.put_slice(boot_id);
                out.put_u8(u8::from(*whole));
            }
            Record::Whole => out.put_u8(4),
            Record::Clean => out.put_u8(5),
            Record::Members { index, members } => {
                out.put_u8(6);
                out.put_u64_le(*index);
                put_members(out, members);
            }
        }
        let length = (out.len() - start - FRAME) as u32;
        let checksum = crc32fast::hash(&out[start + FRAME..]);
        out[start..start + 4].copy_from_slice(&length.to_le_bytes());
        out[start + 4..start + FRAME].copy_from_slice(&checksum.to_le_bytes());
    }

    fn take(bytes: Bytes) -> Result<Record, Malformed> {
        let mut fields = Fields(bytes);
        let record = match fields.u8()? {
            0 => Record::Base(Box::new(take_base(&mut fields)?)),
            1 => {
                let (index, term) = (fields.u64()?, fields.u64()?);
                let kind = kind_of(fields.u8()?)?;
                let body = match fields.u8()? {
                    0 => Body::Whole(fields.bytes()?),
                    1 => Body::Appended {
                        file: fields.file()?,
                        offset: fields.u64()?,
                        length: fields.u32()?,
                        checksum: fields.u32()?,
                        more: fields.bool()?,
                    },
                    _ => return Err(Malformed),
                };
                Record::Entry { index, term, kind, body }
            }
            2 => {
                let mut hard = HardState::new();
                (hard.term, hard.vote, hard.commit) = (fields.u64()?, fields.u64()?, fields.u64()?);
                Record::Hard(hard)
            }
            3 => Record::Start { life: fields.u32()?, boot_id: fields.array()?, whole: fields.bool()? },
            4 => Record::Whole,
            5 => Record::Clean,
            6 => Record::Members { index: fields.u64()?, members: take_members(&mut fields)? },
            _ => return Err(Malformed),
        };
        fields.end()?;
        Ok(record)
    }
}

/// What is read of a journal.
#[derive(Debug)]
pub(crate) struct Found {
    /// All records up to the first one that is not whole.
    pub(crate) records: Vec<Record>,
    /// Whole records behind that one. A process that ended within a write leaves none.
    pub(crate) behind: Vec<Record>,
}

pub(crate) fn read(mut bytes: Bytes) -> Found {
    let (mut records, mut behind) = (Vec::new(), Vec::new());
    while let Some((record, length)) = first(&bytes) {
        records.push(record);
        bytes = bytes.slice(length..);
    }
    while bytes.len() > FRAME {
        match first(&bytes) {
            Some((record, length)) => {
                behind.push(record);
                bytes = bytes.slice(length..);
            }
            None => bytes = bytes.slice(1..),
        }
    }
    Found { records, behind }
}

/// The record with which these bytes begin, and how many they are.
fn first(bytes: &Bytes) -> Option<(Record, usize)> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let (length, checksum) = (word(0)? as usize, word(4)?);
    if length == 0 || bytes.len() - FRAME < length || bytes[FRAME] > KIND_MAX {
        return None;
    }
    let body = bytes.slice(FRAME..FRAME + length);
    if crc32fast::hash(&body) != checksum {
        return None;
    }
    Some((Record::take(body).ok()?, FRAME + length))
}

pub(crate) fn kind_number(kind: EntryType) -> u8 {
    match kind {
        EntryType::EntryNormal => 0,
        EntryType::EntryConfChange => 1,
        EntryType::EntryConfChangeV2 => 2,
    }
}

pub(crate) fn kind_of(number: u8) -> Result<EntryType, Malformed> {
    match number {
        0 => Ok(EntryType::EntryNormal),
        1 => Ok(EntryType::EntryConfChange),
        2 => Ok(EntryType::EntryConfChangeV2),
        _ => Err(Malformed),
    }
}

/// What the journal has of an entry, when the file to which it appends is this long.
pub(crate) fn body(operation: &Operation, whole: &Bytes, length: u64) -> Body {
    match operation {
        Operation::Append { file, bytes, more } => Body::Appended {
            file: *file,
            offset: length,
            length: bytes.len() as u32,
            checksum: crc32fast::hash(bytes),
            more: *more,
        },
        _ => Body::Whole(whole.clone()),
    }
}

fn put_base(out: &mut Vec<u8>, base: &Base) {
    out.put_u64_le(base.id);
    out.put_u64_le(base.index);
    out.put_u64_le(base.term);
    put_members(out, &base.members);
    base.contents.put(out);
}

fn take_base(fields: &mut Fields) -> Result<Base, Malformed> {
    let (id, index, term) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let members = take_members(fields)?;
    Ok(Base { id, index, term, members, contents: Contents::take(fields)? })
}

pub(crate) fn put_members(out: &mut Vec<u8>, members: &ConfState) {
    let lists = [&members.voters, &members.learners, &members.voters_outgoing, &members.learners_next];
    for list in lists {
        out.put_u32_le(list.len() as u32);
        list.iter().for_each(|id| out.put_u64_le(*id));
    }
    out.put_u8(u8::from(members.auto_leave));
}

pub(crate) fn take_members(fields: &mut Fields) -> Result<ConfState, Malformed> {
    let mut members = ConfState::new();
    members.voters = fields.many(8, Fields::u64)?;
    members.learners = fields.many(8, Fields::u64)?;
    members.voters_outgoing = fields.many(8, Fields::u64)?;
    members.learners_next = fields.many(8, Fields::u64)?;
    members.auto_leave = fields.bool()?;
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Vec<Record> {
        let mut contents = Contents::default();
        let file = FileName::Segment(0);
        contents.apply(&Operation::Append { file, bytes: Bytes::from_static(b"abc"), more: false });
        contents
            .apply(&Operation::Replace { file: FileName::Superblock, bytes: Bytes::from_static(b"block") });
        contents.apply(&Operation::Epoch(2));
        let mut members = ConfState::new();
        members.voters = vec![1, 2, 3];
        let base = Base { id: 1, index: 4, term: 2, members: members.clone(), contents };
        let appended = Operation::Append { file, bytes: Bytes::from_static(b"defg"), more: true };
        let whole = Bytes::from(appended.encode());
        let mut hard = HardState::new();
        (hard.term, hard.vote, hard.commit) = (3, 1, 4);
        vec![
            Record::Base(Box::new(base)),
            Record::Start { life: 2, boot_id: [7; 16], whole: false },
            Record::Hard(hard),
            Record::Entry {
                index: 5,
                term: 3,
                kind: EntryType::EntryNormal,
                body: body(&appended, &whole, 3),
            },
            Record::Entry { index: 6, term: 3, kind: EntryType::EntryConfChangeV2, body: Body::Whole(whole) },
            Record::Members { index: 6, members },
            Record::Whole,
            Record::Clean,
        ]
    }

    #[test]
    fn what_was_written_is_read_up_to_where_it_was_torn() {
        let records = records();
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for record in &records {
            record.put(&mut bytes);
            ends.push(bytes.len());
        }
        for length in 0..=bytes.len() {
            let whole = ends.iter().filter(|end| **end <= length).count();
            let found = read(Bytes::copy_from_slice(&bytes[..length]));
            assert_eq!(
                (&found.records[..], &found.behind[..]),
                (&records[..whole], &[][..]),
                "{length} bytes"
            );
        }
    }

    #[test]
    fn a_record_of_which_a_bit_was_flipped_is_told_from_a_torn_end() {
        let records = records();
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for record in &records {
            record.put(&mut bytes);
            ends.push(bytes.len());
        }
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            let found = read(Bytes::from(other));
            let before = ends.iter().filter(|end| **end <= at).count();
            assert_eq!(
                (&found.records[..], &found.behind[..]),
                (&records[..before], &records[before + 1..]),
                "{at}"
            );
        }
    }
}
