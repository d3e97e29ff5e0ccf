//! The home of keys: requests of other datacenters are executed once, when the past of their sessions is visible.

use super::homes::{FAR_BOOT, config_with_homes, far_says};
use super::*;
use ensue_types::{Breaking, KeyspaceId, Rule};
use ensue_wire::{HomeOutcome, HomeRequest};

pub(super) fn world() -> World {
    let mut world = World::with(config_with_homes());
    world.drain();
    far_says(&mut world, 0, Message::HomeReady { boot: FAR_BOOT });
    world
}

pub(super) fn request(number: u64, commands: &[&str]) -> HomeRequest {
    HomeRequest {
        boot: FAR_BOOT,
        number,
        home_boot: 3,
        below: 0,
        keyspace: KeyspaceId(0),
        context: Context::default(),
        transaction: commands.len() > 1,
        waits_ms: 0,
        abandoned: false,
        commands: commands.iter().map(|line| args(line)).collect(),
    }
}

pub(super) fn ask(world: &mut World, request: &HomeRequest) {
    far_says(world, 0, Message::HomeRequest(request.clone()));
}

/// The oldest message, an answer to a request.
pub(super) fn answered(world: &mut World) -> (u64, HomeOutcome) {
    let Message::HomeAnswer { boot: FAR_BOOT, number, outcome } = world.next().message else {
        panic!("an answer")
    };
    (number, outcome)
}

fn reply_of(outcome: &HomeOutcome) -> Reply {
    match outcome {
        HomeOutcome::Executed { reply, .. } | HomeOutcome::Refused { reply } => reply.clone(),
        HomeOutcome::Forgotten => panic!("nothing is known of it"),
        HomeOutcome::Withdrawn => panic!("nothing was executed"),
    }
}

#[test]
fn a_request_that_comes_again_is_executed_once() {
    let mut world = world();
    let incr = request(5, &["INCR own:n"]);
    ask(&mut world, &incr);
    let execute = world.next();
    assert_eq!(executes(&execute), ["INCR own:n"]);
    ask(&mut world, &incr);
    assert!(world.sent.is_empty(), "it is being executed");
    world.sent.push_front(execute);
    world.executed(vec![Reply::Integer(1)]);
    let (number, outcome) = answered(&mut world);
    assert_eq!((number, reply_of(&outcome)), (5, Reply::Integer(1)));
    assert_eq!(world.sessions.sessions.len(), 1, "its session has ended");
    ask(&mut world, &incr);
    assert_eq!(answered(&mut world), (5, outcome), "the answer that was kept");
    // The next request says that this answer has arrived.
    ask(&mut world, &HomeRequest { below: 6, ..request(6, &["INCR own:n"]) });
    world.executed(vec![Reply::Integer(2)]);
    answered(&mut world);
    ask(&mut world, &incr);
    assert!(world.sent.is_empty(), "nobody waits for it any more");
}

#[test]
fn without_the_rule_it_is_executed_twice() {
    let _breaking = Breaking::only(Some(Rule::ExecuteHomeRequestsOnce));
    let mut world = world();
    for _ in 0..2 {
        ask(&mut world, &request(5, &["INCR own:n"]));
        world.executed(vec![Reply::Integer(1)]);
        answered(&mut world);
    }
}

#[test]
fn what_was_sent_to_an_earlier_process_is_not_executed() {
    let mut world = world();
    ask(&mut world, &HomeRequest { home_boot: 2, ..request(5, &["INCR own:n"]) });
    assert_eq!(answered(&mut world), (5, HomeOutcome::Forgotten));
    ask(&mut world, &HomeRequest { boot: FAR_BOOT - 1, ..request(6, &["INCR own:n"]) });
    assert!(world.sent.is_empty(), "its origin has been started anew");
}

#[test]
fn it_waits_for_the_past_of_its_session() {
    let mut world = world();
    let context = Context { time: LogicalTime::from_ms(WALL_MS), causes: causes(&[(1, 2, 5)]) };
    ask(&mut world, &HomeRequest { context: context.clone(), ..request(5, &["INCR own:n"]) });
    let check = world.next();
    let Message::CheckDependencies { check: number, .. } = check.message else { panic!("a question") };
    assert!(world.sent.is_empty());
    world.answer(&check, 1, Message::DependenciesMet { check: number, unrecoverable: Vec::new() });
    let execute = world.next();
    let Message::Execute { context: past, .. } = &execute.message else { panic!("the command") };
    assert_eq!(past.causes, context.causes);
    let after = Context { time: LogicalTime(77), causes: causes(&[(0, 1, 8)]) };
    let done = Message::Executed {
        request: super::request(&execute),
        context: after.clone(),
        replies: vec![Reply::Integer(1)],
    };
    world.answer(&execute, 77, done);
    let (_, HomeOutcome::Executed { context, .. }) = answered(&mut world) else { panic!("it was executed") };
    assert_eq!(context.causes, after.causes);
}

