//! A partition's part of a local write transaction: what it depends on.

use super::PARTITION;
use super::previous::{HERE, OTHER, partition, sent, written_elsewhere};
use super::versions::World;
use bytes::Bytes;
use ensue_types::{
    Dependency, Incarnation, KeyspaceId, LogicalTime, OperationId, Part, PartitionId, Position, Stamp,
};
use ensue_wire::{Address, Decision, Message};

const COORDINATOR: PartitionId = PartitionId(1);

/// What the part depends on that increments `x`, decided to have this stamp.
fn dependencies(world: &mut World, time: LogicalTime) -> Vec<Dependency> {
    let operation = |number| {
        let (incarnation, position) = (Incarnation(1), Position(number));
        OperationId { datacenter: HERE, incarnation, partition: COORDINATOR, position }
    };
    let from = Address::Partition { datacenter: HERE, partition: COORDINATOR };
    let words = ["INCR", "x"].map(|word| Bytes::from_static(word.as_bytes()));
    let part = Part { partition: PARTITION, commands: vec![(0, words.into_iter().collect())] };
    let (transaction, keyspace) = (operation(7), KeyspaceId(0));
    world.message(from, Message::Prepare { transaction, keyspace, part: Some(part) });
    let stamp = Stamp { time, datacenter: HERE, partition: COORDINATOR };
    let decision = Decision { at: world.partition.cx.clock.latest(), operation: operation(9), stamp };
    world.message(from, Message::Commit { transaction, decision });
    let entries = sent(world);
    let [entry] = &entries[..] else { panic!("one entry of the part, {} were sent", entries.len()) };
    entry.dependencies.operations().expect("the protocol's own bytes").to_vec()
}

/// A row that the other datacenter has written, and the time of that.
fn written() -> (World, LogicalTime) {
    let (mut world, mut elsewhere) = (partition("eiger"), partition("eiger"));
    written_elsewhere(&mut world, &mut elsewhere, "SET x 5");
    let row = world.partition.keyspaces.keyspaces[0].row(b"x").expect("it was applied").whole();
    let (_, cell) = row.all_cells().next().expect("it has a text");
    let time = cell.state().newest().time;
    (world, time)
}

#[test]
fn a_part_depends_on_what_it_read() {
    let (mut world, time) = written();
    let named: Vec<_> = dependencies(&mut world, time.next()).iter().map(|d| d.operation).collect();
    let (incarnation, position) = (Incarnation(1), Position(1));
    assert_eq!(named, [OperationId { datacenter: OTHER, incarnation, partition: PARTITION, position }]);
}

/// The other datacenter may have read the transaction before this partition lost its part and executed it again.
#[test]
fn a_part_that_is_executed_again_does_not_depend_on_what_came_after_its_decision() {
    let (mut world, time) = written();
    let before = LogicalTime::from_ms(time.ms() - 1);
    assert_eq!(dependencies(&mut world, before), []);
}
