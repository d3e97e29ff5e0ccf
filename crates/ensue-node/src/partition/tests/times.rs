//! What a partition makes of another datacenter's heartbeats.

use super::PARTITION;
use super::versions::{OTHER, World, put};
use ensue_types::{DatacenterId, LogicalTime, Now, PartitionId, Position, TimeVector};
use ensue_wire::{Address, Message};
use std::collections::BTreeMap;
use std::sync::Arc;

const START_MS: u64 = 1_700_000_000_000;

fn world() -> World {
    World::new(BTreeMap::new(), Now { monotonic_us: 1_000_000, wall_ms: START_MS }, u64::MAX)
}

/// The other datacenter says that it has nothing beyond `end`, so long after the start. Its entries are from the start.
fn heartbeat(world: &mut World, end: u64, after_ms: u64) {
    world.now.wall_ms = START_MS + after_ms;
    let from = Address::Partition { datacenter: OTHER, partition: PARTITION };
    world.message(from, Message::Heartbeat { end: Position(end) });
    world.now.wall_ms = START_MS;
}

/// What is known to be received and to be applied, in milliseconds after the start.
fn known(world: &World) -> (u64, u64) {
    let after = |time: LogicalTime| time.ms() - START_MS;
    let times = &world.partition.others.stable_time.times;
    (after(times.received().at(OTHER)), after(times.applied().at(OTHER)))
}

#[test]
fn a_heartbeat_counts_when_all_that_went_before_it_is_here() {
    let mut world = world();
    world.receive(1, "a", put("1"));
    assert_eq!(known(&world), (0, 0));
    heartbeat(&mut world, 1, 100);
    assert_eq!(known(&world), (100, 100));
    for (end, after_ms) in [(2, 200), (4, 300), (4, 400)] {
        heartbeat(&mut world, end, after_ms);
    }
    assert_eq!(known(&world), (100, 100), "each came before an entry");
    world.receive(2, "a", put("2"));
    assert_eq!(known(&world), (200, 200));
    world.receive(3, "a", put("3"));
    assert_eq!(known(&world), (200, 200));
    world.receive(4, "a", put("4"));
    assert_eq!(known(&world), (400, 400), "the latest of those that waited");
}

#[test]
fn only_what_is_behind_is_called_missing() {
    let mut world = world();
    heartbeat(&mut world, 0, 100);
    let missing = |after_ms| {
        let mut times = TimeVector::uniform(2, LogicalTime::from_ms(START_MS));
        times.raise(OTHER, LogicalTime::from_ms(START_MS + after_ms));
        world.partition.others.stable_time.times.missing_times(&world.partition.cx, &times)
    };
    assert_eq!((missing(99), missing(100)), (String::new(), String::new()));
    assert_eq!(missing(103), "dc2 is 3 ms behind at p0");
}

/// A restarted partition may have forgotten what it had received: partition 0 knows what all have.
#[test]
fn what_waits_for_a_time_goes_on_when_all_partitions_are_said_to_have_it() {
    for name in super::versions::versioned() {
        let now = Now { monotonic_us: 1_000_000, wall_ms: START_MS };
        let mut world = World::under(name, BTreeMap::new(), now, u64::MAX).started();
        let mut times = TimeVector::default();
        times.raise(OTHER, LogicalTime::from_ms(START_MS));
        let here = Address::Partition { datacenter: DatacenterId(0), partition: PARTITION };
        world.message(here, Message::AwaitTimes { check: 7, times: times.clone(), readers: None });
        let met = |world: &mut World| {
            let sent = std::iter::from_fn(|| world.partition.cx.outbox.next());
            sent.filter(|sent| matches!(sent.message, Message::DependenciesMet { check: 7, .. })).count()
        };
        assert_eq!(met(&mut world), 0, "{name}");
        let (floor, globally_stable) = (TimeVector::default(), Vec::new());
        world.message(here, Message::Stable { received: times, floor, globally_stable });
        assert_eq!(met(&mut world), 1, "{name}");
    }
}

/// What partition 0 of two tells when these have reported what they have received of the other datacenter.
fn told(reports: &[(u16, u64)]) -> Vec<(u16, u64)> {
    let now = Now { monotonic_us: 1_000_000, wall_ms: START_MS };
    let mut world = World::under("cure", BTreeMap::new(), now, u64::MAX).started();
    let config = Arc::get_mut(&mut world.partition.cx.config).expect("nobody else has it");
    config.topology.partitions = 2;
    let World { partition, .. } = &mut world;
    while partition.cx.outbox.next().is_some() {}
    for (from, received) in reports {
        let mut times = TimeVector::default();
        times.raise(OTHER, LogicalTime(*received));
        let stable_time = &mut partition.others.stable_time;
        stable_time.on_stabilization_report(PartitionId(*from), times, TimeVector::default(), &[]);
    }
    partition.others.stable_time.notify_stable(&mut partition.cx);
    let mut told = Vec::new();
    while let Some(envelope) = partition.cx.outbox.next() {
        let Address::Partition { partition, .. } = envelope.to else { continue };
        if let Message::Stable { received, .. } = envelope.message {
            told.push((partition.0, received.at(OTHER).0));
        }
    }
    told
}

#[test]
fn what_is_stable_is_told_to_all_when_all_have_reported() {
    assert_eq!(told(&[(0, 7)]), []);
    assert_eq!(told(&[(0, 7), (1, 5)]), [(0, 5), (1, 5)]);
}
