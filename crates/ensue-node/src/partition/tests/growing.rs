//! A datacenter that is added to others: what its first start waits for, and what it takes from them.

use super::catch_up::{ELSEWHERE, ITS_NEIGHBOUR};
use super::identity::{answer, confirm, introduce, introduction, sent};
use super::versions::{OTHER, World, put};
use super::{PARTITION, config};
use crate::config::{DatacenterTopology, FirstStart};
use crate::partition::{Partition, Stage};
use crate::{AppendFsync, Trace};
use ensue_store::disk::{DiskOp, FileName};
use ensue_types::{Breaking, CoreId, DatacenterId, Incarnation, LogicalTime, Now, Position, Rule};
use ensue_wire::{Address, CoreName, Envelope, Introduction, Message, StreamAcknowledge};
use std::collections::BTreeMap;
use std::sync::Arc;

const NOW: Now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
const FAR: CoreName = CoreName { datacenter: OTHER, core: CoreId(1) };

/// The first of two partitions of a datacenter that is new.
fn new() -> World {
    unstarted().started()
}

fn unstarted() -> World {
    unstarted_under("eventual")
}

fn unstarted_under(protocol: &str) -> World {
    let mut config = config(AppendFsync::Always);
    config.first_start = FirstStart::Ask;
    config.topology.partitions = 2;
    for datacenter in &mut config.topology.datacenters {
        let placement = vec![CoreId(0), CoreId(1)];
        *datacenter = DatacenterTopology { cores: 2, placement, ..datacenter.clone() };
    }
    config.tuning.checkpoint_bytes = u64::MAX;
    let protocol = || ensue_protocol::by_name(protocol, Default::default()).expect("it is known");
    let protocols = Arc::new((0..ensue_types::limits::KEYSPACES).map(|_| protocol()).collect::<Vec<_>>());
    let partition = Partition::new(PARTITION, Arc::new(config), protocols, NOW);
    World { partition, now: NOW, files: BTreeMap::new() }
}

/// What the other one says, which has written so much.
fn holding(end: u64, is_whole: bool) -> Introduction {
    Introduction { end: Position(end), is_whole, ..introduction() }
}

/// The other one says, at that time, where its stream ends.
fn say_end(world: &mut World, end: u64, time: LogicalTime) {
    hear_end(world, end, time);
    world.work();
}

/// The same, and its turn goes on.
fn hear_end(world: &mut World, end: u64, time: LogicalTime) {
    let nothing = Position(0);
    let message = Message::StreamAcknowledge(StreamAcknowledge {
        incarnation: Incarnation(1),
        received: nothing,
        synced: nothing,
        applied: Vec::new(),
        end: Position(end),
        shown: LogicalTime::ZERO,
    });
    let to = Address::Partition { datacenter: DatacenterId(0), partition: PARTITION };
    world.partition.on_message(world.now, Envelope { from: ELSEWHERE, to, time, message });
}

/// The neighbour has answered what it was asked.
fn tell_by_neighbour(world: &mut World) {
    let asked = sent(world).into_iter().find_map(|message| match message {
        Message::Repeat { number } => Some(number),
        _ => None,
    });
    world.message(ITS_NEIGHBOUR, Message::Repeated { number: asked.expect("it asks its neighbour") });
}

fn later() -> LogicalTime {
    LogicalTime::from_ms(NOW.wall_ms + 1_000)
}

#[test]
fn it_serves_when_it_has_what_the_others_have() {
    let mut world = new();
    introduce(&mut world, holding(2, true));
    assert!(world.partition.others.is_catching_up());
    tell_by_neighbour(&mut world);
    say_end(&mut world, 2, later());
    assert!(answer(&mut world, "GET b").contains("LOADING"));
    world.receive(1, "c", put("one"));
    assert!(answer(&mut world, "GET b").contains("LOADING"));
    world.receive(2, "b", put("two"));
    let read = answer(&mut world, "GET b");
    assert!(read.contains("two"), "{read} {:?}", world.partition.others);
}

