//! A datacenter that is removed: what it refuses, when it says that it has ended, and what the others make of that.

use super::PARTITION;
use super::identity::{answer, sent};
use super::versions::{OTHER, World, put};
use crate::partition::Stage;
use ensue_store::testing::Files;
use ensue_types::{Breaking, Causes, DatacenterId, Incarnation, LogicalTime, Now, Position, Rule, Vector};
use ensue_wire::{Address, Message, StreamAcknowledge};

const OWN: DatacenterId = DatacenterId(0);
const ELSEWHERE: Address = Address::Partition { datacenter: OTHER, partition: PARTITION };
const NOW: Now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };

fn started(protocol: &str, files: Files) -> World {
    World::under(protocol, files, NOW, u64::MAX).started()
}

/// Time passes; what the partition says then, of which its own part is taken.
fn pass(world: &mut World) -> Vec<Message> {
    world.now.monotonic_us += 1_000_000;
    world.now.wall_ms += 1_000;
    world.partition.on_timer(world.now);
    world.work();
    hear_itself(world)
}

/// What the partition says, of which it hears what it says to itself.
fn hear_itself(world: &mut World) -> Vec<Message> {
    let own = Address::Partition { datacenter: OWN, partition: PARTITION };
    let mut said = Vec::new();
    while let Some(envelope) = world.partition.cx.outbox.next() {
        match envelope.to == own {
            true => world.message(own, envelope.message),
            false => said.push(envelope.message),
        }
    }
    said
}

fn end_of(datacenter: DatacenterId, received: u64) -> Message {
    let (received, time) = (Position(received), LogicalTime::MAX);
    Message::DatacenterFailed { datacenter, received, time, ended: None }
}

fn says_its_end(said: &[Message]) -> bool {
    said.contains(&end_of(OWN, 1))
}

/// The other datacenter has the first entry of the stream, durably.
fn acknowledge(world: &mut World) {
    let (incarnation, has) = (Incarnation(1), Position(1));
    let acknowledge = StreamAcknowledge {
        incarnation,
        received: has,
        synced: has,
        applied: vec![(OWN, incarnation, has)],
        end: Position(0),
        shown: LogicalTime::ZERO,
    };
    world.message(ELSEWHERE, Message::StreamAcknowledge(acknowledge));
}

/// Whoever waits for what others may write is answered, at once and later.
#[test]
fn nobody_waits_at_a_datacenter_that_is_being_removed() {
    let mut world = started("eventual", Files::new());
    world.run("BLPOP list 0");
    assert_eq!(format!("{:?}", sent(&mut world)).matches("RETIRING").count(), 0);
    world.run("causal retire dc1 confirm");
    let said = format!("{:?}", sent(&mut world));
    assert_eq!(said.matches("RETIRING dc1").count(), 1, "{said}");
    assert!(answer(&mut world, "BLPOP list 0").contains("RETIRING dc1"));
}

#[test]
fn rights_of_bounded_counters_are_given_to_who_stays() {
    let mut world = started("eventual", Files::new());
    world.run("BCREATE stock 10 MIN 0");
    assert!(answer(&mut world, "causal retire dc1 confirm").contains("OK"));
    let said: Vec<Message> = (0..40).flat_map(|_| pass(&mut world)).collect();
    assert!(said.contains(&Message::Retiring { step: 1 }), "it goes on: {said:?}");
    let rights = answer(&mut world, "BGET stock RIGHTS");
    let of = |name: &str| rights.split(name).nth(1).map(|rest| rest.chars().take(40).collect::<String>());
    assert!(of("dc1").is_some_and(|own| own.contains("Integer(0)")), "{rights}");
    assert!(of("dc2").is_some_and(|other| other.contains("Integer(10)")), "{rights}");
}

/// A datacenter that has made one write, and is being removed.
fn retiring() -> World {
    let mut world = started("eventual", Files::new());
    world.run("SET a 1");
    assert!(answer(&mut world, "causal retire dc1 confirm").contains("OK"));
    world
}

#[test]
fn no_write_is_taken_and_reads_go_on_also_after_a_restart() {
    let mut world = retiring();
    let refused = answer(&mut world, "SET a 2");
    assert!(refused.contains("RETIRING dc1") && refused.contains("another datacenter"), "{refused}");
    assert!(answer(&mut world, "GET a").contains('1'));
    let mut again = started("eventual", world.files);
    assert!(answer(&mut again, "INCR n").contains("RETIRING dc1"));
    assert!(answer(&mut again, "GET a").contains('1'));
}

