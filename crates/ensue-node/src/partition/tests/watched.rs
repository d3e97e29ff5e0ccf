//! WATCH at the partition: what counts as a change of a key.

use super::World;
use crate::{AppendFsync, NodeConfig};
use ensue_types::{SessionId, limits};

const ALICE: SessionId = SessionId(1);
const BOB: SessionId = SessionId(2);

/// Under every protocol in which keys have rows.
fn each(check: impl Fn(&mut World)) {
    for registration in ensue_protocol::REGISTRY.iter().filter(|one| one.name != "tardis") {
        let config = super::config(AppendFsync::EverySecond);
        let protocols = vec![registration.name.into(); usize::from(limits::KEYSPACES)];
        let mut world = World::with(NodeConfig { protocols, ..config });
        world.calm_down();
        world.connect(ALICE);
        world.connect(BOB);
        check(&mut world);
    }
}

/// Whether what Alice does after she watched, and before that Bob, has her transaction executed.
fn is_executed(world: &mut World, watched: &str, bob: &[&str]) -> bool {
    assert_eq!(world.words(ALICE, &format!("WATCH {watched}")), "+OK|");
    for line in bob {
        let answer = world.words(BOB, line);
        assert!(!answer.starts_with('-'), "{line}: {answer}");
    }
    assert_eq!(world.words(ALICE, "MULTI"), "+OK|");
    assert_eq!(world.words(ALICE, "INCR done"), "+QUEUED|");
    let before = world.words(BOB, "GET done");
    let answer = world.words(ALICE, "EXEC");
    let is_executed = answer != "*-1|";
    assert_eq!(world.words(BOB, "GET done") != before, is_executed, "{answer}");
    is_executed
}

#[test]
fn every_write_of_a_watched_key_stops_the_transaction_and_no_other() {
    each(|world| {
        for line in ["SET a 1", "RPUSHX none v", "HSET h f 1", "SADD s x", "ZADD z 1 m", "SET e 1 PX 9999"] {
            world.words(BOB, line);
        }
        for (watched, bob) in [
            ("a", "SET a 1"),
            ("a", "INCR a"),
            ("a", "EXPIRE a 100"),
            ("h", "HSET h g 2"),
            ("h", "HDEL h f"),
            ("s", "SREM s x"),
            ("z", "ZINCRBY z 1 m"),
            ("e", "PERSIST e"),
            ("none", "SET none 1"),
            ("a h", "DEL h"),
            ("a", "DEL a"),
            ("x z none", "FLUSHDB"),
        ] {
            assert!(!is_executed(world, watched, &[bob]), "{watched}: {bob}");
        }
        assert!(is_executed(world, "a", &[]));
        assert!(
            is_executed(world, "nothing nobody", &["FLUSHDB"]),
            "nothing happens to a key that is absent"
        );
        world.words(BOB, "SET a 1");
        assert!(is_executed(world, "a b", &["GET a", "SET other 1", "TTL a", "DEL b"]));
        assert!(!is_executed(world, "a", &["MULTI", "SET other 2", "DEL a", "EXEC"]));
    });
}

#[test]
fn several_who_watch_a_key_exclude_each_other() {
    each(|world| {
        let watch = |world: &mut World, who| assert_eq!(world.words(who, "WATCH n"), "+OK|");
        let exec = |world: &mut World, who| {
            world.words(who, "MULTI");
            world.words(who, "INCR n");
            world.words(who, "EXEC")
        };
        watch(world, ALICE);
        watch(world, BOB);
        assert_eq!(exec(world, BOB), "*1|:1|");
        assert_eq!(exec(world, ALICE), "*-1|");
        watch(world, ALICE);
        assert_eq!(exec(world, ALICE), "*1|:2|");
    });
}

#[test]
fn a_key_that_expires_has_changed() {
    each(|world| {
        world.words(BOB, "SET a 1 PX 500");
        assert_eq!(world.words(ALICE, "WATCH a"), "+OK|");
        world.now.wall_ms += 1_000;
        world.now.monotonic_us += 1_000_000;
        world.words(ALICE, "MULTI");
        world.words(ALICE, "SET b 1");
        assert_eq!(world.words(ALICE, "EXEC"), "*-1|");
        assert!(is_executed(world, "a", &[]), "it stays away");
    });
}

#[test]
fn reads_are_checked_too() {
    each(|world| {
        world.words(BOB, "SET a 1");
        assert_eq!(world.words(ALICE, "WATCH a"), "+OK|");
        world.words(ALICE, "MULTI");
        world.words(ALICE, "GET a");
        assert_eq!(world.words(ALICE, "EXEC"), "*1|$1|1|");
        assert_eq!(world.words(ALICE, "WATCH a"), "+OK|");
        world.words(BOB, "SET a 2");
        world.words(ALICE, "MULTI");
        world.words(ALICE, "GET a");
        assert_eq!(world.words(ALICE, "EXEC"), "*-1|");
    });
}
