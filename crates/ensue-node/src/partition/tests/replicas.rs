//! `CAUSAL WAIT` for a past in times: what was written up to then, and nothing that came later.

use super::PARTITION;
use super::versions::{World, versioned};
use ensue_types::{
    CoreId, DatacenterId, Dependency, Extent, Incarnation, LogicalTime, Now, OperationId, Position,
    RequestId, SessionId, TimeVector,
};
use ensue_wire::{Address, Message, StreamAcknowledge};
use std::collections::BTreeMap;

const HERE: DatacenterId = DatacenterId(0);
const OTHER: Address = Address::Partition { datacenter: DatacenterId(1), partition: PARTITION };
const SESSIONS: Address = Address::Core { datacenter: HERE, core: CoreId(1) };

fn through(datacenter: DatacenterId, time: LogicalTime) -> TimeVector {
    let mut times = TimeVector::default();
    times.raise(datacenter, time);
    times
}

/// In how many datacenters what was written up to these times is, as a session is told.
fn replicas(world: &mut World, times: TimeVector) -> u8 {
    let (request, dependencies) = (RequestId::default(), Vec::new());
    world.message(OTHER, Message::CountReplicas { request, dependencies, times });
    told(world).expect("it was answered")
}

/// What a session has been told.
fn told(world: &mut World) -> Option<u8> {
    std::iter::from_fn(|| world.partition.cx.outbox.next()).find_map(|envelope| match envelope.message {
        Message::ReplicasReached { datacenters, .. } => Some(datacenters),
        _ => None,
    })
}

/// The other datacenter has durably applied so much of this one's stream.
fn applied_elsewhere(world: &mut World, position: u64) {
    let (incarnation, position) = (Incarnation(1), Position(position));
    let acknowledge = StreamAcknowledge {
        incarnation,
        received: position,
        synced: position,
        end: Position(0),
        shown: LogicalTime::ZERO,
        applied: vec![(HERE, incarnation, position)],
    };
    world.message(OTHER, Message::StreamAcknowledge(acknowledge));
}

/// A protocol whose pasts are times.
fn times() -> &'static str {
    versioned().next().expect("there are some")
}

fn world() -> World {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let mut world = World::under(times(), BTreeMap::new(), now, u64::MAX).started();
    let resume = Message::StreamResume { incarnation: Incarnation(1), received: Position(0) };
    world.message(OTHER, resume);
    world
}

/// A write, and its stamp's time.
fn written(world: &mut World, line: &str) -> LogicalTime {
    world.now.monotonic_us += 1_000;
    world.now.wall_ms += 1;
    world.run(line);
    world.partition.cx.clock.latest()
}

#[test]
fn a_past_in_times_does_not_wait_for_what_others_wrote_later() {
    let mut world = world();
    let first = written(&mut world, "SET a 1");
    let second = written(&mut world, "SET b 1");
    assert_eq!(replicas(&mut world, through(HERE, first)), 1);
    applied_elsewhere(&mut world, 1);
    assert_eq!(replicas(&mut world, through(HERE, first)), 2);
    assert_eq!(replicas(&mut world, through(HERE, second)), 1);
    applied_elsewhere(&mut world, 2);
    assert_eq!(replicas(&mut world, through(HERE, second)), 2);
    assert_eq!(replicas(&mut world, TimeVector::default()), 2);
}

#[test]
fn what_has_not_been_received_is_nowhere_as_far_as_is_known() {
    let mut world = world();
    let time = LogicalTime::from_ms(world.now.wall_ms + 5);
    assert_eq!(replicas(&mut world, through(DatacenterId(1), time)), 0);
    let (request, dependencies, times) = (RequestId::default(), Vec::new(), through(DatacenterId(1), time));
    let wanted = Message::AwaitReplicas { request, dependencies, times, datacenters: 2, here: false };
    world.message(OTHER, wanted);
    assert_eq!(told(&mut world), None);
    // Who waits for it is answered when it is known that nothing is missing.
    world.now.wall_ms += 10;
    world.message(OTHER, Message::Heartbeat { end: Position(0) });
    assert_eq!(told(&mut world), Some(2));
    assert_eq!(replicas(&mut world, through(DatacenterId(1), time)), 2);
}

#[test]
fn after_a_restart_all_that_came_before_it_is_waited_for() {
    let mut world = world();
    let first = written(&mut world, "SET a 1");
    written(&mut world, "SET b 1");
    let mut again = World::under(times(), world.files, world.now, u64::MAX).started();
    again.message(OTHER, Message::StreamResume { incarnation: Incarnation(1), received: Position(2) });
    applied_elsewhere(&mut again, 1);
    assert_eq!(replicas(&mut again, through(HERE, first)), 1);
    applied_elsewhere(&mut again, 2);
    assert_eq!(replicas(&mut again, through(HERE, first)), 2);
}

/// The `sequence`th request of a session waits until both datacenters have what was written here up to a time.
fn wait(world: &mut World, session: u64, sequence: u64, time: LogicalTime) {
    let (dependencies, times) = (Vec::new(), through(HERE, time));
    let request = RequestId { session: SessionId(session), sequence, ..RequestId::default() };
    let wanted = Message::AwaitReplicas { request, dependencies, times, datacenters: 2, here: false };
    world.message(SESSIONS, wanted);
}

