//! The bytes of an entry, the same at its origin, on the wire and in the logs of all datacenters.
//!
//! ```text
//!          0        1        2        3        4        5        6        7
//!     +--------+--------+--------+--------+--------+--------+--------+--------+
//!   0 | format | kind   |keyspace| stamp dc  | stamp partition | flags  |  zero  |
//!     +--------+--------+--------+--------+--------+--------+--------+--------+
//!   8 | position                                                               |
//!  16 | stamp time                                                             |
//!  24 | dependency bytes                  | count                              |
//!     +-----------------------------------+------------------------------------+
//!  32 | transaction, 16 bytes: only kind 1 and 6                               |
//!     | dependencies                                                           |
//!     | kind 0, 1, 3: `count` effects   kind 2, 6: `count` participants, u16   |
//!     | kind 4: the position after which all is lost, u64; `count` is 0        |
//!     | kind 5: `count` bytes of a branching keyspace                          |
//!     | flag 1: what each put and delete among the effects replaced            |
//!     +------------------------------------------------------------------------+
//!
//!  kind: 0 effects, 1 effects that are part of a transaction, 2 transaction (read, no longer written),
//!        3 flush, 4 lost, 5 branch, 6 transaction with the name that it was begun as
//!
//!  effect:
//!     +--------+--------+-----------------+-----------------------------------+
//!   0 | column | effect | seen tallies    | key bytes                         |
//!   8 | name bytes                        | value bytes                       |
//!     +-----------------------------------+-----------------------------------+
//!  16 | key | name (field, member) | value (put), or observed (remove)           |
//!     | epoch sum (add) | seen tallies | overwritten (put over)               |
//!     +-----------------------------------------------------------------------+
//!
//!  column: 0 text, 1 deadline, 2 field, 3 member, 4 scored member, 5 element,
//!      6 part of a stream, 7 a field's deadline (`FieldDeadline`), 8 a bounded counter or a share of it (`escrow`),
//!      9 the whole row: removals alone
//!  effect: 0 put, 1 delete, 2 add, 3 remove, 4 put over others
//!
//!  replaced, flag 1: 0 nothing | 1 nothing, stamp of what is forgotten | 2 operation
//!                  | 3 several: count u8, operations, stamp of what is forgotten
//!
//!  operation, 16 bytes: datacenter u8, zero u8, incarnation u16, partition u16, zero u16, position u64
//!  stamp, 12 bytes:     time u64, datacenter u8, zero u8, partition u16
//!  epoch sum, 28 bytes:     epoch stamp, sum i128
//!  seen,  44 bytes:     datacenter u8, zero 3 bytes, epoch sum, stamp
//!  observed, its length stands in the place of the value's: stamps, the last put of each datacenter in their order,
//!      and before them the stamp up to which everything was seen
//!  overwritten:         count u32, stamps: the last put of each other datacenter in their order, at least one
//! ```
//!
//! Fixed widths: a one-column put costs 48 bytes beside key and value, and one bounds check a field.

use super::{LayoutError, Reader, u64_at};
use crate::entry::{Change, Entry};
use bytes::Bytes;
use ensue_types::{
    Column, DatacenterId, Effect, EpochSum, KeyspaceId, LogicalTime, Observed, OperationId, PartitionId,
    Position, Previous, RowEffect, SeenSum, Stamp,
};

/// The only format of an entry so far.
const FORMAT: u8 = 1;
const HEADER_BYTES: usize = 32;
const OPERATION_BYTES: usize = 16;
const EFFECT_BYTES: usize = 16;
const EPOCH_SUM_BYTES: usize = 28;
const SEEN_BYTES: usize = 44;

const EFFECTS: u8 = 0;
const EFFECTS_OF_TRANSACTION: u8 = 1;
const TRANSACTION: u8 = 2;
const FLUSH: u8 = 3;
const LOST: u8 = 4;
const BRANCH: u8 = 5;
const TRANSACTION_BEGUN_AS: u8 = 6;

/// The effects are followed by what they replaced.
const WITH_PREVIOUS: u8 = 1;

const STAMP_BYTES: usize = 12;
/// How many puts a put names.
const OVER_BYTES: usize = 4;

/// Encodes an entry into memory of exactly its size.
pub fn encode_entry(entry: &Entry) -> Bytes {
    let mut out = Vec::with_capacity(encoded_entry_bytes(entry));
    encode_entry_into(&mut out, entry);
    Bytes::from(out)
}

