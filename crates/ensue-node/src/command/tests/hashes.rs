//! Hashes.

use super::{Datacenter, arguments, changes_nothing, check, run};
use crate::evaluate::Evaluation;
use ensue_resp::Request;
use ensue_store::view::View;

#[test]
fn fields() {
    check(
        "HSET h a 1 b 2 a 3 => 2
         HSET h a 4 c 5 => 1
         HMSET h d 6 d 7 => OK
         HGET h a => \"4\"
         HGET h z => nil
         HGET none a => nil
         HMGET h a z d => [\"4\" nil \"7\"]
         HMGET none a b => [nil nil]
         HGETALL h => {\"a\":\"4\" \"b\":\"2\" \"c\":\"5\" \"d\":\"7\"}
         HGETALL none => {}
         HKEYS h => [\"a\" \"b\" \"c\" \"d\"]
         HVALS h => [\"4\" \"2\" \"5\" \"7\"]
         HLEN h => 4
         HLEN none => 0
         HEXISTS h a => 1
         HEXISTS h z => 0
         HSTRLEN h a => 1
         HSTRLEN h z => 0
         HSETNX h a 9 => 0
         HSETNX h e 9 => 1
         HDEL h a z a b => 2
         HLEN h => 3
         HDEL h c d e => 3
         EXISTS h => 0
         HDEL h c => 0
         HSET h a => -ERR wrong number of arguments for 'hset' command
         HSET h '' '' => 1
         HGETALL h => {\"\":\"\"}",
    );
}

#[test]
fn counters() {
    check(
        "HINCRBY h n 5 => 5
         HINCRBY h n -7 => -2
         HGET h n => \"-2\"
         HSET h n 9223372036854775807 => 0
         HINCRBY h n 1 => -ERR increment or decrement would overflow
         HSET h n x => 0
         HINCRBY h n 1 => -ERR hash value is not an integer
         HINCRBYFLOAT h n 1 => -ERR hash value is not a float
         HINCRBYFLOAT h m 0.1 => \"0.1\"
         HINCRBYFLOAT h m 0.2 => \"0.3\"
         HINCRBY h m 1 => -ERR hash value is not an integer
         HINCRBYFLOAT h m 0.7 => \"1\"
         HINCRBY h m 1 => 2
         HSTRLEN h m => 1
         HINCRBYFLOAT h m inf => -ERR value is NaN or Infinity
         HINCRBY h m x => -ERR value is not an integer or out of range",
    );
}

#[test]
fn other_kinds() {
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    let mut script = "SET s v => OK\n".to_owned();
    for command in [
        "HSET s f v",
        "HMSET s f v",
        "HSETNX s f v",
        "HGET s f",
        "HMGET s f g",
        "HGETALL s",
        "HKEYS s",
        "HVALS s",
        "HDEL s f",
        "HEXISTS s f",
        "HLEN s",
        "HSTRLEN s f",
        "HINCRBY s f 1",
        "HINCRBYFLOAT s f 1",
        "HSCAN s 0",
    ] {
        script.push_str(&format!("{command} => {wrong}\n"));
    }
    check(&script);
}

#[test]
fn refused_writes_change_nothing() {
    changes_nothing("HDEL h f");
    changes_nothing("HSET h f v\n HDEL h g");
    changes_nothing("HSET h f v\n HSETNX h f w");
    changes_nothing("SET h v\n HSET h f w");
    changes_nothing("SET h v\n HMSET h f w");
    changes_nothing("HSET h f v\n HINCRBY h f 1");
    changes_nothing("HSET h f v\n PEXPIRE h 5\n + 5\n HDEL h f");
}

#[test]
fn a_past_kind_is_still_refused() {
    let mut datacenter = Datacenter::new(0);
    datacenter.run("SET k v");
    let past = datacenter.clock;
    datacenter.keyspace.mark(b"k", u64::MAX);
    datacenter.run("DEL k");
    let request = Request::parse(&arguments("HGET k f")).expect("a command");
    for (at, answer) in [(past, true), (datacenter.clock, false)] {
        let mut evaluation = Evaluation::reading(&mut datacenter.keyspace, at, View::At(at));
        let reply = run(&request, &mut evaluation).expect("marked");
        assert_eq!(reply.is_error(), answer, "{reply:?}");
    }
}
