//! A home that moves: when the old one stops and says so, when the new one starts, and what a restart knows of that.

use super::homes::with_homes;
use super::identity::{answer, beginning, partition, sent};
use super::versions::{OTHER, World, put};
use super::{PARTITION, config};
use crate::AppendFsync;
use crate::config::DatacenterTopology;
use crate::partition::Partition;
use crate::partition::journal::open::Open;
use ensue_store::testing::Files;
use ensue_types::{
    Breaking, CoreId, DatacenterId, HomeMove, HomeStep, Incarnation, KeyspaceId, LogicalTime, Now,
    PartitionId, Position, Rule, TimeVector,
};
use ensue_wire::{Address, Message};
use std::sync::Arc;

const OWN: DatacenterId = DatacenterId(0);
const ELSEWHERE: Address = Address::Partition { datacenter: OTHER, partition: PARTITION };
const NOW: Now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };

/// `own:*` is at home here, and `away:*` in the other datacenter, to which there is a link.
fn under(protocol: &str, files: Files) -> World {
    let mut config = with_homes(config(AppendFsync::Always));
    config.tuning.checkpoint_bytes = u64::MAX;
    let protocol = || ensue_protocol::by_name(protocol, Default::default()).expect("it is known");
    let protocols = Arc::new((0..ensue_types::limits::KEYSPACES).map(|_| protocol()).collect::<Vec<_>>());
    let partition = Partition::new(PARTITION, Arc::new(config), protocols, NOW);
    let mut world = World { partition, now: NOW, files }.started();
    world.partition.on_link_up(NOW, OTHER, &|_| true);
    world.work();
    resume(&mut world, ELSEWHERE);
    sent(&mut world);
    world
}

/// A datacenter asks for the stream of this one from its beginning.
fn resume(world: &mut World, from: Address) {
    let received = Position::before(Incarnation(1));
    world.message(from, Message::StreamResume { incarnation: Incarnation(1), received });
}

fn started(files: Files) -> World {
    under("eventual", files)
}

/// Time passes; what the partition tells others of homes then.
fn pass(world: &mut World) -> Vec<HomeMove> {
    let mut said = Vec::new();
    for _ in 0..4 {
        world.now.monotonic_us += 1_000_000;
        world.now.wall_ms += 1_000;
        world.partition.on_timer(world.now);
        world.work();
        said.extend(std::iter::from_fn(|| world.partition.cx.outbox.next()));
    }
    let moves = said.into_iter().filter(|envelope| envelope.to == ELSEWHERE).filter_map(|envelope| {
        match envelope.message {
            Message::HomeMoves { moves, .. } => Some(moves),
            _ => None,
        }
    });
    moves.flatten().collect()
}

fn moved(pattern: &'static str, [configured, from, home]: [DatacenterId; 3], step: HomeStep) -> HomeMove {
    let applied = vec![(from, Position(1))];
    HomeMove {
        keyspace: KeyspaceId(0),
        pattern: pattern.into(),
        configured,
        version: 1,
        from,
        home,
        step,
        is_claimed: false,
        applied,
        times: TimeVector::default(),
    }
}

/// The other datacenter says this of a move.
fn hear(world: &mut World, moved: HomeMove) {
    world.message(ELSEWHERE, Message::HomeMoves { asks: false, moves: vec![moved] });
    sent(world);
}

fn is_refused(world: &mut World, line: &str) -> bool {
    answer(world, line).contains("HOMEAWAY")
}

/// The home of `own:*` has begun to move to the other datacenter.
fn leaving() -> World {
    let mut world = under("cops", Files::new());
    assert!(answer(&mut world, "SET own:k 1").contains("OK"));
    let asked = answer(&mut world, "causal home own:* dc2");
    assert!(asked.contains("Array([Integer(0), Integer(0), Bulk(b\"\")])"), "{asked}");
    assert!(answer(&mut world, "causal home own:* dc2 1").contains("OK"));
    world
}

