//! Walks: complete while things change, and steady in what they ask of a client.

use super::{Datacenter, check, show};
use ensue_store::row::LARGE;
use ensue_types::Reply;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn whole_partition() {
    check(
        "DBSIZE => 0
         RANDOMKEY => nil
         KEYS * => []
         SCAN 0 => [\"0\" []]
         SET one 1 => OK
         SET two 2 PX 5 => OK
         HSET three f v => 1
         SADD four m => 1
         DBSIZE => 4
         KEYS *o* => [\"one\" \"two\" \"four\"]
         SCAN 0 COUNT 2 => [\"131072\" [\"one\" \"two\"]]
         SCAN 131072 COUNT 2 => [\"0\" [\"three\" \"four\"]]
         SCAN 0 TYPE hash => [\"0\" [\"three\"]]
         SCAN 0 TYPE STRING MATCH t* => [\"0\" [\"two\"]]
         SCAN 0 TYPE zset => [\"0\" []]
         SCAN 6553600000 => [\"0\" []]
         SCAN 131073 TYPE hash => [\"0\" [\"three\"]]
         + 5
         DBSIZE => 3
         KEYS * => [\"one\" \"three\" \"four\"]
         DEL three four => 2
         RANDOMKEY => [\"one\" 32]
         DEL one => 1
         RANDOMKEY => nil",
    );
}

#[test]
fn small_rows_are_returned_whole() {
    check(
        "HSCAN h 0 => [\"0\" []]
         HSET h a 1 b 2 ab 3 => 3
         HSCAN h 0 COUNT 1 => [\"0\" [\"a\" \"1\" \"ab\" \"3\" \"b\" \"2\"]]
         HSCAN h 0 MATCH a* => [\"0\" [\"a\" \"1\" \"ab\" \"3\"]]
         SADD m x y => 2
         SSCAN m 0 => [\"0\" [\"x\" \"y\"]]
         SSCAN m 0 MATCH z => [\"0\" []]
         SSCAN m x => -ERR invalid cursor",
    );
}

/// The cursor and the elements of a page.
fn page(reply: Reply) -> (String, Vec<String>) {
    let Reply::Array(parts) = reply else { panic!("a page is an array") };
    let [Reply::Bulk(cursor), Reply::Array(items)] = &parts[..] else { panic!("a cursor and elements") };
    let items = items.iter().map(|item| match item {
        Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => panic!("an element is a bulk string, not {}", show(other)),
    });
    (String::from_utf8_lossy(cursor).into_owned(), items.collect())
}

/// The key that `RANDOMKEY` chose.
fn drawn(datacenter: &mut Datacenter) -> String {
    match datacenter.run("RANDOMKEY") {
        Reply::Array(parts) => show(&parts[0]),
        other => panic!("a key and its weight, not {}", show(&other)),
    }
}

#[test]
fn every_key_is_drawn_about_as_often() {
    for (keys, every) in [(20, 1), (100, 1), (2_000, 20)] {
        let mut datacenter = Datacenter::new(0);
        for number in 0..keys {
            datacenter.run(&format!("SET k{number} v"));
        }
        // Free slots, expired keys and deleted ones lie between those that are left.
        for number in (0..keys).filter(|number| number % every != 0) {
            match number % 3 {
                0 => datacenter.run(&format!("PEXPIRE k{number} 1")),
                _ => datacenter.run(&format!("DEL k{number}")),
            };
        }
        datacenter.advance(5);
        let left = keys / every;
        let mut counts = BTreeMap::new();
        for _ in 0..left * 200 {
            *counts.entry(drawn(&mut datacenter)).or_insert(0) += 1;
        }
        let (least, most) = (counts.values().min().expect("some"), counts.values().max().expect("some"));
        assert_eq!(counts.len(), left, "of {keys} keys {left} are left");
        assert!((130..200).contains(least) && (200..275).contains(most), "{least} to {most} times");
    }
}

#[test]
fn a_walk_goes_on_after_a_restart_and_misses_nothing() {
    let mut datacenter = Datacenter::new(0);
    datacenter.keyspace.forget_past(datacenter.clock);
    let names: Vec<String> = (0..400).map(|number| format!("m{number}")).collect();
    names.iter().for_each(|name| drop(datacenter.run(&format!("SADD {name} a"))));
    for half in names.chunks(200) {
        datacenter.run(&format!("SADD large {}", half.join(" ")));
    }
    for begin in ["SCAN", "SSCAN large"] {
        let (cursor, first) = page(datacenter.run(&format!("{begin} 0 COUNT 200")));
        assert_ne!(cursor, "0", "{begin}");
        // What was written last is what is read first, as where others were there and are forgotten.
        let mut restarted = Datacenter::new(0);
        restarted.clock = datacenter.clock.next();
        restarted.keyspace.forget_past(restarted.clock);
        datacenter.log.iter().rev().for_each(|logged| restarted.receive(logged));
        let mut seen: BTreeSet<String> = first.into_iter().collect();
        let (next, more) = page(restarted.run(&format!("{begin} {cursor} COUNT 1000")));
        seen.extend(more);
        assert_eq!(next, "0", "{begin}");
        let missed: Vec<_> = names.iter().filter(|name| !seen.contains(*name)).collect();
        assert!(missed.is_empty(), "{begin}: {missed:?}");
    }
}

#[test]
fn a_walk_passes_over_what_is_no_longer_there() {
    let mut datacenter = Datacenter::new(0);
    for number in 0..5_000 {
        datacenter.run(&format!("SET k{number} v"));
    }
    for number in 0..4_990 {
        datacenter.run(&format!("DEL k{number}"));
    }
    let (_, steps) = walk(&mut datacenter, "SCAN", "", &[]);
    assert!(steps <= 51, "{steps} steps over 5000 rows of which 10 show something");
    for spent in datacenter.keyspace.take_spent() {
        datacenter.keyspace.collect(&spent);
    }
    let (found, steps) = walk(&mut datacenter, "SCAN", "", &[]);
    assert_eq!((found.len(), steps), (10, 1), "10 rows in 5000 slots");
}

/// Walks with `begin`, changing things between pages; answers everything that was returned, and the pages.
fn walk(
    datacenter: &mut Datacenter,
    begin: &str,
    end: &str,
    changes: &[String],
) -> (BTreeSet<String>, usize) {
    let mut cursor = "0".to_owned();
    let mut seen = BTreeSet::new();
    let mut changes = changes.iter();
    for pages in 1..10_000 {
        let (next, items) = page(datacenter.run(&format!("{begin} {cursor} {end}")));
        seen.extend(items);
        if next == "0" {
            return (seen, pages);
        }
        assert_ne!(next, cursor, "a walk goes on");
        cursor = next;
        for change in changes.by_ref().take(7) {
            datacenter.run(change);
        }
    }
    panic!("a walk ends");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_walk_returns_what_stays(
        steady in 1_usize..1500,
        count in 1_usize..200,
        changes in prop::collection::vec((any::<bool>(), 0_usize..1000), 0..400),
    ) {
        for (add, remove, begin) in [("SADD k", "SREM k", "SSCAN k"), ("SADD", "DEL", "SCAN")] {
            let mut datacenter = Datacenter::new(0);
            let member = if begin == "SCAN" { " m" } else { "" };
            for number in 0..steady {
                datacenter.run(&format!("{add} steady{number}{member}"));
                datacenter.run(&format!("{add} fleeting{number}{member}"));
            }
            let changes: Vec<_> = changes.iter().map(|(adds, number)| match adds {
                true => format!("{add} fleeting{number}{member}"),
                false => format!("{remove} fleeting{number}"),
            }).collect();
            let (seen, _) = walk(&mut datacenter, begin, &format!("COUNT {count}"), &changes);
            for number in 0..steady {
                let name = format!("steady{number}");
                prop_assert!(seen.contains(&name), "{begin} {name}");
            }
        }
    }
}

#[test]
fn a_walk_over_a_large_row_is_bounded() {
    let mut datacenter = Datacenter::new(0);
    for number in 0..20_000 {
        datacenter.run(&format!("SADD k {number}"));
    }
    let (seen, pages) = walk(&mut datacenter, "SSCAN k", "COUNT 1", &[]);
    assert_eq!(seen.len(), 20_000);
    assert!(pages <= 130, "{pages}");
}

#[test]
fn a_walk_over_a_large_row_shows_every_column_once_in_pages() {
    let mut datacenter = Datacenter::new(0);
    for number in 0..2_000 {
        datacenter.run(&format!("HSET h field{number} {number}"));
    }
    let (mut cursor, mut pages, mut shown) = ("0".to_owned(), 0, BTreeSet::new());
    loop {
        let (next, items) = page(datacenter.run(&format!("HSCAN h {cursor} COUNT 100")));
        assert_eq!(items.len(), 200, "a page of fields with their values");
        for pair in items.chunks(2) {
            assert_eq!(pair[0], format!("field{}", pair[1]));
            assert!(shown.insert(pair[0].clone()), "{} twice", pair[0]);
        }
        pages += 1;
        if next == "0" {
            break;
        }
        cursor = next;
    }
    assert_eq!((shown.len(), pages), (2_000, 20));
    for number in 0..LARGE {
        datacenter.run(&format!("HSET small field{number} {number}"));
    }
    let (cursor, items) = page(datacenter.run("HSCAN small 0 COUNT 1"));
    assert_eq!((cursor.as_str(), items.len()), ("0", 2 * LARGE), "a row that is not large is returned whole");
}

/// Many rows are not looked at one by one: they were counted as they changed.
#[test]
fn many_rows_are_counted_as_they_change() {
    let mut datacenter = Datacenter::new(0);
    let mut run = |line: &str| show(&datacenter.run(line));
    for group in 0..22 {
        let pairs: String = (0..500).map(|number| format!(" k{group}:{number} 1")).collect();
        run(&format!("MSET{pairs}"));
    }
    let steps = [
        ("DBSIZE", 11_000),
        ("DEL k0:0 k1:1 k2:2", 10_997),
        ("SET k0:1 2 PX 5", 10_997),
        ("INCR k0:2", 10_997),
        ("RPUSH list a b", 10_998),
        ("LPOP list 2", 10_997),
        ("HSET hash a 1 b 2", 10_998),
        ("HDEL hash a", 10_998),
        ("HDEL hash b", 10_997),
        ("SADD set a b", 10_998),
        ("EXPIRE set 100", 10_998),
        ("SET set a", 10_998),
        ("GETDEL set", 10_997),
        ("ZADD sorted 1 a", 10_998),
        ("XADD stream 1-1 a b", 10_999),
    ];
    for (line, shown) in steps {
        run(line);
        assert_eq!(run("DBSIZE"), shown.to_string(), "after {line}");
    }
}

#[test]
fn a_walk_over_what_is_left_of_many_ends_soon() {
    let mut datacenter = Datacenter::new(0);
    let members =
        |numbers: std::ops::Range<usize>| numbers.map(|number| format!(" m{number}")).collect::<String>();
    datacenter.run(&format!("SADD s{}", members(0..20_000)));
    datacenter.run(&format!("SREM s{}", members(5..19_995)));
    datacenter.collect();
    let (mut cursor, mut found, mut pages) = ("0".to_owned(), BTreeSet::new(), 0);
    loop {
        let (next, items) = page(datacenter.run(&format!("SSCAN s {cursor} COUNT 10")));
        found.extend(items);
        (cursor, pages) = (next, pages + 1);
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(found.len(), 10);
    assert!(pages < 200, "{pages} pages");
}
