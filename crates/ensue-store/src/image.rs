//! What a checkpoint keeps of a partition: its counters in one item, and its rows as the effects that made them.
//!
//! A row is kept as effects, one item a base value and one an addition, because merging effects is what brings a row
//! back, and merging one twice does no harm: a checkpoint may therefore be taken while writes go on, and the log since
//! its beginning is merged on top. Of a location with versions, the settled state is kept like a row without any, and
//! each version by itself: a restart must not show to a reader what was hidden from it, nor the other way. Of a
//! location with siblings, each is an effect, and the newest carries what all of them have replaced.
//!
//! ```text
//! kind 0, the partition, little endian: clock u64 | position u64 | begun u64 |
//!     streams u8, each: datacenter u8, applied incarnation u16, watermark u64, above u32 count, u64 each,
//!                       received incarnation u16, received u64 |
//!     keyspaces u8, each: flushed stamp, collected stamp (each u64, u8, u16) |
//!     for each stream, since format 2, what was declared lost: u16 count, each: after u64, through u64 |
//!     for each keyspace, since format 4: forgotten stamp
//! kind 1, an effect that every reader sees: since u64 | an entry with one effect, whose `transaction` is the
//!     operation's own name, and whose dependencies are those of the write if its keyspace keeps versions
//! kind 2, a version: the same
//! kind 3, a flush that not every reader sees: the same, without effects; before all effects
//! kind 4, what every reader must see, since format 2: keyspace u8 | bytes of its protocol
//! kind 5, a record of the log that counts for ever, since format 3
//! kind 6, the states of a branching keyspace, and kind 7, one of its keys: keyspace u8 | its own bytes
//! kind 8, an effect that every reader sees, whose write carries nothing that need be known, since format 9: as kind 1
//! ```

use crate::cell::{Base, Cell, State, Write};
use crate::entry::{Change, Entry};
use crate::layout::{self, LayoutError};
use crate::record::Record;
use bytes::{Buf, BufMut, Bytes};
use ensue_types::{
    Causes, Column, DatacenterId, Effect, Incarnation, KeyspaceId, LogicalTime, Observed, OperationId,
    PartitionId, Position, Previous, RowEffect, Rule, Seen, Source, Stamp, TimeVector, limits,
};

/// The kind of item that holds `PartitionImage`.
pub const PARTITION: u8 = 0;
/// The kind of item that holds one effect that every reader sees.
pub const EFFECT: u8 = 1;
/// The kind of item that holds one effect that is not settled.
pub const VERSION: u8 = 2;
/// The kind of item that holds a flush that is not settled.
pub const FLUSH: u8 = 3;

/// The kind of item that holds what every reader of a keyspace must see.
pub const FLOOR: u8 = 4;

/// The kind of item that holds a record of the log that counts for ever.
pub const RECORD: u8 = 5;

/// The kind of item that holds the states of a branching keyspace.
pub const BRANCH_STATES: u8 = 6;
/// The kind of item that holds a key of a branching keyspace.
pub const BRANCH_KEY: u8 = 7;

/// The kind of item that holds one effect that every reader sees, whose write carries nothing that need be known.
pub const BARE_EFFECT: u8 = 8;

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
    /// Of each keyspace.
    pub bounds: Vec<Bounds>,
}

/// The highest stamps of what a keyspace no longer holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Base values below it were flushed.
    pub flushed: Stamp,
    /// Of a counter's tombstone that was collected.
    pub collected: Stamp,
    /// Of anything that was collected: a write that replaced it says so by this (`Previous`), before a restart and
    /// after.
    pub forgotten: Stamp,
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
        }
        out.put_u8(self.bounds.len() as u8);
        for bounds in &self.bounds {
            put_stamp(bounds.flushed, &mut out);
            put_stamp(bounds.collected, &mut out);
        }
        for stream in &self.streams {
            out.put_u16_le(stream.lost.len() as u16);
            for (after, through) in &stream.lost {
                out.put_u64_le(after.0);
                out.put_u64_le(through.0);
            }
        }
        self.bounds.iter().for_each(|bounds| put_stamp(bounds.forgotten, &mut out));
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
            streams.push(StreamImage {
                datacenter,
                applied_incarnation,
                watermark,
                above,
                received_incarnation,
                received,
                lost: Vec::new(),
            });
        }
        let mut bounds = Vec::new();
        for _ in 0..from.try_get_u8()? {
            let (flushed, collected) = (read_stamp(from)?, read_stamp(from)?);
            bounds.push(Bounds { flushed, collected, forgotten: Stamp::ZERO });
        }
        // Format 1 ends here.
        let records_losses = !from.is_empty();
        for stream in streams.iter_mut().filter(|_| records_losses) {
            for _ in 0..from.try_get_u16_le()? {
                let (after, through) = (from.try_get_u64_le()?, from.try_get_u64_le()?);
                stream.lost.push((Position(after), Position(through)));
            }
        }
        // Formats 2 and 3 end here.
        let records_trimmed = !from.is_empty();
        for bounds in bounds.iter_mut().filter(|_| records_trimmed) {
            bounds.forgotten = read_stamp(from)?;
        }
        Ok(PartitionImage { clock, position, begun, streams, bounds })
    }
}

