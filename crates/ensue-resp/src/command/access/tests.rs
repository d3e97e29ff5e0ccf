//! What is done with keys, against the key specifications of Redis 7.2.

use super::*;
use crate::command::{TABLE, keys, lookup};

fn args(words: &str) -> Vec<Bytes> {
    words.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
}

fn shown(words: &str) -> String {
    let args = args(words);
    let spec = lookup(&args[0]).expect("a known command");
    let shown = key_accesses(spec, &args).map(|(place, access)| {
        let key = String::from_utf8_lossy(&args[place]);
        format!("{key}: {}", access.names().collect::<Vec<_>>().join(" "))
    });
    shown.collect::<Vec<_>>().join("; ")
}

#[test]
fn as_redis_has_them() {
    for (words, expected) in [
        ("get a", "a: RO access"),
        ("exists a b", "a: RO; b: RO"),
        ("set a b", "a: OW update"),
        ("set get get", "get: OW update"),
        ("set a b ex 10 GET", "a: RW access update"),
        ("setnx a b", "a: OW insert"),
        ("getdel a", "a: RW access delete"),
        ("del a b", "a: RM delete; b: RM delete"),
        ("copy a b", "a: RO access; b: OW update"),
        ("rename a b", "a: RW access delete; b: OW update"),
        ("renamenx a b", "a: RW access delete; b: OW insert"),
        ("lmove a b left right", "a: RW access delete; b: RW insert"),
        ("sort a", "a: RO access"),
        ("sort a by x* store b", "a: RO access; b: OW update"),
        ("sort a store b STORE c", "a: RO access; c: OW update"),
        ("georadius a 1 2 3 m store b storedist c", "a: RO access; b: OW update; c: OW update"),
        ("sinterstore a b c", "a: OW update; b: RO access; c: RO access"),
        ("zunionstore a 2 b c", "a: OW update; b: RO access; c: RO access"),
        ("zrangestore a b 0 -1", "a: OW update; b: RO access"),
        ("bitop and a b c", "a: OW update; b: RO access; c: RO access"),
        ("pfmerge a b", "a: RW access insert; b: RO access"),
        ("pfcount a", "a: RW access"),
        ("bitfield a get u4 0", "a: RO access"),
        ("bitfield a get u4 0 set u4 0 1", "a: RW access update"),
        ("bitfield a", "a: RO access"),
        ("incr a", "a: RW access update"),
        ("sadd a b", "a: RW insert"),
        ("xread streams a b 0 0", "a: RO access; b: RO access"),
        ("xreadgroup group g c count 1 STREAMS a b > >", "a: RO access; b: RO access"),
        ("xgroup create a g 0", "a: RW insert"),
        ("xgroup destroy a g", "a: RW delete"),
        ("eval x 2 a b c", "a: RW access update; b: RW access update"),
        ("eval_ro x 1 a", "a: RO access"),
        ("fcall f 1 a", "a: RW access update"),
        ("object encoding a", "a: RO"),
        ("memory usage a", "a: RO"),
        ("watch a", "a: RO"),
        ("zmpop 2 a b min", "a: RW access delete; b: RW access delete"),
        ("ping a", ""),
        ("object help", ""),
    ] {
        assert_eq!(shown(words), expected, "{words}");
    }
}

#[test]
fn places_are_those_of_the_keys() {
    let rests = [
        "1",
        "2 a b c d",
        "a 2 b c d",
        "a 1 2 3 m store b",
        "a by b get c store d store e",
        "streams a b 0 0",
    ];
    for spec in &TABLE {
        for rest in rests {
            let args = args(&format!("{} {rest}", spec.name));
            let placed: Vec<&Bytes> = key_places(spec, &args).map(|place| &args[place]).collect();
            assert_eq!(placed, keys(spec, &args).collect::<Vec<_>>(), "{} {rest}", spec.name);
        }
    }
}

#[test]
fn patterns_of_sort() {
    let found = |words: &str| {
        let args = args(words);
        let spec = lookup(&args[0]).expect("a known command");
        unplaced_keys(spec, &args).collect::<Vec<_>>()
    };
    assert_eq!(found("sort a by nosort get # get b limit 1 2"), []);
    assert_eq!(found("sort a BY v* GET w_*"), [(SortOption::By, 3), (SortOption::Get, 5)]);
    assert_eq!(found("sort_ro a limit by * get v*"), [(SortOption::Get, 6)]);
    assert_eq!(found("sort a by"), []);
    assert_eq!(found("get by v*"), []);
}
