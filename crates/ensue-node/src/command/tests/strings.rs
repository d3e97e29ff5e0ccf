//! Strings and counters.

use super::{Datacenter, changes_nothing, check, looks_at_nothing, show};

#[test]
fn set_and_get() {
    check(
        "GET k => nil
         SET k v => OK
         GET k => \"v\"
         SET k w NX => nil
         SET k w XX => OK
         SET other w XX => nil
         SET other w NX => OK
         SET k x GET => \"w\"
         SET k y NX GET => \"x\"
         SET new y NX GET => nil
         SET absent y XX GET => nil
         GET k => \"x\"
         GET new => \"y\"
         GET absent => nil
         GETSET k z => \"x\"
         SETNX k q => 0
         SETNX fresh q => 1
         MSET a 1 b 2 a 3 => OK
         MGET a b c a => [\"3\" \"2\" nil \"3\"]
         GETDEL a => \"3\"
         GETDEL a => nil
         SET k v EX 0 => -ERR invalid expire time in 'set' command
         SET k v EX 1 PX 1 => -ERR syntax error",
    );
}

#[test]
fn values_are_compared() {
    check(
        "SET k v IFEQ v => nil
         SET k v IFNE v => OK
         SET k w IFNE v => nil
         SET k w IFEQ v => OK
         SET k x IFEQ v GET => \"w\"
         SET k x IFEQ w GET => \"w\"
         SET k hello IFEQ x EX 10 => OK
         TTL k => 10
         DIGEST k => \"9555e8555c62dcfd\"
         SET k \"\" IFDEQ 9555E8555C62DCFD KEEPTTL => OK
         TTL k => 10
         DIGEST k => \"a10276e838f45d34\"
         SET k a IFDEQ 9555e8555c62dcfd => nil
         SET k a IFDNE 9555e8555c62dcfd => OK
         SET k b IFDNE e6c632b61e964e1f => nil
         SET new b IFDEQ e6c632b61e964e1f => nil
         SET new b IFDNE e6c632b61e964e1f => OK
         INCRBY n 7 => 7
         SET n 8 IFEQ 7 => OK
         SET k b IFEQ a NX => -ERR syntax error
         SET k b XX IFEQ a => -ERR syntax error
         SET k b IFEQ a IFEQ a => -ERR syntax error
         SET k b IFEQ => -ERR syntax error
         SET k b IFDEQ 12 => -ERR must be exactly 16 hexadecimal characters
         DELEX k IFEQ b => 0
         DELEX k IFNE a => 0
         DELEX k IFEQ a => 1
         DELEX k IFNE a => 0
         DELEX new IFDNE e6c632b61e964e1f => 1
         DELEX n IFDEQ e6c632b61e964e1f => 0
         DELEX n => 1
         DIGEST n => nil
         HSET h f v => 1
         DIGEST h => -WRONGTYPE Operation against a key holding the wrong kind of value
         SET h v IFNE v => -WRONGTYPE Operation against a key holding the wrong kind of value
         DELEX h IFNE v => -ERR Key should be of string type if conditions are specified
         DELEX h IFX v => -ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE
         DELEX h IFEQ => -ERR wrong number of arguments for 'delex' command
         DELEX h => 1",
    );
}

#[test]
fn set_and_deadlines() {
    check(
        "SET k v EX 10 => OK
         TTL k => 10
         SET k v KEEPTTL => OK
         TTL k => 10
         SET k v => OK
         TTL k => -1
         SET k v PX 1500 => OK
         TTL k => 2
         GETSET k w => \"v\"
         TTL k => -1
         SETEX k 10 v => OK
         PSETEX k 1500 v => OK
         + 1499
         GET k => \"v\"
         + 2
         GET k => nil
         EXISTS k => 0
         TTL k => -2
         SET k v XX => nil
         SET k v KEEPTTL => OK
         TTL k => -1
         SET k v PXAT 5 => OK
         GET k => nil
         SET k v EXAT 1700000100 => OK
         EXPIRETIME k => 1700000100
         INCR k => -ERR value is not an integer or out of range
         TTL k => 98",
    );
}

#[test]
fn get_and_change_the_deadline() {
    check(
        "GETEX k EX 10 => nil
         SET k v => OK
         GETEX k => \"v\"
         TTL k => -1
         GETEX k EX 10 => \"v\"
         TTL k => 10
         GETEX k PERSIST => \"v\"
         TTL k => -1
         GETEX k PXAT 1700000005000 => \"v\"
         PEXPIRETIME k => 1700000005000
         GETEX k PXAT 1 => \"v\"
         EXISTS k => 0
         HSET h f v => 1
         GETEX h EX 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
         GETDEL h => -WRONGTYPE Operation against a key holding the wrong kind of value",
    );
}

#[test]
fn kinds_are_kept_apart() {
    check(
        "HSET h f v => 1
         GET h => -WRONGTYPE Operation against a key holding the wrong kind of value
         MGET h => [nil]
         INCR h => -WRONGTYPE Operation against a key holding the wrong kind of value
         INCRBYFLOAT h 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
         APPEND h x => -WRONGTYPE Operation against a key holding the wrong kind of value
         STRLEN h => -WRONGTYPE Operation against a key holding the wrong kind of value
         GETRANGE h 0 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
         SETRANGE h 0 '' => -WRONGTYPE Operation against a key holding the wrong kind of value
         SET h x GET => -WRONGTYPE Operation against a key holding the wrong kind of value
         GETSET h x => -WRONGTYPE Operation against a key holding the wrong kind of value
         SETNX h x => 0
         SET h x NX => nil
         HGET h f => \"v\"
         SET h x => OK
         GET h => \"x\"
         HGET h f => -WRONGTYPE Operation against a key holding the wrong kind of value
         DEL h => 1
         HGET h f => nil",
    );
}

#[test]
fn parts_of_strings() {
    check(
        "APPEND k Hello => 5
         APPEND k _World => 11
         STRLEN k => 11
         GETRANGE k 0 4 => \"Hello\"
         GETRANGE k -5 -1 => \"World\"
         GETRANGE k -1 -5 => \"\"
         GETRANGE k -100 2 => \"Hel\"
         GETRANGE k 0 -100 => \"H\"
         GETRANGE k 8 100 => \"rld\"
         GETRANGE k 100 200 => \"\"
         GETRANGE none 0 -1 => \"\"
         SETRANGE k 6 Redis => 11
         GET k => \"Hello Redis\"
         SETRANGE pad 3 x => 4
         GET pad => \"\\x00\\x00\\x00x\"
         SETRANGE none 5 '' => 0
         EXISTS none => 0
         SETRANGE k -1 x => -ERR offset is out of range
         SETRANGE k 67108863 xy => -ERR string exceeds maximum allowed size (proto-max-bulk-len)
         APPEND empty '' => 0
         EXISTS empty => 1
         STRLEN nothing => 0
         SET n 10 => OK
         INCR n => 11
         APPEND n 5 => 3
         INCR n => 116
         STRLEN n => 3
         GETRANGE n 1 1 => \"1\"",
    );
}

#[test]
fn appending_beyond_the_longest_string() {
    let mut datacenter = Datacenter::new(0);
    datacenter.run("SETRANGE k 67108862 x");
    assert_eq!(show(&datacenter.run("APPEND k y")), "67108864");
    let refused = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)";
    assert_eq!(show(&datacenter.run("APPEND k z")), refused);
}

