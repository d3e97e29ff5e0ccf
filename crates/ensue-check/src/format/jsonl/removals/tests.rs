//! Whole files with renames and flushes, and what is said of them.

use super::*;
use crate::format::jsonl::read as read_file;
use crate::report::Overall;
use crate::{Options, Property, Verdict, check};

/// A session's transactions, one a line: `a r x 1`, `a w x 1`, `a mv x y`, `a flush 0`; several operations with `;`,
/// and `?` behind the session where no answer came, `dc1@5-6` where place and times are known.
fn history(text: &str) -> History {
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut words = line.trim().splitn(2, ' ');
        let (who, what) = (words.next().unwrap(), words.next().unwrap());
        let (who, place) = who.split_once(',').unwrap_or((who, ""));
        let (who, end) = who.strip_suffix('?').map_or((who, ""), |who| (who, ",\"end\":null"));
        let times = place.split_once('@').map_or(String::new(), |(datacenter, times)| {
            let (start, end) = times.split_once('-').unwrap();
            format!(",\"datacenter\":\"{datacenter}\",\"start\":{start},\"end\":{end}")
        });
        let operations: Vec<String> = what.split("; ").map(operation).collect();
        lines
            .push(format!("{{\"session\":\"{who}\"{end}{times},\"operations\":[{}]}}", operations.join(",")));
    }
    read_file(&mut lines.join("\n").as_bytes()).unwrap()
}

fn operation(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let value = |text: &str| if text == "nil" { "null".to_owned() } else { format!("\"{text}\"") };
    match words[..] {
        ["r", key, read] => format!("{{\"read\":\"{key}\",\"value\":{}}}", value(read)),
        ["w", key, written] => format!("{{\"write\":\"{key}\",\"value\":{}}}", value(written)),
        ["add", key, delta] => format!("{{\"add\":\"{key}\",\"delta\":{delta}}}"),
        ["mv", from, to] => format!("{{\"rename\":\"{from}\",\"to\":\"{to}\"}}"),
        ["flush", keyspace] => format!("{{\"flush\":\"{keyspace}\"}}"),
        _ => panic!("{text}"),
    }
}

fn overall(text: &str) -> Overall {
    check(&history(text), &Options::default()).overall()
}

#[track_caller]
fn violated(text: &str, property: Property) {
    let report = check(&history(text), &Options::default());
    let found = report
        .verdicts
        .iter()
        .any(|(one, verdict)| *one == property && matches!(verdict, Verdict::Violated(_)));
    assert!(found, "{:?}", report.verdicts);
}

/// Why each key is left out.
fn left_out(text: &str) -> Vec<String> {
    let history = history(text);
    let said = |known: &LeftOut| format!("{}: {}", known.key.clone().unwrap_or_default(), known.reason);
    history.left_out.iter().map(said).collect()
}

#[test]
fn a_renamed_value_is_read_written_and_deleted() {
    let right = "a w x 1\na mv x y\na r y 1\nb r y 1";
    let done = history(right).transactions[1].clone();
    let (x, y) = (Key(0), Key(1));
    let value = Value(1);
    let expected = [
        Operation::Read { key: x, value },
        Operation::Write { key: y, value },
        Operation::Write { key: x, value: Value::ABSENT },
    ];
    assert_eq!(done.operations, expected);
    assert_eq!(overall(right), Overall::Holds);
    violated("a w x 1\na mv x y\na r y nil", Property::ReadYourWrites);
    violated("a w x 1\na mv x y\na r x 1", Property::ReadYourWrites);
    // Whoever sees the value under its new name has its past.
    violated("a w z 5\na w x 1\na mv x y\nb r y 1\nb r z nil", Property::CausalConvergent);
    // What failed moved nothing.
    let failed = r#"{"session":"a","status":"failed","operations":[{"rename":"x","to":"y"}]}"#;
    assert_eq!(read_file(&mut failed.as_bytes()).unwrap().transactions[0].operations, []);
}

#[test]
fn which_value_was_renamed_is_known_by_its_readers() {
    let text = "a w x 1\na w x 2\na mv x y\nb r y 2";
    assert_eq!(left_out(text), [""; 0]);
    assert_eq!(overall(text), Overall::Holds);
    violated(&format!("{text}\na r y nil"), Property::ReadYourWrites);
    violated(&text.replace("r y 2", "r y 3"), Property::ReadIntegrity);
    // Renamed twice: the reader of the last name tells of the one between.
    let twice = "a w x 1\na w x 2\na mv x y\nb mv y z\nc r z 2";
    assert_eq!(left_out(twice), [""; 0]);
    violated(&format!("{twice}\nc r z nil"), Property::MonotonicReads);
    // Its own transaction has written it.
    let own = "a w x 1\na w x 2; mv x y\nb r y 1";
    violated(own, Property::ReadIntegrity);
    // Nobody read it: whatever it was, it replaced what was there.
    let unseen = "a w y 9\na w x 1\na w x 2\na mv x y";
    assert_eq!(left_out(unseen), [""; 0]);
    violated(&format!("{unseen}\na r y 9"), Property::ReadYourWrites);
}

