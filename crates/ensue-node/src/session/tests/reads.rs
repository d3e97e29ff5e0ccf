//! Read transactions: rounds, restarts, and what the session remembers of them.

use super::*;
use ensue_types::{Breaking, Causes, Rule, limits};
use ensue_wire::AtValues;

/// An MGET of a key of partition 0 and one of partition 1, with both messages out.
fn mget(world: &mut World) -> (Envelope, Envelope) {
    world.send(&[&format!("MGET {} {} {}", key(1, 0), key(0, 0), key(1, 1))]);
    let (one, zero) = (world.next(), world.next());
    assert_eq!((partition(&one), partition(&zero)), (1, 0));
    assert!(matches!(one.message, Message::ReadFirst { .. }));
    assert_eq!(executes(&one), [format!("MGET {} {}", key(1, 0), key(1, 1))]);
    (one, zero)
}

fn array(items: &[&str]) -> Vec<Reply> {
    vec![Reply::Array(items.iter().map(|item| bulk(item)).collect())]
}

/// The context that the next command would carry.
fn context(world: &mut World) -> Context {
    world.send(&[&format!("GET {}", key(3, 0))]);
    let envelope = world.next();
    match envelope.message {
        Message::Execute { context, .. } => context,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_round_when_the_values_belong_together() {
    let mut world = World::new();
    let (one, zero) = mget(&mut world);
    world.answer(&zero, 20, first(&zero, 5, 20, array(&["z"])));
    assert_eq!(world.received(), "");
    world.answer(&one, 30, first(&one, 10, 30, array(&["x", "y"])));
    assert_eq!(world.received(), "*3|$1|x|$1|z|$1|y|", "in the order of the keys");
    assert_eq!(world.answered, 1);
    assert!(world.traces.is_empty());
    let context = context(&mut world);
    assert_eq!(context, Context { time: LogicalTime(30), causes: causes(&[(0, 0, 5), (0, 1, 10)]) });
}

#[test]
fn a_second_round_for_shares_that_were_not_valid_at_the_effective_time() {
    let mut world = World::new();
    let (one, zero) = mget(&mut world);
    world.answer(&zero, 20, first(&zero, 5, 20, array(&["old"])));
    world.answer(&one, 30, first(&one, 25, 30, array(&["x", "y"])));
    let again = world.next();
    assert_eq!(world.traces, [Trace::SecondRound { session: CLIENT }]);
    assert_eq!(partition(&again), 0);
    assert!(matches!(again.message, Message::ReadAt { at: LogicalTime(30), .. }));
    let values = Some(AtValues { replies: array(&["new"]), seen: causes(&[(1, 0, 7)]) });
    world.answer(&again, 31, Message::ReadAtDone { request: request(&again), values });
    assert_eq!(world.received(), "*3|$1|x|$3|new|$1|y|");
    let context = context(&mut world);
    assert_eq!(context, Context { time: LogicalTime(31), causes: causes(&[(0, 1, 25), (1, 0, 7)]) });
}

#[test]
fn a_pending_share_is_read_again() {
    let mut world = World::new();
    let (one, zero) = mget(&mut world);
    let pending =
        Message::ReadFirstDone { request: request(&zero), latest_valid: LogicalTime(50), values: None };
    world.answer(&zero, 50, pending);
    world.answer(&one, 30, first(&one, 25, 30, array(&["x", "y"])));
    let again = world.next();
    assert_eq!(partition(&again), 0);
    assert!(world.sent.is_empty());
}

#[test]
fn a_collected_version_begins_again_and_a_bounded_number_of_times() {
    let mut world = World::new();
    let (one, zero) = mget(&mut world);
    let mut firsts = vec![one, zero];
    for restart in 0..=limits::READ_RESTARTS_MAX {
        for (envelope, (from, to)) in firsts.iter().zip([(25, 30), (5, 20)]) {
            world.answer(envelope, to, first(envelope, from, to, array(&["x", "y"])));
        }
        let again = world.next();
        world.answer(&again, 31, Message::ReadAtDone { request: request(&again), values: None });
        assert_eq!(world.traces.pop(), Some(Trace::ReadRestarted { session: CLIENT }));
        if restart < limits::READ_RESTARTS_MAX {
            assert_eq!(world.received(), "");
            firsts = vec![world.next(), world.next()];
        }
    }
    assert!(world.received().starts_with("-TRYAGAIN "));
    assert!(world.sent.is_empty());
    assert_eq!(context(&mut world).causes, Causes::Nothing, "nothing was accepted, so nothing is remembered");
}

#[test]
fn a_transaction_older_than_its_timeout_begins_again() {
    let mut world = World::new();
    let (one, zero) = mget(&mut world);
    world.answer(&zero, 20, first(&zero, 5, 20, array(&["old"])));
    world.pass_ms(limits::READ_TRANSACTION_TIMEOUT_MS + 1);
    world.answer(&one, 30, first(&one, 25, 30, array(&["x", "y"])));
    assert_eq!(world.traces, [Trace::ReadRestarted { session: CLIENT }]);
    assert!(matches!(world.next().message, Message::ReadFirst { .. }));
    let stale = first(&zero, 5, 40, array(&["stale"]));
    world.answer(&zero, 40, stale);
    assert_eq!(world.received(), "", "an answer of the first attempt is dropped");
}

#[test]
fn without_the_rule_of_the_second_round_the_first_values_stand() {
    let _breaking = Breaking::only(Some(Rule::SecondRound));
    let mut world = World::with(config());
    let (one, zero) = mget(&mut world);
    world.answer(&zero, 20, first(&zero, 5, 20, array(&["old"])));
    world.answer(&one, 30, first(&one, 25, 30, array(&["x", "y"])));
    assert_eq!(world.received(), "*3|$1|x|$3|old|$1|y|");

    let (one, zero) = mget(&mut world);
    let pending =
        Message::ReadFirstDone { request: request(&zero), latest_valid: LogicalTime(50), values: None };
    world.answer(&zero, 50, pending);
    world.answer(&one, 30, first(&one, 25, 30, array(&["x", "y"])));
    assert!(matches!(world.next().message, Message::ReadAt { at: LogicalTime(50), .. }));
}

#[test]
fn without_the_rule_of_remembering_reads_nothing_is_remembered() {
    let _breaking = Breaking::only(Some(Rule::RememberReads));
    let mut world = World::with(config());
    let (one, zero) = mget(&mut world);
    world.answer(&zero, 20, first(&zero, 5, 20, array(&["z"])));
    world.answer(&one, 30, first(&one, 10, 30, array(&["x", "y"])));
    assert_eq!(context(&mut world).causes, Causes::Nothing);
}

#[test]
fn exists_over_owners_is_the_sum_of_one_snapshot() {
    let mut world = World::new();
    world.send(&[&format!("EXISTS {} {}", key(0, 0), key(1, 0))]);
    let (zero, one) = (world.next(), world.next());
    world.answer(&zero, 20, first(&zero, 5, 20, vec![Reply::Integer(1)]));
    world.answer(&one, 20, first(&one, 5, 20, vec![Reply::Integer(1)]));
    assert_eq!(world.received(), ":2|");
}

#[test]
fn a_protocol_without_snapshots_reads_in_parallel() {
    let mut world = World::new();
    world.send(&["SELECT 2", &format!("MGET {} {}", key(0, 0), key(1, 0))]);
    world.executed(array(&["a"]));
    world.executed(array(&["b"]));
    assert_eq!(world.received(), "+OK|*2|$1|a|$1|b|");
}
