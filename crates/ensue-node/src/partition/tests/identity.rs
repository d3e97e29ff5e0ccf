//! Which directories partitions run on: a first start, an empty directory, an old copy, a peer whose claims have no
//! ground.

use super::catch_up::{ITS_NEIGHBOUR, started};
use super::versions::{OTHER, World, put};
use super::{PARTITION, config};
use crate::AppendFsync;
use crate::config::{FirstStart, NodeConfig};
use crate::partition::Partition;
use crate::partition::Stage;
use crate::trace::Trace;
use ensue_store::disk::FileName;
use ensue_types::{CoreId, DatacenterId, DirectoryId, Incarnation, LogicalTime, Now, Position};
use ensue_wire::{Address, Introduction, Message, PeerStage, StreamAcknowledge};
use std::collections::BTreeMap;
use std::sync::Arc;

const ELSEWHERE: Address = Address::Partition { datacenter: OTHER, partition: PARTITION };
pub(super) const THEIRS: DirectoryId = DirectoryId(0x77);
const NOW: Now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };

type Files = BTreeMap<FileName, Vec<u8>>;

/// A partition that was started for the first time by its operator's word.
fn serving() -> World {
    World::under("eventual", Files::new(), NOW, u64::MAX).started()
}

/// A partition that asks before its first serving; each start draws another identity.
pub(super) fn asking(files: Files, seed: u128) -> World {
    asking_under(config(AppendFsync::Always), files, seed)
}

pub(super) fn asking_under(mut config: NodeConfig, files: Files, seed: u128) -> World {
    (config.first_start, config.identity_seed) = (FirstStart::Ask, seed);
    config.tuning.checkpoint_bytes = u64::MAX;
    World { partition: partition(config), now: NOW, files }.started()
}

pub(super) fn partition(config: NodeConfig) -> Partition {
    let protocol = || ensue_protocol::by_name("eventual", Default::default()).expect("it is known");
    let protocols = Arc::new((0..ensue_types::limits::KEYSPACES).map(|_| protocol()).collect::<Vec<_>>());
    Partition::new(PARTITION, Arc::new(config), protocols, NOW)
}

/// What the other datacenter says of itself, which serves on a whole log.
pub(super) fn introduction() -> Introduction {
    Introduction {
        directory: THEIRS,
        stage: PeerStage::Serving,
        known: DirectoryId::UNKNOWN,
        received: Position(0),
        last: LogicalTime::ZERO,
        proof: 0,
        applied: Position(0),
        end: Position(0),
        elsewhere: Position(0),
        is_whole: true,
        asks: false,
    }
}

/// What it says when it begins, too: the cluster is new.
pub(super) fn beginning() -> Introduction {
    Introduction { stage: PeerStage::Joining, ..introduction() }
}

/// The same, with a proof of what it has of this partition's stream.
pub(super) fn knowing(known: DirectoryId, received: u64, last: LogicalTime) -> Introduction {
    let received = Position(received);
    let proof = known.proof((DatacenterId(0), PARTITION), received, last);
    Introduction { known, received, last, proof, applied: received, ..introduction() }
}

pub(super) fn introduce(world: &mut World, introduction: Introduction) {
    world.message(ELSEWHERE, Message::Introduce(introduction));
}

/// The other datacenter says so, when it is asked again.
pub(super) fn confirm(world: &mut World, introduction: Introduction) {
    introduce(world, introduction.clone());
    introduce(world, introduction);
}

pub(super) fn sent(world: &mut World) -> Vec<Message> {
    std::iter::from_fn(|| world.partition.cx.outbox.next()).map(|envelope| envelope.message).collect()
}

/// What a session is answered that asks for the time of the partition's newest write of a key.
pub(super) fn answer(world: &mut World, line: &str) -> String {
    sent(world);
    world.run(line);
    let answers = sent(world).into_iter().find_map(|message| match message {
        Message::Executed { replies, .. } => Some(format!("{:?}", replies[0])),
        Message::Refused { reply, .. } => Some(format!("{reply:?}")),
        _ => None,
    });
    answers.unwrap_or_default()
}

fn refused(world: &World) -> Option<&str> {
    world.partition.peers.identity.refusal(OTHER)
}

fn acknowledge(
    received: Position,
    synced: Position,
    applied: Vec<(DatacenterId, Incarnation, Position)>,
) -> Message {
    let (incarnation, end) = (Incarnation(1), Position(0));
    let shown = LogicalTime::ZERO;
    Message::StreamAcknowledge(StreamAcknowledge { incarnation, received, synced, end, applied, shown })
}

