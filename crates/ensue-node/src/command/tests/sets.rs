//! Sets.

use super::{Datacenter, changes_nothing, check, show};
use crate::evaluate::{Draw, Evaluation};
use ensue_store::row::Kind;
use ensue_store::view::View;
use ensue_types::{Column, Reply};
use std::collections::{BTreeMap, BTreeSet};

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
fn members_are_drawn() {
    check(
        "SRANDMEMBER none => nil
         SRANDMEMBER none 3 => []
         SRANDMEMBER none -3 => []
         SADD one a => 1
         SRANDMEMBER one => \"a\"
         SRANDMEMBER one 0 => []
         SRANDMEMBER one 5 => [\"a\"]
         SRANDMEMBER one -3 => [\"a\" \"a\" \"a\"]",
    );
    let mut datacenter = Datacenter::new(0);
    datacenter.run("SADD m a b c d");
    let mut drawn: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..400 {
        *drawn.entry(show(&datacenter.run("SRANDMEMBER m"))).or_default() += 1;
        *drawn.entry(show(&datacenter.run("SRANDMEMBER m 2"))).or_default() += 1;
    }
    assert_eq!(drawn.len(), 4 + 12, "four members, and twelve pairs of different ones: {drawn:?}");
    assert!(drawn.values().all(|count| (10..150).contains(count)), "{drawn:?}");
    let refused = datacenter.run("SRANDMEMBER m -9000000000000000000");
    assert!(refused.is_error(), "{}", show(&refused));
}

/// What is drawn of a set without a walk over it.
fn drawn(datacenter: &mut Datacenter, seed: u64, draw: Draw) -> Option<Vec<Column>> {
    let mut evaluation = Evaluation::reading(&mut datacenter.keyspace, datacenter.clock, View::Newest);
    evaluation.seed = seed;
    let drawn = evaluation.drawn(b"m", Kind::Set, draw).expect("the present");
    Some(drawn?.into_iter().map(|(column, _)| column).collect())
}

/// How many different elements an answer has.
fn elements(reply: &Reply) -> usize {
    let (Reply::Array(items) | Reply::Set(items)) = reply else { return 0 };
    items.iter().map(show).collect::<BTreeSet<_>>().len()
}

fn add_numbers(datacenter: &mut Datacenter, count: usize) {
    for number in 0..count {
        datacenter.run(&format!("SADD m {number}"));
    }
}

#[test]
fn of_a_large_set_a_few_places_are_looked_at() {
    let mut datacenter = Datacenter::new(0);
    add_numbers(&mut datacenter, 400);
    datacenter.run("SREM m 7 8 9");
    let mut drawn_often: BTreeMap<Column, usize> = BTreeMap::new();
    for seed in 0..400 {
        let several = drawn(&mut datacenter, seed, Draw { count: 50, different: true }).expect("no walk");
        assert_eq!(several.iter().collect::<BTreeSet<_>>().len(), 50, "all are different");
        several.into_iter().for_each(|column| *drawn_often.entry(column).or_default() += 1);
    }
    assert_eq!(drawn_often.len(), 397, "every member but those that were removed");
    assert!(drawn_often.values().all(|count| (15..100).contains(count)), "{drawn_often:?}");
    let many = drawn(&mut datacenter, 0, Draw { count: 2_000, different: false }).expect("no walk");
    assert_eq!(many.len(), 2_000);
    let again = drawn(&mut datacenter, 0, Draw { count: 2_000, different: false }).expect("no walk");
    assert_eq!(many, again, "an evaluation that is made again draws the same");
}

#[test]
fn a_sparse_set_and_most_of_a_set_are_walked_over() {
    let mut datacenter = Datacenter::new(0);
    add_numbers(&mut datacenter, 400);
    assert_eq!(drawn(&mut datacenter, 0, Draw { count: 201, different: true }), None);
    assert_eq!(elements(&datacenter.run("SRANDMEMBER m 390")), 390);
    (20..400).for_each(|number| drop(datacenter.run(&format!("SREM m {number}"))));
    assert_eq!(drawn(&mut datacenter, 0, Draw { count: 1, different: true }), None);
    assert_eq!(elements(&datacenter.run("SRANDMEMBER m 20")), 20);
    assert_eq!(elements(&datacenter.run("SPOP m 30")), 20);
    assert_eq!(show(&datacenter.run("EXISTS m")), "0");
}

#[test]
fn what_is_drawn_of_a_large_row_has_its_kind() {
    let mut datacenter = Datacenter::new(0);
    for number in 0..300 {
        datacenter.run(&format!("HSET h {number} of{number}"));
        datacenter.run(&format!("ZADD z {number} {number}"));
    }
    let Reply::Pairs(pairs) = datacenter.run("HRANDFIELD h -20 WITHVALUES") else { panic!("pairs") };
    assert!(
        pairs.iter().all(|(name, value)| show(value).trim_matches('"')[2..] == *show(name).trim_matches('"'))
    );
    let Reply::Pairs(pairs) = datacenter.run("ZRANDMEMBER z 20 WITHSCORES") else { panic!("pairs") };
    assert!(pairs.iter().all(|(name, score)| show(score) == show(name).trim_matches('"')));
    let mut left: BTreeSet<String> = (0..300).map(|number| number.to_string()).collect();
    for number in 0..300 {
        datacenter.run(&format!("SADD s {number}"));
    }
    for _ in 0..300 {
        assert!(left.remove(show(&datacenter.run("SPOP s")).trim_matches('"')), "each is popped once");
    }
    assert_eq!(show(&datacenter.run("SPOP s")), "nil");
    assert_eq!(
        show(&datacenter.run("SRANDMEMBER z")),
        "-WRONGTYPE Operation against a key holding the wrong kind of value"
    );
}

#[test]
fn other_kinds() {
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    let mut script = "HSET h f v => 1\n".to_owned();
    for command in [
        "SADD h a",
        "SREM h a",
        "SMEMBERS h",
        "SISMEMBER h a",
        "SMISMEMBER h a b",
        "SCARD h",
        "SRANDMEMBER h",
        "SSCAN h 0",
    ] {
        script.push_str(&format!("{command} => {wrong}\n"));
    }
    check(&script);
}

#[test]
fn removing_what_is_not_there_changes_nothing() {
    changes_nothing("SREM m a");
    changes_nothing("SADD m b\n SREM m a");
}