#[test]
fn the_old_home_executes_nothing_more_also_after_a_restart_and_says_what_it_has() {
    for (broken, stops) in [(None, true), (Some(Rule::TheFormerHomeStops), false)] {
        let _breaking = Breaking::only(broken);
        let mut world = leaving();
        assert_eq!(is_refused(&mut world, "SET own:k 2"), stops, "{broken:?}");
    }
    let mut world = leaving();
    for line in ["INCR own:n", "EVAL return{1} 1 own:k", "DEL own:k", "BLPOP own:l 0"] {
        assert!(is_refused(&mut world, line), "{line}");
    }
    assert!(answer(&mut world, "GET own:k").contains('1'), "reads are local where there is causality");
    assert!(answer(&mut world, "SET other 1").contains("OK"));
    let said = pass(&mut world);
    let told = said.last().expect("it says that it has stopped").clone();
    assert_eq!((told.step, told.home, told.version), (HomeStep::Stopped, OTHER, 1));
    assert!(told.applied.contains(&(OWN, Position(2))), "{told:?}");
    let mut again = under("cops", world.files);
    assert!(is_refused(&mut again, "SET own:k 2"), "a restart keeps it");
    assert_eq!(pass(&mut again).first(), Some(&told), "and says it again");
    // Who has heard of it is not told again.
    hear(&mut again, HomeMove { step: HomeStep::Started, ..told });
    assert_eq!(pass(&mut again), []);
    assert!(answer(&mut again, "causal home").contains("[Integer(1), Integer(1), Integer(5), Integer(0)"));
}

#[test]
fn what_waits_at_the_old_home_is_answered_when_the_new_one_has_started() {
    let mut world = under("cops", Files::new());
    world.run("BLPOP own:l 0");
    world.run("XREAD BLOCK 0 STREAMS own:s 1-1");
    assert!(answer(&mut world, "causal home own:* dc2 1").contains("OK"));
    pass(&mut world);
    assert!(!format!("{:?}", sent(&mut world)).contains("HOMEAWAY"), "it waits on");
    world.message(
        ELSEWHERE,
        Message::HomeMoves { asks: false, moves: vec![moved("own:*", [OWN, OWN, OTHER], HomeStep::Started)] },
    );
    let said = format!("{:?}", sent(&mut world));
    assert_eq!(said.matches("HOMEAWAY").count(), 1, "the one that only reads waits here: {said}");
}

#[test]
fn the_new_home_starts_when_it_has_all_that_the_old_one_executed() {
    for (broken, starts_too_soon) in [(None, false), (Some(Rule::MoveHomeAfterItsWrites), true)] {
        let _breaking = Breaking::only(broken);
        let mut world = started(Files::new());
        assert!(is_refused(&mut world, "SET away:k 2 NX"), "it is at home elsewhere");
        hear(&mut world, moved("away:*", [OTHER, OTHER, OWN], HomeStep::Stopped));
        pass(&mut world);
        assert_eq!(!is_refused(&mut world, "SET away:k 2 NX"), starts_too_soon, "{broken:?}");
        world.receive(1, "away:k", put("1"));
        let said = pass(&mut world);
        let told = said.last().map(|moved| moved.step);
        assert_eq!(told, Some(HomeStep::Started), "{broken:?}: {said:?}");
        let taken = answer(&mut world, "SET away:k 3 NX");
        assert!(!taken.contains("HOMEAWAY") && !taken.contains("OK"), "{broken:?}: {taken}");
    }
}

/// The steps of the new home are its own: what others say of them counts only elsewhere.
#[test]
fn nobody_else_says_that_a_home_has_started_here_and_an_older_move_says_nothing() {
    let mut world = started(Files::new());
    hear(&mut world, moved("away:*", [OTHER, OTHER, OWN], HomeStep::Started));
    pass(&mut world);
    assert!(is_refused(&mut world, "SET away:k 2"), "an entry is missing");
    world.receive(1, "away:k", put("1"));
    pass(&mut world);
    assert!(!is_refused(&mut world, "SET away:k 2"));
    // The same move, and one of a line that is configured otherwise.
    hear(&mut world, moved("away:*", [OTHER, OTHER, OTHER], HomeStep::Stopped));
    hear(&mut world, HomeMove { version: 9, ..moved("away:*", [OWN, OWN, OTHER], HomeStep::Stopped) });
    assert!(!is_refused(&mut world, "SET away:k 3"));
    // A later one counts, whoever says so: here it is known to have been lost, or claimed.
    hear(&mut world, HomeMove { version: 2, ..moved("away:*", [OTHER, OWN, OTHER], HomeStep::Started) });
    assert!(is_refused(&mut world, "SET away:k 4"));
}

