//! What a checkpoint keeps of a partition: its counters in one item, and its rows as the effects that made them.
//!
//! A row is kept as effects, one item a base value and one an addition, because merging effects is what brings a row
//! back, and merging one twice does no harm: a checkpoint may therefore be taken while writes go on, and the log since
//! its beginning is merged on top.
//!
//! ```text
//! kind 0, the partition, little endian: clock u64 | position u64 | begun u64 |
//!     streams u8, each: datacenter u8, applied incarnation u16, watermark u64, above u32 count, u64 each,
//!                       received incarnation u16, received u64, lost u16 count, each: after u64, through u64 |
//!     keyspaces u8, each: flushed stamp, collected stamp (each u64, u8, u16)
//! kind 1, an effect: since u64 | an entry with one effect, whose `transaction` is the operation's own name
//! ```

use crate::cell::Cell;
use crate::entry::{Change, Entry};
use crate::layout::{self, LayoutError};
use bytes::{Buf, BufMut, Bytes};
use ensue_types::{
    Column, DatacenterId, Effect, Incarnation, KeyspaceId, LogicalTime, Opaque, OperationId, PartitionId,
    Position, RowEffect, Stamp,
};

/// The kind of item that holds `PartitionImage`.
pub const PARTITION: u8 = 0;
/// The kind of item that holds one effect.
pub const EFFECT: u8 = 1;

/// What has been received and applied of one datacenter's stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamImage {
    pub datacenter: DatacenterId,
    pub applied_incarnation: Incarnation,
    pub watermark: Position,
    pub above: Vec<Position>,
    pub received_incarnation: Incarnation,
    pub received: Position,
    /// What was declared lost: each from after the first place up to and with the second.
    pub lost: Vec<(Position, Position)>,
}

/// A partition apart from its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionImage {
    pub clock: LogicalTime,
    pub position: Position,
    /// Local transactions begun in this incarnation.
    pub begun: u64,
    pub streams: Vec<StreamImage>,
    /// For each keyspace the stamp below which base values were flushed, and the highest stamp of a counter's tombstone
    /// that was collected.
    pub bounds: Vec<(Stamp, Stamp)>,
}

impl PartitionImage {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_u64_le(self.clock.0);
        out.put_u64_le(self.position.0);
        out.put_u64_le(self.begun);
        out.put_u8(self.streams.len() as u8);
        for stream in &self.streams {
            out.put_u8(stream.datacenter.0);
            out.put_u16_le(stream.applied_incarnation.0);
            out.put_u64_le(stream.watermark.0);
            out.put_u32_le(stream.above.len() as u32);
            stream.above.iter().for_each(|position| out.put_u64_le(position.0));
            out.put_u16_le(stream.received_incarnation.0);
            out.put_u64_le(stream.received.0);
            out.put_u16_le(stream.lost.len() as u16);
            for (after, through) in &stream.lost {
                out.put_u64_le(after.0);
                out.put_u64_le(through.0);
            }
        }
        out.put_u8(self.bounds.len() as u8);
        for stamp in self.bounds.iter().flat_map(|(flushed, collected)| [flushed, collected]) {
            out.put_u64_le(stamp.time.0);
            out.put_u8(stamp.datacenter.0);
            out.put_u16_le(stamp.partition.0);
        }
        out
    }

    pub fn decode(bytes: &Bytes) -> Result<PartitionImage, LayoutError> {
        let mut from = bytes.clone();
        let image = Self::read(&mut from).ok();
        image.filter(|_| from.is_empty()).ok_or(LayoutError::Unknown {
            what: "partition image",
            at: 0,
            value: 0,
        })
    }

    fn read(from: &mut Bytes) -> Result<PartitionImage, bytes::TryGetError> {
        let clock = LogicalTime(from.try_get_u64_le()?);
        let position = Position(from.try_get_u64_le()?);
        let begun = from.try_get_u64_le()?;
        let mut streams = Vec::new();
        for _ in 0..from.try_get_u8()? {
            let datacenter = DatacenterId(from.try_get_u8()?);
            let applied_incarnation = Incarnation(from.try_get_u16_le()?);
            let watermark = Position(from.try_get_u64_le()?);
            let mut above = Vec::new();
            for _ in 0..from.try_get_u32_le()? {
                above.push(Position(from.try_get_u64_le()?));
            }
            let received_incarnation = Incarnation(from.try_get_u16_le()?);
            let received = Position(from.try_get_u64_le()?);
            let mut lost = Vec::new();
            for _ in 0..from.try_get_u16_le()? {
                lost.push((Position(from.try_get_u64_le()?), Position(from.try_get_u64_le()?)));
            }
            streams.push(StreamImage {
                datacenter,
                applied_incarnation,
                watermark,
                above,
                received_incarnation,
                received,
                lost,
            });
        }
        let mut bounds = Vec::new();
        for _ in 0..from.try_get_u8()? {
            bounds.push((read_stamp(from)?, read_stamp(from)?));
        }
        Ok(PartitionImage { clock, position, begun, streams, bounds })
    }
}