#[test]
fn integers_count() {
    check(
        "INCR n => 1
         INCRBY n 41 => 42
         DECR n => 41
         DECRBY n 1 => 40
         GET n => \"40\"
         SET n 9223372036854775806 => OK
         INCR n => 9223372036854775807
         INCR n => -ERR increment or decrement would overflow
         GET n => \"9223372036854775807\"
         SET n -9223372036854775808 => OK
         DECR n => -ERR increment or decrement would overflow
         DECRBY n -9223372036854775808 => -ERR decrement would overflow
         SET n 007 => OK
         INCR n => -ERR value is not an integer or out of range
         SET n +7 => OK
         INCR n => -ERR value is not an integer or out of range
         SET n 7.0 => OK
         INCR n => -ERR value is not an integer or out of range
         SET n '' => OK
         INCR n => -ERR value is not an integer or out of range
         INCRBY n x => -ERR value is not an integer or out of range
         INCRBY z 0 => 0
         GET z => \"0\"
         DEL z => 1
         GET z => nil
         INCR z => 1",
    );
}

#[test]
fn decimals_count() {
    check(
        "SET k 10.50 => OK
         INCRBYFLOAT k 0.1 => \"10.6\"
         INCRBYFLOAT k -5 => \"5.6\"
         SET k 5.0e3 => OK
         INCRBYFLOAT k 2.0e2 => \"5200\"
         INCR k => 5201
         INCRBYFLOAT k 0.5 => \"5201.5\"
         INCR k => -ERR value is not an integer or out of range
         INCRBYFLOAT new 1.5 => \"1.5\"
         INCRBYFLOAT k x => -ERR value is not a valid float
         SET k abc => OK
         INCRBYFLOAT k 1 => -ERR value is not a valid float
         SET k 0.1234567890123456789 => OK
         INCRBYFLOAT k 1 => \"1.12345678901234568\"
         SET k 1e25 => OK
         INCRBYFLOAT k 1 => \"10000000000000000905969664\"
         SET k inf => OK
         INCRBYFLOAT k 1 => -ERR increment would produce NaN or Infinity
         SET k nan => OK
         INCRBYFLOAT k 1 => -ERR value is not a valid float
         SET k '' => OK
         INCRBYFLOAT k 1 => -ERR value is not a valid float
         SET k 1e-999999999 => OK
         INCRBYFLOAT k 1 => \"1\"
         SET k 1.0000e-2147483648 => OK
         INCRBYFLOAT k 2 => \"2\"",
    );
}

