//! The bytes of a record: a kind and its payload. The length around it belongs to the batch (`batch`).
//!
//! ```text
//!  kind 1 own:       entry
//!  kind 2 begun:     number u64, keyspace u8, zero 3, context bytes u32, parts u32, context, parts
//!  kind 3 prepared:  transaction 16, time u64, keyspace u8, zero 3, part
//!  kind 4 decided:   transaction 16, time u64, entry or nothing
//!  kind 5 completed: transaction 16
//!  kind 6 received:  datacenter u8, zero u8, incarnation u16, zero u32, entry
//!  kind 7 applied:   datacenter u8, zero u8, incarnation u16, zero u32, position u64, time u64
//!  kind 8 clock:     bound u64
//!  kind 9 times:     received, stable, each: count u8 and as many times u64
//!  kind 10 dead:     datacenter u8, zero 7, time u64
//!  kind 11 lost:     datacenter u8, zero u8, failed u16, zero u32, whole u64, doubtful u64
//!  kind 12 discarded: datacenter u8, zero 7, entry
//!  kind 13 rebuilt:  keyspace u8, zero 7, state u64, bytes of a branching keyspace
//!  kind 14 ended:    datacenter u8, everywhere u8, failed u16, zero u32, whole u64
//!  kind 15 peer:     datacenter u8, zero 7, directory 16, last u64
//!  kind 16 retiring: datacenter u8, zero 7
//!  kind 17 home:     keyspace u8, configured u8, from u8, home u8, step u8, claimed u8, streams u8, zero u8,
//!                    version u64, each stream: datacenter u8, zero 7, position u64; count u8 and as many times u64,
//!                    pattern
//!
//!  part:    partition u16, zero u16, commands u32, then each command
//!  command: place u32, arguments u32, then each argument: bytes u32 and the bytes
//! ```

use super::entry::{length_u32, put_operation};
use super::{LayoutError, Reader};
use crate::record::Record;
use bytes::Bytes;
use ensue_types::{
    DatacenterId, DatacenterSet, DirectoryId, HomeMove, HomeStep, Incarnation, LogicalTime, Part,
    PartitionId, Position, TimeVector,
};

pub(crate) const OWN: u8 = 1;
const BEGUN: u8 = 2;
const PREPARED: u8 = 3;
const DECIDED: u8 = 4;
const COMPLETED: u8 = 5;
pub(crate) const RECEIVED: u8 = 6;
const APPLIED: u8 = 7;
const CLOCK_BOUND: u8 = 8;
const TIMES: u8 = 9;
const DEAD: u8 = 10;
const LOST: u8 = 11;
const DISCARDED: u8 = 12;
const REBUILT: u8 = 13;
const ENDED: u8 = 14;
const PEER: u8 = 15;
const RETIRING: u8 = 16;
const HOME_MOVED: u8 = 17;

/// The smallest part, and the smallest command: what a count of them needs at least.
const PART_BYTES_MIN: u32 = 8;
const COMMAND_BYTES_MIN: u32 = 8;
const ARGUMENT_BYTES_MIN: u32 = 4;

/// Appends a record's encoding.
pub fn encode_record(record: &Record, out: &mut Vec<u8>) {
    match record {
        Record::Own { entry } => {
            out.push(OWN);
            out.extend_from_slice(entry);
        }
        Record::Begun { number, keyspace, context, parts } => {
            out.push(BEGUN);
            out.extend_from_slice(&number.to_le_bytes());
            out.extend_from_slice(&[keyspace.0, 0, 0, 0]);
            put_u32(out, context.encoded_bytes());
            put_u32(out, parts.len());
            context.encode_into(out);
            parts.iter().for_each(|part| put_part(out, part));
        }
        Record::Prepared { transaction, keyspace, at, part } => {
            out.push(PREPARED);
            put_operation(out, transaction);
            out.extend_from_slice(&at.0.to_le_bytes());
            out.extend_from_slice(&[keyspace.0, 0, 0, 0]);
            put_part(out, part);
        }
        Record::Decided { transaction, at, entry } => {
            out.push(DECIDED);
            put_operation(out, transaction);
            out.extend_from_slice(&at.0.to_le_bytes());
            out.extend_from_slice(entry.as_deref().unwrap_or_default());
        }
        Record::Completed { transaction } => {
            out.push(COMPLETED);
            put_operation(out, transaction);
        }
        Record::Received { origin, incarnation, entry } => {
            out.push(RECEIVED);
            out.extend_from_slice(&received_prefix(*origin, *incarnation));
            out.extend_from_slice(entry);
        }
        Record::Applied { origin, incarnation, position, at } => {
            out.push(APPLIED);
            out.extend_from_slice(&received_prefix(*origin, *incarnation));
            out.extend_from_slice(&position.0.to_le_bytes());
            out.extend_from_slice(&at.0.to_le_bytes());
        }
        Record::ClockBound { bound } => {
            out.push(CLOCK_BOUND);
            out.extend_from_slice(&bound.0.to_le_bytes());
        }
        Record::Times { received, stable } => {
            out.push(TIMES);
            put_times(out, received);
            put_times(out, stable);
        }
        Record::Rebuilt { keyspace, rebuilt } => {
            out.push(REBUILT);
            out.extend_from_slice(&[keyspace.0, 0, 0, 0, 0, 0, 0, 0]);
            out.extend_from_slice(rebuilt);
        }
        lasting => encode_lasting(lasting, out),
    }
}