fn read_stamp(from: &mut Bytes) -> Result<Stamp, bytes::TryGetError> {
    let time = LogicalTime(from.try_get_u64_le()?);
    let datacenter = DatacenterId(from.try_get_u8()?);
    Ok(Stamp { time, datacenter, partition: PartitionId(from.try_get_u16_le()?) })
}

/// The items that bring one column back.
pub fn column_items(keyspace: KeyspaceId, key: &Bytes, column: &Column, cell: &Cell) -> Vec<Vec<u8>> {
    let state = cell.state();
    let mut items = Vec::new();
    if state.base.stamp != Stamp::ZERO {
        let seen = state.counter.as_ref().map(|counter| counter.seen.clone()).unwrap_or_default();
        let effect = match &state.base.value {
            Some(value) => Effect::Put { value: value.clone(), seen },
            None => Effect::Delete { seen },
        };
        let change = RowEffect { key: key.clone(), column: column.clone(), effect };
        items.push(item(cell.since(), keyspace, state.base.stamp, state.base.operation, change));
    }
    for addition in state.counter.iter().flat_map(|counter| &counter.additions) {
        let effect = Effect::Add { tally: addition.tally };
        let change = RowEffect { key: key.clone(), column: column.clone(), effect };
        items.push(item(cell.since(), keyspace, addition.stamp, addition.operation, change));
    }
    items
}

fn item(
    since: LogicalTime,
    keyspace: KeyspaceId,
    stamp: Stamp,
    operation: OperationId,
    change: RowEffect,
) -> Vec<u8> {
    let mut out = since.0.to_le_bytes().to_vec();
    let change = Change::Effects { keyspace, transaction: Some(operation), effects: vec![change] };
    let entry = Entry { position: operation.position, stamp, dependencies: Opaque::default(), change };
    layout::encode_entry_into(&mut out, &entry);
    out
}

/// An effect as an item had it, with the time since which it had been visible, and the operation that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectImage {
    pub since: LogicalTime,
    pub keyspace: KeyspaceId,
    pub stamp: Stamp,
    pub operation: OperationId,
    pub change: RowEffect,
}

/// Reads an item of kind `EFFECT`.
pub fn decode_effect(bytes: &Bytes) -> Result<EffectImage, LayoutError> {
    let wrong = LayoutError::Unknown { what: "effect image", at: 0, value: 0 };
    let mut from = bytes.clone();
    let since = LogicalTime(from.try_get_u64_le().map_err(|_| wrong.clone())?);
    let entry = layout::decode_entry(&from)?;
    let stamp = entry.stamp;
    match entry.change {
        Change::Effects { keyspace, transaction: Some(operation), mut effects } if effects.len() == 1 => {
            Ok(EffectImage { since, keyspace, stamp, operation, change: effects.remove(0) })
        }
        _ => Err(wrong),
    }
}
