//! A copy for an empty directory: what is given, what is taken, and what breaks it off.

use super::homes::with_homes;
use super::identity::{
    THIRD, answer, asking, asking_under, confirm, introduce, introduce_third, introduction, knowing,
    partition, sent,
};
use super::versions::{OTHER, World, put};
use super::{PARTITION, config};
use crate::AppendFsync;
use crate::config::FirstStart;
use crate::partition::{Partition, Stage};
use crate::trace::Trace;
use bytes::Bytes;
use ensue_store::cell::Write;
use ensue_store::disk::{DiskDone, DiskOp, FileName};
use ensue_store::image::{self, PartitionImage, StreamImage};
use ensue_store::record::Record;
use ensue_types::{
    Breaking, CoreId, DatacenterId, DirectoryId, Incarnation, KeyspaceId, LogicalTime, Now, OperationId,
    Position, Rule, Stamp,
};
use ensue_wire::{Address, Introduction, Message, PeerStage};
use std::collections::BTreeMap;
use std::sync::Arc;

const ELSEWHERE: Address = Address::Partition { datacenter: OTHER, partition: PARTITION };
const NOW: Now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
const LOST: DirectoryId = DirectoryId(0x99);

/// What the other datacenter says, which has the lost stream up to 3 and has trimmed its log.
fn trimmed() -> Introduction {
    Introduction { is_whole: false, end: Position(9), ..knowing(LOST, 3, LogicalTime(5)) }
}

/// A partition with an empty directory that has asked for a copy, and the copy's number.
fn taking() -> (World, u64) {
    take(asking(BTreeMap::new(), 1))
}

fn take(mut world: World) -> (World, u64) {
    confirm(&mut world, trimmed());
    let number = sent(&mut world).into_iter().find_map(asked_for);
    (world, number.expect("it asks for a copy"))
}

/// The number of a copy whose first part is asked for.
fn asked_for(message: Message) -> Option<u64> {
    match message {
        Message::CopyFetch { copy, part: 0, again: false } => Some(copy),
        _ => None,
    }
}

fn item(kind: u8, bytes: &[u8]) -> Bytes {
    [&[kind], bytes].concat().into()
}

/// The image of a donor that has applied so much of the lost stream, and 9 of its own.
fn image(applied: u64) -> Bytes {
    let stream = |datacenter, watermark: u64| StreamImage {
        datacenter,
        applied_incarnation: Incarnation(1),
        watermark: Position(watermark),
        above: vec![Position(watermark + 2)],
        ..StreamImage::default()
    };
    let image = PartitionImage {
        clock: LogicalTime::from_ms(NOW.wall_ms),
        position: Position(9),
        begun: 5,
        streams: vec![stream(DatacenterId(0), applied), stream(OTHER, 9)],
        bounds: vec![Default::default(); usize::from(ensue_types::limits::KEYSPACES)],
    };
    item(image::PARTITION, &image.encode())
}

/// A flush of a keyspace, as an item.
fn flush() -> Bytes {
    let operation = OperationId {
        datacenter: OTHER,
        incarnation: Incarnation(1),
        partition: PARTITION,
        position: Position(8),
    };
    let time = LogicalTime::from_ms(NOW.wall_ms);
    let stamp = Stamp { time, datacenter: OTHER, partition: PARTITION };
    let write = Write { stamp, at: time, operation, dependencies: None };
    item(image::FLUSH, &image::flush_item(KeyspaceId(0), &write))
}

fn copied(copy: u64, part: u64, is_last: bool, items: Vec<Bytes>) -> Message {
    Message::Copied { copy, part, is_last, done: part, of: 2, items }
}