#[test]
fn counters_outlive_the_range_of_their_sums() {
    let mut datacenter = Datacenter::new(0);
    for _ in 0..400 {
        assert_eq!(show(&datacenter.run("INCRBY n 9223372036854775807")), "9223372036854775807");
        assert_eq!(show(&datacenter.run("SET n 0")), "OK");
    }
    assert_eq!(show(&datacenter.run("INCRBYFLOAT n 1000000000000000000000")), "\"1000000000000000000000\"");
    assert_eq!(show(&datacenter.run("INCRBYFLOAT n 1000000000000000000000")), "\"2000000000000000000000\"");
    assert_eq!(show(&datacenter.run("GET n")), "\"2000000000000000000000\"");
    assert_eq!(show(&datacenter.run("SET n 0")), "OK");
    assert_eq!(show(&datacenter.run("INCR n")), "1");
    assert_eq!(show(&datacenter.run("INCR n")), "2");
    assert_eq!(show(&datacenter.run("GET n")), "\"2\"");
}

#[test]
fn transactions_see_their_own_writes() {
    check(
        "INCR n; SET n 5; INCR n; GET n => 1; OK; 6; \"6\"
         GET n => \"6\"
         INCR n; DEL n; INCR n; INCR n; GET n => 7; 1; 1; 2; \"2\"
         GET n => \"2\"
         SET n 1; INCRBYFLOAT n 0.5; GET n => OK; \"1.5\"; \"1.5\"
         HSET h f 1; HINCRBY h f 2; HDEL h f; HINCRBY h f 3; HGETALL h => 1; 3; 1; 3; {\"f\":\"3\"}
         SADD k m; SET k v; GET k => 1; OK; \"v\"
         DEL k; HSET k f v; TYPE k => 1; 1; hash",
    );
}

#[test]
fn blind_writes_observe_nothing() {
    looks_at_nothing("SET k 1\n SET k 2");
    looks_at_nothing("HSET k f 1\n SET k 2 EX 5");
    looks_at_nothing("SET k 1 PX 5\n + 10\n MSET k 2 l 3");
    looks_at_nothing("SET k 1 EX 5\n SET k 2 KEEPTTL");
}

#[test]
fn refused_writes_change_nothing() {
    changes_nothing("SET k 1\n SET k 2 NX");
    changes_nothing("SET k 2 XX");
    changes_nothing("SET k 1 PX 5\n + 10\n SET k 2 XX");
    changes_nothing("SET k 1\n SETNX k 2");
    changes_nothing("SET k x\n INCR k");
    changes_nothing("SET k x\n INCRBYFLOAT k 1");
    changes_nothing("SET k x\n APPEND k ''");
    changes_nothing("SETRANGE k 3 ''");
    changes_nothing("GETDEL k");
    changes_nothing("SET k x\n GETEX k");
    changes_nothing("SET k x\n GETEX k PERSIST");
    changes_nothing("SET k 1 PX 5\n + 10\n DEL k");
}