#[test]
fn a_refused_datacenter_is_sent_nothing() {
    let mut world = serving();
    introduce(&mut world, introduction());
    let resume = |world: &mut World, received| {
        let (incarnation, received) = (Incarnation(1), Position(received));
        world.message(ELSEWHERE, Message::StreamResume { incarnation, received });
    };
    let sends = |world: &mut World| {
        sent(world);
        world.run("INCR n");
        sent(world).iter().any(|message| matches!(message, Message::StreamEntries { .. }))
    };
    resume(&mut world, 0);
    assert!(sends(&mut world));
    resume(&mut world, 9);
    assert!(refused(&world).is_some() && !sends(&mut world));
    introduce(&mut world, introduction());
    resume(&mut world, 0);
    assert!(sends(&mut world));
}

#[test]
fn a_claim_without_ground_ends_the_exchange_with_its_peer_and_nothing_else() {
    let beyond = Position(9);
    let acknowledge = |received, synced| acknowledge(received, synced, Vec::new());
    let resume = Message::StreamResume { incarnation: Incarnation(1), received: beyond };
    for claim in [acknowledge(beyond, beyond), acknowledge(beyond, Position(0)), resume] {
        let mut world = serving();
        introduce(&mut world, introduction());
        world.run("SET a 1");
        world.message(ELSEWHERE, claim.clone());
        assert!(refused(&world).is_some_and(|reason| reason.contains("up to position 1.9")), "{claim:?}");
        assert!(answer(&mut world, "SET b 2").contains("OK"), "{claim:?}");
        // Nothing more of it is taken, not even what would be in order.
        world.receive(1, "c", put("3"));
        assert!(answer(&mut world, "GET c").contains("Nil"), "{claim:?}");
        // What agrees with what is here ends it.
        introduce(&mut world, introduction());
        world.receive(1, "c", put("3"));
        assert!(answer(&mut world, "GET c").contains('3'), "{claim:?}");
    }
}

#[test]
fn a_peer_on_another_directory_is_refused_until_the_known_one_is_back() {
    let mut world = serving();
    introduce(&mut world, introduction());
    let foreign = Introduction { directory: DirectoryId(0x78), ..introduction() };
    introduce(&mut world, foreign.clone());
    assert!(refused(&world).is_some_and(|reason| reason.contains("another directory")));
    // It is remembered over a restart.
    let mut again = World::under("eiger", world.files.clone(), NOW, u64::MAX).started();
    introduce(&mut again, foreign);
    assert!(refused(&again).is_some());
    introduce(&mut again, introduction());
    assert!(refused(&again).is_none() && matches!(again.partition.stage, Stage::Serving));
}

#[test]
fn a_first_start_serves_when_the_others_know_no_earlier_directory() {
    let mut world = asking(Files::new(), 1);
    assert!(answer(&mut world, "GET a").contains("LOADING"));
    // An operator's word, said at the next start, will do.
    let mut alone = World::under("eventual", world.files.clone(), NOW, u64::MAX).started();
    assert!(answer(&mut alone, "GET a").contains("Nil"));
    introduce(&mut world, beginning());
    assert!(answer(&mut world, "GET a").contains("Nil"));
    // The next start asks nobody.
    let mut again = asking(world.files, 2);
    assert!(answer(&mut again, "GET a").contains("Nil"));
}

#[test]
fn an_empty_directory_is_not_served_while_what_was_lost_cannot_be_had_again() {
    let lost = knowing(DirectoryId(0x99), 3, LogicalTime(5));
    for (lacking, word) in [
        (Introduction { applied: Position(2), ..lost.clone() }, "has applied what it received"),
        (Introduction { stage: PeerStage::Recovering, ..lost.clone() }, "has applied what it received"),
    ] {
        let mut world = asking(Files::new(), 1);
        introduce(&mut world, lacking);
        let words = answer(&mut world, "GET a");
        assert!(words.contains("REJOIN") && words.contains(word), "{words}");
        // What the other says next may be better: the lost stream is requested from its beginning.
        introduce(&mut world, lost.clone());
        assert!(sent(&mut world).iter().any(|m| matches!(m, Message::TailFetch { after: Position(0) })));
    }
}