/// Its process is ended before it has everything: the next one does not serve without that, either.
#[test]
fn a_restart_while_it_is_filled_does_not_open_it() {
    let mut world = new();
    introduce(&mut world, holding(2, true));
    world.receive(1, "c", put("one"));
    let mut again = World { files: world.files, ..unstarted() }.started();
    assert!(matches!(again.partition.stage, Stage::RecoveringTail(_)), "{:?}", again.partition.stage);
    assert!(answer(&mut again, "GET c").contains("TAILLOST"));
}

/// What comes beside copies is committed only in a directory that is filled: a power failure must not take it from one
/// that is filled no more.
#[test]
fn a_directory_is_filled_until_what_filled_it_is_synced() {
    let mut world = unstarted();
    let config = Arc::get_mut(&mut world.partition.cx.config).expect("nobody else has it");
    config.append_fsync = AppendFsync::EverySecond;
    let mut world = world.started();
    introduce(&mut world, holding(1, true));
    tell_by_neighbour(&mut world);
    world.receive(1, "c", put("one"));
    hear_end(&mut world, 1, later());
    world.partition.on_turn_end();
    let mut ops = Vec::new();
    while let Some(op) = world.next_op() {
        ops.push(op);
    }
    let is_sync = |op: &DiskOp| matches!(op, DiskOp::Sync { file: FileName::Segment(_) });
    let is_mark = |op: &DiskOp| matches!(op, DiskOp::Replace { file: FileName::Superblock, .. });
    let (synced, marked) = (ops.iter().position(is_sync), ops.iter().position(is_mark));
    assert!(synced.is_some() && synced < marked, "{ops:?}");
    assert!(answer(&mut world, "GET c").contains("one"));
}

#[test]
fn where_streams_end_counts_when_all_partitions_have_their_copies() {
    for (broken, is_served) in [(None, false), (Some(Rule::EndsAfterTheCopies), true)] {
        let _breaking = Breaking::only(broken);
        let mut world = new();
        introduce(&mut world, holding(1, true));
        world.receive(1, "c", put("one"));
        // What the neighbour's copy has may rest on what is written behind this end.
        say_end(&mut world, 1, LogicalTime::from_ms(NOW.wall_ms));
        tell_by_neighbour(&mut world);
        let read = answer(&mut world, "GET c");
        assert_eq!(read.contains("one"), is_served, "{broken:?}: {read}");
        say_end(&mut world, 1, later());
        assert!(answer(&mut world, "GET c").contains("one"), "{broken:?}");
    }
}

#[test]
fn it_waits_until_every_core_of_the_others_knows_it() {
    for (broken, waits) in [(None, true), (Some(Rule::JoinWhenAllKnow), false)] {
        let _breaking = Breaking::only(broken);
        let mut world = new();
        world.partition.cx.unmet = Some(FAR);
        introduce(&mut world, holding(2, true));
        assert_eq!(matches!(world.partition.stage, Stage::Joining(_)), waits, "{broken:?}");
        if waits {
            let words = answer(&mut world, "GET c");
            assert!(words.contains("LOADING") && words.contains("a link to core 1 of dc2"), "{words}");
            world.partition.cx.unmet = None;
            introduce(&mut world, holding(2, true));
        }
        assert!(world.partition.others.is_catching_up());
    }
}

#[test]
fn what_the_logs_have_no_longer_is_copied() {
    let mut world = new();
    let own = world.partition.peers.identity.own();
    confirm(&mut world, holding(9, false));
    assert!(sent(&mut world).iter().any(|message| matches!(message, Message::CopyFetch { part: 0, .. })));
    assert!(matches!(world.partition.stage, Stage::Joining(_)));
    assert_eq!(world.partition.peers.identity.own(), own);
}

