//! Sets.

use super::{Datacenter, changes_nothing, check, show};
use std::collections::BTreeMap;

#[test]
fn members() {
    check(
        "SADD m c a b a => 3
         SADD m a d => 1
         SMEMBERS m => <\"a\" \"b\" \"c\" \"d\">
         SMEMBERS none => <>
         SCARD m => 4
         SCARD none => 0
         SISMEMBER m a => 1
         SISMEMBER m z => 0
         SISMEMBER none z => 0
         SMISMEMBER m a z b => [1 0 1]
         SMISMEMBER none a b => [0 0]
         SREM m a z a => 1
         SREM none a => 0
         SADD m '' => 1
         SREM m '' b c d => 4
         EXISTS m => 0",
    );
}

#[test]
fn members_are_drawn() {
    check(
        "SRANDMEMBER none => nil
         SRANDMEMBER none 3 => []
         SRANDMEMBER none -3 => []
         SADD one a => 1
         SRANDMEMBER one => \"a\"
         SRANDMEMBER one 0 => []
         SRANDMEMBER one 5 => [\"a\"]
         SRANDMEMBER one -3 => [\"a\" \"a\" \"a\"]",
    );
    let mut datacenter = Datacenter::new(0);
    datacenter.run("SADD m a b c d");
    let mut drawn: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..400 {
        *drawn.entry(show(&datacenter.run("SRANDMEMBER m"))).or_default() += 1;
        *drawn.entry(show(&datacenter.run("SRANDMEMBER m 2"))).or_default() += 1;
    }
    assert_eq!(drawn.len(), 4 + 12, "four members, and twelve pairs of different ones: {drawn:?}");
    assert!(drawn.values().all(|count| (10..150).contains(count)), "{drawn:?}");
    let refused = datacenter.run("SRANDMEMBER m -9000000000000000000");
    assert!(refused.is_error(), "{}", show(&refused));
}

#[test]
fn other_kinds() {
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    let mut script = "HSET h f v => 1\n".to_owned();
    for command in [
        "SADD h a",
        "SREM h a",
        "SMEMBERS h",
        "SISMEMBER h a",
        "SMISMEMBER h a b",
        "SCARD h",
        "SRANDMEMBER h",
        "SSCAN h 0",
    ] {
        script.push_str(&format!("{command} => {wrong}\n"));
    }
    check(&script);
}

#[test]
fn removing_what_is_not_there_changes_nothing() {
    changes_nothing("SREM m a");
    changes_nothing("SADD m b\n SREM m a");
}
