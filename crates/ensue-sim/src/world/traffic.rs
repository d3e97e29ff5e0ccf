//! What passes between nodes: how much of it is about dependencies and times, what updates carry, and when each of them
//! is where.

use ensue_store::entry::{Change, Entry};
use ensue_store::layout::{decode_entry, previous_bytes};
use ensue_types::{Causes, DatacenterId, Effect, PartitionId, Position, RowEffect, Stamp};
use ensue_wire::{Address, Envelope, Message, codec};
use std::collections::BTreeMap;
use std::fmt;

/// A key: one of those that everybody uses, or that of one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Shared(u64),
    Own(u64),
}

impl Key {
    pub fn parse(key: &[u8]) -> Option<Key> {
        let (kind, number) = std::str::from_utf8(key).ok()?.split_at_checked(1)?;
        let number = number.parse().ok()?;
        match kind {
            "k" => Some(Key::Shared(number)),
            "w" => Some(Key::Own(number)),
            _ => None,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Shared(number) => write!(f, "k{number}"),
            Key::Own(number) => write!(f, "w{number}"),
        }
    }
}

/// Writes are counted over all clients; the value begins with the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriteNumber(pub u64);

impl WriteNumber {
    pub fn parse(value: &[u8]) -> Option<WriteNumber> {
        let text = std::str::from_utf8(value).ok()?;
        text.split('.').next()?.parse().ok().map(WriteNumber)
    }

    /// The value that it writes, of so many bytes unless the number alone has more.
    pub fn value(self, bytes: usize) -> String {
        format!("{:.<bytes$}", self.0)
    }
}

/// How many messages there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    pub within: u64,
    /// From one datacenter to another.
    pub between: u64,
}

impl Messages {
    fn add(&mut self, envelope: &Envelope) {
        if envelope.from.datacenter() == envelope.to.datacenter() {
            self.within += 1;
        } else {
            self.between += 1;
        }
    }
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Questions whether something has been applied, and their answers.
    pub checks: Messages,
    /// Of these, the questions.
    pub questions: u64,
    /// What is said of times alone: heartbeats, and what partitions agree on.
    pub times: Messages,
    /// Everything.
    pub all: Messages,
    /// Updates, each counted once however many datacenters it goes to.
    pub updates: u64,
    /// The entries of updates, whole.
    pub update_bytes: u64,
    /// Everything that passes between datacenters, and what is said of times alone, as frames.
    pub between_bytes: u64,
    pub time_bytes: u64,
    pub dependency_bytes: u64,
    /// What says which version each update replaced, where it is asked for.
    pub previous_bytes: u64,
    /// Of updates whose dependencies are a list.
    pub lists: u64,
    pub dependencies: u64,
}

/// Where an update stands in its stream.
type Place = (DatacenterId, PartitionId, Position);

/// How many dependencies a write carries, if they are a list.
fn dependencies(entry: &Entry) -> Option<usize> {
    match &entry.dependencies {
        Causes::Nothing => Some(0),
        Causes::Operations(set) => Some(set.len()),
        Causes::Lists(lists) => Some(lists.nearest.len() + lists.others.operations_count() as usize),
        _ => None,
    }
}

/// An update on its way.
#[derive(Clone, Copy, Debug)]
pub struct Update {
    pub key: Key,
    pub number: WriteNumber,
    pub stamp: Stamp,
}

/// Everything that passed.
#[derive(Debug, Default)]
pub struct Traffic {
    pub counts: Counts,
    is_counting: bool,
    updates: BTreeMap<Place, Update>,
    sent_us: BTreeMap<(Place, DatacenterId), u64>,
    /// How long the link took to bring an update.
    link_us: BTreeMap<(WriteNumber, DatacenterId), u64>,
    pub stamps: BTreeMap<WriteNumber, Stamp>,
    /// Which stamp a datacenter received when, in the order of time.
    pub received: BTreeMap<(DatacenterId, Key), Vec<(u64, Stamp)>>,
}

impl Traffic {
    pub fn count(&mut self, is_counting: bool) {
        self.is_counting = is_counting;
    }

