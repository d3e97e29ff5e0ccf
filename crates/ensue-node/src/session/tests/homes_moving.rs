//! Homes that move, as sessions hear it: where commands go from then on, and what had begun at the former home.

use super::homes::{FAR, FAR_BOOT, answer, config_with_homes, executed, ready, requested, words_of, world};
use super::*;
use crate::homes::MOVING;
use ensue_types::{HomeMove, HomeStep, KeyspaceId, TimeVector};
use ensue_wire::HomeOutcome;

const HERE: DatacenterId = DatacenterId(0);
const THIRD: DatacenterId = DatacenterId(2);

/// A partition of this datacenter says that a home has moved.
fn moves(world: &mut World, pattern: &'static str, [configured, home]: [DatacenterId; 2], version: u64) {
    let moved = HomeMove {
        keyspace: KeyspaceId(0),
        pattern: pattern.into(),
        configured,
        version,
        from: configured,
        home,
        step: HomeStep::Stopped,
        is_claimed: false,
        applied: Vec::new(),
        times: TimeVector::default(),
    };
    let from = Address::Partition { datacenter: HERE, partition: PartitionId(0) };
    let to = Address::Core { datacenter: HERE, core: CoreId(0) };
    let message = Message::HomeMoves { asks: false, moves: vec![moved] };
    world.sessions.on_message(world.now, Envelope { from, to, time: LogicalTime::ZERO, message });
    world.drain();
}

#[test]
fn commands_go_to_where_the_home_is_by_the_latest_move() {
    let mut world = world();
    let is_here = |world: &mut World| {
        world.send(&["SET own:a 1"]);
        let is_here = matches!(world.sent.front().map(|one| &one.message), Some(Message::Execute { .. }));
        match is_here {
            true => world.executed(vec![Reply::OK]),
            false => {
                let request = requested(world);
                answer(world, &request, executed(Reply::OK, &[]));
            }
        }
        assert_eq!(world.received(), "+OK|");
        is_here
    };
    assert!(is_here(&mut world), "as it is configured");
    moves(&mut world, "own:*", [HERE, FAR], 2);
    assert!(!is_here(&mut world));
    moves(&mut world, "own:*", [HERE, HERE], 1);
    moves(&mut world, "own:*", [FAR, HERE], 9);
    assert!(!is_here(&mut world), "an older move, and one of a line that is configured otherwise");
    moves(&mut world, "own:*", [HERE, HERE], 3);
    assert!(is_here(&mut world));
}

#[test]
fn a_transaction_is_not_executed_whose_keys_were_watched_at_a_former_home() {
    let mut world = world();
    world.send(&["WATCH lock:{t}a"]);
    let request = requested(&mut world);
    answer(&mut world, &request, executed(Reply::Array(vec![Reply::Integer(7)]), &[]));
    assert_eq!(world.received(), "+OK|");
    moves(&mut world, "lock:*", [FAR, HERE], 1);
    world.send(&["MULTI", "SET lock:{t}a 1", "EXEC"]);
    assert_eq!(world.received(), "+OK|+QUEUED|*-1|");
    assert!(world.sent.is_empty(), "nothing is executed");
}

#[test]
fn what_waits_at_a_former_home_waits_on_at_the_present_one() {
    let mut config = config_with_homes();
    let third = crate::DatacenterTopology { name: "dc3".into(), ..config.topology.datacenters[1].clone() };
    config.topology.datacenters.push(third);
    let mut world = World::with(config);
    world.drain();
    ready(&mut world, FAR_BOOT);
    for core in [0, 1] {
        let from = Address::Core { datacenter: THIRD, core: CoreId(core) };
        let to = Address::Core { datacenter: HERE, core: CoreId(0) };
        let message = Message::HomeReady { boot: FAR_BOOT };
        world.sessions.on_message(world.now, Envelope { from, to, time: LogicalTime::ZERO, message });
    }
    world.send(&["BLPOP lock:a 25"]);
    let request = requested(&mut world);
    moves(&mut world, "lock:*", [FAR, THIRD], 1);
    answer(&mut world, &request, executed(MOVING, &[]));
    assert_eq!(world.received(), "", "it waits on");
    let envelope = world.next();
    let Message::HomeRequest(again) = &envelope.message else { panic!("a request") };
    assert_eq!((envelope.to.datacenter(), words_of(again)), (THIRD, vec!["BLPOP lock:a 25".to_owned()]));
}

