//! Several sets, and members taken out of them.

use super::convergence::meet;
use super::{changes_nothing, check};

#[test]
fn of_several_sets() {
    check(
        "SADD a 1 2 3 4 => 4
         SADD b 2 3 5 => 3
         SADD c 3 9 => 2
         SINTER a b => <\"2\" \"3\">
         SINTER a b c => <\"3\">
         SINTER a none => <>
         SUNION a b => <\"1\" \"2\" \"3\" \"4\" \"5\">
         SDIFF a b c => <\"1\" \"4\">
         SDIFF none a => <>
         SINTERCARD 2 a b => 2
         SINTERCARD 2 a b LIMIT 1 => 1
         SINTERCARD 2 a b LIMIT 0 => 2
         SINTERCARD 0 a => -ERR numkeys should be greater than 0
         SINTERCARD 3 a b => -ERR Number of keys can't be greater than number of args
         SINTERCARD 1 a LIMIT -1 => -ERR LIMIT can't be negative
         SET s x => OK
         SUNION a s => -WRONGTYPE Operation against a key holding the wrong kind of value",
    );
}

#[test]
fn stored() {
    check(
        "SADD a 1 2 3 => 3
         SADD b 2 3 5 => 3
         HSET t f v => 1
         SINTERSTORE t a b => 2
         SMEMBERS t => <\"2\" \"3\">
         SUNIONSTORE a a b => 4
         SMEMBERS a => <\"1\" \"2\" \"3\" \"5\">
         SDIFFSTORE t b a => 0
         EXISTS t => 0",
    );
}

#[test]
fn taken_out() {
    check(
        "SADD a 1 => 1
         SADD b 2 => 1
         SMOVE a b 1 => 1
         EXISTS a => 0
         SMEMBERS b => <\"1\" \"2\">
         SMOVE a b 1 => 0
         SMOVE b b 1 => 1
         SMOVE b b 7 => 0
         SET s x => OK
         SMOVE b s 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
         SMOVE none s 1 => 0
         SPOP none => nil
         SPOP none 3 => <>
         SPOP b 0 => <>
         SREM b 1 => 1
         SPOP b 5 => <\"2\">
         EXISTS b => 0
         SADD b x => 1
         SPOP b => \"x\"
         EXISTS b => 0
         SPOP b -1 => -ERR value is out of range, must be positive",
    );
    changes_nothing("SADD a 1\n SMOVE a a 1");
}

#[test]
fn several_strings_at_once_or_none() {
    check(
        "MSETNX a 1 b 2 => 1
         MSETNX b 3 c 4 => 0
         MGET a b c => [\"1\" \"2\" nil]
         MSETNX a => -ERR wrong number of arguments for 'msetnx' command",
    );
}

/// What one datacenter takes out or replaces stays where another one puts it in again at the same time.
#[test]
fn a_member_that_is_put_in_again_stays() {
    for removal in ["SREM s 1", "SPOP s", "SMOVE s t 1", "SINTERSTORE s none", "DEL s", "SET s x;DEL s"] {
        meet(["SADD s 1", "SADD s 1", removal], "SMEMBERS s", "<\"1\">");
    }
}
