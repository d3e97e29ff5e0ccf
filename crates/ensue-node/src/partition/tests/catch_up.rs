//! A partition that lost power: what it waits for before it serves, and what it says meanwhile.

use super::identity::{answer, introduction};
use super::versions::{OTHER, World};
use super::{PARTITION, config};
use crate::AppendFsync;
use crate::config::DatacenterTopology;
use crate::partition::Partition;
use crate::trace::Trace;
use bytes::Bytes;
use ensue_store::disk::{DiskOp, FileName};
use ensue_store::entry::{Change, Entry};
use ensue_store::layout;
use ensue_types::{
    Causes, Column, CoreId, DatacenterId, Dependency, Effect, Extent, Incarnation, KeyspaceId, LogicalTime,
    Now, OperationId, Part, PartitionId, Position, RowEffect, Stamp, TimeVector,
};
use ensue_wire::{Address, Decision, Envelope, Message, StreamAcknowledge};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const BESIDE: PartitionId = PartitionId(1);
pub(super) const ITS_NEIGHBOUR: Address =
    Address::Partition { datacenter: DatacenterId(0), partition: BESIDE };
pub(super) const ELSEWHERE: Address = Address::Partition { datacenter: OTHER, partition: PARTITION };

/// The first of two partitions, on this boot of its machine.
pub(super) fn started(files: BTreeMap<FileName, Vec<u8>>, boot: u32) -> World {
    started_under("eiger", files, boot)
}

/// The same under a protocol.
fn started_under(protocol: &str, files: BTreeMap<FileName, Vec<u8>>, boot: u32) -> World {
    under(2, protocol, files, boot).started()
}

/// The first of two partitions, which has not begun to read its files.
pub(super) fn unstarted(files: BTreeMap<FileName, Vec<u8>>, boot: u32) -> World {
    under(2, "eiger", files, boot)
}

/// The same under a protocol, in one of so many datacenters.
fn under(datacenters: usize, protocol: &str, files: BTreeMap<FileName, Vec<u8>>, boot: u32) -> World {
    let mut config = config(AppendFsync::EverySecond);
    config.boot = boot;
    config.boot_id = [boot as u8; 16];
    config.topology.partitions = 2;
    config.topology.datacenters.truncate(datacenters);
    for datacenter in &mut config.topology.datacenters {
        let placement = vec![CoreId(0), CoreId(1)];
        *datacenter = DatacenterTopology { cores: 2, placement, ..datacenter.clone() };
    }
    config.tuning.checkpoint_bytes = u64::MAX;
    let protocol = || ensue_protocol::by_name(protocol, Default::default()).expect("known");
    let protocols = Arc::new((0..ensue_types::limits::KEYSPACES).map(|_| protocol()).collect::<Vec<_>>());
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let partition = Partition::new(PARTITION, Arc::new(config), protocols, now);
    World { partition, now, files }
}

/// The same after a power failure, when the other datacenter has said that it has nothing more of this one's stream.
fn after_power_loss(before: World) -> World {
    let mut world = started(before.files, before.partition.cx.config.boot + 1);
    let after = Position::before(Incarnation(1));
    world.message(ELSEWHERE, Message::TailFetched { after, received: after, entries: Vec::new() });
    assert!(world.partition.others.is_catching_up());
    world
}

pub(super) fn sent(world: &mut World) -> Vec<Message> {
    std::iter::from_fn(|| world.partition.cx.outbox.next()).map(|envelope| envelope.message).collect()
}

/// The neighbour has told again of all its transactions.
fn repeat(world: &mut World, asked: &[Message]) {
    let number = asked.iter().find_map(|message| match message {
        Message::Repeat { number } => Some(*number),
        _ => None,
    });
    world.message(ITS_NEIGHBOUR, Message::Repeated { number: number.expect("it was asked") });
}

/// The other datacenter says where its stream ends.
fn say_end(world: &mut World, end: u64) {
    let time = LogicalTime::from_ms(world.now.wall_ms);
    say_end_at(world, end, time);
}

