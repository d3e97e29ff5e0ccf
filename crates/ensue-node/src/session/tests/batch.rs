//! Runs of neighbouring commands for one partition.

use super::*;

#[test]
fn neighbours_for_one_partition_travel_together_and_keep_their_order() {
    let mut world = World::new();
    let (a, b, c) = (key(0, 0), key(0, 1), key(1, 0));
    world.send(&[
        &format!("SET {a} 1"),
        &format!("get {b}"),
        &format!("MGET {a} {b}"),
        &format!("GET {c}"),
        "PING",
    ]);
    assert_eq!(world.sent.len(), 1, "the other partition waits");
    let envelope = world.next();
    assert_eq!(partition(&envelope), 0);
    assert_eq!(executes(&envelope), [format!("SET {a} 1"), format!("get {b}"), format!("MGET {a} {b}")]);
    let context = Context { time: LogicalTime(50), causes: causes(&[(0, 0, 9)]) };
    let replies = vec![Reply::OK, Reply::Nil, Reply::Array(vec![bulk("1"), Reply::Nil])];
    let done = Message::Executed { request: request(&envelope), context: context.clone(), replies };
    world.answer(&envelope, 60, done);
    assert_eq!(world.received(), "+OK|$-1|*2|$1|1|$-1|");
    assert_eq!(world.answered, 3);

    let envelope = world.next();
    assert_eq!((partition(&envelope), envelope.time), (1, LogicalTime(60)), "the highest time seen");
    match &envelope.message {
        Message::Execute { context: sent, .. } => {
            assert_eq!((sent.time, &sent.causes), (LogicalTime(60), &context.causes));
        }
        other => panic!("{other:?}"),
    }
    let done = Message::Executed {
        request: request(&envelope),
        context: Context::default(),
        replies: vec![bulk("x")],
    };
    world.answer(&envelope, 1, done);
    assert_eq!(world.received(), "$1|x|+PONG|", "what follows leaves with it");
    assert_eq!(world.answered, 5);
}

#[test]
fn a_batch_is_bounded() {
    let mut world = World::new();
    let command = format!("GET {}", key(0, 0));
    world.send(&vec![command.as_str(); 600]);
    let envelope = world.next();
    assert_eq!(executes(&envelope).len(), 512);
    let done = Message::Executed {
        request: request(&envelope),
        context: Context::default(),
        replies: vec![Reply::Nil; 512],
    };
    world.answer(&envelope, 1, done);
    assert_eq!(world.answered, 512);
    assert_eq!(executes(&world.next()).len(), 88);
}

#[test]
fn a_batch_is_bounded_in_bytes_and_one_long_command_travels_alone() {
    let mut world = World::new();
    let set = |bytes: usize| format!("SET {} {}", key(0, 0), "x".repeat(bytes));
    world.send(&[&set(5 << 20), &set(3 << 20), "PING", &set(3 << 20), &set(3 << 20)]);
    for commands in [1, 1, 1, 1] {
        assert_eq!(executes(&world.sent[0]).len(), commands);
        world.executed(vec![Reply::OK; commands]);
    }
    assert_eq!(world.received(), "+OK|+OK|+PONG|+OK|+OK|");
}

#[test]
fn a_faulty_command_is_answered_at_its_place() {
    let mut world = World::new();
    let a = key(0, 0);
    world.send(&[&format!("GET {a}"), "GET", "nonsense a b", &format!("GET {a}")]);
    world.executed(vec![Reply::Integer(1)]);
    assert_eq!(
        world.received(),
        ":1|-ERR wrong number of arguments for 'get' command|\
         -ERR unknown command 'nonsense', with args beginning with: 'a' 'b' |"
    );
    world.executed(vec![Reply::Integer(2)]);
    assert_eq!(world.received(), ":2|");
}

#[test]
fn keyspaces_have_contexts_of_their_own() {
    let mut world = World::new();
    let a = key(0, 0);
    world.send(&[&format!("GET {a}"), "SELECT 1", &format!("GET {a}")]);
    let envelope = world.next();
    let context = Context { time: LogicalTime(9), causes: causes(&[(0, 0, 1)]) };
    let done = Message::Executed { request: request(&envelope), context, replies: vec![Reply::Nil] };
    world.answer(&envelope, 1, done);
    match world.next().message {
        Message::Execute { keyspace, context, .. } => {
            assert_eq!((keyspace.0, context), (1, Context::default()));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_that_is_too_short_does_not_shift_the_next_ones() {
    let mut world = World::new();
    let a = key(0, 0);
    world.send(&[&format!("GET {a}"), &format!("GET {a}")]);
    world.executed(vec![Reply::Integer(1)]);
    assert_eq!(world.received(), ":1|-ERR internal error: an owner left a command unanswered|");
}

#[test]
fn help_needs_no_owner() {
    let mut world = World::new();
    for command in ["OBJECT HELP", "MEMORY HELP", "XGROUP HELP", "XINFO HELP"] {
        world.send(&["MULTI", command, "EXEC", command]);
        assert!(world.sent.is_empty(), "{command}");
        let received = world.received();
        let (queued, answers) = received.split_at("+OK|+QUEUED|*1|".len());
        assert_eq!(queued, "+OK|+QUEUED|*1|", "{command}");
        assert_eq!(answers[..answers.len() / 2], answers[answers.len() / 2..], "{command}");
        let word = command.split(' ').next().unwrap_or_default();
        assert!(answers.contains(&format!("|+{word} <subcommand>")), "{answers}");
    }
}