    /// The update at this place, if it is known.
    pub fn update(&self, origin: DatacenterId, partition: PartitionId, position: Position) -> Option<Update> {
        self.updates.get(&(origin, partition, position)).copied()
    }

    /// How long the link took to bring this update to a datacenter.
    pub fn link_us(&self, number: WriteNumber, to: DatacenterId) -> Option<u64> {
        self.link_us.get(&(number, to)).copied()
    }

    pub fn on_send(&mut self, now_us: u64, envelope: &Envelope) {
        if self.is_counting {
            self.count_message(envelope);
        }
        for (place, bytes) in entries_of(envelope) {
            self.sent_us.entry((place, envelope.to.datacenter())).or_insert(now_us);
            if self.updates.contains_key(&place) {
                continue;
            }
            let Ok(entry) = decode_entry(bytes) else { continue };
            let Change::Effects { effects, .. } = &entry.change else { continue };
            let Some((key, number)) = effects.first().and_then(written) else { continue };
            self.updates.insert(place, Update { key, number, stamp: entry.stamp });
            self.stamps.insert(number, entry.stamp);
            if self.is_counting {
                self.counts.updates += 1;
                self.counts.update_bytes += bytes.len() as u64;
                self.counts.dependency_bytes += entry.dependencies.encoded_bytes() as u64;
                self.counts.previous_bytes += previous_bytes(&entry) as u64;
                if let Some(dependencies) = dependencies(&entry) {
                    self.counts.lists += 1;
                    self.counts.dependencies += dependencies as u64;
                }
            }
        }
    }

    pub fn on_receive(&mut self, now_us: u64, envelope: &Envelope) {
        let here = envelope.to.datacenter();
        for (place, _) in entries_of(envelope) {
            let (Some(update), Some(sent_us)) =
                (self.updates.get(&place), self.sent_us.remove(&(place, here)))
            else {
                continue;
            };
            self.received.entry((here, update.key)).or_default().push((now_us, update.stamp));
            self.link_us.insert((update.number, here), now_us - sent_us);
        }
    }

    fn count_message(&mut self, envelope: &Envelope) {
        self.counts.all.add(envelope);
        let is_between = envelope.from.datacenter() != envelope.to.datacenter();
        if is_between {
            self.counts.between_bytes += frame_bytes(envelope);
        }
        match envelope.message {
            Message::CheckDependencies { .. } => {
                self.counts.questions += 1;
                self.counts.checks.add(envelope);
            }
            Message::DependenciesMet { .. } | Message::Notify { .. } => self.counts.checks.add(envelope),
            Message::Heartbeat { .. }
            | Message::AskTime
            | Message::AwaitTimes { .. }
            | Message::StabilizationReport { .. }
            | Message::Stable { .. } => {
                self.counts.times.add(envelope);
                self.counts.time_bytes += frame_bytes(envelope);
            }
            _ => {}
        }
    }
}

/// How many bytes a message has on a link, whether it goes over one or not.
fn frame_bytes(envelope: &Envelope) -> u64 {
    let mut frame = Vec::new();
    match codec::encode(envelope, &mut frame) {
        Ok(_) => frame.len() as u64,
        Err(_) => 0,
    }
}

/// The stream entries of a message, with their places.
fn entries_of(envelope: &Envelope) -> impl Iterator<Item = (Place, &bytes::Bytes)> {
    let found = match (&envelope.message, envelope.from) {
        (Message::StreamEntries { first, entries, .. }, Address::Partition { datacenter, partition }) => {
            Some((datacenter, partition, *first, entries))
        }
        _ => None,
    };
    found.into_iter().flat_map(|(datacenter, partition, first, entries)| {
        let place = move |number| (datacenter, partition, Position(first.0 + number as u64));
        entries.iter().enumerate().map(move |(number, bytes)| (place(number), bytes))
    })
}

/// Which write of which key this is.
fn written(row: &RowEffect) -> Option<(Key, WriteNumber)> {
    let Effect::Put { value, .. } = &row.effect else { return None };
    Some((Key::parse(&row.key)?, WriteNumber::parse(value)?))
}
