//! Scripts at their session: where they go, and that every partition knows their text before they are executed.

use super::*;

/// A script that all partitions are told of, which they say they know.
fn loads(world: &mut World) {
    for partition_number in 0..PARTITIONS {
        let envelope = world.next();
        assert_eq!(partition(&envelope), partition_number);
        assert_eq!(executes(&envelope), ["script load return-1"]);
        let request = request(&envelope);
        let message = Message::Executed { request, context: Context::default(), replies: vec![bulk("sha")] };
        world.answer(&envelope, 1, message);
    }
}

#[test]
fn the_text_of_a_script_is_told_to_all_partitions_once_before_it_is_executed() {
    let mut world = World::new();
    let eval = format!("EVAL return-1 1 {}", key(2, 0));
    world.send(&[&eval]);
    loads(&mut world);
    assert_eq!(executes(&world.sent[0]), [format!("EVAL return-1 1 {}", key(2, 0))]);
    world.executed(vec![Reply::Integer(1)]);
    assert_eq!(world.received(), ":1|");

    // From now on it is a command like others, and neighbours go together.
    let get = format!("GET {}", key(2, 0));
    world.send(&[&eval, &get, &format!("EVALSHA abc 1 {}", key(2, 1))]);
    let envelope = world.next();
    assert_eq!(partition(&envelope), 2);
    assert_eq!(executes(&envelope).len(), 3);
    assert!(world.sent.is_empty());
}

#[test]
fn after_a_flush_or_a_new_link_all_partitions_are_told_again() {
    let mut world = World::new();
    let eval = format!("EVAL return-1 1 {}", key(0, 0));
    let tell = |world: &mut World| {
        world.send(&[&eval]);
        loads(world);
        world.executed(vec![Reply::Integer(1)]);
        world.received();
    };
    tell(&mut world);
    world.sessions.forget_scripts();
    tell(&mut world);
    world.sessions.on_link_up(CoreId(1));
    tell(&mut world);
}

#[test]
fn a_script_is_executed_although_not_every_partition_can_be_told() {
    let mut world = World::new();
    world.sessions.on_link_down(world.now, CoreId(1));
    world.send(&[&format!("EVAL return-1 1 {}", key(0, 0))]);
    let evaluates = |envelope: &Envelope| executes(envelope)[0].starts_with("EVAL ");
    assert!(world.sent.iter().any(evaluates), "{:?}", world.sent);
}

#[test]
fn a_script_goes_to_the_one_owner_of_its_keys() {
    let mut world = World::new();
    let several = world.ask(&format!("EVALSHA abc 2 {} {}", key(0, 0), key(1, 0)));
    assert!(several.starts_with("-CROSSSLOT "), "{several}");
    assert_eq!(world.ask("EVALSHA abc 2 a"), "-ERR Number of keys can't be greater than number of args|");
    assert_eq!(world.ask("EVALSHA abc -1"), "-ERR Number of keys can't be negative|");
    assert_eq!(world.ask("EVALSHA abc x"), "-ERR value is not an integer or out of range|");
    world.send(&[&format!("EVALSHA abc 2 {} {}", key(3, 0), key(3, 1))]);
    assert_eq!(partition(&world.next()), 3);
    let mut world = World::new();
    world.send(&["EVALSHA abc 0 x"]);
    assert_eq!(partition(&world.next()), 0);
}

#[test]
fn a_multi_with_a_script_has_keys_of_one_partition() {
    let mut world = World::new();
    let (a, b) = (key(0, 0), key(1, 0));
    world.send(&["MULTI", &format!("EVALSHA abc 1 {a}"), &format!("SET {b} 1"), "EXEC"]);
    let received = world.received();
    assert!(received.starts_with("+OK|+QUEUED|+QUEUED|-CROSSSLOT "), "{received}");
    assert!(world.sent.is_empty());
    world.send(&["MULTI", &format!("EVALSHA abc 1 {a}"), &format!("GET {a}"), "EXEC"]);
    assert!(matches!(&world.next().message, Message::Transact { parts, .. } if parts.len() == 1));
}

#[test]
fn the_text_of_a_script_inside_multi_is_told_before_it_is_queued() {
    let mut world = World::new();
    world.send(&["MULTI", &format!("EVAL return-1 1 {}", key(0, 0)), "DISCARD"]);
    loads(&mut world);
    assert_eq!(world.received(), "+OK|+QUEUED|+OK|");
    assert!(world.sent.is_empty());
}

/// What clients are answered to a command that every partition answers, from what these answer.
fn of_all(command: &str, answers: [Reply; PARTITIONS as usize]) -> String {
    let mut world = World::new();
    world.send(&[command]);
    answers.into_iter().for_each(|answer| world.executed(vec![answer]));
    world.received()
}

