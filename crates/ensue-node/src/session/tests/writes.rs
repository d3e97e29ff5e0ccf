//! Write transactions of one command, and RENAME.

use super::*;
use ensue_types::{KeyspaceId, Part};

fn transact(envelope: &Envelope) -> Vec<Part> {
    match &envelope.message {
        Message::Transact { parts, .. } => parts.clone(),
        other => panic!("{other:?}"),
    }
}

fn part(partition: u16, commands: &[(u32, String)]) -> Part {
    let commands = commands.iter().map(|(piece, line)| (*piece, args(line))).collect();
    Part { partition: PartitionId(partition), commands }
}

#[test]
fn mset_over_owners_is_one_transaction_coordinated_by_the_first_owner() {
    let mut world = World::new();
    let (a, b, c) = (key(2, 0), key(0, 0), key(2, 1));
    world.send(&[&format!("MSET {a} 1 {b} 2 {c} 3")]);
    let envelope = world.next();
    assert_eq!(partition(&envelope), 2);
    assert_eq!(
        transact(&envelope),
        [part(2, &[(0, format!("MSET {a} 1 {c} 3"))]), part(0, &[(1, format!("MSET {b} 2"))])]
    );
    let context = Context { time: LogicalTime(70), causes: causes(&[(0, 2, 1)]) };
    let replies = vec![(1, Reply::OK), (0, Reply::OK)];
    world.answer(&envelope, 70, Message::Transacted { request: request(&envelope), context, replies });
    assert_eq!(world.received(), "+OK|");
}

#[test]
fn del_over_owners_adds_up() {
    let mut world = World::new();
    world.send(&[&format!("UNLINK {} {}", key(0, 0), key(1, 0))]);
    let envelope = world.next();
    let replies = vec![(0, Reply::Integer(1)), (1, Reply::Integer(1))];
    let done = Message::Transacted { request: request(&envelope), context: Context::default(), replies };
    world.answer(&envelope, 1, done);
    assert_eq!(world.received(), ":2|");
}

#[test]
fn a_faulty_split_command_is_refused_whole() {
    let mut world = World::new();
    let command = format!("MSET {} 1 {}", key(0, 0), key(1, 0));
    assert_eq!(world.ask(&command), "-ERR wrong number of arguments for 'mset' command|");
}

#[test]
fn a_protocol_without_write_transactions_writes_in_parallel() {
    let mut world = World::new();
    world.send(&["SELECT 2", &format!("DEL {} {}", key(0, 0), key(1, 0))]);
    assert!(
        world
            .sent
            .iter()
            .all(|envelope| { matches!(envelope.message, Message::Execute { keyspace: KeyspaceId(2), .. }) })
    );
    world.executed(vec![Reply::Integer(1)]);
    world.executed(vec![Reply::error("OOM no memory")]);
    assert_eq!(world.received(), "+OK|-OOM no memory|");
}

/// Answers the read of RENAME's source.
fn read_source(world: &mut World, mut replies: Vec<Reply>) {
    // A dump without deadlines of fields.
    replies.push(Reply::Bulk(Bytes::from_static(b"\x04")));
    read_dumped_source(world, replies);
}

fn read_dumped_source(world: &mut World, replies: Vec<Reply>) {
    let envelope = world.next();
    assert!(matches!(envelope.message, Message::ReadFirst { .. }));
    let done = first(&envelope, 5, 20, replies);
    world.answer(&envelope, 20, done);
}

const WRONG: Reply = Reply::error("WRONGTYPE");

#[test]
fn rename_reads_the_row_and_writes_it_in_one_transaction() {
    let mut world = World::new();
    let (source, target) = (key(0, 0), key(1, 0));
    world.send(&[&format!("RENAME {source} {target}")]);
    let hash = Reply::Map(vec![(bulk("f"), bulk("1")), (bulk("g"), bulk("2"))]);
    read_source(
        &mut world,
        vec![Reply::Status("hash".into()), WRONG, hash, WRONG, WRONG, WRONG, Reply::Integer(99)],
    );
    let envelope = world.next();
    assert_eq!(
        transact(&envelope),
        [
            part(
                1,
                &[
                    (0, format!("del {target}")),
                    (2, format!("hset {target} f 1 g 2")),
                    (3, format!("pexpireat {target} 99"))
                ]
            ),
            part(0, &[(1, format!("del {source}"))]),
        ]
    );
    let replies = (0..4).map(|piece| (piece, Reply::Integer(1))).collect();
    let done = Message::Transacted { request: request(&envelope), context: Context::default(), replies };
    world.answer(&envelope, 1, done);
    assert_eq!(world.received(), "+OK|");
}

#[test]
fn a_hash_is_renamed_with_the_deadlines_of_its_fields() {
    let mut world = World::new();
    let (source, target) = (key(0, 0), key(1, 0));
    world.send(&[&format!("RENAME {source} {target}")]);
    let (kind, hash) = (Reply::Status("hash".into()), Reply::Map(vec![(bulk("f"), bulk("1"))]));
    let dump = Reply::Bulk(Bytes::from_static(b"\x18dump"));
    let replies = vec![kind, WRONG, hash, WRONG, WRONG, WRONG, Reply::Integer(99), dump];
    read_dumped_source(&mut world, replies);
    let envelope = world.next();
    let restore = (2, format!("restore {target} 0 \u{18}dump"));
    let deadline = (3, format!("pexpireat {target} 99"));
    let parts = [
        part(1, &[(0, format!("del {target}")), restore, deadline]),
        part(0, &[(1, format!("del {source}"))]),
    ];
    assert_eq!(transact(&envelope), parts);
}