#[test]
fn a_session_has_one_wait_and_the_partition_keeps_no_other() {
    let mut world = world();
    let time = written(&mut world, "SET a 1");
    for sequence in 0..100 {
        wait(&mut world, 1, sequence, time);
        wait(&mut world, 2, sequence, time);
    }
    assert_eq!(world.partition.others.replication.replica_wait_count(), 2);
    // Its time is over.
    let (dependencies, times) = (Vec::new(), TimeVector::default());
    let request = RequestId { session: SessionId(1), sequence: 100, ..RequestId::default() };
    world.message(SESSIONS, Message::CountReplicas { request, dependencies, times });
    assert_eq!(world.partition.others.replication.replica_wait_count(), 1);
    assert_eq!(told(&mut world), Some(2), "of nothing there is enough");
    applied_elsewhere(&mut world, 1);
    assert_eq!(told(&mut world), Some(2));
    assert_eq!(world.partition.others.replication.replica_wait_count(), 0);
}

/// How many questions of sessions have been answered since the last call.
fn met(world: &mut World) -> usize {
    let sent = std::iter::from_fn(|| world.partition.cx.outbox.next());
    sent.filter(|sent| matches!(sent.message, Message::DependenciesMet { .. })).count()
}

/// Asks for the first entry of the other datacenter.
fn check(world: &mut World, check: u64) {
    let (datacenter, incarnation, position) = (DatacenterId(1), Incarnation(1), Position(1));
    let operation = OperationId { datacenter, incarnation, partition: PARTITION, position };
    let dependencies = [Extent::Exact, Extent::Through].map(|extent| Dependency { operation, extent });
    world.message(
        SESSIONS,
        Message::CheckDependencies { check, origin: None, dependencies: dependencies.into() },
    );
}

#[test]
fn a_question_about_operations_is_withdrawn_by_one_about_nothing() {
    // What arrives depends on nothing.
    let mut world = World::new(BTreeMap::new(), self::world().now, u64::MAX);
    check(&mut world, 7);
    check(&mut world, 8);
    check(&mut world, 8);
    assert_eq!(met(&mut world), 0);
    world.message(SESSIONS, Message::CheckDependencies { check: 7, origin: None, dependencies: Vec::new() });
    assert_eq!(met(&mut world), 1, "nothing is met at once");
    world.receive(1, "a", super::versions::put("1"));
    assert_eq!(met(&mut world), 1, "the other one, once");
}

#[test]
fn a_question_about_times_is_withdrawn_by_one_about_nothing() {
    let mut world = world();
    let times = through(DatacenterId(1), LogicalTime::from_ms(world.now.wall_ms + 5));
    for check in [7, 8, 8] {
        world.message(SESSIONS, Message::AwaitTimes { check, times: times.clone(), readers: None });
    }
    world.message(SESSIONS, Message::AwaitTimes { check: 7, times: TimeVector::default(), readers: None });
    assert_eq!(met(&mut world), 1, "nothing is met at once");
    world.now.wall_ms += 10;
    world.message(OTHER, Message::Heartbeat { end: Position(0) });
    assert_eq!(met(&mut world), 1, "the other one, once");
}

#[test]
fn sessions_behind_a_broken_link_wait_no_more() {
    let mut world = World::new(BTreeMap::new(), self::world().now, u64::MAX);
    let time = written(&mut world, "SET a 1");
    wait(&mut world, 1, 1, time);
    check(&mut world, 7);
    let times = through(DatacenterId(1), LogicalTime::from_ms(world.now.wall_ms + 5));
    world.message(SESSIONS, Message::AwaitTimes { check: 8, times, readers: None });
    world.partition.on_link_down(
        world.now,
        ensue_wire::CoreName { datacenter: HERE, core: CoreId(1) },
        &|_| false,
    );
    assert_eq!(world.partition.others.replication.replica_wait_count(), 0);
    world.receive(1, "a", super::versions::put("1"));
    world.now.wall_ms += 10;
    world.message(OTHER, Message::Heartbeat { end: Position(1) });
    assert_eq!(met(&mut world), 0);
}

#[test]
fn whoever_is_linked_and_has_all_but_the_latest_follows() {
    let mut world = world();
    let followers = |world: &World| world.partition.others.followers(&world.partition.cx, 1_000);
    assert_eq!(followers(&world), 1, "there is nothing to have");
    written(&mut world, "SET a 1");
    world.now.monotonic_us += 900_000;
    written(&mut world, "SET b 1");
    assert_eq!(followers(&world), 1, "it is not late yet");
    world.now.monotonic_us += 900_000;
    applied_elsewhere(&mut world, 1);
    assert_eq!(followers(&world), 1, "it lacks what was written lately");
    world.now.monotonic_us += 900_000;
    applied_elsewhere(&mut world, 1);
    assert_eq!(followers(&world), 0, "it lacks what was written long ago");
    applied_elsewhere(&mut world, 2);
    assert_eq!(followers(&world), 1);
}

#[test]
fn who_waits_for_the_disk_here_is_not_answered_for_that_of_another() {
    let mut world = world();
    let origin = DatacenterId(1);
    let (incarnation, position) = (Incarnation(1), Position(5));
    // The other one has its own entry on its disk, which has not come here.
    let acknowledge = StreamAcknowledge {
        incarnation,
        received: Position(0),
        synced: Position(0),
        end: Position(0),
        shown: LogicalTime::ZERO,
        applied: vec![(origin, incarnation, position)],
    };
    world.message(OTHER, Message::StreamAcknowledge(acknowledge));
    let operation = OperationId { datacenter: origin, incarnation, partition: PARTITION, position };
    for (here, expected) in [(true, None), (false, Some(1))] {
        let dependencies = vec![Dependency { operation, extent: Extent::Exact }];
        let (request, times) = (RequestId::default(), TimeVector::default());
        let wanted = Message::AwaitReplicas { request, dependencies, times, datacenters: 1, here };
        world.message(SESSIONS, wanted);
        assert_eq!(told(&mut world), expected, "{here}");
    }
}
