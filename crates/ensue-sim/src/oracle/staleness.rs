//! Which reads were stale: a newer version had been received at the partition and was not returned.
//!
//! Ground truth, beside what clients can know: the stamps of writes, and when each datacenter said that it had received
//! them, are taken from what partitions send each other. So a version counts as received a little later than it was.
//! Only strings are looked at that nobody deletes (`r0`, `r1`, …), and only `GET`s of one of them.

use crate::oracle::history::{History, Location, OperationIndex, Outcome, Seen};
use crate::oracle::values::writer_of;
use crate::oracle::{Violation, property};
use ensue_store::entry::Change;
use ensue_store::layout::decode_entry;
use ensue_types::{
    Column, DatacenterId, Effect, Incarnation, KeyspaceId, LogicalTime, PartitionId, Position, RowEffect,
    Stamp,
};
use ensue_wire::message::{Address, Envelope, Message};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A stream: the partition, its datacenter and its incarnation.
type Stream = (DatacenterId, PartitionId, Incarnation);

/// A write that was sent.
#[derive(Clone, Debug)]
struct Sent {
    key: String,
    writer: OperationIndex,
    stamp: Stamp,
}

impl Sent {
    /// Whether this is the write, at whatever time.
    fn is_in(&self, change: &Change) -> bool {
        let Change::Effects { effects, .. } = change else { return false };
        effects.iter().any(|row| match &row.effect {
            Effect::Put { value, .. } => {
                row.key == self.key.as_bytes()
                    && std::str::from_utf8(value).ok().and_then(writer_of) == Some(self.writer)
            }
            _ => false,
        })
    }
}

/// What partitions have sent each other.
#[derive(Debug, Default)]
pub struct Staleness {
    sent: BTreeMap<(Stream, Position), Sent>,
    stamps: BTreeMap<(String, OperationIndex), Stamp>,
    /// For each receiver and stream, what was acknowledged last.
    acknowledged: BTreeMap<(DatacenterId, Stream), Position>,
    /// For each datacenter and key when which stamp had been received, in the order of time.
    received: BTreeMap<(DatacenterId, String), Vec<(u64, Stamp)>>,
}

/// Reads that were looked at, and how many of them were stale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StaleReads {
    pub reads: u64,
    pub stale: u64,
}

impl StaleReads {
    pub fn add(&mut self, other: StaleReads) {
        self.reads += other.reads;
        self.stale += other.stale;
    }
}

impl fmt::Display for StaleReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.stale, self.reads)
    }
}

impl Staleness {
    /// A partition says something to another datacenter.
    pub fn on_send(&mut self, now_us: u64, envelope: &Envelope) {
        let Address::Partition { datacenter: speaker, partition } = envelope.from else { return };
        match &envelope.message {
            Message::StreamEntries { incarnation, first, entries } => {
                for (number, bytes) in entries.iter().enumerate() {
                    let position = Position(first.0 + number as u64);
                    let place = ((speaker, partition, *incarnation), position);
                    let Ok(entry) = decode_entry(bytes) else { continue };
                    match self.sent.get(&place) {
                        Some(sent) if sent.stamp == entry.stamp || sent.is_in(&entry.change) => continue,
                        // A datacenter that runs on an old copy writes at the same places again (seed 19 of cops-gt,
                        // losing directories): who acknowledges them from now on has these.
                        Some(_) => drop(self.sent.remove(&place)),
                        None => {}
                    }
                    if let Change::Effects { keyspace: KeyspaceId(0), transaction: None, effects } =
                        entry.change
                    {
                        effects.iter().for_each(|effect| self.remember(place, entry.stamp, effect));
                    }
                }
            }
            Message::StreamAcknowledge(acknowledge) => {
                let origin = envelope.to.datacenter();
                let stream = (origin, partition, acknowledge.incarnation);
                self.acknowledge(now_us, speaker, stream, acknowledge.received);
            }
            _ => {}
        }
    }

    fn remember(&mut self, place: (Stream, Position), stamp: Stamp, row: &RowEffect) {
        let (Column::Text, Effect::Put { value, .. }) = (&row.column, &row.effect) else { return };
        let (Ok(key), Ok(value)) = (std::str::from_utf8(&row.key), std::str::from_utf8(value)) else {
            return;
        };
        if let Some(writer) = writer_of(value).filter(|_| is_watched(key)) {
            self.stamps.insert((key.to_owned(), writer), stamp);
            self.sent.insert(place, Sent { key: key.to_owned(), writer, stamp });
        }
    }

