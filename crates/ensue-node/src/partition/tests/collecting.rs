//! Which reports of another datacenter let a tombstone go.

use super::PARTITION;
use super::catch_up::{ITS_NEIGHBOUR, commit, named, prepare, started};
use super::identity::{THIRD, answer, of_three};
use super::previous::{HERE, OTHER};
use super::versions::{World, put};
use crate::NodeConfig;
use crate::partition::maintenance::collect::COLLECTED_AT_ONCE;
use bytes::Bytes;
use ensue_store::entry::{Change, Entry};
use ensue_store::layout;
use ensue_store::row::LARGE;
use ensue_store::view::View;
use ensue_types::{
    Breaking, Causes, Column, Effect, Incarnation, KeyspaceId, LogicalTime, Now, Position, RowEffect, Rule,
    Stamp, TimeVector,
};
use ensue_wire::{Address, Envelope, Message, StreamAcknowledge};
use std::collections::BTreeMap;
use std::sync::Arc;

const ELSEWHERE: Address = Address::Partition { datacenter: OTHER, partition: PARTITION };

fn place(incarnation: u16, number: u64) -> Position {
    Position(Position::before(Incarnation(incarnation)).0 + number)
}

/// A partition with one tombstone, in a round that waits for the other datacenter.
fn with_a_tombstone() -> World {
    with_a_tombstone_in("eiger")
}

fn with_a_tombstone_in(protocol: &str) -> World {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let world = World::under(protocol, BTreeMap::new(), now, u64::MAX);
    let mut world = world.started();
    world.run("SET x 1");
    world.run("DEL x");
    pass(&mut world);
    assert_eq!(tombstones(&world), 1);
    world
}

fn tombstones(world: &World) -> usize {
    let rows = world.partition.keyspaces.rows(KeyspaceId(0)).expect("it is there");
    let cells = rows.whole_rows().flat_map(|row| row.all_cells());
    cells.filter(|(_, cell)| cell.is_dead()).count()
}

/// Time passes, and what may go is looked for.
fn pass(world: &mut World) {
    pass_ms(world, 5_000);
}

fn pass_ms(world: &mut World, ms: u64) {
    world.now.monotonic_us += 1_000 * ms;
    world.now.wall_ms += ms;
    world.partition.on_timer(world.now);
    world.work();
}

fn say(world: &mut World, time: LogicalTime, message: Message) {
    let to = Address::Partition { datacenter: HERE, partition: PARTITION };
    world.partition.on_message(world.now, Envelope { from: ELSEWHERE, to, time, message });
    world.work();
}

/// It has durably applied the delete, and its own stream ends there.
fn report(world: &mut World, time: LogicalTime, end: Position) {
    report_showing(world, time, end, LogicalTime::ZERO);
}

/// The same, and its views show everything up to this stamp.
fn report_showing(world: &mut World, time: LogicalTime, end: Position, shown: LogicalTime) {
    report_through(world, 2, time, (end, shown));
}

/// It has durably applied so many entries.
fn report_through(world: &mut World, number: u64, time: LogicalTime, (end, shown): (Position, LogicalTime)) {
    let applied = vec![(HERE, Incarnation(1), place(1, number))];
    let (incarnation, received) = (Incarnation(1), place(1, number));
    let said = StreamAcknowledge { incarnation, received, synced: received, applied, end, shown };
    say(world, time, Message::StreamAcknowledge(said));
}

/// All partitions of this datacenter have heard of the present of the other one, and no view lies below it.
pub(super) fn make_stable(world: &mut World) -> LogicalTime {
    let time = LogicalTime::from_ms(world.now.wall_ms);
    let times = TimeVector::uniform(2, time);
    let from = Address::Partition { datacenter: HERE, partition: PARTITION };
    let message = Message::Stable { received: times.clone(), floor: times, globally_stable: Vec::new() };
    world.message(from, message);
    time
}

/// It has lost its tail: nothing comes of what its stream held before.
fn lose_the_tail(world: &mut World) {
    let entry = Entry {
        position: place(2, 1),
        stamp: Stamp {
            time: LogicalTime::from_ms(world.now.wall_ms),
            datacenter: OTHER,
            partition: PARTITION,
        },
        dependencies: Causes::Nothing,
        change: Change::Lost { after: place(1, 0) },
        previous: Vec::new(),
    };
    let (incarnation, entries) = (Incarnation(2), vec![layout::encode_entry(&entry)]);
    let first = entry.position;
    say(world, LogicalTime::ZERO, Message::StreamEntries { incarnation, first, entries });
}