#[test]
fn a_home_moves_from_here_to_whom_there_is_a_link_and_from_a_dead_one_to_here() {
    let mut world = started(Files::new());
    let reason = answer(&mut world, "causal home away:* dc1 1");
    assert!(reason.contains("NOMOVE") && reason.contains("was not declared dead"), "{reason}");
    assert!(answer(&mut world, "causal home own:* dc1 1").contains("as the home already"));
    assert!(answer(&mut world, "causal home own:lock dc2 1").contains("no home of this pattern"));
    let there = ensue_wire::CoreName { datacenter: OTHER, core: ensue_types::CoreId(0) };
    world.partition.on_link_down(NOW, there, &|_| true);
    let reason = answer(&mut world, "causal home own:* dc2 1");
    assert!(reason.contains("NOMOVE") && reason.contains("no link to dc2"), "{reason}");
    assert!(answer(&mut world, "SET own:k 1").contains("OK"), "nothing has begun");
    world.run("causal dead dc2 confirm");
    pass(&mut world);
    assert!(answer(&mut world, "causal home away:* dc1 1").contains("OK"));
    pass(&mut world);
    assert!(answer(&mut world, "SET away:k 1 NX").contains("OK"), "nobody else is left to agree");
}

#[test]
fn a_home_stays_whose_new_place_does_not_follow() {
    let mut world = started(Files::new());
    world.partition.others.replication.sender_mut(OTHER).expect("it is known").on_link_down();
    let reason = answer(&mut world, "causal home own:* dc2 1");
    assert!(reason.contains("NOMOVE") && reason.contains("dc2 is starting"), "{reason}");
    resume(&mut world, ELSEWHERE);
    assert!(answer(&mut world, "SET own:k 1").contains("OK"));
    world.now.monotonic_us += 60_000_000;
    let reason = answer(&mut world, "causal home own:* dc2 1");
    assert!(reason.contains("NOMOVE") && reason.contains("far behind"), "{reason}");
}

fn second_of_four() -> World {
    of_four(SECOND)
}

/// Four datacenters of two partitions each; the world is a partition of the first, and has a link to all.
fn of_four(id: PartitionId) -> World {
    let mut config = with_homes(config(AppendFsync::Always));
    config.tuning.checkpoint_bytes = u64::MAX;
    config.topology.partitions = 2;
    for name in ["dc3", "dc4"] {
        let one = DatacenterTopology { name: name.into(), ..config.topology.datacenters[1].clone() };
        config.topology.datacenters.push(one);
    }
    for one in &mut config.topology.datacenters {
        one.placement = vec![CoreId(0), CoreId(0)];
    }
    let protocol = || ensue_protocol::by_name("eventual", Default::default()).expect("it is known");
    let protocols = Arc::new((0..ensue_types::limits::KEYSPACES).map(|_| protocol()).collect::<Vec<_>>());
    let partition = Partition::new(id, Arc::new(config), protocols, NOW);
    let mut world = World { partition, now: NOW, files: Files::new() }.started();
    for other in [OTHER, DC3, DC4] {
        world.partition.on_link_up(NOW, other, &|_| true);
    }
    world.work();
    sent(&mut world);
    world
}

const SECOND: PartitionId = PartitionId(1);
const DC3: DatacenterId = DatacenterId(2);
const DC4: DatacenterId = DatacenterId(3);

fn of(datacenter: DatacenterId) -> Address {
    Address::Partition { datacenter, partition: SECOND }
}