#[test]
fn an_empty_directory_is_no_first_one_because_who_knew_an_earlier_one_is_dead() {
    let mut config = config(AppendFsync::Always);
    config.first_start = FirstStart::Ask;
    config.topology.datacenters.push(config.topology.datacenters[1].clone());
    let mut world = World { partition: partition(config), now: NOW, files: Files::new() }.started();
    let (datacenter, time) = (DatacenterId(2), LogicalTime::ZERO);
    introduce(&mut world, introduction());
    world.message(
        ELSEWHERE,
        Message::DatacenterFailed { datacenter, received: Position(0), time, ended: None },
    );
    let words = answer(&mut world, "GET a");
    assert!(words.contains("REJOIN") && words.contains("declared dead, cannot say"), "{words}");
    // An operator says it in its place.
    let mut alone = World::under("eventual", world.files, NOW, u64::MAX).started();
    assert!(answer(&mut alone, "GET a").contains("Nil"));
}

#[test]
fn an_operators_word_is_taken_back_when_an_earlier_directory_is_heard_of() {
    let mut world = serving();
    world.run("SET a 1");
    introduce(&mut world, knowing(DirectoryId(0x99), 0, LogicalTime::ZERO));
    assert!(matches!(world.partition.stage, Stage::Stopped(_)));
    let again = asking(world.files, 2);
    assert!(matches!(again.partition.stage, Stage::Joining(_)));
    // A claim of that kind without its proof concerns the peer alone.
    let mut world = serving();
    introduce(&mut world, Introduction { proof: 1, ..knowing(DirectoryId(0x99), 0, LogicalTime::ZERO) });
    assert!(matches!(world.partition.stage, Stage::Serving) && refused(&world).is_some());
}

/// What a checkpoint, or the log behind one, remembers of the last entry of a stream.
#[test]
fn the_last_entry_of_a_stream_is_known_after_a_restart() {
    let mut world = World::under("eventual", Files::new(), NOW, u64::MAX).started();
    introduce(&mut world, introduction());
    world.receive(1, "c", put("3"));
    let said = |world: &mut World| {
        sent(world);
        world.partition.peering().introduce(OTHER, false);
        world.work();
        sent(world).into_iter().find_map(|message| match message {
            Message::Introduce(introduction) => Some((introduction.received, introduction.last)),
            _ => None,
        })
    };
    let before = said(&mut world);
    assert!(before.is_some_and(|(received, last)| received == Position(1) && last != LogicalTime::ZERO));
    let mut again = World::under("eventual", world.files, NOW, u64::MAX).started();
    assert_eq!(said(&mut again), before);
}

#[test]
fn an_old_copy_of_a_directory_is_noticed_at_the_first_contact() {
    // The copy was made before anything was written.
    let mut world = serving();
    let copy = world.files.clone();
    world.run("SET a 1");
    world.run("SET a 2");
    let (own, last) = (world.partition.peers.identity.own(), world.partition.cx.clock.latest());
    for (writes, claim, word) in [
        (0, knowing(own, 2, last), "Start the process again"),
        (1, knowing(own, 2, last), "1 writes were taken on it"),
        (3, knowing(own, 2, LogicalTime(7)), "3 writes were taken on it"),
    ] {
        let mut old = World::under("eiger", copy.clone(), NOW, u64::MAX).started();
        (0..writes).for_each(|_| old.run("SET b 1"));
        introduce(&mut old, Introduction { proof: claim.proof ^ 1, ..claim.clone() });
        assert!(matches!(old.partition.stage, Stage::Serving), "{word}: nothing was proved");
        introduce(&mut old, claim);
        let Stage::Stopped(reason) = &old.partition.stage else { panic!("{word}") };
        assert!(reason.contains(word), "{reason}");
        old.work();
        let again = World::under("eiger", old.files, NOW, u64::MAX).started();
        match writes {
            0 => assert!(matches!(again.partition.stage, Stage::RecoveringTail(_))),
            _ => assert!(matches!(again.partition.stage, Stage::Joining(_))),
        }
    }
    // Where nothing is missing nothing is noticed.
    introduce(&mut world, knowing(own, 1, LogicalTime(7)));
    assert!(matches!(world.partition.stage, Stage::Stopped(_)), "another entry stands there");
}

#[test]
fn an_entry_after_a_gap_is_not_compared_with_what_stood_in_the_gap() {
    let mut world = serving();
    world.run("SET a 1");
    world.run("SET a 2");
    let entry = world.partition.cx.journal.entry_in_memory(Position(2)).expect("it was written just now");
    let read = [(Position(2), entry)];
    world.partition.peering().compare_with(OTHER, Position(1), LogicalTime(7), &read);
    assert!(world.partition.peers.take_halt().is_none());
    world.partition.peering().compare_with(OTHER, Position(2), LogicalTime(7), &read);
    assert!(world.partition.peers.take_halt().is_some());
}