#[test]
fn what_cannot_be_told_is_left_out_with_its_reason() {
    let told = "which value was renamed to it cannot be told";
    assert_eq!(left_out("a w x 1\na w x 2\na mv x y\nb r y 1\nc r y 2"), [format!("y: {told}")]);
    assert_eq!(left_out("a w x 1\na w x 2\na w y 2\na mv x y\nb r y 2"), [format!("y: {told}")]);
    assert_eq!(
        left_out("a w x 1\na w x 2\na mv x y\na w v 1\na w v 2\na mv v y\nb r y 2"),
        [format!("y: {told}")]
    );
    assert_eq!(left_out("a mv x y\na r y 1"), ["y: what was renamed to it was not recorded"]);
    let chain = left_out("a w x 1\na w x 2\na mv x y\nb r y 1\nc r y 2\na mv y z");
    assert_eq!(chain[1], "z: `y` was renamed to it, and is left out");
    let counter = left_out("a add x 1\na mv x y");
    assert!(counter.contains(&"x: a counter was renamed, or something to it".to_owned()), "{counter:?}");
    assert!(counter.contains(&"y: `x` was renamed to it, and is left out".to_owned()), "{counter:?}");
    let row = left_out("a w x[f] 1\na mv x y");
    assert!(row.contains(&"x: a row of elements was renamed, or something to it".to_owned()), "{row:?}");
    assert!(row.contains(&"y: `x` was renamed to it, and is left out".to_owned()), "{row:?}");
    let opaque = [
        r#"{"session":"a","operations":[{"write":"x","value":"1"}]}"#,
        r#"{"event":"left-out","key":"x","reason":"APPEND"}"#,
        r#"{"session":"a","operations":[{"rename":"x","to":"y"}]}"#,
    ];
    let opaque = read_file(&mut opaque.join("\n").as_bytes()).unwrap();
    assert_eq!(opaque.left_out[1].reason, "`x` was renamed to it, and is left out");
}

#[test]
fn a_deadline_goes_along() {
    let text = "a w x 1\nd? w x nil\na mv x y\na r y 1\na r y nil";
    let without = text.replace("d? w x nil\n", "");
    violated(&without, Property::ReadYourWrites);
    assert_eq!(overall(text), Overall::Undecided);
}

#[test]
fn a_flush_deletes_what_it_may_have_found() {
    let text = "a w x 1\na w y 2\na flush 0\na w y 3\na r y 3";
    assert_eq!(overall(text), Overall::Holds);
    violated(&text.replace("r y 3", "r x 1"), Property::ReadYourWrites);
    violated(&text.replace("r y 3", "r y 2"), Property::ReadYourWrites);
    // Whoever has seen what came after the flush has seen the flush.
    violated(&format!("{text}\nb r y 3\nb r x 1"), Property::CausalConvergent);
    // Nobody knows whether it was done.
    assert_eq!(overall("a w x 1\na w y 2\nf? flush 0\na r x 1"), Overall::Holds);
    // Its absence is also the initial state.
    assert_eq!(overall("a w x 1\na flush 0\na r x nil"), Overall::Undecided);
    assert_eq!(left_out("a add n 1\na flush 0"), ["n: a counter was flushed"]);
}

/// How many transactions the flush became.
fn parts(text: &str) -> usize {
    let history = history(text);
    history.transactions.len() - text.lines().count()
}

#[test]
fn a_flush_is_of_a_keyspace_and_of_a_time() {
    let text = "a w x 1\na w [2]x 1\na flush 0";
    assert_eq!(parts(text), 1);
    assert_eq!(parts(&text.replace("flush 0", "flush 2")), 1);
    assert_eq!(parts(&text.replace("flush 0", "flush 3")), 0);
    assert_eq!(parts(&text.replace("flush 0", "flush all")), 2);
    assert_eq!(parts("a flush 0\na w x 1"), 0);
    assert_eq!(parts("a,dc1@1-5 flush 0\nb,dc1@6-7 w x 1"), 0);
    assert_eq!(parts("a,dc1@1-5 flush 0\nb,dc1@4-7 w x 1"), 1);
    // The clock of another place may be behind.
    assert_eq!(parts("a,dc1@1-5 flush 0\nb,dc2@6-7 w x 1"), 1);
    let many: String = (0..=FLUSHED_MAX).map(|key| format!("a w k{key} 1\n")).collect();
    assert_eq!(left_out(&format!("{many}a flush 0")), [": flushes of too many keys"]);
}

#[test]
fn what_is_no_removal_is_refused() {
    for (operation, words) in [
        (r#"{"rename":"x"}"#, "a rename has `to`"),
        (r#"{"flush":"x"}"#, "a flush is of `all`"),
        (r#"{"flush":"0","read":"x"}"#, "exactly one of"),
    ] {
        let line = format!("{{\"session\":\"a\",\"operations\":[{operation}]}}\n");
        let error = read_file(&mut line.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}
