//! A partition's part of a local write transaction: what it depends on.

use super::PARTITION;
use super::catch_up::{self, ITS_NEIGHBOUR, lose, started};
use super::previous::{HERE, OTHER, partition, sent, written_elsewhere};
use super::versions::World;
use bytes::Bytes;
use ensue_types::{
    Dependency, Incarnation, KeyspaceId, LogicalTime, OperationId, Part, PartitionId, Position, Stamp,
};
use ensue_wire::{Address, Decision, Message};
use std::collections::BTreeMap;

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
    let row = world.partition.keyspaces.keyspace(KeyspaceId(0)).row(b"x").expect("it was applied").whole();
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

/// A participant that has been away, or whose coordinator has, speaks of a transaction that will never be shown.
#[test]
fn a_participant_is_told_what_was_lost() {
    let (incarnation, position) = (Incarnation(1), Position(3));
    let transaction = OperationId { datacenter: OTHER, incarnation, partition: PARTITION, position };
    for says in [Message::Notify { transaction }, Message::Vote { transaction }] {
        let mut world = started(BTreeMap::new(), 1);
        lose(&mut world);
        world.message(ITS_NEIGHBOUR, says.clone());
        assert!(catch_up::sent(&mut world).contains(&Message::Abandon { transaction }), "{says:?}");

        let mut world = started(BTreeMap::new(), 1);
        // The stream of a dead datacenter ends before it.
        assert!(
            world.partition.others.replication.applied.end(OTHER, Position(2), Default::default()).is_empty()
        );
        world.message(ITS_NEIGHBOUR, says.clone());
        assert!(catch_up::sent(&mut world).contains(&Message::Discard { transaction }), "{says:?}");
    }
}

/// Its origin lost the entry that names the transaction, and was declared dead before it had recovered its other
/// partitions. A part waits for what died with it.
#[test]
fn a_part_whose_transaction_was_lost_is_discarded_with_the_dead() {
    let incarnation = Incarnation(1);
    let transaction =
        OperationId { datacenter: OTHER, incarnation, partition: PARTITION, position: Position(3) };
    let part = |world: &mut World| world.message(ITS_NEIGHBOUR, Message::PartUnrecoverable { transaction });
    for is_lost_first in [true, false] {
        let mut world = started(BTreeMap::new(), 1);
        if is_lost_first {
            lose(&mut world);
            part(&mut world);
        } else {
            part(&mut world);
            lose(&mut world);
        }
        let told = catch_up::sent(&mut world);
        assert!(told.contains(&Message::Discard { transaction }), "{told:?}");
    }
}