/// The same, at a time of its clock.
fn say_end_at(world: &mut World, end: u64, time: LogicalTime) {
    let (incarnation, received) = (Incarnation(1), Position::before(Incarnation(1)));
    let (synced, end) = (received, Position(end));
    let said = StreamAcknowledge {
        incarnation,
        received,
        synced,
        applied: Vec::new(),
        end,
        shown: LogicalTime::ZERO,
    };
    let to = Address::Partition { datacenter: DatacenterId(0), partition: PARTITION };
    let message = Message::StreamAcknowledge(said);
    world.partition.on_message(world.now, Envelope { from: ELSEWHERE, to, time, message });
    world.work();
}

/// The first entry of the other datacenter's stream, which depends on the first one of the partition beside.
pub(super) fn receive_what_waits(world: &mut World) {
    let position = Position(1);
    let incarnation = Incarnation(1);
    let operation = OperationId { datacenter: OTHER, incarnation, partition: BESIDE, position };
    let effect = Effect::Put { value: Bytes::from_static(b"1"), seen: Vec::new(), over: None };
    // A key of the first of two partitions.
    let effects = vec![RowEffect { key: Bytes::from_static(b"b"), column: Column::Text, effect }];
    let time = LogicalTime::from_ms(world.now.wall_ms);
    let entry = Entry {
        position,
        stamp: Stamp { time, datacenter: OTHER, partition: PARTITION },
        dependencies: vec![Dependency { operation, extent: Extent::Exact }].into(),
        change: Change::Effects { keyspace: KeyspaceId(0), transaction: None, effects },
        previous: Vec::new(),
    };
    let entries = vec![layout::encode_entry(&entry)];
    world.message(ELSEWHERE, Message::StreamEntries { incarnation, first: position, entries });
}

/// A partition that lost power, has heard everything, and has yet to apply what waits; and what it asked on the way.
fn waiting() -> (World, Vec<Message>) {
    let mut world = after_power_loss(started(BTreeMap::new(), 1));
    receive_what_waits(&mut world);
    let asked = sent(&mut world);
    repeat(&mut world, &asked);
    say_end(&mut world, 1);
    (world, asked)
}

/// A transaction that the neighbour coordinates.
pub(super) fn named(position: u64) -> OperationId {
    let (datacenter, incarnation, position) = (DatacenterId(0), Incarnation(1), Position(position));
    OperationId { datacenter, incarnation, partition: BESIDE, position }
}

/// The neighbour asks for a vote for this command.
pub(super) fn prepare(transaction: OperationId, line: &str) -> Message {
    let args = line.split(' ').map(|word| Bytes::from(word.to_owned())).collect();
    let part = Part { partition: PARTITION, commands: vec![(0, args)] };
    Message::Prepare { transaction, keyspace: KeyspaceId(0), part: Some(part) }
}

/// It has decided.
pub(super) fn commit(transaction: OperationId, at: LogicalTime) -> Message {
    let stamp = Stamp { time: at, datacenter: DatacenterId(0), partition: BESIDE };
    Message::Commit { transaction, decision: Decision { at, operation: transaction, stamp } }
}

/// The neighbour has everything that it was asked for.
pub(super) fn met(asked: &[Message]) -> Vec<Message> {
    let checks = asked.iter().filter_map(|message| match message {
        Message::CheckDependencies { check, .. } => Some(*check),
        _ => None,
    });
    checks.map(|check| Message::DependenciesMet { check, unrecoverable: Vec::new() }).collect()
}

#[test]
fn it_serves_when_what_the_streams_held_is_applied_and_not_when_it_is_received() {
    let (mut world, asked) = waiting();
    assert!(world.partition.others.is_catching_up(), "a session may have seen it before");
    for message in met(&asked) {
        world.message(ITS_NEIGHBOUR, message);
    }
    assert!(!world.partition.others.is_catching_up());
}

#[test]
fn it_votes_again_for_its_neighbours_when_all_that_their_parts_would_read_has_come() {
    let mut world = started(BTreeMap::new(), 1);
    world.message(ITS_NEIGHBOUR, prepare(named(9), "INCR x"));
    let votes =
        |sent: &[Message]| sent.iter().filter(|message| matches!(message, Message::Vote { .. })).count();
    assert_eq!(votes(&sent(&mut world)), 1);

    let mut world = after_power_loss(world);
    let asked = sent(&mut world);
    assert_eq!(votes(&asked), 0);
    repeat(&mut world, &asked);
    receive_what_waits(&mut world);
    assert_eq!(votes(&sent(&mut world)), 0, "the stream may go on");
    say_end(&mut world, 1);
    assert_eq!(votes(&sent(&mut world)), 1);
}