/// The size of an entry's encoding.
pub fn encoded_entry_bytes(entry: &Entry) -> usize {
    let body = match &entry.change {
        Change::Effects { transaction, effects, .. } => {
            let operation = if transaction.is_some() { OPERATION_BYTES } else { 0 };
            operation + effects.iter().map(encoded_effect_bytes).sum::<usize>()
        }
        Change::Transaction { begun_as, participants, .. } => {
            let operation = if begun_as.is_some() { OPERATION_BYTES } else { 0 };
            operation + 2 * participants.len()
        }
        Change::Flush { effects, .. } => effects.iter().map(encoded_effect_bytes).sum(),
        Change::Lost { .. } => 8,
        Change::Branch { note, .. } => note.len(),
    };
    HEADER_BYTES + entry.dependencies.encoded_bytes() + body + previous_bytes(entry)
}

/// How many bytes of an entry's encoding say what it replaced.
pub fn previous_bytes(entry: &Entry) -> usize {
    entry.previous.iter().map(encoded_previous_bytes).sum()
}

/// The same of one change.
pub fn encoded_previous_bytes(previous: &Previous) -> usize {
    match previous {
        Previous::Nothing { forgotten: Stamp::ZERO } => 1,
        Previous::Nothing { .. } => 1 + STAMP_BYTES,
        Previous::Operation(_) => 1 + OPERATION_BYTES,
        Previous::Several { operations, .. } => 2 + OPERATION_BYTES * operations.len() + STAMP_BYTES,
    }
}

/// What a removal takes, or a put without its value, beside its key and its name: that observed, or overwrites, the
/// puts of so many datacenters, and covers the additions of so many.
pub fn effect_bytes_beside(puts: usize, seen: usize) -> usize {
    EFFECT_BYTES + STAMP_BYTES * (1 + puts) + SEEN_BYTES * seen
}

/// What an effect takes in an entry's encoding.
pub fn encoded_effect_bytes(row: &RowEffect) -> usize {
    let tail = match &row.effect {
        Effect::Put { value, seen, over } => {
            let over = over.as_ref().map_or(0, |over| OVER_BYTES + STAMP_BYTES * over.puts().len());
            value.len() + SEEN_BYTES * seen.len() + over
        }
        Effect::Delete { seen } => SEEN_BYTES * seen.len(),
        Effect::Remove { observed, seen } => observed_bytes(observed) + SEEN_BYTES * seen.len(),
        Effect::Add { .. } => EPOCH_SUM_BYTES,
    };
    EFFECT_BYTES + row.key.len() + column_name(&row.column).1.len() + tail
}

fn observed_bytes(observed: &Observed) -> usize {
    STAMP_BYTES * (1 + observed.puts().len())
}

/// Appends an entry's encoding.
pub fn encode_entry_into(out: &mut Vec<u8>, entry: &Entry) {
    let (kind, keyspace, count) = match &entry.change {
        Change::Effects { keyspace, transaction: None, effects } => (EFFECTS, *keyspace, effects.len()),
        Change::Effects { keyspace, effects, .. } => (EFFECTS_OF_TRANSACTION, *keyspace, effects.len()),
        Change::Transaction { keyspace, begun_as: None, participants } => {
            (TRANSACTION, *keyspace, participants.len())
        }
        Change::Transaction { keyspace, participants, .. } => {
            (TRANSACTION_BEGUN_AS, *keyspace, participants.len())
        }
        Change::Flush { keyspace, effects } => (FLUSH, *keyspace, effects.len()),
        Change::Lost { .. } => (LOST, KeyspaceId(0), 0),
        Change::Branch { keyspace, note } => (BRANCH, *keyspace, note.len()),
    };
    let mut header = [0; HEADER_BYTES];
    header[0] = FORMAT;
    header[1] = kind;
    header[2] = keyspace.0;
    header[3] = entry.stamp.datacenter.0;
    header[4..6].copy_from_slice(&entry.stamp.partition.0.to_le_bytes());
    header[6] = if entry.previous.is_empty() { 0 } else { WITH_PREVIOUS };
    header[8..16].copy_from_slice(&entry.position.0.to_le_bytes());
    header[16..24].copy_from_slice(&entry.stamp.time.0.to_le_bytes());
    header[28..32].copy_from_slice(&length_u32(count).to_le_bytes());
    let header_at = out.len();
    out.extend_from_slice(&header);
    if let Change::Effects { transaction: Some(operation), .. }
    | Change::Transaction { begun_as: Some(operation), .. } = &entry.change
    {
        put_operation(out, operation);
    }
    let dependencies_at = out.len();
    entry.dependencies.encode_into(out);
    let length = length_u32(out.len() - dependencies_at).to_le_bytes();
    out[header_at + 24..header_at + 28].copy_from_slice(&length);
    match &entry.change {
        Change::Effects { effects, .. } | Change::Flush { effects, .. } => {
            effects.iter().for_each(|row| put_effect(out, row));
        }
        Change::Transaction { participants, .. } => {
            participants.iter().for_each(|partition| out.extend_from_slice(&partition.0.to_le_bytes()));
        }
        Change::Lost { after } => out.extend_from_slice(&after.0.to_le_bytes()),
        Change::Branch { note, .. } => out.extend_from_slice(note),
    }
    entry.previous.iter().for_each(|previous| put_previous(out, previous));
}