#[test]
fn a_script_is_killed_wherever_it_runs() {
    let idle = || Reply::error("NOTBUSY none");
    let written = Reply::error("UNKILLABLE it has written");
    assert_eq!(of_all("SCRIPT KILL", [idle(), idle(), idle(), idle()]), "-NOTBUSY none|");
    assert_eq!(of_all("SCRIPT KILL", [idle(), idle(), Reply::OK, idle()]), "+OK|");
    assert_eq!(of_all("SCRIPT KILL", [written.clone(), Reply::OK, idle(), idle()]), "+OK|");
    assert_eq!(of_all("FUNCTION KILL", [idle(), idle(), idle(), written]), "-UNKILLABLE it has written|");
    let stats =
        |running: Reply| Reply::Map(vec![(bulk("running_script"), running), (bulk("engines"), Reply::Nil)]);
    let none = || stats(Reply::Nil);
    let told = of_all("FUNCTION STATS", [none(), none(), stats(bulk("f")), none()]);
    assert_eq!(told, "*4|$14|running_script|$1|f|$7|engines|$-1|");
    assert_eq!(of_all("FUNCTION STATS", [none(), Reply::error("BUSY x"), none(), none()]), "-BUSY x|");
}

/// One of them was restarted, or has another owner.
#[test]
fn libraries_that_not_all_partitions_know_are_told_of() {
    let there = || Reply::error("ERR Library 'lib' already exists");
    let missing = || Reply::error("ERR Library not found");
    let load = "FUNCTION LOAD #!lua";
    assert_eq!(of_all(load, [bulk("lib"), bulk("lib"), bulk("lib"), bulk("lib")]), "$3|lib|");
    assert_eq!(of_all(load, [there(), there(), there(), there()]), "-ERR Library 'lib' already exists|");
    let some = of_all(load, [there(), bulk("lib"), there(), there()]);
    assert!(some.contains("others did not") && some.contains("REPLACE"), "{some}");
    let silent = Reply::error("UNAVAILABLE it is silent");
    assert_eq!(of_all(load, [bulk("lib"), silent, there(), there()]), "-UNAVAILABLE it is silent|");
    assert_eq!(of_all("FUNCTION DELETE lib", [missing(), Reply::OK, missing(), Reply::OK]), "+OK|");
    assert!(
        of_all("FUNCTION DELETE lib", [missing(), missing(), missing(), missing()]).starts_with("-ERR Lib")
    );
    let libraries = |count| Reply::Array(vec![bulk("lib"); count]);
    let list = |counts: [usize; 4]| of_all("FUNCTION LIST", counts.map(libraries));
    assert_eq!(list([1, 1, 1, 1]), "*1|$3|lib|");
    assert!(list([1, 1, 0, 1]).starts_with("-ERR partitions know different libraries"));
}

#[test]
fn a_session_waits_for_longer_when_it_is_told_that_its_script_runs() {
    let mut world = World::new();
    world.send(&[&format!("EVALSHA abc 1 {}", key(2, 0))]);
    let envelope = world.next();
    for _ in 0..5 {
        world.now.monotonic_us += 4_000_000;
        world.sessions.on_timer(world.now);
        world.drain();
        world.answer(&envelope, 1, Message::Runs { request: request(&envelope) });
    }
    assert_eq!(world.received(), "");
    world.now.monotonic_us += 5_000_000;
    world.sessions.on_timer(world.now);
    world.drain();
    assert!(world.received().starts_with('-'), "nobody says so any longer");
}

#[test]
fn script_asks_all_partitions_and_exists_is_what_all_of_them_know() {
    let mut world = World::new();
    world.send(&["SCRIPT EXISTS a b"]);
    for known in [[1, 1], [1, 0], [1, 1], [1, 1]] {
        world.executed(vec![Reply::Array(known.map(Reply::Integer).to_vec())]);
    }
    assert_eq!(world.received(), "*2|:1|:0|");
    world.send(&["SCRIPT LOAD x"]);
    for _ in 0..PARTITIONS {
        world.executed(vec![bulk("sha")]);
    }
    assert_eq!(world.received(), "$3|sha|");
    world.send(&["SCRIPT SHOW sha"]);
    world.executed(vec![bulk("x")]);
    assert_eq!(world.received(), "$1|x|", "one partition is asked: all know the same");
    assert_eq!(world.ask("SCRIPT EXISTS"), "-ERR wrong number of arguments for 'script|exists' command|");
    assert_eq!(world.ask("SCRIPT FLUSH now"), "-ERR SCRIPT FLUSH only support SYNC|ASYNC option|");
    assert_eq!(world.ask("SCRIPT NOPE"), "-ERR unknown subcommand 'NOPE'. Try SCRIPT HELP.|");
}

/// What goes to the home of its key may be a script that only this datacenter knows.
#[test]
fn a_script_whose_text_is_sent_along_keeps_what_its_user_may_do() {
    let command = |name: &'static str| -> Args {
        [name, "sha", "1", "k", "user app on"].map(|word| Bytes::from_static(word.as_bytes())).to_vec()
    };
    for (name, with_text) in [
        ("evalsha", "eval"),
        ("EVALSHA_RO", "eval_ro"),
        ("\u{1}evalsha", "\u{1}eval"),
        ("\u{1}evalsha_ro", "\u{1}eval_ro"),
    ] {
        let sent = crate::session::plan::scripts::with_text(command(name), bulk("return 1"));
        let words = [with_text, "return 1", "1", "k", "user app on"];
        assert_eq!(sent, words.map(|word| Bytes::copy_from_slice(word.as_bytes())), "{name:?}");
    }
}
