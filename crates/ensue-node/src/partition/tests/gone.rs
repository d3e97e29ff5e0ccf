//! What is gone with a dead datacenter, and what goes with it.

use super::PARTITION;
use super::catch_up::{self, BESIDE, ITS_NEIGHBOUR, started};
use super::identity::answer;
use super::versions::{OTHER, World, put};
use bytes::Bytes;
use ensue_store::entry::{Change, Entry};
use ensue_store::layout;
use ensue_types::{
    Column, DatacenterId, Dependency, Extent, Incarnation, KeyspaceId, LogicalTime, OperationId, Position,
    RowEffect, Stamp,
};
use ensue_wire::Message;
use std::collections::BTreeMap;

/// The first entry of the other datacenter's stream, which depends on something that is gone, as the neighbour says.
fn receive_what_depends_on(gone: Dependency, change: Change) -> World {
    let mut world = started(BTreeMap::new(), 1);
    let (incarnation, position) = (Incarnation(1), Position(1));
    let operation = OperationId { datacenter: OTHER, incarnation, partition: BESIDE, position };
    let time = LogicalTime::from_ms(world.now.wall_ms);
    // A part has the stamp of its transaction.
    let partition = match &change {
        Change::Effects { transaction: Some(transaction), .. } => transaction.partition,
        _ => PARTITION,
    };
    let entry = Entry {
        position,
        stamp: Stamp { time, datacenter: OTHER, partition },
        dependencies: vec![Dependency { operation, extent: Extent::Exact }].into(),
        change,
        previous: Vec::new(),
    };
    let entries = vec![layout::encode_entry(&entry)];
    world.message(catch_up::ELSEWHERE, Message::StreamEntries { incarnation, first: position, entries });
    let check = catch_up::sent(&mut world).into_iter().find_map(|message| match message {
        Message::CheckDependencies { check, .. } => Some(check),
        _ => None,
    });
    let (check, unrecoverable) = (check.expect("the neighbour is asked"), vec![gone]);
    world.message(ITS_NEIGHBOUR, Message::DependenciesMet { check, unrecoverable });
    world
}

/// An operation of the partition beside.
fn of_neighbour(datacenter: DatacenterId, extent: Extent) -> Dependency {
    let (incarnation, position) = (Incarnation(1), Position(1));
    Dependency { operation: OperationId { datacenter, incarnation, partition: BESIDE, position }, extent }
}

fn effects(transaction: Option<OperationId>) -> Change {
    // A key of the first of two partitions.
    let (key, effect) = (Bytes::from_static(b"b"), put("1").expect("it is one"));
    let effects = vec![RowEffect { key, column: Column::Text, effect }];
    Change::Effects { keyspace: KeyspaceId(0), transaction, effects }
}

/// The partition that is asked says of what a write goes: whoever is asked knows who had failed.
#[test]
fn a_write_goes_with_what_it_depends_on() {
    for gone in [of_neighbour(OTHER, Extent::Exact), of_neighbour(OTHER, Extent::Through)] {
        let mut world = receive_what_depends_on(gone, effects(None));
        assert!(answer(&mut world, "GET b").contains("Nil"), "{gone:?}");
        let applied = world.partition.others.replication.applied_through(OTHER);
        assert_eq!(applied, Position(1), "nobody waits for it: {gone:?}");
    }
}

/// Its coordinator says what becomes of a transaction: with one part all of it is gone.
#[test]
fn a_transaction_goes_as_a_whole_with_what_a_part_of_it_depends_on() {
    let gone = of_neighbour(OTHER, Extent::Exact);
    let of = |partition, place| OperationId { partition, position: Position(place), ..gone.operation };
    let transaction = of(BESIDE, 7);
    let mut world = receive_what_depends_on(gone, effects(Some(transaction)));
    assert!(catch_up::sent(&mut world).contains(&Message::PartUnrecoverable { transaction }));
    assert_eq!(world.partition.others.replication.applied_through(OTHER), Position(0), "nor is it applied");

    let transaction = of(PARTITION, 1);
    let (keyspace, participants) = (KeyspaceId(0), vec![BESIDE]);
    let change = Change::Transaction { keyspace, begun_as: None, participants };
    let mut world = receive_what_depends_on(gone, change);
    assert!(catch_up::sent(&mut world).contains(&Message::Discard { transaction }));
    assert_eq!(world.partition.others.replication.applied_through(OTHER), Position(1));
}