fn put_previous(out: &mut Vec<u8>, previous: &Previous) {
    match previous {
        Previous::Nothing { forgotten: Stamp::ZERO } => out.push(0),
        Previous::Nothing { forgotten } => {
            out.push(1);
            put_stamp(out, forgotten);
        }
        Previous::Operation(operation) => {
            out.push(2);
            put_operation(out, operation);
        }
        Previous::Several { operations, forgotten } => {
            // At most one a datacenter, of which there are fewer.
            out.extend_from_slice(&[3, operations.len() as u8]);
            operations.iter().for_each(|operation| put_operation(out, operation));
            put_stamp(out, forgotten);
        }
    }
}

fn put_effect(out: &mut Vec<u8>, row: &RowEffect) {
    let (column, name) = column_name(&row.column);
    let mut ended = None;
    let (effect, value, seen): (u8, &[u8], &[SeenSum]) = match &row.effect {
        Effect::Put { value, seen, over: None } => (0, value, seen),
        Effect::Put { value, seen, over: Some(_) } => (4, value, seen),
        Effect::Delete { seen } => (1, &[], seen),
        Effect::Add { .. } => (2, &[], &[]),
        Effect::Remove { observed, seen } => {
            ended = Some(observed);
            (3, &[], seen)
        }
    };
    let seen_count = u16::try_from(seen.len()).expect("one tally a datacenter, and there are at most 256");
    let mut header = [0; EFFECT_BYTES];
    header[0] = column;
    header[1] = effect;
    header[2..4].copy_from_slice(&seen_count.to_le_bytes());
    header[4..8].copy_from_slice(&length_u32(row.key.len()).to_le_bytes());
    header[8..12].copy_from_slice(&length_u32(name.len()).to_le_bytes());
    let value_bytes = ended.map_or(value.len(), observed_bytes);
    header[12..16].copy_from_slice(&length_u32(value_bytes).to_le_bytes());
    out.extend_from_slice(&header);
    out.extend_from_slice(&row.key);
    out.extend_from_slice(name);
    out.extend_from_slice(value);
    if let Some(observed) = ended {
        put_stamp(out, &observed.through());
        observed.puts().iter().for_each(|put| put_stamp(out, put));
    }
    if let Effect::Add { epoch_sum } = &row.effect {
        put_epoch_sum(out, epoch_sum);
    }
    for seen_sum in seen {
        out.extend_from_slice(&[seen_sum.datacenter.0, 0, 0, 0]);
        put_epoch_sum(out, &seen_sum.epoch_sum);
        put_stamp(out, &seen_sum.stamp);
    }
    if let Effect::Put { over: Some(over), .. } = &row.effect {
        out.extend_from_slice(&length_u32(over.puts().len()).to_le_bytes());
        over.puts().iter().for_each(|put| put_stamp(out, put));
    }
}

fn column_name(column: &Column) -> (u8, &[u8]) {
    match column {
        Column::Text => (0, &[]),
        Column::Deadline => (1, &[]),
        Column::Field(name) => (2, name),
        Column::Member(name) => (3, name),
        Column::Scored(name) => (4, name),
        Column::Element(name) => (5, name),
        Column::Stream(name) => (6, name),
        Column::FieldDeadline(name) => (7, name),
        Column::Escrow(name) => (8, name),
        Column::Row => (9, &[]),
    }
}

fn put_stamp(out: &mut Vec<u8>, stamp: &Stamp) {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&stamp.time.0.to_le_bytes());
    bytes[8] = stamp.datacenter.0;
    bytes[10..].copy_from_slice(&stamp.partition.0.to_le_bytes());
    out.extend_from_slice(&bytes);
}

fn put_epoch_sum(out: &mut Vec<u8>, epoch_sum: &EpochSum) {
    put_stamp(out, &epoch_sum.epoch);
    out.extend_from_slice(&epoch_sum.sum.0.to_le_bytes());
}

