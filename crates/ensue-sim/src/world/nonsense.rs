//! What cannot be, said with valid framing: a copy of a real message in which something names what is not there, or
//! contradicts itself.
//!
//! Each copy must be refused by whoever hears it, so that the oracle may judge the run as any other. What a liar says
//! that could be true is
//! no nonsense: `docs/trust.md` has the list.

use crate::random::Random;
use crate::world::shape::Shape;
use bytes::Bytes;
use ensue_types::{
    DatacenterId, Incarnation, KeyspaceId, LogicalTime, OperationId, PartitionId, Position, TimeVector,
};
use ensue_wire::{Address, Envelope, Message};

/// A copy of a message that must be refused.
pub fn lie(random: &mut Random, shape: Shape, envelope: &Envelope) -> Envelope {
    let mut lie = envelope.clone();
    match random.below(6) {
        0 => lie.time = LogicalTime(u64::MAX - random.below(1 << 62)),
        1 => lie.from = elsewhere(random, shape, lie.from),
        2 => lie.to = elsewhere(random, shape, lie.to),
        _ => lie.message = ruined(random, shape, envelope),
    }
    lie
}

/// A place that no datacenter has.
fn elsewhere(random: &mut Random, shape: Shape, address: Address) -> Address {
    let beyond = |count: u16, random: &mut Random| count + random.below(1_000) as u16;
    match address {
        Address::Partition { datacenter, .. } => {
            let partition = PartitionId(beyond(shape.partitions, random));
            Address::Partition { datacenter, partition }
        }
        Address::Core { datacenter, .. } => {
            let core = ensue_types::CoreId(beyond(shape.cores, random));
            Address::Core { datacenter, core }
        }
    }
}

fn ruined(random: &mut Random, shape: Shape, envelope: &Envelope) -> Message {
    let nowhere = Position(u64::MAX - random.below(1 << 40));
    let nobody = DatacenterId(random.between(u64::from(shape.datacenters), 255) as u8);
    let too_many = TimeVector::uniform(usize::from(shape.datacenters) + 1, LogicalTime(1));
    let no_keyspace = KeyspaceId(random.between(16, 255) as u8);
    let mut message = envelope.message.clone();
    match &mut message {
        Message::StreamEntries { incarnation, first, entries } => match random.below(3) {
            0 => *first = nowhere,
            1 => *incarnation = Incarnation(incarnation.0.wrapping_add(1 + random.below(1_000) as u16)),
            _ => {
                let place = random.index(entries.len().max(1));
                entries.iter_mut().skip(place).take(1).for_each(|entry| *entry = ruined_entry(random, entry));
            }
        },
        Message::StreamResume { received, .. } => *received = nowhere,
        Message::StreamAcknowledge(acknowledge) => match random.below(4) {
            0 => acknowledge.synced = Position(acknowledge.received.0 + 1 + random.below(1_000)),
            1 => acknowledge.end = nowhere,
            2 => acknowledge.received = nowhere,
            _ => acknowledge.applied.push((nobody, Incarnation(1), Position(1))),
        },
        Message::Heartbeat { end } => *end = nowhere,
        Message::TailFetch { after } | Message::PassOn { after, .. } => *after = nowhere,
        Message::TailFetched { received, .. } => *received = nowhere,
        Message::PassedOn { origin, .. } => *origin = nobody,
        Message::DatacenterFailed { datacenter, .. }
        | Message::Ended { datacenter, .. }
        | Message::Lost { datacenter, .. } => *datacenter = nobody,
        Message::BranchFetch { keyspace, .. }
        | Message::BranchFetched { keyspace, .. }
        | Message::BranchLacking { keyspace, .. }
        | Message::Execute { keyspace, .. }
        | Message::ReadFirst { keyspace, .. }
        | Message::ReadAt { keyspace, .. }
        | Message::Transact { keyspace, .. }
        | Message::ReadSnapshot { keyspace, .. }
        | Message::ReadSnapshotPart { keyspace, .. } => *keyspace = no_keyspace,
        Message::StabilizationReport { received, .. } | Message::Stable { received, .. } => {
            *received = too_many
        }
        Message::Prepare { transaction, .. }
        | Message::Vote { transaction }
        | Message::Commit { transaction, .. }
        | Message::Committed { transaction, .. }
        | Message::Notify { transaction }
        | Message::CommitCheck { transaction, .. }
        | Message::CommitUnannounced { transaction, .. }
        | Message::FindPart { transaction, .. }
        | Message::PartHeld { transaction }
        | Message::TransactionOver { transaction }
        | Message::CommitChecked { transaction, .. } => {
            *transaction = ruined_name(random, shape, *transaction)
        }
        // What only partitions of one datacenter say, and what only those of two do.
        _ if envelope.from.datacenter() != envelope.to.datacenter() => {
            message = Message::Repeat { number: random.bits() };
        }
        _ => message = Message::AskTime,
    }
    message
}

fn ruined_name(random: &mut Random, shape: Shape, name: OperationId) -> OperationId {
    match random.below(3) {
        0 => OperationId { datacenter: DatacenterId(shape.datacenters + random.below(100) as u8), ..name },
        1 => OperationId { partition: PartitionId(shape.partitions + random.below(100) as u16), ..name },
        _ => OperationId { position: Position(u64::MAX - random.below(1 << 40)), ..name },
    }
}

/// An entry whose head says what cannot be: its format, kind, keyspace, datacenter, partition or position; or one
/// that is cut off.
fn ruined_entry(random: &mut Random, entry: &Bytes) -> Bytes {
    let mut bytes = entry.to_vec();
    let (at, to) = random.pick(&[(0, 77), (1, 200), (2, 255), (3, 255), (5, 255), (15, 255)]);
    match bytes.get_mut(at) {
        Some(byte) if random.chance(800) => *byte = to,
        _ => bytes.truncate(random.index(bytes.len().max(1))),
    }
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lie_is_never_what_was_said() {
        let shape = Shape { replicas: 1, datacenters: 2, cores: 2, partitions: 3, one_process: false };
        let at = |datacenter| Address::Partition {
            datacenter: DatacenterId(datacenter),
            partition: PartitionId(1),
        };
        let entries = vec![Bytes::from(vec![1; 48])];
        let messages = [
            Message::StreamEntries { incarnation: Incarnation(1), first: Position(3), entries },
            Message::Heartbeat { end: Position(4) },
            Message::AskTime,
        ];
        let mut random = Random::stream(1, "lies");
        for message in messages {
            let said = Envelope { from: at(0), to: at(1), time: LogicalTime(9), message };
            assert!((0..200).all(|_| lie(&mut random, shape, &said) != said), "{said:?}");
        }
    }
}
