//! Decided write transactions: when the coordinator announces a decision, whom it notifies again after a broken link or
//! a restart, and what a participant may report.

use super::PARTITION;
use super::catch_up::{BESIDE, ELSEWHERE, ITS_NEIGHBOUR, started, unstarted};
use super::identity::introduction;
use super::versions::{OTHER, World};
use crate::AppendFsync;
use crate::partition::stage::Stage;
use bytes::Bytes;
use ensue_store::disk::{DiskOp, FileName};
use ensue_store::entry::{Change, Entry};
use ensue_store::layout;
use ensue_types::{
    Breaking, Causes, Column, Context, CoreId, DatacenterId, Effect, Incarnation, KeyspaceId, LogicalTime,
    OperationId, Part, PartitionId, Position, RequestId, RowEffect, Rule, Stamp,
};
use ensue_wire::{Address, Decision, Message};
use std::collections::BTreeMap;
use std::sync::Arc;

const HERE: DatacenterId = DatacenterId(0);
const KEYSPACE: KeyspaceId = KeyspaceId(0);
const ITSELF: Address = Address::Partition { datacenter: HERE, partition: PARTITION };
const CLIENTS: Address = Address::Core { datacenter: HERE, core: CoreId(0) };

/// The first of two partitions, whose log is synced every second.
fn world() -> World {
    started(BTreeMap::new(), 1)
}

/// What was sent to each partition of this datacenter since the last call.
fn said(world: &mut World) -> Vec<(PartitionId, Message)> {
    let sent = std::iter::from_fn(|| world.partition.cx.outbox.next());
    let to_partitions = sent.filter_map(|envelope| match envelope.to {
        Address::Partition { datacenter: HERE, partition } => Some((partition, envelope.message)),
        _ => None,
    });
    to_partitions.collect()
}

fn part(partition: PartitionId, line: &str) -> Part {
    let words = line.split(' ').map(|word| Bytes::from(word.to_owned()));
    Part { partition, commands: vec![(0, words.collect())] }
}

/// A client's transaction of these parts, coordinated here: its name.
fn begin(world: &mut World, parts: &[Part]) -> OperationId {
    let (request, context) = (RequestId::default(), Context::default());
    let parts = parts.to_vec();
    world.message(CLIENTS, Message::Transact { request, keyspace: KEYSPACE, context, parts });
    let prepared = said(world).into_iter().find_map(|(_, message)| match message {
        Message::Prepare { transaction, .. } => Some(transaction),
        _ => None,
    });
    prepared.expect("its participants are asked to prepare")
}

fn both() -> [Part; 2] {
    [part(PARTITION, "SET b 1"), part(BESIDE, "SET a 1")]
}

fn address(partition: PartitionId) -> Address {
    Address::Partition { datacenter: HERE, partition }
}

fn vote(world: &mut World, participants: &[PartitionId], transaction: OperationId) {
    for &participant in participants {
        world.message(address(participant), Message::Vote { transaction });
    }
}

/// A second passes, and the log is synced.
fn sync(world: &mut World) {
    world.now.monotonic_us += 1_000_000;
    world.now.wall_ms += 1_000;
    world.partition.on_timer(world.now);
    world.work();
}

/// Ends the turn, and carries out what the disk is asked up to the next sync of the log.
fn work_until_sync(world: &mut World) {
    world.partition.on_turn_end();
    let syncs = |op: &DiskOp| matches!(op, DiskOp::Sync { file: FileName::Segment(_) });
    while !world.partition.cx.disk_ops.front().is_some_and(syncs) {
        world.next_op().expect("the log is synced");
    }
}

/// The decision among messages.
fn decision(said: &[(PartitionId, Message)]) -> Option<Decision> {
    said.iter().find_map(|(_, message)| match message {
        Message::Commit { decision, .. } => Some(*decision),
        _ => None,
    })
}

/// A transaction of both partitions, decided and announced.
fn announced(world: &mut World) -> (OperationId, Decision) {
    let transaction = begin(world, &both());
    vote(world, &[PARTITION, BESIDE], transaction);
    sync(world);
    let decision = decision(&said(world)).expect("it is announced");
    (transaction, decision)
}

