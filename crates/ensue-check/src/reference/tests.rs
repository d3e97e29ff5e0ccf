//! Histories of a few transactions whose verdicts are known from the literature, or derived by hand.
//!
//! A session is a line, its transactions stand between bars: `wx1` writes 1 to x, `rx0` reads that x holds nothing,
//! `a+2` adds 2 to the counter, `c=2` reads it. `?` before a transaction: nobody knows; `!`: it failed; `F`: at rest.

use super::*;
use crate::history::{Key, Operation, Outcome, Session, SessionIndex, Transaction, TransactionIndex, Value};
use Property::*;

fn history(sessions: &[&str]) -> History {
    let mut history = History::default();
    for (index, line) in sessions.iter().enumerate() {
        let mut session = Session { name: format!("s{index}"), transactions: Vec::new() };
        for text in line.split('|') {
            session.transactions.push(TransactionIndex(history.transactions.len() as u32));
            history.transactions.push(transaction(text.trim(), index as u32));
        }
        history.sessions.push(session);
    }
    history.keys = ["x", "y", "z", "counter"].map(String::from).to_vec();
    history.values = (0..10).map(|value| value.to_string()).collect();
    history.datacenters = vec!["dc1".into(), "dc2".into()];
    history
}

fn transaction(text: &str, session: u32) -> Transaction {
    let outcome = match text.as_bytes()[0] {
        b'?' => Outcome::Unknown,
        b'!' => Outcome::Failed,
        _ => Outcome::Committed,
    };
    Transaction {
        session: SessionIndex(session),
        line: 0,
        datacenter: Some((session % 2) as u16),
        start_us: 0,
        end_us: if outcome == Outcome::Unknown { u64::MAX } else { 0 },
        outcome,
        is_final: text.starts_with('F'),
        merges: Vec::new(),
        operations: text.trim_start_matches(['?', '!', 'F', ' ']).split(' ').map(operation).collect(),
    }
}

fn operation(word: &str) -> Operation {
    let key = |name: char| Key("xyz".find(name).unwrap() as u32);
    let mut letters = word.chars();
    let (kind, name) = (letters.next().unwrap(), letters.next().unwrap());
    let rest = letters.as_str();
    match kind {
        'w' => Operation::Write { key: key(name), value: Value(rest.parse().unwrap()) },
        'r' => Operation::Read { key: key(name), value: Value(rest.parse().unwrap()) },
        'a' => Operation::Add { key: Key(3), delta: word[1..].parse().unwrap() },
        _ => Operation::Count { key: Key(3), value: rest.parse().unwrap() },
    }
}

/// Exactly these properties fail.
#[track_caller]
fn check(sessions: &[&str], violated: &[Property]) {
    check_history(&history(sessions), violated);
}

#[track_caller]
fn check_history(history: &History, violated: &[Property]) {
    let found = findings(history).into_iter().filter(|(_, finding)| *finding != Finding::InEvery);
    let found: Vec<(Property, Finding)> = found.collect();
    let mut violated: Vec<_> = violated.iter().map(|&property| (property, Finding::InNone)).collect();
    violated.sort_by_key(|(property, _)| *property);
    assert_eq!(found, violated);
}

fn findings(history: &History) -> Vec<(Property, Finding)> {
    judge(history).unwrap().findings
}

#[test]
fn what_is_right_holds() {
    check(&["wx1 | rx1 | wy1", "ry1 | rx1", "rx0 | rx1 | ry0 | ry1"], &[]);
    check(&["wx1 wy1", "wx2 wy2", "rx1 ry1 | rx2 ry2"], &[]);
    check(&["wx1 rx1 wx2 rx2", "rx2"], &[]);
}

#[test]
fn each_session_guarantee_alone() {
    check(&["wx1 | rx0"], &[ReadYourWrites, ReadAtomic, Causal, CausalConvergent]);
    check(&["wx1 | wx2", "rx2 | rx1"], &[MonotonicReads, Causal, CausalConvergent]);
    check(&["wx1 | wy1", "ry1 rx0"], &[MonotonicWrites, SnapshotReads, Causal, CausalConvergent]);
    check(&["wx1", "rx1 | wy1", "ry1 rx0"], &[WritesFollowReads, SnapshotReads, Causal, CausalConvergent]);
    check(&["wx1", "rx1 wy1", "ry1 rx0"], &[WritesFollowReads, SnapshotReads, Causal, CausalConvergent]);
}

#[test]
fn the_photo_and_the_album_over_two_reads_is_causal_only() {
    check(&["wx1 | wy1", "ry1 | rx0"], &[Causal, CausalConvergent]);
}

#[test]
fn two_orders_of_concurrent_writes() {
    // Each session sees its own order: causal, but no one order of the writes explains both.
    check(&["wx1", "wx2", "rx1 | rx2", "rx2 | rx1"], &[MonotonicReads, CausalConvergent]);
    check(&["wx1 | rx2", "wx2 | rx1"], &[ReadYourWrites, ReadAtomic, CausalConvergent]);
}

