//! Commands of other datacenters that wait at the home of their keys, which is here: for how long, and what becomes of
//! what they pop when nobody hears it.

use super::homes::{FAR, FAR_BOOT, far_says};
use super::homes_serving::{answered, ask, request, world};
use super::*;
use ensue_types::{Breaking, Rule};
use ensue_wire::{CoreName, HomeOutcome, HomeRequest};

fn pop(number: u64) -> HomeRequest {
    HomeRequest { waits_ms: 10_000, ..request(number, &["BLPOP own:q 0"]) }
}

fn abandoned(number: u64) -> HomeRequest {
    HomeRequest { abandoned: true, ..pop(number) }
}

fn element() -> Reply {
    Reply::Array(vec![bulk("own:q"), bulk("x")])
}

/// What the partition is asked for, and answers later.
fn executing(world: &mut World, line: &str) -> Envelope {
    let execute = world.next();
    assert_eq!(executes(&execute), [line]);
    execute
}

fn replies(world: &mut World, execute: &Envelope, reply: Reply) {
    let request = super::request(execute);
    let done = Message::Executed { request, context: Context::default(), replies: vec![reply] };
    world.answer(execute, 1, done);
}

fn cut(world: &mut World) {
    world.sessions.on_peer_down(world.now, CoreName { datacenter: FAR, core: CoreId(0) });
    world.drain();
}

fn executed(reply: Reply) -> HomeOutcome {
    HomeOutcome::Executed { context: Context { time: LogicalTime(1), ..Context::default() }, reply }
}

fn without_time(outcome: HomeOutcome) -> HomeOutcome {
    match outcome {
        HomeOutcome::Executed { reply, .. } => executed(reply),
        outcome => outcome,
    }
}

#[test]
fn it_waits_for_a_round_and_is_answered() {
    let mut world = world();
    for reply in [Reply::NilArray, element()] {
        let number = u64::from(reply == element());
        ask(&mut world, &pop(number));
        let execute = executing(&mut world, "BLPOP own:q 0");
        world.pass_ms(9_999);
        assert!(world.sent.is_empty());
        world.pass_ms(1);
        executing(&mut world, "causal withdraw");
        replies(&mut world, &execute, reply.clone());
        let (answers, outcome) = answered(&mut world);
        assert_eq!((answers, without_time(outcome)), (number, executed(reply)));
        assert_eq!(world.sessions.sessions.len(), 1);
    }
    ask(&mut world, &HomeRequest { waits_ms: 10, ..request(7, &["BLPOP own:q 0.005"]) });
    executing(&mut world, "BLPOP own:q 0.005");
    world.pass_ms(5);
    executing(&mut world, "causal withdraw");
}

#[test]
fn nothing_is_popped_for_a_datacenter_that_hears_nothing() {
    let mut world = world();
    ask(&mut world, &pop(5));
    let execute = executing(&mut world, "BLPOP own:q 0");
    cut(&mut world);
    executing(&mut world, "causal withdraw");
    ask(&mut world, &pop(5));
    assert!(world.sent.is_empty(), "its answer will come");
    replies(&mut world, &execute, Reply::NilArray);
    assert_eq!(answered(&mut world), (5, HomeOutcome::Withdrawn));
    ask(&mut world, &pop(5));
    assert_eq!(
        answered(&mut world),
        (5, HomeOutcome::Withdrawn),
        "under this number it is not executed any more"
    );
    // The withdrawal came too late: that is the answer.
    ask(&mut world, &pop(6));
    let execute = executing(&mut world, "BLPOP own:q 0");
    cut(&mut world);
    executing(&mut world, "causal withdraw");
    replies(&mut world, &execute, element());
    for _ in 0..2 {
        let (number, outcome) = answered(&mut world);
        assert_eq!((number, without_time(outcome)), (6, executed(element())));
        ask(&mut world, &pop(6));
    }
}

#[test]
fn what_does_not_wait_is_executed_though_nobody_hears_it() {
    let mut world = world();
    ask(&mut world, &request(5, &["INCR own:n"]));
    let execute = executing(&mut world, "INCR own:n");
    cut(&mut world);
    assert!(world.sent.is_empty());
    replies(&mut world, &execute, Reply::Integer(1));
    let (number, outcome) = answered(&mut world);
    assert_eq!((number, without_time(outcome)), (5, executed(Reply::Integer(1))));
}