pub(super) fn put_operation(out: &mut Vec<u8>, operation: &OperationId) {
    let mut bytes = [0; OPERATION_BYTES];
    bytes[0] = operation.datacenter.0;
    bytes[2..4].copy_from_slice(&operation.incarnation.0.to_le_bytes());
    bytes[4..6].copy_from_slice(&operation.partition.0.to_le_bytes());
    bytes[8..].copy_from_slice(&operation.position.0.to_le_bytes());
    out.extend_from_slice(&bytes);
}

/// A length as it is stored.
pub(super) fn length_u32(length: usize) -> u32 {
    u32::try_from(length).expect("limits.rs bounds every length far below 4 GiB")
}

/// The position of an encoded entry, without decoding the rest.
pub fn entry_position(bytes: &[u8]) -> Result<Position, LayoutError> {
    if bytes.len() < HEADER_BYTES {
        let needed = HEADER_BYTES as u64;
        return Err(LayoutError::TooShort { what: "entry", at: 0, needed, left: bytes.len() });
    }
    check_format(bytes[0])?;
    Ok(Position(u64_at(bytes, 8)))
}

fn check_format(format: u8) -> Result<(), LayoutError> {
    if format == FORMAT {
        return Ok(());
    }
    Err(LayoutError::UnknownFormat { what: "entry", format: u16::from(format), known: u16::from(FORMAT) })
}

/// Decodes an entry; its keys, names and values are slices of `bytes`.
pub fn decode_entry(bytes: &Bytes) -> Result<Entry, LayoutError> {
    let mut reader = Reader::new(bytes);
    check_format(reader.u8("entry format")?)?;
    let kind = reader.u8("entry kind")?;
    let keyspace = reader.keyspace()?;
    let datacenter = DatacenterId(reader.u8("stamp datacenter")?);
    let partition = PartitionId(reader.u16("stamp partition")?);
    let flags = reader.u8("entry flags")?;
    reader.zeros::<1>("entry")?;
    let position = Position(reader.u64("position")?);
    let time = LogicalTime(reader.u64("stamp time")?);
    let dependency_bytes = reader.u32("dependency bytes")?;
    let count = reader.u32("count")?;
    let has_name = kind == EFFECTS_OF_TRANSACTION || kind == TRANSACTION_BEGUN_AS;
    let transaction = if has_name { Some(reader.operation()?) } else { None };
    let dependencies = reader.causes("dependencies", dependency_bytes)?;
    let change = match kind {
        EFFECTS | EFFECTS_OF_TRANSACTION => {
            Change::Effects { keyspace, transaction, effects: read_effects(&mut reader, count)? }
        }
        FLUSH => Change::Flush { keyspace, effects: read_effects(&mut reader, count)? },
        TRANSACTION | TRANSACTION_BEGUN_AS => {
            let count = reader.count("participants", count, 2)?;
            let mut participants = Vec::with_capacity(count);
            for _ in 0..count {
                participants.push(PartitionId(reader.u16("participant")?));
            }
            Change::Transaction { keyspace, begun_as: transaction, participants }
        }
        LOST if keyspace == KeyspaceId(0) && count == 0 => {
            Change::Lost { after: Position(reader.u64("last position that is left")?) }
        }
        BRANCH => Change::Branch { keyspace, note: reader.slice("note of a branching keyspace", count)? },
        _ => return Err(LayoutError::Unknown { what: "entry kind", at: 1, value: u64::from(kind) }),
    };
    let previous = match (flags, &change) {
        (0, _) => Vec::new(),
        (WITH_PREVIOUS, Change::Effects { effects, .. }) => read_previous(&mut reader, effects)?,
        _ => return Err(LayoutError::Unknown { what: "entry flags", at: 6, value: u64::from(flags) }),
    };
    reader.finish("entry")?;
    Ok(Entry { position, stamp: Stamp { time, datacenter, partition }, dependencies, change, previous })
}

fn read_previous(reader: &mut Reader, effects: &[RowEffect]) -> Result<Vec<Previous>, LayoutError> {
    let mut all = Vec::with_capacity(effects.len());
    for _ in effects.iter().filter(|row| row.effect.is_base()) {
        let at = reader.at();
        all.push(match reader.u8("what was replaced")? {
            0 => Previous::Nothing { forgotten: Stamp::ZERO },
            1 => Previous::Nothing { forgotten: reader.stamp()? },
            2 => Previous::Operation(reader.operation()?),
            3 => {
                let count = reader.u8("count of what was replaced")?;
                let operations = (0..count).map(|_| reader.operation()).collect::<Result<_, _>>()?;
                Previous::Several { operations, forgotten: reader.stamp()? }
            }
            value => {
                let (what, value) = ("what was replaced", u64::from(value));
                return Err(LayoutError::Unknown { what, at, value });
            }
        });
    }
    Ok(all)
}