#[test]
fn a_copy_is_read_as_an_old_copy_of_the_lost_directory() {
    let (mut world, copy) = taking();
    world.message(ELSEWHERE, copied(copy, 0, false, vec![image(4), flush()]));
    assert!(sent(&mut world).contains(&Message::CopyFetch { copy, part: 1, again: false }));
    // A part that comes twice counts once.
    world.message(ELSEWHERE, copied(copy, 0, false, vec![image(4)]));
    assert!(!sent(&mut world).iter().any(|message| matches!(message, Message::CopyFetch { .. })));
    world.message(ELSEWHERE, copied(copy, 1, true, Vec::new()));
    assert!(matches!(world.partition.stage, Stage::RecoveringTail(_)));
    let files = world.files.clone();
    for mut world in [world, World::under("eventual", files, NOW, u64::MAX).started()] {
        assert!(matches!(world.partition.stage, Stage::RecoveringTail(_)), "also after another start");
        assert_eq!(world.partition.peers.identity.own(), LOST);
        // All have the own stream up to 3: what the donor has beyond is taken back.
        assert_eq!(world.partition.cx.position, Position(3));
        let others = &world.partition.others.replication;
        assert_eq!((others.received(OTHER), others.applied_through(OTHER)), (Position(9), Position(9)));
        assert_eq!(world.partition.transactions.begun(), 0);
        // Another datacenter that loses its directory is not promised what only the copy holds.
        assert!(!world.partition.cx.journal.is_whole());
        // The donor's directory is known, and nothing is claimed of the last entry of its stream.
        assert_eq!(world.partition.peers.identity.known(OTHER), introduction().directory);
        assert_eq!(world.partition.peers.identity.last_of(OTHER), LogicalTime::ZERO);
        introduce(&mut world, Introduction { is_whole: true, ..trimmed() });
        let received = Position(3);
        world.message(ELSEWHERE, Message::TailFetched { after: received, received, entries: Vec::new() });
        assert!(matches!(world.partition.stage, Stage::Serving));
        assert_eq!(world.partition.cx.incarnation, Incarnation(2));
    }
}

/// It was said when the link came up, before the other had heard that something is missing here.
#[test]
fn a_greeting_does_not_say_that_a_log_is_trimmed() {
    let mut world = asking(BTreeMap::new(), 1);
    introduce(&mut world, trimmed());
    let sent = sent(&mut world);
    assert!(!sent.iter().any(|message| matches!(message, Message::CopyFetch { .. })), "{sent:?}");
    let is_question = |message: &Message| matches!(message, Message::Introduce(own) if own.asks);
    assert!(sent.iter().any(is_question), "{sent:?}");
    assert!(answer(&mut world, "GET a").contains("LOADING"));
    introduce(&mut world, Introduction { is_whole: true, ..trimmed() });
    assert!(matches!(world.partition.stage, Stage::RecoveringTail(_)), "{:?}", world.partition.stage);
}

/// Positions of an incarnation that somebody has met are not used again.
#[test]
fn a_copy_goes_on_behind_the_last_incarnation() {
    let mut world = asking(BTreeMap::new(), 1);
    let last = Position::before(Incarnation(4)).next();
    let received = last.0;
    confirm(&mut world, Introduction { is_whole: false, ..knowing(LOST, received, LogicalTime(5)) });
    let copy = sent(&mut world).into_iter().find_map(asked_for).expect("it asks for a copy");
    world.message(ELSEWHERE, copied(copy, 0, true, vec![image(received)]));
    introduce(&mut world, Introduction { is_whole: true, ..knowing(LOST, received, LogicalTime(5)) });
    world.message(ELSEWHERE, Message::TailFetched { after: last, received: last, entries: Vec::new() });
    assert!(matches!(world.partition.stage, Stage::Serving));
    assert_eq!(world.partition.cx.incarnation, Incarnation(5));
}

#[test]
fn a_copy_that_breaks_off_leaves_nothing_behind() {
    let unreadable = item(image::EFFECT, b"nonsense");
    for (items, what) in [
        (vec![image(2)], "it lacks what all have received"),
        (vec![image(4), unreadable], "an item cannot be read"),
        (vec![Bytes::new()], "an item has no kind"),
        (vec![item(99, b"")], "an item is of no kind that there is"),
    ] {
        let (mut world, copy) = taking();
        world.message(ELSEWHERE, copied(copy, 0, false, items));
        assert!(matches!(world.partition.stage, Stage::Joining(_)), "{what}");
        assert!(!world.files.keys().any(|file| matches!(file, FileName::Checkpoint(_))), "{what}");
        // The rest of it is nobody's any more; another one begins with the next answer.
        world.message(ELSEWHERE, copied(copy, 1, true, Vec::new()));
        confirm(&mut world, trimmed());
        let is_begun =
            |message: &Message| matches!(message, Message::CopyFetch { copy: other, .. } if *other != copy);
        assert!(sent(&mut world).iter().any(is_begun), "{what}");
    }
}

