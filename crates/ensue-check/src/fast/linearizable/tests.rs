//! Histories whose orders are known, what is said of those that have none, and the judge beside a search through all
//! orders.

use super::*;
use crate::builder::Builder;
use crate::fast::check;
use crate::format::jsonl;
use crate::history::{Transaction, Value};
use crate::report::{Options, Verdict};
use crate::{Property, explain};
use expect_test::{Expect, expect};

/// A line is a session, a transaction, its start and end (`-`: no answer came), and what it did: `w1`, `r1`, `r-` for a
/// read of nothing, `w-` for a delete; all of the key `x`, or of the key that stands before a colon.
pub(in crate::fast) fn history(text: &str) -> History {
    let mut builder = Builder::new();
    for (number, line) in text.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let session = builder.session(words[0]);
        let outcome = if words[2] == "-" { Outcome::Unknown } else { Outcome::Committed };
        let operations = words[3..].iter().map(|word| {
            let (key, word) = word.split_once(':').unwrap_or(("x", word));
            let value = Some(&word[1..]).filter(|value| *value != "-");
            match word.as_bytes()[0] {
                b'w' => builder.write(key, value),
                _ => builder.read(key, value),
            }
        });
        let operations = operations.collect();
        builder.add(Transaction {
            line: number as u32 + 1,
            start_us: words[1].parse().unwrap(),
            end_us: words[2].parse().unwrap_or(u64::MAX),
            outcome,
            operations,
            ..Transaction::committed(session)
        });
    }
    builder.finish()
}

fn judged(history: &History) -> Verdict {
    let options = Options { properties: vec![Property::Linearizable], explain: true };
    check(history, &options).verdict(Property::Linearizable).expect("it was asked for").clone()
}

#[track_caller]
fn holds(text: &str) {
    let history = history(text);
    assert!(naive::has_order(&history), "the search finds an order");
    assert_eq!(judged(&history), Verdict::Holds);
}

#[track_caller]
fn fails(text: &str, expected: &Expect) {
    let history = history(text);
    assert!(!naive::has_order(&history), "the search finds no order");
    let Verdict::Violated(violation) = judged(&history) else { panic!("it is not violated") };
    let lines = explain::lines(&history, &violation);
    expected.assert_eq(&format!("{}: {}\n{}\n", violation.pattern, violation.summary, lines.join("\n")));
    assert!(crate::draw::svg(&history, "linearizable", &violation).ends_with("</svg>\n"));
}

#[test]
fn what_overlaps_may_be_in_any_order() {
    holds("a 1 2 w1\n b 3 4 r1");
    holds("a 1 9 w1\n b 2 3 r-\n b 4 5 r1");
    holds("a 1 9 w1\n b 1 9 w2\n c 2 3 r2\n c 4 5 r1\n d 6 7 r1");
    holds("a 1 2 w1\n b 2 4 r-");
    holds("a 1 2 w1\n b 3 4 w2\n c 2 3 r1\n c 4 5 r1");
}

