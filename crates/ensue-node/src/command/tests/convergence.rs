//! Datacenters that exchange their effects in any order, some twice, end up showing the same.

use super::{Datacenter, Logged, arguments, show};
use crate::command::fingerprint::Fingerprint;
use ensue_resp::Request;
use ensue_types::LogicalTime;
use proptest::prelude::*;

/// A step of a random history.
#[derive(Clone, Debug)]
enum Step {
    Command {
        datacenter: usize,
        line: String,
    },
    Transaction {
        datacenter: usize,
        lines: Vec<String>,
    },
    /// A write from anywhere, chosen by number, arrives, perhaps again.
    Arrival {
        datacenter: usize,
        chosen: usize,
    },
    Pause {
        datacenter: usize,
        ms: u64,
    },
}

fn key() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "c"])
}

pub(super) fn command() -> impl Strategy<Value = String> {
    let value = prop::sample::select(vec!["1", "7", "-3", "x", "2.5", "007", "1e3", "9223372036854775807"]);
    let name = prop::sample::select(vec!["f", "g", "h"]);
    let amount = -5_i64..6;
    (key(), value, name, amount, 0_usize..72).prop_map(|(key, value, name, amount, which)| match which {
        0 | 1 => format!("SET {key} {value}"),
        2 => format!("SET {key} {value} EX {}", amount.unsigned_abs() + 1),
        3 => format!("SET {key} {value} NX"),
        4 => format!("SET {key} {value} KEEPTTL"),
        5..=8 => format!("INCRBY {key} {amount}"),
        9 => format!("INCRBYFLOAT {key} {amount}.25"),
        10 => format!("APPEND {key} {value}"),
        11 => format!("SETRANGE {key} 2 {value}"),
        12 | 13 => format!("DEL {key}"),
        14 => format!("EXPIRE {key} {amount}"),
        15 => format!("EXPIRE {key} 3"),
        16 => format!("PERSIST {key}"),
        17 => format!("GETDEL {key}"),
        18 => format!("HSET {key} {name} {value}"),
        19 | 20 => format!("HINCRBY {key} {name} {amount}"),
        21 => format!("HDEL {key} {name}"),
        22 => format!("HMSET {key} f {value} {name} 4"),
        23 | 24 => format!("SADD {key} {name}"),
        25 => format!("SREM {key} {name}"),
        26 => format!("GETEX {key} PX 1500"),
        27 | 28 => format!("ZADD {key} {amount} {name}"),
        29 => format!("ZADD {key} 0.012345678901234567 {name}"),
        30 | 31 => format!("ZINCRBY {key} {amount}.1 {name}"),
        32 => format!("ZREM {key} {name}"),
        33 => format!("ZADD {key} GT {amount} {name} inf h"),
        34 => format!("ZPOPMIN {key}"),
        35 => format!("ZUNIONSTORE {key} 2 a b WEIGHTS 1 0.3"),
        36 | 37 => format!("RPUSH {key} {value} {name}"),
        38 => format!("LPUSH {key} {value} {name}"),
        39 => format!("LPOP {key} 2"),
        40 => format!("LINSERT {key} AFTER {name} {value}"),
        41 => format!("LSET {key} -1 {value}"),
        42 => format!("LREM {key} {amount} {name}"),
        43 => format!("LMOVE {key} b LEFT RIGHT"),
        44 | 45 => format!("XADD {key} * {name} {value}"),
        46 => format!("XADD {key} {}-{} {name} {value}", 1 + amount.unsigned_abs(), name.len()),
        47 => format!("XTRIM {key} MAXLEN {}", amount.unsigned_abs()),
        48 => format!("XDEL {key} {}-1", 1 + amount.unsigned_abs()),
        49 => format!("XGROUP CREATE {key} g 0 MKSTREAM"),
        50 => format!("XREADGROUP GROUP g {name} COUNT 2 STREAMS {key} >"),
        51 => format!("XAUTOCLAIM {key} g {name} 0 - COUNT 1"),
        52 => format!("XACK {key} g {}-1", 1 + amount.unsigned_abs()),
        53 => format!("XGROUP DESTROY {key} g"),
        54 => format!("HPEXPIRE {key} 1500 FIELDS 2 f {name}"),
        55 => format!("HEXPIRE {key} {} FIELDS 1 {name}", 1 + amount.unsigned_abs()),
        56 => format!("HEXPIRE {key} 3 GT FIELDS 2 {name} g"),
        57 => format!("HPEXPIREAT {key} 5 FIELDS 1 {name}"),
        58 => format!("HPERSIST {key} FIELDS 1 {name}"),
        59 => format!("HSETEX {key} PX 900 FIELDS 2 {name} {value} g 2"),
        60 => format!("HSETEX {key} KEEPTTL FIELDS 1 {name} {value}"),
        61 => format!("HGETEX {key} EX 2 FIELDS 1 {name}"),
        62 => format!("HGETDEL {key} FIELDS 1 {name}"),
        63 => format!("HSETEX {key} EX 4 FIELDS 2 {name} 3e21 f {value}"),
        64 => format!("COPY {key} b REPLACE"),
        65 => format!("HSETNX {key} {name} {value}"),
        66 | 67 => format!("BCREATE {key} 4 MIN 0"),
        68 => format!("BINCRBY {key} {amount}"),
        69 => format!("BDECRBY {key} {}", name.len()),
        70 => format!("BMOVE {key} dc2 {}", 1 + amount.unsigned_abs()),
        _ => format!("MSET a {value} {key} {amount}"),
    })
}

