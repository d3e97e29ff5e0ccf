//! What a partition does for another datacenter that has lost the end of its stream, and what it takes back of its own.

use super::catch_up::{sent, started};
use super::identity::{THIRD, answer, partition};
use super::versions::{OTHER, World, put};
use super::{PARTITION, config};
use crate::AppendFsync;
use crate::partition::Stage;
use crate::trace::Trace;
use bytes::Bytes;
use ensue_store::disk::{DiskDone, DiskOp, FileName};
use ensue_store::entry::{Change, Entry};
use ensue_store::layout;
use ensue_store::superblock::Superblock;
use ensue_store::testing::Files;
use ensue_types::{
    Causes, Column, DatacenterId, Dependency, Extent, Incarnation, KeyspaceId, LogicalTime, Now, OperationId,
    Position, RowEffect, Stamp, limits,
};
use ensue_wire::{Address, Envelope, Message};
use std::collections::BTreeMap;

const HERE: Address = Address::Partition { datacenter: DatacenterId(0), partition: PARTITION };
const ELSEWHERE: Address = Address::Partition { datacenter: OTHER, partition: PARTITION };

/// A partition that has received three entries.
fn world() -> World {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let mut world = World::new(BTreeMap::new(), now, u64::MAX);
    for position in 1..=3 {
        world.receive(position, "a", put("1"));
    }
    world
}

#[test]
fn a_question_that_is_asked_anew_is_answered_once() {
    let mut world = world();
    for after in [0, 1].map(Position) {
        let time = LogicalTime::from_ms(world.now.wall_ms);
        let message = Message::TailFetch { after };
        world.partition.on_message(world.now, Envelope { from: ELSEWHERE, to: HERE, time, message });
    }
    world.work();
    let sent = std::iter::from_fn(|| world.partition.cx.outbox.next());
    let answers = sent.filter_map(|envelope| match envelope.message {
        Message::TailFetched { after, received, entries } => Some((after, received, entries.len())),
        _ => None,
    });
    assert_eq!(answers.collect::<Vec<_>>(), [(Position(1), Position(3), 2)]);
}

#[test]
fn what_depends_on_what_was_lost_waits_for_nothing_and_is_counted() {
    let mut world = world();
    let declared = Position::before(Incarnation(2)).next();
    let receiver = world.partition.others.replication.receiver_mut(OTHER);
    receiver.expect("it replicates to here").received_at(declared);
    world.partition.visibility().lose(OTHER, Position(3), Position::before(Incarnation(2)));
    for (number, lost) in [(3, 0), (4, 1)] {
        let position = Position(number);
        let operation =
            OperationId { datacenter: OTHER, incarnation: Incarnation(1), partition: PARTITION, position };
        let dependencies = vec![Dependency { operation, extent: Extent::Exact }];
        world.message(HERE, Message::CheckDependencies { check: number, origin: None, dependencies });
        let is_answer =
            |message| matches!(message, Message::DependenciesMet { check, .. } if check == number);
        assert!(std::iter::from_fn(|| world.partition.cx.outbox.next()).any(|sent| is_answer(sent.message)));
        let counted = ("lost_dependencies".to_owned(), lost);
        assert!(world.partition.metrics().contains(&counted), "{number}");
    }
}

/// A partition that was killed before the first entry of a new incarnation was there, and the position of its one
/// entry.
fn begun_anew() -> (World, Position) {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let mut world = World::under("eiger", BTreeMap::new(), now, u64::MAX).started();
    world.run("SET a 1");
    let end = world.partition.cx.position;
    let mut files = world.files.clone();
    let superblock = files.get_mut(&FileName::Superblock).expect("it was opened");
    let mut said = Superblock::decode(superblock).expect("it is sound");
    said.incarnation = Incarnation(2);
    *superblock = said.encode().to_vec();
    (World::under("eiger", files, now, u64::MAX).started(), end)
}

/// The disk was full before the first entry of a new incarnation was there, and the partition was killed.
#[test]
fn an_incarnation_that_was_to_begin_is_not_taken_for_begun() {
    let (mut again, end) = begun_anew();
    let asked = std::iter::from_fn(|| again.partition.cx.outbox.next());
    let asks = asked.filter(|sent| sent.message == Message::TailFetch { after: end }).count();
    assert_eq!(asks, 1, "what others have of the lost entries comes first");
    again.message(ELSEWHERE, Message::TailFetched { after: end, received: end, entries: Vec::new() });
    let next = again.partition.cx.next_operation();
    assert_eq!((next.incarnation, next.position.incarnation()), (Incarnation(3), Incarnation(3)));
}

