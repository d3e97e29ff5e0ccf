//! Sets.

use super::{changes_nothing, check};

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
fn other_kinds() {
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    let mut script = "HSET h f v => 1\n".to_owned();
    for command in
        ["SADD h a", "SREM h a", "SMEMBERS h", "SISMEMBER h a", "SMISMEMBER h a b", "SCARD h", "SSCAN h 0"]
    {
        script.push_str(&format!("{command} => {wrong}\n"));
    }
    check(&script);
}

#[test]
fn removing_what_is_not_there_changes_nothing() {
    changes_nothing("SREM m a");
    changes_nothing("SADD m b\n SREM m a");
}
