//! What partitions have said that they must not take back as long as their process lives (P19): how much of a stream is durable, and
//! durably applied, and what it has received. After a restart a partition knows it anew, when it has looked or synced; what all
//! partitions of a datacenter say together may go back with one of them.

use ensue_types::{DatacenterId, Incarnation, PartitionId, Position, TimeVector};
use ensue_wire::{Address, Envelope, Message};
use std::collections::BTreeMap;

/// A partition of a datacenter, in one life of its process.
type Speaker = (DatacenterId, PartitionId, u32);

/// The latest words of each.
#[derive(Debug, Default)]
pub struct Said {
    /// Of which stream, and how far.
    synced: BTreeMap<(Speaker, DatacenterId), Position>,
    applied: BTreeMap<(Speaker, DatacenterId), Position>,
    received: BTreeMap<Speaker, TimeVector>,
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
            }
            Message::Heard { received, .. } => {
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
    use ensue_types::LogicalTime;
    use ensue_wire::StreamAcknowledge;

    fn said(messages: &[(u32, Message)]) -> Option<String> {
        let mut said = Said::default();
        for (boot, message) in messages {
            let from = Address::Partition { datacenter: DatacenterId(1), partition: PartitionId(0) };
            let to = Address::Partition { datacenter: DatacenterId(0), partition: PartitionId(0) };
            let (time, message) = (LogicalTime(1), message.clone());
            said.on_send(*boot, &Envelope { from, to, time, message });
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
        })
    }

    fn heard(time: u64) -> Message {
        let mut received = TimeVector::default();
        received.raise(DatacenterId(2), LogicalTime(time));
        Message::Heard { received, floor: TimeVector::default(), everywhere: Vec::new() }
    }

    #[test]
    fn what_is_durable_is_not_taken_back_in_one_life() {
        assert_eq!(said(&[(1, acknowledge(3, 5)), (1, acknowledge(3, 6)), (2, acknowledge(0, 0))]), None);
        assert!(said(&[(1, acknowledge(3, 5)), (1, acknowledge(2, 6))]).unwrap().contains("synced dc1"));
        assert!(said(&[(1, acknowledge(3, 5)), (1, acknowledge(3, 4))]).unwrap().contains("durably applied"));
    }

    #[test]
    fn what_was_received_is_not_taken_back_in_one_life() {
        assert_eq!(said(&[(1, heard(5)), (1, heard(6)), (2, heard(4))]), None);
        assert!(said(&[(1, heard(5)), (1, heard(4))]).unwrap().contains("had received"));
    }
}
