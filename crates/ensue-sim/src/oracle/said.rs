//! What partitions have said that they must not take back as long as their process lives (P19): how much of a stream is
//! durable, and durably applied, and what it has received. After a restart a partition knows it anew, when it has
//! looked or synced; what all partitions of a datacenter say together may go back with one of them. And what holds
//! beyond a life: nothing that comes after the end of a stream is as old as the time at which that end was told (trap
//! 14), unless its tail was lost in between.

use bytes::Bytes;
use ensue_store::entry::{Change, Entry};
use ensue_store::layout::decode_entry;
use ensue_types::{DatacenterId, Incarnation, LogicalTime, PartitionId, Position, TimeVector};
use ensue_wire::{Address, Envelope, Message};
use std::collections::BTreeMap;

/// A partition of a datacenter, in one life of its process.
type Speaker = (DatacenterId, PartitionId, u32);

/// Its own stream, in all lives.
type Stream = (DatacenterId, PartitionId);

/// What was told of a stream.
#[derive(Debug, Default)]
struct Told {
    /// Where it ended, and the latest time at which that, or less, was told; both rise, the times within an
    /// incarnation.
    ends: Vec<(Position, LogicalTime)>,
    /// The last of its entries that was sent.
    sent: Position,
}

/// The latest words of each.
#[derive(Debug, Default)]
pub struct Said {
    /// Of which stream, and how far.
    synced: BTreeMap<(Speaker, DatacenterId), Position>,
    applied: BTreeMap<(Speaker, DatacenterId), Position>,
    received: BTreeMap<Speaker, TimeVector>,
    streams: BTreeMap<Stream, Told>,
    taken_back: Option<String>,
}

impl Said {
    /// The first word that was taken back.
    pub fn taken_back(&self) -> Option<&str> {
        self.taken_back.as_deref()
    }

    /// A partition says something in this life of its process.
    pub fn on_send(&mut self, boot: u32, envelope: &Envelope) {
        let Address::Partition { datacenter, partition } = envelope.from else { return };
        let speaker = (datacenter, partition, boot);
        match &envelope.message {
            Message::StreamAcknowledge(acknowledge) => {
                let origin = envelope.to.datacenter();
                self.durable(speaker, origin, acknowledge.synced, |said| &mut said.synced, "synced");
                for &(origin, Incarnation(_), position) in &acknowledge.applied {
                    self.durable(speaker, origin, position, |said| &mut said.applied, "durably applied");
                }
                self.note_end((datacenter, partition), acknowledge.end, envelope.time);
            }
            Message::StreamEntries { first, entries, .. } => {
                for (number, bytes) in entries.iter().enumerate() {
                    self.compare_with_ends((datacenter, partition), Position(first.0 + number as u64), bytes);
                }
            }
            Message::StabilizationReport { received, .. } => {
                let before = self.received.entry(speaker).or_default();
                let lower = before.entries().find(|(datacenter, time)| *time > received.at(*datacenter));
                if let Some((origin, time)) = lower {
                    let words = format!(
                        "{datacenter} {partition} had received {origin} up to {time}, and then up to {}",
                        received.at(origin)
                    );
                    self.taken_back.get_or_insert(words);
                }
                before.join(received);
            }
            _ => {}
        }
    }

    /// A datacenter was given other times. What it had said in the name of those beyond the bound nobody has believed.
    pub fn forget_times_beyond(&mut self, datacenter: DatacenterId, bound: LogicalTime) {
        for (_, told) in self.streams.iter_mut().filter(|(stream, _)| stream.0 == datacenter) {
            told.ends.iter_mut().for_each(|(_, time)| *time = (*time).min(bound));
        }
    }

    /// A datacenter has lost its directories: what it said of the ends of its streams was said in another life.
    pub fn forget(&mut self, datacenter: DatacenterId) {
        self.streams.retain(|(of, _), _| *of != datacenter);
    }

    fn note_end(&mut self, stream: Stream, end: Position, time: LogicalTime) {
        let ends = &mut self.streams.entry(stream).or_default().ends;
        match ends.last_mut() {
            Some((last, latest)) if *last == end => *latest = time.max(*latest),
            Some((last, _)) if *last > end => {}
            Some((last, latest)) if last.incarnation() == end.incarnation() && *latest >= time => {}
            _ => ends.push((end, time)),
        }
    }

    /// A tombstone is forgotten on the word that nothing older follows.
    fn compare_with_ends(&mut self, stream: Stream, position: Position, bytes: &Bytes) {
        let Told { ends, sent } = self.streams.entry(stream).or_default();
        if position <= *sent {
            return;
        }
        *sent = position;
        let Ok(Entry { stamp, change: Change::Effects { .. } | Change::Flush { .. }, .. }) =
            decode_entry(bytes)
        else {
            return;
        };
        let before = ends.partition_point(|(end, _)| *end < position);
        let Some((end, time)) = before.checked_sub(1).map(|last| ends[last]) else { return };
        if end.incarnation() == position.incarnation() && stamp.time <= time {
            let (datacenter, partition) = stream;
            let words = format!(
                "{datacenter} {partition} had said at {time} that its stream ends at {end}, and then sent {position} of {}",
                stamp.time
            );
            self.taken_back.get_or_insert(words);
        }
    }

