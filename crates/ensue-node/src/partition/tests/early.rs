//! What comes before the log is read: kept as long as somebody waits for the answer, and within a bound.

use super::versions::World;
use bytes::Bytes;
use ensue_types::{
    Context, CoreId, DatacenterId, Dependency, Extent, Incarnation, KeyspaceId, Now, OperationId, Position,
    Reply, RequestId,
};
use ensue_wire::{Address, Message};
use std::collections::BTreeMap;

const SESSIONS: Address = Address::Core { datacenter: DatacenterId(0), core: CoreId(1) };

/// A partition that has not begun to read.
fn world() -> World {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    World::under("eiger", BTreeMap::new(), now, u64::MAX)
}

/// A session's write of a value of so many bytes.
fn write(world: &mut World, sequence: u64, bytes: usize) {
    let args = [Bytes::from_static(b"SET"), Bytes::from_static(b"a"), Bytes::from(vec![b'1'; bytes])];
    let request = RequestId { sequence, ..RequestId::default() };
    let (keyspace, context) = (KeyspaceId(0), Context::default());
    world.hear(
        SESSIONS,
        Message::Execute { request, keyspace, context, commands: vec![args.into_iter().collect()] },
    );
}

/// What sessions were told: which requests were executed, and what was said to which others.
fn told(world: &mut World) -> (Vec<u64>, Vec<(u64, Reply)>) {
    let (mut executed, mut refused) = (Vec::new(), Vec::new());
    for envelope in std::iter::from_fn(|| world.partition.outbox.next()) {
        match envelope.message {
            Message::Executed { request, .. } => executed.push(request.sequence),
            Message::Refused { request, reply } => refused.push((request.sequence, reply)),
            _ => {}
        }
    }
    (executed, refused)
}

#[test]
fn what_nobody_waits_for_any_more_is_not_carried_out() {
    let mut world = world();
    write(&mut world, 1, 1);
    world.now.monotonic_us += 3_000_000;
    write(&mut world, 2, 1);
    world.now.monotonic_us += 3_000_000;
    let mut world = world.started();
    assert_eq!(told(&mut world), (vec![2], Vec::new()), "the first was answered UNKNOWN a second ago");
}

#[test]
fn a_question_that_may_wait_for_an_hour_is_kept() {
    let mut world = world();
    let (datacenter, incarnation, position) = (DatacenterId(0), Incarnation(1), Position(0));
    let operation = OperationId { datacenter, incarnation, partition: super::PARTITION, position };
    let dependencies = vec![Dependency { operation, extent: Extent::Exact }];
    world.hear(SESSIONS, Message::CheckDependencies { check: 7, dependencies });
    world.now.monotonic_us += 60_000_000;
    let mut world = world.started();
    let mut sent = std::iter::from_fn(|| world.partition.outbox.next());
    assert!(sent.any(|envelope| matches!(envelope.message, Message::DependenciesMet { check: 7, .. })));
}

#[test]
fn what_would_be_too_much_to_keep_is_refused() {
    let mut world = world();
    let requests = 20;
    for sequence in 0..requests {
        write(&mut world, sequence, 1 << 20);
    }
    let (executed, refused) = told(&mut world);
    assert_eq!(executed, []);
    let kept = requests - refused.len() as u64;
    assert!((10..requests).contains(&kept), "{kept}");
    let Some((_, Reply::Error(words))) = refused.last() else { panic!("{refused:?}") };
    assert_eq!(words, "UNAVAILABLE partition p0 is still reading its log, and too much waits for it already");
    let mut world = world.started();
    assert_eq!(told(&mut world), ((0..kept).collect(), Vec::new()));
}

#[test]
fn what_a_broken_link_has_failed_is_not_carried_out() {
    let mut world = world();
    write(&mut world, 1, 1);
    world.partition.on_link_down(world.now, DatacenterId(0), CoreId(1), &|_| false);
    write(&mut world, 2, 1);
    let mut world = world.started();
    assert_eq!(told(&mut world), (vec![2], Vec::new()));
}
