//! Sorted sets.

use super::convergence::{all_writes, meet};
use super::{Datacenter, changes_nothing, check, show};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[test]
fn scores() {
    check(
        "ZADD z 1 a 2 b 2 b 3 c => 3
         ZADD z 1.5 a 4 d => 1
         ZADD z CH 1.5 a 5 d 6 e => 2
         ZCARD z => 5
         ZCARD none => 0
         ZSCORE z a => 1.5
         ZSCORE z x => nil
         ZSCORE none a => nil
         ZMSCORE z d x a => [5 nil 1.5]
         ZMSCORE none a b => [nil nil]
         TYPE z => zset
         ZREM z a x a => 1
         ZREM none a => 0
         ZREM z b c d e => 4
         EXISTS z => 0
         ZADD z 0x10 h inf i -INF j 1e300 k -0 m 0.1 n => 6
         ZRANGE z 0 -1 WITHSCORES => (\"j\"=-inf \"m\"=0 \"n\"=0.1 \"h\"=16 \"k\"=1e+300 \"i\"=inf)",
    );
}

#[test]
fn conditions() {
    check(
        "ZADD z XX 1 a => 0
         EXISTS z => 0
         ZADD z NX 1 a 2 b => 2
         ZADD z NX 5 a 3 c => 1
         ZADD z XX CH 5 a 9 x => 1
         ZADD z GT CH 4 a 7 b 8 d => 2
         ZADD z LT CH 4 a 70 b => 1
         ZADD z XX GT CH 5 a 1 x => 1
         ZRANGE z 0 -1 WITHSCORES => (\"c\"=3 \"a\"=5 \"b\"=7 \"d\"=8)
         ZADD z NX INCR 1 a => nil
         ZADD z XX INCR 1 x => nil
         ZADD z GT INCR -1 a => nil
         ZADD z LT INCR -1 a => 4
         ZADD z INCR 1.5 x => 1.5",
    );
    changes_nothing("ZADD z 1 a\n ZADD z NX 2 a");
    changes_nothing("ZADD z 1 a\n ZADD z GT 1 a");
    changes_nothing("ZADD z inf a\n ZINCRBY z -inf a");
    changes_nothing("ZREM z a");
}

#[test]
fn increments_are_those_of_floating_point() {
    check(
        "ZINCRBY z 0.1 a => 0.1
         ZINCRBY z 0.2 a => 0.30000000000000004
         ZINCRBY z 0.3 a => 0.6000000000000001
         ZADD z 0.05 b => 1
         ZINCRBY z 0.01 b => 0.060000000000000005
         ZINCRBY z 1e21 a => 1e+21
         ZINCRBY z 1e22 a => 1.1e+22
         ZINCRBY z 1 a => 1.1e+22
         ZINCRBY z inf a => inf
         ZINCRBY z 5 a => inf
         ZINCRBY z -inf a => -ERR resulting score is not a number (NaN)
         ZINCRBY z -0 m => 0
         ZINCRBY z 9007199254740993 i => 9007199254740992
         ZINCRBY z 1 i => 9007199254740992",
    );
}

#[test]
fn places() {
    check(
        "ZADD z 1 a 2 b 2 c 3 d => 4
         ZRANK z a => 0
         ZRANK z c => 2
         ZRANK z c WITHSCORE => [2 2]
         ZREVRANK z c => 1
         ZRANK z x => nil
         ZRANK z x WITHSCORE => nil-array
         ZRANK none a => nil
         ZRANGE z 0 1 => [\"a\" \"b\"]
         ZRANGE z -2 -1 => [\"c\" \"d\"]
         ZRANGE z -100 100 => [\"a\" \"b\" \"c\" \"d\"]
         ZRANGE z 2 1 => []
         ZRANGE z 4 9 => []
         ZRANGE none 0 -1 => []
         ZRANGE z 0 0 REV WITHSCORES => (\"d\"=3)
         ZREVRANGE z 1 2 => [\"c\" \"b\"]
         ZREVRANGE z -1 -1 WITHSCORES => (\"a\"=1)
         ZREMRANGEBYRANK z -1 -1 => 1
         ZREMRANGEBYRANK z 5 6 => 0
         ZREMRANGEBYRANK z 0 -1 => 3
         EXISTS z => 0",
    );
}

#[test]
fn ranges_of_scores() {
    check(
        "ZADD z 1 a 2 b 2 c 3 d inf e => 5
         ZCOUNT z 2 3 => 3
         ZCOUNT z (2 (3 => 0
         ZCOUNT z -inf +inf => 5
         ZCOUNT z 3 2 => 0
         ZRANGEBYSCORE z (1 3 => [\"b\" \"c\" \"d\"]
         ZRANGEBYSCORE z -inf +inf LIMIT 1 2 => [\"b\" \"c\"]
         ZRANGEBYSCORE z -inf +inf LIMIT 3 -1 WITHSCORES => (\"d\"=3 \"e\"=inf)
         ZRANGEBYSCORE z -inf +inf LIMIT -1 2 => []
         ZRANGEBYSCORE z -inf +inf LIMIT 9 2 => []
         ZREVRANGEBYSCORE z 3 1 LIMIT 1 2 => [\"c\" \"b\"]
         ZRANGE z 3 (1 BYSCORE REV => [\"d\" \"c\" \"b\"]
         ZRANGE z 0 0 BYSCORE => []
         ZREMRANGEBYSCORE z 2 (3 => 2
         ZRANGE z 0 -1 => [\"a\" \"d\" \"e\"]",
    );
}

#[test]
fn ranges_of_names() {
    check(
        "ZADD z 0 a 0 b 0 c 0 d => 4
         ZLEXCOUNT z - + => 4
         ZLEXCOUNT z [b (d => 2
         ZLEXCOUNT z + - => 0
         ZRANGEBYLEX z (a [c => [\"b\" \"c\"]
         ZRANGEBYLEX z - + LIMIT 1 2 => [\"b\" \"c\"]
         ZRANGEBYLEX z [bb + => [\"c\" \"d\"]
         ZREVRANGEBYLEX z + (b => [\"d\" \"c\"]
         ZRANGE z (c - BYLEX REV LIMIT 0 1 => [\"b\"]
         ZREMRANGEBYLEX z [a (c => 2
         ZRANGE z 0 -1 => [\"c\" \"d\"]",
    );
}

#[test]
fn pops() {
    check(
        "ZPOPMIN none => []
         ZPOPMIN none 3 => ()
         ZADD z 1 a 2 b 3 c 4 d 5 e => 5
         ZPOPMIN z => [\"a\" 1]
         ZPOPMAX z 2 => (\"e\"=5 \"d\"=4)
         ZPOPMIN z 0 => ()
         ZMPOP 2 none z MAX => [\"z\" [[\"c\" 3]]]
         ZMPOP 2 z none MIN COUNT 10 => [\"z\" [[\"b\" 2]]]
         ZMPOP 1 z MIN => nil-array
         EXISTS z => 0",
    );
}

#[test]
fn members_are_drawn() {
    check(
        "ZRANDMEMBER none => nil
         ZRANDMEMBER none 3 => []
         ZRANDMEMBER none -3 WITHSCORES => ()
         ZADD one 1.5 a => 1
         ZRANDMEMBER one => \"a\"
         ZRANDMEMBER one 0 => []
         ZRANDMEMBER one 5 WITHSCORES => (\"a\"=1.5)
         ZRANDMEMBER one -2 => [\"a\" \"a\"]",
    );
    let mut datacenter = Datacenter::new(0);
    datacenter.run("ZADD z 1 a 2 b 3 c 4 d");
    let mut drawn: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..400 {
        *drawn.entry(show(&datacenter.run("ZRANDMEMBER z 2"))).or_default() += 1;
    }
    assert_eq!(drawn.len(), 12, "twelve pairs of different ones: {drawn:?}");
    let refused = datacenter.run("ZRANDMEMBER z -4000000000000000000 WITHSCORES");
    assert!(refused.is_error(), "{}", show(&refused));
}

#[test]
fn several_sorted_sets() {
    check(
        "ZADD a 1 x 2 y 3 z => 3
         ZADD b 10 y 20 z => 2
         SADD s z w => 2
         ZUNION 2 a b WITHSCORES => (\"x\"=1 \"y\"=12 \"z\"=23)
         ZUNION 3 a none s => [\"w\" \"x\" \"y\" \"z\"]
         ZUNION 2 a b WEIGHTS 2 0.5 AGGREGATE MAX WITHSCORES => (\"x\"=2 \"y\"=5 \"z\"=10)
         ZINTER 2 a b WITHSCORES AGGREGATE MIN => (\"y\"=2 \"z\"=3)
         ZINTER 2 a none => []
         ZINTER 3 a b s WITHSCORES => (\"z\"=24)
         ZDIFF 2 a b WITHSCORES => (\"x\"=1)
         ZDIFF 1 none => []
         ZINTERCARD 2 a b => 2
         ZINTERCARD 2 a b LIMIT 1 => 1
         ZINTERCARD 2 a b LIMIT 0 => 2
         SET t text EX 100 => OK
         ZUNIONSTORE t 2 a b => 3
         TTL t => -1
         ZRANGE t 0 -1 => [\"x\" \"y\" \"z\"]
         ZINTERSTORE t 2 a t => 3
         ZRANGE t 0 -1 WITHSCORES => (\"x\"=2 \"y\"=14 \"z\"=26)
         ZDIFFSTORE t 2 a b => 1
         ZRANGE t 0 -1 => [\"x\"]
         ZDIFFSTORE t 2 a a => 0
         EXISTS t => 0
         ZRANGESTORE t a 1 -1 => 2
         ZRANGESTORE a a (1 +inf BYSCORE LIMIT 0 1 => 1
         ZRANGE a 0 -1 WITHSCORES => (\"y\"=2)
         ZRANGESTORE t none 0 -1 => 0
         EXISTS t => 0
         ZADD i inf m => 1
         ZADD j -inf m => 1
         ZUNION 2 i j WITHSCORES => (\"m\"=0)
         ZUNION 1 i WEIGHTS 0 WITHSCORES => (\"m\"=0)",
    );
}

#[test]
fn walks() {
    check(
        "ZADD z 1 a 0.5 b 3 ab => 3
         ZSCAN z 0 => [\"0\" [\"a\" \"1\" \"ab\" \"3\" \"b\" \"0.5\"]]
         ZSCAN z 0 MATCH a* COUNT 1 => [\"0\" [\"a\" \"1\" \"ab\" \"3\"]]
         ZSCAN none 0 => [\"0\" []]
         SCAN 0 TYPE zset => [\"0\" [\"z\"]]",
    );
}

#[test]
fn other_kinds() {
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    let mut script = "HSET h f v => 1\nZADD z 1 a => 1\n".to_owned();
    for command in [
        "ZADD h 1 a",
        "ZADD h XX 1 a",
        "ZINCRBY h 1 a",
        "ZREM h a",
        "ZSCORE h a",
        "ZMSCORE h a",
        "ZCARD h",
        "ZCOUNT h 0 1",
        "ZRANK h a",
        "ZRANGE h 0 -1",
        "ZRANGESTORE t h 0 -1",
        "ZREMRANGEBYRANK h 0 -1",
        "ZPOPMIN h",
        "ZMPOP 2 none h MIN",
        "ZRANDMEMBER h",
        "ZSCAN h 0",
        "ZUNION 2 z h",
        "ZINTERCARD 1 h",
        "GET z",
        "HGET z a",
        "SMEMBERS z",
    ] {
        script.push_str(&format!("{command} => {wrong}\n"));
    }
    check(&script);
}

#[track_caller]
fn meets(common: &str, first: &str, second: &str, ends: &str) {
    meet([common, first, second], "ZRANGE z 0 -1 WITHSCORES", ends);
}

#[test]
fn concurrent_changes() {
    // In these the second datacenter acts later, so that its stamps are the higher ones.
    meets("ZADD z 1 a", "ZINCRBY z 2 a", "ZINCRBY z 3 a", "(\"a\"=6)");
    meets("ZADD z 1 a", "ZINCRBY z 2 a", "ZADD z 10 a", "(\"a\"=12)");
    meets("ZADD z 1 a", "ZADD z 10 a", "ZINCRBY z 2 a", "(\"a\"=12)");
    meets("ZADD z 1 a;ZINCRBY z 5 a", "ZADD z 10 a", "ZINCRBY z 2 a", "(\"a\"=12)");
    meets("ZADD z 1 a", "ZINCRBY z 2 a", "ZREM z a", "(\"a\"=2)");
    meets("ZADD z 1 a", "ZREM z a", "ZADD z 7 a", "(\"a\"=7)");
    for removal in
        ["ZREM z a", "ZPOPMIN z", "ZMPOP 1 z MAX", "ZREMRANGEBYRANK z 0 0", "ZREMRANGEBYSCORE z 0 2"]
    {
        meets("ZADD z 1 a", "ZADD z 7 a", removal, "(\"a\"=7)");
    }
    meets("ZADD z 1 a;ZADD t 5 b", "ZADD z 7 a", "ZRANGESTORE z t 0 -1", "(\"b\"=5 \"a\"=7)");
    meets("ZADD z 1 a", "ZADD z 2 b", "DEL z", "(\"b\"=2)");
    meets("ZADD z 1 a", "ZADD z 2 a", "ZADD z 3 a", "(\"a\"=3)");
    // A base that additions go on top of is rounded to seventeen digits behind the point; one beyond every total stays.
    meets("ZADD z 1 a", "ZADD z 0.012345678901234567 a", "ZINCRBY z 2 a", "(\"a\"=2.0123456789012346)");
    meets("ZADD z 1 a", "ZADD z inf a", "ZINCRBY z 2 a", "(\"a\"=inf)");
    meets("ZADD z 1 a", "ZINCRBY z 2 a", "ZADD t 5 a 6 b;ZUNIONSTORE z 1 t", "(\"b\"=6 \"a\"=7)");
}

/// What the order of a large sorted set says is what its members say, each asked by itself.
fn order_is_that_of_the_scores(datacenter: &mut Datacenter, names: usize) {
    let mut members = Vec::new();
    for number in 0..names {
        if let ensue_types::Reply::Double(score) = datacenter.run(&format!("ZSCORE z m{number}")) {
            members.push((score, format!("m{number}")));
        }
    }
    members.sort_by(|one, other| one.partial_cmp(other).expect("numbers"));
    let shown = |members: &[(f64, String)]| {
        let pair = |(score, name): &(f64, String)| {
            format!("\"{name}\"={}", show(&ensue_types::Reply::Double(*score)))
        };
        format!("({})", members.iter().map(pair).collect::<Vec<_>>().join(" "))
    };
    assert_eq!(show(&datacenter.run("ZRANGE z 0 -1 WITHSCORES")), shown(&members));
    assert_eq!(show(&datacenter.run("ZCARD z")), members.len().to_string());
    for start in (0..members.len()).step_by(members.len() / 9 + 1) {
        let range = shown(&members[start..members.len().min(start + 7)]);
        assert_eq!(show(&datacenter.run(&format!("ZRANGE z {start} {} WITHSCORES", start + 6))), range);
        let (score, name) = &members[start];
        assert_eq!(show(&datacenter.run(&format!("ZRANK z {name}"))), start.to_string());
        let below = members.iter().filter(|(other, _)| other < score).count();
        assert_eq!(show(&datacenter.run(&format!("ZCOUNT z -inf ({score}"))), below.to_string());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_large_one_keeps_its_order(
        versions in any::<bool>(),
        changes in prop::collection::vec((0_u8..3, 0_u8..6, 0_usize..700, -9_i32..9), 1..60),
    ) {
        let mut first = if versions { Datacenter::with_versions(0) } else { Datacenter::new(0) };
        let mut second = if versions { Datacenter::with_versions(1) } else { Datacenter::new(1) };
        let all: Vec<String> = (0..600).map(|number| format!("{} m{number}", number * 7 % 41)).collect();
        first.run(&format!("ZADD z {}", all.join(" ")));
        first.log.iter().for_each(|logged| second.receive(logged));
        // From here on the order is kept.
        order_is_that_of_the_scores(&mut first, 700);
        for (who, what, number, score) in changes {
            let line = match what {
                0 | 1 => format!("ZADD z {score} m{number}"),
                2 => format!("ZINCRBY z {score} m{number}"),
                3 => format!("ZREM z m{number}"),
                4 => "ZPOPMIN z 3".to_owned(),
                _ => format!("ZREMRANGEBYRANK z {number} {}", number + 2),
            };
            match who {
                0 => drop(first.run(&line)),
                _ => {
                    second.run(&line);
                    if let Some(logged) = second.log.last().cloned() {
                        if versions { first.receive_hidden(&logged) } else { first.receive(&logged) }
                    }
                }
            }
        }
        order_is_that_of_the_scores(&mut first, 700);
        if versions {
            first.collect();
            order_is_that_of_the_scores(&mut first, 700);
        }
        first.run("SET z text");
        first.run("DEL z");
        first.run("ZADD z 1 m5 0 m6");
        order_is_that_of_the_scores(&mut first, 700);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn increments_add_up(
        amounts in prop::collection::vec((0_usize..3, -1_000_000_i64..1_000_000, any::<usize>()), 1..60),
    ) {
        let mut datacenters: Vec<_> = (0..3).map(Datacenter::new).collect();
        for &(datacenter, amount, chosen) in &amounts {
            // Multiples of a power of two, so that floating point is exact.
            datacenters[datacenter].run(&format!("ZINCRBY z {} a", amount as f64 / 64.0));
            let writes = all_writes(&datacenters);
            datacenters[chosen % 3].receive(&writes[chosen % writes.len()]);
        }
        let total: i64 = amounts.iter().map(|(_, amount, _)| amount).sum();
        let writes = all_writes(&datacenters);
        for datacenter in &mut datacenters {
            writes.iter().rev().for_each(|write| datacenter.receive(write));
            let expected = ensue_types::Reply::Double(total as f64 / 64.0);
            prop_assert_eq!(show(&datacenter.run("ZSCORE z a")), show(&expected));
        }
    }

    #[test]
    fn alone_a_score_is_what_floating_point_makes_of_it(
        steps in prop::collection::vec((any::<bool>(), -1e3..1e3_f64, -12..12_i32), 1..40),
    ) {
        let mut datacenter = Datacenter::new(0);
        let mut score = 0.0;
        for (adds, mantissa, exponent) in steps {
            let amount = mantissa * 10_f64.powi(exponent);
            score = if adds { score + amount } else { amount };
            let line = if adds { format!("ZINCRBY z {amount} a") } else { format!("ZADD z {amount} a") };
            datacenter.run(&line);
            let expected = ensue_types::Reply::Double(score + 0.0);
            prop_assert_eq!(show(&datacenter.run("ZSCORE z a")), show(&expected), "{}", line);
        }
    }

    #[test]
    fn ranges_are_those_of_a_sorted_list(
        members in prop::collection::btree_map("[a-f]{1,2}", -3_i32..4, 0..30),
        (start, stop) in (-12_i64..12, -12_i64..12),
        (min, max) in (-4_i32..5, -4_i32..5),
        (skipped, count) in (-2_i64..8, -2_i64..8),
    ) {
        let mut datacenter = Datacenter::new(0);
        for (name, score) in &members {
            datacenter.run(&format!("ZADD z {score} {name}"));
        }
        let mut sorted: Vec<(i32, &String)> = members.iter().map(|(name, score)| (*score, name)).collect();
        sorted.sort();
        let shown = |chosen: Vec<&(i32, &String)>| {
            format!("[{}]", chosen.iter().map(|(_, name)| format!("\"{name}\"")).collect::<Vec<_>>().join(" "))
        };
        let len = sorted.len() as i64;
        let place = |place: i64| if place < 0 { place + len } else { place };
        let by_place = |(at, _): &(usize, &(i32, &String))| (place(start)..=place(stop)).contains(&(*at as i64));
        let expected = sorted.iter().enumerate().filter(by_place).map(|(_, member)| member).collect();
        prop_assert_eq!(show(&datacenter.run(&format!("ZRANGE z {start} {stop}"))), shown(expected));
        let expected = sorted.iter().rev().enumerate().filter(by_place).map(|(_, member)| member).collect();
        prop_assert_eq!(show(&datacenter.run(&format!("ZREVRANGE z {start} {stop}"))), shown(expected));
        let within = |(score, _): &&(i32, &String)| (min..max).contains(score);
        let limited = |all: Vec<&(i32, &String)>| -> String {
            let Ok(skipped) = usize::try_from(skipped) else { return shown(Vec::new()) };
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            shown(all.into_iter().skip(skipped).take(count).collect())
        };
        let line = format!("ZRANGEBYSCORE z {min} ({max} LIMIT {skipped} {count}");
        prop_assert_eq!(show(&datacenter.run(&line)), limited(sorted.iter().filter(within).collect()));
        let line = format!("ZRANGE z ({max} {min} BYSCORE REV LIMIT {skipped} {count}");
        prop_assert_eq!(show(&datacenter.run(&line)), limited(sorted.iter().rev().filter(within).collect()));
        prop_assert_eq!(
            show(&datacenter.run(&format!("ZCOUNT z {min} ({max}"))),
            sorted.iter().filter(within).count().to_string()
        );
        for (at, (_, name)) in sorted.iter().enumerate() {
            prop_assert_eq!(show(&datacenter.run(&format!("ZRANK z {name}"))), at.to_string());
        }
    }
}
