//! Deadlines of fields.

use super::{Datacenter, changes_nothing, check, show};

#[test]
fn deadlines_are_set_and_told() {
    check(
        "HSET h f 1 g 2 x 3 => 3
         HTTL h FIELDS 2 f none => [-1 -2]
         HTTL none FIELDS 2 f g => [-2 -2]
         HEXPIRE none 5 FIELDS 1 f => [-2]
         HEXPIRE h 5 FIELDS 2 f none => [1 -2]
         HTTL h FIELDS 2 f g => [5 -1]
         + 1
         HTTL h FIELDS 1 f => [5]
         HPTTL h FIELDS 1 f => [4999]
         HPEXPIRE h 1500 FIELDS 2 f g => [1 1]
         HPTTL h FIELDS 2 f g => [1500 1500]
         HPEXPIREAT h 1700000100000 FIELDS 1 f => [1]
         HEXPIREAT h 1700000100 FIELDS 1 g => [1]
         HEXPIRETIME h FIELDS 3 f g x => [1700000100 1700000100 -1]
         HPEXPIRETIME h FIELDS 2 f none => [1700000100000 -2]
         HPEXPIREAT h 1700000100001 FIELDS 1 f => [1]
         HEXPIRETIME h FIELDS 1 f => [1700000101]
         HPERSIST h FIELDS 3 f x none => [1 -1 -2]
         HPERSIST h FIELDS 1 f => [-1]
         HPERSIST none FIELDS 1 f => [-2]
         HTTL h FIELDS 1 f => [-1]
         HEXPIRE h 0 FIELDS 1 g => [2]
         HPEXPIREAT h 5 FIELDS 2 f g => [2 -2]
         HGETALL h => {\"x\":\"3\"}
         HEXPIREAT h 5 FIELDS 1 x => [2]
         EXISTS h => 0",
    );
}

#[test]
fn conditions() {
    check(
        "HSET h f 1 g 2 => 2
         HEXPIRE h 10 XX FIELDS 1 f => [0]
         HEXPIRE h 10 GT FIELDS 1 f => [0]
         HEXPIRE h 10 NX FIELDS 1 f => [1]
         HEXPIRE h 20 NX FIELDS 2 f g => [0 1]
         HEXPIRE h 10 GT FIELDS 2 f g => [0 0]
         HEXPIRE h 15 GT FIELDS 2 f g => [1 0]
         HEXPIRE h 15 LT FIELDS 2 f g => [0 1]
         HPERSIST h FIELDS 1 g => [1]
         HEXPIRE h 99 LT FIELDS 1 g => [1]
         HEXPIRE h 30 XX FIELDS 1 f => [1]
         HTTL h FIELDS 2 f g => [30 99]
         HEXPIRE h 0 NX FIELDS 1 f => [0]
         HEXPIRE h 0 LT FIELDS 1 f => [2]",
    );
}

#[test]
fn what_has_expired_is_not_there() {
    check(
        "HSET h f 1 g 2 => 2
         HPEXPIRE h 10 FIELDS 1 f => [1]
         + 20
         HGET h f => nil
         HLEN h => 1
         HGETALL h => {\"g\":\"2\"}
         HKEYS h => [\"g\"]
         HVALS h => [\"2\"]
         HMGET h f g => [nil \"2\"]
         HEXISTS h f => 0
         HSTRLEN h f => 0
         HSCAN h 0 => [\"0\" [\"g\" \"2\"]]
         HRANDFIELD h 5 => [\"g\"]
         HTTL h FIELDS 1 f => [-2]
         HPERSIST h FIELDS 1 f => [-2]
         HEXPIRE h 9 FIELDS 1 f => [-2]
         HDEL h f => 0
         HGETDEL h FIELDS 1 f => [nil]
         HSETNX h f 5 => 1
         HTTL h FIELDS 1 f => [-1]
         HGET h f => \"5\"
         HPEXPIRE h 10 FIELDS 2 f g => [1 1]
         EXPIRE h 50 => 1
         + 20
         EXISTS h => 0
         TYPE h => none
         TTL h => -2
         HLEN h => 0
         DEL h => 0
         DBSIZE => 0
         KEYS * => []
         EXPIRE h 9 => 0
         OBJECT ENCODING h => nil
         DUMP h => nil
         SADD h m => 1
         TTL h => -1
         DEL h => 1
         HSETEX h PX 5 FIELDS 1 f 1 => 1
         EXPIRE h 50 => 1
         + 20
         HSET h g 1 => 1
         TTL h => -1
         HGETALL h => {\"g\":\"1\"}
         HSETEX h PX 5 FIELDS 1 g 1 => 1
         + 20
         GET h => nil
         SET h v NX => OK
         HGET h g => -WRONGTYPE Operation against a key holding the wrong kind of value
         TTL h => -1",
    );
}

#[test]
fn a_new_value_has_no_deadline_and_a_counter_keeps_its_own() {
    check(
        "HSETEX h EX 9 FIELDS 4 a 1 b 2 c 3 d 4 => 1
         HTTL h FIELDS 4 a b c d => [9 9 9 9]
         HSET h a 1 => 0
         HMSET h b 2 => OK
         HSETEX h FIELDS 1 c 3 => 1
         HSETNX h d 3 => 0
         HTTL h FIELDS 4 a b c d => [-1 -1 -1 9]
         HINCRBY h d 1 => 5
         HTTL h FIELDS 1 d => [9]
         HINCRBYFLOAT h d 0.5 => \"5.5\"
         HTTL h FIELDS 1 d => [9]
         HSETEX h EX 9 FIELDS 1 big 3e21 => 1
         HINCRBYFLOAT h big 1 => \"3000000000000000000000\"
         HTTL h FIELDS 1 big => [9]
         HDEL h d => 1
         HINCRBY h d 1 => 1
         HTTL h FIELDS 1 d => [-1]
         HPEXPIRE h 5 FIELDS 1 d => [1]
         + 20
         HINCRBY h d 3 => 3
         HTTL h FIELDS 1 d => [-1]
         HSET h d 7;HEXPIRE h 9 FIELDS 1 d;HINCRBY h d 1;HTTL h FIELDS 1 d => 0; [1]; 8; [9]
         HSET h d 7;HEXPIRE h 9 FIELDS 1 d;HSET h d 8;HTTL h FIELDS 1 d => 0; [1]; 0; [-1]
         HINCRBY h d 1;HEXPIRE h 9 FIELDS 1 d;HTTL h FIELDS 1 d => 9; [1]; [9]
         HSETEX h PXAT 5 FIELDS 1 d 1 => 1
         HEXISTS h d => 0",
    );
}

#[test]
fn values_are_answered_with_deadlines() {
    check(
        "HSET h f 1 g 2 => 2
         HGETEX h FIELDS 2 f none => [\"1\" nil]
         HTTL h FIELDS 1 f => [-1]
         HGETEX h EX 9 FIELDS 2 f none => [\"1\" nil]
         HTTL h FIELDS 2 f none => [9 -2]
         HGETEX h PERSIST FIELDS 1 f => [\"1\"]
         HTTL h FIELDS 1 f => [-1]
         HGETEX h PXAT 1700000100000 FIELDS 1 f => [\"1\"]
         HPEXPIRETIME h FIELDS 1 f => [1700000100000]
         HGETEX h EXAT 5 FIELDS 1 f => [\"1\"]
         HGETDEL h FIELDS 2 f g => [nil \"2\"]
         EXISTS h => 0
         HGETDEL h FIELDS 2 f g => [nil nil]
         HSETEX h FXX FIELDS 1 f 1 => 0
         HSETEX h FNX EX 9 FIELDS 1 f 1 => 1
         HSETEX h FNX FIELDS 2 f 2 g 2 => 0
         HSETEX h FXX FIELDS 2 f 2 g 2 => 0
         HSETEX h FXX KEEPTTL FIELDS 1 f 2 => 1
         HSETEX h KEEPTTL FIELDS 2 f 3 g 3 => 1
         HTTL h FIELDS 2 f g => [9 -1]
         HSETEX h FIELDS 1 f 4 PX 2000 => 1
         HTTL h FIELDS 1 f => [2]
         HGETALL h => {\"f\":\"4\" \"g\":\"3\"}",
    );
}

#[test]
fn errors() {
    check(
        "SET s v => OK
         HSET h f 1 => 1
         HTTL s FIELDS 1 f => -WRONGTYPE Operation against a key holding the wrong kind of value
         HEXPIRE s 5 FIELDS 1 f => -WRONGTYPE Operation against a key holding the wrong kind of value
         HGETDEL s FIELDS 1 f => -WRONGTYPE Operation against a key holding the wrong kind of value
         HSETEX s FIELDS 1 f v => -WRONGTYPE Operation against a key holding the wrong kind of value
         HEXPIRE h x FIELDS 1 f => -ERR value is not an integer or out of range
         HEXPIRE h -1 FIELDS 1 f => -ERR invalid expire time, must be >= 0
         HEXPIRE h 99999999999999 FIELDS 1 f => -ERR invalid expire time in 'hexpire' command
         HEXPIRE h 5 1 f g => -ERR Mandatory argument FIELDS is missing or not at the right position
         HEXPIRE h 5 NX FIELDS 1 => -ERR The `numfields` parameter must match the number of arguments
         HEXPIRE h 5 FIELDS 2 f => -ERR The `numfields` parameter must match the number of arguments
         HTTL h FIELDS 0 f => -ERR Parameter `numFields` should be greater than 0
         HTTL h FIELD 1 f => -ERR Mandatory argument FIELDS is missing or not at the right position
         HTTL h FIELDS 1 => -ERR wrong number of arguments for 'httl' command
         HGETEX h EX 0 FIELDS 1 f => -ERR invalid expire time in 'hgetex' command
         HGETEX h EX 5 PERSIST FIELDS 1 f => -ERR syntax error
         HGETEX h KEEPTTL FIELDS 1 f => -ERR syntax error
         HGETEX h FIELDS 2 f => -ERR The `numfields` parameter must match the number of arguments
         HGETEX h FIELDS 3 f g => -ERR The `numfields` parameter must match the number of arguments
         HGETEX h FIELDS x f => -ERR Number of fields must be a positive integer
         HSETEX h PERSIST FIELDS 1 f v => -ERR syntax error
         HSETEX h FNX FXX FIELDS 1 f v => -ERR syntax error
         HSETEX h EX 5 PX 5 FIELDS 1 f v => -ERR syntax error
         HSETEX h FIELDS 2 f v g => -ERR The `numfields` parameter must match the number of arguments
         HSETEX h FNX EX 5 f v => -ERR syntax error
         HGETALL h => {\"f\":\"1\"}",
    );
    changes_nothing("HSET h f 1\nHGETEX h FIELDS 1 f");
    changes_nothing("HSET h f 1\nHEXPIRE h 5 XX FIELDS 1 f");
    changes_nothing("HSET h f 1\nHPERSIST h FIELDS 1 f");
}

#[test]
fn copies_and_dumps_have_the_deadlines() {
    check(
        "HSETEX h EX 9 FIELDS 1 f 1 => 1
         HSET h g 2 => 1
         OBJECT ENCODING h => \"listpackex\"
         COPY h c => 1
         HTTL c FIELDS 2 f g => [9 -1]
         HSET h f 5 => 0
         HTTL c FIELDS 2 f g => [9 -1]
         OBJECT ENCODING h => \"listpack\"
         HSET t x 1 => 1
         COPY c t REPLACE => 1
         HGETALL t => {\"f\":\"1\" \"g\":\"2\"}
         HTTL t FIELDS 2 f g => [9 -1]
         HSET c f 1;COPY t c REPLACE;HTTL c FIELDS 1 f => 0; 1; [9]
         + 9000
         HGETALL c => {\"g\":\"2\"}",
    );
}

/// A large row has its deadlines in other places.
#[test]
fn of_a_large_hash() {
    let mut datacenter = Datacenter::new(0);
    for number in 0..300 {
        datacenter.run(&format!("HSET h f{number} {number}"));
    }
    for number in 0..200 {
        let answer = datacenter.run(&format!("HPEXPIRE h {} FIELDS 1 f{number}", 1_000 + number));
        assert_eq!(show(&answer), "[1]");
    }
    assert_eq!(show(&datacenter.run("HLEN h")), "300");
    datacenter.advance(1_000);
    let left = |datacenter: &mut Datacenter| show(&datacenter.run("HLEN h"));
    let first = left(&mut datacenter);
    assert_ne!(first, "300");
    for _ in 0..40 {
        let drawn = show(&datacenter.run("HRANDFIELD h 3"));
        let drawn = drawn.trim_matches(['[', ']']).split(' ').map(|name| name.trim_matches('"'));
        for name in drawn.map(str::to_owned).collect::<Vec<_>>() {
            assert_eq!(show(&datacenter.run(&format!("HEXISTS h {name}"))), "1", "{name}");
        }
        datacenter.advance(1);
    }
    datacenter.advance(1_000);
    assert_eq!(left(&mut datacenter), "100");
    assert_eq!(show(&datacenter.run("HSET h f0 1 f299 1")), "1");
    assert_eq!(left(&mut datacenter), "101");
}