/// Records that checkpoints hold, too.
fn encode_lasting(record: &Record, out: &mut Vec<u8>) {
    match record {
        Record::Dead { datacenter, time } => {
            out.push(DEAD);
            out.extend_from_slice(&[datacenter.0, 0, 0, 0, 0, 0, 0, 0]);
            out.extend_from_slice(&time.0.to_le_bytes());
        }
        Record::Ended { datacenter, whole, failed, everywhere } => {
            out.push(ENDED);
            out.extend_from_slice(&end_prefix(*datacenter, *everywhere, *failed));
            out.extend_from_slice(&whole.0.to_le_bytes());
        }
        Record::Lost { datacenter, whole, doubtful, failed } => {
            out.push(LOST);
            out.extend_from_slice(&end_prefix(*datacenter, false, *failed));
            out.extend_from_slice(&whole.0.to_le_bytes());
            out.extend_from_slice(&doubtful.0.to_le_bytes());
        }
        Record::Retiring { datacenter } => {
            out.push(RETIRING);
            out.extend_from_slice(&[datacenter.0, 0, 0, 0, 0, 0, 0, 0]);
        }
        Record::HomeMoved { moved } => {
            out.push(HOME_MOVED);
            put_moved(out, moved);
        }
        Record::Discarded { datacenter, entry } => {
            out.push(DISCARDED);
            out.extend_from_slice(&[datacenter.0, 0, 0, 0, 0, 0, 0, 0]);
            out.extend_from_slice(entry);
        }
        Record::Peer { datacenter, directory, last } => {
            out.push(PEER);
            out.extend_from_slice(&[datacenter.0, 0, 0, 0, 0, 0, 0, 0]);
            out.extend_from_slice(&directory.0.to_le_bytes());
            out.extend_from_slice(&last.0.to_le_bytes());
        }
        other => unreachable!("`encode_record` has an arm for {other:?}"),
    }
}

fn put_times(out: &mut Vec<u8>, times: &TimeVector) {
    out.push(times.len() as u8);
    times.entries().for_each(|(_, time)| out.extend_from_slice(&time.0.to_le_bytes()));
}

fn put_moved(out: &mut Vec<u8>, moved: &HomeMove) {
    let (configured, from, home) = (moved.configured.0, moved.from.0, moved.home.0);
    let (step, is_claimed) = (moved.step.number(), u8::from(moved.is_claimed));
    let streams = moved.applied.len() as u8;
    out.extend_from_slice(&[moved.keyspace.0, configured, from, home, step, is_claimed, streams, 0]);
    out.extend_from_slice(&moved.version.to_le_bytes());
    for (datacenter, position) in &moved.applied {
        out.extend_from_slice(&[datacenter.0, 0, 0, 0, 0, 0, 0, 0]);
        out.extend_from_slice(&position.0.to_le_bytes());
    }
    put_times(out, &moved.times);
    out.extend_from_slice(&moved.pattern);
}

