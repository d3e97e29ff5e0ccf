//! What a partition says of tokens that name its own datacenter, and of entries that do.

use super::PARTITION;
use super::identity::{self, introduce, knowing};
use super::versions::{OTHER, World, put};
use crate::partition::cx::words::DECLARED_DEAD;
use ensue_types::{
    CoreId, DatacenterId, Dependency, Extent, Incarnation, LogicalTime, Now, OperationId, Position, Reply,
    RequestId, SessionId, TimeVector,
};
use ensue_wire::{Address, Message};
use std::collections::BTreeMap;

const OWN: DatacenterId = DatacenterId(0);
const SESSIONS: Address = Address::Core { datacenter: OWN, core: CoreId(0) };

/// A partition that has made two writes and received one.
fn world() -> World {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let mut world = World::new(BTreeMap::new(), now, u64::MAX);
    world.run("SET a 1");
    world.run("SET a 2");
    world.receive(1, "b", put("1"));
    while world.partition.cx.outbox.next().is_some() {}
    world
}

/// What is answered to the question of a session, or of another partition.
fn unrecoverable(world: &mut World, from: Address, question: Message) -> Option<Vec<Dependency>> {
    world.message(from, question);
    std::iter::from_fn(|| world.partition.cx.outbox.next()).find_map(|envelope| match envelope.message {
        Message::DependenciesMet { unrecoverable, .. } => Some(unrecoverable),
        _ => None,
    })
}

fn on(datacenter: DatacenterId, position: u64) -> Dependency {
    let operation = OperationId {
        datacenter,
        incarnation: Incarnation(1),
        partition: PARTITION,
        position: Position(position),
    };
    Dependency { operation, extent: Extent::Exact }
}

#[test]
fn a_session_is_told_what_was_never_issued_and_a_partition_waits_for_nothing_of_its_own() {
    let mut world = world();
    let ask = |position| Message::CheckDependencies {
        check: 1,
        origin: None,
        dependencies: vec![on(OWN, position)],
    };
    assert_eq!(unrecoverable(&mut world, SESSIONS, ask(2)), Some(vec![]));
    assert_eq!(unrecoverable(&mut world, SESSIONS, ask(3)), Some(vec![on(OWN, 3)]));
    let neighbour = Address::Partition { datacenter: OWN, partition: PARTITION };
    assert_eq!(unrecoverable(&mut world, neighbour, ask(3)), Some(vec![]), "all datacenters show the same");
    world.run("SET a 3");
    assert_eq!(unrecoverable(&mut world, SESSIONS, ask(3)), Some(vec![]), "now it was issued");
}

#[test]
fn a_time_of_its_own_that_its_clock_has_not_come_to_is_named() {
    let mut world = world();
    let ask = |after_ms: u64| {
        let mut times = TimeVector::default();
        times.raise(OWN, LogicalTime::from_ms(1_700_000_000_000 + after_ms));
        Message::AwaitTimes { check: 1, times, readers: None }
    };
    assert_eq!(unrecoverable(&mut world, SESSIONS, ask(0)), Some(vec![]));
    let named = unrecoverable(&mut world, SESSIONS, ask(10)).expect("nothing is waited for");
    assert_eq!(
        named.iter().map(|unrecoverable| unrecoverable.operation.datacenter).collect::<Vec<_>>(),
        [OWN]
    );
    world.now.wall_ms += 10;
    assert_eq!(unrecoverable(&mut world, SESSIONS, ask(10)), Some(vec![]));
}

#[test]
fn who_was_declared_dead_answers_everybody_what_to_do_and_remembers_it() {
    let mut world = world();
    let from = Address::Partition { datacenter: OTHER, partition: PARTITION };
    let message = Message::DatacenterFailed {
        datacenter: OWN,
        received: Position(2),
        time: LogicalTime::ZERO,
        ended: None,
    };
    world.message(from, message);
    let answer = |world: &mut World| {
        world.run("GET a");
        std::iter::from_fn(|| world.partition.cx.outbox.next()).find_map(|envelope| match envelope.message {
            Message::Refused { reply: Reply::Error(words), .. } => Some(words),
            _ => None,
        })
    };
    let words = answer(&mut world).expect("it is refused");
    assert!(
        words.starts_with(DECLARED_DEAD) && words.contains("dc2") && words.contains("put their data away"),
        "{words}"
    );
    let mut again = World::new(world.files, world.now, u64::MAX);
    let words = answer(&mut again).expect("it is refused again");
    assert!(words.starts_with(DECLARED_DEAD), "{words}");
}

/// Its datacenter's other partitions, or its own peer, may be the only ones that can still tell it.
#[test]
fn who_has_stopped_says_that_it_was_declared_dead_as_soon_as_it_hears_of_it() {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let mut world = World::under("eventual", BTreeMap::new(), now, u64::MAX).started();
    let copy = world.files.clone();
    world.run("SET a 1");
    let (own, last) = (world.partition.peers.identity.own(), world.partition.cx.clock.latest());
    let mut old = World::under("eventual", copy, now, u64::MAX).started();
    introduce(&mut old, knowing(own, 1, last));
    assert!(identity::answer(&mut old, "GET a").contains("STOPPED"));
    let from = Address::Partition { datacenter: OTHER, partition: PARTITION };
    let failed = |datacenter| {
        let (received, time) = (Position(0), LogicalTime::ZERO);
        Message::DatacenterFailed { datacenter, received, time, ended: None }
    };
    old.message(from, failed(DatacenterId(2)));
    assert!(identity::answer(&mut old, "GET a").contains("STOPPED"), "that is said of another one");
    old.message(from, failed(OWN));
    let words = identity::answer(&mut old, "GET a");
    assert!(words.contains(DECLARED_DEAD) && words.contains("put their data away"), "{words}");
    let request = RequestId { core: CoreId(0), boot: 0, session: SessionId(1), sequence: 1 };
    old.message(SESSIONS, Message::MetricsQuery { request });
    let metrics = identity::sent(&mut old).into_iter().find_map(|message| match message {
        Message::MetricsAnswer { metrics, .. } => Some(metrics),
        _ => None,
    });
    assert_eq!(metrics, Some(vec![("declared_dead".to_owned(), 1)]), "`status` counts it as what it is");
}

#[test]
fn what_waits_for_long_is_counted_by_whom_it_waits_for() {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let mut world = World::under("eiger", BTreeMap::new(), now, u64::MAX).started();
    // The same partition of the same stream, further on.
    world.receive_after(1, "b", put("1"), &[on(OTHER, 9)]);
    let overdue = |world: &mut World| {
        let metrics = world.partition.metrics();
        metrics.into_iter().find(|(name, _)| name == "overdue_for_dc2_entries").map(|(_, count)| count)
    };
    assert_eq!(overdue(&mut world), None);
    world.now.monotonic_us += 11_000_000;
    world.run("GET a");
    assert_eq!(overdue(&mut world), Some(1));
}
