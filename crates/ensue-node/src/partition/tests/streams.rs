//! How far and how late the streams between datacenters are, as metrics show it; how many entries go at once; and that
//! what loses arbitration, or was lost with a tail, is waited for by nobody.

use super::catch_up::{self, ELSEWHERE, lose, receive_what_waits};
use super::previous::{HERE, OTHER, partition};
use super::versions::{World, put};
use super::{PARTITION, config, identity};
use crate::AppendFsync;
use ensue_types::{CoreId, Dependency, Extent, Incarnation, LogicalTime, Now, OperationId, Position, limits};
use ensue_wire::{Address, Envelope, Message, StreamAcknowledge};
use std::collections::BTreeMap;
use std::sync::Arc;

fn metric(world: &mut World, name: &str) -> Option<i64> {
    world.partition.metrics().into_iter().find(|(one, _)| one == name).map(|(_, value)| value)
}

fn metrics<const N: usize>(world: &mut World, names: [&str; N]) -> [Option<i64>; N] {
    names.map(|name| metric(world, name))
}

fn pass(world: &mut World, us: u64) {
    world.now.monotonic_us += us;
    world.now.wall_ms += us / 1_000;
    world.partition.on_timer(world.now);
    world.work();
}

fn of_theirs(position: u64) -> Dependency {
    let (incarnation, position) = (Incarnation(1), Position(position));
    let operation = OperationId { datacenter: OTHER, incarnation, partition: PARTITION, position };
    Dependency { operation, extent: Extent::Exact }
}

/// How much of the other datacenter's stream is known and not visible, and how late that is.
fn behind(world: &mut World) -> [Option<i64>; 2] {
    metrics(world, ["behind_dc2_entries", "behind_dc2_ms_max"])
}

#[test]
fn a_stream_is_late_until_it_is_visible() {
    let visible = ["visible_dc2_entries", "visible_dc2_delay_ms"];
    let mut world = partition("eiger");
    assert_eq!(behind(&mut world), [Some(0); 2]);
    world.receive_after(1, "a", put("1"), &[of_theirs(2)]);
    assert_eq!(behind(&mut world), [Some(1), Some(0)]);
    pass(&mut world, 300_000);
    assert_eq!(behind(&mut world), [Some(1), Some(300)]);
    assert_eq!(metrics(&mut world, visible), [None; 2]);
    world.receive_after(2, "a", put("2"), &[]);
    assert_eq!(behind(&mut world), [Some(0); 2]);
    assert_eq!(metrics(&mut world, visible), [Some(2), Some(300)]);

    // Its end is known before its entries are here.
    let end = Position(4);
    let said = StreamAcknowledge {
        incarnation: Incarnation(1),
        received: Position(0),
        synced: Position(0),
        applied: Vec::new(),
        end,
        shown: LogicalTime::ZERO,
    };
    world.message(ELSEWHERE, Message::StreamAcknowledge(said));
    assert_eq!(behind(&mut world), [Some(2), Some(0)], "all before was visible");
    pass(&mut world, 200_000);
    world.receive_after(3, "a", put("3"), &[]);
    assert_eq!(behind(&mut world), [Some(1), Some(200)]);
}

#[test]
fn a_time_is_compared_with_the_clock_here() {
    let mut world = partition("eventual");
    let say = |world: &mut World, time| {
        let to = Address::Partition { datacenter: HERE, partition: PARTITION };
        let message = Message::Heartbeat { end: Position(0) };
        world.partition.on_message(world.now, Envelope { from: ELSEWHERE, to, time, message });
        world.work();
        metric(world, "ahead_dc2_ms_max")
    };
    let time = LogicalTime::from_ms(world.now.wall_ms + 70);
    assert_eq!(say(&mut world, time), Some(70));
    world.now.wall_ms += 100;
    assert_eq!(say(&mut world, LogicalTime::ZERO), Some(70), "no time is none that is behind");
    assert_eq!(say(&mut world, time), Some(-30));
}