/// An answer of which nothing could be taken was answered by the same question, round trip after round trip.
#[test]
fn a_tail_of_which_nothing_can_be_taken_is_asked_for_again_a_little_later() {
    let (mut again, end) = begun_anew();
    let asks = |world: &mut World| {
        let asked = std::iter::from_fn(|| world.partition.cx.outbox.next());
        asked.filter(|sent| sent.message == Message::TailFetch { after: end }).count()
    };
    assert_eq!(asks(&mut again), 1);
    let received = end.next();
    again.message(ELSEWHERE, Message::TailFetched { after: end, received, entries: Vec::new() });
    assert_eq!(asks(&mut again), 0);
    again.now.monotonic_us += 10_000_000;
    again.partition.on_timer(again.now);
    again.work();
    assert_eq!(asks(&mut again), 1);
}

/// The other datacenter declares that its stream ended after a position, with an entry at another one.
fn declaration(world: &World, position: Position, after: u64) -> Entry {
    let time = LogicalTime::from_ms(world.now.wall_ms);
    Entry {
        position,
        stamp: Stamp { time, datacenter: OTHER, partition: PARTITION },
        dependencies: Causes::Nothing,
        change: Change::Lost { after: Position(after) },
        previous: Vec::new(),
    }
}

#[test]
fn a_stream_goes_on_behind_a_declared_loss_that_fits_to_what_is_here() {
    let first = Position::before(Incarnation(2)).next();
    let entry = |position, after| declaration(&world(), position, after);
    let of_here = Stamp { datacenter: DatacenterId(0), ..entry(first, 2).stamp };
    for (entry, received, is_refused, what) in [
        (entry(first, 3), first, false, "it ended where it was received"),
        (entry(first, 4), Position(3), false, "an entry is yet to come"),
        (entry(first, 2), Position(3), true, "what is here was declared lost"),
        (entry(first.next(), 3), Position(3), false, "no incarnation begins there"),
        (entry(first.next(), 2), Position(3), false, "no incarnation begins there"),
        (Entry { stamp: of_here, ..entry(first, 2) }, Position(3), false, "it is another one's word"),
    ] {
        let mut world = world();
        let (first, entries) = (entry.position, vec![layout::encode_entry(&entry)]);
        world.message(ELSEWHERE, Message::StreamEntries { incarnation: first.incarnation(), first, entries });
        assert_eq!(world.partition.others.replication.received(OTHER), received, "{what}");
        assert_eq!(world.partition.peers.identity.refusal(OTHER).is_some(), is_refused, "{what}");
    }
}

/// How many own entries a partition says that it has taken back.
fn taken_back(world: &World) -> Vec<u64> {
    let traces = world.partition.cx.traces.iter();
    let taken = traces.filter_map(|trace| match trace {
        Trace::TailRecovered { entries, .. } => Some(*entries),
        _ => None,
    });
    taken.collect()
}

#[test]
fn lost_entries_are_requested_until_all_are_back_and_only_what_follows_is_taken() {
    let mut world = started(BTreeMap::new(), 1);
    let files = world.files.clone();
    (0..3).for_each(|_| world.run("SET b 1"));
    let journal = &world.partition.cx.journal;
    let entries = [1, 2, 3].map(|place| journal.entry_in_memory(Position(place)).expect("just written"));

    let given = |received: u64, given: &[(u64, &[Bytes], &[u64])]| {
        let mut lost = started(files.clone(), 2);
        sent(&mut lost);
        for (end, entries, requests) in given {
            let (after, received, entries) =
                (lost.partition.cx.position, Position(received), entries.to_vec());
            lost.message(ELSEWHERE, Message::TailFetched { after, received, entries });
            let requested = sent(&mut lost).into_iter().filter_map(|message| match message {
                Message::TailFetch { after } => Some(after.0),
                _ => None,
            });
            assert_eq!(requested.collect::<Vec<_>>(), *requests, "up to {end}");
            let is_over = lost.partition.others.is_catching_up();
            assert_eq!(is_over, received.0 == *end);
            assert!(is_over || lost.partition.cx.position.0 == *end);
        }
        let counted = lost.partition.metrics().into_iter().find(|(name, _)| name == "taken_back_entries");
        let taken = taken_back(&lost);
        assert_eq!(counted.map(|(_, count)| count as u64), Some(taken.iter().sum()));
        taken
    };
    assert_eq!(given(0, &[(0, &[], &[])]), [], "the power failure has taken nothing");
    assert_eq!(given(3, &[(0, &entries[1..], &[]), (2, &entries[..2], &[2]), (3, &entries[2..], &[])]), [3]);
}