#[test]
fn torn_transactions() {
    check(&["wx1 wy1", "rx1 ry0"], &[ReadAtomic, SnapshotReads, Causal, CausalConvergent]);
    check(&["wx1 wy1", "wx2 wy2", "rx1 ry2"], &[ReadAtomic, SnapshotReads, CausalConvergent]);
    check(&["wx1", "wx2", "rx1 rx2"], &[ReadAtomic, SnapshotReads, CausalConvergent]);
}

#[test]
fn values_from_nowhere() {
    check(&["rx7"], &[ReadIntegrity]);
    check(&["!wx1", "rx1"], &[ReadIntegrity]);
    check(&["wx1 wx2", "rx1"], &[ReadIntegrity]);
    check(&["wx1 rx2 wx2"], &[ReadIntegrity]);
    check(&["rx1 wx1"], &[ReadIntegrity]);
    check(&["wx1 rx0"], &[ReadIntegrity]);
}

#[test]
fn a_cycle_of_reads() {
    let all: Vec<Property> = Property::DEFAULT.into_iter().skip(1).take(8).collect();
    check(&["rx1 | wy1", "ry1 | wx1"], &all);
}

#[test]
fn what_nobody_knows_counts_if_somebody_saw_it() {
    check(&["?wx1 wy1", "rx0 ry0"], &[]);
    check(&["?wx1 wy1", "rx1 ry0"], &[ReadAtomic, SnapshotReads, Causal, CausalConvergent]);
    check(&["?wx1", "rx1 | rx0"], &[MonotonicReads, Causal, CausalConvergent]);
}

#[test]
fn nothing_may_be_any_delete() {
    let some_hold = |sessions: &[&str]| {
        findings(&history(sessions)).iter().all(|(_, finding)| *finding != Finding::InNone)
    };
    assert!(some_hold(&["wx1 | wx0", "rx1 | rx0"]));
    assert!(some_hold(&["wx1", "rx1 | rx0", "rx1 | wx0"]));
    // The delete is before the write that its reader saw.
    check(&["wx0 | wx1", "rx1 | rx0"], &[MonotonicReads, Causal, CausalConvergent]);
}

#[test]
fn what_depends_on_who_was_read_holds_in_some_resolutions() {
    let findings = findings(&history(&["wx1 | rx0", "?wx0"]));
    let open = [ReadYourWrites, ReadAtomic, Causal, CausalConvergent];
    for (property, finding) in findings {
        let expected = if open.contains(&property) { Finding::InSome } else { Finding::InEvery };
        assert_eq!(finding, expected, "{property}");
    }
}

#[test]
fn a_token_carries_the_past() {
    let mut moved = history(&["wx1", "rx0"]);
    check_history(&moved, &[]);
    moved.transactions[1].merges = vec![TransactionIndex(0)];
    check_history(&moved, &[ReadYourWrites, ReadAtomic, Causal, CausalConvergent]);
}

#[test]
fn counters_are_sums() {
    check(&["a+1 | c=1", "a+2 | c=2 | c=3"], &[]);
    check(&["a+1 | c=0", "a+2"], &[Counters]);
    check(&["a+1 | c=2", "a+2"], &[Counters]);
    check(&["a+1 c=1 a+5", "c=6"], &[]);
    check(&["a+1", "?a+2", "!a+4", "c=2 | c=3"], &[]);
    // Which additions are in a sum is certain if all are other powers of two, and so they stay in the past.
    check(&["a+1", "?a+2", "!a+4", "c=2 | c=3 | c=1"], &[Counters]);
    check(&["a+1", "a+1", "a+2", "c=2 | c=2"], &[]);
    check(&["wx1 | a+1", "c=1 | rx0"], &[Causal, CausalConvergent]);
    check(&["!a+4", "c=4"], &[Counters]);
    check(&["a+1 | wx1", "rx1 | c=0"], &[Counters]);
    check(&["a+1", "?a+2", "F c=3"], &[]);
    check(&["a+1", "?a+2", "F c=2"], &[Counters]);
    check(&["?a+2 wx1", "rx1", "F c=0"], &[Counters]);
}

#[test]
fn no_addition_from_the_future() {
    let mut late = history(&["a+1", "c=1"]);
    (late.transactions[0].start_us, late.transactions[0].end_us) = (20, 30);
    (late.transactions[1].start_us, late.transactions[1].end_us) = (5, 19);
    check_history(&late, &[Counters]);
    late.transactions[1].end_us = 20;
    check_history(&late, &[]);
}

#[test]
fn at_rest_all_are_equal_and_newest() {
    check(&["wx1", "wx2", "F rx2", "F rx2"], &[]);
    check(&["wx1", "wx2", "F rx1", "F rx2"], &[Convergence]);
    check(&["wx1 | wx2", "F rx1", "F rx1"], &[Convergence]);
    check(&["wx1", "F rx0", "F rx0"], &[Convergence]);
    check(&["a+1", "F c=1", "F c=0"], &[Counters, Convergence]);
}

#[test]
fn too_many_possibilities_are_refused() {
    let deletes = ["wx0"; 9].join(" | ");
    let reads = ["rx0"; 9].join(" | ");
    let wide = history(&[&deletes, &reads]);
    assert_eq!(judge(&wide), Err(TooLarge));
}
