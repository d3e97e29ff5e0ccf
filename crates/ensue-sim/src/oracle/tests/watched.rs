//! Transactions that watch a key.

use super::*;
use bytes::Bytes;

#[test]
fn one_that_is_not_executed_was_hindered() {
    for hindered in [false, true] {
        let mut m = Maker::default();
        let [a, b] = m.sessions();
        let before = m.write(b, &["w0-1"]);
        let aborted = m.read(a, &[("w0-1", Some(before))]);
        m.history.operations[aborted].commands =
            vec![["WATCH", "w0-1"].map(Bytes::from).into_iter().collect()];
        m.history.operations[aborted].answered_us = if hindered { 1_000 } else { m.time + 9 };
        m.history.aborted.push(aborted);
        m.write(b, &["w0-1"]);
        assert_eq!(m.judge(), (!hindered).then_some(property::ABORTED));
    }
}

/// Seed 1 of `ha-pocc`.
#[test]
fn who_fell_back_may_be_hindered_by_what_is_hidden_from_it() {
    for (protocol, verdict) in [("ha-pocc", None), ("pocc", Some(property::ABORTED))] {
        let mut m = Maker::default();
        m.history.promises = Promises::of(protocol).expect("it is one");
        let [a, b] = m.sessions();
        let first = m.write(b, &["w0-1"]);
        m.write(b, &["w0-1"]);
        let aborted = m.read(a, &[("w0-1", Some(first))]);
        m.history.operations[aborted].commands =
            vec![["WATCH", "w0-1"].map(Bytes::from).into_iter().collect()];
        m.history.aborted.push(aborted);
        assert_eq!(m.judge(), verdict, "{protocol}");
        m.history.operations[aborted].reads[0].1 = Seen::Value(first + 1);
        assert_eq!(m.judge(), verdict, "{protocol}: what is read may have become shown after `WATCH`");
        m.history.operations[aborted].commands =
            vec![["WATCH", "w1-1"].map(Bytes::from).into_iter().collect()];
        m.history.location("w1-1");
        assert_eq!(m.judge(), Some(property::ABORTED), "{protocol}: nobody has ever written it");
    }
}

/// Where writes may be hidden for long, one that the session knows is not among them.
#[test]
fn who_fell_back_is_not_hindered_by_what_it_has_been_shown() {
    let mut m = Maker::default();
    m.history.promises = Promises::of("ha-pocc").expect("it is one");
    let [a, b] = m.sessions();
    let first = m.write(b, &["w0-1"]);
    let second = m.operation(b, &[("w0-1", Seen::Value(first))], &[("w0-1", Written::Value)]);
    let known = m.read(a, &[]);
    let aborted = m.read(a, &[("w0-1", Some(second))]);
    m.history.operations[aborted].commands = vec![["WATCH", "w0-1"].map(Bytes::from).into_iter().collect()];
    m.history.aborted.push(aborted);
    assert_eq!(m.judge(), None);
    let location = m.history.location("w0-1");
    m.history.operations[known].reads = vec![(location, Seen::Value(first))];
    assert_eq!(m.judge(), None, "the second one had not been shown");
    m.history.operations[known].reads[0].1 = Seen::Value(second);
    assert_eq!(m.judge(), Some(property::ABORTED), "nor may the first one be shown later than the second");
    m.history.discarded.insert((second, location));
    assert_eq!(m.judge(), None, "it may go at any time");
}

/// Seed 5 of `cops`: it was changed between `WATCH` and `GET`.
#[test]
fn what_is_read_may_itself_have_changed_what_is_watched() {
    let mut m = Maker::default();
    let [a, b] = m.sessions();
    let aborted = m.read(a, &[]);
    let changed = m.write(b, &["w0-1"]);
    let location = m.history.location("w0-1");
    let operation = &mut m.history.operations[aborted];
    operation.commands = vec![["WATCH", "w0-1"].map(Bytes::from).into_iter().collect()];
    operation.reads = vec![(location, Seen::Value(changed))];
    operation.answered_us = 1_000;
    m.history.aborted.push(aborted);
    assert_eq!(m.judge(), None);
}

/// Seed 44 of `pocc`, losing: what the first of two had written was discarded with a dead datacenter.
#[test]
fn what_was_discarded_may_be_replaced_again() {
    let mut m = Maker::default();
    let [a, b] = m.sessions();
    let before = m.write(a, &["w0-1"]);
    let value = [("w0-1", Seen::Value(before))];
    let first = m.operation(a, &value, &[("w0-1", Written::Value)]);
    m.operation(b, &value, &[("w0-1", Written::Value)]);
    assert_eq!(m.judge(), Some(property::WATCHED));
    let location = m.history.location("w0-1");
    m.history.discarded.insert((first, location));
    assert_eq!(m.judge(), None);
}