/// A sibling that kept its directory would have parts executed once more that are in the copy.
#[test]
fn where_transactions_span_partitions_all_directories_are_filled_together() {
    let asks_for_copy =
        |sent: &[Message]| sent.iter().any(|message| matches!(message, Message::CopyFetch { .. }));
    for (broken, is_taken) in [(None, false), (Some(Rule::FillAllTogether), true)] {
        let _breaking = Breaking::only(broken);
        let mut world = unstarted_under("eiger").started();
        confirm(&mut world, holding(9, false));
        let asked = sent(&mut world);
        assert_eq!(asks_for_copy(&asked), is_taken, "{broken:?}");
        if is_taken {
            continue;
        }
        assert!(asked.contains(&Message::FillQuery), "{asked:?}");
        world.message(ITS_NEIGHBOUR, Message::FillAnswer { fills: false });
        let words = answer(&mut world, "GET c");
        assert!(
            words.contains("REJOIN") && words.contains("partition p1 of this datacenter still"),
            "{words}"
        );
        assert!(!asks_for_copy(&sent(&mut world)));
        world.message(ITS_NEIGHBOUR, Message::FillAnswer { fills: true });
        assert!(asks_for_copy(&sent(&mut world)));
        // It is asked the same, and answers.
        world.message(ITS_NEIGHBOUR, Message::FillQuery);
        assert!(sent(&mut world).contains(&Message::FillAnswer { fills: true }));
    }
}

#[test]
fn who_serves_says_that_it_is_not_filled() {
    let mut world = World::under("eiger", BTreeMap::new(), NOW, u64::MAX).started();
    world.partition.others.note_filled(true);
    world.message(ITS_NEIGHBOUR, Message::FillQuery);
    assert!(sent(&mut world).contains(&Message::FillAnswer { fills: false }));
}

#[test]
fn a_donor_that_cannot_give_a_copy_is_named_with_the_reason() {
    let mut world = new();
    confirm(&mut world, holding(9, false));
    let copy = sent(&mut world).into_iter().find_map(|message| match message {
        Message::CopyFetch { copy, .. } => Some(copy),
        _ => None,
    });
    let copy = copy.expect("it asks for a copy");
    world.message(ELSEWHERE, Message::CopyRefused { copy, cannot: true });
    let words = answer(&mut world, "GET c");
    assert!(words.contains("REJOIN") && words.contains("dc2 trimmed"), "{words}");
    let said = |trace: &Trace| matches!(trace, Trace::CannotRejoin { .. });
    assert!(world.partition.cx.traces.iter().any(said));
}

/// Its siblings ask when they begin, as those do that have lost the end of their log.
#[test]
fn one_that_is_new_stays_in_its_first_incarnation() {
    let mut world = new();
    introduce(&mut world, holding(2, true));
    sent(&mut world);
    world.message(ITS_NEIGHBOUR, Message::Repeat { number: 7 });
    assert!(sent(&mut world).contains(&Message::Repeated { number: 7 }));
    assert_eq!(world.partition.cx.incarnation, Incarnation(1));
}

/// One that takes back its lost tail asks everybody, and is waited for by this one.
#[test]
fn one_that_nobody_knows_says_that_it_has_nothing() {
    let mut world = new();
    let asks = Message::TailFetch { after: Position(0) };
    world.message(ELSEWHERE, asks.clone());
    let answers = |world: &mut World| {
        let is_answer =
            |message: &Message| matches!(message, Message::TailFetched { received: Position(0), .. });
        sent(world).iter().any(is_answer)
    };
    assert!(!answers(&mut world), "it does not know yet whether it had anything");
    confirm(&mut world, holding(9, false));
    world.message(ELSEWHERE, asks);
    assert!(answers(&mut world));
}

#[test]
fn the_log_keeps_what_another_has_received_and_not_applied() {
    for (broken, end) in [(None, Position(1)), (Some(Rule::KeepWhatCopiesLack), Position(2))] {
        let _breaking = Breaking::only(broken);
        let mut world = World::under("eventual", BTreeMap::new(), NOW, u64::MAX).started();
        introduce(&mut world, introduction());
        world.run("SET b 1");
        world.run("SET b 2");
        let said = StreamAcknowledge {
            incarnation: Incarnation(1),
            received: Position(2),
            synced: Position(2),
            applied: vec![(DatacenterId(0), Incarnation(1), Position(1))],
            end: Position(0),
            shown: LogicalTime::ZERO,
        };
        world.message(ELSEWHERE, Message::StreamAcknowledge(said));
        let Partition { others, cx, .. } = &world.partition;
        assert_eq!(others.synced_by_all(cx), end, "{broken:?}");
    }
}
