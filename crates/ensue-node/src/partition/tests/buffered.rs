//! What comes before the log is read: sessions are told so at once, and what must wait is kept within a bound.

use super::versions::World;
use bytes::Bytes;
use ensue_types::{
    Args, Context, CoreId, DatacenterId, Dependency, Extent, Incarnation, KeyspaceId, Now, OperationId,
    PartitionId, Position, RequestId, TimeVector, limits,
};
use ensue_wire::{Address, Message};
use std::collections::BTreeMap;

const HERE: DatacenterId = DatacenterId(0);
const SESSIONS: Address = Address::Core { datacenter: HERE, core: CoreId(1) };

/// A partition that has not begun to read.
fn world() -> World {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    World::under("eiger", BTreeMap::new(), now, u64::MAX)
}

fn check(world: &mut World, check: u64, dependencies: usize) {
    let (datacenter, incarnation, position) = (HERE, Incarnation(1), Position(0));
    let operation = OperationId { datacenter, incarnation, partition: super::PARTITION, position };
    let dependencies = vec![Dependency { operation, extent: Extent::Exact }; dependencies];
    world.hear(SESSIONS, Message::CheckDependencies { check, origin: None, dependencies });
}

fn said(world: &mut World) -> Vec<Message> {
    std::iter::from_fn(|| world.partition.cx.outbox.next()).map(|envelope| envelope.message).collect()
}

/// The checks that were answered.
fn met(world: &mut World) -> Vec<u64> {
    let answered = said(world).into_iter().filter_map(|message| match message {
        Message::DependenciesMet { check, .. } => Some(check),
        _ => None,
    });
    answered.collect()
}

#[test]
fn whoever_can_ask_again_is_refused_at_once() {
    let mut world = world();
    let command: Args = [&b"SET"[..], b"a", b"1"].map(Bytes::from_static).to_vec();
    let (request, keyspace, context) = (RequestId::default(), KeyspaceId(0), Context::default());
    world.hear(
        SESSIONS,
        Message::Execute { request, keyspace, context, commands: vec![command], together: false },
    );
    let [Message::Refused { reply, .. }] = &said(&mut world)[..] else { panic!("refused") };
    let words = format!("{reply:?}");
    assert!(words.contains("LOADING partition p0 is still reading its log"), "{words}");

    let first = Address::Partition { datacenter: HERE, partition: PartitionId(1) };
    world.hear(
        first,
        Message::ReadSnapshotPart { read: 7, keyspace, snapshot: TimeVector::default(), commands: vec![] },
    );
    assert!(matches!(said(&mut world)[..], [Message::SnapshotPartRefused { read: 7, .. }]));

    world.hear(SESSIONS, Message::MetricsQuery { request });
    let [Message::MetricsAnswer { metrics, .. }] = &said(&mut world)[..] else { panic!("figures") };
    assert_eq!(*metrics, [("loading".to_owned(), 1)]);
    let mut world = world.started();
    assert!(!said(&mut world).iter().any(|message| matches!(message, Message::Executed { .. })));
}

#[test]
fn a_question_that_may_wait_for_an_hour_is_kept() {
    let mut world = world();
    check(&mut world, 7, 1);
    world.now.monotonic_us += 60_000_000;
    let mut world = world.started();
    assert_eq!(met(&mut world), [7]);
}

#[test]
fn what_would_be_too_much_to_keep_is_not() {
    let mut world = world();
    let each = (1 << 20) / size_of::<Dependency>();
    for number in 0..20 {
        check(&mut world, number, each);
    }
    let mut world = world.started();
    let most = (limits::BUFFERED_BYTES_MAX >> 20) as u64;
    assert_eq!(met(&mut world), (0..most).collect::<Vec<_>>());
}

#[test]
fn what_a_broken_link_has_failed_is_not_answered() {
    let mut world = world();
    check(&mut world, 1, 1);
    world.partition.on_link_down(
        world.now,
        ensue_wire::CoreName { datacenter: HERE, core: CoreId(1) },
        &|_| false,
    );
    check(&mut world, 2, 1);
    let mut world = world.started();
    assert_eq!(met(&mut world), [2]);
}

#[test]
fn a_core_that_wants_to_be_told_of_changes_says_so_once() {
    let mut world = world();
    // However much else is kept.
    (0..20).for_each(|number| check(&mut world, number, (1 << 20) / size_of::<Dependency>()));
    for wanted in [true, false, true] {
        world.hear(SESSIONS, Message::ReportChanges { wanted });
    }
    let mut world = world.started();
    said(&mut world);
    world.run("SET x 1");
    let is_told = |message: &Message| matches!(message, Message::Changed { event, .. } if event == "set");
    assert_eq!(said(&mut world).iter().filter(|message| is_told(message)).count(), 1);
}
