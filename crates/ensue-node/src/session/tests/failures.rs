//! Partitions that do not answer, cannot, or answer too late.

use super::*;

fn batch(world: &mut World) -> Envelope {
    let a = key(2, 0);
    world.send(&[&format!("GET {a}"), &format!("SET {a} 1")]);
    world.next()
}

#[test]
fn a_timeout_tells_reads_from_writes_and_the_next_commands_go_on() {
    let mut world = World::new();
    let late = batch(&mut world);
    world.send(&[&format!("GET {}", key(1, 0))]);
    assert_eq!(world.sessions.next_timer(), Some(world.now.monotonic_us + 5_000_000));
    world.pass_ms(4_999);
    assert_eq!(world.received(), "");
    world.pass_ms(1);
    assert_eq!(
        world.received(),
        "-UNAVAILABLE partition p2 of dc1 did not answer in time|\
         -UNKNOWN partition p2 of dc1 did not answer in time: the write may or may not have been made|"
    );
    assert_eq!(world.answered, 2);
    let done = Message::Executed {
        request: request(&late),
        context: Context { time: LogicalTime(9), causes: causes(&[(0, 2, 2)]) },
        replies: vec![Reply::Nil, Reply::OK],
    };
    world.answer(&late, 1, done);
    assert_eq!(world.received(), "", "a late answer is dropped");
    world.executed(vec![bulk("v")]);
    assert_eq!(world.received(), "$1|v|");
}

#[test]
fn timers_end_when_nothing_is_outstanding() {
    let mut world = World::new();
    for _ in 0..3 {
        let envelope = batch(&mut world);
        let replies = vec![Reply::Nil, Reply::OK];
        let done = Message::Executed { request: request(&envelope), context: Context::default(), replies };
        world.answer(&envelope, 1, done);
        world.pass_ms(1);
    }
    world.pass_ms(5_000);
    assert_eq!(world.sessions.next_timer(), None);
    assert!(!world.received().contains("UNKNOWN"));
}

#[test]
fn a_broken_link_fails_what_its_core_was_asked() {
    let mut world = World::new();
    batch(&mut world);
    world.sessions.on_link_down(world.now, CoreId(0));
    world.drain();
    assert_eq!(world.received(), "", "another core");
    world.sessions.on_link_down(world.now, CoreId(1));
    world.drain();
    let received = world.received();
    assert!(received.starts_with("-UNAVAILABLE partition p2 of dc1 became unreachable"), "{received}");
    assert!(received.contains("|-UNKNOWN partition p2 of dc1 became unreachable"), "{received}");
}

#[test]
fn a_refusal_is_given_to_each_command() {
    let mut world = World::new();
    let envelope = batch(&mut world);
    let reply = Reply::error("LOADING the log is being read");
    world.answer(&envelope, 1, Message::Refused { request: request(&envelope), reply });
    assert_eq!(world.received(), "-LOADING the log is being read|-LOADING the log is being read|");
}

#[test]
fn a_read_transaction_fails_whole_and_a_write_transaction_is_unknown() {
    let mut world = World::new();
    world.send(&[&format!("MGET {} {}", key(0, 0), key(3, 0))]);
    let (zero, _) = (world.next(), world.next());
    world.answer(&zero, 5, first(&zero, 1, 5, vec![Reply::Array(vec![Reply::Nil])]));
    world.pass_ms(5_000);
    assert_eq!(world.received(), "-UNAVAILABLE partition p3 of dc1 did not answer in time|");
    world.send(&["MULTI", &format!("SET {} 1", key(3, 0)), &format!("GET {}", key(0, 0)), "EXEC"]);
    world.received();
    world.pass_ms(5_000);
    assert!(world.received().starts_with("-UNKNOWN partition p3 of dc1 did not answer in time"));
    assert_eq!(world.answered, 5);
}

#[test]
fn answers_to_an_earlier_run_of_the_process_are_dropped() {
    let mut world = World::new();
    let envelope = batch(&mut world);
    let request = RequestId { boot: 2, ..request(&envelope) };
    let replies = vec![Reply::Nil, Reply::OK];
    world.answer(&envelope, 1, Message::Executed { request, context: Context::default(), replies });
    assert_eq!(world.received(), "");
}

#[test]
fn an_answer_of_another_kind_is_dropped_and_told() {
    let mut world = World::new();
    let envelope = batch(&mut world);
    let request = request(&envelope);
    world.answer(&envelope, 1, Message::ContextMerged { request });
    assert_eq!(world.received(), "");
    assert!(matches!(world.traces[..], [Trace::Refused { .. }]));
    let replies = vec![Reply::Nil, Reply::OK];
    world.answer(&envelope, 1, Message::Executed { request, context: Context::default(), replies });
    assert_eq!(world.received(), "$-1|+OK|");
}

#[test]
fn what_a_client_asked_before_it_left_goes_on() {
    let mut world = World::new();
    let envelope = batch(&mut world);
    world.send(&[&format!("SET {} 2", key(1, 0))]);
    world.sessions.on_gone(world.now, CLIENT);
    let replies = vec![Reply::Nil, Reply::OK];
    let done = Message::Executed { request: request(&envelope), context: Context::default(), replies };
    world.answer(&envelope, 1, done);
    assert_eq!(executes(&world.sent[0]), [format!("SET {} 2", key(1, 0))]);
    world.executed(vec![Reply::OK]);
    assert_eq!((world.received().as_str(), world.sessions.next_timer()), ("", None));
    assert!(world.sessions.sessions.is_empty());
}
