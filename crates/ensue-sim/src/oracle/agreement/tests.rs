//! A broken rule that both see, a clean world in which both see nothing, and histories made by hand.

use super::{Witnesses, check, compare, judge, reference_sees, witnesses};
use crate::oracle::history::{History, OperationIndex, Outcome, Seen, SessionIndex, Written};
use crate::oracle::recording::record;
use crate::oracle::{Final, property};
use crate::rules::Rules;
use crate::run::run;
use crate::world::options::Options;
use ensue_check::{Property, Verdict};
use ensue_protocol::Promises;
use ensue_types::{DatacenterId, Rule};

/// An answered operation of these reads and writes.
fn operation(
    history: &mut History,
    session: SessionIndex,
    reads: &[(&str, Seen)],
    writes: &[(&str, Written)],
) -> OperationIndex {
    let reads = reads.iter().map(|&(name, seen)| (history.location(name), seen)).collect();
    let writes = writes.iter().map(|&(name, written)| (history.location(name), written)).collect();
    let at = 10 * (history.next() as u64 + 1);
    let index = history.invoke(session, DatacenterId(0), at, Vec::new(), writes);
    let operation = &mut history.operations[index];
    (operation.reads, operation.outcome, operation.answered_us) = (reads, Outcome::Done, at + 5);
    index
}

fn write(history: &mut History, session: SessionIndex, name: &str) -> OperationIndex {
    operation(history, session, &[], &[(name, Written::Value)])
}

/// Reads an effect and then not its cause.
fn effect_without_cause() -> (History, OperationIndex) {
    let mut history = History::default();
    let (alice, bob) = (history.session(), history.session());
    write(&mut history, alice, "photo");
    let comment = write(&mut history, alice, "comment");
    operation(&mut history, bob, &[("comment", Seen::Value(comment))], &[]);
    let reader = operation(&mut history, bob, &[("photo", Seen::Nothing)], &[]);
    (history, reader)
}

#[test]
fn what_only_the_checker_sees_is_a_violation_of_its_own() {
    let (history, _) = effect_without_cause();
    let seen = judge(&history, &[]).expect_err("the cause is missing");
    assert_eq!(seen.property, property::STALE);
    assert_eq!(witnesses(&seen, &history, &[]), Witnesses::Both);
    assert_eq!(reference_sees(&record(&history, &[]), history.promises), Some(true));
    // As if the oracle saw nothing.
    let disagreement = compare(Ok(()), &history, &[]).expect_err("the checker is not");
    assert_eq!(disagreement.property, property::DISAGREEMENT);
    assert!(disagreement.words.contains("WriteCOInitRead"), "{}", disagreement.words);
    assert_eq!(witnesses(&disagreement, &history, &[]), Witnesses::Checker);
}

#[test]
fn without_causality_the_same_is_fine() {
    let (mut history, reader) = effect_without_cause();
    history.promises = Promises::of("eventual").expect("it is known");
    history.operations.iter_mut().for_each(|operation| operation.snapshot = false);
    assert_eq!(judge(&history, &[]), Ok(()));
    // But a session never misses what it wrote.
    let bob = history.operations[reader].session;
    write(&mut history, bob, "album");
    operation(&mut history, bob, &[("album", Seen::Nothing)], &[]);
    let violation = judge(&history, &[]).expect_err("its own album is gone");
    assert_eq!(witnesses(&violation, &history, &[]), Witnesses::Both);
}

#[test]
fn a_rule_broken_is_seen_by_both() {
    let report = run(Options::draw_with(1, Rules::breaking(Rule::WaitForDependencies), "eiger"), None);
    let violation = report.violation.expect("the rule is needed");
    assert_eq!(witnesses(&violation, &report.history, &report.finals), Witnesses::Both, "{violation}");
}

#[test]
fn a_clean_world_holds_for_both() {
    let report = run(Options::draw_with(1, Rules::default(), "eiger"), None);
    assert_eq!(report.violation, None);
    assert!(!report.finals.is_empty());
    let recorded = record(&report.history, &report.finals);
    let checked = check(&recorded, report.history.promises);
    assert_eq!(checked.violations().count(), 0);
    for property in [Property::ReadIntegrity, Property::Counters, Property::Convergence] {
        let verdict = checked.verdict(property);
        assert!(!matches!(verdict, None | Some(Verdict::NotApplicable(_))), "{property}: {verdict:?}");
    }
}