/// It said that it had applied a delete, and that its stream ended at its fifth entry, which held a part of a
/// transaction from before that delete. It lost that part, and is given it back: the part comes behind the loss, with
/// its old time.
fn left_after_a_lost_tail() -> (usize, World) {
    let mut world = with_a_tombstone();
    let time = LogicalTime::from_ms(world.now.wall_ms);
    report(&mut world, time, place(1, 5));
    pass(&mut world);
    assert_eq!(tombstones(&world), 1, "its stream is not here up to that end");
    lose_the_tail(&mut world);
    // As long as it waits for its parts it tells no time.
    report(&mut world, LogicalTime::ZERO, place(2, 1));
    pass(&mut world);
    (tombstones(&world), world)
}

#[test]
fn what_a_datacenter_reported_before_it_lost_its_tail_lets_nothing_go() {
    let (left, mut world) = left_after_a_lost_tail();
    assert_eq!(left, 1, "its lost part may be older than the tombstone");
    let time = LogicalTime::from_ms(world.now.wall_ms);
    report(&mut world, time, place(2, 1));
    pass(&mut world);
    assert_eq!(tombstones(&world), 0, "it has said anew that nothing older comes");
}

/// Its process was killed when nobody had received the last entries, and it writes nothing since.
#[test]
fn an_end_that_was_lost_unheard_is_not_waited_for() {
    let mut world = with_a_tombstone();
    let time = LogicalTime::from_ms(world.now.wall_ms);
    report(&mut world, time, place(1, 5));
    pass(&mut world);
    assert_eq!(tombstones(&world), 1, "its stream is not here up to that end");
    report(&mut world, time.next(), place(1, 0));
    pass(&mut world);
    assert_eq!(tombstones(&world), 0);
}

/// A datacenter that writes without a pause would be waited for without an end.
#[test]
fn what_a_datacenter_writes_after_it_has_applied_the_delete_is_not_waited_for() {
    let mut world = with_a_tombstone();
    let time = LogicalTime::from_ms(world.now.wall_ms);
    report(&mut world, time, place(1, 1));
    pass(&mut world);
    report(&mut world, time.next(), place(1, 2));
    pass(&mut world);
    assert_eq!(tombstones(&world), 1, "its first entry may be older");
    world.receive_after(1, "y", put("1"), &[]);
    pass(&mut world);
    assert_eq!(tombstones(&world), 0);
}

/// While a datacenter waits for what it lost it says no time; what it wrote before it applied a deletion is waited for.
#[test]
fn an_end_that_comes_without_a_time_is_waited_for() {
    let mut world = with_a_tombstone();
    let time = LogicalTime::from_ms(world.now.wall_ms);
    report_through(&mut world, 0, time, (place(1, 0), LogicalTime::ZERO));
    pass(&mut world);
    assert_eq!(tombstones(&world), 1, "it has not applied the deletion");
    report_through(&mut world, 2, LogicalTime::ZERO, (place(1, 5), LogicalTime::ZERO));
    pass(&mut world);
    assert_eq!(tombstones(&world), 1, "what it wrote before that may be older");
}

#[test]
fn without_the_rule_the_tombstone_would_go_too_early() {
    let _breaking = Breaking::only(Some(Rule::ReportsAreOfThisLife));
    let (left, _) = left_after_a_lost_tail();
    assert_eq!(left, 0);
}

/// What is left of a tombstone when its deletion is applied everywhere, shown by the views here, and shown by those of
/// the other datacenter or not.
fn left_where_views_hide(is_shown_here: bool, is_shown_there: bool) -> usize {
    let mut world = with_a_tombstone_in("cure");
    let time = match is_shown_here {
        true => make_stable(&mut world),
        false => LogicalTime::from_ms(world.now.wall_ms),
    };
    let shown = if is_shown_there { time } else { LogicalTime::from_ms(time.ms() - 60_000) };
    report_showing(&mut world, time, Position(0), shown);
    pass(&mut world);
    tombstones(&world)
}

#[test]
fn a_tombstone_waits_until_the_views_of_every_datacenter_show_it() {
    assert_eq!(left_where_views_hide(true, true), 0);
    assert_eq!(left_where_views_hide(true, false), 1, "a removal there could hide what it ends");
    assert_eq!(left_where_views_hide(false, true), 1, "and so could one here");
}

/// Nobody writes any more, and still it is said that the views show the last write: once that holds after a restart,
/// too.
#[test]
fn what_the_views_show_is_said_when_it_is_in_the_log() {
    let mut world = with_a_tombstone_in("cure");
    let shown = |world: &World| world.partition.others.replication.acknowledgements.shown_durably();
    assert_eq!(shown(&world), LogicalTime::ZERO);
    let time = make_stable(&mut world);
    assert_eq!(shown(&world), time);
    let end = world.partition.cx.journal.log_end();
    world.now.wall_ms += 10;
    make_stable(&mut world);
    assert_eq!(world.partition.cx.journal.log_end(), end, "a later time is not worth a write of its own");
    let again = World::under("cure", world.files, world.now, u64::MAX).started();
    assert_eq!(again.partition.others.stable_time.times.stable().at(OTHER), time);
}