fn committed(transaction: OperationId) -> Message {
    Message::Committed { transaction, replies: Vec::new(), seen: Causes::Nothing }
}

/// A transaction that the partition beside coordinates.
fn of_the_neighbour(position: u64) -> OperationId {
    let (incarnation, position) = (Incarnation(1), Position(position));
    OperationId { datacenter: HERE, incarnation, partition: BESIDE, position }
}

fn commit(transaction: OperationId, at: LogicalTime) -> Message {
    let stamp = Stamp { time: at, datacenter: HERE, partition: BESIDE };
    Message::Commit { transaction, decision: Decision { at, operation: transaction, stamp } }
}

fn prepare(world: &mut World, transaction: OperationId, line: &str) {
    let part = Some(part(PARTITION, line));
    world.message(ITS_NEIGHBOUR, Message::Prepare { transaction, keyspace: KEYSPACE, part });
}

/// The first entry of the other datacenter's stream, of a transaction that this partition coordinates.
fn receive(world: &mut World, coordinator: PartitionId, change: Change) {
    let (incarnation, position) = (Incarnation(1), Position(1));
    let time = LogicalTime::from_ms(world.now.wall_ms);
    let stamp = Stamp { time, datacenter: OTHER, partition: coordinator };
    let entry = Entry { position, stamp, dependencies: Causes::Nothing, change, previous: Vec::new() };
    let entries = vec![layout::encode_entry(&entry)];
    world.message(ELSEWHERE, Message::StreamEntries { incarnation, first: position, entries });
}

/// The other datacenter would replicate a transaction that a power failure here takes back.
#[test]
fn nobody_hears_of_a_decision_before_it_is_synced() {
    let mut world = world();
    let (incarnation, received) = (Incarnation(1), Position::before(Incarnation(1)));
    world.message(ELSEWHERE, Message::StreamResume { incarnation, received });
    let transaction = begin(&mut world, &both());
    vote(&mut world, &[PARTITION], transaction);
    world.hear(ITS_NEIGHBOUR, Message::Vote { transaction });
    world.hear_command("SET b 2");
    work_until_sync(&mut world);
    let sent = |world: &mut World| {
        let messages: Vec<Message> = std::iter::from_fn(|| world.partition.cx.outbox.next())
            .map(|envelope| envelope.message)
            .collect();
        let commits = messages.iter().filter(|message| matches!(message, Message::Commit { .. })).count();
        let entries = messages.iter().map(|message| match message {
            Message::StreamEntries { entries, .. } => entries.len(),
            _ => 0,
        });
        (commits, entries.sum::<usize>())
    };
    assert_eq!(sent(&mut world), (0, 0), "nor of a write whose place is behind it");
    world.work();
    assert_eq!(sent(&mut world), (2, 2));
}

/// The participants behind a new link may have lost what they were sent over the old one, and their parts with it.
#[test]
fn a_participant_behind_a_new_link_is_given_its_part_and_the_decision_again() {
    let mut world = world();
    let (transaction, decision) = announced(&mut world);
    let link_up = |world: &mut World| {
        let now = world.now;
        world.partition.on_link_up(now, HERE, &|partition| partition == BESIDE);
        world.work();
        said(world)
    };
    let prepare = Message::Prepare { transaction, keyspace: KEYSPACE, part: Some(both()[1].clone()) };
    let commit = Message::Commit { transaction, decision };
    assert_eq!(link_up(&mut world), [(BESIDE, prepare), (BESIDE, commit)], "the other one has no new link");

    world.message(ITS_NEIGHBOUR, committed(transaction));
    world.message(ITS_NEIGHBOUR, Message::PartsSynced { operations: vec![decision.operation] });
    assert_eq!(link_up(&mut world), [], "it has its part durably");
}

