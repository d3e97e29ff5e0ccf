//! MULTI: what is queued, what is refused, and how EXEC runs it.

use super::*;
use ensue_resp::CommandError;
use ensue_types::limits;

fn transacted(world: &mut World, replies: Vec<(u32, Reply)>) {
    let envelope = world.next();
    assert!(matches!(envelope.message, Message::Transact { .. }), "{:?}", envelope.message);
    let done = Message::Transacted { request: request(&envelope), context: Context::default(), replies };
    world.answer(&envelope, 1, done);
}

#[test]
fn what_may_grow_is_not_queued_while_memory_is_short() {
    let mut world = World::new();
    world.sessions.set_short_of_memory(true);
    world.send(&["MULTI", &format!("GET {}", key(0, 0)), &format!("SET {} 1", key(0, 0)), "EXEC"]);
    let refused = "OOM command not allowed when used memory > 'maxmemory'.";
    let aborted = "EXECABORT Transaction discarded because of previous errors.";
    assert_eq!(world.received(), format!("+OK|+QUEUED|-{refused}|-{aborted}|"));
}

#[test]
fn debug_is_a_step_of_its_own() {
    let directives = vec![("enable-debug-command".into(), "yes".into())];
    let mut world = World::with(NodeConfig { directives, ..config() });
    world.send(&["MULTI", "DEBUG SLEEP 0.1", "DEBUG ERROR some", "DEBUG PROTOCOL attrib", "PING", "EXEC"]);
    assert_eq!(world.received(), "+OK|+QUEUED|+QUEUED|+QUEUED|+QUEUED|");
    world.pass_ms(101);
    assert_eq!(world.received(), "*4|+OK|-some|-ERR syntax error|+PONG|");
}

#[test]
fn a_short_memory_aborts_the_transaction() {
    let mut world = World::new();
    world.send(&["MULTI", &format!("SET {} 1", key(0, 0)), "EXEC"]);
    let envelope = world.next();
    let (request, reply) = (request(&envelope), Reply::error("OOM no memory"));
    world.answer(&envelope, 1, Message::Refused { request, reply });
    assert_eq!(world.received(), "+OK|+QUEUED|-EXECABORT Transaction discarded because of: OOM no memory|");
}

#[test]
fn a_mixed_multi_over_owners_keeps_the_order_of_commands_and_keys() {
    let mut world = World::new();
    let (a, b) = (key(0, 0), key(1, 0));
    world.send(&["MULTI", &format!("SET {a} 1"), &format!("MGET {b} {a} {b}"), "PING", "EXEC"]);
    assert_eq!(world.received(), "+OK|+QUEUED|+QUEUED|+QUEUED|");
    assert_eq!(world.answered, 4);
    match &world.sent[0].message {
        Message::Transact { parts, .. } => {
            assert_eq!((parts[0].partition, parts[1].partition), (PartitionId(0), PartitionId(1)));
            let pieces: Vec<Vec<u32>> =
                parts.iter().map(|part| part.commands.iter().map(|c| c.0).collect()).collect();
            assert_eq!(pieces, [vec![0, 2], vec![1]], "each piece has a number of its own");
        }
        other => panic!("{other:?}"),
    }
    let gathered = |items: &[&str]| Reply::Array(items.iter().map(|item| bulk(item)).collect());
    transacted(&mut world, vec![(1, gathered(&["b", "B"])), (0, Reply::OK), (2, gathered(&["1"]))]);
    assert_eq!(world.received(), "*3|+OK|*3|$1|b|$1|1|$1|B|+PONG|");
    assert_eq!(world.answered, 5);
}

#[test]
fn a_multi_of_one_owner_is_a_transaction_of_one_part_in_every_keyspace() {
    for keyspace in [0, 2] {
        let mut world = World::new();
        let a = key(0, 0);
        let select = format!("SELECT {keyspace}");
        world.send(&[&select, "MULTI", &format!("INCR {a}"), &format!("GET {a}"), "EXEC"]);
        transacted(&mut world, vec![(0, Reply::Integer(1)), (1, bulk("1"))]);
        assert_eq!(world.received(), "+OK|+OK|+QUEUED|+QUEUED|*2|:1|$1|1|");
    }
}

#[test]
fn a_multi_of_reads_is_a_read_transaction() {
    let mut world = World::new();
    world.send(&["MULTI", &format!("GET {}", key(0, 0)), &format!("HGETALL {}", key(1, 0)), "EXEC"]);
    world.received();
    let (zero, one) = (world.next(), world.next());
    world.answer(&zero, 20, first(&zero, 5, 20, vec![bulk("v")]));
    world.answer(&one, 20, first(&one, 5, 20, vec![Reply::Map(vec![(bulk("f"), bulk("1"))])]));
    assert_eq!(world.received(), "*2|$1|v|*2|$1|f|$1|1|");
}

