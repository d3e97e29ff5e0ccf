//! A session's share of a turn: when it pauses, and how it goes on.

use super::*;
use crate::evaluate::ANSWER_TOO_LONG;

fn short_turns() -> World {
    let tuning = Tuning { turn_answer_bytes: 20, ..Tuning::default() };
    World::with(NodeConfig { tuning, ..config() })
}

#[test]
fn answers_beyond_a_turn_are_not_made_before_the_next() {
    let mut world = short_turns();
    world.send(&["ECHO 0123456789", "ECHO a", "ECHO b", "ECHO c", "ECHO d"]);
    assert_eq!(world.received(), "$10|0123456789|$1|a|");
    world.give_turn();
    assert_eq!(world.received(), "$1|b|$1|c|$1|d|");
    assert_eq!((world.answered, world.wants_turn), (5, false));
}

#[test]
fn new_commands_come_behind_those_that_wait() {
    let mut world = short_turns();
    world.send(&["ECHO 0123456789abcdef", "ECHO a", "ECHO 0123456789abcdef"]);
    assert_eq!(world.received(), "$16|0123456789abcdef|");
    world.send(&["PING"]);
    assert_eq!(world.received(), "$1|a|$16|0123456789abcdef|");
    world.give_turn();
    assert_eq!(world.received(), "+PONG|");
}

#[test]
fn what_a_partition_leaves_is_asked_for_in_the_next_turn() {
    let mut world = World::new();
    let (one, other) = (key(0, 0), key(1, 0));
    world.send(&[&format!("SET {one} 1"), &format!("GET {one}"), &format!("GET {other}")]);
    let envelope = world.next();
    let context = Context { time: LogicalTime(50), causes: causes(&[(0, 0, 9)]) };
    let rest = vec![args(&format!("GET {one}"))];
    let (request, replies) = (request(&envelope), vec![Reply::OK]);
    let done = Message::ExecutedInPart { request, context: context.clone(), replies, rest };
    world.answer(&envelope, 60, done);
    assert_eq!((world.received().as_str(), world.answered), ("+OK|", 1));
    assert!(world.sent.is_empty(), "others have their turn first");
    world.give_turn();
    // Both reads are neighbours now, and seen as of one moment.
    assert_eq!(executes(&world.next()), [format!("GET {one}")]);
    assert_eq!(executes(&world.next()), [format!("GET {other}")]);
}

#[test]
fn a_partition_that_leaves_all_has_not_answered() {
    let mut world = World::new();
    let get = format!("GET {}", key(0, 0));
    world.send(&[&get]);
    let envelope = world.next();
    let (request, rest) = (request(&envelope), vec![args(&get)]);
    let none = Message::ExecutedInPart { request, context: Context::default(), replies: vec![], rest };
    world.answer(&envelope, 1, none);
    assert!(world.traces.iter().any(|trace| matches!(trace, Trace::Refused { .. })), "{:?}", world.traces);
    world.pass_ms(5_001);
    assert!(world.received().starts_with("-UNAVAILABLE"));
}

#[test]
fn neighbouring_reads_too_long_together_are_read_apart() {
    let mut world = World::new();
    let gets = [0, 1, 2].map(|partition| format!("GET {}", key(partition, 0)));
    world.send(&[&gets[0], &gets[1], &gets[2]]);
    for reply in [bulk("a"), ANSWER_TOO_LONG, bulk("c")] {
        let envelope = world.next();
        let answer = first(&envelope, 5, 20, vec![reply]);
        world.answer(&envelope, 20, answer);
    }
    assert_eq!((world.received().as_str(), world.answered), ("$1|a|", 1));
    world.give_turn();
    assert_eq!(executes(&world.next()), [gets[1].clone()]);
    assert_eq!(executes(&world.next()), [gets[2].clone()]);
}

#[test]
fn who_is_gone_has_no_more_reads() {
    let mut world = short_turns();
    let (get, set) = (format!("GET {}", key(0, 0)), format!("SET {} 1", key(0, 0)));
    world.send(&["ECHO 0123456789abcdef", &get, &set, &get]);
    assert!(world.sent.is_empty() && world.wants_turn);
    world.leave();
    assert_eq!(executes(&world.next()), [set], "what it wrote goes on");
}

#[test]
fn a_command_that_walks_everything_ends_the_turn() {
    let mut world = World::new();
    world.send(&["DBSIZE", "PING"]);
    while let Some(envelope) = world.sent.pop_front() {
        let (request, replies) = (request(&envelope), vec![Reply::Integer(1)]);
        world.answer(&envelope, 1, Message::Executed { request, context: Context::default(), replies });
    }
    assert_eq!(world.received(), ":4|");
    world.give_turn();
    assert_eq!(world.received(), "+PONG|");
}