const FAR: Address = Address::Partition { datacenter: THIRD, partition: PARTITION };

/// It has nothing of this partition's stream.
fn nothing() -> Message {
    Message::TailFetched { after: Position(0), received: Position(0), entries: Vec::new() }
}

/// A partition with two others, on this boot of its machine.
fn of_three(files: Files, boot: u32) -> World {
    let mut config = config(AppendFsync::EverySecond);
    (config.boot, config.boot_id, config.tuning.checkpoint_bytes) = (boot, [boot as u8; 16], u64::MAX);
    config.topology.datacenters.push(config.topology.datacenters[1].clone());
    config.topology.datacenters[2].name = "dc3".into();
    World { partition: partition(config), now: world().now, files }.started()
}

fn asks_the_others(world: &World) -> bool {
    matches!(world.partition.stage, Stage::RecoveringTail(_))
}

#[test]
fn nobody_waits_for_the_dead() {
    let dead = |datacenter| {
        let (received, time) = (Position(0), LogicalTime::ZERO);
        Message::DatacenterFailed { datacenter, received, time, ended: None }
    };
    let mut world = of_three(of_three(BTreeMap::new(), 1).files, 2);
    world.message(ELSEWHERE, dead(DatacenterId(16)));
    world.message(ELSEWHERE, nothing());
    assert!(asks_the_others(&world), "one that there is not is dead, and no other");
    world.message(ELSEWHERE, dead(THIRD));
    assert!(!asks_the_others(&world));

    // It was declared dead before the power failed.
    let mut world = of_three(BTreeMap::new(), 1);
    world.message(ELSEWHERE, dead(THIRD));
    let mut world = of_three(world.files, 2);
    assert!(asks_the_others(&world));
    world.message(ELSEWHERE, nothing());
    assert!(!asks_the_others(&world));
}

/// What it was sent of a life that ended is not in its answer, and so may be declared lost.
#[test]
fn what_waits_of_a_life_that_ended_is_not_taken_and_what_others_sent_is() {
    let mut world = of_three(of_three(BTreeMap::new(), 1).files, 2);
    for (from, datacenter) in [(ELSEWHERE, OTHER), (FAR, THIRD)] {
        let entry = Entry { stamp: stamp(&world, datacenter), ..putting(&world, Position(1)) };
        let (incarnation, first) = (Incarnation(1), entry.position);
        let entries = vec![layout::encode_entry(&entry)];
        world.message(from, Message::StreamEntries { incarnation, first, entries });
    }
    world.message(ELSEWHERE, Message::TailFetch { after: Position(0) });
    world.message(ELSEWHERE, nothing());
    world.message(FAR, nothing());
    assert!(!asks_the_others(&world));
    let received = |datacenter| world.partition.others.replication.received(datacenter);
    assert_eq!([OTHER, THIRD].map(received), [Position(0), Position(1)]);
}

fn stamp(world: &World, datacenter: DatacenterId) -> Stamp {
    Stamp { time: LogicalTime::from_ms(world.now.wall_ms), datacenter, partition: PARTITION }
}

/// An own entry at a position.
fn putting(world: &World, position: Position) -> Entry {
    let key = Bytes::from_static(b"b");
    let effects = vec![RowEffect { key, column: Column::Text, effect: put("1").expect("it is one") }];
    Entry {
        position,
        stamp: stamp(world, DatacenterId(0)),
        dependencies: Causes::Nothing,
        change: Change::Effects { keyspace: KeyspaceId(0), transaction: None, effects },
        previous: Vec::new(),
    }
}

