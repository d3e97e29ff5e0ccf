//! Tests on whole files.

use super::*;
use crate::format::jsonl::read;
use crate::history::Key;
use crate::{Options, Property, Verdict, check};

fn history(lines: &[&str]) -> History {
    read(&mut lines.join("\n").as_bytes()).unwrap()
}

fn operations(history: &History) -> Vec<Operation> {
    history.transactions.iter().flat_map(|transaction| transaction.operations.clone()).collect()
}

#[test]
fn what_is_read_at_a_counter_are_counts() {
    let history = history(&[
        r#"{"session":"a","operations":[{"read":"n","value":null}]}"#,
        r#"{"session":"a","operations":[{"add":"n","delta":5},{"count":"n","value":5}]}"#,
        r#"{"session":"a","operations":[{"read":"n","value":"5"}]}"#,
    ]);
    let count = |value| Operation::Count { key: Key(0), value };
    assert_eq!(
        operations(&history),
        [count(0), Operation::Add { key: Key(0), delta: 5 }, count(5), count(5)]
    );
    assert_eq!(history.left_out, []);
}

#[test]
fn a_counter_that_is_set_is_left_out() {
    let history = history(&[
        r#"{"session":"a","operations":[{"write":"n","value":"5"}]}"#,
        r#"{"session":"a","operations":[{"add":"n","delta":5}]}"#,
        r#"{"session":"a","operations":[{"write":"x","value":"5"}]}"#,
    ]);
    assert_eq!(operations(&history).len(), 1);
    assert_eq!(history.left_out[0].key.as_deref(), Some("n"));
}

#[test]
fn what_is_left_out_takes_its_elements_along_and_is_not_passed() {
    let lines = [
        r#"{"session":"a","operations":[{"write":"x","value":"1"},{"write":"h[f]","value":"1"}]}"#,
        r#"{"session":"a","operations":[{"read":"x","value":"1"},{"read":"h[f]","value":"from nowhere"}]}"#,
        r#"{"event":"left-out","key":"h","reason":"RENAME"}"#,
    ];
    let history = history(&lines);
    assert_eq!(operations(&history).len(), 2);
    let report = check(&history, &Options::default());
    let verdict = report.verdict(Property::ReadYourWrites).unwrap();
    assert!(
        matches!(verdict, Verdict::Undecided(reason) if reason.text.contains("`h` is left out (RENAME)"))
    );
    let mut written = Vec::new();
    crate::format::jsonl::write(&history, &mut written).unwrap();
    assert_eq!(read(&mut &written[..]).unwrap().left_out[0].reason, "RENAME");
}

#[test]
fn where_all_keys_are_left_out_nothing_is_judged() {
    let history = history(&[
        r#"{"session":"a","operations":[{"write":"x","value":"1"},{"add":"n","delta":1}]}"#,
        r#"{"event":"left-out","key":"h","reason":"RENAME"}"#,
        r#"{"event":"left-out","reason":"FLUSHALL"}"#,
        r#"{"session":"a","operations":[{"read":"x","value":null},{"count":"n","value":0}]}"#,
        r#"{"session":"b","final":true,"operations":[{"read":"x","value":"2"}]}"#,
    ]);
    assert_eq!(operations(&history), []);
    for (property, verdict) in check(&history, &Options::default()).verdicts {
        let Verdict::Undecided(reason) = verdict else { panic!("{property}: {verdict:?}") };
        assert_eq!(reason.to_string(), "line 3: all keys are left out (FLUSHALL)", "{property}");
    }
}

#[test]
fn a_row_that_is_deleted_as_a_whole_is_left_out() {
    let history = history(&[
        r#"{"session":"a","operations":[{"write":"h[f]","value":"1"}]}"#,
        r#"{"session":"a","operations":[{"write":"h","value":null}]}"#,
        r#"{"session":"a","operations":[{"write":"hh[f]","value":"1"}]}"#,
    ]);
    assert_eq!(operations(&history).len(), 1);
    assert_eq!(history.left_out[0].key.as_deref(), Some("h"));
}

#[test]
fn the_row_of_an_element() {
    for (key, row) in [
        ("x[y]", Some("x")),
        ("x", None),
        (r"x\[y]", None),
        (r"x\[1][y\[2]]", Some(r"x\[1]")),
        ("[3]x", None),
        ("[3]x[y]", Some("[3]x")),
        ("[3][y]", Some("[3]")),
        ("[y]", None),
        (r"x\\[y]", Some(r"x\\")),
        ("]", None),
    ] {
        assert_eq!(row_of(key), row, "{key}");
    }
}
