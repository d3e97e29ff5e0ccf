//! What becomes of keys that differ, by what they are when they are read again.

use super::*;
use crate::diff::digest::Secret;
use crate::diff::fake::{list, side, side_with};
use crate::diff::reader::Scope;

const ROUNDS: u32 = 2;

/// A server of strings; each has a value for every time that it is read, the last one again and again.
fn strings(name: &'static str, values: &[(&str, &[&str])]) -> Side {
    let mut values: Vec<(String, Vec<String>)> = values
        .iter()
        .map(|(key, texts)| (key.to_string(), texts.iter().rev().map(|text| text.to_string()).collect()))
        .collect();
    side(name, move |command| {
        let words: Vec<&str> = command.split(' ').collect();
        let text = words
            .get(1)
            .and_then(|key| values.iter_mut().find(|(name, _)| name == key))
            .map(|(_, texts)| texts);
        match (words[0], text) {
            ("DBSIZE", _) => Reply::Integer(values.len() as i64),
            ("SCAN", _) => {
                let names: Vec<&str> = values.iter().map(|(name, _)| name.as_str()).collect();
                Reply::Array(vec![Reply::bulk("0"), list(&names)])
            }
            ("EXISTS", text) => Reply::Integer(i64::from(text.is_some())),
            ("TYPE", text) => Reply::Status(if text.is_some() { "string" } else { "none" }.into()),
            ("STRLEN", Some(texts)) => Reply::Integer(texts.last().unwrap().len() as i64),
            ("GET" | "GETRANGE", Some(texts)) => {
                let text = texts.last().unwrap().clone();
                if texts.len() > 1 {
                    texts.pop();
                }
                Reply::bulk(text)
            }
            ("PEXPIRETIME", Some(_)) => Reply::Integer(-1),
            ("PEXPIRETIME", None) => Reply::Integer(-2),
            ("HPEXPIRETIME", _) => Reply::Error("ERR unknown command".into()),
            _ => Reply::Status("OK".into()),
        }
    })
}

fn compared(left: &[(&str, &[&str])], right: &[(&str, &[&str])]) -> Tally {
    let settings =
        Settings { pattern: None, rounds: ROUNDS, pause: Duration::ZERO, tolerance_ms: 0, shown: 9 };
    let (secret, scope) = (Secret::draw(), Scope { deadlines: true, field_deadlines: false });
    let reader = |side| Reader { side, secret: secret.clone(), scope };
    let mut comparison = Comparison {
        left: reader(strings("left", left)),
        right: reader(strings("right", right)),
        settings: &settings,
        pace: Pace::new(None),
        progress: Progress::new(),
        stop: Stop::never(),
    };
    comparison.keyspaces(0, 0, false).unwrap()
}

fn check(left: &[(&str, &[&str])], right: &[(&str, &[&str])], numbers: [(&str, u64); 3]) {
    let tally = compared(left, right);
    let json = crate::diff::report::Report {
        left: String::new(),
        right: String::new(),
        tallies: vec![tally],
        changing_max: 0,
    }
    .json();
    for (name, number) in numbers {
        assert_eq!(json["keyspaces"][0][name], number, "{name} of {left:?} and {right:?}");
    }
}

#[test]
fn what_arrives_late_is_equal() {
    let numbers = [("equal", 1), ("changing", 0), ("other_value", 0)];
    check(&[("k", &["1"])], &[("k", &["1"])], numbers);
    check(&[("k", &["1"])], &[("k", &["0", "1"])], numbers);
    check(&[("k", &["1"])], &[("k", &["0", "0", "1"])], numbers);
}

#[test]
fn what_stands_still_is_different() {
    check(&[("k", &["1"])], &[("k", &["0"])], [("equal", 0), ("changing", 0), ("other_value", 1)]);
    check(&[("k", &["1"])], &[("l", &["1"])], [("equal", 0), ("only_left", 1), ("only_right", 1)]);
}

#[test]
fn what_goes_on_changing_is_neither() {
    let numbers = [("equal", 0), ("changing", 1), ("other_value", 0)];
    check(&[("k", &["1", "3", "5"])], &[("k", &["0", "2", "4"])], numbers);
    check(&[("k", &["9"])], &[("k", &["0", "1", "1"])], numbers);
}

#[test]
fn what_a_server_says_moves_no_cursor() {
    let settings = Settings { pattern: None, rounds: 0, pause: Duration::ZERO, tolerance_ms: 0, shown: 9 };
    let answers = [
        ("SELECT 0", Reply::Status("OK".into())),
        ("DBSIZE", Reply::Integer(1)),
        ("SCAN 0 COUNT 500", Reply::Array(vec![Reply::bulk("0"), list(&["k"])])),
        ("TYPE k", Reply::Error("NOPERM \x1b[2J".into())),
        ("EXISTS k", Reply::Integer(1)),
    ];
    let scope = Scope { deadlines: false, field_deadlines: false };
    let reader = |name| Reader { side: side_with(name, &answers), secret: Secret::draw(), scope };
    let (pace, progress, stop) = (Pace::new(None), Progress::new(), Stop::never());
    let (left, right) = (reader("left"), reader("right"));
    let mut comparison = Comparison { left, right, settings: &settings, pace, progress, stop };
    let tally = comparison.keyspaces(0, 0, true).unwrap();
    assert_eq!(tally.differences[0].words, "left answers: NOPERM ?[2J");
}