/// Partition 0 of this datacenter says how far it is.
fn first_says(world: &mut World, moved: HomeMove) {
    let from = Address::Partition { datacenter: OWN, partition: PartitionId(0) };
    world.message(from, Message::HomeMoves { asks: false, moves: vec![moved] });
}

fn claimed(home: DatacenterId) -> HomeMove {
    let moved = moved("away:*", [OTHER, OTHER, home], HomeStep::Stopped);
    HomeMove { is_claimed: true, applied: Vec::new(), ..moved }
}

/// The number, the home and the step of the latest move of `away:*`.
fn known(world: &World) -> (u64, DatacenterId, HomeStep) {
    let known = world.partition.cx.homes.known(1);
    (known.version, known.home, known.step)
}

#[test]
fn a_partition_claims_with_partition_0_what_a_dead_home_had_or_had_given_to_others_of_this_datacenter() {
    for is_claimed in [true, false] {
        let said = HomeMove { is_claimed, ..claimed(OWN) };
        let mut world = second_of_four();
        first_says(&mut world, said.clone());
        assert_eq!(known(&world).0, 0, "the former home lives, and says itself what it has executed");
        world.run("causal dead dc2 confirm");
        world.run("causal dead dc4 confirm");
        first_says(&mut world, HomeMove { version: 2, from: DC4, ..said.clone() });
        assert_eq!(known(&world).0, 0, "it has not heard of the move to the other dead one");
        first_says(&mut world, said);
        assert_eq!(known(&world), (1, OWN, HomeStep::Stopped));
        pass(&mut world);
        assert!(is_refused(&mut world, "SET away:k 1"), "the others have not agreed");
        assert!(world.partition.cx.homes.moved(1).is_some_and(|moved| moved.is_claimed));
    }
}

#[test]
fn of_two_moves_with_one_number_the_first_that_is_told_stays() {
    let mut world = second_of_four();
    for other in [OTHER, DC3] {
        resume(&mut world, of(other));
    }
    assert!(answer(&mut world, "causal home own:* dc2 1").contains("OK"));
    assert!(answer(&mut world, "causal home own:* dc2 1").contains("OK"), "it can be said again");
    let reason = answer(&mut world, "causal home own:* dc3 1");
    assert!(reason.contains("NOMOVE") && reason.contains("it moves to dc2 already"), "{reason}");
}

#[test]
fn of_two_claims_with_one_number_the_same_counts_everywhere() {
    let says = |world: &mut World, moved: HomeMove| {
        world.message(of(moved.home), Message::HomeMoves { asks: false, moves: vec![moved] });
        sent(world);
        known(world).1
    };
    let mut world = second_of_four();
    world.run("causal dead dc2 confirm");
    assert_eq!(says(&mut world, claimed(DC4)), DC4);
    assert_eq!(says(&mut world, claimed(DC3)), DC3);
    assert_eq!(says(&mut world, claimed(DC4)), DC3, "the later one counts nowhere");
    assert_eq!(told(&mut world), [DC4], "it has not said that it agrees");
    first_says(&mut world, claimed(OWN));
    assert_eq!(known(&world).1, OWN);
    assert_eq!(says(&mut world, claimed(DC3)), OWN);
    // What the former home had begun counts before every claim.
    let begun = HomeMove { is_claimed: false, ..claimed(DC4) };
    assert_eq!(says(&mut world, begun), DC4);
    assert_eq!(says(&mut world, claimed(DC3)), DC4);
    // A claim of who is dead counts less than one of who lives.
    let mut world = second_of_four();
    world.run("causal dead dc2 confirm");
    assert_eq!(says(&mut world, claimed(DC3)), DC3);
    world.run("causal dead dc3 confirm");
    assert_eq!(says(&mut world, claimed(DC4)), DC4);
}