#[test]
fn an_empty_multi_and_one_of_the_session_alone() {
    let mut world = World::new();
    world.send(&["MULTI", "EXEC"]);
    assert_eq!(world.received(), "+OK|*0|");
    world.send(&["MULTI", "ECHO hi", "SELECT 0", "TIME", "EXEC"]);
    let received = world.received();
    assert!(
        received.starts_with("+OK|+QUEUED|+QUEUED|+QUEUED|*3|$2|hi|+OK|*2|$10|1700000000|"),
        "{received}"
    );
}

#[test]
fn errors_while_queueing_abort() {
    let mut world = World::new();
    let aborted = "-EXECABORT Transaction discarded because of previous errors.|";
    for (command, error) in [
        ("GET", "-ERR wrong number of arguments for 'get' command|"),
        ("nonsense", "-ERR unknown command 'nonsense', with args beginning with: |"),
        ("SELECT 1", "-ERR SELECT inside MULTI is refused: a transaction stays within one keyspace|"),
        ("CAUSAL TOKEN", "-ERR CAUSAL inside MULTI is refused: a transaction has one causal past|"),
        (
            "HELLO 3",
            "-ERR HELLO inside MULTI is refused: only commands on keys and keyspaces, about the server and its \
             clients, PUBLISH, PING, ECHO and TIME can be queued|",
        ),
    ] {
        world.send(&["MULTI", command, "GET a", "EXEC"]);
        assert_eq!(world.received(), format!("+OK|{error}+QUEUED|{aborted}"));
    }
    assert!(world.sent.is_empty());
}

#[test]
fn words_of_redis_for_misplaced_commands() {
    let mut world = World::new();
    assert_eq!(world.ask("EXEC"), "-ERR EXEC without MULTI|");
    assert_eq!(world.ask("DISCARD"), "-ERR DISCARD without MULTI|");
    world.send(&["MULTI", "MULTI", "WATCH a", "EXEC"]);
    assert_eq!(
        world.received(),
        "+OK|-ERR MULTI calls can not be nested|-ERR WATCH inside MULTI is not allowed|*0|"
    );
    world.send(&["MULTI", "SET a 1", "DISCARD", "EXEC"]);
    assert_eq!(world.received(), "+OK|+QUEUED|+OK|-ERR EXEC without MULTI|");
    assert_eq!(world.ask("UNWATCH"), "+OK|");
}

#[test]
fn a_command_that_fails_fails_alone() {
    let mut world = World::new();
    let (a, b) = (key(0, 0), key(1, 0));
    world.send(&["MULTI", &format!("SET {a} 1"), &format!("MSET {a} 1 {b}"), "EXEC"]);
    world.received();
    transacted(&mut world, vec![(0, Reply::error("WRONGTYPE no"))]);
    assert_eq!(world.received(), "*2|-WRONGTYPE no|-ERR wrong number of arguments for 'mset' command|");
}

#[test]
fn several_owners_without_write_transactions_are_refused() {
    let mut world = World::new();
    world.send(&[
        "SELECT 2",
        "MULTI",
        &format!("SET {} 1", key(0, 0)),
        &format!("GET {}", key(1, 0)),
        "EXEC",
    ]);
    let received = world.received();
    assert!(received.ends_with(
        "-ERR EXEC over several partitions is refused: keyspace 2 uses protocol eventual, which has no write \
         transactions; nothing was executed|"
    ));
    assert!(world.sent.is_empty());
}

#[test]
fn empty_arguments_take_their_part_of_the_bound() {
    let mut world = World::new();
    world.send(&["MULTI"]);
    let mut command = args("DEL");
    command.extend(std::iter::repeat_n(Bytes::new(), limits::ARGUMENTS_MAX - 1));
    for _ in 0..2 {
        world.sessions.on_commands(world.now, CLIENT, vec![command.clone()]);
        world.drain();
        assert!(world.received().ends_with("+QUEUED|"));
    }
    world.sessions.on_commands(world.now, CLIENT, vec![command]);
    world.drain();
    assert_eq!(world.received(), "-ERR the commands inside MULTI are too long together|");
}

#[test]
fn a_multi_is_bounded() {
    let mut world = World::new();
    world.send(&["MULTI"]);
    world.send(&vec!["GET a"; limits::MULTI_COMMANDS_MAX]);
    while world.wants_turn {
        world.give_turn();
    }
    world.received();
    assert_eq!(world.ask("GET a"), "-ERR too many commands inside MULTI|");
    assert!(world.ask("EXEC").starts_with("-EXECABORT "));
}

#[test]
fn a_session_is_reset_within_multi_and_multi_is_over() {
    let mut world = World::new();
    world.send(&["MULTI", "PING", "RESET", "EXEC"]);
    assert_eq!(world.received(), "+OK|+QUEUED|+RESET|-ERR EXEC without MULTI|");
}