/// The directory has none of an incarnation that others have received, and that began by saying where the one before
/// had ended.
#[test]
fn an_incarnation_that_was_lost_is_taken_back_with_what_it_declared() {
    let files = started(BTreeMap::new(), 1).files;
    let first_of = |incarnation| Position::before(Incarnation(incarnation)).next();
    for (declared, after, incarnation, what) in [
        (first_of(2), 1, Some(3), "it ended where this log ends"),
        (first_of(3), 1, Some(4), "one lies between"),
        (first_of(2), 2, None, "an entry is yet to come"),
        (first_of(2).next(), 1, None, "no incarnation begins there"),
        (first_of(19), 1, None, "nobody begins so many, and forgets it"),
    ] {
        let mut world = started(files.clone(), 2);
        let change = Change::Lost { after: Position(after) };
        let declaration = Entry { change, ..putting(&world, declared) };
        let entries = [putting(&world, Position(1)), declaration, putting(&world, declared.next())];
        let received = declared.next();
        let entries = entries.iter().map(layout::encode_entry).collect();
        world.message(ELSEWHERE, Message::TailFetched { after: Position(0), received, entries });
        match incarnation {
            Some(incarnation) => {
                assert_eq!(taken_back(&world), [3], "{what}");
                assert_eq!(world.partition.cx.incarnation, Incarnation(incarnation), "{what}");
            }
            None => assert!(asks_the_others(&world) && world.partition.cx.position == Position(1), "{what}"),
        }
    }
}

/// Carries out what the disk is asked until it is to append to the log, for which there is no room.
fn refuse_append(world: &mut World) {
    let appends = |op: &DiskOp| matches!(op, DiskOp::Append { file: FileName::Segment(_), .. });
    while !world.partition.cx.disk_ops.front().is_some_and(appends) {
        world.next_op().expect("the log is to be written");
    }
    let Some(DiskOp::Append { file, .. }) = world.partition.cx.disk_ops.pop_front() else { panic!("seen") };
    let (op, file, reason) = ("append", Some(file), "no room".to_owned());
    world.partition.on_disk(world.now, DiskDone::Failed { op, file, full: true, reason });
}

/// As at any other time: what found no room is tried again, a reserve is made when there is some, and is given up for
/// what finds none.
#[test]
fn what_is_taken_back_waits_for_room() {
    let mut world = started(BTreeMap::new(), 1);
    let files = world.files.clone();
    (0..2).for_each(|_| world.run("SET b 1"));
    let journal = &world.partition.cx.journal;
    let entries = [1, 2].map(|place| journal.entry_in_memory(Position(place)).expect("just written"));
    let give = |world: &mut World, place: u64| {
        let (after, received) = (Position(place - 1), Position(3));
        let entries = vec![entries[place as usize - 1].clone()];
        world.hear(ELSEWHERE, Message::TailFetched { after, received, entries });
    };
    let appended = |world: &mut World| {
        let ops: Vec<DiskOp> = std::iter::from_fn(|| world.next_op()).collect();
        let appends = ops.into_iter().filter_map(|op| match op {
            DiskOp::Append { file, .. } => Some(file == FileName::Reserve),
            _ => None,
        });
        appends.collect::<Vec<bool>>()
    };
    let retry = |world: &mut World| {
        world.now.monotonic_us += limits::FULL_DISK_RETRY_US;
        world.partition.on_timer(world.now);
        appended(world)
    };
    let mut world = started(files, 2);
    give(&mut world, 1);
    refuse_append(&mut world);
    assert_eq!(appended(&mut world), [], "there is no reserve");
    assert!(asks_the_others(&world) && world.partition.cx.is_out_of_room());
    assert_eq!(retry(&mut world), [false]);
    assert_eq!(retry(&mut world), [true]);
    assert!(!world.partition.cx.is_out_of_room());
    give(&mut world, 2);
    refuse_append(&mut world);
    assert_eq!(appended(&mut world), [false], "in the place of the reserve, at once");
}

#[test]
fn a_session_is_told_who_has_not_said_what_it_has() {
    let mut world = of_three(of_three(BTreeMap::new(), 1).files, 2);
    assert!(answer(&mut world, "GET a").contains("waits for dc2, dc3"));
    world.message(FAR, nothing());
    let words = answer(&mut world, "GET a");
    assert!(words.contains("waits for dc2") && !words.contains("dc3"), "{words}");
}