#[test]
fn without_the_rule_it_waits_on_for_a_datacenter_that_hears_nothing() {
    let _breaking = Breaking::only(Some(Rule::WaitAtHomeOnlyWhileHeard));
    let mut world = world();
    ask(&mut world, &pop(5));
    executing(&mut world, "BLPOP own:q 0");
    cut(&mut world);
    assert!(world.sent.is_empty());
}

#[test]
fn what_waits_for_an_earlier_process_of_the_origin_ends() {
    let mut world = world();
    ask(&mut world, &pop(5));
    executing(&mut world, "BLPOP own:q 0");
    far_says(&mut world, 0, Message::HomeReady { boot: FAR_BOOT + 1 });
    executing(&mut world, "causal withdraw");
}

#[test]
fn one_that_is_abandoned_before_it_has_begun_is_not_executed() {
    let mut world = world();
    let context = Context { time: LogicalTime::from_ms(WALL_MS), causes: causes(&[(1, 2, 5)]) };
    for (number, is_cut) in [(5, false), (6, true)] {
        ask(&mut world, &HomeRequest { context: context.clone(), ..pop(number) });
        assert!(matches!(world.next().message, Message::CheckDependencies { .. }));
        match is_cut {
            true => cut(&mut world),
            false => ask(&mut world, &abandoned(number)),
        }
        assert!(matches!(world.next().message, Message::CheckDependencies { .. }), "nobody asks any more");
        assert_eq!(answered(&mut world), (number, HomeOutcome::Withdrawn));
        assert_eq!(world.sessions.sessions.len(), 1);
        assert!(world.sent.is_empty());
    }
    // Its request was lost, or comes later.
    ask(&mut world, &abandoned(7));
    assert_eq!(answered(&mut world), (7, HomeOutcome::Withdrawn));
    ask(&mut world, &pop(7));
    assert_eq!(answered(&mut world), (7, HomeOutcome::Withdrawn));
}

#[test]
fn what_was_popped_for_one_that_is_abandoned_meanwhile_is_put_back() {
    let mut world = world();
    ask(&mut world, &pop(5));
    let execute = executing(&mut world, "BLPOP own:q 0");
    ask(&mut world, &abandoned(5));
    executing(&mut world, "causal withdraw");
    replies(&mut world, &execute, element());
    let back = executing(&mut world, "lpush own:q x");
    replies(&mut world, &back, Reply::Integer(1));
    assert_eq!(answered(&mut world), (5, HomeOutcome::Withdrawn));
    // The answer was under way.
    ask(&mut world, &pop(6));
    let execute = executing(&mut world, "BLPOP own:q 0");
    replies(&mut world, &execute, element());
    answered(&mut world);
    ask(&mut world, &abandoned(6));
    let back = executing(&mut world, "lpush own:q x");
    assert_eq!(answered(&mut world), (6, HomeOutcome::Withdrawn));
    replies(&mut world, &back, Reply::Integer(1));
    assert!(world.sent.is_empty());
    ask(&mut world, &abandoned(6));
    assert_eq!(answered(&mut world), (6, HomeOutcome::Withdrawn), "once");
    assert!(world.sent.is_empty());
    assert_eq!((world.sessions.sessions.len(), world.sessions.core.home_serving.figures()), (1, (0, 0)));
    world.sessions.core.check_invariants();
}

#[test]
fn without_the_rule_what_was_popped_for_nobody_is_lost() {
    let _breaking = Breaking::only(Some(Rule::PutBackWhatNobodyHears));
    let mut world = world();
    ask(&mut world, &pop(6));
    let execute = executing(&mut world, "BLPOP own:q 0");
    replies(&mut world, &execute, element());
    answered(&mut world);
    ask(&mut world, &abandoned(6));
    assert_eq!(answered(&mut world), (6, HomeOutcome::Withdrawn));
    assert!(world.sent.is_empty());
}
