//! Rows that are read whole, and what they lack.

use super::super::read;
use super::*;
use crate::{Options, Property, check};

/// The properties that are violated.
fn violated(text: &str) -> Vec<Property> {
    let history = read(&mut text.as_bytes()).expect("this is a history");
    let options = Options { properties: Property::DEFAULT.to_vec(), explain: false };
    check(&history, &options).violations().map(|(property, _)| property).collect()
}

#[test]
fn a_member_that_a_whole_set_lacks_is_lost() {
    let added = r#"{"session":"a","operations":[{"write":"s[x]","value":"in"}]}"#;
    let missing = r#"{"session":"a","operations":[{"row":"s"}]}"#;
    let there = r#"{"session":"a","operations":[{"read":"s[x]","value":"in"},{"row":"s"}]}"#;
    assert!(violated(&format!("{added}\n{missing}\n")).contains(&Property::ReadYourWrites));
    assert_eq!(violated(&format!("{added}\n{there}\n")), []);
    assert!(violated(&format!("{added}\n{there}\n{missing}\n")).contains(&Property::ReadYourWrites));
    assert_eq!(violated(&format!("{missing}\n{added}\n")), [], "it was not there yet");
    let other = r#"{"session":"b","operations":[{"row":"s"},{"row":"t"}]}"#;
    assert_eq!(violated(&format!("{added}\n{other}\n")), [], "another session need not have it");
}

#[test]
fn a_member_that_somebody_removes_may_be_missing() {
    let added =
        r#"{"session":"a","operations":[{"write":"s[x]","value":"in"},{"write":"s[y]","value":"in"}]}"#;
    let removed = r#"{"session":"b","operations":[{"write":"s[x]","value":null}]}"#;
    let without = |read: &str| format!(r#"{{"session":"a","operations":[{read}{{"row":"s"}}]}}"#);
    let y = r#"{"read":"s[y]","value":"in"},"#;
    assert_eq!(violated(&format!("{added}\n{removed}\n{}\n", without(y))), []);
    assert!(!violated(&format!("{added}\n{removed}\n{}\n", without(""))).is_empty());
}

#[test]
fn a_field_that_is_added_to_counts_nothing_where_a_whole_hash_lacks_it() {
    let added = r#"{"session":"a","operations":[{"add":"h[n]","delta":1}]}"#;
    let whole = r#"{"session":"a","operations":[{"row":"h"}]}"#;
    assert!(violated(&format!("{added}\n{whole}\n")).contains(&Property::Counters));
}

#[test]
fn what_was_written_after_the_answer_and_what_failed_says_nothing() {
    let read = r#"{"session":"b","start":1,"end":2,"operations":[{"row":"s"}]}"#;
    let later = r#"{"session":"a","start":3,"end":4,"operations":[{"write":"s[x]","value":"in"}]}"#;
    let failed = r#"{"session":"c","status":"failed","operations":[{"row":"s"}]}"#;
    let history = read_history(&format!("{read}\n{later}\n{failed}\n"));
    assert!(history.transactions.iter().all(|one| one.operations.len() <= 1), "{history:?}");
    assert!(history.transactions[0].operations.is_empty() && history.transactions[2].operations.is_empty());
}

fn read_history(text: &str) -> crate::History {
    read(&mut text.as_bytes()).expect("this is a history")
}

/// Who reads very many elements very often is told that it is too much, and at no more cost than that takes.
#[test]
fn rows_of_too_many_elements_are_left_out_and_cost_nothing_more() {
    let added = |row: &str, element: usize| {
        format!(r#"{{"session":"a","operations":[{{"write":"{row}[{element}]","value":"in"}}]}}"#)
    };
    let mut lines: Vec<String> =
        (0..10).flat_map(|element| [added("s", element), added("t", element)]).collect();
    for row in ["s", "t"] {
        let whole = format!(r#"{{"session":"b","operations":[{{"row":"{row}"}}]}}"#);
        lines.extend(vec![whole; 50]);
    }
    let mut history = read_history(&lines.join("\n"));
    let all = history.operation_count() - 20;
    assert_eq!((all, history.left_out.len()), (1000, 0));
    for one in &mut history.transactions {
        one.operations.retain(|operation| matches!(operation, Operation::Write { .. }));
    }
    let read = |(at, one): (usize, &crate::history::Transaction)| {
        let row = if at < 70 { "s" } else { "t" };
        let place = TransactionIndex(u32::try_from(at).expect("few"));
        one.operations.is_empty().then(|| RowRead { transaction: place, place: 0, row: row.into() })
    };
    let reads: Vec<RowRead> = history.transactions.iter().enumerate().filter_map(read).collect();
    assert_eq!(reads.len(), 100);
    let compared = expand_up_to(&mut history, &reads, 25);
    assert_eq!((compared, history.operation_count()), (30, 20 + 20));
    let left_out: Vec<_> = history.left_out.iter().map(|known| known.key.clone()).collect();
    assert_eq!(left_out, [Some("s".to_owned()), Some("t".to_owned())]);
}