fn step(datacenters: usize) -> impl Strategy<Value = Step> {
    let place = move || 0..datacenters;
    prop_oneof![
        5 => (place(), command()).prop_map(|(datacenter, line)| Step::Command { datacenter, line }),
        1 => (place(), prop::collection::vec(command(), 2..6))
            .prop_map(|(datacenter, lines)| Step::Transaction { datacenter, lines }),
        4 => (place(), any::<usize>())
            .prop_map(|(datacenter, chosen)| Step::Arrival { datacenter, chosen }),
        1 => (place(), 0_u64..2500).prop_map(|(datacenter, ms)| Step::Pause { datacenter, ms }),
    ]
}

fn play(datacenters: &mut [Datacenter], steps: &[Step]) {
    let count = datacenters.len();
    for step in steps {
        match step {
            Step::Command { datacenter, line } => drop(datacenters[*datacenter % count].run(line)),
            Step::Transaction { datacenter, lines } => {
                let requests: Vec<_> =
                    lines.iter().map(|line| Request::parse(&arguments(line)).expect(line)).collect();
                datacenters[*datacenter % count].run_all(&requests);
            }
            Step::Arrival { datacenter, chosen } => {
                let logged = all_writes(datacenters);
                if let Some(logged) = logged.get(chosen % logged.len().max(1)) {
                    datacenters[*datacenter % count].receive(logged);
                }
            }
            Step::Pause { datacenter, ms } => datacenters[*datacenter % count].advance(*ms),
        }
    }
}

/// Two datacenters begin alike and then act without each other, the second one with the higher stamps; both end alike.
#[track_caller]
pub(super) fn meet([common, first, second]: [&str; 3], query: &str, ends: &str) {
    let mut datacenters = [Datacenter::new(0), Datacenter::new(1)];
    common.split(';').for_each(|line| drop(datacenters[0].run(line)));
    let begun = all_writes(&datacenters);
    begun.iter().for_each(|logged| datacenters[1].receive(logged));
    first.split(';').for_each(|line| drop(datacenters[0].run(line)));
    second.split(';').for_each(|line| drop(datacenters[1].run(line)));
    let writes = all_writes(&datacenters);
    for datacenter in &mut datacenters {
        writes.iter().rev().for_each(|logged| datacenter.receive(logged));
        assert_eq!(show(&datacenter.run(query)), ends, "{first} beside {second} in {}", datacenter.id);
    }
}

pub(super) fn all_writes(datacenters: &[Datacenter]) -> Vec<Logged> {
    datacenters.iter().flat_map(|datacenter| datacenter.log.iter().cloned()).collect()
}