    fn acknowledge(&mut self, now_us: u64, receiver: DatacenterId, stream: Stream, received: Position) {
        let before = self.acknowledged.entry((receiver, stream)).or_insert(Position(0));
        if received <= *before {
            return;
        }
        let new = self.sent.range((stream, Position(before.0 + 1))..=(stream, received));
        for (_, Sent { key, stamp, .. }) in new {
            self.received.entry((receiver, key.clone())).or_default().push((now_us, *stamp));
        }
        *before = received;
    }

    /// A datacenter was given other times. What it had sent beyond the bound nobody has taken; it is sent again with
    /// its new times.
    pub fn forget_times_beyond(&mut self, datacenter: DatacenterId, bound: LogicalTime) {
        self.sent.retain(|(stream, _), sent| stream.0 != datacenter || sent.stamp.time <= bound);
        self.stamps.retain(|_, stamp| stamp.datacenter != datacenter || stamp.time <= bound);
    }

    /// Looks at all reads. If the protocol shows what it has received, none may be stale.
    pub fn judge(&self, history: &History) -> Result<StaleReads, Violation> {
        let mut count = StaleReads::default();
        for (index, operation) in history.operations.iter().enumerate() {
            let (Outcome::Done, [(location, seen)], []) =
                (operation.outcome, &operation.reads[..], &operation.writes[..])
            else {
                continue;
            };
            let Some(returned) = self.returned(history, *location, *seen) else { continue };
            let key = (operation.datacenter, history.name(*location).to_owned());
            let received = self.received.get(&key).map(Vec::as_slice).unwrap_or_default();
            let before = received.iter().take_while(|(at_us, _)| *at_us < operation.invoked_us);
            count.reads += 1;
            let Some((_, newer)) =
                before.filter(|(_, stamp)| *stamp > returned).max_by_key(|(_, stamp)| *stamp)
            else {
                continue;
            };
            count.stale += 1;
            // What was received may be lost with the power, here and at its origin.
            let kept = history.power_losses.is_empty() && history.discarded.is_empty();
            if operation.recent && history.promises.shows_received && kept {
                let words = format!(
                    "read      {}\nreturned  {returned:?}\nreceived  {newer:?}",
                    history.describe(index)
                );
                return Err(Violation::new(property::STALE_READ, words));
            }
        }
        Ok(count)
    }

    /// Writes that another datacenter has acknowledged receiving, and that this one has not lost since, with the power
    /// or with its directories: from there they come back.
    pub fn kept(&self, history: &History) -> BTreeSet<(OperationIndex, Location)> {
        let mut writers: BTreeMap<(&str, Stamp), OperationIndex> = BTreeMap::new();
        for ((key, writer), stamp) in &self.stamps {
            writers.insert((key, *stamp), *writer);
        }
        let mut kept = BTreeSet::new();
        for ((receiver, key), received) in &self.received {
            let Some(location) = history.place(key).filter(|_| !history.dead.contains(receiver)) else {
                continue;
            };
            let partition = history.partition_of(location);
            let losses = history.power_losses.iter();
            let lost_us = losses
                .filter(|loss| loss.datacenter == *receiver && loss.partition == partition)
                .map(|loss| loss.at_us)
                .max();
            let stayed = received.iter().filter(|(at_us, _)| lost_us.is_none_or(|lost_us| *at_us > lost_us));
            let writers = stayed.filter_map(|(_, stamp)| writers.get(&(key.as_str(), *stamp)));
            kept.extend(writers.map(|writer| (*writer, location)));
        }
        kept
    }

    /// The stamp of what a read returned; nothing if it is not known, or the place is none that is looked at.
    fn returned(&self, history: &History, location: Location, seen: Seen) -> Option<Stamp> {
        let key = history.name(location);
        match seen {
            Seen::Nothing if is_watched(key) => Some(Stamp::ZERO),
            Seen::Value(writer) => self.stamps.get(&(key.to_owned(), writer)).copied(),
            _ => None,
        }
    }
}

/// Whether a key is one of the strings that nobody deletes.
fn is_watched(key: &str) -> bool {
    key.strip_prefix('r').is_some_and(|number| number.parse::<u64>().is_ok())
}

#[cfg(test)]
mod tests;