#[test]
fn a_participant_that_lost_its_tail_is_asked_for_its_vote_and_given_its_part_again() {
    let mut world = world();
    world.message(ELSEWHERE, Message::Introduce(introduction()));
    let (decided, decision) = announced(&mut world);
    let voting = begin(&mut world, &both());
    vote(&mut world, &[BESIDE], voting);
    world.message(ITS_NEIGHBOUR, Message::Repeat { number: 7 });
    let prepare = |transaction| {
        (BESIDE, Message::Prepare { transaction, keyspace: KEYSPACE, part: Some(both()[1].clone()) })
    };
    let commit = (BESIDE, Message::Commit { transaction: decided, decision });
    let repeated = (BESIDE, Message::Repeated { number: 7 });
    assert_eq!(said(&mut world), [prepare(decided), commit, prepare(voting), repeated]);

    // The vote that it has lost counts no more.
    vote(&mut world, &[PARTITION], voting);
    sync(&mut world);
    assert_eq!(self::decision(&said(&mut world)), None);
    vote(&mut world, &[BESIDE], voting);
    sync(&mut world);
    assert!(self::decision(&said(&mut world)).is_some());
}

/// A transaction of this datacenter is named by its number, which is no place in the stream of its coordinator: what
/// the stream is declared to have lost names none of them.
#[test]
fn a_transaction_outlives_the_incarnation_of_its_coordinator() {
    let mut world = world();
    world.message(ELSEWHERE, Message::Introduce(introduction()));
    let voting = begin(&mut world, &both());
    let (decided, decision) = announced(&mut world);
    assert!(decided.position > world.partition.cx.position, "its number is above the end of the stream");
    world.message(ITS_NEIGHBOUR, Message::Repeat { number: 7 });
    assert_eq!(world.partition.cx.incarnation, Incarnation(2));
    said(&mut world);
    // Whoever votes on a decided transaction is told the decision.
    vote(&mut world, &[BESIDE], decided);
    assert_eq!(said(&mut world), [(BESIDE, Message::Commit { transaction: decided, decision })]);
    vote(&mut world, &[PARTITION, BESIDE], voting);
    sync(&mut world);
    assert!(self::decision(&said(&mut world)).is_some());
}

#[test]
fn what_a_partition_reports_that_takes_no_part_does_not_count() {
    let mut world = world();
    let transaction = begin(&mut world, &both()[1..]);
    vote(&mut world, &[BESIDE], transaction);
    sync(&mut world);
    let operation = decision(&said(&mut world)).expect("it is announced").operation;
    world.message(ITSELF, Message::PartsSynced { operations: vec![operation] });
    world.partition.check_invariants();
}

/// The transaction is over here, as the log says that is yet to be synced.
#[test]
fn a_participant_that_reports_twice_is_told_once_to_forget() {
    let mut world = world();
    world.run("SET b 1");
    let operations = vec![OperationId { partition: PARTITION, ..of_the_neighbour(5) }];
    for _ in 0..2 {
        world.message(ITS_NEIGHBOUR, Message::PartsSynced { operations: operations.clone() });
    }
    assert_eq!(said(&mut world), []);
    sync(&mut world);
    assert_eq!(said(&mut world), [(BESIDE, Message::PartsForgotten { operations })]);
}

#[test]
fn a_part_is_reported_when_it_is_synced_and_again_over_a_new_link() {
    let mut world = world();
    let transaction = of_the_neighbour(9);
    prepare(&mut world, transaction, "SET b 1");
    let at = world.partition.cx.clock.latest();
    world.message(ITS_NEIGHBOUR, commit(transaction, at));
    let link_up = |world: &mut World, to: PartitionId| {
        let now = world.now;
        world.partition.on_link_up(now, HERE, &|partition| partition == to);
        world.work();
        said(world)
    };
    let is_executed = |(_, message): &(PartitionId, Message)| matches!(message, Message::Committed { .. });
    assert!(said(&mut world).iter().any(is_executed));
    assert_eq!(link_up(&mut world, BESIDE), [], "a power failure would take it back");
    // It is reported with the record that follows it.
    world.run("SET b 2");
    let report = || [(BESIDE, Message::PartsSynced { operations: vec![transaction] })];
    sync(&mut world);
    assert_eq!(said(&mut world), report());
    assert_eq!(link_up(&mut world, PARTITION), [], "the link to its coordinator is as it was");
    assert_eq!(link_up(&mut world, BESIDE), report());
}

