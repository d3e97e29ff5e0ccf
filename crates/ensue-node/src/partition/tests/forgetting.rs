//! What of a session's past a write need not carry, because every datacenter has it by now.

use super::PARTITION;
use super::previous::{HERE, OTHER, partition, sent};
use super::versions::World;
use ensue_types::{Causes, Dependency, Extent, Incarnation, LogicalTime, OperationId, PartitionId, Position};
use ensue_wire::{Address, Message, StreamAcknowledge};

fn position(number: u64) -> Position {
    Position(Position::before(Incarnation(1)).0 + number)
}

fn own(partition: PartitionId, number: u64) -> Dependency {
    let (datacenter, incarnation, position) = (HERE, Incarnation(1), position(number));
    let operation = OperationId { datacenter, incarnation, partition, position };
    Dependency { operation, extent: Extent::Exact }
}

/// What a write carries whose session has read this.
fn carried(world: &mut World, past: &[Dependency], line: &str) -> Vec<Dependency> {
    world.run_after(past.to_vec().into(), line);
    let entries = sent(world);
    let dependencies = entries.last().map_or(Causes::Nothing, |entry| entry.dependencies.clone());
    dependencies.operations().expect("the layout of both protocols").to_vec()
}

/// The other datacenter has durably applied the own stream up to here.
fn acknowledge(world: &mut World, number: u64) {
    let applied = vec![(HERE, Incarnation(1), position(number))];
    let (received, end) = (position(number), Position::before(Incarnation(1)));
    let incarnation = Incarnation(1);
    let said =
        StreamAcknowledge { incarnation, received, synced: received, applied, end, shown: LogicalTime::ZERO };
    let from = Address::Partition { datacenter: OTHER, partition: PARTITION };
    world.message(from, Message::StreamAcknowledge(said));
}

#[test]
fn what_is_everywhere_when_a_write_comes_is_not_carried() {
    let mut world = partition("cops");
    for line in ["SET x 1", "SET y 1"] {
        world.run(line);
    }
    let elsewhere = own(PartitionId(7), 1);
    let past = [own(PARTITION, 1), own(PARTITION, 2), elsewhere];
    assert_eq!(carried(&mut world, &past, "SET z 1"), past);
    acknowledge(&mut world, 1);
    // Of another partition nothing is known here.
    assert_eq!(carried(&mut world, &past, "SET z 2"), past[1..]);
    acknowledge(&mut world, 2);
    assert_eq!(carried(&mut world, &past, "SET z 3"), [elsewhere]);
}

#[test]
fn what_is_everywhere_is_carried_where_a_protocol_does_not_ask() {
    let mut world = partition("eiger");
    world.run("SET x 1");
    acknowledge(&mut world, 1);
    let past = [own(PARTITION, 1)];
    assert_eq!(carried(&mut world, &past, "SET z 1"), past);
}