fn read_effects(reader: &mut Reader, count: u32) -> Result<Vec<RowEffect>, LayoutError> {
    let count = reader.count("effects", count, EFFECT_BYTES as u32)?;
    let mut effects = Vec::with_capacity(count);
    for _ in 0..count {
        effects.push(read_effect(reader)?);
    }
    Ok(effects)
}

fn read_effect(reader: &mut Reader) -> Result<RowEffect, LayoutError> {
    let at = reader.at();
    let unknown = |what, value| Err(LayoutError::Unknown { what, at, value });
    let column = reader.u8("column kind")?;
    let effect = reader.u8("effect kind")?;
    let seen_count = reader.u16("seen tallies")?;
    let key_bytes = reader.u32("key bytes")?;
    let name_bytes = reader.u32("name bytes")?;
    let value_bytes = reader.u32("value bytes")?;
    let key = reader.slice("key", key_bytes)?;
    let name = reader.slice("name", name_bytes)?;
    let column = match column {
        0 if name_bytes == 0 => Column::Text,
        1 if name_bytes == 0 => Column::Deadline,
        9 if name_bytes == 0 && effect == 3 => Column::Row,
        0 | 1 => return unknown("name bytes of a column without a name", u64::from(name_bytes)),
        2 => Column::Field(name),
        3 => Column::Member(name),
        4 => Column::Scored(name),
        5 => Column::Element(name),
        6 => Column::Stream(name),
        7 => Column::FieldDeadline(name),
        8 => Column::Escrow(name),
        _ => return unknown("column kind", u64::from(column)),
    };
    let effect = match effect {
        0 => {
            let value = reader.slice("value", value_bytes)?;
            Effect::Put { value, seen: read_seen(reader, seen_count)?, over: None }
        }
        4 => {
            let value = reader.slice("value", value_bytes)?;
            let seen = read_seen(reader, seen_count)?;
            let (at, count) = (reader.at(), reader.u32("overwritten puts")?);
            let mut over = Observed::default();
            read_puts(reader, count, &mut over)?;
            if over.puts().is_empty() {
                return Err(LayoutError::Unknown { what: "overwritten puts", at, value: count.into() });
            }
            Effect::Put { value, seen, over: Some(Box::new(over)) }
        }
        3 => {
            let observed = read_observed(reader, value_bytes)?;
            Effect::Remove { observed, seen: read_seen(reader, seen_count)? }
        }
        1 | 2 if value_bytes != 0 => {
            return unknown("value bytes of an effect without a value", value_bytes.into());
        }
        1 => Effect::Delete { seen: read_seen(reader, seen_count)? },
        2 if seen_count == 0 => Effect::Add { epoch_sum: reader.epoch_sum()? },
        2 => return unknown("seen tallies of an addition", u64::from(seen_count)),
        _ => return unknown("effect kind", u64::from(effect)),
    };
    Ok(RowEffect { key, column, effect })
}

fn read_observed(reader: &mut Reader, bytes: u32) -> Result<Observed, LayoutError> {
    let at = reader.at();
    let count = bytes / STAMP_BYTES as u32;
    let wrong = LayoutError::Unknown { what: "bytes of what a removal observed", at, value: bytes.into() };
    if bytes == 0 || bytes != count * STAMP_BYTES as u32 {
        return Err(wrong);
    }
    let mut observed = Observed::all_through(reader.stamp()?);
    read_puts(reader, count - 1, &mut observed)?;
    Ok(observed)
}

/// The last put of each datacenter, in their order.
fn read_puts(reader: &mut Reader, count: u32, observed: &mut Observed) -> Result<(), LayoutError> {
    let at = reader.at();
    for known in 0..reader.count("observed puts", count, STAMP_BYTES as u32)? {
        let put = reader.stamp()?;
        observed.see(put);
        if observed.puts().len() != known + 1 || observed.puts().last() != Some(&put) {
            let (what, value) = ("order of observed puts", u64::from(put.datacenter.0));
            return Err(LayoutError::Unknown { what, at, value });
        }
    }
    Ok(())
}

fn read_seen(reader: &mut Reader, count: u16) -> Result<Vec<SeenSum>, LayoutError> {
    let count = reader.count("seen tallies", u32::from(count), SEEN_BYTES as u32)?;
    let mut seen = Vec::with_capacity(count);
    for _ in 0..count {
        let datacenter = DatacenterId(reader.u8("seen datacenter")?);
        reader.zeros::<3>("seen tally")?;
        seen.push(SeenSum { datacenter, epoch_sum: reader.epoch_sum()?, stamp: reader.stamp()? });
    }
    Ok(seen)
}