#[test]
fn what_its_neighbours_told_an_earlier_life_does_not_count() {
    let mut world = after_power_loss(started(BTreeMap::new(), 1));
    let asked_before = sent(&mut world);
    let mut world = after_power_loss(world);
    let asked = sent(&mut world);
    say_end(&mut world, 0);
    repeat(&mut world, &asked_before);
    assert!(world.partition.others.is_catching_up());
    repeat(&mut world, &asked);
    assert!(!world.partition.others.is_catching_up());
}

/// Seed 110082483. A process that is killed before must catch up again: else it would serve without what it had taken
/// up, and shown, last.
#[test]
fn it_is_called_caught_up_on_disk_when_the_log_holds_what_it_caught_up_with() {
    let (mut world, asked) = waiting();
    // What waited is logged as applied in the turn in which all is over.
    for message in met(&asked) {
        world.hear(ITS_NEIGHBOUR, message);
    }
    assert!(!world.partition.others.is_catching_up());
    world.partition.on_turn_end();
    let end = world.partition.cx.journal.log_end();
    let mut marked = 0;
    loop {
        let written = world.partition.cx.journal.open().written().0;
        let Some(op) = world.next_op() else { break };
        if let DiskOp::Replace { file: FileName::Superblock, .. } = op {
            assert!(written >= end, "{written} of {end} bytes of the log are written");
            marked += 1;
        }
    }
    assert_eq!(marked, 1);
}

/// Another part of the same row, undecided, stands before it when the process is killed. In the next life it must not
/// be found at a later time than that of its decision: what is acknowledged until the decision is heard again would be
/// above it (trap 14).
#[test]
fn a_part_that_was_given_back_stands_at_the_time_of_its_decision_after_a_restart_too() {
    let mut world = started(BTreeMap::new(), 1);
    world.message(ITS_NEIGHBOUR, prepare(named(8), "SET x 1"));
    let decided = LogicalTime(LogicalTime::from_ms(world.now.wall_ms).0 + 1_000);

    let mut world = after_power_loss(world);
    let asked = sent(&mut world);
    world.message(ITS_NEIGHBOUR, prepare(named(9), "SET x 1"));
    world.message(ITS_NEIGHBOUR, commit(named(9), decided));
    say_end(&mut world, 0);
    repeat(&mut world, &asked);
    assert!(!world.partition.others.is_catching_up());

    let mut world = started(world.files, 2);
    assert!(!world.partition.others.is_catching_up(), "the process alone died");
    let later = LogicalTime(decided.0 + 1_000);
    world.message(ITS_NEIGHBOUR, commit(named(8), later));
    sent(&mut world);
    world.now.monotonic_us += 10_000_000;
    world.now.wall_ms += 10_000;
    world.partition.on_timer(world.now);
    world.work();
    let acknowledged = std::iter::from_fn(|| world.partition.cx.outbox.next())
        .filter(|envelope| matches!(envelope.message, Message::StreamAcknowledge(_)))
        .map(|envelope| envelope.time);
    assert!(acknowledged.max().is_some_and(|time| time < decided), "its entry has that time");
    world.message(ITS_NEIGHBOUR, commit(named(9), decided));
    assert_eq!(world.partition.keyspaces.order.earliest(), None);
}