#[test]
fn who_is_asked_and_knows_no_other_home_says_so() {
    let mut world = world();
    world.send(&["BLPOP lock:a 25"]);
    let request = requested(&mut world);
    answer(&mut world, &request, executed(MOVING, &[]));
    assert!(world.received().starts_with("-HOMEAWAY "), "it is not known where it moves");
    world.send(&["INCR lock:a"]);
    let request = requested(&mut world);
    answer(&mut world, &request, HomeOutcome::Refused { reply: MOVING });
    assert!(world.received().starts_with("-HOMEAWAY "));
}

/// What an operator is answered when every partition has said of a move that nothing is in its way.
fn operator_hears(world: &mut World, line: &str) -> String {
    world.send(&[line]);
    for _ in 0..PARTITIONS {
        world.executed(vec![Reply::Array(vec![Reply::Integer(0), Reply::Integer(0), Reply::bulk("")])]);
    }
    world.received()
}

/// The digest that shows what a claim would do.
fn digest(world: &mut World, keyspace: u8, pattern: &str) -> String {
    world.send(&[&format!("SELECT {keyspace}")]);
    world.received();
    let shown = operator_hears(world, &format!("CAUSAL HOME {pattern} dc1"));
    let word = shown.split('|').nth(2).expect("a digest");
    assert_eq!(word.len(), 16, "{shown}");
    word.to_owned()
}

#[test]
fn a_digest_confirms_the_claim_that_it_was_shown_for_and_no_other() {
    let mut config = config_with_homes();
    let other = crate::Home { pattern: "limit:*".into(), ..config.homes[0].clone() };
    config.homes.push(other);
    let mut world = World::with(config);
    world.drain();
    ready(&mut world, FAR_BOOT);
    let [lock, limit] = ["lock:*", "limit:*"].map(|pattern| digest(&mut world, 0, pattern));
    let beside = digest(&mut world, 1, "lock:*");
    assert!(lock != limit && lock != beside, "{lock} {limit} {beside}");
    world.send(&["SELECT 0"]);
    world.received();
    let refused = operator_hears(&mut world, &format!("CAUSAL HOME lock:* dc1 CONFIRM {limit}"));
    assert!(refused.starts_with("-CHANGED"), "{refused}");
    assert!(world.sent.is_empty());
    assert_eq!(operator_hears(&mut world, &format!("CAUSAL HOME lock:* dc1 CONFIRM {lock}")), "");
    world.executed(vec![Reply::OK]);
    assert_eq!(world.received(), "+OK|");
}

/// Two who ask for different moves at once could each be the first in some of the partitions.
#[test]
fn partition_0_begins_to_move_a_home_and_the_others_hear_of_it_there() {
    let mut world = world();
    assert_eq!(operator_hears(&mut world, "CAUSAL HOME own:* dc2"), "");
    assert_eq!(world.sent.len(), 1, "one partition begins");
    let begins = world.next();
    assert_eq!(partition(&begins), 0);
    world.sent.push_front(begins);
    world.executed(vec![Reply::OK]);
    assert_eq!(world.received(), "+OK|");
}

/// Some of its partitions know the move, and the others have to be told: so it can be said again.
#[test]
fn a_home_can_be_claimed_also_where_sessions_know_that_it_has_moved_here() {
    let mut world = world();
    moves(&mut world, "lock:*", [FAR, HERE], 1);
    let shown = operator_hears(&mut world, "CAUSAL HOME lock:* dc1");
    assert!(shown.contains("was declared dead"), "{shown}");
}

#[test]
fn of_two_claims_with_one_number_the_one_counts_that_a_partition_says() {
    let mut world = world();
    let home = |world: &World| world.sessions.core.homes.lines()[0].datacenter;
    moves(&mut world, "lock:*", [FAR, THIRD], 1);
    moves(&mut world, "lock:*", [FAR, HERE], 1);
    assert_eq!(home(&world), HERE);
    let told = world.sessions.core.homes.moves();
    let stale = HomeMove { home: THIRD, ..told[0].clone() };
    let [from, to] = [1, 0].map(|core| Address::Core { datacenter: HERE, core: CoreId(core) });
    let message = Message::HomeMoves { asks: false, moves: vec![stale] };
    world.sessions.on_message(world.now, Envelope { from, to, time: LogicalTime::ZERO, message });
    world.drain();
    assert_eq!(home(&world), HERE, "a core may have heard of it earlier");
}
