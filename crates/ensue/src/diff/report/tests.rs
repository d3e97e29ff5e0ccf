//! What is printed.

use super::*;

fn report(tallies: Vec<Tally>) -> Report {
    Report { left: "old:6379".into(), right: "[::1]:7001".into(), tallies, changing_max: 1 }
}

fn equal(count: u64) -> Tally {
    Tally { left: count, right: count, equal: count, ..Tally::default() }
}

fn different() -> Tally {
    let mut tally = Tally { keyspaces: (0, 3), ..equal(200_000) };
    tally.count(Verdict::OnlyLeft);
    tally.count(Verdict::OtherValue);
    tally.count(Verdict::OtherValue);
    tally.count(Verdict::Unreadable);
    tally.count_changing(&Bytes::from("hot\n"));
    let (key, words) = (Bytes::from("a key"), "a hash, only left".to_string());
    tally.differences.push(Difference { key, verdict: Verdict::OnlyLeft, words });
    tally
}

#[test]
fn a_table_and_the_first_differences() {
    let expected = "\
left  old:6379
right [::1]:7001
keyspace  keys left  keys right      equal  only left  only right  other type  other value  other deadline   changing
0:3          200000      200000     200000          1           0           0            2               0          1
keyspace 0:3: 1 keys went on changing, and may be equal or not: \"hot\\n\"
keyspace 0:3: 1 keys could not be compared
keyspace 0:3: \"a key\": a hash, only left
and 3 more; --show N shows more
different: 3 keys
";
    assert_eq!(report(vec![different()]).text(Paint::off()), expected);
}

#[test]
fn what_is_equal_is_said_in_a_line() {
    let text = report(vec![equal(5), equal(7)]).text(Paint::off());
    assert!(text.ends_with("\nequal: 12 keys\n"), "{text}");
    let nothing = report(Vec::new()).text(Paint::off());
    assert!(nothing.ends_with("right [::1]:7001\nequal: neither has keys\n"), "{nothing}");
}

#[test]
fn what_was_not_looked_at_is_said() {
    let tally = Tally { skips_field_deadlines: true, is_cut_short: true, left_out: 9, ..equal(5) };
    let text = report(vec![tally]).text(Paint::off());
    assert!(text.contains("9 keys differed at first and were not read again"), "{text}");
    assert!(text.contains("deadlines of fields were not compared"), "{text}");
    assert!(text.contains("keyspace 0: interrupted\n") && text.ends_with("not all is equal\n"), "{text}");
}

#[test]
fn what_was_left_out_may_be_different_too() {
    let text = report(vec![Tally { left_out: 9, ..different() }]).text(Paint::off());
    assert!(text.ends_with("\ndifferent: at least 3 keys\n"), "{text}");
}

#[test]
fn the_outcome_is_a_difference_before_doubt_and_doubt_before_equality() {
    let outcome = |tally| report(vec![equal(5), tally]).outcome();
    assert_eq!(outcome(different()), Outcome::Different);
    let mut unreadable = equal(5);
    unreadable.count(Verdict::Unreadable);
    assert_eq!(outcome(unreadable), Outcome::Undecided);
    assert_eq!(outcome(Tally { left_out: 1, ..equal(5) }), Outcome::Undecided);
    assert_eq!(outcome(Tally { is_cut_short: true, ..equal(5) }), Outcome::Undecided);
    let mut changing = equal(5);
    changing.count_changing(&Bytes::from("one"));
    assert_eq!(report(vec![changing]).outcome(), Outcome::Equal);
    let mut changing = equal(5);
    ["one", "two"].iter().for_each(|key| changing.count_changing(&Bytes::from(*key)));
    assert_eq!(outcome(changing), Outcome::Undecided);
    for verdict in
        [Verdict::OnlyRight, Verdict::OtherType, Verdict::OtherDeadline, Verdict::OtherFieldDeadlines]
    {
        let mut tally = equal(5);
        tally.count(verdict);
        assert_eq!(outcome(tally), Outcome::Different, "{verdict:?}");
    }
}

#[test]
fn json_has_the_same() {
    let json = report(vec![different()]).json();
    assert_eq!((json["outcome"].as_str(), json["left"].as_str()), (Some("different"), Some("old:6379")));
    let keyspace = &json["keyspaces"][0];
    let number = |name: &str| keyspace[name].as_u64().unwrap();
    assert_eq!((number("left_keyspace"), number("right_keyspace")), (0, 3));
    let numbers = ["keys_left", "equal", "only_left", "other_value", "changing", "unreadable"].map(number);
    assert_eq!(numbers, [200_000, 200_000, 1, 2, 1, 1]);
    assert_eq!(keyspace["changing_keys"][0], "hot\\n");
    let expected = json!({ "key": "a key", "difference": "only_left", "words": "a hash, only left" });
    assert_eq!(keyspace["differences"][0], expected);
}