/// Trap 14. The other datacenter says that it has applied a delete, and where its stream ends, and loses its tail. A
/// part that it had executed before that end comes again, with the time of its decision: its report holds no more.
#[test]
fn what_another_datacenter_reported_before_it_lost_its_tail_collects_no_tombstone() {
    let mut world = started(BTreeMap::new(), 1);
    world.run("SET x 1");
    world.run("DEL x");
    let own = world.partition.cx.position;
    let collects = |world: &mut World| {
        world.now.monotonic_us += 10_000_000;
        world.partition.on_timer(world.now);
        world.work();
        let collected = |trace: &Trace| matches!(trace, Trace::TombstonesCollected { .. });
        world.partition.cx.traces.drain(..).any(|trace| collected(&trace))
    };
    let says = |world: &mut World, end, time| {
        let (datacenter, incarnation, received) = (DatacenterId(0), Incarnation(1), own);
        let applied = vec![(datacenter, incarnation, own)];
        let message = Message::StreamAcknowledge(StreamAcknowledge {
            incarnation,
            received,
            synced: own,
            applied,
            end,
            shown: LogicalTime::ZERO,
        });
        let to = Address::Partition { datacenter, partition: PARTITION };
        world.partition.on_message(world.now, Envelope { from: ELSEWHERE, to, time, message });
        world.work();
    };
    assert!(!collects(&mut world), "the round begins");
    let later = LogicalTime::from_ms(world.now.wall_ms + 1_000);
    says(&mut world, Position(5), later);
    assert!(!collects(&mut world), "five entries are yet to come");

    let incarnation = Incarnation(2);
    let first = Position::before(incarnation).next();
    says(&mut world, first, LogicalTime::ZERO);
    let stamp = Stamp { time: later, datacenter: OTHER, partition: PARTITION };
    let (dependencies, change) = (Causes::Nothing, Change::Lost { after: Position(0) });
    let lost = Entry { position: first, stamp, dependencies, change, previous: Vec::new() };
    let entries = vec![layout::encode_entry(&lost)];
    world.message(ELSEWHERE, Message::StreamEntries { incarnation, first, entries });
    assert_eq!(world.partition.others.replication.applied.set(OTHER).map(|set| set.watermark), Some(first));
    assert!(!collects(&mut world), "no time was told in this life");
    says(&mut world, first, LogicalTime(later.0 + 1));
    assert!(collects(&mut world));
}

#[test]
fn a_token_in_times_waits_for_a_partition_that_takes_back_its_tail() {
    let mut world = started(started(BTreeMap::new(), 1).files, 2);
    let mut times = TimeVector::default();
    times.raise(DatacenterId(0), LogicalTime::from_ms(world.now.wall_ms));
    let session = Address::Core { datacenter: DatacenterId(0), core: CoreId(1) };
    world.message(session, Message::AwaitTimes { check: 7, times, readers: None });
    let is_answer = |message: &Message| matches!(message, Message::DependenciesMet { check: 7, .. });
    assert!(!sent(&mut world).iter().any(is_answer));
    let after = Position::before(Incarnation(1));
    world.message(ELSEWHERE, Message::TailFetched { after, received: after, entries: Vec::new() });
    assert!(sent(&mut world).iter().any(is_answer));
}

#[test]
fn a_partition_ends_its_incarnation_with_its_neighbour_once_a_start() {
    let mut world = started(BTreeMap::new(), 1);
    let first = Position::before(Incarnation(2)).next();
    // The other datacenter has nothing of this one's stream.
    world.message(ELSEWHERE, Message::Introduce(introduction()));
    for number in 1..=2 {
        world.message(ITS_NEIGHBOUR, Message::Repeat { number });
        assert!(sent(&mut world).contains(&Message::Repeated { number }));
        assert_eq!(
            (world.partition.cx.incarnation, world.partition.cx.position),
            (Incarnation(2), first),
            "{number}"
        );
    }
    // What was lost, if anything, is named, and a restart knows it.
    let again = started(world.files, 1);
    assert_eq!((again.partition.cx.incarnation, again.partition.cx.position), (Incarnation(2), first));
    assert!(
        again
            .partition
            .others
            .replication
            .applied
            .set(DatacenterId(0))
            .is_some_and(|set| set.is_lost(Position(1)))
    );
}

/// Nobody else can have what is missing if its directory is an old copy.
#[test]
fn the_only_datacenter_ends_no_incarnation() {
    let mut world = under(1, "eiger", BTreeMap::new(), 1).started();
    world.message(ITS_NEIGHBOUR, Message::Repeat { number: 1 });
    assert!(sent(&mut world).contains(&Message::Repeated { number: 1 }));
    assert_eq!(world.partition.cx.incarnation, Incarnation(1));
}