#[test]
fn each_read_of_a_mixed_transaction_stands_for_itself() {
    let mut history = History::default();
    let (alice, bob) = (history.session(), history.session());
    let before = write(&mut history, alice, "x");
    write(&mut history, alice, "x");
    let y = write(&mut history, alice, "y");
    let reads = [("y", Seen::Value(y)), ("x", Seen::Value(before)), ("c", Seen::Bits(1))];
    let mixed = operation(&mut history, bob, &reads, &[("z", Written::Value), ("c", Written::Bit(0))]);
    assert_eq!(judge(&history, &[]).map_err(|v| v.property), Err(property::SNAPSHOT));
    history.operations[mixed].snapshot = false;
    assert_eq!(judge(&history, &[]), Ok(()));
    // What follows in the session knows of all of them.
    operation(&mut history, bob, &[("x", Seen::Value(before))], &[]);
    let violation = judge(&history, &[]).expect_err("x was replaced");
    assert_eq!(witnesses(&violation, &history, &[]), Witnesses::Both);
}

#[test]
fn a_delete_that_explains_an_empty_answer_is_its_cause() {
    for other_delete in [false, true] {
        let mut history = History::default();
        let sessions: [SessionIndex; 4] = std::array::from_fn(|_| history.session());
        let [alice, bob, carol, dave] = sessions;
        let value = write(&mut history, alice, "x");
        operation(&mut history, alice, &[("x", Seen::Something)], &[("x", Written::Nothing)]);
        if other_delete {
            let lost = operation(&mut history, dave, &[], &[("x", Written::Nothing)]);
            history.operations[lost].outcome = Outcome::Unknown;
            history.operations[lost].answered_us = u64::MAX;
        }
        operation(&mut history, bob, &[("x", Seen::Value(value))], &[]);
        operation(&mut history, bob, &[("x", Seen::Nothing)], &[]);
        let y = write(&mut history, bob, "y");
        operation(&mut history, carol, &[("y", Seen::Value(y))], &[]);
        operation(&mut history, carol, &[("x", Seen::Value(value))], &[]);
        // Removals have no place in an order, so the checker is told of none. Of two, the oracle does not ask which.
        let judged = judge(&history, &[]).map_err(|one| (one.property, witnesses(&one, &history, &[])));
        match other_delete {
            false => assert_eq!(judged, Err((property::STALE, Witnesses::Oracle))),
            true => assert_eq!(judged, Ok(())),
        }
        // Where deletes are writes, no order explains it, whichever bob saw: the checker tries both.
        let promises = history.promises;
        history.promises.folds = true;
        assert!(check(&record(&history, &[]), promises).violations().count() > 0);
    }
}

#[test]
fn the_end_is_judged_by_both() {
    let mut history = History::default();
    let alice = history.session();
    let old = write(&mut history, alice, "x");
    let new = write(&mut history, alice, "x");
    let x = history.location("x");
    let end = |datacenter, writer: OperationIndex| Final {
        folded: Vec::new(),
        sequences: Vec::new(),
        datacenter: DatacenterId(datacenter),
        values: vec![(x, Seen::Value(writer))],
        answers: vec![("GET x".to_owned(), writer.to_string())],
    };
    let good = [end(0, new), end(1, new)];
    assert_eq!(judge(&history, &good), Ok(()));
    for bad in [[end(0, new), end(1, old)], [end(0, old), end(1, old)]] {
        let violation = judge(&history, &bad).expect_err("the newer write is lost");
        assert_eq!(witnesses(&violation, &history, &bad), Witnesses::Both, "{violation}");
    }
}

#[test]
fn of_one_stream_the_checker_asks_for_what_one_datacenter_wrote() {
    let mut history = History::default();
    history.promises = Promises::of("log").expect("it is known");
    let [alice, bob, carol] = std::array::from_fn(|_| history.session());
    let older = write(&mut history, alice, "x");
    let photo = write(&mut history, alice, "x");
    operation(&mut history, bob, &[("x", Seen::Value(photo))], &[]);
    let album = write(&mut history, bob, "album");
    let both = [("album", Seen::Value(album)), ("x", Seen::Value(older))];
    operation(&mut history, carol, &both, &[]);
    // Bob may be elsewhere: his stream does not say what he had read of Alice's.
    assert!(!super::promised(history.promises).contains(&Property::WritesFollowReads));
    assert_eq!(check(&record(&history, &[]), history.promises).violations().count(), 0);
    // Alice's own writes come in their order.
    let note = write(&mut history, alice, "note");
    let both = [("note", Seen::Value(note)), ("x", Seen::Value(older))];
    operation(&mut history, carol, &both, &[]);
    assert!(check(&record(&history, &[]), history.promises).violations().count() > 0);
}