/// Everything that a client can see, as text.
pub(super) fn view(datacenter: &mut Datacenter, at: LogicalTime) -> Vec<String> {
    datacenter.clock = at;
    let mut seen = Vec::new();
    for key in ["a", "b", "c"] {
        for command in [
            "TYPE",
            "GET",
            "HGETALL",
            "SMEMBERS",
            "PEXPIRETIME",
            "ZRANGE",
            "LRANGE",
            "XINFO",
            "HLEN",
            "HPEXPIRETIME",
        ] {
            let rest = match command {
                "HPEXPIRETIME" => " FIELDS 3 f g h",
                "ZRANGE" => " 0 -1 WITHSCORES",
                "LRANGE" => " 0 -1",
                _ => "",
            };
            let line = match command {
                "XINFO" => format!("XINFO STREAM {key} FULL COUNT 0"),
                _ => format!("{command} {key}{rest}"),
            };
            let requests = [Request::parse(&arguments(&line)).expect("a command")];
            let mut evaluation = crate::evaluate::Evaluation::reading(
                &mut datacenter.keyspace,
                at,
                ensue_store::view::View::At(at),
            );
            let reply = super::run(&requests[0], &mut evaluation).expect("the present");
            seen.push(format!("{line} => {}", show(&reply)));
        }
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_order_ends_the_same(
        count in 2_usize..4,
        steps in prop::collection::vec(step(3), 1..60),
        seed in any::<u64>(),
    ) {
        let mut datacenters: Vec<_> = (0..count as u8).map(Datacenter::new).collect();
        play(&mut datacenters, &steps);
        let writes = all_writes(&datacenters);
        let mut random = seed;
        for datacenter in &mut datacenters {
            // All of them, in an order of its own; some have arrived before, and are duplicates now.
            let mut left = writes.clone();
            while !left.is_empty() {
                random = Fingerprint::new().word(random).finish();
                datacenter.receive(&left.swap_remove(random as usize % left.len()));
            }
        }
        let at = datacenters.iter().map(|d| d.clock).max().expect("at least two");
        for at in [at, LogicalTime::from_ms(at.ms() + 2000), LogicalTime::from_ms(at.ms() + 100_000)] {
            let views: Vec<_> = datacenters.iter_mut().map(|d| view(d, at)).collect();
            let digests: Vec<_> = datacenters.iter().map(|d| d.digest(at)).collect();
            for other in 1..datacenters.len() {
                prop_assert_eq!(&views[0], &views[other]);
                prop_assert_eq!(digests[0], digests[other]);
            }
        }
    }

    #[test]
    fn counters_add_up(
        amounts in prop::collection::vec((0_usize..3, -1000_i64..1000, any::<usize>()), 1..60),
        with_fields in any::<bool>(),
    ) {
        let mut datacenters: Vec<_> = (0..3).map(Datacenter::new).collect();
        for &(datacenter, amount, chosen) in &amounts {
            let line = if with_fields { format!("HINCRBY n f {amount}") } else { format!("INCRBY n {amount}") };
            datacenters[datacenter].run(&line);
            let writes = all_writes(&datacenters);
            datacenters[chosen % 3].receive(&writes[chosen % writes.len()]);
        }
        let writes = all_writes(&datacenters);
        let total: i64 = amounts.iter().map(|(_, amount, _)| amount).sum();
        for datacenter in &mut datacenters {
            writes.iter().rev().for_each(|write| datacenter.receive(write));
            let read = if with_fields { "HGET n f" } else { "GET n" };
            prop_assert_eq!(show(&datacenter.run(read)), format!("\"{total}\""));
        }
    }
}

/// Two datacenters that begin alike, then act apart, then exchange everything in both orders.
fn check(common: &str, first: &str, second: &str, expected: &[(&str, &str)]) {
    let mut datacenters = [Datacenter::new(0), Datacenter::new(1)];
    common.split(';').filter(|line| !line.is_empty()).for_each(|line| drop(datacenters[0].run(line)));
    for logged in datacenters[0].log.clone() {
        datacenters[1].receive(&logged);
    }
    datacenters[0].clock = datacenters[1].clock;
    first.split(';').for_each(|line| drop(datacenters[0].run(line)));
    second.split(';').for_each(|line| drop(datacenters[1].run(line)));
    let writes = all_writes(&datacenters);
    writes.iter().for_each(|write| datacenters[0].receive(write));
    writes.iter().rev().for_each(|write| datacenters[1].receive(write));
    for (line, answer) in expected {
        for datacenter in &mut datacenters {
            assert_eq!(show(&datacenter.run(line)), *answer, "{line} after {first} and {second}");
        }
    }
}

#[test]
fn the_later_set_wins() {
    check("", "SET k 1", "SET x 0;SET k 2", &[("GET k", "\"2\"")]);
}

#[test]
fn an_addition_survives_a_concurrent_set_and_delete() {
    check("SET n 10", "INCRBY n 5", "SET x 0;SET n 100", &[("GET n", "\"105\"")]);
    check("INCRBY n 10", "INCRBY n 5", "DEL n", &[("GET n", "\"5\"")]);
    check("SET n 10", "INCRBYFLOAT n 0.1", "INCRBYFLOAT n 0.2", &[("GET n", "\"10.3\"")]);
}

#[test]
fn fields_and_members_merge_one_by_one() {
    check("", "HSET h a 1", "HSET h b 2", &[("HGETALL h", "{\"a\":\"1\" \"b\":\"2\"}")]);
    check("SADD m a", "SREM m a", "SADD m b", &[("SMEMBERS m", "<\"b\">")]);
    check("HSET h a 1", "DEL h", "HSET h b 2", &[("HGETALL h", "{\"b\":\"2\"}")]);
    check("SADD m a", "SREM m a", "SADD x y;SADD m a", &[("SMEMBERS m", "<\"a\">")]);
}

#[test]
fn a_field_s_deadline_ends_the_value_that_was_seen() {
    let both = |deadline| [("HGETALL h", "{\"f\":\"2\"}"), ("HTTL h FIELDS 1 f", deadline)];
    // Whichever has the higher stamp, the value that was not seen has no deadline.
    check("HSET h f 1", "HEXPIRE h 9 FIELDS 1 f", "SET x 0;HSET h f 2", &both("[-1]"));
    check("HSET h f 1", "HSET h f 2", "SET x 0;HEXPIRE h 9 FIELDS 1 f", &both("[-1]"));
    check("", "HSETEX h EX 9 FIELDS 1 f 1", "SET x 0;HSET h f 2", &both("[-1]"));
    check("", "HSET h f 1", "SET x 0;HSETEX h EX 9 FIELDS 1 f 2", &both("[9]"));
    // The later of two deadlines of one value; removing one leaves what was not seen.
    check("HSET h f 2", "HEXPIRE h 20 FIELDS 1 f", "SET x 0;HEXPIRE h 9 FIELDS 1 f", &both("[9]"));
    check(
        "HSETEX h EX 5 FIELDS 1 f 2",
        "HEXPIRE h 9 FIELDS 1 f",
        "SET x 0;HPERSIST h FIELDS 1 f",
        &both("[9]"),
    );
    check("HSETEX h EX 5 FIELDS 1 f 2", "HPERSIST h FIELDS 1 f", "SET x 0;HGET h f", &both("[-1]"));
    // Additions leave the value what it is, and its deadline.
    check("HSETEX h EX 9 FIELDS 1 f 1", "HINCRBY h f 1", "HGET h f", &both("[9]"));
    check("HINCRBY h f 1", "HINCRBY h f 1", "HEXPIRE h 9 FIELDS 1 f", &both("[9]"));
    // What was removed stays removed, and its deadline is none of a later value.
    let new = &[("HLEN h", "0"), ("HSETNX h f 3", "1"), ("HTTL h FIELDS 1 f", "[-1]")];
    check("HSET h f 1", "HDEL h f", "SET x 0;HEXPIRE h 9 FIELDS 1 f", new);
}

#[test]
fn the_newest_kind_is_shown() {
    check("", "SADD k m", "SET x 0;SET k v", &[("TYPE k", "string"), ("DEL k", "1"), ("TYPE k", "none")]);
    check("", "HSET k f v", "SET x 0;SADD k m", &[("SREM k m", "1"), ("EXISTS k", "0")]);
}

#[test]
fn a_deleted_stream_does_not_come_back_empty() {
    let common = "XADD s 1-0 a 1;XADD s 2-0 a 2;XGROUP CREATE s g 0;XREADGROUP GROUP g c COUNT 1 STREAMS s >";
    let gone = &[
        ("EXISTS s", "0"),
        ("TYPE s", "none"),
        ("XLEN s", "0"),
        (
            "XREADGROUP GROUP g c STREAMS s 0",
            "-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option",
        ),
        ("XADD s NOMKSTREAM 9-0 a 9", "nil"),
    ];
    for beside in [
        "XDEL s 1-0",
        "XTRIM s MAXLEN 1",
        "XTRIM s MAXLEN 0",
        "XCLAIM s g d 0 1-0",
        "XGROUP CREATECONSUMER s g e",
        "XREADGROUP GROUP g c STREAMS s 0",
        "XREADGROUP GROUP g c STREAMS s >",
        "XACK s g 1-0",
        "XGROUP CREATE s h $",
        "XGROUP SETID s g 0",
    ] {
        check(common, "DEL s", &format!("SET x 0;{beside}"), gone);
        check(common, "SET x 0;SET x 1;DEL s", beside, gone);
        // Nor does it hide what was written since, whichever is the later.
        let text = &[("GET s", "\"important\"")];
        check(common, "DEL s;SET s important", &format!("SET x 0;SET x 1;{beside}"), text);
        check(
            common,
            "UNLINK s;HSET s f v",
            &format!("SET x 0;SET x 1;{beside}"),
            &[("HGETALL s", "{\"f\":\"v\"}")],
        );
        // What was left of it is none of a stream that is made anew.
        let anew = &[("XADD s 1-0 b 1", "\"1-0\""), ("XLEN s", "1")];
        check(common, "DEL s", &format!("SET x 0;{beside};EXISTS x"), anew);
    }
}

#[test]
fn a_stream_that_is_made_anew_has_nothing_of_the_earlier_one() {
    let common = "XADD s 5-0 a 1;XADD s 6-0 a 2;XGROUP CREATE s g 0;XREADGROUP GROUP g c COUNT 1 STREAMS s >";
    let beside = "SET x 0;XDEL s 6-0;XCLAIM s g d 0 5-0;XREADGROUP GROUP g c STREAMS s >";
    let mut datacenters = [Datacenter::new(0), Datacenter::new(1)];
    common.split(';').for_each(|line| drop(datacenters[0].run(line)));
    datacenters[0].log.clone().iter().for_each(|logged| datacenters[1].receive(logged));
    datacenters[0].run("DEL s");
    beside.split(';').for_each(|line| drop(datacenters[1].run(line)));
    let [one, other] = &mut datacenters;
    other.log.iter().for_each(|logged| one.receive(logged));
    assert_eq!(show(&one.run("XADD s 1-0 b 1")), "\"1-0\"");
    one.log.iter().for_each(|logged| other.receive(logged));
    for datacenter in [one, other] {
        for (line, answer) in [
            ("XLEN s", "1"),
            ("XINFO GROUPS s", "[]"),
            ("XDEL s 1-0", "1"),
            ("EXISTS s", "1"),
            ("XGROUP CREATE s g 0", "OK"),
            ("XPENDING s g", "[0 nil nil nil-array]"),
        ] {
            assert_eq!(show(&datacenter.run(line)), answer, "{line}");
        }
    }
}

#[test]
fn a_stream_that_lives_by_its_entries_is_made_by_the_next_that_writes_to_it() {
    let script = &[
        ("XLEN s", "1"),
        ("XGROUP CREATE s g 0", "OK"),
        ("XDEL s 2-0", "1"),
        ("XLEN s", "0"),
        ("EXISTS s", "1"),
    ];
    check("XADD s 1-0 a 1", "DEL s", "SET x 0;XADD s 2-0 a 2", script);
}

#[test]
fn a_group_that_is_made_anew_has_nothing_pending() {
    let common = "XADD s 1-0 a 1;XADD s 2-0 a 2;XGROUP CREATE s g 0;XREADGROUP GROUP g c STREAMS s >";
    let anew = &[
        ("XINFO GROUPS s", "[]"),
        ("XGROUP CREATE s g $", "OK"),
        ("XPENDING s g", "[0 nil nil nil-array]"),
        ("XINFO CONSUMERS s g", "[]"),
    ];
    check(common, "XGROUP DESTROY s g", "SET x 0;XCLAIM s g d 0 1-0", anew);
    check(common, "SET x 0;SET x 1;XGROUP DESTROY s g", "XREADGROUP GROUP g c STREAMS s 0", anew);
}

#[test]
fn a_counter_has_nothing_of_the_deadline_of_one_that_was_removed() {
    let new = &[("HINCRBY h f 7", "7"), ("HTTL h FIELDS 1 f", "[-1]")];
    check("HINCRBY h f 5;HSET h o 1", "HDEL h f", "SET x 0;HEXPIRE h 1000 FIELDS 1 f", new);
    check("HINCRBY h f 5;HSET h o 1", "SET x 0;HDEL h f", "HEXPIRE h 1000 FIELDS 1 f", new);
}

#[test]
fn a_deadline_that_outlives_its_row_is_not_inherited() {
    check("SET k v", "DEL k", "EXPIRE k 100", &[("EXISTS k", "0"), ("TTL k", "-2")]);
    let script = &[("APPEND k w", "1"), ("TTL k", "-1")];
    check("SET k v", "DEL k", "EXPIRE k 100", script);
}

#[test]
fn the_digest_tells_differences() {
    let digest_after = |lines: &str| {
        let mut datacenter = Datacenter::new(0);
        lines.split(';').for_each(|line| drop(datacenter.run(line)));
        datacenter.digest(LogicalTime::from_ms(super::START_MS + 1))
    };
    let states = [
        "GET k",
        "SET k v",
        "SET k w",
        "SET l v",
        "SET k ''",
        "HSET k v ''",
        "HSET k '' v",
        "SADD k v",
        "SADD k v w",
        "SET k v;SET l v",
        "SET k v;PEXPIRE k 50",
        "SET k v;PEXPIRE k 51",
        "HSET k a b",
        "HSETEX k PX 50 FIELDS 1 a b",
        "HSETEX k PX 51 FIELDS 1 a b",
        "HSET ka b ''",
    ];
    for (one, first) in states.iter().enumerate() {
        for second in &states[one + 1..] {
            assert_ne!(digest_after(first), digest_after(second), "{first} and {second}");
        }
    }
    let same = [
        "SET k v",
        "SET k w;SET k v",
        "HSET k f v;SET k v",
        "SET l v;DEL l;SET k v",
        "SET k v;PEXPIRE k 50;PERSIST k",
    ];
    for state in same {
        assert_eq!(digest_after(state), digest_after("SET k v"), "{state}");
    }
    assert_eq!(digest_after("SET n 4;INCR n"), digest_after("SET n 5"));
    assert_eq!(digest_after("HSET h f v;HEXPIRE h 9 FIELDS 1 f;HSET h f v"), digest_after("HSET h f v"));
    assert_eq!(digest_after("HSETEX h PX 1 FIELDS 1 f v;HSET h g v"), digest_after("HSET h g v"));
}

/// The function is fixed for good: datacenters with different versions compare what it gives.
#[test]
fn the_digest_is_the_same_in_every_version() {
    let mut datacenter = Datacenter::new(0);
    for line in [
        "SET k value",
        "HSET hash field 1",
        "SADD set member",
        "INCRBYFLOAT n 1.5",
        "PEXPIREAT k 1800000000000",
    ] {
        datacenter.run(line);
    }
    assert_eq!(datacenter.digest(datacenter.clock), 6_749_352_776_417_740_524);
}