/// The coordinator would take it for durable, and forget the transaction.
#[test]
fn a_participant_does_not_report_a_part_that_it_does_not_have() {
    let mut world = world();
    let replicated = OperationId { datacenter: OTHER, ..of_the_neighbour(1) };
    let prepare = Message::Prepare { transaction: replicated, keyspace: KEYSPACE, part: None };
    world.message(ITS_NEIGHBOUR, prepare);
    assert_eq!(said(&mut world), []);
    let at = world.partition.cx.clock.latest();
    for (broken, reports) in [(None, 0), (Some(Rule::GiveThePartBack), 1)] {
        let _breaking = Breaking::only(broken);
        world.message(ITS_NEIGHBOUR, commit(of_the_neighbour(9), at));
        assert_eq!(said(&mut world).len(), reports, "{broken:?}");
    }
}

/// An operator sees how many transactions are open, and how many parts their coordinators may still ask for.
#[test]
fn transactions_are_counted_until_all_is_done() {
    let mut world = world();
    let counted = |world: &mut World| {
        let metrics = world.partition.metrics();
        metrics.into_iter().find(|(name, _)| name == "transactions").map(|(_, count)| count)
    };
    assert_eq!(counted(&mut world), Some(0));
    begin(&mut world, &both());
    assert_eq!(counted(&mut world), Some(1), "one is coordinated");
    let local = of_the_neighbour(9);
    prepare(&mut world, local, "SET b 1");
    assert_eq!(counted(&mut world), Some(2), "of another a part waits");
    let effect = Effect::Put { value: Bytes::from_static(b"1"), seen: Vec::new(), over: None };
    let row = RowEffect { key: Bytes::from_static(b"b"), column: Column::Text, effect };
    let transaction = Some(OperationId { datacenter: OTHER, ..of_the_neighbour(1) });
    receive(&mut world, BESIDE, Change::Effects { keyspace: KEYSPACE, transaction, effects: vec![row] });
    assert_eq!(counted(&mut world), Some(3), "of a replicated one, too");
    let at = world.partition.cx.clock.latest();
    world.message(ITS_NEIGHBOUR, commit(local, at));
    assert_eq!(counted(&mut world), Some(3), "an executed part may be asked for");
    world.run("SET b 2");
    sync(&mut world);
    world.message(ITS_NEIGHBOUR, Message::PartsForgotten { operations: vec![local] });
    assert_eq!(counted(&mut world), Some(2));
}

/// A name that was given twice would be taken for the first transaction by a participant that still remembers it.
#[test]
fn the_name_of_a_transaction_is_not_given_again_after_a_checkpoint() {
    let mut world = world();
    let (transaction, decision) = announced(&mut world);
    for participant in [PARTITION, BESIDE] {
        world.message(address(participant), committed(transaction));
        let operations = vec![decision.operation];
        world.message(address(participant), Message::PartsSynced { operations });
    }
    let config = Arc::get_mut(&mut world.partition.cx.config).expect("nobody else has it");
    config.tuning.checkpoint_bytes = 1;
    // The log is kept for the other datacenter, from where the transaction began.
    world.let_go_of_the_stream();
    assert!(world.checkpoint());
    let mut again = started(world.files, 1);
    assert_ne!(begin(&mut again, &both()), transaction);
}

/// A reader passes over a decision of which nobody has heard. One that was found in the log may have been announced
/// before the restart, and others may have read what it wrote.
#[test]
fn a_reader_waits_for_a_replicated_decision_that_was_found_in_the_log() {
    let mut world = world();
    let position = Position(1);
    let transaction =
        OperationId { datacenter: OTHER, partition: PARTITION, position, ..of_the_neighbour(1) };
    let participants = vec![BESIDE];
    receive(&mut world, PARTITION, Change::Transaction { keyspace: KEYSPACE, begun_as: None, participants });
    world.message(ITS_NEIGHBOUR, Message::Notify { transaction });
    said(&mut world);
    world.hear(ITS_NEIGHBOUR, Message::Vote { transaction });
    let at = LogicalTime::from_ms(world.now.wall_ms + 500);
    let answers = |world: &mut World| {
        world.hear(ITS_NEIGHBOUR, Message::CommitCheck { check: 3, transaction, at, waits: false });
        work_until_sync(world);
        said(world)
    };
    let unannounced = |said: &[(PartitionId, Message)]| {
        let is_answer =
            |(_, message): &(_, _)| matches!(message, Message::CommitUnannounced { check: 3, .. });
        said.iter().any(is_answer)
    };
    let is_checked = |(_, message): &(PartitionId, Message)| {
        matches!(message, Message::CommitChecked { check: 3, decision: Some(_), .. })
    };
    assert!(unannounced(&answers(&mut world)), "it was just decided");

    let mut world = unstarted(world.files, 1);
    world.partition.start();
    while !matches!(world.partition.stage, Stage::Serving) {
        world.next_op().expect("it comes to serve");
    }
    let answers = answers(&mut world);
    assert!(!unannounced(&answers) && !answers.iter().any(is_checked), "{answers:?}");
    world.work();
    assert!(said(&mut world).iter().any(is_checked));
}