fn read_moved(reader: &mut Reader<'_>) -> Result<HomeMove, LayoutError> {
    let keyspace = reader.keyspace()?;
    let [configured, from, home] = reader.fixed::<3>("datacenters of a home")?.map(DatacenterId);
    let number = reader.u8("step of a home")?;
    let step = HomeStep::of_number(number);
    let value = u64::from(number);
    let step = step.ok_or(LayoutError::Unknown { what: "step of a home", at: 4, value })?;
    let is_claimed = read_flag("whether a home is claimed", reader)?;
    let streams = reader.u8("streams of a home")?;
    reader.zeros::<1>("home")?;
    let version = reader.u64("version of a home")?;
    let mut applied = Vec::new();
    for _ in 0..streams {
        applied.push((read_datacenter(reader)?, Position(reader.u64("position")?)));
    }
    let times = read_times(reader)?;
    let pattern = rest(reader)?;
    Ok(HomeMove { keyspace, pattern, configured, version, from, home, step, is_claimed, applied, times })
}

fn read_times(reader: &mut Reader<'_>) -> Result<TimeVector, LayoutError> {
    let count = reader.u8("times")?;
    (0..count).map(|_| reader.u64("time").map(LogicalTime)).collect()
}

/// The first payload bytes of a record about another datacenter's stream.
pub(crate) fn received_prefix(origin: DatacenterId, incarnation: Incarnation) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[0] = origin.0;
    bytes[2..4].copy_from_slice(&incarnation.0.to_le_bytes());
    bytes
}

fn put_u32(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(&length_u32(length).to_le_bytes());
}

fn put_part(out: &mut Vec<u8>, part: &Part) {
    out.extend_from_slice(&part.partition.0.to_le_bytes());
    out.extend_from_slice(&[0, 0]);
    put_u32(out, part.commands.len());
    for (place, arguments) in &part.commands {
        out.extend_from_slice(&place.to_le_bytes());
        put_u32(out, arguments.len());
        for argument in arguments {
            put_u32(out, argument.len());
            out.extend_from_slice(argument);
        }
    }
}

/// Decodes a record; entries and arguments are slices of `bytes`. The entry itself is not looked into.
pub fn decode_record(bytes: &Bytes) -> Result<Record, LayoutError> {
    let mut reader = Reader::new(bytes);
    let kind = reader.u8("record kind")?;
    let record = match kind {
        OWN => Record::Own { entry: rest(&mut reader)? },
        BEGUN => read_begun(&mut reader)?,
        PREPARED => {
            let transaction = reader.operation()?;
            let at = LogicalTime(reader.u64("time")?);
            let keyspace = reader.keyspace()?;
            reader.zeros::<3>("prepared record")?;
            Record::Prepared { transaction, keyspace, at, part: read_part(&mut reader)? }
        }
        DECIDED => {
            let transaction = reader.operation()?;
            let at = LogicalTime(reader.u64("time")?);
            let entry = rest(&mut reader)?;
            Record::Decided { transaction, at, entry: (!entry.is_empty()).then_some(entry) }
        }
        COMPLETED => Record::Completed { transaction: reader.operation()? },
        RECEIVED => {
            let (origin, incarnation) = read_stream(&mut reader)?;
            Record::Received { origin, incarnation, entry: rest(&mut reader)? }
        }
        APPLIED => {
            let (origin, incarnation) = read_stream(&mut reader)?;
            let position = Position(reader.u64("position")?);
            Record::Applied { origin, incarnation, position, at: LogicalTime(reader.u64("time")?) }
        }
        TIMES => Record::Times { received: read_times(&mut reader)?, stable: read_times(&mut reader)? },
        DEAD => {
            let datacenter = read_datacenter(&mut reader)?;
            Record::Dead { datacenter, time: LogicalTime(reader.u64("time")?) }
        }
        ENDED => {
            let datacenter = DatacenterId(reader.u8("datacenter")?);
            let everywhere = read_flag("whether the end is everywhere", &mut reader)?;
            let failed = read_failed(&mut reader)?;
            Record::Ended { datacenter, whole: LogicalTime(reader.u64("time")?), failed, everywhere }
        }
        LOST => {
            let datacenter = DatacenterId(reader.u8("datacenter")?);
            reader.zeros::<1>("lost record")?;
            let (failed, whole) = (read_failed(&mut reader)?, LogicalTime(reader.u64("time")?));
            Record::Lost { datacenter, whole, doubtful: LogicalTime(reader.u64("time")?), failed }
        }
        RETIRING => Record::Retiring { datacenter: read_datacenter(&mut reader)? },
        HOME_MOVED => Record::HomeMoved { moved: read_moved(&mut reader)? },
        DISCARDED => {
            let datacenter = read_datacenter(&mut reader)?;
            Record::Discarded { datacenter, entry: rest(&mut reader)? }
        }
        PEER => {
            let datacenter = read_datacenter(&mut reader)?;
            let (low, high) = (reader.u64("directory")?, reader.u64("directory")?);
            let directory = DirectoryId(u128::from(high) << 64 | u128::from(low));
            Record::Peer { datacenter, directory, last: LogicalTime(reader.u64("time")?) }
        }
        REBUILT => {
            let keyspace = reader.keyspace()?;
            reader.zeros::<7>("rebuilt record")?;
            Record::Rebuilt { keyspace, rebuilt: rest(&mut reader)? }
        }
        CLOCK_BOUND => Record::ClockBound { bound: LogicalTime(reader.u64("clock bound")?) },
        _ => return Err(LayoutError::Unknown { what: "record kind", at: 0, value: u64::from(kind) }),
    };
    reader.finish("record")?;
    Ok(record)
}

