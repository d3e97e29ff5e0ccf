//! What a partition says of tokens that name its own datacenter, and of entries that do.

use super::PARTITION;
use super::versions::{OTHER, World, put};
use crate::partition::cx::words::DECLARED_DEAD;
use ensue_types::{
    CoreId, DatacenterId, Dependency, Extent, Incarnation, LogicalTime, Now, OperationId, Position, Reply,
    TimeVector,
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
    let ask = |position| Message::CheckDependencies { check: 1, dependencies: vec![on(OWN, position)] };
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