#[test]
fn it_says_that_it_has_ended_when_the_others_have_everything() {
    for (broken, says_too_soon) in [(None, false), (Some(Rule::RetireWhenAllHaveIt), true)] {
        let _breaking = Breaking::only(broken);
        let mut world = retiring();
        let said: Vec<Message> = (0..4).flat_map(|_| pass(&mut world)).collect();
        assert_eq!(says_its_end(&said), says_too_soon, "{broken:?}: {said:?}");
        acknowledge(&mut world);
        let said: Vec<Message> = (0..4).flat_map(|_| pass(&mut world)).collect();
        assert!(says_its_end(&said), "{broken:?}: {said:?}");
    }
}

#[test]
fn it_stops_when_the_others_have_heard_of_its_end() {
    let mut world = retiring();
    acknowledge(&mut world);
    (0..4).for_each(|_| drop(pass(&mut world)));
    assert!(matches!(world.partition.stage, Stage::Serving), "nobody has answered");
    let answered = answer(&mut world, "GET a");
    assert!(answered.contains("RETIRED dc1") && answered.contains("may be stopped"), "{answered}");
    assert!(says_its_end(&pass(&mut world)), "it says so again");
    world.message(ELSEWHERE, end_of(OWN, 1));
    assert!(matches!(world.partition.stage, Stage::Stopped(_)), "{:?}", world.partition.stage);
    assert!(answer(&mut world, "GET a").contains("RETIRED dc1"));
    let to_itself = Address::Partition { datacenter: OWN, partition: ensue_types::PartitionId(1) };
    world.message(to_itself, Message::Retiring { step: 0 });
    assert_eq!(sent(&mut world), [Message::Retiring { step: 3 }], "a neighbour need not wait for it");
}

/// Its process is ended before everybody has answered: who has answers the next one, too.
#[test]
fn one_that_starts_again_learns_that_it_has_ended() {
    let world = retiring();
    let mut again = started("eventual", world.files);
    again.message(ELSEWHERE, end_of(OWN, 1));
    assert!(answer(&mut again, "GET a").contains("RETIRED dc1"));
}

#[test]
fn one_that_was_declared_dead_meanwhile_is_dead() {
    let mut world = retiring();
    let (received, time) = (Position(0), LogicalTime::ZERO);
    world.message(ELSEWHERE, Message::DatacenterFailed { datacenter: OWN, received, time, ended: None });
    assert!(answer(&mut world, "GET a").contains("DECLAREDDEAD dc1"));
}

/// The other datacenter says that its stream ends at this place.
fn retire_the_other(world: &mut World, end: u64) -> Vec<Message> {
    sent(world);
    world.message(ELSEWHERE, end_of(OTHER, end));
    let mut said = hear_itself(world);
    (0..4).for_each(|_| said.extend(pass(world)));
    said
}

/// Whether the other datacenter is told that it is known to have ended, with nothing lost.
fn is_answer(said: &Message) -> bool {
    matches!(said, Message::DatacenterFailed { datacenter: OTHER, .. })
}

#[test]
fn who_lacks_something_of_one_that_ends_does_not_answer_it() {
    for (broken, answers) in [(None, false), (Some(Rule::RetireWhenAllHaveIt), true)] {
        let _breaking = Breaking::only(broken);
        let mut world = started("eventual", Files::new());
        world.receive(1, "b", put("1"));
        let said = retire_the_other(&mut world, 2);
        assert_eq!(said.iter().any(is_answer), answers, "{broken:?}: {said:?}");
    }
    let mut world = started("eventual", Files::new());
    world.receive(1, "b", put("1"));
    let said = retire_the_other(&mut world, 1);
    assert!(said.iter().any(is_answer), "{said:?}");
    world.message(ELSEWHERE, end_of(OTHER, 1));
    assert!(hear_itself(&mut world).iter().any(is_answer), "its answer may have been lost");
}

/// Whatever it has handed out, the last moment included.
#[test]
fn no_past_of_one_that_was_removed_is_lost() {
    for (broken, is_lost) in [(None, false), (Some(Rule::NothingIsLostWithTheRetired), true)] {
        let _breaking = Breaking::only(broken);
        let mut world = started("cure", Files::new());
        world.run("SET b 1");
        retire_the_other(&mut world, 0);
        assert!(world.partition.others.failover.discarded.knows(OTHER), "{broken:?}");
        let mut past = Vector::default();
        past.times.raise(OTHER, LogicalTime::from_ms(world.now.wall_ms + 500));
        sent(&mut world);
        world.run_after(Causes::from(past), "GET b");
        let said = format!("{:?}", sent(&mut world));
        assert_eq!(said.contains("DISCARDED"), is_lost, "{broken:?}: {said}");
        let mut again = started("cure", world.files);
        assert_eq!(again.partition.others.failover.failed.is_retired(OTHER), !is_lost, "{broken:?}");
        assert!(answer(&mut again, "GET b").contains('1'));
    }
}
