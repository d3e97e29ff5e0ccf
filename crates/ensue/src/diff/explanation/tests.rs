//! What is said of two values that differ.

use super::*;
use crate::diff::digest::Digest;
use crate::diff::fake::{list, side_with};
use crate::diff::fingerprint::Fingerprint;

type Answers<'a> = &'a [(&'a str, Reply)];

fn row(kind: Kind, deadline_ms: Option<u64>) -> Seen {
    let (value, field_deadlines) = (Digest::default(), Digest::default());
    Seen::Row(Fingerprint { kind, value, deadline_ms, field_deadlines, is_torn: false })
}

fn check(left: (Seen, Answers<'_>), right: (Seen, Answers<'_>), verdict: Verdict, expected: &str) {
    let [mut one, mut other] =
        [("left", left.1), ("right", right.1)].map(|(name, answers)| side_with(name, answers));
    let key = Bytes::from("k");
    let mut explanation = Explanation { left: &mut one, right: &mut other, key: &key, tolerance_ms: 1_000 };
    let suspect = Suspect { left: left.0, right: right.0, verdict, is_changing: false };
    assert_eq!(explanation.words(&suspect).unwrap(), expected);
}

fn check_values(kind: Kind, left: Answers<'_>, right: Answers<'_>, expected: &str) {
    check((row(kind.clone(), None), left), (row(kind, None), right), Verdict::OtherValue, expected);
}

#[test]
fn what_one_side_has_and_of_which_type() {
    let hash = || row(Kind::Hash, None);
    check((hash(), &[]), (Seen::Missing, &[]), Verdict::OnlyLeft, "a hash, only left");
    check((Seen::Missing, &[]), (hash(), &[]), Verdict::OnlyRight, "a hash, only right");
    let other = row(Kind::SortedSet, None);
    check((hash(), &[]), (other, &[]), Verdict::OtherType, "a hash left, a sorted set right");
    let unreadable = Seen::Unreadable("NOPERM no".into());
    check((unreadable, &[]), (hash(), &[]), Verdict::Unreadable, "left answers: NOPERM no");
}

#[test]
fn deadlines_of_keys_and_of_fields() {
    let at = |deadline_ms| row(Kind::Hash, deadline_ms);
    let words = "expires at 5000 left, at 7500 right: 2.500 s earlier left";
    check((at(Some(5_000)), &[]), (at(Some(7_500)), &[]), Verdict::OtherDeadline, words);
    check(
        (at(Some(5_000)), &[]),
        (at(None), &[]),
        Verdict::OtherDeadline,
        "expires at 5000 left, never right",
    );
    let answers = |deadline| {
        [
            ("HSCAN k 0 COUNT 1000", Reply::Array(vec![Reply::bulk("0"), list(&["f", "1", "g", "2"])])),
            (
                "HPEXPIRETIME k FIELDS 2 f g",
                Reply::Array(vec![Reply::Integer(5_000), Reply::Integer(deadline)]),
            ),
        ]
    };
    let words = "field \"g\": expires never left, at 9000 right";
    check((at(None), &answers(-1)), (at(None), &answers(9_000)), Verdict::OtherDeadline, words);
    check(
        (at(None), &answers(9_000)),
        (at(None), &answers(9_900)),
        Verdict::OtherDeadline,
        "it has changed since",
    );
}

#[test]
fn strings_are_cut_around_the_first_byte_that_differs() {
    let of = |text: String| [("GETRANGE k 0 1048575", Reply::bulk(text)), ("STRLEN k", Reply::Integer(9))];
    let words = "\"hello\" left, \"hallo\\n\" right (9 and 9 bytes)";
    check_values(Kind::String, &of("hello".into()), &of("hallo\n".into()), words);
    let (one, other) = ("x".repeat(100) + "y", "x".repeat(100) + "zz");
    let (shown_one, shown_other) = ("x".repeat(12) + "y", "x".repeat(12) + "zz");
    let words = format!("\"{shown_one}\" left, \"{shown_other}\" right from byte 88 (9 and 9 bytes)");
    check_values(Kind::String, &of(one), &of(other), &words);
    let long = cut(&[b'x'; 5_000]);
    assert_eq!(long, format!("\"{}\"… (5000 bytes)", "x".repeat(48)));
}

#[test]
fn hyperloglogs_are_told_by_their_estimates() {
    let of = |count| [("GETRANGE k 0 1048575", Reply::bulk("HYLL…")), ("PFCOUNT k", Reply::Integer(count))];
    let words = "a HyperLogLog with other registers: about 5 and 7 elements";
    check_values(Kind::String, &of(5), &of(7), words);
}

#[test]
fn lists_differ_at_a_place() {
    let of = |elements: &[&str]| {
        [("LRANGE k 0 999", list(elements)), ("LLEN k", Reply::Integer(elements.len() as i64))]
    };
    let words = "element 1: \"b\" left, \"x\" right (2 and 2 elements)";
    check_values(Kind::List, &of(&["a", "b"]), &of(&["a", "x"]), words);
    let words = "element 1 is only right: \"b\" (1 and 2 elements)";
    check_values(Kind::List, &of(&["a"]), &of(&["a", "b"]), words);
    check_values(Kind::List, &of(&["a"]), &of(&["a"]), "it has changed since");
}

#[test]
fn elements_of_either_side_are_looked_for_on_the_other() {
    let scan =
        |members: &[&str]| ("SSCAN k 0 COUNT 1000", Reply::Array(vec![Reply::bulk("0"), list(members)]));
    let has = |member, is_there| (member, Reply::Integer(is_there));
    let left = [scan(&["a"]), has("SISMEMBER k a", 1), has("SISMEMBER k b", 0)];
    let right = [scan(&["a", "b"]), has("SISMEMBER k a", 1), has("SISMEMBER k b", 1)];
    check_values(Kind::Set, &left, &right, "member \"b\" is only right");
    check_values(Kind::Set, &right, &left, "member \"b\" is only left");
}

#[test]
fn bounded_counters_and_values_of_modules() {
    let of = |value| [("BGET k", Reply::Integer(value))];
    check_values(Kind::BoundedCounter, &of(5), &of(4), "value: \"5\" left, \"4\" right");
    let of = |text: &'static str| [("DUMP k", Reply::bulk(text))];
    let kind = Kind::Other("json".into());
    check_values(kind, &of("a"), &of("b"), "values of type json, whose dumps differ");
}

#[test]
fn an_answer_that_says_no_is_told() {
    let words = "cannot be read again: ERR unknown command 'LRANGE k 0 999'";
    check_values(Kind::List, &[], &[], words);
}