/// A donor that has lost its directory meanwhile has other streams, and would be taken for the one that was asked.
#[test]
fn a_copy_does_not_go_on_with_another_directory_of_its_donor() {
    let (mut world, copy) = taking();
    world.message(ELSEWHERE, copied(copy, 0, false, vec![image(4)]));
    let another = Introduction { directory: DirectoryId(0x88), ..trimmed() };
    confirm(&mut world, another.clone());
    let anew = sent(&mut world).into_iter().find_map(asked_for).expect("it asks for a copy of that one");
    assert_ne!(anew, copy);
    world.message(ELSEWHERE, copied(copy, 1, true, Vec::new()));
    assert!(
        matches!(world.partition.stage, Stage::Joining(_)),
        "what was left of the first one counts no more"
    );
    world.message(ELSEWHERE, copied(anew, 0, true, vec![image(4)]));
    assert!(matches!(world.partition.stage, Stage::RecoveringTail(_)));
    assert_eq!(world.partition.peers.identity.known(OTHER), another.directory);
}

/// Places that were declared lost stay lost, as far as the own stream is taken from the copy; what the donor has beyond
/// comes back with the stream itself.
#[test]
fn what_was_lost_of_the_own_stream_is_known_from_the_copy() {
    let (mut world, copy) = taking();
    let mut donated = PartitionImage::decode(&image(4).slice(1..)).expect("it was just made");
    donated.streams[0].lost = vec![(Position(1), Position(2)), (Position(3), Position(4))];
    world.message(ELSEWHERE, copied(copy, 0, true, vec![item(image::PARTITION, &donated.encode())]));
    assert!(matches!(world.partition.stage, Stage::RecoveringTail(_)));
    let applied = world.partition.others.replication.applied.set(DatacenterId(0)).expect("its own stream");
    assert_eq!([2, 3, 4].map(|place| applied.is_lost(Position(place))), [true, false, false]);
    assert_eq!(applied.watermark, Position(3));
}

/// What was asked for over the old link may be lost.
#[test]
fn a_copy_goes_on_over_a_new_link_of_its_donor() {
    let (mut world, copy) = taking();
    world.message(ELSEWHERE, copied(copy, 0, false, vec![image(4)]));
    let link_up = |world: &mut World| {
        sent(world);
        world.partition.on_link_up(world.now, OTHER, &|_| true);
        let sent = sent(world);
        let asks = |message: &Message| matches!(message, Message::Introduce(Introduction { asks: true, .. }));
        assert!(sent.iter().any(asks), "whoever is there is asked");
        let fetches = sent.into_iter().filter(|message| matches!(message, Message::CopyFetch { .. }));
        fetches.collect::<Vec<_>>()
    };
    assert_eq!(link_up(&mut world), [Message::CopyFetch { copy, part: 1, again: true }]);
    world.hear(ELSEWHERE, copied(copy, 1, true, Vec::new()));
    assert!(matches!(world.partition.stage, Stage::Joining(_)), "it is being written");
    assert_eq!(link_up(&mut world), [], "it has come whole");
}

/// Nothing says again that they are up, and over them it asks for what it waits for before it serves.
#[test]
fn who_reads_its_copy_knows_the_links_that_came_up_before_and_asks_which_homes_have_moved() {
    let mut world = asking_under(with_homes(config(AppendFsync::Always)), BTreeMap::new(), 1);
    world.partition.on_link_up(world.now, OTHER, &|_| true);
    let (mut world, copy) = take(world);
    world.message(ELSEWHERE, copied(copy, 0, true, vec![image(4)]));
    introduce(&mut world, Introduction { is_whole: true, ..trimmed() });
    let received = Position(3);
    world.message(ELSEWHERE, Message::TailFetched { after: received, received, entries: Vec::new() });
    assert!(world.partition.others.is_catching_up() && world.partition.visibility().awaits_homes());
    sent(&mut world);
    world.now.monotonic_us += 1_000_000;
    world.partition.on_timer(world.now);
    world.work();
    let asks = Message::HomeMoves { asks: true, moves: Vec::new() };
    assert!(sent(&mut world).contains(&asks));
    world.message(ELSEWHERE, Message::HomeMoves { asks: false, moves: Vec::new() });
    assert!(!world.partition.visibility().awaits_homes());
}

