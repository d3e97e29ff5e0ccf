//! Recordings that are delay-once linearizable and such that are not, and what is said of them.

use crate::fast::check;
use crate::fast::linearizable::tests::history;
use crate::report::{Options, Report, Verdict};
use crate::{History, Property, explain};
use expect_test::{Expect, expect};

fn report(history: &History) -> Report {
    check(history, &Options { properties: vec![Property::DelayOnce], explain: true })
}

fn judged(history: &History) -> Verdict {
    report(history).verdict(Property::DelayOnce).expect("it was asked for").clone()
}

#[track_caller]
fn holds(text: &str, note: &str) {
    let report = report(&history(text));
    assert_eq!(report.verdict(Property::DelayOnce), Some(&Verdict::Holds));
    assert_eq!(report.notes, [note]);
}

#[track_caller]
fn fails(text: &str, expected: &Expect) {
    let history = history(text);
    let Verdict::Violated(violation) = judged(&history) else { panic!("it is not violated") };
    let lines = explain::lines(&history, &violation);
    expected.assert_eq(&format!("{}: {}\n{}\n", violation.pattern, violation.summary, lines.join("\n")));
}

#[test]
fn a_read_may_show_what_an_earlier_read_showed_though_it_was_replaced() {
    holds(
        "a 1 2 w1\n b 3 4 r1\n a 5 6 w2\n b 7 8 r1\n c 9 10 r1\n c 11 12 r2",
        "2 of 4 reads did not show the latest write that had ended before them, at most 2 of one register in a row",
    );
    holds(
        "a 1 2 x:w1\n b 3 4 x:r1 y:r-\n a 5 - x:w2\n b 7 8 x:r2",
        "0 of 3 reads did not show the latest write that had ended before them, at most 0 of one register in a row",
    );
}

#[test]
fn what_nobody_had_read_before_it_was_replaced_is_not_read_afterwards() {
    fails(
        "a 1 2 w1\n a 3 4 w2\n b 5 6 r1",
        &expect![[r#"
        NoOrder: no order of the writes of `x` explains its reads: it was 1 before it was 2, since line 1 ended before line 2 began; and it was 2 before it was 1, since line 2 ended before line 3 began, the first read of it
        line 1      a  write x=1
        line 2      a  write x=2
        line 3      b  read x=1

        line 1 ended at 2, before line 2 began at 3
        line 2 ended at 4, before line 3 began at 5
    "#]],
    );
}

#[test]
fn reads_never_go_back() {
    fails(
        "a 1 2 w1\n b 3 4 r1\n a 5 9 w2\n b 6 7 r2\n c 8 9 r1",
        &expect![[r#"
        NoOrder: no order of the writes of `x` explains its reads: it was 1 before it was 2, since line 1 ended before line 3 began; and it was 2 before it was 1, since line 4 ended before line 5 began; reads never go back
        line 1      a  write x=1
        line 3      a  write x=2
        line 4      b  read x=2
        line 5      c  read x=1

        line 1 ended at 2, before line 3 began at 5
        line 4 ended at 7, before line 5 began at 8
    "#]],
    );
    fails(
        "a 1 2 w1\n b 3 4 r1\n b 6 7 r-",
        &expect![[r#"
        NoOrder: no order of the writes of `x` explains its reads: it was (absent) before all; and it was 1 before it was (absent), since line 1 ended before line 3 began, the first read of it
        line 1      a  write x=1
        line 3      b  read x=(absent)

        line 1 ended at 2, before line 3 began at 6
    "#]],
    );
}

#[test]
fn three_values_may_each_have_to_come_before_the_next() {
    fails(
        "a 1 99 w1\n b 1 99 w2\n c 1 99 w3\n d 10 11 r1\n d 12 13 r2\n d 14 15 r3\n d 16 17 r1",
        &expect![[r#"
            NoOrder: no order of the writes of `x` explains its reads: it was 1 before it was 2, since line 4 ended before line 5 began, the first read of it; and it was 2 before it was 1, since line 5 ended before line 7 began; reads never go back
            line 4      d  read x=1
            line 5      d  read x=2
            line 7      d  read x=1

            line 4 ended at 11, before line 5 began at 12
            line 5 ended at 13, before line 7 began at 16
        "#]],
    );
}

#[test]
fn nothing_is_read_before_its_write_began() {
    fails(
        "a 1 2 r1\n b 3 4 w1",
        &expect![[r#"
        ReadBeforeWrite: `x` was read as 1 (line 1) before anybody began to write that (line 2)
        line 1      a  read x=1
        line 2      b  write x=1

        line 1 ended at 2, before line 2 began at 3
        line 2 comes before line 1, which read its `x`
    "#]],
    );
}

#[test]
fn what_depends_on_reads_that_are_not_known_is_undecided() {
    let undecided = |history: &History| match judged(history) {
        Verdict::Undecided(reason) => reason.to_string(),
        verdict => panic!("it is {verdict:?}"),
    };
    assert_eq!(
        undecided(&history("a 1 2 w1\n a 3 4 w2\n a 5 6 w1\n b 7 8 r1")),
        "a value of `x` that was read was written more than once"
    );
    assert_eq!(
        undecided(&history("a 1 2 w1\n b 0 0 r1")),
        "line 2: an operation on `x` has no `start` or no `end`"
    );
    assert_eq!(undecided(&history("a 1 2 w1\n b 5 4 r1")), "`x`: an operation ended before it began");
    let stale = history("a 1 2 w1\n a 3 4 w2\n b 5 6 r1");
    let broken_off = History { truncated_at_line: Some(4), ..stale };
    assert_eq!(undecided(&broken_off), "line 4: no order explains the reads, but the recording broke off");
    assert!(matches!(judged(&history("a 1 2 w1")), Verdict::NotApplicable(_)));
    let report = check(&broken_off, &Options::default());
    assert_eq!((report.verdict(Property::DelayOnce), report.notes.len()), (None, 0));
}

/// The reads of a register without an order are neither stale nor fresh, and a part of all is no figure.
#[test]
fn stale_reads_are_counted_only_where_nothing_is_violated() {
    let stale = "a 1 2 x:w1\n a 3 9 x:w2\n b 4 5 x:r1\n b 6 7 x:r1\n";
    let broken = "a 1 2 y:w1\n b 3 4 y:r1\n a 5 9 y:w2\n b 6 7 y:r2\n c 8 9 y:r1\n";
    for (text, notes) in [(stale.to_owned(), 1), (format!("{stale}{broken}"), 0)] {
        let options = Options { properties: vec![Property::DelayOnce], explain: false };
        let report = check(&history(&text), &options);
        assert_eq!(report.violations().count(), 1 - notes);
        assert_eq!(report.notes.len(), notes, "{:?}", report.notes);
    }
}