/// It may lose its log after it has said that it is closed, or has stopped.
#[test]
fn partitions_of_a_former_home_hear_of_the_move_from_partition_0_until_the_new_one_has_started() {
    let second = Address::Partition { datacenter: OWN, partition: SECOND };
    let tells_second = |world: &mut World| {
        sent(world);
        world.now.monotonic_us += 1_000_000;
        world.partition.on_timer(world.now);
        world.work();
        let mut said = std::iter::from_fn(|| world.partition.cx.outbox.next());
        said.any(|one| one.to == second && matches!(one.message, Message::HomeMoves { .. }))
    };
    let mut world = of_four(PartitionId(0));
    resume(&mut world, ELSEWHERE);
    assert!(answer(&mut world, "causal home own:* dc2 1").contains("OK"));
    assert!(tells_second(&mut world));
    let given = |step| moved("own:*", [OWN, OWN, OTHER], step);
    for step in [HomeStep::Closing, HomeStep::Closed] {
        world.message(second, Message::HomeMoves { asks: false, moves: vec![given(step)] });
        pass(&mut world);
    }
    assert_eq!(world.partition.cx.homes.known(0).step, HomeStep::Stopped);
    assert!(tells_second(&mut world));
    let mut lost = second_of_four();
    first_says(&mut lost, given(HomeStep::Stopped));
    assert!(is_refused(&mut lost, "SET own:k 1"));
    assert_eq!(lost.partition.cx.homes.known(0).step, HomeStep::Closing);
    hear(&mut world, given(HomeStep::Started));
    assert!(!tells_second(&mut world));
}

/// Which datacenters are told of homes when time passes.
fn told(world: &mut World) -> Vec<DatacenterId> {
    sent(world);
    world.now.monotonic_us += 1_000_000;
    world.partition.on_timer(world.now);
    world.work();
    let said = std::iter::from_fn(|| world.partition.cx.outbox.next());
    let moves = said.filter(|one| matches!(one.message, Message::HomeMoves { .. }));
    moves.map(|one| one.to.datacenter()).filter(|datacenter| *datacenter != OWN).collect()
}

/// It waits for the one that catches up, and would not answer before.
#[test]
fn who_catches_up_does_not_wait_for_the_word_of_a_datacenter_that_nobody_has_met() {
    let mut config = with_homes(config(AppendFsync::Always));
    config.tuning.checkpoint_bytes = u64::MAX;
    let mut world = World { partition: partition(config), now: NOW, files: Files::new() }.started();
    let Partition { others, cx, .. } = &mut world.partition;
    others.begin_to_catch_up(cx, 0, 0, &mut Open::default());
    assert_eq!(cx.homes.unheard().len(), 1);
    world.message(ELSEWHERE, Message::Introduce(beginning()));
    assert!(world.partition.cx.homes.unheard().is_empty());
}

/// The home is dead: who claims it starts when all that are left know that, so that nobody starts by an older move.
#[test]
fn who_claims_a_home_waits_for_all_survivors_to_know_it() {
    let third = Address::Partition { datacenter: DatacenterId(2), partition: PARTITION };
    let mut config = with_homes(config(AppendFsync::Always));
    let dc3 = DatacenterTopology { name: "dc3".into(), ..config.topology.datacenters[1].clone() };
    config.topology.datacenters.push(dc3);
    let mut world = World { partition: partition(config), now: NOW, files: Files::new() }.started();
    world.partition.on_link_up(NOW, DatacenterId(2), &|_| true);
    world.run("causal dead dc2 confirm");
    pass(&mut world);
    let (received, time) = (Position(0), LogicalTime::ZERO);
    world.message(third, Message::DatacenterFailed { datacenter: OTHER, received, time, ended: None });
    assert!(answer(&mut world, "causal home away:* dc1 1").contains("OK"));
    pass(&mut world);
    assert!(is_refused(&mut world, "SET away:k 1 NX"), "dc3 may know of a move that is not known here");
    let claimed = moved("away:*", [OTHER, OTHER, OWN], HomeStep::Stopped);
    let claimed = HomeMove { is_claimed: true, applied: Vec::new(), ..claimed };
    world.message(third, Message::HomeMoves { asks: false, moves: vec![claimed] });
    pass(&mut world);
    assert!(answer(&mut world, "SET away:k 1 NX").contains("OK"));
}