#[test]
fn a_giver_that_takes_its_time_is_waited_for() {
    let (mut world, copy) = taking();
    world.message(ELSEWHERE, copied(copy, 0, false, vec![image(4)]));
    world.now.monotonic_us += 9_000_000;
    world.partition.on_timer(world.now);
    world.work();
    assert_eq!(abandoned(&mut world), 0);
    world.message(ELSEWHERE, copied(copy, 1, true, Vec::new()));
    assert!(matches!(world.partition.stage, Stage::RecoveringTail(_)), "{:?}", world.partition.stage);
}

/// Two others have what was lost; the first that was asked gives no copy.
#[test]
fn another_donor_is_asked_after_one_that_has_failed() {
    let mut world = of_three();
    let third = Introduction { directory: DirectoryId(0x79), ..trimmed() };
    for _ in 0..2 {
        introduce_third(&mut world, third.clone());
    }
    let asked = |world: &mut World| {
        let sent = std::iter::from_fn(|| world.partition.cx.outbox.next());
        let asked =
            sent.filter_map(|envelope| Some((envelope.to.datacenter(), asked_for(envelope.message)?)));
        asked.collect::<Vec<_>>()
    };
    confirm(&mut world, trimmed());
    let [(donor, copy)] = asked(&mut world)[..] else { panic!("one is asked") };
    assert_eq!(donor, OTHER);
    world.message(ELSEWHERE, Message::CopyRefused { copy, cannot: false });
    introduce_third(&mut world, third);
    let [(donor, _)] = asked(&mut world)[..] else { panic!("one is asked") };
    assert_eq!(donor, THIRD);
}

/// What waits for the disk is in memory.
#[test]
fn a_part_is_not_asked_for_before_the_disk_has_kept_up() {
    let (mut world, copy) = taking();
    let large = item(image::BRANCH_KEY, &vec![0; ensue_store::checkpoint::BLOCK_BYTES]);
    let asked = |world: &mut World| {
        let parts = sent(world).into_iter().filter_map(|message| match message {
            Message::CopyFetch { copy: of, part, again: false } if of == copy => Some(part),
            _ => None,
        });
        parts.collect::<Vec<u64>>()
    };
    world.hear(ELSEWHERE, copied(copy, 0, false, vec![image(4)]));
    assert_eq!(asked(&mut world), [1], "little waits for the disk");
    world.hear(ELSEWHERE, copied(copy, 1, false, vec![large; 20]));
    assert_eq!(asked(&mut world), []);
    world.work();
    assert_eq!(asked(&mut world), [2], "once");
}

/// Also one whose copy was given up meanwhile.
#[test]
fn an_error_of_the_disk_stops_who_takes_a_copy() {
    for is_given_up in [false, true] {
        let (mut world, copy) = taking();
        if is_given_up {
            world.message(ELSEWHERE, Message::CopyRefused { copy, cannot: false });
        }
        let (file, reason) = (Some(FileName::Checkpoint(1)), "input/output error".to_owned());
        let failed = DiskDone::Failed { op: "append", file, full: false, reason };
        world.partition.on_disk(world.now, failed);
        assert!(matches!(world.partition.stage, Stage::Stopped(_)));
    }
}

