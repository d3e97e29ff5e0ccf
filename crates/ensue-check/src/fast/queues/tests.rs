//! Queues that are in order, and one that is not for each thing that may be wrong.

use crate::fast::check;
use crate::format::jsonl;
use crate::history::History;
use crate::report::{Options, Verdict};
use crate::{Property, explain};
use expect_test::{Expect, expect};

const BOTH: [Property; 2] = [Property::PoppedOnce, Property::PoppedAtLeastOnce];

/// A line is a session, a start and an end (`-`: no answer came), and what it did: `+a` pushes `a`, `-a` pops it, `=a`
/// sees it, and `+`, `-` and `=` alone are of no known element, or of none; all of the queue `q`, or of the one that
/// stands before a colon. Behind `end` it is final, behind `failed` it failed.
fn history(text: &str) -> History {
    let mut lines = String::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        let is_final = words.contains(&"end");
        let has_failed = words.contains(&"failed");
        words.retain(|word| !matches!(*word, "end" | "failed"));
        let end = if words[2] == "-" { "null" } else { words[2] };
        let operations = words[3..].iter().map(|word| {
            let (queue, word) = word.split_once(':').unwrap_or(("q", word));
            let kind = match &word[..1] {
                "+" => "push",
                "-" => "pop",
                _ => "hold",
            };
            match (&word[1..], end) {
                ("", "null") => format!(r#"{{"{kind}":"{queue}"}}"#),
                ("", _) => format!(r#"{{"{kind}":"{queue}","value":null}}"#),
                (element, _) => format!(r#"{{"{kind}":"{queue}","value":"{element}"}}"#),
            }
        });
        let operations: Vec<String> = operations.collect();
        let status = if has_failed { r#","status":"failed""# } else { "" };
        lines.push_str(&format!(
            r#"{{"session":"{}","start":{},"end":{end}{status},"final":{is_final},"operations":[{}]}}"#,
            words[0],
            words[1],
            operations.join(",")
        ));
        lines.push('\n');
    }
    jsonl::read(&mut lines.as_bytes()).expect("it is a history")
}

fn judged(history: &History, property: Property) -> Verdict {
    let options = Options { properties: BOTH.to_vec(), explain: true };
    check(history, &options).verdict(property).expect("it was asked for").clone()
}

#[track_caller]
fn holds(text: &str) {
    let history = history(text);
    for property in BOTH {
        assert_eq!(judged(&history, property), Verdict::Holds, "{property}");
    }
}

#[track_caller]
fn fails(property: Property, text: &str, expected: Expect) {
    let history = history(text);
    let Verdict::Violated(violation) = judged(&history, property) else {
        panic!("{property} is not violated")
    };
    let lines = explain::lines(&history, &violation);
    expected.assert_eq(&format!("{}: {}\n{}\n", violation.pattern, violation.summary, lines.join("\n")));
    let other = BOTH.into_iter().find(|other| *other != property).expect("there are two");
    assert!(!matches!(judged(&history, other), Verdict::Violated(_)), "{other}");
}

#[track_caller]
fn undecided(property: Property, history: &History) -> String {
    match judged(history, property) {
        Verdict::Undecided(reason) => reason.to_string(),
        verdict => panic!("{property} is {verdict:?}"),
    }
}

#[test]
fn queues_from_which_each_element_is_popped_once_hold() {
    holds("a 1 2 +x +y\n b 3 4 -x\n b 5 6 -\n c 7 8 -y\n d 90 91 = end");
    holds("a 1 2 +x\n d 90 91 =x end");
    holds("a 1 2 +x\n d 90 91 -x end\n d 92 93 - end");
    // What overlaps may have been in any order.
    holds("a 1 9 +x\n b 2 3 -x\n d 90 91 - end");
    // An element of one queue goes to another, and back.
    holds("a 1 2 +x\n b 3 4 -x p:+x\n b 5 6 p:-x +x\n c 7 8 -x\n d 90 91 = p:= end");
    // Each queue is a queue of its own, and the order of elements is not judged.
    holds("a 1 2 +x +y p:+x\n b 3 4 -y\n b 5 6 -x\n d 90 91 = p:=x end");
}

#[test]
fn nothing_is_popped_more_often_than_it_was_pushed() {
    fails(
        Property::PoppedOnce,
        "a 1 2 +x\n b 3 4 -x\n c 5 6 -x\n d 90 91 = end",
        expect![[r#"
        PoppedTwice: `x` of the queue `q` was popped twice: line 2 and line 3
        line 1      a  push x to q
        line 2      b  pop x from q
        line 3      c  pop x from q
    "#]],
    );
    fails(
        Property::PoppedOnce,
        "a 1 2 +x +x\n b 3 4 -x -x\n c 5 6 -x\n d 90 91 = end",
        expect![[r#"
        PoppedTwice: `x` of the queue `q` was popped 3 times, and pushed 2 times
        line 1      a  push x to q, push x to q
        line 2      b  pop x from q, pop x from q
    "#]],
    );
    holds("a 1 2 +x +x\n b 3 4 -x\n c 5 6 -x\n d 90 91 = end");
}

#[test]
fn nothing_is_popped_that_nobody_pushed() {
    fails(
        Property::PoppedOnce,
        "a 1 2 +x\n b 3 4 -y\n d 90 91 =x end",
        expect![[r#"
        NeverPushed: `y` of the queue `q` was popped (line 2), but nobody pushed it
        line 2      b  pop y from q
    "#]],
    );
    fails(
        Property::PoppedOnce,
        "a 1 2 failed +y\n b 3 4 -y\n d 90 91 = end",
        expect![[r#"
        NeverPushed: `y` of the queue `q` was popped (line 2), but nobody pushed it
        line 2      b  pop y from q
    "#]],
    );
    fails(
        Property::PoppedOnce,
        "a 1 2 p:+y\n d 90 91 =y p:=y end",
        expect![[r#"
        NeverPushed: `y` of the queue `q` was seen (line 2), but nobody pushed it
        line 2      d  see y in q, see y in p [final]
    "#]],
    );
}

#[test]
fn nothing_is_popped_before_its_push() {
    fails(
        Property::PoppedOnce,
        "b 1 2 -x\n a 3 4 +x\n d 90 91 = end",
        expect![[r#"
        PoppedBeforePush: `x` of the queue `q` was popped (line 1) before its push began (line 2)
        line 1      b  pop x from q
        line 2      a  push x to q

        line 1 ended at 2, before line 2 began at 3
    "#]],
    );
    fails(
        Property::PoppedOnce,
        "b 1 2 =x\n a 3 4 +x\n d 90 91 =x end",
        expect![[r#"
        PoppedBeforePush: `x` of the queue `q` was seen (line 1) before its push began (line 2)
        line 1      b  see x in q
        line 2      a  push x to q

        line 1 ended at 2, before line 2 began at 3
    "#]],
    );
    // Of two pushes the second came only behind both pops.
    fails(
        Property::PoppedOnce,
        "a 1 2 +x\n b 3 4 -x\n c 5 6 -x\n a 7 8 +x\n d 90 91 = end",
        expect![[r#"
            PoppedBeforePush: `x` of the queue `q` was popped (line 3) before its push began (line 4)
            line 3      c  pop x from q
            line 4      a  push x to q

            line 3 ended at 6, before line 4 began at 7
        "#]],
    );
    // Without times, a session knows what it did first.
    fails(
        Property::PoppedOnce,
        "a 0 0 -x\n a 0 0 +x\n d 0 0 = end",
        expect![[r#"
        PoppedBeforePush: `x` of the queue `q` was popped (line 1) before its push began (line 2)
        line 1      a  pop x from q
        line 2      a  push x to q

        line 1 comes before line 2 in its session
    "#]],
    );
    holds("b 0 0 -x\n a 0 0 +x\n d 0 0 = end");
}

#[test]
fn what_was_popped_is_not_there_in_the_end() {
    fails(
        Property::PoppedOnce,
        "a 1 2 +x\n b 3 4 -x\n d 90 91 =x end",
        expect![[r#"
        PoppedAndKept: `x` of the queue `q` was popped (line 2), and was still there in the end (line 3)
        line 1      a  push x to q
        line 2      b  pop x from q
        line 3      d  see x in q [final]
    "#]],
    );
    // A datacenter each reads the end.
    holds("a 1 2 +x\n d 90 91 =x end\n e 90 91 =x end");
    holds("a 1 2 +x\n b 2 3 =x\n b 3 4 -x\n d 90 91 = end");
}

#[test]
fn what_was_pushed_is_popped_or_there_in_the_end() {
    fails(
        Property::PoppedAtLeastOnce,
        "a 1 2 +x +y\n b 3 4 -y\n d 90 91 = end",
        expect![[r#"
        ElementLost: `x` of the queue `q` was pushed (line 1), and was neither popped nor there in the end
        line 1      a  push x to q, push y to q
    "#]],
    );
    fails(
        Property::PoppedAtLeastOnce,
        "a 1 2 +x +y +y\n b 3 4 -y\n d 90 91 - end",
        expect![[r#"
        ElementLost: `x` of the queue `q` was pushed (line 1), and was neither popped nor there in the end; 2 elements are missing so
        line 1      a  push x to q, push y to q, push y to q
    "#]],
    );
}

#[test]
fn what_has_no_answer_may_have_happened() {
    // A push: its element may be popped, and need not be there.
    holds("a 1 - +x\n b 3 4 -x\n d 90 91 = end");
    holds("a 1 - +x\n d 90 91 = end");
    // A pop: it may have taken any element, but no two.
    holds("a 1 2 +x\n b 3 - -\n d 90 91 = end");
    holds("a 1 2 +x\n b 3 - -\n d 90 91 =x end");
    fails(
        Property::PoppedAtLeastOnce,
        "a 1 2 +x +y\n b 3 - -\n d 90 91 = end",
        expect![[r#"
        ElementLost: `x` of the queue `q` was pushed (line 1), and was neither popped nor there in the end; 2 elements are missing so, and pops without an answer took 1 of them at most
        line 1      a  push x to q, push y to q
    "#]],
    );
    // A move of what nobody knows to another queue: one element more may be there, but no two.
    holds("a 1 2 +x\n b 3 - - p:+\n c 5 6 p:-x\n d 90 91 = p:= end");
    fails(
        Property::PoppedOnce,
        "a 1 2 +x +y\n b 3 - - p:+\n c 5 6 p:-x p:-y\n d 90 91 =x =y p:= end",
        expect![[r#"
            NeverPushed: `x` of the queue `p` was popped (line 3), but nobody pushed it
            line 3      c  pop x from p, pop y from p
        "#]],
    );
    // A push that failed is none, and neither is a pop.
    holds("a 1 2 failed +x\n b 3 4 failed -\n d 90 91 = end");
}

#[test]
fn what_is_not_known_is_undecided() {
    let unread = history("a 1 2 +x\n b 3 4 -x");
    assert_eq!(
        undecided(Property::PoppedAtLeastOnce, &unread),
        "`q` was not read in the end, and not popped until it was empty"
    );
    assert_eq!(judged(&unread, Property::PoppedOnce), Verdict::Holds);
    let other = history("a 1 2 +x p:+x\n b 3 4 -x\n d 90 91 = end");
    assert!(undecided(Property::PoppedAtLeastOnce, &other).starts_with("`p` was not read"));
    let broken_off = |text: &str| History { truncated_at_line: Some(9), ..history(text) };
    let lost = broken_off("a 1 2 +x\n d 90 91 = end");
    assert!(undecided(Property::PoppedAtLeastOnce, &lost).contains("may have been popped"));
    let unpushed = broken_off("b 1 2 -x\n d 90 91 = end");
    assert!(undecided(Property::PoppedOnce, &unpushed).contains("before anybody pushed it"));
    let twice = broken_off("a 1 2 +x\n b 3 4 -x -x\n c 5 6 -y\n d 90 91 = end");
    assert!(matches!(judged(&twice, Property::PoppedOnce), Verdict::Violated(_)));
    let none =
        jsonl::read(&mut &br#"{"session":"a","operations":[{"write":"x","value":1}]}"#[..]).expect("one");
    assert!(BOTH.iter().all(|property| matches!(judged(&none, *property), Verdict::NotApplicable(_))));
}

/// A verdict that holds because nothing was looked at would be none.
#[test]
fn queues_say_nothing_of_other_properties() {
    let history = history("a 1 2 +x\n d 90 91 =x end");
    for (property, verdict) in check(&history, &Options::default()).verdicts {
        assert!(matches!(verdict, Verdict::NotApplicable(_)), "{property}: {verdict:?}");
    }
}

#[test]
fn a_key_that_is_more_than_a_queue_is_left_out() {
    let pushed = r#"{"session":"a","operations":[{"push":"q","value":"x"}]}"#;
    for other in [r#"{"write":"q","value":null}"#, r#"{"add":"q","delta":1}"#, r#"{"read":"q","value":"x"}"#]
    {
        let text = format!("{pushed}\n{{\"session\":\"a\",\"operations\":[{other}]}}\n");
        let history = jsonl::read(&mut text.as_bytes()).expect("it is a history");
        let left_out: Vec<_> = history.left_out.iter().map(|known| known.reason.as_str()).collect();
        assert_eq!(
            (history.operation_count(), left_out),
            (0, vec!["it is both a queue and a value"]),
            "{other}"
        );
    }
    let text = format!("{pushed}\n{{\"session\":\"a\",\"operations\":[{{\"flush\":0}}]}}\n");
    let history = jsonl::read(&mut text.as_bytes()).expect("it is a history");
    assert_eq!(history.left_out[0].reason, "a queue was flushed");
    // A push that was refused does not make a queue of a register.
    let text = format!(
        "{}\n{}\n",
        r#"{"session":"a","operations":[{"write":"q","value":"x"}]}"#,
        pushed.replace(r#""operations""#, r#""status":"failed","operations""#)
    );
    let history = jsonl::read(&mut text.as_bytes()).expect("it is a history");
    assert_eq!(history.left_out, []);
    assert!(matches!(judged(&history, Property::PoppedOnce), Verdict::NotApplicable(_)));
    // Where nothing was, a register is absent, too.
    let text = format!("{}\n{pushed}\n", r#"{"session":"a","operations":[{"read":"q","value":null}]}"#);
    assert_eq!(jsonl::read(&mut text.as_bytes()).expect("it is a history").left_out, []);
}

/// Neither a look at each pair nor a list for each element would do this in reasonable time.
#[test]
fn many_elements_are_judged() {
    let mut builder = crate::builder::Builder::new();
    let key = builder.key("q");
    for number in 0..100_000_u64 {
        let element = builder.value(&number.to_string());
        builder.commit("a", vec![crate::history::Operation::Push { key, element }]);
        builder.commit("b", vec![crate::history::Operation::Pop { key, element }]);
    }
    let empty = crate::history::Operation::Pop { key, element: crate::history::Value::ABSENT };
    let last = builder.commit("c", vec![empty]);
    builder.transaction_mut(last).is_final = true;
    let history = builder.finish();
    assert!(BOTH.iter().all(|property| judged(&history, *property) == Verdict::Holds));
}