fn read_datacenter(reader: &mut Reader) -> Result<DatacenterId, LayoutError> {
    let datacenter = DatacenterId(reader.u8("datacenter")?);
    reader.zeros::<7>("datacenter")?;
    Ok(datacenter)
}

/// What opens a record about the end of a dead datacenter's stream.
fn end_prefix(datacenter: DatacenterId, everywhere: bool, failed: DatacenterSet) -> [u8; 8] {
    let [low, high] = failed.0.to_le_bytes();
    [datacenter.0, u8::from(everywhere), low, high, 0, 0, 0, 0]
}

fn read_flag(what: &'static str, reader: &mut Reader) -> Result<bool, LayoutError> {
    let at = reader.at();
    match reader.u8(what)? {
        value @ 0..=1 => Ok(value == 1),
        value => Err(LayoutError::Unknown { what, at, value: u64::from(value) }),
    }
}

fn read_failed(reader: &mut Reader) -> Result<DatacenterSet, LayoutError> {
    let failed = DatacenterSet(reader.u16("failed datacenters")?);
    reader.zeros::<4>("failed datacenters")?;
    Ok(failed)
}

fn rest(reader: &mut Reader) -> Result<Bytes, LayoutError> {
    let length = u32::try_from(reader.left()).unwrap_or(u32::MAX);
    reader.slice("entry", length)
}

fn read_stream(reader: &mut Reader) -> Result<(DatacenterId, Incarnation), LayoutError> {
    let origin = DatacenterId(reader.u8("origin")?);
    reader.zeros::<1>("stream")?;
    let incarnation = Incarnation(reader.u16("incarnation")?);
    reader.zeros::<4>("stream")?;
    Ok((origin, incarnation))
}

fn read_begun(reader: &mut Reader) -> Result<Record, LayoutError> {
    let number = reader.u64("number of the transaction")?;
    let keyspace = reader.keyspace()?;
    reader.zeros::<3>("begun record")?;
    let context_bytes = reader.u32("context bytes")?;
    let part_count = reader.u32("parts")?;
    let context = reader.causes("context", context_bytes)?;
    let part_count = reader.count("parts", part_count, PART_BYTES_MIN)?;
    let mut parts = Vec::with_capacity(part_count);
    for _ in 0..part_count {
        parts.push(read_part(reader)?);
    }
    Ok(Record::Begun { number, keyspace, context, parts })
}

fn read_part(reader: &mut Reader) -> Result<Part, LayoutError> {
    let partition = PartitionId(reader.u16("partition of a part")?);
    reader.zeros::<2>("part")?;
    let command_count = reader.u32("commands")?;
    let command_count = reader.count("commands", command_count, COMMAND_BYTES_MIN)?;
    let mut commands = Vec::with_capacity(command_count);
    for _ in 0..command_count {
        let place = reader.u32("place of a command")?;
        let argument_count = reader.u32("arguments")?;
        let argument_count = reader.count("arguments", argument_count, ARGUMENT_BYTES_MIN)?;
        let mut arguments = Vec::with_capacity(argument_count);
        for _ in 0..argument_count {
            let length = reader.u32("argument bytes")?;
            arguments.push(reader.slice("argument", length)?);
        }
        commands.push((place, arguments));
    }
    Ok(Part { partition, commands })
}