#[test]
fn the_tombstones_of_a_large_row_go_over_several_turns() {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let mut world = World::under("eiger", BTreeMap::new(), now, u64::MAX).started();
    let count = COLLECTED_AT_ONCE + 500;
    let fields: String = (0..count).map(|number| format!(" f{number} 1")).collect();
    world.run(&format!("HSET h{fields}"));
    world.run(&format!("HDEL h{}", fields.replace(" 1", "")));
    pass(&mut world);
    let time = LogicalTime::from_ms(world.now.wall_ms);
    report(&mut world, time, Position(0));
    let mut left = vec![tombstones(&world)];
    for _ in 0..2 {
        pass(&mut world);
        left.push(tombstones(&world));
    }
    assert_eq!(left, [count, 500, 0]);
    assert_eq!(world.partition.keyspaces.keyspace(KeyspaceId(0)).bytes(), 0, "all of its memory is back");
}

#[test]
fn the_columns_of_a_removed_row_are_freed_over_several_turns() {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let mut world = World::under("eiger", BTreeMap::new(), now, u64::MAX).started();
    let fields: String = (0..20_000).map(|number| format!(" f{number} 1")).collect();
    world.run(&format!("HSET h{fields}"));
    world.run("DEL h");
    let columns = |world: &World| {
        let rows = world.partition.keyspaces.rows(KeyspaceId(0)).expect("it is there");
        rows.check_invariants();
        rows.ended_columns()
    };
    assert_eq!(tombstones(&world), 1, "of the row");
    let begun_us = world.now.monotonic_us;
    while columns(&world) > 0 {
        let before = columns(&world);
        let next_us = world.partition.next_timer().expect("it goes on by itself");
        world.now.monotonic_us = next_us.max(world.now.monotonic_us);
        world.partition.on_timer(world.now);
        world.partition.on_turn_end();
        assert_eq!(columns(&world), before.saturating_sub(16 * LARGE));
    }
    assert!(world.now.monotonic_us <= begun_us + 10_000, "it does not wait for another timer");
    pass(&mut world);
    let time = LogicalTime::from_ms(world.now.wall_ms);
    report(&mut world, time, Position(0));
    pass(&mut world);
    assert_eq!(world.partition.keyspaces.keyspace(KeyspaceId(0)).bytes(), 0, "all of its memory is back");
}

#[test]
fn what_a_flush_hides_stays_as_it_is_until_everybody_has_the_flush_and_goes_over_several_turns() {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let mut world = World::under("eiger", BTreeMap::new(), now, u64::MAX).started();
    let count = COLLECTED_AT_ONCE + 500;
    let pairs: String = (0..count).map(|number| format!(" k{number} 1")).collect();
    world.run(&format!("MSET{pairs}"));
    let rows = |world: &World| {
        let rows = world.partition.keyspaces.rows(KeyspaceId(0)).expect("it is there");
        (rows.rows_count(), rows.cells() as usize, rows.bytes())
    };
    let before = rows(&world);
    world.run("FLUSHALL");
    assert_eq!((rows(&world), tombstones(&world)), (before, 0), "nothing was rewritten");
    pass(&mut world);
    let is_known = |world: &World| {
        let rows = world.partition.keyspaces.rows(KeyspaceId(0)).expect("it is there");
        assert_eq!((rows.shown_rows().rows, rows.rows().count()), (0, 0), "none is shown");
        rows.flush_seen(View::Newest).is_some()
    };
    assert!(is_known(&world), "who reads depends on it");
    let time = LogicalTime::from_ms(world.now.wall_ms);
    report(&mut world, time, Position(0));
    let mut left = vec![rows(&world).0];
    for _ in 0..2 {
        pass(&mut world);
        left.push(rows(&world).0);
    }
    assert_eq!(left, [count, 500, 0]);
    assert_eq!(rows(&world), (0, 0, 0), "all of its memory is back");
    assert!(!is_known(&world), "everybody has it");
}

const NOTHING: (Position, LogicalTime) = (Position(0), LogicalTime::ZERO);

#[test]
fn a_tombstone_stays_until_the_delete_is_applied_elsewhere() {
    let mut world = with_a_tombstone();
    for (applied, left) in [(1, 1), (2, 0)] {
        let time = LogicalTime::from_ms(world.now.wall_ms);
        report_through(&mut world, applied, time, NOTHING);
        pass(&mut world);
        assert_eq!(tombstones(&world), left, "{applied}");
    }
}

