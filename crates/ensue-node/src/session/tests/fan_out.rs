//! Commands that every partition answers, and SCAN.

use super::*;
use ensue_types::KeyspaceId;
use std::collections::BTreeMap;

#[test]
fn dbsize_keys_and_randomkey() {
    let mut world = World::new();
    world.send(&["DBSIZE"]);
    for count in 1..=4 {
        world.executed(vec![Reply::Integer(count)]);
    }
    assert_eq!(world.received(), ":10|");
    world.send(&["KEYS *"]);
    for name in ["a", "b", "c", "d"] {
        world.executed(vec![Reply::Array(vec![bulk(name)])]);
    }
    assert_eq!(world.received(), "*4|$1|a|$1|b|$1|c|$1|d|");
    world.send(&["RANDOMKEY"]);
    let drawn = |name: &str, weight| Reply::Array(vec![bulk(name), Reply::Integer(weight)]);
    for reply in [Reply::Nil, Reply::Nil, drawn("found", 3), Reply::Nil] {
        world.executed(vec![reply]);
    }
    assert_eq!(world.received(), "$5|found|");
}

#[test]
fn a_partition_is_drawn_by_how_many_keys_it_has() {
    let mut world = World::new();
    let mut drawn = BTreeMap::new();
    for _ in 0..2_000 {
        world.send(&["RANDOMKEY"]);
        for (name, weight) in [("a", 100), ("b", 0), ("c", 300), ("d", 600)] {
            world.executed(vec![Reply::Array(vec![bulk(name), Reply::Integer(weight)])]);
        }
        *drawn.entry(world.received()).or_insert(0) += 1;
    }
    let share = |name: &str| *drawn.get(&format!("$1|{name}|")).unwrap_or(&0);
    assert!((150..250).contains(&share("a")), "{drawn:?}");
    assert!((520..680).contains(&share("c")), "{drawn:?}");
    assert!((1_100..1_300).contains(&share("d")), "{drawn:?}");
    assert_eq!(share("b"), 0);
}

#[test]
fn flushdb_stays_in_the_keyspace_and_flushall_goes_everywhere() {
    let mut world = World::new();
    world.send(&["SELECT 1", "FLUSHDB"]);
    assert_eq!(world.sent.len(), 4);
    for _ in 0..4 {
        assert!(matches!(world.sent[0].message, Message::Execute { keyspace: KeyspaceId(1), .. }));
        world.executed(vec![Reply::OK]);
    }
    assert_eq!(world.received(), "+OK|+OK|");
    world.send(&["FLUSHALL ASYNC"]);
    assert_eq!(world.sent.len(), 12);
    assert_eq!(executes(&world.sent[0]), ["FLUSHALL ASYNC"]);
    for share in 0..12 {
        world.executed(vec![if share == 3 { Reply::error("ERR no") } else { Reply::OK }]);
    }
    assert_eq!(world.received(), "-ERR no|", "an error is not covered by the successes after it");
    assert_eq!(world.ask("FLUSHALL maybe"), "-ERR syntax error|");
}

#[test]
fn what_a_flush_wrote_becomes_the_past() {
    let mut world = World::new();
    world.send(&["FLUSHDB"]);
    for _ in 0..4 {
        let envelope = world.next();
        let causes = causes(&[(0, partition(&envelope), 3)]);
        let context = Context { time: LogicalTime(5), causes };
        let done = Message::Executed { request: request(&envelope), context, replies: vec![Reply::OK] };
        world.answer(&envelope, 8, done);
    }
    world.send(&["GET a"]);
    match world.next().message {
        Message::Execute { context, .. } => {
            assert_eq!(context.causes, causes(&[(0, 0, 3), (0, 1, 3), (0, 2, 3), (0, 3, 3)]));
            assert_eq!(context.time, LogicalTime(8));
        }
        other => panic!("{other:?}"),
    }
}

fn scan(world: &mut World, cursor: &str, owner: u16, local: &str, next: &str) -> String {
    world.send(&[&format!("SCAN {cursor} COUNT 5")]);
    assert_eq!(partition(&world.sent[0]), owner);
    assert_eq!(executes(&world.sent[0]), [format!("SCAN {local} COUNT 5")]);
    world.executed(vec![Reply::Array(vec![bulk(next), Reply::Array(vec![bulk("k")])])]);
    world.received()
}

#[test]
fn scan_goes_from_partition_to_partition() {
    let mut world = World::new();
    assert_eq!(scan(&mut world, "0", 0, "0", "17"), "*2|$2|68|*1|$1|k|");
    assert_eq!(scan(&mut world, "68", 0, "17", "0"), "*2|$1|1|*1|$1|k|");
    assert_eq!(scan(&mut world, "1", 1, "0", "9"), "*2|$2|37|*1|$1|k|");
    assert_eq!(scan(&mut world, "3", 3, "0", "0"), "*2|$1|0|*1|$1|k|");
    assert_eq!(world.ask("SCAN x"), "-ERR invalid cursor|");
    assert_eq!(world.ask("SCAN 0 COUNT"), "-ERR syntax error|");
}

#[test]
fn a_digest_is_the_sum_of_the_partitions() {
    let mut world = World::new();
    world.send(&["CAUSAL DIGEST 1"]);
    for digest in ["ffffffffffffffff", "0000000000000002", "0000000000000010", "0000000000000000"] {
        assert_eq!(executes(&world.sent[0]), ["causal digest"]);
        assert!(matches!(world.sent[0].message, Message::Execute { keyspace: KeyspaceId(1), .. }));
        world.executed(vec![bulk(digest)]);
    }
    assert_eq!(world.received(), "$16|0000000000000011|");
    assert_eq!(world.ask("CAUSAL DIGEST 3"), "-ERR DB index is out of range|");
}

#[test]
fn a_share_that_gave_up_makes_the_session_what_it_is_whatever_the_others_saw() {
    let mut world = World::new();
    world.send(&["DBSIZE"]);
    for share in 0..4 {
        let envelope = world.next();
        let (request, time) = (request(&envelope), LogicalTime(5));
        let context = Context { time, causes: causes(&[(1, partition(&envelope), 9)]) };
        let message = match share {
            1 => Message::TimedOut { request, context, replies: vec![Reply::error("FALLBACK")] },
            _ => Message::Executed { request, context, replies: vec![Reply::Integer(1)] },
        };
        world.answer(&envelope, 8, message);
    }
    assert_eq!(world.received(), "-FALLBACK|");
    world.send(&["GET a"]);
    let Message::Execute { context, .. } = world.next().message else { panic!("a read of one partition") };
    assert_eq!((context.time, context.causes), (LogicalTime(8), causes(&[(1, 1, 9)])));
}