#[test]
fn an_exec_that_cannot_be_read_ends_the_transaction() {
    let mut world = World::new();
    assert_eq!(world.ask("MULTI"), "+OK|");
    let aborted =
        "-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command|";
    assert_eq!(world.ask("EXEC x"), aborted);
    assert_eq!(world.ask("EXEC"), "-ERR EXEC without MULTI|");
}

#[test]
fn a_command_that_was_too_long_is_answered() {
    let mut world = World::new();
    let refused = CommandError::TooLong.to_string();
    world.sessions.on_commands(world.now, CLIENT, vec![Vec::new(), args("PING")]);
    world.drain();
    assert_eq!(world.received(), format!("-{refused}|+PONG|"));
    world.sessions.on_commands(world.now, CLIENT, vec![args("MULTI"), Vec::new(), args("EXEC")]);
    world.drain();
    let aborted = "-EXECABORT Transaction discarded because of previous errors.|";
    assert_eq!(world.received(), format!("+OK|-{refused}|{aborted}"));
}

/// Everything is sent up to `EXEC`; what the client has received of it is left out.
fn begin(world: &mut World, commands: &[&str]) {
    let commands = [&["MULTI"], commands, &["EXEC"]].concat();
    world.send(&commands);
    let received = world.received();
    assert!(received.starts_with(&format!("+OK|{}", "+QUEUED|".repeat(commands.len() - 2))), "{received}");
}

#[test]
fn walks_are_steps_before_and_after_the_transaction() {
    let mut world = World::new();
    let (a, b) = (key(0, 0), key(1, 0));
    let (set, get) = (format!("SET {a} 1"), format!("GET {b}"));
    begin(&mut world, &["FLUSHDB", "PING", &set, "DBSIZE", &get, "CONFIG GET save", "KEYS *"]);
    for _ in 0..4 {
        assert_eq!(executes(&world.sent[0]), ["FLUSHDB"]);
        world.executed(vec![Reply::OK]);
    }
    assert!(world.wants_turn && world.sent.is_empty(), "others have their turn after a walk");
    world.give_turn();
    transacted(&mut world, vec![(0, Reply::OK), (1, bulk("v"))]);
    for count in 1..=4 {
        assert_eq!(executes(&world.sent[0]), ["DBSIZE"]);
        world.executed(vec![Reply::Integer(count)]);
    }
    world.give_turn();
    for _ in 0..4 {
        assert_eq!(executes(&world.sent[0]), ["KEYS *"]);
        world.executed(vec![Reply::Array(vec![bulk("k")])]);
    }
    // Nothing is left to be executed, so nobody waits for a turn, and no news of what changed comes before.
    assert_eq!(world.received(), "*7|+OK|+PONG|+OK|:10|$1|v|*2|$4|save|$0||*4|$1|k|$1|k|$1|k|$1|k|");
    assert_eq!(world.answered, 9, "each command is answered once");
}

#[test]
fn a_rename_is_a_step_of_its_own() {
    let mut world = World::new();
    let (a, b) = (key(0, 0), key(1, 0));
    let rename = format!("RENAME {a} {b}");
    begin(&mut world, &[&rename, "ECHO hi"]);
    let envelope = world.next();
    let read = [Reply::Status("none".into()), Reply::Nil, Reply::Nil, Reply::Nil, Reply::Integer(-2)];
    world.answer(&envelope, 1, first(&envelope, 1, 5, read.to_vec()));
    assert_eq!(world.received(), "*2|-ERR no such key|$2|hi|");
}

#[test]
fn a_write_between_commands_on_keys_is_refused() {
    let mut world = World::new();
    let set = format!("SET {} 1", key(0, 0));
    for command in ["FLUSHALL", "RENAME a b"] {
        world.send(&["MULTI", &set, command, &set, "EXEC"]);
        let received = world.received();
        let name = command.split(' ').next().expect("a word");
        assert!(
            received.contains(&format!("-EXECABORT {name} between commands on keys is refused: ")),
            "{received}"
        );
        assert!(world.sent.is_empty());
    }
    assert_eq!(world.ask("PING"), "+PONG|");
}

#[test]
fn a_step_that_fails_ends_the_transaction() {
    let mut world = World::new();
    let set = format!("SET {} 1", key(3, 0));
    begin(&mut world, &[&set, "DBSIZE"]);
    world.sent.clear();
    world.pass_ms(60_000);
    assert!(world.received().starts_with("-UNKNOWN "), "nothing else was executed");

    begin(&mut world, &["DBSIZE", &set, "KEYS *"]);
    for _ in 0..4 {
        world.executed(vec![Reply::Integer(0)]);
    }
    world.give_turn();
    world.sent.clear();
    world.pass_ms(60_000);
    let received = world.received();
    assert!(received.starts_with("*3|:0|-UNKNOWN "), "{received}");
    assert!(received.ends_with(
        "|-EXECABORT this command was not executed: an earlier step of its transaction has failed|"
    ));
    assert_eq!(world.ask("PING"), "+PONG|");
}
