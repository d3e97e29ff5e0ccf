//! Values as a whole: copies, dumps, sorting, HyperLogLogs, and what two strings have in common.

use super::{Datacenter, changes_nothing, check, show};
use crate::command::dump;
use ensue_resp::Request;
use ensue_resp::request::{Deadline, Whole};
use ensue_types::Reply;

#[test]
fn copies() {
    check(
        "SET s hello EX 100 => OK
         COPY s t => 1
         GET t => \"hello\"
         TTL t => 100
         COPY s t => 0
         RPUSH l a b a => 3
         COPY l t => 0
         COPY l t REPLACE => 1
         LRANGE t 0 -1 => [\"a\" \"b\" \"a\"]
         TTL t => -1
         LPUSH t z => 4
         LLEN l => 3
         HSET h f 1 g 2 => 2
         COPY h s replace => 1
         HGETALL s => {\"f\":\"1\" \"g\":\"2\"}
         SADD m x y => 2
         COPY m s REPLACE => 1
         SMEMBERS s => <\"x\" \"y\">
         ZADD z 1.5 a -inf b => 2
         COPY z s REPLACE => 1
         ZRANGE s 0 -1 WITHSCORES => (\"b\"=-inf \"a\"=1.5)
         COPY none s REPLACE => 0
         EXISTS s => 1
         COPY s s => -ERR source and destination objects are the same
         COPY s t DB x => -ERR value is not an integer or out of range
         COPY s t DB 99 => -ERR DB index is out of range
         COPY s t FOO => -ERR syntax error",
    );
    changes_nothing("SET a 1\n SET b 2\n COPY a b");
}

#[test]
fn a_dump_is_restored_with_its_deadline() {
    let mut datacenter = Datacenter::new(0);
    for line in ["SET s text", "RPUSH l a b", "HSET h f v", "SADD m x 1", "ZADD z 0.1 a 2 b", "SET n 12"] {
        datacenter.run(line);
    }
    for key in ["s", "l", "h", "m", "z", "n"] {
        let Reply::Bulk(dump) = datacenter.run(&format!("DUMP {key}")) else { panic!("{key} is there") };
        let value = dump::read(&dump).expect("a dump of ours");
        let restore = |replace: bool, deadline| {
            let deadline = Ok(deadline);
            let (key, dump) = (format!("copy of {key}").into(), dump.clone());
            Request::Whole(Whole::Restore { key, deadline, dump, replace })
        };
        assert_eq!(datacenter.run_all(&[restore(false, None)]), [Reply::OK]);
        let busy = "BUSYKEY Target key name already exists.";
        assert_eq!(datacenter.run_all(&[restore(false, None)]), [Reply::error(busy)]);
        let again = datacenter.run(&format!("DUMP copy_of_{key}"));
        let Reply::Bulk(again) = again else { panic!("{again:?}") };
        assert_eq!(dump::read(&again), Ok(value));
        assert_eq!(datacenter.run_all(&[restore(true, Some(Deadline::InMs(5_000)))]), [Reply::OK]);
        assert_eq!(show(&datacenter.run(&format!("PTTL copy_of_{key}"))), "5000");
        assert_eq!(datacenter.run_all(&[restore(true, Some(Deadline::AtMs(1)))]), [Reply::OK]);
        assert_eq!(show(&datacenter.run(&format!("EXISTS copy_of_{key}"))), "0");
    }
}

#[test]
fn restoring_what_is_none() {
    check(
        "DUMP none => nil
         RESTORE k 0 short => -ERR DUMP payload version or checksum are wrong
         RESTORE k -1 x => -ERR Invalid TTL value, must be >= 0
         RESTORE k 0 x FREQ 256 => -ERR Invalid FREQ value, must be >= 0 and <= 255
         RESTORE k 0 x IDLETIME -1 => -ERR Invalid IDLETIME value, must be >= 0
         RESTORE k 0 x IDLETIME 1 FREQ 1 => -ERR syntax error
         SET k 1 => OK
         RESTORE k 0 short => -BUSYKEY Target key name already exists.
         RESTORE k -1 short => -BUSYKEY Target key name already exists.
         RESTORE k x short => -BUSYKEY Target key name already exists.
         RESTORE k -1 short REPLACE => -ERR Invalid TTL value, must be >= 0
         RESTORE k 0 short FOO => -ERR syntax error",
    );
}

fn integer(reply: &Reply) -> u64 {
    let Reply::Integer(number) = reply else { panic!("{reply:?} is no number") };
    u64::try_from(*number).expect("a count")
}

#[test]
fn the_bytes_of_all_keys_are_those_of_the_keyspace() {
    for mut datacenter in [Datacenter::new(0), Datacenter::with_versions(0)] {
        let many = |command: &str, key: &str, count: usize| {
            let words: String =
                (0..count).map(|number| format!(" one{number} {}", "v".repeat(1 + number % 40))).collect();
            format!("{command} {key}{words}")
        };
        for line in
            ["SET s hello", "SET e text EX 100", "INCR n", "RPUSH l a b c", "ZADD z 1 a 2 b", "SADD m x"]
        {
            datacenter.run(line);
        }
        datacenter.run(&many("HSET", "small", 10));
        datacenter.run(&many("HSET", "large", 300));
        datacenter.run("EXPIRE large 100");
        datacenter.run(&many("SADD", "members", 300));
        let keys = ["s", "e", "n", "l", "z", "m", "small", "large", "members"];
        let usage = |datacenter: &mut Datacenter, key: &str, options: &str| {
            integer(&datacenter.run(&format!("MEMORY USAGE {key}{options}")))
        };
        let all: u64 = keys.iter().map(|key| usage(&mut datacenter, key, " SAMPLES 0")).sum();
        assert_eq!(all, datacenter.keyspace.bytes());
        // Only of large keys does it matter how many fields are looked at.
        for key in &keys[..7] {
            assert_eq!(usage(&mut datacenter, key, ""), usage(&mut datacenter, key, " SAMPLES 0"), "{key}");
        }
        let (some, exact) =
            (usage(&mut datacenter, "large", ""), usage(&mut datacenter, "large", " SAMPLES 0"));
        assert!(some != exact && some.abs_diff(exact) < exact / 2, "{some} is about {exact}");
        assert_eq!(usage(&mut datacenter, "large", " SAMPLES 300"), exact);
        assert_eq!(show(&datacenter.run("MEMORY USAGE none")), "nil");
        assert_eq!(show(&datacenter.run("DEL s")), "1");
        assert_eq!(show(&datacenter.run("MEMORY USAGE s")), "nil");
    }
}

#[test]
fn help_is_lines() {
    let mut datacenter = Datacenter::new(0);
    for command in ["MEMORY HELP", "OBJECT HELP", "XGROUP HELP", "XINFO HELP"] {
        let Reply::Array(lines) = datacenter.run(command) else { panic!("{command} is answered by lines") };
        assert!(
            matches!(&lines[0], Reply::Status(first) if first.starts_with(command.split(' ').next().unwrap_or("")))
        );
    }
}

#[test]
fn what_redis_would_tell_of_an_object() {
    check(
        "SET n 12 => OK
         OBJECT ENCODING n => \"int\"
         SET s hello => OK
         OBJECT ENCODING s => \"embstr\"
         SETRANGE s 50 x => 51
         OBJECT ENCODING s => \"raw\"
         SADD i 1 2 3 => 3
         OBJECT ENCODING i => \"intset\"
         SADD i a => 1
         OBJECT ENCODING i => \"listpack\"
         HSET h f v => 1
         OBJECT ENCODING h => \"listpack\"
         ZADD z 1 a => 1
         OBJECT ENCODING z => \"listpack\"
         RPUSH l a => 1
         OBJECT ENCODING l => \"listpack\"
         OBJECT REFCOUNT l => 1
         OBJECT IDLETIME l => 0
         OBJECT ENCODING none => nil
         OBJECT FOO l => -ERR unknown subcommand 'FOO'. Try OBJECT HELP.
         OBJECT ENCODING => -ERR wrong number of arguments for 'object|encoding' command",
    );
}

#[test]
fn sorting() {
    check(
        "RPUSH l 3 10 2 => 3
         SORT l => [\"2\" \"3\" \"10\"]
         SORT l DESC => [\"10\" \"3\" \"2\"]
         SORT l ALPHA => [\"10\" \"2\" \"3\"]
         SORT l LIMIT 1 1 => [\"3\"]
         SORT l LIMIT -5 -1 => [\"2\" \"3\" \"10\"]
         SORT l BY nosort => [\"3\" \"10\" \"2\"]
         SADD empty 1 '' -1 => 3
         SORT empty => [\"-1\" \"\" \"1\"]
         SET w3 1 => OK
         SET w10 0 => OK
         SORT l BY w* => [\"10\" \"2\" \"3\"]
         HSET h3 f c => 1
         HSET h2 f b => 1
         SORT l GET # GET h*->f GET nothing => [\"2\" \"b\" nil \"3\" \"c\" nil \"10\" nil nil]
         SORT l BY h*->f ALPHA => [\"10\" \"2\" \"3\"]
         SORT l STORE t => 3
         LRANGE t 0 -1 => [\"2\" \"3\" \"10\"]
         SORT l GET h*->f STORE t => 3
         LRANGE t 0 -1 => [\"b\" \"c\" \"\"]
         SORT none STORE t => 0
         EXISTS t => 0
         SADD s b a c => 3
         SORT s BY nosort STORE l => 3
         LRANGE l 0 -1 => [\"a\" \"b\" \"c\"]
         ZADD z 1 x 2 y 3 w => 3
         SORT z BY nosort DESC LIMIT 0 2 => [\"w\" \"y\"]
         SORT z ALPHA => [\"w\" \"x\" \"y\"]
         SORT s => -ERR One or more scores can't be converted into double
         SORT w3 => -WRONGTYPE Operation against a key holding the wrong kind of value
         SORT l LIMIT 1 => -ERR syntax error
         SORT l LIMIT x 1 => -ERR value is not an integer or out of range",
    );
}

#[test]
fn hyperloglogs() {
    check(
        "PFADD h a b c d e f g => 1
         PFADD h a => 0
         PFCOUNT h => 7
         GETRANGE h 0 4 => \"HYLL\\x01\"
         STRLEN h => 38
         PFDEBUG ENCODING h => sparse
         PFDEBUG DECODE h => \"Z:1646 v:1,1 Z:5645 v:1,1 Z:1085 v:2,1 z:57 v:1,1 Z:4274 v:2,1 Z:2445 v:1,1 Z:622 v:1,1 Z:603\"
         PFADD g 1 2 3 => 1
         PFMERGE u h g => OK
         PFCOUNT u => 10
         PFCOUNT h g none => 10
         PFDEBUG TODENSE u => 1
         PFDEBUG TODENSE u => 0
         STRLEN u => 12304
         PFCOUNT u => 10
         PFADD e => 1
         PFADD e => 0
         PFCOUNT e => 0
         SET s foo => OK
         PFADD s a => -WRONGTYPE Key is not a valid HyperLogLog string value.
         PFMERGE t s => -WRONGTYPE Key is not a valid HyperLogLog string value.
         EXISTS t => 0
         PFDEBUG GETREG none => -ERR The specified key does not exist
         PFDEBUG FOO h => -ERR Unknown PFDEBUG subcommand 'FOO'
         APPEND g hello => 32
         PFCOUNT g => -INVALIDOBJ Corrupted HLL object detected
         RPUSH l a => 1
         PFCOUNT l => -WRONGTYPE Operation against a key holding the wrong kind of value",
    );
}

/// A thousandth off in the middle, some percent at most: sixteen thousand registers have a standard error of 0.81 %.
#[test]
fn estimates_are_near() {
    let mut datacenter = Datacenter::new(0);
    for hundred in 0..200 {
        let elements: Vec<String> = (0..100).map(|one| format!("e{}", hundred * 100 + one)).collect();
        datacenter.run(&format!("PFADD h {}", elements.join(" ")));
        if hundred % 20 == 19 {
            let Reply::Integer(estimate) = datacenter.run("PFCOUNT h") else { panic!("no estimate") };
            let count = f64::from((hundred + 1) * 100);
            assert!((estimate as f64 - count).abs() / count < 0.03, "{estimate} of {count}");
        }
    }
}

#[test]
fn what_two_strings_have_in_common() {
    check(
        "SET one ohmytext => OK
         SET two mynewtext => OK
         LCS one two => \"mytext\"
         LCS one two LEN => 6
         LCS one two IDX => {\"matches\":[[[4 7] [5 8]] [[2 3] [0 1]]] \"len\":6}
         LCS one two IDX MINMATCHLEN 4 WITHMATCHLEN => {\"matches\":[[[4 7] [5 8] 4]] \"len\":6}
         LCS one none => \"\"
         LCS one two IDX LEN => -ERR If you want both the length and indexes, please just use IDX.
         LCS one two FOO => -ERR syntax error
         RPUSH l a => 1
         LCS one l => -ERR The specified keys must contain string values
         LCS one l FOO => -ERR The specified keys must contain string values
         LCS l one IDX MINMATCHLEN x => -ERR The specified keys must contain string values
         LCS one two IDX MINMATCHLEN x => -ERR value is not an integer or out of range",
    );
}

#[test]
fn fields_by_chance() {
    check(
        "HSET h f 1 => 1
         HRANDFIELD h => \"f\"
         HRANDFIELD h 5 => [\"f\"]
         HRANDFIELD h -2 WITHVALUES => (\"f\"=\"1\" \"f\"=\"1\")
         HRANDFIELD none => nil
         HRANDFIELD none 3 => []
         HRANDFIELD h 1 FOO => -ERR syntax error
         HRANDFIELD h x => -ERR value is not an integer or out of range",
    );
}