#[test]
fn without_the_rule_it_does_not_wait() {
    let _breaking = Breaking::only(Some(Rule::WaitForThePastAtHome));
    let mut world = world();
    let context = Context { time: LogicalTime::from_ms(WALL_MS), causes: causes(&[(1, 2, 5)]) };
    ask(&mut world, &HomeRequest { context, ..request(5, &["INCR own:n"]) });
    assert_eq!(executes(&world.next()), ["INCR own:n"]);
}

#[test]
fn a_past_that_does_not_come_is_an_error_and_nothing_happens() {
    let mut world = world();
    let context = Context { time: LogicalTime::from_ms(WALL_MS), causes: causes(&[(1, 2, 5)]) };
    ask(&mut world, &HomeRequest { context, ..request(5, &["INCR own:n", "INCR own:n"]) });
    world.sent.clear();
    world.pass_ms(2_000);
    let (_, counts) = (world.next(), world.next());
    let Message::CountReplicas { request, .. } = counts.message else { panic!("a look at what is so now") };
    world.answer(&counts, 1, Message::ReplicasReached { request, datacenters: 0, here: false });
    let withdrawn = world.next();
    assert!(matches!(withdrawn.message, Message::CheckDependencies { .. }));
    let (_, outcome) = answered(&mut world);
    assert!(matches!(reply_of(&outcome), Reply::Error(text) if text.starts_with("NOTYET dc1 ")));
    assert_eq!(world.sessions.sessions.len(), 1);
}

#[test]
fn a_transaction_is_executed_as_one() {
    let mut world = world();
    ask(&mut world, &request(5, &["SET own:{a} 1", "INCR own:{a}"]));
    let transact = world.next();
    let Message::Transact { request, parts, .. } = &transact.message else {
        panic!("{:?}", transact.message)
    };
    assert_eq!(parts[0].commands.len(), 2);
    let replies = vec![(0, Reply::OK), (1, Reply::Integer(2))];
    let done = Message::Transacted { request: *request, context: Context::default(), replies };
    world.answer(&transact, 1, done);
    let (_, outcome) = answered(&mut world);
    assert_eq!(reply_of(&outcome), Reply::Array(vec![Reply::OK, Reply::Integer(2)]));
}

#[test]
fn keys_with_another_home_or_none_are_refused() {
    let mut world = world();
    for (number, command) in [(1, "INCR lock:n"), (2, "INCR other")] {
        ask(&mut world, &request(number, &[command]));
        let (_, outcome) = answered(&mut world);
        assert!(
            matches!(reply_of(&outcome), Reply::Error(text) if text.starts_with("HOMEAWAY ")),
            "{command}"
        );
    }
    assert_eq!(world.sessions.core.home_serving.figures().0, 0);
}

#[test]
fn another_process_of_the_origin_begins_anew() {
    let mut world = world();
    ask(&mut world, &request(5, &["INCR own:n"]));
    let execute = world.next();
    far_says(&mut world, 0, Message::HomeReady { boot: FAR_BOOT + 1 });
    world.sent.push_front(execute);
    world.executed(vec![Reply::Integer(1)]);
    answered(&mut world);
    assert_eq!(world.sessions.core.home_serving.figures(), (0, 0), "nothing is kept for who is gone");
    ask(&mut world, &HomeRequest { boot: FAR_BOOT + 1, ..request(5, &["INCR own:n"]) });
    assert_eq!(executes(&world.next()), ["INCR own:n"], "the number is another one's");
}

#[test]
fn a_session_elsewhere_watches_by_numbers() {
    let mut world = world();
    ask(&mut world, &request(5, &["WATCH own:{a}"]));
    assert_eq!(executes(world.sent.front().expect("sent")), ["WATCH own:{a}"]);
    let numbers = Reply::Array(vec![Reply::Integer(7)]);
    world.executed(vec![numbers.clone()]);
    assert_eq!(reply_of(&answered(&mut world).1), numbers);
    assert_eq!(world.sessions.sessions.len(), 1, "nothing is kept for it");
    for stands in [true, false] {
        ask(&mut world, &request(6 + u64::from(stands), &["watched own:{a} 7", "SET own:{a} 1"]));
        let transact = world.next();
        let Message::Transact { request, parts, .. } = &transact.message else {
            panic!("{:?}", transact.message)
        };
        let commands: Vec<String> = parts[0].commands.iter().map(|(_, args)| words(args)).collect();
        assert_eq!(commands, ["watched own:{a} 7", "SET own:{a} 1"]);
        let reply = if stands { Reply::OK } else { Reply::Nil };
        let replies = vec![(0, Reply::Integer(i64::from(stands))), (1, reply)];
        let done = Message::Transacted { request: *request, context: Context::default(), replies };
        world.answer(&transact, 1, done);
        let expected = if stands { Reply::Array(vec![Reply::OK]) } else { Reply::NilArray };
        assert_eq!(reply_of(&answered(&mut world).1), expected);
    }
    ask(&mut world, &request(9, &["watched lock:a 7", "SET own:a 1"]));
    assert!(matches!(reply_of(&answered(&mut world).1), Reply::Error(text) if text.starts_with("HOMEAWAY ")));
}