/// A datacenter that was started at the same time says where its stream ends, and promises no time yet: its directory
/// may be an old copy. What was known of its time before the power failed is not known again by that.
#[test]
fn where_a_stream_ends_counts_when_its_time_is_promised() {
    let files = started_under("cure", BTreeMap::new(), 1).files;
    let after = Position::before(Incarnation(1));
    let awaiting_it = || {
        let mut world = started_under("cure", files.clone(), 2);
        world.message(ELSEWHERE, Message::TailFetched { after, received: after, entries: Vec::new() });
        let asked = sent(&mut world);
        repeat(&mut world, &asked);
        world
    };
    let mut world = awaiting_it();
    say_end_at(&mut world, 0, LogicalTime::ZERO);
    assert!(world.partition.others.awaits_words());
    say_end(&mut world, 0);
    assert!(!world.partition.others.awaits_words());
    // One whose clock is too far ahead has promised a time, and no better one will follow soon.
    let mut world = awaiting_it();
    let ahead_ms = world.partition.cx.config.tuning.clock_ahead_ms_max + 60_000;
    let ahead = LogicalTime::from_ms(world.now.wall_ms + ahead_ms);
    say_end_at(&mut world, 0, ahead);
    assert!(!world.partition.others.awaits_words());
}

#[test]
fn it_says_how_many_records_it_has_read_when_it_has_caught_up() {
    let read = |world: &World| {
        world.partition.cx.traces.iter().find_map(|trace| match trace {
            Trace::PartitionReady { records, .. } => Some(*records),
            _ => None,
        })
    };
    let mut world = started(BTreeMap::new(), 1);
    world.run("SET b 1");
    let whole = started(world.files.clone(), 1);
    let mut world = after_power_loss(world);
    assert_eq!(read(&world), None);
    let asked = sent(&mut world);
    say_end(&mut world, 0);
    repeat(&mut world, &asked);
    assert_eq!(read(&world), read(&whole));
    assert!(read(&world) > Some(0));
}

/// Its entry came back from the other datacenter, and the coordinator, which had not heard that the part is durable
/// here, has said everything again before it heard.
#[test]
fn what_its_coordinator_has_forgotten_meanwhile_is_not_executed_again() {
    let mut world = started(BTreeMap::new(), 1);
    let files = world.files.clone();
    let at = LogicalTime::from_ms(world.now.wall_ms + 1);
    world.message(ITS_NEIGHBOUR, prepare(named(8), "INCR b"));
    world.message(ITS_NEIGHBOUR, commit(named(8), at));
    let entry = world.partition.cx.journal.entry_in_memory(Position(1)).expect("the part was executed");

    let mut world = started(files, 2);
    let (after, received) = (Position(0), Position(1));
    world.message(ELSEWHERE, Message::TailFetched { after, received, entries: vec![entry] });
    let asked = sent(&mut world);
    for position in [8, 9] {
        world.message(ITS_NEIGHBOUR, prepare(named(position), "INCR b"));
        world.message(ITS_NEIGHBOUR, commit(named(position), at));
    }
    world.now.monotonic_us += 10_000_000;
    world.partition.on_timer(world.now);
    world.work();
    let operations = vec![named(8)];
    assert!(sent(&mut world).contains(&Message::PartsSynced { operations: operations.clone() }));
    world.message(ITS_NEIGHBOUR, Message::PartsForgotten { operations });
    say_end(&mut world, 0);
    repeat(&mut world, &asked);
    assert!(!world.partition.others.is_catching_up());
    assert!(answer(&mut world, "GET b").contains("\"2\""), "the one, once, and the other one");
}

#[test]
fn an_end_needs_no_time_where_nobody_does() {
    let files = started_under("cops", BTreeMap::new(), 1).files;
    let mut world = started_under("cops", files, 2);
    let after = Position::before(Incarnation(1));
    world.message(ELSEWHERE, Message::TailFetched { after, received: after, entries: Vec::new() });
    let asked = sent(&mut world);
    repeat(&mut world, &asked);
    assert!(world.partition.others.awaits_words());
    world.now.wall_ms = 0;
    say_end(&mut world, 0);
    assert!(!world.partition.others.awaits_words());
}

/// The first entry of the other datacenter's next incarnation: it lost all that it had written.
pub(super) fn lose(world: &mut World) {
    let incarnation = Incarnation(2);
    let position = Position::before(incarnation).next();
    let time = LogicalTime::from_ms(world.now.wall_ms);
    let entry = Entry {
        position,
        stamp: Stamp { time, datacenter: OTHER, partition: PARTITION },
        dependencies: Causes::Nothing,
        change: Change::Lost { after: Position(0) },
        previous: Vec::new(),
    };
    let entries = vec![layout::encode_entry(&entry)];
    world.message(ELSEWHERE, Message::StreamEntries { incarnation, first: position, entries });
}