#[test]
fn a_giver_that_is_silent_or_refuses_is_not_waited_for() {
    for is_refused in [true, false] {
        let (mut world, copy) = taking();
        world.message(ELSEWHERE, copied(copy, 0, false, vec![image(4)]));
        if is_refused {
            world.message(ELSEWHERE, Message::CopyRefused { copy, cannot: false });
        } else {
            world.now.monotonic_us += 11_000_000;
            world.partition.on_timer(world.now);
            world.work();
        }
        sent(&mut world);
        confirm(&mut world, trimmed());
        let is_begun =
            |message: &Message| matches!(message, Message::CopyFetch { copy: other, .. } if *other != copy);
        assert!(sent(&mut world).iter().any(is_begun));
    }
}

#[test]
fn what_no_copy_can_hold_is_said() {
    let (mut world, mut copy) = taking();
    assert!(answer(&mut world, "GET a").contains("LOADING"));
    for _ in 0..2 {
        world.message(ELSEWHERE, Message::CopyRefused { copy, cannot: true });
        let words = answer(&mut world, "GET a");
        assert!(words.contains("REJOIN") && words.contains("nor by a copy"), "{words}");
        // It is asked again, and the answer to clients does not change before something comes.
        confirm(&mut world, trimmed());
        copy = sent(&mut world).into_iter().find_map(asked_for).expect("it asks again");
        assert!(answer(&mut world, "GET a").contains("REJOIN"));
    }
    world.message(ELSEWHERE, copied(copy, 0, false, vec![image(4)]));
    assert!(answer(&mut world, "GET a").contains("LOADING"), "something has come");
    let is_begun = |trace: &&Trace| matches!(trace, Trace::CopyBegun { .. });
    world.message(ELSEWHERE, copied(copy, 1, false, Vec::new()));
    assert_eq!(world.partition.cx.traces.iter().filter(is_begun).count(), 1);
}

/// How many copies a partition says to have given up that had begun.
fn abandoned(world: &mut World) -> usize {
    let is_given_up = |trace: &Trace| matches!(trace, Trace::CopyGivenUp { .. });
    world.partition.cx.traces.drain(..).filter(is_given_up).count()
}

#[test]
fn a_refusal_ends_the_copy_that_it_names_before_that_is_whole() {
    let (mut world, copy) = taking();
    world.message(ELSEWHERE, Message::CopyRefused { copy, cannot: false });
    assert_eq!(abandoned(&mut world), 0, "it had not begun");

    let (mut world, copy) = taking();
    world.message(ELSEWHERE, copied(copy, 0, false, vec![image(4)]));
    world.message(ELSEWHERE, Message::CopyRefused { copy: copy + 1, cannot: true });
    assert_eq!(abandoned(&mut world), 0, "it is about another one");
    world.message(ELSEWHERE, Message::CopyRefused { copy, cannot: false });
    assert_eq!(abandoned(&mut world), 1);
}

/// The superblock that names the copy may be on its way to the disk: it would name one that is deleted.
#[test]
fn a_copy_that_has_come_whole_is_not_given_up_for_a_refusal() {
    let (mut world, copy) = taking();
    world.hear(ELSEWHERE, copied(copy, 0, true, vec![image(4)]));
    let names = |op: Option<&DiskOp>| matches!(op, Some(DiskOp::Replace { file: FileName::Superblock, .. }));
    while !names(world.partition.cx.disk_ops.front()) {
        world.next_op().expect("the copy comes to its end");
    }
    // The donor was started again, and is asked for a part that came long ago.
    world.message(ELSEWHERE, Message::CopyRefused { copy, cannot: false });
    let again = World::under("eventual", world.files.clone(), NOW, u64::MAX).started();
    for world in [again, world] {
        assert!(matches!(world.partition.stage, Stage::RecoveringTail(_)), "{:?}", world.partition.stage);
        assert_eq!(world.partition.peers.identity.own(), LOST);
    }
}

#[test]
fn sessions_are_told_how_much_of_a_copy_is_here() {
    let (mut world, copy) = taking();
    let (part, is_last, items) = (0, false, vec![image(4)]);
    world.message(ELSEWHERE, Message::Copied { copy, part, is_last, done: 1_000, of: 4_000, items });
    let words = answer(&mut world, "GET a");
    assert!(words.contains("LOADING") && words.contains(": 25 %"), "{words}");
}