fn put_stamp(stamp: Stamp, out: &mut Vec<u8>) {
    out.put_u64_le(stamp.time.0);
    out.put_u8(stamp.datacenter.0);
    out.put_u16_le(stamp.partition.0);
}

fn read_stamp(from: &mut Bytes) -> Result<Stamp, bytes::TryGetError> {
    let time = LogicalTime(from.try_get_u64_le()?);
    let datacenter = DatacenterId(from.try_get_u8()?);
    Ok(Stamp { time, datacenter, partition: PartitionId(from.try_get_u16_le()?) })
}

/// The items that bring one column back, each with its kind. Flushes among its versions have an item for all rows.
pub fn column_items(keyspace: KeyspaceId, key: &Bytes, column: &Column, cell: &Cell) -> Vec<(u8, Vec<u8>)> {
    let item = |kind, since, source: Source, effect, previous| {
        let kind = if kind == EFFECT && source.dependencies.is_none() { BARE_EFFECT } else { kind };
        let change = RowEffect { key: key.clone(), column: column.clone(), effect };
        (kind, item(since, keyspace, source, vec![change], previous))
    };
    let Some(versions) = cell.versions() else {
        let (since, state) = (cell.since(), cell.state());
        let siblings = state.siblings().iter().filter(|_| Rule::CheckpointHoldsSiblings.holds());
        let siblings = siblings.map(|one| (one.base.source(), base_effect(&one.base, &one.seen), None));
        let newest = state_effects(state).map(|(source, effect)| {
            // Whoever replaced it, and whatever else it replaced, is known by the newest.
            let replaced = state.replaced().filter(|_| effect.is_base());
            (source, effect, replaced)
        });
        return siblings
            .chain(newest)
            .map(|(source, effect, previous)| item(EFFECT, since, source, effect, previous))
            .collect();
    };
    let (settled, since) = versions.settled();
    let settled = state_effects(settled).map(|(source, effect)| item(EFFECT, since, source, effect, None));
    let effects = versions.unsettled().filter_map(|version| Some((version, version.effect.clone()?)));
    let versions =
        effects.map(|(version, effect)| item(VERSION, version.at, version.source.clone(), effect, None));
    settled.chain(versions).collect()
}

/// The item that brings a flush back.
pub fn flush_item(keyspace: KeyspaceId, flush: &Write) -> Vec<u8> {
    item(flush.at, keyspace, flush.source(), Vec::new(), None)
}

/// The item that keeps a record for ever.
pub fn record_item(record: &Record) -> Vec<u8> {
    let mut out = Vec::new();
    layout::encode_record(record, &mut out);
    out
}

/// The item that brings back what every reader must see. It stands behind the rows that were settled by it.
pub fn floor_item(keyspace: KeyspaceId, floor: &TimeVector) -> Vec<u8> {
    let times = floor.entries().flat_map(|(_, time)| time.0.to_le_bytes());
    std::iter::once(keyspace.0).chain(times).collect()
}

/// Reads an item of the kind `FLOOR`.
pub fn decode_floor(bytes: &Bytes) -> Result<(KeyspaceId, TimeVector), LayoutError> {
    let mut from = bytes.clone();
    let number = from.try_get_u8().unwrap_or(limits::KEYSPACES);
    if number >= limits::KEYSPACES || from.len() % 8 != 0 {
        return Err(LayoutError::Unknown { what: "floor image", at: 0, value: 0 });
    }
    let floor = std::iter::from_fn(|| from.try_get_u64_le().ok()).map(LogicalTime).collect();
    Ok((KeyspaceId(number), floor))
}

