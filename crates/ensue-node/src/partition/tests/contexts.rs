//! Contexts that sessions share by name: kept while they are used, and no more of them than are promised.

use super::versions::World;
use bytes::Bytes;
use ensue_types::{Context, CoreId, DatacenterId, KeyspaceId, LogicalTime, Now, Reply, RequestId, limits};
use ensue_wire::{Address, ContextName, Message};
use std::collections::BTreeMap;

const SESSIONS: Address = Address::Core { datacenter: DatacenterId(0), core: CoreId(1) };

fn world() -> World {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    World::under("eiger", BTreeMap::new(), now, u64::MAX).started()
}

fn name(number: usize) -> ContextName {
    ContextName { keyspace: KeyspaceId(0), name: Bytes::from(format!("cart {number}")) }
}

/// What a step of a session that shares a past is told when it begins: the time of that past, or an error.
fn fetch(world: &mut World, number: usize) -> Result<LogicalTime, String> {
    let request = RequestId::default();
    world.message(SESSIONS, Message::ContextFetch { request, context: name(number) });
    let answers = std::iter::from_fn(|| world.partition.cx.outbox.next()).map(|envelope| envelope.message);
    let mut answers = answers.filter_map(|message| match message {
        Message::ContextFetched { context, .. } => Some(Ok(context.time)),
        Message::Refused { reply: Reply::Error(words), .. } => Some(Err(words.to_string())),
        _ => None,
    });
    answers.next().expect("it is answered")
}

/// A step: what it began with, and then it has seen the time.
fn step(world: &mut World, number: usize, time: u64) -> Result<LogicalTime, String> {
    let fetched = fetch(world, number)?;
    let (request, context) =
        (RequestId::default(), Context { time: LogicalTime(time), ..Context::default() });
    world.hear(SESSIONS, Message::ContextMerge { request, name: name(number), context });
    Ok(fetched)
}

fn pass_minutes(world: &mut World, minutes: u64) {
    for _ in 0..minutes {
        world.now.monotonic_us += 60_000_000;
        world.now.wall_ms += 60_000;
        world.partition.on_timer(world.now);
        world.work();
    }
}

#[test]
fn a_shared_past_that_nobody_has_used_for_an_hour_is_forgotten() {
    let mut world = world();
    for number in [1, 2] {
        assert_eq!(step(&mut world, number, 40), Ok(LogicalTime(0)));
    }
    pass_minutes(&mut world, 58);
    assert_eq!(fetch(&mut world, 1), Ok(LogicalTime(40)));
    pass_minutes(&mut world, 4);
    assert_eq!(fetch(&mut world, 1), Ok(LogicalTime(40)), "it was used");
    assert_eq!(fetch(&mut world, 2), Ok(LogicalTime(0)));
}

#[test]
fn one_shared_past_too_many_is_refused_before_its_step_begins() {
    let mut world = world();
    for number in 0..limits::SHARED_CONTEXTS_MAX {
        assert_eq!(fetch(&mut world, number), Ok(LogicalTime(0)));
    }
    let refusal = fetch(&mut world, limits::SHARED_CONTEXTS_MAX);
    let words = "UNAVAILABLE partition p0 keeps 16384 causal sessions and has no room for another name";
    assert_eq!(refusal, Err(words.to_owned()));
    assert_eq!(step(&mut world, 0, 40), Ok(LogicalTime(0)), "those that are there go on");
    pass_minutes(&mut world, 62);
    assert_eq!(fetch(&mut world, limits::SHARED_CONTEXTS_MAX), Ok(LogicalTime(0)));
}

/// Sessions notice that a past was forgotten by what a fetch is told: since when it is kept.
#[test]
fn a_start_names_itself_to_those_who_fetch() {
    let since = |world: &mut World| {
        world.message(SESSIONS, Message::ContextFetch { request: RequestId::default(), context: name(1) });
        let mut sent = std::iter::from_fn(|| world.partition.cx.outbox.next());
        let since = sent.find_map(|envelope| match envelope.message {
            Message::ContextFetched { since, .. } => Some(since),
            _ => None,
        });
        since.expect("it is answered")
    };
    let mut before = world();
    let first = since(&mut before);
    assert_eq!(since(&mut before), first);
    before.work();
    let mut after = World::under("eiger", before.files.clone(), before.now, u64::MAX).started();
    assert!(since(&mut after) > first, "a later start, on the same clock");
    pass_minutes(&mut before, 62);
    assert!(since(&mut before) > first, "nobody has used it for an hour");
}