/// A partition with an empty directory that asks two others.
fn of_three() -> World {
    let mut config = config(AppendFsync::Always);
    (config.first_start, config.tuning.checkpoint_bytes) = (FirstStart::Ask, u64::MAX);
    config.topology.datacenters.push(config.topology.datacenters[1].clone());
    World { partition: partition(config), now: NOW, files: BTreeMap::new() }.started()
}

/// What the donor knows of a third directory is known, but not which entry of that stream came last; and a datacenter
/// is no neighbour of its own.
#[test]
fn the_directories_that_the_donor_knows_are_known() {
    let third = DirectoryId(0x79);
    let mut world = of_three();
    for _ in 0..2 {
        introduce_third(&mut world, Introduction { directory: third, ..trimmed() });
    }
    confirm(&mut world, trimmed());
    let copy = sent(&mut world).into_iter().find_map(asked_for).expect("it asks for a copy");
    let last = LogicalTime(7);
    let known = [(DatacenterId(0), LOST), (THIRD, third)]
        .map(|(datacenter, directory)| image::record_item(&Record::Peer { datacenter, directory, last }));
    let records = known.iter().map(|record| item(image::RECORD, record));
    world.message(ELSEWHERE, copied(copy, 0, true, [image(4)].into_iter().chain(records).collect()));
    assert!(matches!(world.partition.stage, Stage::RecoveringTail(_)));
    let identity = &world.partition.peers.identity;
    assert_eq!((identity.known(THIRD), identity.last_of(THIRD)), (third, LogicalTime::ZERO));
    assert_eq!(identity.known(DatacenterId(0)), DirectoryId::UNKNOWN);
}

#[test]
fn whoever_begins_with_an_empty_directory_asks_again_when_it_is_time() {
    let mut world = asking(BTreeMap::new(), 1);
    let due_us = world.partition.next_timer().expect("it asks again");
    let asks = |message: &Message| matches!(message, Message::Introduce(Introduction { asks: true, .. }));
    assert!(sent(&mut world).iter().any(asks));
    for (now_us, is_asked) in [(due_us - 1, false), (due_us, true)] {
        world.now.monotonic_us = now_us;
        world.partition.on_timer(world.now);
        world.work();
        assert_eq!(sent(&mut world).iter().any(asks), is_asked);
    }
    assert!(world.partition.next_timer() > Some(due_us));
}

/// A partition that has received three entries.
fn donor() -> World {
    let mut world = World::new(BTreeMap::new(), NOW, u64::MAX);
    for (position, key) in [(1, "a"), (2, "b"), (3, "c")] {
        world.receive(position, key, put("1"));
    }
    world
}

fn parts(world: &mut World, part: u64, again: bool) -> Vec<(u64, bool, Vec<Bytes>)> {
    world.message(ELSEWHERE, Message::CopyFetch { copy: 7, part, again });
    let parts = sent(world).into_iter().filter_map(|message| match message {
        Message::Copied { copy: 7, part, is_last, items, .. } => Some((part, is_last, items)),
        _ => None,
    });
    parts.collect()
}

#[test]
fn a_copy_holds_the_image_and_every_row() {
    let mut world = donor();
    let empty = Introduction { stage: PeerStage::Joining, directory: DirectoryId(0x55), ..introduction() };
    introduce(&mut world, empty);
    sent(&mut world);
    let given = parts(&mut world, 0, false);
    assert!(given.last().is_some_and(|(_, is_last, _)| *is_last));
    let items: Vec<&Bytes> = given.iter().flat_map(|(_, _, items)| items).collect();
    items
        .iter()
        .for_each(|item| image::check_item(item[0], &item.slice(1..)).expect("what is given can be read"));
    assert_eq!(items.iter().filter(|item| item[0] == image::PARTITION).count(), 1);
    let rows =
        items.iter().filter(|item| matches!(item[0], image::EFFECT | image::BARE_EFFECT | image::VERSION));
    assert_eq!(rows.count(), 3);
    // After a broken link all that the joiner lacks is sent again.
    let again = parts(&mut world, 1, true);
    assert_eq!(again, given[1..]);
    assert_eq!(parts(&mut world, 1, false), []);
}