#[test]
fn an_entry_that_left_memory_is_compared_with_the_one_in_the_log() {
    for last in [None, Some(LogicalTime(7))] {
        let mut config = config(AppendFsync::Always);
        (config.tuning.checkpoint_bytes, config.tuning.stream_memory_bytes) = (u64::MAX, 1);
        let mut world = World { partition: partition(config), now: NOW, files: Files::new() }.started();
        world.run("SET a 1");
        let own = world.partition.cx.clock.latest();
        (0..9).for_each(|_| world.run("SET a 2"));
        assert!(world.partition.cx.journal.entry_in_memory(Position(1)).is_none());
        let directory = world.partition.peers.identity.own();
        introduce(&mut world, knowing(directory, 1, last.unwrap_or(own)));
        assert_eq!(matches!(world.partition.stage, Stage::Stopped(_)), last.is_some());
    }
}

#[test]
fn what_the_log_no_longer_has_is_refused_and_the_partition_goes_on() {
    let mut config = config(AppendFsync::Always);
    (config.tuning.checkpoint_bytes, config.tuning.segment_bytes) = (1, 1 << 10);
    config.tuning.stream_memory_bytes = 1;
    let mut world = World { partition: partition(config), now: NOW, files: Files::new() }.started();
    introduce(&mut world, introduction());
    for number in 1..=100 {
        world.run("SET a 0123456789012345678901234567890123456789");
        let received = Position(number);
        let applied = vec![(DatacenterId(0), Incarnation(1), received)];
        world.message(ELSEWHERE, acknowledge(received, received, applied));
        world.now.monotonic_us += 1_000_000;
        world.partition.on_timer(world.now);
        world.work();
    }
    assert!(!world.partition.cx.journal.is_whole(), "the log was trimmed");
    introduce(&mut world, introduction());
    world.message(ELSEWHERE, Message::StreamResume { incarnation: Incarnation(1), received: Position(0) });
    assert!(refused(&world).is_some_and(|reason| reason.contains("the log here begins at")));
    assert!(answer(&mut world, "GET a").contains("0123"));
    let is_told = |trace: &Trace| matches!(trace, Trace::PeerRefused { .. });
    assert!(world.partition.cx.traces.iter().any(is_told));
}

pub(super) const THIRD: DatacenterId = DatacenterId(2);

/// A partition with two others, whose directory is an old copy for all that it knows.
pub(super) fn of_three() -> World {
    let mut config = config(AppendFsync::Always);
    config.tuning.checkpoint_bytes = u64::MAX;
    let third =
        crate::config::DatacenterTopology { name: "dc3".into(), ..config.topology.datacenters[1].clone() };
    config.topology.datacenters.push(third);
    World { partition: partition(config), now: NOW, files: Files::new() }.started()
}

pub(super) fn introduce_third(world: &mut World, introduction: Introduction) {
    let third = Address::Partition { datacenter: THIRD, partition: PARTITION };
    world.message(third, Message::Introduce(introduction));
}

/// Whether the other datacenter has been sent the first entry that was written since the start, and was promised a time
/// with the last acknowledgement.
fn told_of_the_new(world: &mut World) -> (bool, bool) {
    let envelopes: Vec<_> = std::iter::from_fn(|| world.partition.cx.outbox.next()).collect();
    let to_it = || envelopes.iter().filter(|envelope| envelope.to == ELSEWHERE);
    let is_sent = to_it().any(|envelope| matches!(envelope.message, Message::StreamEntries { .. }));
    let mut acknowledged =
        to_it().filter(|envelope| matches!(envelope.message, Message::StreamAcknowledge(_)));
    let is_promised = acknowledged.next_back().is_some_and(|last| last.time > LogicalTime::ZERO);
    (is_sent, is_promised)
}