#[test]
fn what_waits_is_counted_and_overdue_in_time() {
    let waits = ["waiting_entries", "open_dependency_checks", "dependency_waits"];
    let mut world = catch_up::started(BTreeMap::new(), 1);
    assert_eq!(metrics(&mut world, waits), [Some(0); 3]);
    receive_what_waits(&mut world);
    assert_eq!(metrics(&mut world, waits), [Some(1); 3], "it asks the partition beside");
    pass(&mut world, 1_000 * limits::OVERDUE_MS);
    assert_eq!(metric(&mut world, "overdue_for_dc2_entries"), None);
    pass(&mut world, 1);
    assert_eq!(metric(&mut world, "overdue_for_dc2_entries"), Some(1));
    let asked = catch_up::sent(&mut world);
    for answer in catch_up::met(&asked) {
        world.message(catch_up::ITS_NEIGHBOUR, answer);
    }
    assert_eq!(metrics(&mut world, waits), [Some(0), Some(0), Some(1)]);
}

#[test]
fn what_was_lost_is_waited_for_no_more() {
    let mut world = partition("eiger");
    let sessions = Address::Core { datacenter: HERE, core: CoreId(0) };
    for check in 1..=2 {
        let dependencies = vec![of_theirs(check)];
        world.message(sessions, Message::CheckDependencies { check, origin: None, dependencies });
    }
    assert_eq!(metric(&mut world, "lost_dependencies"), Some(0));
    catch_up::sent(&mut world);
    lose(&mut world);
    let met = |sent: &Message| matches!(sent, Message::DependenciesMet { .. });
    assert_eq!(catch_up::sent(&mut world).into_iter().filter(met).count(), 2);
    assert_eq!(metric(&mut world, "lost_dependencies"), Some(2));
}

#[test]
fn a_write_that_loses_is_applied_too() {
    let mut world = partition("eiger");
    world.run("SET a mine");
    world.now.wall_ms -= 1_000;
    world.receive_after(1, "a", put("older"), &[]);
    world.now.wall_ms += 1_000;
    world.receive_after(2, "b", put("1"), &[of_theirs(1)]);
    assert_eq!(world.partition.others.replication.applied_through(OTHER), Position(2));
    assert_eq!(metrics(&mut world, ["waiting_entries", "visible_dc2_entries"]), [Some(0), Some(2)]);
}

#[test]
fn a_message_has_no_more_entries_than_it_may() {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let mut world = World::under("eventual", BTreeMap::new(), now, u64::MAX).started();
    let config = Arc::get_mut(&mut world.partition.cx.config).expect("nobody else has it");
    config.tuning.stream_batch_entries = 2;
    for line in ["SET a 1", "SET a 2", "SET a 3", "SET a 4", "SET a 5"] {
        world.run(line);
    }
    world.message(ELSEWHERE, Message::StreamResume { incarnation: Incarnation(1), received: Position(0) });
    let lengths = catch_up::sent(&mut world).into_iter().filter_map(|message| match message {
        Message::StreamEntries { entries, .. } => Some(entries.len()),
        _ => None,
    });
    assert_eq!(lengths.collect::<Vec<_>>(), [2, 2, 1]);
}

/// More than a message may have of the smallest ones came out of one read of the log, and none was ever received.
#[test]
fn what_is_read_from_the_log_goes_in_messages_of_a_batch() {
    let mut config = config(AppendFsync::Always);
    (config.tuning.checkpoint_bytes, config.tuning.stream_memory_bytes) = (u64::MAX, 1);
    config.tuning.stream_batch_entries = 4;
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let mut world = World { partition: identity::partition(config), now, files: BTreeMap::new() }.started();
    (0..30).for_each(|_| world.run("SET a 1"));
    let mut next = Position(1);
    while world.partition.cx.outbox.next().is_some() {}
    world.message(ELSEWHERE, Message::StreamResume { incarnation: Incarnation(1), received: Position(0) });
    for envelope in std::iter::from_fn(|| world.partition.cx.outbox.next()) {
        let Message::StreamEntries { first, entries, .. } = envelope.message else { continue };
        assert_eq!(first, next);
        assert!(entries.len() <= 4, "{} entries", entries.len());
        next = Position(next.0 + entries.len() as u64);
    }
    assert_eq!(next, Position(31));
}

