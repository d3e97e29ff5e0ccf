//! A long chain of entries, each of which depends on the one before it, becomes ready at once.

use super::PARTITION;
use super::catch_up::{BESIDE, ELSEWHERE, ITS_NEIGHBOUR, sent, started};
use super::versions::OTHER;
use bytes::Bytes;
use ensue_store::entry::{Change, Entry};
use ensue_store::layout;
use ensue_types::{
    Column, Dependency, Effect, Extent, Incarnation, KeyspaceId, LogicalTime, OperationId, Position,
    RowEffect, Stamp,
};
use ensue_wire::Message;
use std::collections::BTreeMap;

const LENGTH: u64 = 100_000;

/// What a session writes one after the other while another datacenter cannot be heard: one stack frame for each would
/// be more than a thread has.
#[test]
fn a_long_chain_is_applied_in_bounded_stack() {
    let mut world = started(BTreeMap::new(), 1);
    let (incarnation, last) = (Incarnation(1), Position(LENGTH));
    let mut time = LogicalTime::from_ms(world.now.wall_ms);
    for number in 1..=LENGTH {
        let partition = if number == 1 { BESIDE } else { PARTITION };
        let position = Position(number.saturating_sub(1).max(1));
        let operation = OperationId { datacenter: OTHER, incarnation, partition, position };
        let effect = Effect::Put { value: Bytes::from_static(b"1"), seen: Vec::new(), over: None };
        time = time.next();
        let entry = Entry {
            position: Position(number),
            stamp: Stamp { time, datacenter: OTHER, partition: PARTITION },
            dependencies: vec![Dependency { operation, extent: Extent::Exact }].into(),
            change: Change::Effects {
                keyspace: KeyspaceId(0),
                transaction: None,
                effects: vec![RowEffect { key: Bytes::from_static(b"b"), column: Column::Text, effect }],
            },
            previous: Vec::new(),
        };
        let entries = vec![layout::encode_entry(&entry)];
        world.message(ELSEWHERE, Message::StreamEntries { incarnation, first: entry.position, entries });
    }
    assert_eq!(world.partition.others.replication.applied.set(OTHER).map(|set| set.watermark), None);
    let check = sent(&mut world).into_iter().find_map(|message| match message {
        Message::CheckDependencies { check, .. } => Some(check),
        _ => None,
    });
    let check = check.expect("the first entry depends on the partition beside");
    world.message(ITS_NEIGHBOUR, Message::DependenciesMet { check, unrecoverable: Vec::new() });
    assert_eq!(world.partition.others.replication.applied.set(OTHER).map(|set| set.watermark), Some(last));
}