#[test]
fn what_is_new_waits_for_whoever_may_have_more_of_the_stream_but_not_for_ever() {
    let resume = || Message::StreamResume { incarnation: Incarnation(1), received: Position(0) };
    let begun = || {
        let mut world = of_three();
        introduce(&mut world, introduction());
        world.run("SET a 1");
        world.message(ELSEWHERE, resume());
        assert_eq!(told_of_the_new(&mut world), (false, false));
        world
    };
    // The third one has no more of it.
    let mut world = begun();
    introduce_third(&mut world, Introduction { directory: DirectoryId(0x79), ..introduction() });
    world.message(ELSEWHERE, resume());
    assert_eq!(told_of_the_new(&mut world), (true, true));
    // It cannot be asked.
    let mut world = begun();
    world.now.monotonic_us += 1_000 * ensue_types::limits::PROOF_WAIT_MS - 1;
    world.partition.on_timer(world.now);
    world.message(ELSEWHERE, resume());
    assert_eq!(told_of_the_new(&mut world), (false, false));
    world.now.monotonic_us += 1_000_000;
    world.partition.on_timer(world.now);
    world.message(ELSEWHERE, resume());
    assert_eq!(told_of_the_new(&mut world), (true, true));
    // Its operator gave it up.
    let mut world = begun();
    let (received, time) = (Position(0), LogicalTime::ZERO);
    let third = Message::DatacenterFailed { datacenter: THIRD, received, time, ended: None };
    world.message(ELSEWHERE, third);
    world.now.monotonic_us += 1_000_000;
    world.partition.on_timer(world.now);
    world.message(ELSEWHERE, resume());
    assert_eq!(told_of_the_new(&mut world), (true, true));
}

#[test]
fn a_peer_that_has_heard_of_more_is_refused_until_the_third_can_be_asked() {
    let heard = Introduction { elsewhere: Position(1), ..introduction() };
    let third = Introduction { directory: DirectoryId(0x79), ..introduction() };
    let mut world = of_three();
    world.run("SET a 1");
    introduce(&mut world, heard.clone());
    assert!(refused(&world).is_some_and(|reason| reason.contains("dc2 has heard that dc3 has")));
    assert!(answer(&mut world, "SET b 2").contains("OK"), "hearsay stops nobody");
    // It is asked again now and then.
    let asks = |message: &Message| matches!(message, Message::Introduce(Introduction { asks: true, .. }));
    let mut asked = 0;
    for _ in 0..60 {
        sent(&mut world);
        world.now.monotonic_us += 50_000;
        world.partition.on_timer(world.now);
        world.work();
        asked += usize::from(sent(&mut world).iter().any(asks));
    }
    assert_eq!(asked, 3, "once a second");
    // The third one is here, and knows nothing of that: whoever said so was wrong.
    let mut cleared = of_three();
    introduce(&mut cleared, heard.clone());
    introduce_third(&mut cleared, third.clone());
    introduce(&mut cleared, heard.clone());
    assert!(refused(&cleared).is_none());
    // Or an operator knows better.
    let mut vouched = of_three();
    introduce(&mut vouched, heard.clone());
    let partition = &mut vouched.partition;
    partition.others.execute_readmit(&partition.cx, &bytes::Bytes::from_static(b"dc2"));
    partition.peering().readmit();
    introduce(&mut vouched, heard);
    assert!(refused(&vouched).is_none());
}

#[test]
fn a_directory_that_all_others_do_not_know_is_left() {
    let foreign = |known: u128| Introduction { directory: DirectoryId(known), ..introduction() };
    let denies = |known: u128| Introduction {
        directory: DirectoryId(known),
        ..knowing(DirectoryId(0x99), 3, LogicalTime(5))
    };
    let mut world = of_three();
    introduce(&mut world, foreign(0x11));
    introduce_third(&mut world, foreign(0x12));
    // Those who were met are on other directories now, and know another one of this partition.
    let mut again = of_three();
    again.files = world.files.clone();
    let mut again = World { partition: again.partition, now: NOW, files: again.files }.started();
    introduce(&mut again, denies(0x21));
    assert!(matches!(again.partition.stage, Stage::Serving), "one that says so alone stops nobody");
    introduce_third(&mut again, denies(0x22));
    assert!(matches!(again.partition.stage, Stage::Stopped(_)));
    // Who has agreed since this process began has changed its own directory since.
    introduce(&mut world, denies(0x21));
    introduce_third(&mut world, denies(0x22));
    assert!(matches!(world.partition.stage, Stage::Serving));
}