    fn durable(
        &mut self,
        speaker: Speaker,
        origin: DatacenterId,
        position: Position,
        places: fn(&mut Said) -> &mut BTreeMap<(Speaker, DatacenterId), Position>,
        what: &str,
    ) {
        let before = places(self).insert((speaker, origin), position).unwrap_or_default();
        if position < before {
            let (datacenter, partition, _) = speaker;
            let words = format!(
                "{datacenter} {partition} had {what} {origin} up to {before}, and then up to {position}"
            );
            self.taken_back.get_or_insert(words);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ensue_store::layout::encode_entry;
    use ensue_types::{Causes, KeyspaceId, Stamp};
    use ensue_wire::StreamAcknowledge;

    fn envelope(time: LogicalTime, message: Message) -> Envelope {
        let from = Address::Partition { datacenter: DatacenterId(1), partition: PartitionId(0) };
        let to = Address::Partition { datacenter: DatacenterId(0), partition: PartitionId(0) };
        Envelope { from, to, time, message }
    }

    fn said(messages: &[(u32, Message)]) -> Option<String> {
        let mut said = Said::default();
        for (boot, message) in messages {
            said.on_send(*boot, &envelope(LogicalTime(1), message.clone()));
        }
        said.taken_back().map(str::to_owned)
    }

    fn acknowledge(synced: u64, applied: u64) -> Message {
        Message::StreamAcknowledge(StreamAcknowledge {
            incarnation: Incarnation(1),
            received: Position(9),
            synced: Position(synced),
            applied: vec![(DatacenterId(2), Incarnation(1), Position(applied))],
            end: Position(1),
            shown: LogicalTime::ZERO,
        })
    }

    fn heard(time: u64) -> Message {
        let mut received = TimeVector::default();
        received.raise(DatacenterId(2), LogicalTime(time));
        Message::StabilizationReport { received, floor: TimeVector::default(), globally_stable: Vec::new() }
    }

    #[test]
    fn what_is_durable_is_not_taken_back_in_one_life() {
        assert_eq!(said(&[(1, acknowledge(3, 5)), (1, acknowledge(3, 6)), (2, acknowledge(0, 0))]), None);
        assert!(said(&[(1, acknowledge(3, 5)), (1, acknowledge(2, 6))]).unwrap().contains("synced dc1"));
        assert!(said(&[(1, acknowledge(3, 5)), (1, acknowledge(3, 4))]).unwrap().contains("durably applied"));
    }

    fn ends(end: u64, time: u64) -> Envelope {
        let mut acknowledge = acknowledge(0, 0);
        if let Message::StreamAcknowledge(acknowledge) = &mut acknowledge {
            acknowledge.end = Position(end);
        }
        envelope(LogicalTime(time), acknowledge)
    }

    fn sends(position: u64, time: u64) -> Envelope {
        let stamp = Stamp { time: LogicalTime(time), ..Stamp::ZERO };
        let change = Change::Effects { keyspace: KeyspaceId(0), transaction: None, effects: Vec::new() };
        let position = Position(position);
        let (dependencies, previous) = (Causes::Nothing, Vec::new());
        let entry = Entry { position, stamp, dependencies, change, previous };
        let incarnation = position.incarnation();
        let entries = vec![encode_entry(&entry)];
        envelope(LogicalTime(1), Message::StreamEntries { incarnation, first: position, entries })
    }

    #[test]
    fn nothing_beyond_an_end_is_as_old_as_the_time_at_which_it_was_told() {
        let said = |envelopes: &[Envelope]| {
            let mut said = Said::default();
            envelopes.iter().for_each(|envelope| said.on_send(1, envelope));
            said.taken_back.is_some()
        };
        assert!(!said(&[ends(3, 50), sends(3, 40), sends(4, 51)]), "before the end, and later");
        assert!(said(&[ends(3, 50), sends(4, 50)]));
        assert!(said(&[ends(3, 50), ends(5, 40), sends(6, 45)]), "what holds beyond 3 holds beyond 5");
        let next_life = Position::before(Incarnation(2)).0 + 1;
        assert!(!said(&[ends(3, 50), ends(next_life, 20), sends(next_life + 1, 30)]), "the tail was lost");
        assert!(said(&[ends(3, 50), ends(next_life, 20), sends(next_life + 1, 20)]));
    }

    #[test]
    fn what_was_received_is_not_taken_back_in_one_life() {
        assert_eq!(said(&[(1, heard(5)), (1, heard(6)), (2, heard(4))]), None);
        assert!(said(&[(1, heard(5)), (1, heard(4))]).unwrap().contains("had received"));
    }
}
