//! MULTI: what is queued, what is refused, and how EXEC runs it.

use super::*;
use ensue_types::limits;

fn transacted(world: &mut World, replies: Vec<(u32, Reply)>) {
    let envelope = world.next();
    assert!(matches!(envelope.message, Message::Transact { .. }), "{:?}", envelope.message);
    let done = Message::Transacted { request: request(&envelope), context: Context::default(), replies };
    world.answer(&envelope, 1, done);
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
        (
            "FLUSHALL",
            "-ERR FLUSHALL inside MULTI is refused: it asks every partition and is no part of a transaction|",
        ),
        ("RENAME a b", "-ERR RENAME inside MULTI is refused: it is a transaction of its own|"),
        ("CAUSAL TOKEN", "-ERR CAUSAL inside MULTI is refused: a transaction has one causal past|"),
        (
            "INFO",
            "-ERR INFO inside MULTI is refused: only commands on keys, PING, ECHO and TIME can be queued|",
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
    assert!(world.ask("WATCH a").starts_with("-ERR WATCH is not supported: "));
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
