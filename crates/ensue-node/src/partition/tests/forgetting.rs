//! What of a session's past a write need not carry, because every datacenter has it by now, and what of what it carries
//! need not be kept.

use super::PARTITION;
use super::collecting::make_stable;
use super::previous::{HERE, OTHER, partition, sent};
use super::versions::World;
use ensue_store::compact::RowRef;
use ensue_types::{
    Breaking, Causes, Dependency, Extent, Incarnation, KeyspaceId, LogicalTime, Now, OperationId,
    PartitionId, Position, Rule, Vector,
};
use ensue_wire::{Address, Message, StreamAcknowledge};
use std::collections::BTreeMap;

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

const BY_TIMES: [&str; 3] = ["cure", "pocc", "ha-pocc"];
const BEGIN_MS: u64 = 1_700_000_000_000;

/// The other datacenter has applied so much, and shows its readers everything up to this stamp.
fn shown_elsewhere(world: &mut World, number: u64, shown: LogicalTime) {
    let (received, end) = (position(number), Position::before(Incarnation(1)));
    let (incarnation, applied) = (Incarnation(1), vec![(HERE, Incarnation(1), received)]);
    let said = StreamAcknowledge { incarnation, received, synced: received, applied, end, shown };
    let from = Address::Partition { datacenter: OTHER, partition: PARTITION };
    world.message(from, Message::StreamAcknowledge(said));
}

/// A string was written by a session that had read the other datacenter's latest, and every reader here sees it.
fn written_after_another(protocol: &str) -> (World, Vector) {
    let now = Now { monotonic_us: 1_000_000, wall_ms: BEGIN_MS };
    let mut world = World::under(protocol, BTreeMap::new(), now, u64::MAX).started();
    let mut past = Vector::default();
    past.times.raise(OTHER, make_stable(&mut world));
    world.run_after(past.clone().into(), "SET x 1");
    for _ in 0..2 {
        world.now.monotonic_us += 10_000_000;
        world.now.wall_ms += 10_000;
        make_stable(&mut world);
    }
    (world, past)
}

fn carried_bytes(world: &World) -> u64 {
    world.partition.keyspaces.rows(KeyspaceId(0)).expect("it is there").dependency_bytes()
}

/// What a session without a past has read when it has read the string.
fn past_of_a_reader(world: &mut World) -> Vector {
    sent(world);
    world.run("GET x");
    let mut answers = std::iter::from_fn(|| world.partition.cx.outbox.next());
    let context = answers.find_map(|answer| match answer.message {
        Message::Executed { context, .. } => Some(context),
        _ => None,
    });
    context.expect("the read is answered").causes.times().expect("a past of times").clone()
}

#[test]
fn what_a_write_carries_is_forgotten_when_every_reader_of_every_datacenter_sees_it() {
    for protocol in BY_TIMES {
        let (mut world, _) = written_after_another(protocol);
        let kept = carried_bytes(&world);
        shown_elsewhere(&mut world, 1, LogicalTime::from_ms(BEGIN_MS - 1));
        world.now.wall_ms += 1_000;
        make_stable(&mut world);
        assert_eq!(carried_bytes(&world), kept, "{protocol}");
        let now = LogicalTime::from_ms(world.now.wall_ms);
        shown_elsewhere(&mut world, 1, now);
        make_stable(&mut world);
        let rows = world.partition.keyspaces.rows(KeyspaceId(0)).expect("it is there");
        assert!(matches!(rows.row(b"x"), Some(RowRef::Compact(_))), "{protocol}");
        assert_eq!(carried_bytes(&world), 0, "{protocol}");
    }
}

/// A session without a past carries nothing, which is forgotten, too.
#[test]
fn what_a_write_carries_is_forgotten_when_every_datacenter_has_applied_it_where_contexts_name_operations() {
    let now = Now { monotonic_us: 1_000_000, wall_ms: BEGIN_MS };
    let mut world = World::under("orbe-clock", BTreeMap::new(), now, u64::MAX).started();
    world.run("SET x 1");
    let is_compact = |world: &World| {
        let rows = world.partition.keyspaces.rows(KeyspaceId(0)).expect("it is there");
        matches!(rows.row(b"x"), Some(RowRef::Compact(_)))
    };
    for (applied, is_forgotten) in [(0, false), (0, false), (1, true)] {
        world.now.monotonic_us += 10_000_000;
        world.now.wall_ms += 10_000;
        let now = LogicalTime::from_ms(world.now.wall_ms);
        shown_elsewhere(&mut world, applied, now);
        make_stable(&mut world);
        assert_eq!(is_compact(&world), is_forgotten);
    }
}

#[test]
fn who_reads_what_carries_nothing_any_more_takes_over_no_less_than_it_carried() {
    for (broken, covers) in [(None, true), (Some(Rule::WhatIsForgottenWasShown), false)] {
        let _breaking = Breaking::only(broken);
        for protocol in BY_TIMES {
            let (mut world, past) = written_after_another(protocol);
            assert!(past_of_a_reader(&mut world).times.covers(&past.times), "{protocol}");
            let now = LogicalTime::from_ms(world.now.wall_ms);
            shown_elsewhere(&mut world, 1, now);
            make_stable(&mut world);
            assert_eq!(carried_bytes(&world), 0, "{protocol}");
            let read = past_of_a_reader(&mut world);
            assert_eq!(read.times.covers(&past.times), covers, "{protocol}");
            // Nobody has to wait for it.
            assert!(read.times.entries().all(|(_, time)| time < now), "{protocol}");
        }
    }
}
