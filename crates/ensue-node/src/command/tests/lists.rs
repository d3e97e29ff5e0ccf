//! Lists.

use super::convergence::all_writes;
use super::{Datacenter, changes_nothing, check, show};
use proptest::prelude::*;
use std::collections::VecDeque;

#[test]
fn ends() {
    check(
        "RPUSH l a b => 2
         LPUSH l c d => 4
         LRANGE l 0 -1 => [\"d\" \"c\" \"a\" \"b\"]
         TYPE l => list
         LLEN l => 4
         LLEN none => 0
         LPUSHX none a => 0
         RPUSHX none a => 0
         EXISTS none => 0
         LPUSHX l e => 5
         RPUSHX l f g => 7
         LPOP l => \"e\"
         RPOP l => \"g\"
         LPOP l 2 => [\"d\" \"c\"]
         RPOP l 2 => [\"f\" \"b\"]
         LPOP l 0 => []
         RPOP l 9 => [\"a\"]
         EXISTS l => 0
         LPOP l => nil
         LPOP l 1 => nil-array
         LPOP l 0 => nil-array
         LPOP l -1 => -ERR value is out of range, must be positive
         LPOP l x => -ERR value is out of range, must be positive
         LPOP l 1 2 => -ERR wrong number of arguments for 'lpop' command",
    );
}

#[test]
fn places() {
    check(
        "RPUSH l a b c d e => 5
         LINDEX l 0 => \"a\"
         LINDEX l -1 => \"e\"
         LINDEX l 5 => nil
         LINDEX l -6 => nil
         LINDEX l -9223372036854775808 => nil
         LINDEX l 9223372036854775807 => nil
         LINDEX none 0 => nil
         LINDEX l x => -ERR value is not an integer or out of range
         LRANGE l 1 3 => [\"b\" \"c\" \"d\"]
         LRANGE l -2 100 => [\"d\" \"e\"]
         LRANGE l -100 0 => [\"a\"]
         LRANGE l 3 1 => []
         LRANGE none 0 -1 => []
         LSET l 1 B => OK
         LSET l -1 E => OK
         LSET l 5 x => -ERR index out of range
         LSET l -6 x => -ERR index out of range
         LSET none 0 x => -ERR no such key
         LRANGE l 0 -1 => [\"a\" \"B\" \"c\" \"d\" \"E\"]
         LTRIM l 1 -2 => OK
         LRANGE l 0 -1 => [\"B\" \"c\" \"d\"]
         LTRIM l 5 9 => OK
         EXISTS l => 0
         LTRIM none 0 1 => OK",
    );
}

#[test]
fn by_value() {
    check(
        "RPUSH l a b c a b c a => 7
         LINSERT l BEFORE c x => 8
         LINSERT l after x y => 9
         LINSERT l BEFORE none z => -1
         LINSERT none BEFORE a z => 0
         LINSERT l AT a z => -ERR syntax error
         LRANGE l 0 -1 => [\"a\" \"b\" \"x\" \"y\" \"c\" \"a\" \"b\" \"c\" \"a\"]
         LPOS l a => 0
         LPOS l a RANK 2 => 5
         LPOS l a RANK -1 => 8
         LPOS l a RANK -2 COUNT 2 => [5 0]
         LPOS l a COUNT 0 => [0 5 8]
         LPOS l a COUNT 0 MAXLEN 6 => [0 5]
         LPOS l a RANK -1 COUNT 0 MAXLEN 4 => [8 5]
         LPOS l none => nil
         LPOS l none COUNT 1 => []
         LPOS none a => nil
         LPOS none a COUNT 1 => []
         LPOS l a RANK 0 => -ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list
         LPOS l a RANK -9223372036854775808 => -ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
         LPOS l a COUNT -1 => -ERR COUNT can't be negative
         LPOS l a MAXLEN -1 => -ERR MAXLEN can't be negative
         LPOS l a MAXLEN => -ERR syntax error
         LREM l 1 a => 1
         LREM l -1 b => 1
         LREM none 0 a => 0
         LRANGE l 0 -1 => [\"b\" \"x\" \"y\" \"c\" \"a\" \"c\" \"a\"]
         LREM l 0 c => 2
         LREM l -5 a => 2
         LREM l 0 b => 1
         LREM l 0 x => 1
         LREM l 0 y => 1
         EXISTS l => 0",
    );
}

#[test]
fn moves() {
    check(
        "RPUSH l a b c => 3
         LMOVE l m LEFT RIGHT => \"a\"
         LMOVE l m RIGHT LEFT => \"c\"
         RPOPLPUSH l m => \"b\"
         EXISTS l => 0
         RPOPLPUSH l m => nil
         LMOVE l m LEFT UP => -ERR syntax error
         LRANGE m 0 -1 => [\"b\" \"c\" \"a\"]
         RPOPLPUSH m m => \"a\"
         LMOVE m m LEFT LEFT => \"a\"
         LRANGE m 0 -1 => [\"a\" \"b\" \"c\"]
         LMPOP 2 l m RIGHT COUNT 2 => [\"m\" [\"c\" \"b\"]]
         LMPOP 1 m LEFT => [\"m\" [\"a\"]]
         LMPOP 1 m LEFT => nil-array
         LMPOP 0 m LEFT => -ERR numkeys should be greater than 0
         LMPOP 1 m LEFT COUNT 0 => -ERR count should be greater than 0
         LMPOP 1 m UP => -ERR syntax error
         LMPOP 2 m LEFT => -ERR syntax error
         RPUSH o a => 1
         EXPIRE o 100 => 1
         LMOVE o o LEFT RIGHT => \"a\"
         TTL o => 100
         LMOVE o p LEFT RIGHT => \"a\"
         TTL p => -1",
    );
}

#[test]
fn other_kinds() {
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    let mut script = "SET s v => OK\nRPUSH l a => 1\nZADD z 1 a => 1\n".to_owned();
    for command in [
        "LPUSH s a",
        "RPUSHX z a",
        "LPOP s",
        "RPOP s 1",
        "LMPOP 2 none s LEFT",
        "LLEN s",
        "LINDEX s 0",
        "LRANGE z 0 -1",
        "LSET s 0 a",
        "LINSERT s BEFORE a b",
        "LREM s 0 a",
        "LTRIM s 0 0",
        "LPOS s a",
        "LMOVE s l LEFT LEFT",
        "LMOVE l s LEFT LEFT",
        "RPOPLPUSH l z",
        "GET l",
        "HGET l a",
        "SADD l a",
        "ZRANGE l 0 -1",
        "ZUNION 1 l",
    ] {
        script.push_str(&format!("{command} => {wrong}\n"));
    }
    script.push_str("LRANGE l 0 -1 => [\"a\"]\nSET l v => OK\nGET l => \"v\"\nLMOVE none s LEFT LEFT => nil");
    check(&script);
}

#[test]
fn a_deadline_ends_all_of_it() {
    check(
        "RPUSH l a b => 2
         PEXPIRE l 10 => 1
         LPOP l => \"a\"
         PTTL l => 10
         + 20
         LLEN l => 0
         LRANGE l 0 -1 => []
         RPUSH l c => 1
         LRANGE l 0 -1 => [\"c\"]
         TTL l => -1",
    );
}

#[test]
fn nothing_to_do_changes_nothing() {
    changes_nothing("LPUSHX l a");
    changes_nothing("RPUSH l a\nLREM l 0 b");
    changes_nothing("RPUSH l a\nLTRIM l 0 -1");
    changes_nothing("RPUSH l a\nLPOP l 0");
    changes_nothing("RPUSH l a\nLINSERT l BEFORE b c");
    changes_nothing("LMOVE l m LEFT LEFT");
}

#[test]
fn one_transaction_names_each_element_anew() {
    check(
        "RPUSH l a; LPOP l; RPUSH l b; LPUSH l c; RPUSH l d; LRANGE l 0 -1 => 1; \"a\"; 1; 2; 3; [\"c\" \"b\" \"d\"]
         LRANGE l 0 -1 => [\"c\" \"b\" \"d\"]",
    );
}

/// Two datacenters begin alike and then act without each other; both end the same.
#[track_caller]
fn meets(common: &str, first: &str, second: &str, ends: &str) {
    let mut datacenters = [Datacenter::new(0), Datacenter::new(1)];
    common.split(';').for_each(|line| drop(datacenters[0].run(line)));
    let begun = all_writes(&datacenters);
    begun.iter().for_each(|logged| datacenters[1].receive(logged));
    first.split(';').for_each(|line| drop(datacenters[0].run(line)));
    // The second acts later, so that its stamps are the higher ones.
    datacenters[1].advance(5);
    second.split(';').for_each(|line| drop(datacenters[1].run(line)));
    let writes = all_writes(&datacenters);
    for datacenter in &mut datacenters {
        writes.iter().rev().for_each(|logged| datacenter.receive(logged));
        let shown = show(&datacenter.run("LRANGE l 0 -1"));
        assert_eq!(shown.replace('"', ""), format!("[{ends}]"), "{first} beside {second}");
    }
}

#[test]
fn concurrent_changes() {
    meets("GET x", "RPUSH l a b;RPUSH l c", "RPUSH l d;RPUSH l e f", "a b c d e f");
    meets("GET x", "LPUSH l a b;LPUSH l c", "LPUSH l d;LPUSH l e f", "c b a f e d");
    meets("RPUSH l x", "RPUSH l a;RPUSH l b", "RPUSH l d;RPUSH l e", "x a b d e");
    meets("RPUSH l x", "LPUSH l a;LPUSH l b", "LPUSH l d;LPUSH l e", "e d b a x");
    meets(
        "RPUSH l x y",
        "LINSERT l AFTER x a;LINSERT l AFTER a b",
        "LINSERT l BEFORE y c;LINSERT l BEFORE y d",
        "x a b c d y",
    );
    // Both answer the first element, and it is gone once.
    meets("RPUSH l a b c", "LPOP l", "LPOP l", "b c");
    meets("RPUSH l a b c", "LPOP l", "RPOP l", "b");
    meets("RPUSH l a b", "RPOP l;RPUSH l c", "RPOP l", "a c");
    meets("RPUSH l a b", "DEL l", "RPUSH l c", "c");
    meets("RPUSH l a b", "LSET l 0 x", "LSET l 0 y", "y b");
    meets("RPUSH l a b", "LSET l 0 x", "LPOP l", "x b");
    meets("RPUSH l a b", "LPOP l", "SET k v;LSET l 0 x", "x b");
    meets("RPUSH l a b", "LREM l 0 a", "RPUSH l a", "b a");
    meets("RPUSH l a b c", "LTRIM l 1 1", "LINSERT l BEFORE c x", "b x");
    // Each moves it, so it is there twice.
    meets("RPUSH l a b", "RPOPLPUSH l l", "RPOPLPUSH l l", "b b a");
}

/// Every look at a list says the same as a list of its own.
fn looks_like(datacenter: &mut Datacenter, model: &VecDeque<String>) {
    let shown = |items: &mut dyn Iterator<Item = &String>| {
        format!("[{}]", items.map(|item| format!("\"{item}\"")).collect::<Vec<_>>().join(" "))
    };
    assert_eq!(show(&datacenter.run("LRANGE l 0 -1")), shown(&mut model.iter()));
    assert_eq!(show(&datacenter.run("LLEN l")), model.len().to_string());
    for place in (0..model.len()).step_by(model.len() / 9 + 1) {
        assert_eq!(show(&datacenter.run(&format!("LINDEX l {place}"))), format!("\"{}\"", model[place]));
        let range = shown(&mut model.iter().skip(place).take(4));
        assert_eq!(show(&datacenter.run(&format!("LRANGE l {place} {}", place + 3))), range);
    }
}

/// What a command line makes of a list.
fn apply(model: &mut VecDeque<String>, which: u8, number: usize) -> String {
    let value = format!("v{}", number % 50);
    let place = number % (model.len() + 1);
    match which {
        0 | 1 => {
            model.push_back(value.clone());
            format!("RPUSH l {value}")
        }
        2 | 3 => {
            model.push_front(value.clone());
            format!("LPUSH l {value}")
        }
        4 => {
            model.pop_front();
            "LPOP l".to_owned()
        }
        5 => {
            model.pop_back();
            "RPOP l".to_owned()
        }
        6 => {
            if let Some(there) = model.get_mut(place) {
                *there = value.clone();
            }
            format!("LSET l {place} {value}")
        }
        7 => {
            let pivot = format!("v{}", number % 7);
            if let Some(place) = model.iter().position(|item| *item == pivot) {
                model.insert(place, value.clone());
            }
            format!("LINSERT l BEFORE {pivot} {value}")
        }
        8 => {
            let pivot = format!("v{}", number % 7);
            if let Some(place) = model.iter().position(|item| *item == pivot) {
                model.insert(place + 1, value.clone());
            }
            format!("LINSERT l AFTER {pivot} {value}")
        }
        9 => {
            model.retain(|item| *item != value);
            format!("LREM l 0 {value}")
        }
        10 => {
            if let Some(moved) = model.pop_back() {
                model.push_front(moved);
            }
            "RPOPLPUSH l l".to_owned()
        }
        _ => {
            model.truncate((model.len() / 2).max(place + 1));
            format!("LTRIM l 0 {}", (model.len().max(1)) - 1)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_list_is_a_list(
        versions in any::<bool>(),
        begun in prop::sample::select(vec![0_usize, 5, 600]),
        steps in prop::collection::vec((0_u8..12, 0_usize..1000, any::<bool>()), 1..80),
    ) {
        let mut first = if versions { Datacenter::with_versions(0) } else { Datacenter::new(0) };
        let mut second = Datacenter::new(1);
        let mut model: VecDeque<String> = (0..begun).map(|number| format!("v{}", number % 50)).collect();
        let values: Vec<&str> = model.iter().map(String::as_str).collect();
        if begun > 0 {
            first.run(&format!("RPUSH l {}", values.join(" ")));
        }
        looks_like(&mut first, &model);
        let mut received = 0;
        for (which, number, moves_over) in steps {
            // Now and then the other datacenter goes on, when it has everything.
            if moves_over {
                for logged in &first.log[received..] {
                    second.receive(logged);
                }
                received = first.log.len();
                let before = second.log.len();
                second.run(&apply(&mut model, which, number));
                for logged in &second.log[before..] {
                    first.receive(logged);
                }
            } else {
                first.run(&apply(&mut model, which, number));
            }
            looks_like(&mut first, &model);
        }
        first.collect();
        looks_like(&mut first, &model);
    }

    /// What was hidden from a writer is neither replaced nor moved.
    #[test]
    fn hidden_elements_keep_their_names(
        steps in prop::collection::vec((any::<bool>(), any::<bool>(), any::<bool>()), 1..40),
    ) {
        let mut datacenter = Datacenter::with_versions(0);
        let mut left = 0;
        for (number, (at_end, pops, hides)) in steps.into_iter().enumerate() {
            let line = match (at_end, pops) {
                (true, true) => "RPOP l".to_owned(),
                (false, true) => "LPOP l".to_owned(),
                (true, false) => format!("RPUSH l {number}"),
                (false, false) => format!("LPUSH l {number}"),
            };
            let answer = show(&datacenter.run(&line));
            left += i64::from(!pops) - i64::from(pops && answer != "nil");
            if hides && !pops {
                datacenter.hidden.extend(datacenter.log.last().map(|logged| logged.write.operation));
            }
        }
        datacenter.hidden.clear();
        prop_assert_eq!(show(&datacenter.run("LLEN l")), left.to_string());
    }
}
