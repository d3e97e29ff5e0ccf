//! Existence, kinds and deadlines.

use super::{changes_nothing, check};

#[test]
fn existence_and_kind() {
    check(
        "SET s v => OK
         HSET h f v => 1
         SADD m a => 1
         EXISTS s h m n s => 4
         TOUCH s n => 1
         TYPE s => string
         TYPE h => hash
         TYPE m => set
         TYPE n => none
         DEL s n s h => 2
         UNLINK m => 1
         EXISTS s h m => 0
         DBSIZE => 0",
    );
}

#[test]
fn deadlines() {
    check(
        "EXPIRE k 10 => 0
         TTL k => -2
         EXPIRETIME k => -2
         SET k v => OK
         TTL k => -1
         PEXPIRETIME k => -1
         PERSIST k => 0
         EXPIRE k 10 => 1
         TTL k => 10
         PTTL k => 10000
         EXPIRETIME k => 1700000010
         PEXPIRETIME k => 1700000010000
         PERSIST k => 1
         TTL k => -1
         PEXPIRE k 1499 => 1
         TTL k => 1
         PEXPIRE k 1500 => 1
         TTL k => 2
         PEXPIREAT k 1700000001500 => 1
         EXPIRETIME k => 1700000002
         EXPIREAT k 1700000100 => 1
         TTL k => 100
         APPEND k w => 2
         TTL k => 100
         + 100000
         EXISTS k => 0
         PERSIST k => 0
         APPEND k w => 1
         TTL k => -1
         EXPIRE k x => -ERR value is not an integer or out of range
         EXPIRE k 9223372036854775807 => -ERR invalid expire time in 'expire' command
         EXPIRE k -9223372036854775808 => -ERR invalid expire time in 'expire' command
         EXPIRE k 10 ZZ => -ERR Unsupported option ZZ",
    );
}

#[test]
fn deadlines_that_have_passed_delete() {
    check(
        "SET k v => OK
         EXPIRE k 0 => 1
         EXISTS k => 0
         SET k v => OK
         PEXPIRE k -5 => 1
         EXISTS k => 0
         SET k v => OK
         EXPIREAT k 1 => 1
         EXISTS k => 0
         SET k v EX 100 => OK
         EXPIRE k -1 GT => 0
         EXPIRE k -1 LT => 1
         SET k v KEEPTTL => OK
         TTL k => -1",
    );
}

#[test]
fn conditions_of_deadlines() {
    check(
        "SET k v => OK
         EXPIRE k 10 XX => 0
         EXPIRE k 10 GT => 0
         EXPIRE k 10 XX LT => 0
         EXPIRE k 100 LT => 1
         EXPIRE k 100 NX => 0
         EXPIRE k 100 GT => 0
         EXPIRE k 200 GT => 1
         EXPIRE k 300 LT => 0
         EXPIRE k 50 LT => 1
         EXPIRE k 40 XX LT => 1
         EXPIRE k 70 XX => 1
         TTL k => 70
         PERSIST k => 1
         EXPIRE k 5 NX => 1
         EXPIRE k 5 NX XX => -ERR NX and XX, GT or LT options at the same time are not compatible
         EXPIRE k 5 GT LT => -ERR GT and LT options at the same time are not compatible",
    );
}

#[test]
fn a_row_that_comes_again_has_no_old_deadline() {
    check(
        "HSET h f v => 1
         EXPIRE h 100 => 1
         HDEL h f => 1
         HSET h g v => 1
         TTL h => -1
         SADD m a => 1
         EXPIRE m 1 => 1
         + 1000
         SADD m b => 1
         TTL m => -1
         SMEMBERS m => <\"b\">
         INCR n => 1
         PEXPIRE n 10 => 1
         + 10
         INCR n => 1
         TTL n => -1",
    );
}

#[test]
fn refused_changes_change_nothing() {
    changes_nothing("DEL k");
    changes_nothing("EXPIRE k 10");
    changes_nothing("SET k v\n EXPIRE k 10 XX");
    changes_nothing("SET k v\n PERSIST k");
    changes_nothing("SET k v PX 5\n + 5\n PERSIST k");
}

#[test]
fn what_is_not_the_owners() {
    check(
        "RENAME a b => -ERR command 'rename' is not evaluated by the owner of a key
         FLUSHALL => -ERR command 'flushall' is not evaluated by the owner of a key",
    );
}