#[test]
fn what_follows_an_old_copy_must_still_be_in_the_logs_of_the_others() {
    let mut world = serving();
    let copy = world.files.clone();
    world.run("SET a 1");
    let (own, last) = (world.partition.peers.identity.own(), world.partition.cx.clock.latest());
    let mut old = World::under("eventual", copy, NOW, u64::MAX).started();
    introduce(&mut old, knowing(own, 1, last));
    old.work();
    let mut again = World::under("eventual", old.files, NOW, u64::MAX).started();
    assert!(matches!(again.partition.stage, Stage::RecoveringTail(_)));
    introduce(&mut again, Introduction { is_whole: false, ..knowing(own, 1, last) });
    again.now.monotonic_us += 2_000_000;
    again.partition.on_timer(again.now);
    again.work();
    let words = answer(&mut again, "GET a");
    assert!(words.contains("REJOIN") && words.contains("cannot be had again from dc2"), "{words}");
    assert!(words.contains("start with an empty one, which takes a copy"), "{words}");
    let is_told = |trace: &Trace| matches!(trace, Trace::CannotRejoin { .. });
    assert!(again.partition.cx.traces.iter().any(is_told));
    // Nor is it forgotten with the link over which it was said, though everything else has come.
    again.partition.on_link_down(
        again.now,
        ensue_wire::CoreName { datacenter: OTHER, core: CoreId(0) },
        &|_| true,
    );
    let fetched = |received| Message::TailFetched { after: Position(0), received, entries: Vec::new() };
    again.message(ELSEWHERE, fetched(Position(0)));
    assert!(matches!(again.partition.stage, Stage::RecoveringTail(_)), "{:?}", again.partition.stage);
    introduce(&mut again, knowing(own, 1, last));
    assert!(matches!(again.partition.stage, Stage::Serving), "{:?}", again.partition.stage);
}

/// Another partition of this datacenter has lost the end of its log, and this one may have without knowing it.
#[test]
fn nothing_is_lost_with_a_sibling_before_all_others_have_said_how_much_they_have() {
    let is_answered = |world: &mut World| {
        sent(world).iter().any(|message| matches!(message, Message::Repeated { number: 7 }))
    };
    let asked = || {
        let mut world = started(Files::new(), 1);
        world.message(ITS_NEIGHBOUR, Message::Repeat { number: 7 });
        assert!(!is_answered(&mut world));
        assert_eq!(world.partition.cx.incarnation, Incarnation(1));
        world
    };
    let mut world = asked();
    introduce(&mut world, introduction());
    assert!(is_answered(&mut world));
    assert_eq!(world.partition.cx.incarnation, Incarnation(2));
    // What the other datacenter has is taken back after another start, and not declared lost.
    let mut world = asked();
    let own = world.partition.peers.identity.own();
    introduce(&mut world, knowing(own, 1, LogicalTime(5)));
    assert!(matches!(&world.partition.stage, Stage::Stopped(reason) if reason.contains("ends at 1.0")));
    assert_eq!(world.partition.cx.incarnation, Incarnation(1));
}

/// It had met nobody before.
#[test]
fn an_old_copy_that_was_written_to_is_noticed_after_another_start() {
    let mut world = serving();
    let copy = world.files.clone();
    world.run("SET a 1");
    let (own, last) = (world.partition.peers.identity.own(), world.partition.cx.clock.latest());
    let mut old = World::under("eventual", copy, NOW, u64::MAX).started();
    old.now.wall_ms += 1_000;
    old.run("SET b 1");
    for (files, is_served) in [(world.files.clone(), true), (old.files.clone(), false)] {
        let mut again = World::under("eventual", files, NOW, u64::MAX).started();
        introduce(&mut again, knowing(own, 1, last));
        assert_eq!(matches!(again.partition.stage, Stage::Serving), is_served);
    }
}

/// A later start might not find out: it takes what it has read for the datacenter's own.
#[test]
fn an_old_copy_that_was_written_to_is_marked_while_a_checkpoint_is_written() {
    let mut world = serving();
    let copy = world.files.clone();
    world.run("SET a 1");
    let own = world.partition.peers.identity.own();
    let mut old = World::under("eventual", copy, NOW, 1).started();
    old.run("SET b 1");
    old.now.monotonic_us += 2_000_000;
    old.partition.on_timer(old.now);
    assert!(old.partition.durability.is_checkpointing());
    old.hear(ELSEWHERE, Message::Introduce(knowing(own, 1, LogicalTime(7))));
    assert!(matches!(&old.partition.stage, Stage::Stopped(reason) if reason.contains("1 writes were taken")));
    old.work();
    let mut again = World::under("eventual", old.files, NOW, u64::MAX).started();
    assert!(matches!(again.partition.stage, Stage::Joining(_)));
    // Nobody has more of the stream, and yet it is not served.
    introduce(&mut again, knowing(own, 1, LogicalTime(7)));
    let words = answer(&mut again, "GET b");
    assert!(words.contains("REJOIN") && words.contains("an old copy on which writes were taken"), "{words}");
}
