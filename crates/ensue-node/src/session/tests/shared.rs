//! A context that connections share by name.

use super::*;
use ensue_types::{Breaking, Rule};
use ensue_wire::ContextName;

fn joined() -> World {
    let mut world = World::new();
    assert_eq!(world.ask("CAUSAL SESSION cart"), "+OK|");
    world
}

fn fetch(world: &mut World, operations: &[(u8, u16, u64)]) {
    fetch_since(world, LogicalTime(1), operations);
}

/// The partition that keeps the name has been there since then.
fn fetch_since(world: &mut World, since: LogicalTime, operations: &[(u8, u16, u64)]) {
    let envelope = world.next();
    let Message::ContextFetch { context: ContextName { name, .. }, .. } = &envelope.message else {
        panic!("{:?}", envelope.message)
    };
    assert_eq!(name, "cart");
    assert_eq!(partition(&envelope), partition_of(b"cart", PARTITIONS).0);
    let context = Context { time: LogicalTime(40), causes: causes(operations) };
    world.answer(&envelope, 41, Message::ContextFetched { request: request(&envelope), since, context });
}

#[test]
fn a_step_fetches_before_and_merges_after() {
    let mut world = joined();
    let a = key(0, 0);
    world.send(&[&format!("SET {a} 1"), &format!("GET {a}"), "CAUSAL SESSION", &format!("GET {a}")]);
    fetch(&mut world, &[(1, 1, 1)]);
    let envelope = world.next();
    match &envelope.message {
        Message::Execute { context, commands, .. } => {
            assert_eq!((context.time, &context.causes), (LogicalTime(41), &causes(&[(1, 1, 1)])));
            assert_eq!(commands.len(), 2);
        }
        other => panic!("{other:?}"),
    }
    let context = Context { time: LogicalTime(50), causes: causes(&[(0, 0, 9)]) };
    let replies = vec![Reply::OK, bulk("1")];
    world.answer(
        &envelope,
        50,
        Message::Executed { request: request(&envelope), context: context.clone(), replies },
    );
    assert_eq!(world.received(), "", "not before the others can see it");
    let envelope = world.next();
    match &envelope.message {
        Message::ContextMerge { context: merged, .. } => assert_eq!(*merged, context),
        other => panic!("{other:?}"),
    }
    world.answer(&envelope, 1, Message::ContextMerged { request: request(&envelope) });
    assert_eq!(world.received(), "+OK|$1|1|+OK|");
    world.executed(vec![bulk("2")]);
    assert_eq!(world.received(), "$1|2|", "left: no fetch and no merge");
}

#[test]
fn without_the_rule_what_the_name_stands_for_is_not_taken_over() {
    let _breaking = Breaking::only(Some(Rule::NamesBringTheirPast));
    let mut world = joined();
    world.send(&[&format!("GET {}", key(0, 0))]);
    fetch(&mut world, &[(1, 1, 1)]);
    match world.next().message {
        Message::Execute { context, .. } => assert_ne!(context.causes, causes(&[(1, 1, 1)])),
        other => panic!("{other:?}"),
    }
}

/// What others have done under the name may be missing: that is an error once, and nothing is executed.
#[test]
fn a_past_that_was_forgotten_is_an_error_once() {
    let mut world = joined();
    let a = key(0, 0);
    let step = |world: &mut World, since, answer: &str| {
        world.send(&[&format!("GET {a}")]);
        fetch_since(world, LogicalTime(since), &[(1, 1, 1)]);
        if answer.is_empty() {
            let envelope = world.next();
            let (request, context) = (request(&envelope), Context::default());
            world.answer(&envelope, 50, Message::Executed { request, context, replies: vec![Reply::Nil] });
            let envelope = world.next();
            world.answer(&envelope, 1, Message::ContextMerged { request: self::request(&envelope) });
            assert_eq!(world.received(), "$-1|");
        } else {
            let said = world.received();
            assert!(said.starts_with(answer), "{said}");
        }
    };
    step(&mut world, 7, "");
    step(&mut world, 7, "");
    step(&mut world, 9, "-FORGOTTEN the partition that keeps the causal session 'cart' was started anew");
    assert_eq!(world.ask("CAUSAL SESSION cart"), "+OK|", "it is joined already");
    step(&mut world, 9, "");
    assert_eq!(world.ask("CAUSAL SESSION"), "+OK|");
    assert_eq!(world.ask("CAUSAL SESSION cart"), "+OK|");
    step(&mut world, 12, "");
}

#[test]
fn a_token_and_an_exec_see_the_shared_past() {
    let mut world = joined();
    world.send(&["CAUSAL TOKEN"]);
    fetch(&mut world, &[(1, 1, 1)]);
    assert!(world.received().starts_with('$'));
    let a = key(0, 0);
    world.send(&["PING", "MULTI", &format!("SET {a} 1"), "EXEC"]);
    assert_eq!(world.received(), "+PONG|+OK|+QUEUED|");
    fetch(&mut world, &[(1, 1, 2)]);
    assert!(matches!(world.next().message, Message::Transact { .. }));
}

#[test]
fn what_cannot_be_shared_is_not_promised() {
    let mut world = joined();
    let a = key(0, 0);
    world.send(&[&format!("GET {a}"), &format!("SET {a} 1")]);
    world.pass_ms(5_000);
    let partition_name = format!("{} of dc1", partition_of(b"cart", PARTITIONS));
    let unavailable = format!("-UNAVAILABLE partition {partition_name} did not answer in time|");
    assert_eq!(world.received(), unavailable.repeat(2), "nothing was done yet");
    world.next();

    world.send(&[&format!("GET {a}"), &format!("SET {a} 1")]);
    fetch(&mut world, &[]);
    world.executed(vec![Reply::Nil, Reply::OK]);
    world.pass_ms(5_000);
    let received = world.received();
    assert!(received.starts_with(&unavailable) && received.contains("|-UNKNOWN partition "), "{received}");
}

#[test]
fn a_wait_is_about_the_shared_past() {
    let command = |line: &str| -> Args { line.split(' ').map(|word| Bytes::from(word.to_owned())).collect() };
    for (line, is_about_it) in [("WAIT 1 0", true), ("CAUSAL WAIT 2", true), ("PING", false)] {
        let uses = crate::session::causal::shared::uses_context(&command(line), false);
        assert_eq!(uses, is_about_it, "{line}");
    }
}