#[test]
fn a_write_without_an_answer_takes_effect_later_or_never() {
    holds("a 1 - w1\n b 2 3 r-\n b 4 5 r-");
    holds("a 1 - w1\n b 2 3 r-\n b 40 50 r1\n c 60 70 r1");
    fails(
        "a 1 - w1\n b 4 5 r1\n b 6 7 r-",
        &expect![[r#"
            NoOrder: no order of the operations on `x` explains them all: it was (absent) before all; and it was 1 before it was (absent), since line 2 ended before line 3 began
            line 2      b  read x=1
            line 3      b  read x=(absent)

            line 2 ended at 5, before line 3 began at 6
        "#]],
    );
}

#[test]
fn a_read_of_what_had_been_replaced_is_shown_with_two_others() {
    fails(
        "a 10 20 w1\n b 30 40 w2\n c 42 44 r2\n c 50 60 r1",
        &expect![[r#"
            NoOrder: no order of the operations on `x` explains them all: it was 1 before it was 2, since line 1 ended before line 2 began; and it was 2 before it was 1, since line 2 ended before line 4 began
            line 1      a  write x=1
            line 2      b  write x=2
            line 4      c  read x=1

            line 1 ended at 20, before line 2 began at 30
            line 2 ended at 40, before line 4 began at 50
        "#]],
    );
}

#[test]
fn two_values_that_each_had_to_be_read_after_the_other_are_shown_with_four() {
    fails(
        "a 1 9 w1\n b 1 9 w2\n c 10 11 r1\n d 12 13 r2\n d 14 15 r1",
        &expect![[r#"
            NoOrder: no order of the operations on `x` explains them all: it was 1 before it was 2, since line 1 ended before line 4 began; and it was 2 before it was 1, since line 4 ended before line 5 began
            line 1      a  write x=1
            line 4      d  read x=2
            line 5      d  read x=1

            line 1 ended at 9, before line 4 began at 12
            line 4 ended at 13, before line 5 began at 14
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
fn what_reads_and_replaces_does_both_in_one_step() {
    holds("a 1 9 r- w1\n b 1 9 r1 w2\n c 1 9 r2 w3\n d 10 11 r3");
    fails(
        "a 1 9 r- w1\n b 1 9 r- w2",
        &expect![[r#"
            ReplacedTwice: the value (absent) of `x` was read and replaced in one step twice: by line 1 and by line 2
            line 1      a  read x=(absent), write x=1
            line 2      b  read x=(absent), write x=2
        "#]],
    );
    fails(
        "a 1 9 r2 w1\n b 1 9 r1 w2",
        &expect![[r#"
            NoOrder: values of `x` replaced each other in a circle, each in one step
            line 1      a  read x=2, write x=1
            line 2      b  read x=1, write x=2

            line 1 comes before line 2, which read its `x`
            line 2 comes before line 1, which read its `x`
        "#]],
    );
    fails(
        "a 1 2 w1\n b 1 9 r1 w2\n c 4 5 r2\n d 6 7 r1",
        &expect![[r#"
            NoOrder: no order of the operations on `x` explains them all: it was 2 before it was 1, since line 3 ended before line 4 began; but 1 was replaced by 2, each value in one step
            line 1      a  write x=1
            line 2      b  read x=1, write x=2
            line 3      c  read x=2
            line 4      d  read x=1

            line 3 ended at 5, before line 4 began at 6
            line 1 comes before line 2, which read its `x`
        "#]],
    );
    // 3 comes after 1 and before a read of 2, but nothing stands between 1 and 2.
    fails(
        "a 1 2 w1\n b 3 4 w3\n c 1 9 r1 w2\n d 5 6 r2",
        &expect![[r#"
            NoOrder: no order of the operations on `x` explains them all: it was 1 before it was 3, since line 1 ended before line 2 began; and it was 3 before it was 2, since line 2 ended before line 4 began; values that were replaced in one step stand one behind the other
            line 1      a  write x=1
            line 2      b  write x=3
            line 3      c  read x=1, write x=2
            line 4      d  read x=2

            line 1 ended at 2, before line 2 began at 3
            line 2 ended at 4, before line 4 began at 5
            line 1 comes before line 3, which read its `x`
        "#]],
    );
    fails(
        "a 1 2 w1\n b 3 4 w2\n c 3 9 r1 r2",
        &expect![[r#"
        FracturedRead: `x` was read as 1 and as 2 in one step (line 3)
        line 1      a  write x=1
        line 2      b  write x=2
        line 3      c  read x=1, read x=2

        line 1 comes before line 3, which read its `x`
        line 2 comes before line 3, which read its `x`
    "#]],
    );
}

#[test]
fn keys_are_judged_each_by_itself_and_a_transaction_is_judged_for_each_of_its_keys() {
    holds("a 1 2 x:w1 y:w1\n b 1 2 x:r1 y:r-\n b 3 4 y:r1");
    fails(
        "a 1 2 x:w1 y:w1\n b 3 4 x:r1 y:r-",
        &expect![[r#"
            NoOrder: no order of the operations on `y` explains them all: it was (absent) before all; and it was 1 before it was (absent), since line 1 ended before line 2 began
            line 1      a  write x=1, write y=1
            line 2      b  read x=1, read y=(absent)

            line 1 ended at 2, before line 2 began at 3
        "#]],
    );
}

#[test]
fn values_that_were_written_twice_hold_if_some_order_explains_them() {
    // A lock that is taken, released, and taken again.
    holds("a 1 2 r- w1\n a 3 4 w-\n b 5 6 r- w2\n b 7 8 w-\n a 9 10 r- w3\n b 11 12 r3");
    fails(
        "a 1 2 r- w1\n a 3 4 w-\n b 5 6 r- w2\n c 5 6 r- w3",
        &expect![[r#"
        ReplacedTwice: the value (absent) of `x` was read and replaced in one step twice: by line 3 and by line 4
        line 2      a  write x=(absent)
        line 3      b  read x=(absent), write x=2
        line 4      c  read x=(absent), write x=3

        line 2 comes before line 3, which read its `x`
        line 2 comes before line 4, which read its `x`
    "#]],
    );
    fails(
        "a 1 5 w1\n b 1 5 w1\n a 6 7 w2\n b 8 9 r1",
        &expect![[r#"
            NoOrder: no order of the operations on `x` explains them all: it was 1 before it was 2, since line 2 ended before line 3 began; and it was 2 before it was 1, since line 3 ended before line 4 began; so it is in each of 2 ways to say which write each read saw
            line 2      b  write x=1
            line 3      a  write x=2
            line 4      b  read x=1

            line 2 ended at 5, before line 3 began at 6
            line 3 ended at 7, before line 4 began at 8
        "#]],
    );
    let many = (0..10).map(|number| format!("a 1 90 w7\nb 1 90 w{number}\nc 1 90 r7\n")).collect::<String>();
    let Verdict::Undecided(reason) = judged(&history(&many)) else { panic!("10 to the tenth are tried") };
    assert_eq!(reason.to_string(), "line 3: `x` was read as what several wrote, in too many ways to try all");
}

#[test]
fn without_times_only_what_no_order_explains_is_decided() {
    let Verdict::Undecided(reason) = judged(&history("a 1 2 w1\n b 0 0 r1")) else {
        panic!("it has no times")
    };
    assert_eq!(reason.to_string(), "line 2: an operation on `x` has no `start` or no `end`");
    assert!(matches!(judged(&history("a 0 0 r- w1\n b 0 0 r- w2")), Verdict::Violated(_)));
    assert!(matches!(judged(&history("a 1 2 w1")), Verdict::NotApplicable(_)));
}

#[test]
fn it_is_judged_when_asked_for_and_not_otherwise() {
    let text = br#"{"session":"a","start":1,"end":2,"operations":[{"write":"x","value":1}]}
{"session":"b","start":3,"end":4,"operations":[{"read":"x","value":null}]}
"#;
    let history = jsonl::read(&mut text.as_slice()).unwrap();
    assert!(matches!(judged(&history), Verdict::Violated(_)));
    let report = check(&history, &Options::default());
    assert_eq!((report.verdict(Property::Linearizable), report.violations().count()), (None, 0));
    let broken_off = History { truncated_at_line: Some(3), ..history.clone() };
    assert!(matches!(judged(&broken_off), Verdict::Undecided(_)), "a delete may be missing");
    let mut broken_off = broken_off;
    broken_off.transactions[1].start_us = 2;
    assert!(matches!(judged(&broken_off), Verdict::Undecided(_)));
}

/// Every order that real time allows, one transaction after the other. What has no answer may be left out.
mod naive {
    use super::*;

    pub(super) fn has_order(history: &History) -> bool {
        (0..history.keys.len() as u32).all(|key| {
            let writes_it = |transaction: &Transaction| {
                transaction.operations.iter().any(|operation| {
                    let (Operation::Read { key: of, .. } | Operation::Write { key: of, .. }) = *operation
                    else {
                        return false;
                    };
                    of.0 == key
                })
            };
            let touching: Vec<&Transaction> =
                history.transactions.iter().filter(|transaction| writes_it(transaction)).collect();
            continues(key, &touching, Value::ABSENT)
        })
    }

    fn continues(key: u32, left: &[&Transaction], held: Value) -> bool {
        if left.iter().all(|transaction| transaction.outcome == Outcome::Unknown) {
            return true;
        }
        (0..left.len()).any(|at| {
            let one = left[at];
            let must_wait =
                left.iter().any(|other| other.outcome == Outcome::Committed && other.end_us < one.start_us);
            let mut rest = left.to_vec();
            rest.remove(at);
            !must_wait && after(key, one, held).is_some_and(|held| continues(key, &rest, held))
        })
    }

    /// What the key holds after a transaction that began with this; nothing if it read something else.
    fn after(key: u32, transaction: &Transaction, mut held: Value) -> Option<Value> {
        for operation in &transaction.operations {
            match *operation {
                Operation::Read { key: of, value } if of.0 == key && value != held => return None,
                Operation::Write { key: of, value } if of.0 == key => held = value,
                _ => {}
            }
        }
        Some(held)
    }
}

/// The next of a row of numbers that the seed determines.
fn draw(state: &mut u64, bound: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % bound
}

/// At most seven transactions of one key that overlap often. Half of the histories write no value twice; a third come
/// from a store that is right but for one answer in eight.
fn small(seed: u64) -> History {
    let state = &mut (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678);
    let (is_unique, is_guessed) = (draw(state, 2) == 0, draw(state, 3) > 0);
    let count = 2 + draw(state, 6);
    let mut effects: Vec<u64> = (0..count).map(|_| 1 + draw(state, 16)).collect();
    effects.sort_unstable();
    let (mut text, mut held) = (String::new(), 0);
    for number in 0..count {
        let effect = effects[number as usize];
        let (start, end) = (effect.saturating_sub(draw(state, 4)).max(1), effect + draw(state, 4));
        let written = 1 + if is_unique { number } else { draw(state, 2) };
        let read = if is_guessed || draw(state, 8) == 0 { draw(state, count + 1) } else { held };
        let show = |value: u64| if value == 0 { "-".to_owned() } else { value.to_string() };
        let read = format!("r{}", show(read));
        let deletes = !is_unique && draw(state, 4) == 0;
        let write = format!("w{}", show(if deletes { 0 } else { written }));
        let is_open = draw(state, 10) == 0;
        let operations = match draw(state, 5) {
            _ if is_open => write,
            0 | 1 => write,
            2 => format!("{read} {write}"),
            _ => read,
        };
        let end = if is_open { "-".to_owned() } else { end.to_string() };
        if operations.contains('w') {
            held = if deletes { 0 } else { written };
        }
        text.push_str(&format!("s{number} {start} {end} {operations}\n"));
    }
    history(&text)
}

/// The transactions of a violation, and those that wrote what they read.
fn shown(history: &History, transactions: &[crate::history::TransactionIndex]) -> History {
    let mut shown: Vec<u32> = transactions.iter().map(|of| of.0).collect();
    for of in transactions {
        for operation in &history.transaction(*of).operations {
            let Operation::Read { key, value } = *operation else { continue };
            let writes =
                |transaction: &Transaction| transaction.operations.contains(&Operation::Write { key, value });
            shown.extend(history.transactions.iter().position(writes).map(|at| at as u32));
        }
    }
    let mut part = history.clone();
    let mut index = 0;
    part.transactions.retain(|_| {
        index += 1;
        shown.contains(&(index - 1))
    });
    part
}

#[test]
fn the_judge_agrees_with_a_search_through_all_orders_and_what_it_shows_has_none() {
    let (mut held, mut violated, mut shown_whole, mut undecided) = (0, 0, 0, 0);
    for seed in 0..60_000 {
        let history = small(seed);
        // A value that nobody wrote is read integrity's.
        let reads = Reads::find(&history);
        if reads.broken.is_some() {
            continue;
        }
        let has_order = naive::has_order(&history);
        match judged(&history) {
            Verdict::Violated(violation) => {
                assert!(!has_order, "seed {seed}: {}\n{history:#?}", violation.summary);
                violated += 1;
                if reads.ambiguous.is_empty() {
                    shown_whole += 1;
                    let part = shown(&history, &violation.transactions);
                    assert!(!naive::has_order(&part), "seed {seed}: {}\n{part:#?}", violation.summary);
                }
            }
            Verdict::Holds => {
                assert!(has_order, "seed {seed}: {history:#?}");
                held += 1;
            }
            Verdict::NotApplicable(_) => {}
            Verdict::Undecided(_) => undecided += 1,
        }
    }
    assert!(held > 5_000 && violated > 5_000 && shown_whole > 2_000, "{held} {violated} {shown_whole}");
    assert!(undecided < 10, "{undecided} histories have more ways than are tried");
}

/// Transactions of several keys, counters, failures, and times that are missing: whatever is violated is explained.
#[test]
fn histories_of_any_shape_are_judged_by_all_properties() {
    let mut counts = [0; 2];
    for seed in 0..4_000 {
        let history = crate::random::history(seed);
        let report = check(&history, &Options { properties: Property::ALL.to_vec(), explain: true });
        for (place, property) in [Property::Linearizable, Property::DelayOnce].into_iter().enumerate() {
            if let Some(Verdict::Violated(violation)) = report.verdict(property) {
                assert!(!explain::lines(&history, violation).is_empty() && !violation.summary.is_empty());
                counts[place] += 1;
            }
        }
    }
    assert!(counts.iter().all(|count| *count > 100), "{counts:?}");
}

/// Each write is read twice, and overlaps both its neighbours: judged in pairs this would take minutes.
#[test]
fn many_values_of_one_key_take_no_longer_than_sorting() {
    let mut builder = Builder::new();
    for number in 0..200_000_u64 {
        let value = number.to_string();
        let at = 10 * number + 20;
        for (session, start_us, end_us) in
            [("w", at, at + 11), ("r", at + 10, at + 15), ("s", at + 11, at + 13)]
        {
            let operation = match session {
                "w" => builder.write("x", Some(&value)),
                _ => builder.read("x", Some(&value)),
            };
            let session = builder.session(session);
            let operations = vec![operation];
            builder.add(Transaction { start_us, end_us, operations, ..Transaction::committed(session) });
        }
    }
    assert_eq!(judged(&builder.finish()), Verdict::Holds);
}