fn state_effects(state: &State) -> impl Iterator<Item = (Source, Effect)> + '_ {
    let base = state.stands().then(|| {
        let none = Seen::new();
        let seen = state.counter.as_ref().map_or(&none, |counter| &counter.seen);
        (state.base.source(), base_effect(&state.base, seen))
    });
    let undominated =
        state.undominated().iter().map(|one| (one.base.source(), base_effect(&one.base, &one.seen)));
    let additions = state.counter.iter().flat_map(|counter| &counter.additions);
    let added = additions.map(|addition| (addition.source(), Effect::Add { epoch_sum: addition.epoch_sum }));
    // A removal comes before what its own write has put behind it.
    removal_effects(state).chain(undominated).chain(base).chain(added)
}

/// What removals had observed, as the newest of them; of the others, that they were.
fn removal_effects(state: &State) -> impl Iterator<Item = (Source, Effect)> + '_ {
    let removed = state.removed().and_then(|(by, observed, seen)| Some((by.split_last()?, observed, seen)));
    removed.into_iter().flat_map(|((newest, others), observed, seen)| {
        let all = Effect::Remove { observed: observed.clone(), seen: seen.clone() };
        let nothing = Effect::Remove { observed: Observed::default(), seen: Seen::new() };
        let others = others.iter().map(move |by| (by.clone(), nothing.clone()));
        others.chain([(newest.clone(), all)])
    })
}

fn base_effect(base: &Base, seen: &Seen) -> Effect {
    let seen = seen.clone();
    match &base.value {
        Some(value) => Effect::Put { value: value.clone(), seen, over: None },
        None => Effect::Delete { seen },
    }
}

fn item(
    since: LogicalTime,
    keyspace: KeyspaceId,
    source: Source,
    effects: Vec<RowEffect>,
    previous: Option<Previous>,
) -> Vec<u8> {
    let mut out = since.0.to_le_bytes().to_vec();
    let (operation, stamp, dependencies) = (source.operation, source.stamp, source.carried().clone());
    let change = Change::Effects { keyspace, transaction: Some(operation), effects };
    let entry = Entry {
        position: operation.position,
        stamp,
        dependencies,
        change,
        previous: Vec::from_iter(previous),
    };
    layout::encode_entry_into(&mut out, &entry);
    out
}

/// A write as an item had it: with the time since which it had been visible, and the operation that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteImage {
    pub since: LogicalTime,
    pub keyspace: KeyspaceId,
    pub stamp: Stamp,
    pub operation: OperationId,
    pub dependencies: Causes,
    /// Nothing for a flush.
    pub change: Option<RowEffect>,
    /// What had been replaced at its place, in keyspaces that keep it.
    pub previous: Option<Previous>,
}

/// Reads an item of the kind `EFFECT`, `BARE_EFFECT`, `VERSION` or `FLUSH`.
pub fn decode_write(kind: u8, bytes: &Bytes) -> Result<WriteImage, LayoutError> {
    let wrong = LayoutError::Unknown { what: "write image", at: 0, value: 0 };
    let mut from = bytes.clone();
    let since = LogicalTime(from.try_get_u64_le().map_err(|_| wrong.clone())?);
    let Entry { stamp, dependencies, change, mut previous, .. } = layout::decode_entry(&from)?;
    let Change::Effects { keyspace, transaction: Some(operation), mut effects } = change else {
        return Err(wrong);
    };
    let change = effects.pop();
    if !effects.is_empty() || change.is_none() != (kind == FLUSH) {
        return Err(wrong);
    }
    let previous = previous.pop();
    Ok(WriteImage { since, keyspace, stamp, operation, dependencies, change, previous })
}

/// Whether an item that another datacenter sent can be read back as what it says it is.
pub fn check_item(kind: u8, bytes: &Bytes) -> Result<(), LayoutError> {
    match kind {
        PARTITION => PartitionImage::decode(bytes).map(|_| ()),
        EFFECT | BARE_EFFECT | VERSION | FLUSH => decode_write(kind, bytes).map(|_| ()),
        FLOOR => decode_floor(bytes).map(|_| ()),
        RECORD => layout::decode_record(bytes).map(|_| ()),
        BRANCH_STATES | BRANCH_KEY => Ok(()),
        _ => Err(LayoutError::Unknown { what: "kind of item", at: 0, value: u64::from(kind) }),
    }
}

#[cfg(test)]
mod tests;