/// Nobody had heard of it before the restart, and no record says that it is applied. Who depends on the transaction
/// must not wait for that for ever, whether the start itself syncs the log or a later sync does.
#[test]
fn a_replicated_decision_that_was_found_in_the_log_is_applied_and_told() {
    let mut world = world();
    let position = Position(1);
    let transaction =
        OperationId { datacenter: OTHER, partition: PARTITION, position, ..of_the_neighbour(1) };
    let participants = vec![BESIDE];
    receive(&mut world, PARTITION, Change::Transaction { keyspace: KEYSPACE, begun_as: None, participants });
    world.message(ITS_NEIGHBOUR, Message::Notify { transaction });
    world.hear(ITS_NEIGHBOUR, Message::Vote { transaction });
    work_until_sync(&mut world);
    let applied = |world: &World| world.partition.others.replication.applied_through(OTHER);
    assert_eq!(applied(&world), Position(0), "nobody has heard of the decision");
    for append_fsync in [AppendFsync::EverySecond, AppendFsync::Always] {
        let mut again = unstarted(world.files.clone(), 1);
        let config = Arc::get_mut(&mut again.partition.cx.config).expect("nobody else has it");
        config.append_fsync = append_fsync;
        let mut again = again.started();
        assert!(decision(&said(&mut again)).is_some(), "{append_fsync:?}");
        assert_eq!(applied(&again), position, "{append_fsync:?}");
        // Whoever has been away is told the decision again.
        again.message(ITS_NEIGHBOUR, Message::Notify { transaction });
        assert!(decision(&said(&mut again)).is_some(), "{append_fsync:?}");
    }
}

/// The first of two transactions is decided, and nobody has heard of it. The second is announced, and waits behind the
/// first in the same row: the session that reads may have seen it elsewhere.
#[test]
fn a_reader_does_not_pass_over_a_decision_behind_which_an_announced_one_waits() {
    let mut world = world();
    world.run("SET b 0");
    let [first, second] = [8, 9].map(of_the_neighbour);
    world.now.wall_ms += 10;
    prepare(&mut world, first, "SET b 1");
    prepare(&mut world, second, "SET b 2");
    let [first_at, second_at] = [10, 20].map(|later| LogicalTime::from_ms(world.now.wall_ms + later));
    world.now.wall_ms += 100;
    said(&mut world);
    let words = ["GET", "b"].map(|word| Bytes::from_static(word.as_bytes()));
    let (request, commands) = (RequestId::default(), vec![words.into_iter().collect()]);
    world.message(CLIENTS, Message::ReadFirst { request, keyspace: KEYSPACE, commands });
    let asked = |world: &mut World| {
        let said = said(world).into_iter();
        let checks = said.filter_map(|(_, message)| match message {
            Message::CommitCheck { check, transaction, waits, .. } => Some((check, transaction, waits)),
            _ => None,
        });
        checks.collect::<Vec<_>>()
    };
    let checks = asked(&mut world);
    let [(check, one, false), (_, other, false)] = checks[..] else { panic!("two are asked about") };
    assert_eq!([one, other], [first, second]);
    let unannounced = Message::CommitUnannounced { check, transaction: first, at: first_at };
    world.message(ITS_NEIGHBOUR, unannounced);
    world.message(ITS_NEIGHBOUR, commit(second, second_at));
    let checks = asked(&mut world);
    assert!(matches!(checks[..], [(_, transaction, true)] if transaction == first), "{checks:?}");
}