#[test]
fn what_may_go_is_looked_for_when_an_interval_is_over() {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let mut world = World::under("eiger", BTreeMap::new(), now, u64::MAX).started();
    let interval_ms = world.partition.cx.config.tuning.collect_interval_ms;
    pass_ms(&mut world, interval_ms);
    world.run("SET x 1");
    world.run("DEL x");
    let time = LogicalTime::from_ms(world.now.wall_ms + 1);
    report(&mut world, time, Position(0));
    let mut left = Vec::new();
    for ms in [interval_ms / 2, interval_ms - interval_ms / 2] {
        pass_ms(&mut world, ms);
        left.push(tombstones(&world));
    }
    assert_eq!(left, [1, 0]);
}

/// Another survivor has more of its stream than there is here, and something older may be in that.
#[test]
fn a_tombstone_stays_until_the_stream_of_a_dead_datacenter_has_its_end_here() {
    let mut world = of_three();
    world.run("SET x 1");
    world.run("DEL x");
    let time = LogicalTime::from_ms(world.now.wall_ms);
    let (datacenter, received) = (THIRD, Position(1));
    world.message(ELSEWHERE, Message::DatacenterFailed { datacenter, received, time, ended: None });
    let later = LogicalTime::from_ms(world.now.wall_ms + 1);
    report(&mut world, later, Position(0));
    pass(&mut world);
    assert_eq!(tombstones(&world), 1);
    let effect = Effect::Put { value: Bytes::from_static(b"1"), seen: Vec::new(), over: None };
    let effects = vec![RowEffect { key: Bytes::from_static(b"y"), column: Column::Text, effect }];
    let entry = Entry {
        position: received,
        stamp: Stamp { time, datacenter, partition: PARTITION },
        dependencies: Causes::Nothing,
        change: Change::Effects { keyspace: KeyspaceId(0), transaction: None, effects },
        previous: Vec::new(),
    };
    let entries = vec![layout::encode_entry(&entry)];
    world.message(ELSEWHERE, Message::PassedOn { origin: datacenter, entries });
    pass(&mut world);
    assert_eq!(tombstones(&world), 0);
}

/// What waits in a row for its decision is not merged yet, and may be older than a tombstone there.
#[test]
fn a_tombstone_stays_while_something_waits_in_its_row() {
    let mut world = started(BTreeMap::new(), 1);
    for line in ["SET x 1", "DEL x", "SET y 1", "DEL y"] {
        world.run(line);
    }
    pass(&mut world);
    assert_eq!(tombstones(&world), 2);
    world.message(ITS_NEIGHBOUR, prepare(named(9), "SET x 2"));
    let time = LogicalTime::from_ms(world.now.wall_ms);
    report_through(&mut world, 4, time, NOTHING);
    pass(&mut world);
    assert_eq!(tombstones(&world), 1, "that of the other row is gone");
    world.message(ITS_NEIGHBOUR, commit(named(9), time));
    pass(&mut world);
    assert_eq!(tombstones(&world), 0);
    assert!(answer(&mut world, "GET x").contains("\"2\""));
}

/// Two rows whose deadline has passed are about to be deleted.
fn with_expired_rows() -> World {
    let mut world = started(BTreeMap::new(), 1);
    world.run("SET x 1 PX 1000");
    world.run("SET y 1 PX 1000");
    pass(&mut world);
    let time = LogicalTime::from_ms(world.now.wall_ms);
    report_through(&mut world, 2, time, NOTHING);
    world
}

fn expired(world: &mut World) -> Option<i64> {
    let metrics = world.partition.metrics();
    metrics.into_iter().find(|(name, _)| name == "expired_keys").map(|(_, count)| count)
}

#[test]
fn an_expired_row_is_not_deleted_while_something_waits_in_it() {
    let mut world = with_expired_rows();
    world.message(ITS_NEIGHBOUR, prepare(named(9), "SET x 2"));
    pass(&mut world);
    assert_eq!(expired(&mut world), Some(1), "the other row");
    let time = LogicalTime::from_ms(world.now.wall_ms);
    world.message(ITS_NEIGHBOUR, commit(named(9), time));
    pass(&mut world);
    assert_eq!(expired(&mut world), Some(1));
    assert!(answer(&mut world, "GET x").contains("\"2\""));
}

#[test]
fn an_expired_row_is_deleted_when_writes_are_taken_again() {
    let mut world = with_expired_rows();
    for (replication_backlog_max, count) in [(1, 0), (0, 2)] {
        let cx = &mut world.partition.cx;
        cx.config = Arc::new(NodeConfig { replication_backlog_max, ..NodeConfig::clone(&cx.config) });
        pass(&mut world);
        assert_eq!(expired(&mut world), Some(count), "{replication_backlog_max}");
    }
}
