//! WATCH: who is asked for what, and what EXEC says then.

use super::*;
use ensue_types::limits;

/// Watches these keys, whose owners answer with these numbers.
fn watch(world: &mut World, keys: &[&str], numbers: Vec<Vec<i64>>) {
    world.send(&[&format!("WATCH {}", keys.join(" "))]);
    for numbers in numbers {
        world.executed(vec![Reply::Array(numbers.into_iter().map(Reply::Integer).collect())]);
    }
    assert_eq!(world.received(), "+OK|");
}

/// The commands of the one part of the transaction that was sent.
fn transacts(envelope: &Envelope) -> Vec<String> {
    let Message::Transact { parts, .. } = &envelope.message else { panic!("{:?}", envelope.message) };
    assert_eq!(parts.len(), 1);
    parts[0].commands.iter().map(|(_, args)| words(args)).collect()
}

fn transacted(world: &mut World, envelope: &Envelope, replies: Vec<(u32, Reply)>) {
    let done = Message::Transacted { request: request(envelope), context: Context::default(), replies };
    world.answer(envelope, 1, done);
}

#[test]
fn what_is_watched_goes_to_the_owner_with_the_transaction() {
    let mut world = World::new();
    let (a, b) = (key(1, 0), key(1, 1));
    watch(&mut world, &[&a, &b], vec![vec![5, 6]]);
    world.send(&["MULTI", &format!("SET {a} 1"), &format!("GET {b}"), "EXEC"]);
    let envelope = world.next();
    let asked = [format!("watched {a} 5 {b} 6"), format!("SET {a} 1"), format!("GET {b}")];
    assert_eq!(transacts(&envelope), asked);
    transacted(&mut world, &envelope, vec![(0, Reply::Integer(1)), (1, Reply::OK), (2, bulk("v"))]);
    assert_eq!(world.received(), "+OK|+QUEUED|+QUEUED|*2|+OK|$1|v|");

    // They are watched no longer.
    world.send(&["MULTI", &format!("SET {a} 2"), "EXEC"]);
    let envelope = world.next();
    assert_eq!(transacts(&envelope), [format!("SET {a} 2")]);
}

#[test]
fn a_key_that_is_watched_again_counts_once_and_since_the_first_time() {
    let mut world = World::new();
    let a = key(1, 0);
    for number in 0..=limits::WATCHED_KEYS_MAX as i64 {
        watch(&mut world, &[&a], vec![vec![7 + number]]);
    }
    world.send(&["MULTI", &format!("SET {a} 1"), "EXEC"]);
    let envelope = world.next();
    assert_eq!(transacts(&envelope), [format!("watched {a} 7"), format!("SET {a} 1")]);
}

#[test]
fn exec_answers_nothing_if_something_has_changed() {
    for commands in [vec![], vec!["GET"], vec!["SET"]] {
        let mut world = World::new();
        let a = key(1, 0);
        watch(&mut world, &[&a], vec![vec![5]]);
        world.send(&["MULTI"]);
        for command in &commands {
            world.send(&[&format!("{command} {a}{}", if *command == "SET" { " 1" } else { "" })]);
        }
        world.send(&["EXEC"]);
        world.received();
        let envelope = world.next();
        assert_eq!(transacts(&envelope).len(), commands.len() + 1, "reads go with their check, too");
        let replies = (0..=commands.len() as u32).map(|piece| (piece, Reply::Nil));
        transacted(&mut world, &envelope, replies.collect());
        assert_eq!(world.received(), "*-1|");
    }
}

#[test]
fn an_exec_that_fails_before_it_begins_watches_no_longer() {
    let mut world = World::new();
    let a = key(1, 0);
    watch(&mut world, &[&a], vec![vec![5]]);
    assert_eq!(world.ask("CAUSAL SESSION cart"), "+OK|");
    let transaction = ["MULTI", &format!("SET {a} 1"), "EXEC"];
    world.send(&transaction);
    world.pass_ms(5_000);
    assert!(world.received().contains("-UNAVAILABLE"), "the context of its session did not come");
    world.send(&["CAUSAL SESSION"]);
    world.sent.clear();
    world.send(&transaction);
    let envelope = world.next();
    assert_eq!(transacts(&envelope), [format!("SET {a} 1")]);
}

#[test]
fn steps_of_their_own_come_after_the_check() {
    let mut world = World::new();
    let a = key(1, 0);
    watch(&mut world, &[&a], vec![vec![5]]);
    world.send(&["MULTI", "DBSIZE", &format!("SET {a} 1"), "EXEC"]);
    world.received();
    let envelope = world.next();
    assert_eq!(transacts(&envelope), [format!("watched {a} 5"), format!("SET {a} 1")]);
    assert!(world.sent.is_empty());
    transacted(&mut world, &envelope, vec![(0, Reply::Nil), (1, Reply::Nil)]);
    assert_eq!(world.received(), "*-1|");
    assert!(world.sent.is_empty(), "nothing of it is executed");

    watch(&mut world, &[&a], vec![vec![5]]);
    world.send(&["MULTI", "DBSIZE", "EXEC"]);
    world.received();
    let envelope = world.next();
    assert_eq!(transacts(&envelope), [format!("watched {a} 5")]);
    transacted(&mut world, &envelope, vec![(0, Reply::Integer(1))]);
    for _ in 0..PARTITIONS {
        world.executed(vec![Reply::Integer(2)]);
    }
    assert_eq!(world.received(), "*1|:8|");
}

#[test]
fn keys_of_several_partitions_and_of_another_keyspace_are_refused() {
    let mut world = World::new();
    let (a, b) = (key(1, 0), key(2, 0));
    let refused =
        "CROSSSLOT the keys that are watched and those of the transaction are of several partitions";
    watch(&mut world, &[&a], vec![vec![5]]);
    world.send(&["MULTI", &format!("SET {b} 1"), "EXEC"]);
    assert!(world.received().contains(refused));
    watch(&mut world, &[&a, &b], vec![vec![5], vec![6]]);
    world.send(&["MULTI", &format!("SET {a} 1"), "EXEC"]);
    assert!(world.received().contains(refused));
    watch(&mut world, &[&a], vec![vec![5]]);
    world.send(&["SELECT 1", "MULTI", &format!("SET {a} 1"), "EXEC"]);
    assert!(world.received().contains("-EXECABORT keys are watched in another keyspace"));
    assert!(world.sent.is_empty(), "nothing of them was executed");
}

#[test]
fn what_ends_watching() {
    for end in [&["UNWATCH"][..], &["MULTI", "DISCARD"], &["MULTI", "NONSENSE", "EXEC"], &["RESET"]] {
        let mut world = World::new();
        let a = key(1, 0);
        watch(&mut world, &[&a], vec![vec![5]]);
        world.send(end);
        world.send(&["MULTI", &format!("SET {a} 1"), "EXEC"]);
        let envelope = world.next();
        assert_eq!(transacts(&envelope), [format!("SET {a} 1")], "{end:?}");
    }
}

#[test]
fn an_owner_that_cannot_be_asked_is_an_error_and_watches_are_bounded() {
    let mut world = World::new();
    world.send(&[&format!("WATCH {}", key(1, 0))]);
    world.executed(vec![Reply::error("LOADING not yet")]);
    assert_eq!(world.received(), "-LOADING not yet|");
    let names: Vec<String> = (0..=limits::WATCHED_KEYS_MAX).map(|number| format!("k{number}")).collect();
    let many = names.join(" ");
    assert_eq!(world.ask(&format!("WATCH {many}")), "-ERR too many watched keys|");
}