/// A datacenter that cannot take what it was sent, because its clock is behind, had a whole window sent every 50 ms.
#[test]
fn who_asks_again_for_the_same_is_sent_one_entry_until_it_takes_it() {
    for stream_memory_bytes in [1, usize::MAX] {
        let mut config = config(AppendFsync::Always);
        (config.tuning.checkpoint_bytes, config.tuning.stream_memory_bytes) = (u64::MAX, stream_memory_bytes);
        let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
        let mut world =
            World { partition: identity::partition(config), now, files: BTreeMap::new() }.started();
        (0..9).for_each(|_| world.run("SET a 1"));
        let resume = |world: &mut World, received| {
            let incarnation = Incarnation(1);
            world.message(ELSEWHERE, Message::StreamResume { incarnation, received: Position(received) });
            entries_sent(world)
        };
        assert_eq!(resume(&mut world, 0), 9);
        assert_eq!(resume(&mut world, 0), 1, "{stream_memory_bytes}");
        assert_eq!(resume(&mut world, 0), 1);
        world.message(ELSEWHERE, Message::StreamAcknowledge(received(1)));
        assert_eq!(entries_sent(&mut world), 8, "it takes them now");
        assert_eq!(resume(&mut world, 5), 4, "something before it was lost on the way");
        let core = ensue_wire::CoreName { datacenter: OTHER, core: CoreId(0) };
        world.partition.on_link_down(world.now, core, &|_| true);
        world.partition.on_link_up(world.now, OTHER, &|_| true);
        assert_eq!(resume(&mut world, 5), 4, "it may have been lost with the link");
    }
}

fn entries_sent(world: &mut World) -> usize {
    let envelopes = std::iter::from_fn(|| world.partition.cx.outbox.next());
    let sent = envelopes.map(|envelope| match envelope.message {
        Message::StreamEntries { entries, .. } => entries.len(),
        _ => 0,
    });
    sent.sum()
}

fn received(position: u64) -> StreamAcknowledge {
    let (received, incarnation) = (Position(position), Incarnation(1));
    let (synced, end, shown) = (received, Position(0), LogicalTime::ZERO);
    StreamAcknowledge { incarnation, received, synced, applied: Vec::new(), end, shown }
}

/// What waits for a datacenter that is cut off from here filled memory, for as long as the link was down.
#[test]
fn no_more_of_a_stream_is_taken_when_much_of_it_waits() {
    let mut world = partition("eiger");
    Arc::make_mut(&mut world.partition.cx.config).tuning.stream_waiting_bytes = 1;
    let received = |world: &World| world.partition.others.replication.received(OTHER).0;
    let send = |world: &mut World, positions: std::ops::RangeInclusive<u64>| {
        let entry = |position| world.entry(position, "a", put("1"), vec![of_theirs(9)].into());
        let entries = positions.clone().map(entry);
        let (incarnation, first, entries) = (Incarnation(1), Position(*positions.start()), entries.collect());
        world.message(ELSEWHERE, Message::StreamEntries { incarnation, first, entries });
    };
    send(&mut world, 1..=4);
    assert_eq!(received(&world), 1, "it waits, and is enough");
    let resumes = |world: &mut World| {
        let sent = std::iter::from_fn(|| world.partition.cx.outbox.next());
        sent.filter(|envelope| matches!(envelope.message, Message::StreamResume { .. })).count()
    };
    resumes(&mut world);
    pass(&mut world, 60_000);
    assert_eq!(resumes(&mut world), 1);
    send(&mut world, 2..=4);
    assert_eq!(received(&world), 2, "should it wait for what follows, that comes in the end");
    pass(&mut world, 60_000);
    assert_eq!(resumes(&mut world), 0, "not so often");
    world.partition.on_link_up(world.now, OTHER, &|_| true);
    pass(&mut world, 60_000);
    send(&mut world, 3..=4);
    assert_eq!(received(&world), 4, "nobody is cut off: what it waits for is on its way");
}
