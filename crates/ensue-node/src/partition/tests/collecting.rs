//! Which reports of another datacenter let a tombstone go.

use super::PARTITION;
use super::previous::{HERE, OTHER};
use super::versions::World;
use crate::partition::maintenance::collect::COLLECTED_AT_ONCE;
use ensue_store::entry::{Change, Entry};
use ensue_store::layout;
use ensue_types::{Breaking, Causes, Incarnation, LogicalTime, Now, Position, Rule, Stamp};
use ensue_wire::{Address, Envelope, Message, StreamAcknowledge};
use std::collections::BTreeMap;

const ELSEWHERE: Address = Address::Partition { datacenter: OTHER, partition: PARTITION };

fn place(incarnation: u16, number: u64) -> Position {
    Position(Position::before(Incarnation(incarnation)).0 + number)
}

/// A partition with one tombstone, in a round that waits for the other datacenter.
fn with_a_tombstone() -> World {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let world = World::under("eiger", BTreeMap::new(), now, u64::MAX);
    let mut world = world.started();
    world.run("SET x 1");
    world.run("DEL x");
    pass(&mut world);
    assert_eq!(tombstones(&world), 1);
    world
}

fn tombstones(world: &World) -> usize {
    let rows = &world.partition.keyspaces.keyspaces[0];
    let cells = rows.whole_rows().flat_map(|row| row.all_cells());
    cells.filter(|(_, cell)| cell.is_dead()).count()
}

/// Time passes, and what may go is looked for.
fn pass(world: &mut World) {
    world.now.monotonic_us += 5_000_000;
    world.now.wall_ms += 5_000;
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
    let applied = vec![(HERE, Incarnation(1), place(1, 2))];
    let (incarnation, received) = (Incarnation(1), place(1, 2));
    let said = StreamAcknowledge { incarnation, received, synced: received, applied, end };
    say(world, time, Message::StreamAcknowledge(said));
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

#[test]
fn without_the_rule_the_tombstone_would_go_too_early() {
    let _breaking = Breaking::only(Some(Rule::ReportsAreOfThisLife));
    let (left, _) = left_after_a_lost_tail();
    assert_eq!(left, 0);
}

#[test]
fn the_tombstones_of_a_large_row_go_over_several_turns() {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let mut world = World::under("eiger", BTreeMap::new(), now, u64::MAX).started();
    let count = COLLECTED_AT_ONCE + 500;
    let fields: String = (0..count).map(|number| format!(" f{number} 1")).collect();
    world.run(&format!("HSET h{fields}"));
    world.run("DEL h");
    pass(&mut world);
    let time = LogicalTime::from_ms(world.now.wall_ms);
    report(&mut world, time, Position(0));
    let mut left = vec![tombstones(&world)];
    for _ in 0..2 {
        pass(&mut world);
        left.push(tombstones(&world));
    }
    assert_eq!(left, [count, 500, 0]);
    assert_eq!(world.partition.keyspaces.keyspaces[0].bytes(), 0, "all of its memory is back");
}