#[test]
fn a_sorted_set_is_renamed_with_its_scores() {
    let mut world = World::new();
    let (source, target) = (key(0, 0), key(1, 0));
    world.send(&[&format!("RENAME {source} {target}")]);
    let scored =
        Reply::Pairs(vec![(bulk("a"), Reply::Double(0.1)), (bulk("b"), Reply::Double(f64::INFINITY))]);
    let zset = Reply::Status("zset".into());
    read_source(&mut world, vec![zset, WRONG, WRONG, WRONG, scored, WRONG, Reply::Integer(-1)]);
    let add = (2, format!("zadd {target} 0.1 a inf b"));
    let parts = [part(1, &[(0, format!("del {target}")), add]), part(0, &[(1, format!("del {source}"))])];
    assert_eq!(transact(&world.next()), parts);
}

#[test]
fn keys_that_are_needed_together_have_one_owner() {
    let mut world = World::new();
    let (a, b, other) = (key(0, 0), key(0, 1), key(1, 0));
    let refused = |name| {
        format!(
            "-CROSSSLOT the keys of '{name}' are in several partitions, and it is not executed over several; \
             a hash tag, such as the x of {{x}}1 and {{x}}2, keeps keys together|"
        )
    };
    assert_eq!(world.ask(&format!("ZUNION 2 {a} {other}")), refused("zunion"));
    assert_eq!(world.ask(&format!("ZUNIONSTORE {other} 2 {a} {b}")), refused("zunionstore"));
    assert_eq!(world.ask(&format!("ZRANGESTORE {other} {a} 0 -1")), refused("zrangestore"));
    assert_eq!(world.ask(&format!("ZUNION 3 {a} {other}")), "-ERR syntax error|");
    assert_eq!(world.ask("MULTI"), "+OK|");
    assert_eq!(world.ask(&format!("ZMPOP 2 {a} {other} MIN")), "+QUEUED|");
    assert_eq!(world.ask("EXEC"), format!("*1|{}", refused("zmpop")));
    assert!(world.sent.is_empty());
    world.send(&[&format!("ZUNIONSTORE {a} 1 {b}"), &format!("ZINTER 2 {a} {b}")]);
    let envelope = world.next();
    assert_eq!(partition(&envelope), 0);
    assert!(matches!(&envelope.message, Message::Execute { commands, .. } if commands.len() == 2));
}

#[test]
fn rename_of_nothing_and_to_itself() {
    let mut world = World::new();
    let a = key(0, 0);
    world.send(&[&format!("RENAME {a} {}", key(1, 0))]);
    let none = vec![
        Reply::Status("none".into()),
        Reply::Nil,
        Reply::Map(vec![]),
        Reply::Set(vec![]),
        Reply::Pairs(vec![]),
        Reply::Integer(-2),
    ];
    read_source(&mut world, none.clone());
    assert_eq!(world.received(), "-ERR no such key|");
    world.send(&[&format!("RENAME {a} {a}")]);
    read_source(&mut world, none);
    assert_eq!(world.received(), "-ERR no such key|");
    world.send(&[&format!("RENAME {a} {a}")]);
    let text = vec![Reply::Status("string".into()), bulk("v"), WRONG, WRONG, WRONG, Reply::Integer(-1)];
    read_source(&mut world, text);
    assert_eq!(world.received(), "+OK|");
    assert!(world.sent.is_empty());
}

#[test]
fn a_keyspace_of_one_stream_has_one_owner() {
    let mut world = World::with(NodeConfig { protocols: vec!["log".into()], ..config() });
    let (a, b) = (key(3, 0), key(1, 0));
    // Neighbours of one owner travel together, whatever partition other keyspaces have the keys in.
    world.send(&[&format!("SET {a} 1"), &format!("GET {b}"), &format!("MGET {a} {b}")]);
    let envelope = world.next();
    assert_eq!(partition(&envelope), 0);
    world.answer(
        &envelope,
        1,
        Message::Executed {
            request: request(&envelope),
            context: Context::default(),
            replies: vec![Reply::OK, Reply::Nil, Reply::Array(vec![bulk("1"), Reply::Nil])],
        },
    );
    assert_eq!(world.received(), "+OK|$-1|*2|$1|1|$-1|");
    // A write of several keys is a transaction of that owner alone.
    world.send(&["MULTI", &format!("SET {a} 2"), &format!("SET {b} 2"), "EXEC"]);
    let envelope = world.next();
    assert_eq!(partition(&envelope), 0);
    assert_eq!(transact(&envelope), [part(0, &[(0, format!("SET {a} 2")), (1, format!("SET {b} 2"))])]);
    assert!(world.sent.is_empty());
}
