//! A vote for a replicated transaction whose coordinator was started anew before it decided: it is given back, or what
//! the transaction depends on, and comes again, may stand behind the part that was voted for, and each waits for the
//! other (trap 17).

use super::PARTITION;
use super::previous::{HERE, OTHER, partition};
use super::versions::{World, put};
use bytes::Bytes;
use ensue_store::entry::{Change, Entry};
use ensue_store::layout;
use ensue_types::{
    Breaking, Causes, Column, Dependency, Effect, Extent, Incarnation, KeyspaceId, LogicalTime, OperationId,
    PartitionId, Position, RowEffect, Rule, Stamp, partition_of,
};
use ensue_wire::{Address, Message};
use std::sync::Arc;

pub(super) const NEIGHBOUR: PartitionId = PartitionId(1);

/// A transaction of the other datacenter, coordinated by this partition.
pub(super) fn transaction(partition: PartitionId) -> OperationId {
    OperationId { datacenter: OTHER, incarnation: Incarnation(1), partition, position: Position(1) }
}

/// A partition that has a neighbour.
pub(super) fn world() -> World {
    let mut world = partition("eiger");
    let config = Arc::get_mut(&mut world.partition.cx.config).expect("nobody else has it");
    config.topology.partitions = 2;
    world
}

/// What was sent to the neighbour since the last call.
pub(super) fn said(world: &mut World) -> Vec<Message> {
    let to = Address::Partition { datacenter: HERE, partition: NEIGHBOUR };
    std::iter::from_fn(|| world.partition.cx.outbox.next())
        .filter(|envelope| envelope.to == to)
        .map(|envelope| envelope.message)
        .collect()
}

pub(super) fn neighbour_says(world: &mut World, message: Message) {
    world.message(Address::Partition { datacenter: HERE, partition: NEIGHBOUR }, message);
}

#[test]
fn a_coordinator_that_waits_again_gives_the_vote_back() {
    for (broken, is_given_back) in [(None, true), (Some(Rule::GiveTheVoteBack), false)] {
        let _breaking = Breaking::only(broken);
        let mut world = world();
        let transaction = transaction(PARTITION);
        neighbour_says(&mut world, Message::Vote { transaction });
        assert_eq!(said(&mut world).contains(&Message::ForgetVote { transaction }), is_given_back);
    }
}

/// A part of a transaction that the neighbour coordinates, which depends on these, is the first entry of its stream.
pub(super) fn receive_part(world: &mut World, transaction: OperationId, dependencies: Causes) {
    let effect = Effect::Put { value: Bytes::from_static(b"1"), seen: Vec::new(), over: None };
    let row = RowEffect { key: Bytes::from_static(own_key().as_bytes()), column: Column::Text, effect };
    let entry = Entry {
        position: Position(1),
        stamp: Stamp {
            time: LogicalTime::from_ms(world.now.wall_ms),
            datacenter: OTHER,
            partition: NEIGHBOUR,
        },
        dependencies,
        change: Change::Effects {
            keyspace: KeyspaceId(0),
            transaction: Some(transaction),
            effects: vec![row],
        },
        previous: Vec::new(),
    };
    let entries = vec![layout::encode_entry(&entry)];
    let (incarnation, first) = (Incarnation(1), Position(1));
    let from = Address::Partition { datacenter: OTHER, partition: PARTITION };
    world.message(from, Message::StreamEntries { incarnation, first, entries });
}

/// A key of this partition.
pub(super) fn own_key() -> &'static str {
    let key = ["x", "y", "z", "u", "v"].into_iter().find(|key| partition_of(key.as_bytes(), 2) == PARTITION);
    key.expect("one of them is of this partition")
}

/// The coordinator would decide, and the part be shown before what it depends on.
#[test]
fn a_part_that_waits_is_not_notified() {
    let mut world = world();
    let of_the_part = transaction(NEIGHBOUR);
    let operation = OperationId { position: Position(2), ..transaction(PARTITION) };
    receive_part(&mut world, of_the_part, vec![Dependency { operation, extent: Extent::Exact }].into());
    // The link to it broke, and is up again.
    world.partition.on_link_up(world.now, HERE, &|_| true);
    world.work();
    assert_eq!(said(&mut world), []);
    world.receive_after(2, own_key(), put("2"), &[]);
    assert_eq!(said(&mut world), [Message::Notify { transaction: of_the_part }]);
}

#[test]
fn a_part_whose_vote_is_given_back_is_heard_of_again() {
    let mut world = world();
    let transaction = transaction(NEIGHBOUR);
    receive_part(&mut world, transaction, Causes::Nothing);
    assert_eq!(said(&mut world), [Message::Notify { transaction }]);

    let keyspace = KeyspaceId(0);
    neighbour_says(&mut world, Message::Prepare { transaction, keyspace, part: None });
    assert_eq!(said(&mut world), [Message::Vote { transaction }]);
    let has_place = |world: &World| world.partition.transactions.has_place(transaction);
    assert!(has_place(&world));

    // Said before the vote: it is not of this vote.
    neighbour_says(&mut world, Message::ForgetVote { transaction });
    assert!(has_place(&world) && said(&mut world).is_empty());
    world.now.wall_ms += 1_000;
    neighbour_says(&mut world, Message::ForgetVote { transaction });
    assert_eq!(said(&mut world), [Message::Notify { transaction }]);
    assert!(!has_place(&world));
}
