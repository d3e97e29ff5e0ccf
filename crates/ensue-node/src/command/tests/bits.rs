//! Bits of strings.

use super::{changes_nothing, check};

#[test]
fn one_bit() {
    check(
        "GETBIT b 7 => 0
         SETBIT b 7 1 => 0
         GETBIT b 7 => 1
         SETBIT b 7 1 => 1
         GET b => \"\\x01\"
         SETBIT b 16 0 => 0
         STRLEN b => 3
         GETBIT b 1000000 => 0
         GETBIT b 4294967295 => 0
         GETBIT b 4294967296 => -ERR bit offset is not an integer or out of range
         BITFIELD b GET u8 4294967288 => [0]
         SETBIT b 536870912 1 => -ERR bit offset is not an integer or out of range
         SET n 12 => OK
         GETBIT n 2 => 1
         GETBIT n 4 => 0
         GETBIT b -1 => -ERR bit offset is not an integer or out of range
         SETBIT b 536870912 1 => -ERR bit offset is not an integer or out of range
         SETBIT b 0 2 => -ERR bit is not an integer or out of range",
    );
}

#[test]
fn counts() {
    check(
        "SET s foobar => OK
         BITCOUNT s => 26
         BITCOUNT none => 0
         BITCOUNT s 0 0 => 4
         BITCOUNT s 1 1 => 6
         BITCOUNT s -2 -1 => 7
         BITCOUNT s -1 -2 => 0
         BITCOUNT s 5 30 BIT => 17
         BITCOUNT s 9 14 BIT => 5
         BITCOUNT s 5 30 BYTE => 4
         BITCOUNT s 100 200 => 0
         BITCOUNT s 1 => -ERR syntax error
         BITCOUNT s 1 2 WORD => -ERR syntax error",
    );
}

#[test]
fn places() {
    check(
        "SETRANGE s 0 foobar => 6
         BITPOS s 1 => 1
         BITPOS s 0 => 0
         BITPOS none 1 => -1
         BITPOS none 0 => 0
         BITPOS s 1 1 => 9
         BITPOS s 1 6 => -1
         BITPOS s 0 2 3 BIT => 3
         BITPOS s 1 -1 => 41
         BITPOS s 2 => -ERR The bit argument must be 1 or 0.
         SETBIT ones 0 1 => 0
         BITFIELD ones SET i8 0 -1 => [-128]
         BITPOS ones 0 => 8
         BITPOS ones 0 0 => 8
         BITPOS ones 0 0 -1 => -1
         BITPOS ones 0 0 -1 BIT => -1",
    );
}

#[test]
fn combinations() {
    check(
        "SET a abc => OK
         SET b ab => OK
         BITOP AND t a b => 3
         GETRANGE t 0 1 => \"ab\"
         GETBIT t 17 => 0
         BITOP OR t a b none => 3
         GET t => \"abc\"
         BITOP XOR t a a => 3
         BITCOUNT t => 0
         BITOP NOT t a => 3
         BITOP NOT t t => 3
         GET t => \"abc\"
         HSET h f 1 => 1
         BITOP OR h a => 3
         TYPE h => string
         BITOP AND t none => 0
         EXISTS t => 0
         BITOP NOT t a b => -ERR BITOP NOT must be called with a single source key.
         BITOP NAND t a => -ERR syntax error
         SADD s m => 1
         BITOP OR t s => -WRONGTYPE Operation against a key holding the wrong kind of value",
    );
}

#[test]
fn fields() {
    check(
        "BITFIELD f INCRBY i5 100 1 GET u4 0 => [1 0]
         BITFIELD f SET u8 0 255 GET u8 0 GET i8 0 => [0 255 -1]
         BITFIELD f INCRBY u2 #50 1 OVERFLOW SAT INCRBY u2 102 1 => [1 1]
         BITFIELD f INCRBY u2 #50 1 OVERFLOW SAT INCRBY u2 102 3 => [2 3]
         BITFIELD f OVERFLOW FAIL INCRBY u2 102 1 SET u2 102 1 => [nil 3]
         BITFIELD f OVERFLOW SAT INCRBY i8 0 -200 => [-128]
         BITFIELD f INCRBY i8 0 -1 => [127]
         BITFIELD f SET u8 #1 -1 GET u8 #1 => [0 255]
         BITFIELD g SET i64 0 -9223372036854775808 INCRBY i64 0 -1 => [0 9223372036854775807]
         BITFIELD g OVERFLOW FAIL INCRBY i64 0 1 GET u63 0 => [nil 4611686018427387903]
         BITFIELD h OVERFLOW FAIL INCRBY u8 8 -1 => [nil]
         STRLEN h => 2
         BITFIELD g GET u64 0 => -ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not \
         supported but i64 is.
         BITFIELD g GET u8 -1 => -ERR bit offset is not an integer or out of range
         BITFIELD g OVERFLOW NONE SET u8 0 1 => -ERR Invalid OVERFLOW type specified
         BITFIELD g SET u8 0 => -ERR syntax error
         BITFIELD g => []",
    );
    changes_nothing("SETBIT f 9 1\n BITFIELD f GET u8 0 OVERFLOW FAIL INCRBY u1 9 1");
}
