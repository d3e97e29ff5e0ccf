//! Few candidates are kept of many, and none that may be right is left out.

use super::super::tests::history;
use super::*;
use crate::Property;
use crate::builder::Builder;
use crate::fast::check;
use crate::fast::linearizable::writers;
use crate::fast::reads::Reads;
use crate::history::Transaction;
use crate::report::{Options, Verdict};
use crate::tables::Set;

/// A lock that is taken with `SET NX` and released with `DEL`, one after the other.
fn lock(cycles: u64) -> Builder {
    let mut builder = Builder::new();
    for cycle in 0..cycles {
        let token = cycle.to_string();
        let taken = vec![builder.read("lock", None), builder.write("lock", Some(&token))];
        let released = vec![builder.write("lock", None)];
        for (start_us, operations) in [(10 * cycle + 1, taken), (10 * cycle + 5, released)] {
            let session = builder.session("a");
            let end_us = start_us + 2;
            builder.add(Transaction { start_us, end_us, operations, ..Transaction::committed(session) });
        }
    }
    builder
}

fn judged(history: &History) -> Verdict {
    let options = Options { properties: vec![Property::Linearizable], explain: false };
    check(history, &options).verdict(Property::Linearizable).expect("it was asked for").clone()
}

fn narrowed(history: &History, ways_max: usize) -> Option<Narrowed> {
    Narrowed::new(history, &writers(history)[0], &Reads::find(history).ambiguous, ways_max)
}

#[test]
fn a_lock_that_is_taken_very_often_is_not_compared_with_all_deletes_each_time() {
    let history = lock(100_000).finish();
    let reads = Reads::find(&history);
    assert_eq!(reads.ambiguous.len(), 100_000);
    let lists: Set<*const u32> =
        reads.ambiguous.iter().map(|read| read.candidates.shared().as_ptr()).collect();
    assert_eq!(lists.len(), 1);
    let narrowed = narrowed(&history, 256).expect("one way");
    let kept: usize = narrowed.reads.iter().map(|(.., candidates)| candidates.len()).sum();
    assert_eq!((kept, narrowed.ways), (100_000, 1));
    assert_eq!(judged(&history), Verdict::Holds);
}

#[test]
fn a_lock_that_two_have_is_found_among_very_many_deletes() {
    let mut builder = lock(2_000);
    let operations = vec![builder.read("lock", None), builder.write("lock", Some("thief"))];
    let session = builder.session("b");
    // Between SET NX and DEL of the cycle before the last.
    let (start_us, end_us) = (19_984, 19_984);
    builder.add(Transaction { start_us, end_us, operations, ..Transaction::committed(session) });
    let Verdict::Violated(violation) = judged(&builder.finish()) else { panic!("two had the lock") };
    expect_test::expect!["the value (absent) of `lock` was read and replaced in one step twice: by #3996 and by #4000; so it is in each of 2001 ways to say which write each read saw"].assert_eq(&violation.summary);
}

#[test]
fn reads_that_may_have_seen_too_much_are_not_listed() {
    let many = (0..10).map(|number| format!("a 1 90 w7\nb 1 90 w{number}\nc 1 90 r7\n")).collect::<String>();
    let history = history(&many);
    assert!(narrowed(&history, 256).is_none());
    let few = super::super::tests::history("a 1 9 w1\n b 1 9 w1\n c 3 4 r1\n c 5 6 r1");
    assert!(narrowed(&few, 3).is_none());
    let found = narrowed(&few, 4).expect("four ways");
    assert_eq!((found.ways, found.fruitless), (4, 4));
    assert_eq!(found.way(1).iter().map(|read| read.writer).collect::<Vec<_>>(), [1, 0]);
}

/// The next of a row of numbers that the seed determines.
fn draw(state: &mut u64, bound: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % bound
}

#[test]
fn the_tree_finds_what_a_look_at_each_write_finds() {
    for seed in 0..500 {
        let state = &mut (seed + 1);
        let span = |transaction: u64, state: &mut u64| {
            let start = Time::from(draw(state, 30));
            let end = if draw(state, 5) == 0 { Time::MAX } else { start + Time::from(draw(state, 10)) };
            Span { transaction: u32::try_from(transaction).expect("few"), start, end }
        };
        let spans: Vec<Span> = (0..draw(state, 20)).map(|number| span(number, state)).collect();
        let tree = ByStart::new(spans.clone());
        for _ in 0..20 {
            let (since, until) = (Time::from(draw(state, 40)), Time::from(draw(state, 40)));
            let fits = |span: &&Span| span.start <= until && span.end >= since;
            let expected: Vec<u32> = spans.iter().filter(fits).map(|span| span.transaction).collect();
            assert_eq!(tree.within(since, until, 100), expected, "seed {seed}");
            assert_eq!(tree.within(since, until, 2).len(), expected.len().min(2), "seed {seed}");
        }
    }
}
