//! Pops that wait at their owner: when they are let go, and that nothing is lost with a client.

use super::*;

fn pop(world: &mut World, line: &str) -> Envelope {
    world.send(&[line]);
    let envelope = world.next();
    assert_eq!(executes(&envelope), [line]);
    envelope
}

fn popped(world: &mut World, envelope: &Envelope, reply: Reply) {
    let request = request(envelope);
    world.answer(
        envelope,
        1,
        Message::Executed { request, context: Context::default(), replies: vec![reply] },
    );
}

fn element(key: &str) -> Reply {
    Reply::Array(vec![bulk(key), bulk("x")])
}

#[test]
fn a_pop_that_may_wait_travels_alone() {
    let mut world = World::new();
    let key = key(2, 0);
    world.send(&[&format!("SET {key} 1"), &format!("BLPOP {key} 0"), &format!("GET {key}")]);
    assert_eq!(executes(world.sent.front().expect("sent")), [format!("SET {key} 1")]);
    world.executed(vec![Reply::OK]);
    assert_eq!(world.received(), "+OK|");
    let envelope = world.next();
    assert_eq!(executes(&envelope), [format!("BLPOP {key} 0")]);
    world.pass_ms(1_000_000);
    assert!(world.sent.is_empty(), "it waits for ever");
    popped(&mut world, &envelope, element(&key));
    assert_eq!(world.received(), format!("*2|${}|{key}|$1|x|", key.len()));
    assert_eq!(executes(&world.next()), [format!("GET {key}")]);
}

#[test]
fn when_its_time_is_over_it_is_let_go_and_its_answer_still_counts() {
    let mut world = World::new();
    let key = key(2, 0);
    for late in [true, false] {
        let envelope = pop(&mut world, &format!("BLPOP {key} 0.5"));
        world.pass_ms(499);
        assert!(world.sent.is_empty());
        world.pass_ms(1);
        let withdrawal = world.next();
        assert_eq!(executes(&withdrawal), ["causal withdraw"]);
        assert_eq!(world.received(), "");
        // It may have popped something before it was told.
        let reply = if late { element(&key) } else { Reply::NilArray };
        popped(&mut world, &envelope, reply);
        let expected = if late { format!("*2|${}|{key}|$1|x|", key.len()) } else { "*-1|".to_owned() };
        assert_eq!(world.received(), expected);
        popped(&mut world, &withdrawal, Reply::OK);
        assert_eq!(world.received(), "");
    }
}

#[test]
fn a_pop_that_is_not_found_is_withdrawn_again() {
    let mut world = World::new();
    let key = key(2, 0);
    pop(&mut world, &format!("BLPOP {key} 0.5"));
    world.pass_ms(500);
    for _ in 0..10 {
        let withdrawal = world.next();
        popped(&mut world, &withdrawal, Reply::OK);
        assert_eq!(world.received(), "");
        world.pass_ms(60_000);
    }
    assert!(world.received().starts_with("-UNKNOWN "));
}

#[test]
fn what_was_popped_for_a_client_that_is_gone_is_put_back_where_it_was() {
    let cases = [
        ("BLPOP k 0", Reply::Array(vec![bulk("k"), bulk("x")]), Some("lpush k x")),
        ("BRPOP k 0", Reply::Array(vec![bulk("k"), bulk("x")]), Some("rpush k x")),
        (
            "BLMPOP 0 1 k LEFT COUNT 2",
            Reply::Array(vec![bulk("k"), Reply::Array(vec![bulk("x"), bulk("y")])]),
            Some("lpush k y x"),
        ),
        ("BZPOPMIN k 0", Reply::Array(vec![bulk("k"), bulk("m"), Reply::Double(1.5)]), Some("zadd k 1.5 m")),
        (
            "BZMPOP 0 1 k MAX",
            Reply::Array(vec![
                bulk("k"),
                Reply::Array(vec![Reply::Array(vec![bulk("m"), Reply::Double(2.0)])]),
            ]),
            Some("zadd k 2 m"),
        ),
        ("BLMOVE k k LEFT RIGHT 0", bulk("x"), None),
        ("BLPOP k 0", Reply::NilArray, None),
    ];
    for (line, reply, put_back) in cases {
        let mut world = World::new();
        let envelope = pop(&mut world, line);
        world.leave();
        assert_eq!(executes(&world.next()), ["causal withdraw"]);
        popped(&mut world, &envelope, reply);
        match put_back {
            Some(words) => assert_eq!(executes(&world.next()), [words], "{line}"),
            None => assert!(world.sent.is_empty(), "{line}"),
        }
    }
}

#[test]
fn nothing_waits_for_a_client_that_sends_nothing_any_more() {
    let mut world = World::new();
    let envelope = pop(&mut world, "BLPOP k 0");
    world.send(&["BLPOP k 0"]);
    world.sessions.on_ended(world.now, CLIENT);
    world.drain();
    assert_eq!(executes(&world.next()), ["causal withdraw"]);
    popped(&mut world, &envelope, element("k"));
    let put_back = world.next();
    assert_eq!(executes(&put_back), ["lpush k x"]);
    popped(&mut world, &put_back, Reply::Integer(1));
    assert_eq!(world.received(), "*-1|", "it may still read, and does not wait");
    let (next, withdrawal) = (world.next(), world.next());
    assert_eq!(
        (executes(&next), executes(&withdrawal)),
        (vec!["BLPOP k 0".into()], vec!["causal withdraw".into()])
    );
}

#[test]
fn nothing_waits_for_a_client_that_is_sent_away() {
    let mut world = World::new();
    let envelope = pop(&mut world, "BLPOP k 0");
    world.sessions.with(world.now, CLIENT, |turn| turn.close());
    world.drain();
    assert!(world.disconnected);
    assert_eq!(executes(&world.next()), ["causal withdraw"], "its connection may stay until it has read all");
    popped(&mut world, &envelope, element("k"));
    assert_eq!(executes(&world.next()), ["lpush k x"]);
}

#[test]
fn keys_of_several_partitions_are_refused() {
    let mut world = World::new();
    let answer = world.ask(&format!("BLPOP {} {} 0", key(0, 0), key(1, 0)));
    assert!(answer.starts_with("-CROSSSLOT "), "{answer}");
}