/// What a power failure takes from the donor cannot be taken from the copy.
#[test]
fn the_last_part_waits_until_the_log_is_synced() {
    for (broken, is_early) in [(None, false), (Some(Rule::CopyWhatIsDurable), true)] {
        let _breaking = Breaking::only(broken);
        let partition = partition(config(AppendFsync::EverySecond));
        let mut world = World { partition, now: NOW, files: BTreeMap::new() }.started();
        introduce(&mut world, Introduction { stage: PeerStage::Joining, ..introduction() });
        world.run("SET a 1");
        sent(&mut world);
        world.hear(ELSEWHERE, Message::CopyFetch { copy: 7, part: 0, again: false });
        world.partition.on_turn_end();
        let is_last = |message: &Message| matches!(message, Message::Copied { is_last: true, .. });
        assert_eq!(sent(&mut world).iter().any(is_last), is_early);
        world.work();
        assert_eq!(sent(&mut world).iter().any(is_last), !is_early);
    }
}

/// The first state that forks came while the rows were walked.
#[test]
fn a_copy_that_cannot_be_ended_is_refused_once() {
    let mut config = config(AppendFsync::Always);
    config.topology.partitions = 2;
    config.topology.datacenters.iter_mut().for_each(|datacenter| datacenter.placement.push(CoreId(0)));
    let protocol = || ensue_protocol::by_name("tardis", Default::default()).expect("it is known");
    let protocols = Arc::new((0..ensue_types::limits::KEYSPACES).map(|_| protocol()).collect::<Vec<_>>());
    let partition = Partition::new(PARTITION, Arc::new(config), protocols, NOW);
    let mut world = World { partition, now: NOW, files: BTreeMap::new() }.started();
    introduce(&mut world, Introduction { stage: PeerStage::Joining, ..introduction() });
    sent(&mut world);
    world.hear(ELSEWHERE, Message::CopyFetch { copy: 7, part: 0, again: false });
    world.hear_command("SET a 1");
    world.work();
    world.work();
    let refused = Message::CopyRefused { copy: 7, cannot: true };
    assert_eq!(sent(&mut world).iter().filter(|message| **message == refused).count(), 1);
}

#[test]
fn only_who_has_lost_its_directory_is_given_a_copy_and_an_unknown_one_is_refused() {
    let mut world = donor();
    for (stage, part) in [(PeerStage::Serving, 0), (PeerStage::Joining, 4)] {
        introduce(&mut world, Introduction { stage, ..introduction() });
        sent(&mut world);
        world.partition.on_message(
            world.now,
            ensue_wire::Envelope {
                from: ELSEWHERE,
                to: Address::Partition { datacenter: DatacenterId(0), partition: PARTITION },
                time: LogicalTime::from_ms(world.now.wall_ms),
                message: Message::CopyFetch { copy: 7, part, again: false },
            },
        );
        world.work();
        let answers = sent(&mut world);
        assert!(!answers.iter().any(|message| matches!(message, Message::Copied { .. })), "{answers:?}");
    }
}

#[test]
fn nothing_is_collected_while_a_copy_is_made_and_one_that_nobody_takes_is_given_up() {
    for (broken, is_held) in [(None, true), (Some(Rule::KeepTombstonesForCopies), false)] {
        let _breaking = Breaking::only(broken);
        let mut world = donor();
        for number in 0..40_000 {
            world.hear_command(&format!("SET key:{number} 1"));
        }
        world.work();
        introduce(&mut world, Introduction { stage: PeerStage::Joining, ..introduction() });
        sent(&mut world);
        let given = parts(&mut world, 0, false);
        assert!(!given.iter().any(|(_, is_last, _)| *is_last), "it takes more than one turn");
        assert_eq!(world.partition.cx.is_checkpointing(), is_held);
        world.now.monotonic_us += 31_000_000;
        world.partition.on_timer(world.now);
        world.work();
        assert!(!world.partition.cx.is_checkpointing());
        world.message(ELSEWHERE, Message::CopyFetch { copy: 7, part: 1, again: false });
        assert!(sent(&mut world).contains(&Message::CopyRefused { copy: 7, cannot: false }));
    }
}
