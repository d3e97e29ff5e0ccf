//! What a partition makes of the times of others, and what it tells them of time.

use super::PARTITION;
use super::versions::{OTHER, World, put};
use ensue_types::{
    DatacenterId, Incarnation, LogicalTime, Now, OperationId, PartitionId, Position, TimeVector, Vector,
};
use ensue_wire::{Address, Message, StreamAcknowledge};
use std::collections::BTreeMap;
use std::sync::Arc;

const START_MS: u64 = 1_700_000_000_000;
const START: Now = Now { monotonic_us: 1_000_000, wall_ms: START_MS };
const HERE: DatacenterId = DatacenterId(0);
const ELSEWHERE: Address = Address::Partition { datacenter: OTHER, partition: PARTITION };

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

/// Partition 0 of two.
fn gatherer() -> World {
    let mut world = World::under("cure", BTreeMap::new(), START, u64::MAX).started();
    let config = Arc::get_mut(&mut world.partition.cx.config).expect("nobody else has it");
    config.topology.partitions = 2;
    world
}

/// What it tells when these have reported what they have received of the other datacenter.
fn told(world: &mut World, reports: &[(u16, u64)]) -> Vec<(u16, u64)> {
    let World { partition, .. } = world;
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
    assert_eq!(told(&mut gatherer(), &[(0, 7)]), []);
    assert_eq!(told(&mut gatherer(), &[(0, 7), (1, 5)]), [(0, 5), (1, 5)]);
}

/// Nothing of it is waited for here any more. A partition that has not heard of that would show what was lost.
#[test]
fn no_time_of_a_dead_datacenter_is_told() {
    let mut world = gatherer();
    world.partition.others.stable_time.note_lost(OTHER);
    assert_eq!(told(&mut world, &[(0, 7), (1, 5)]), [(0, 5), (1, 5)]);
}

/// A partition whose stream the other datacenter has requested.
fn requested(protocol: &str) -> World {
    let mut world = World::under(protocol, BTreeMap::new(), START, u64::MAX).started();
    world.message(ELSEWHERE, Message::StreamResume { incarnation: Incarnation(1), received: Position(0) });
    world
}

/// What has been sent when a turn has ended, so long after the start, and was not looked at before.
fn turn(world: &mut World, after_ms: u64) -> Vec<Message> {
    let (monotonic_us, wall_ms) = (START.monotonic_us + 1_000 * after_ms, START_MS + after_ms);
    world.now = Now { monotonic_us, wall_ms };
    world.partition.on_timer(world.now);
    world.work();
    std::iter::from_fn(|| world.partition.cx.outbox.next()).map(|envelope| envelope.message).collect()
}

/// Heartbeats and reports of a round among messages.
fn of_time(sent: &[Message]) -> (usize, usize) {
    let heartbeats = sent.iter().filter(|message| matches!(message, Message::Heartbeat { .. })).count();
    let reports = sent.iter().filter(|message| matches!(message, Message::StabilizationReport { .. }));
    (heartbeats, reports.count())
}

/// Those that wait for a time are looked at once for all that has risen.
#[test]
fn a_time_that_has_risen_is_remembered_until_those_that_wait_are_looked_at() {
    let mut world = world();
    let stable_time = &mut world.partition.others.stable_time;
    stable_time.take_times_risen();
    let time = LogicalTime::from_ms(START_MS + 9);
    stable_time.raise_applied(OTHER, time);
    // What is said again raises nothing, and nobody has looked.
    stable_time.raise_applied(OTHER, time);
    stable_time.raise_received(OTHER, LogicalTime::ZERO);
    assert!(stable_time.have_times_risen());
    assert!(stable_time.take_times_risen() && !stable_time.have_times_risen());
}

/// A heartbeat goes to a datacenter to which nothing was sent for an interval.
#[test]
fn heartbeats_and_rounds_keep_their_intervals() {
    let mut world = requested("cure");
    let tuning = &world.partition.cx.config.tuning;
    let round_ms = world.partition.cx.protocols[0].needs().stabilization_ms;
    assert_eq!((tuning.heartbeat_interval_ms, round_ms), (10, Some(5)));
    let (mut heartbeats, mut rounds) = of_time(&turn(&mut world, 0));
    assert_eq!((heartbeats, rounds), (0, 1), "it was started before it was asked for its stream");
    for (after_ms, writes, expected) in [
        (4, false, (0, 0)),
        (5, false, (0, 1)),
        (10, false, (1, 1)),
        (13, true, (0, 0)),
        (15, false, (0, 1)),
        (20, false, (0, 1)),
        (22, false, (0, 0)),
        (23, false, (1, 0)),
    ] {
        let mut sent = turn(&mut world, after_ms);
        if writes {
            world.run("SET a 1");
            sent.extend(turn(&mut world, after_ms));
            assert!(sent.iter().any(|message| matches!(message, Message::StreamEntries { .. })));
        }
        assert_eq!(of_time(&sent), expected, "after {after_ms} ms");
        (heartbeats, rounds) = (heartbeats + expected.0, rounds + expected.1);
    }
    let metrics: BTreeMap<_, _> = world.partition.metrics().into_iter().collect();
    let counted = ["heartbeats", "stabilization_rounds"].map(|name| metrics[name] as usize);
    assert_eq!(counted, [heartbeats, rounds]);
}

/// Another partition may have known it from heartbeats, which are in no log.
#[test]
fn what_a_log_proves_is_told_until_it_is_gathered() {
    let time = LogicalTime::from_ms(START_MS);
    let through = |time| {
        let mut times = TimeVector::default();
        times.raise(OTHER, time);
        times
    };
    let says = |world: &mut World, partition: u16, received: LogicalTime, floor: LogicalTime| {
        let from = Address::Partition { datacenter: HERE, partition: PartitionId(partition) };
        let (received, floor) = (through(received), through(floor));
        world.message(from, Message::Stable { received, floor, globally_stable: Vec::new() });
    };
    let mut before = requested("cure");
    says(&mut before, 0, time, LogicalTime::ZERO);
    before.run("SET a 1");

    let mut world = World::under("cure", before.files, START, u64::MAX).started();
    let mut after_ms = 0;
    let mut tells = |world: &mut World| {
        turn(world, after_ms);
        after_ms += 10;
        let sent = turn(world, after_ms);
        sent.iter()
            .any(|message| matches!(message, Message::Stable { received, .. } if *received == through(time)))
    };
    assert!(tells(&mut world));
    says(&mut world, 0, time, LogicalTime::ZERO);
    assert!(tells(&mut world), "that is what it says itself");
    says(&mut world, 1, time, LogicalTime(1));
    assert!(tells(&mut world), "another one has gathered nothing");
    says(&mut world, 0, LogicalTime(time.0 - 1), LogicalTime(1));
    assert!(tells(&mut world), "that is less");
    says(&mut world, 0, time, LogicalTime(1));
    assert!(!tells(&mut world));
}

/// For twice the time that a read transaction may take: nobody need depend on it any more.
#[test]
fn what_all_have_had_for_long_is_told() {
    let mut world = requested("cops-gt");
    world.run("SET a 1");
    let (incarnation, position) = (Incarnation(1), Position(1));
    let said = StreamAcknowledge {
        incarnation,
        received: position,
        synced: position,
        applied: vec![(HERE, incarnation, position)],
        end: Position(0),
        shown: LogicalTime::ZERO,
    };
    world.message(ELSEWHERE, Message::StreamAcknowledge(said));
    let operation = OperationId { datacenter: HERE, incarnation, partition: PARTITION, position };
    let tells = |world: &mut World, after_ms| {
        let reports = turn(world, after_ms).into_iter().filter_map(|message| match message {
            Message::StabilizationReport { globally_stable, .. } => Some(globally_stable),
            _ => None,
        });
        reports.last().expect("a round begins").contains(&operation)
    };
    let round_ms = world.partition.cx.protocols[0].needs().stabilization_ms.expect("it has rounds");
    let age_ms = 2 * world.partition.cx.config.tuning.read_transaction_timeout_ms;
    assert!(!tells(&mut world, round_ms));
    assert!(!tells(&mut world, age_ms));
    assert!(tells(&mut world, round_ms + age_ms));
}

/// A round folds a thousand locations, and the turns after it more than has been written since, however much that is.
#[test]
fn what_no_read_transaction_needs_is_folded_as_fast_as_it_is_written() {
    let mut world = requested("cops-gt");
    (0..3_000).for_each(|number| world.hear_command(&format!("SET k{number} v")));
    world.work();
    let kept_ms = world.partition.cx.config.tuning.read_mark_ms;
    let round_ms = world.partition.cx.protocols[0].needs().stabilization_ms.expect("it has rounds");
    turn(&mut world, kept_ms);
    let keyspace = ensue_types::KeyspaceId(0);
    assert_eq!(world.partition.keyspaces.keyspace(keyspace).versions(), 3_000, "a read may need them");
    turn(&mut world, kept_ms + 2 * round_ms);
    assert_eq!(world.partition.keyspaces.keyspace(keyspace).versions(), 2_000);
    (3_000..4_000).for_each(|number| world.hear_command(&format!("SET k{number} v")));
    world.work();
    assert_eq!(
        world.partition.keyspaces.keyspace(keyspace).versions(),
        1_000,
        "those that were just written"
    );
}

#[test]
fn a_read_that_is_late_is_told_for_whom() {
    let mut world = requested("pocc");
    let mut times = TimeVector::default();
    times.raise(OTHER, LogicalTime::from_ms(START_MS + 5));
    world.run_after(Vector { times, ..Vector::default() }.into(), "GET a");
    let answers = |world: &mut World, after_ms| {
        let answers = turn(world, after_ms).into_iter().filter_map(|message| match message {
            Message::Executed { replies, .. } | Message::TimedOut { replies, .. } => Some(replies),
            _ => None,
        });
        answers.flatten().map(|reply| format!("{reply:?}")).collect::<Vec<_>>()
    };
    assert!(answers(&mut world, 0).is_empty());
    let late = answers(&mut world, 60_000);
    assert!(late.len() == 1 && late[0].contains("dc2 has not been heard yet at p0"), "{late:?}");
}
