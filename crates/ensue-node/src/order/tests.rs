//! The turns of work in rows.

use super::{RowName, RowOrder};
use bytes::Bytes;
use ensue_types::{KeyspaceId, LogicalTime};

fn row(name: &'static str) -> RowName {
    (KeyspaceId(0), Bytes::from_static(name.as_bytes()))
}

fn drain(order: &mut RowOrder<&'static str>) -> Vec<&'static str> {
    std::iter::from_fn(|| order.pop_ready().map(|(_, work)| work)).collect()
}

#[test]
fn a_later_write_waits_for_an_undecided_transaction() {
    let mut order = RowOrder::default();
    let transaction = order.insert(LogicalTime(10), false, vec![row("x")], "transaction");
    order.insert(LogicalTime(20), true, vec![row("x")], "write");
    assert_eq!(drain(&mut order), Vec::<&str>::new());
    order.decide(transaction, LogicalTime(15));
    assert_eq!(drain(&mut order), ["transaction", "write"]);
    assert!(order.is_idle());
}

#[test]
fn a_denial_lets_earlier_writes_pass() {
    let mut order = RowOrder::default();
    let transaction = order.insert(LogicalTime(10), false, vec![row("x")], "transaction");
    order.insert(LogicalTime(20), true, vec![row("x")], "write");
    order.not_before(transaction, LogicalTime(30));
    assert_eq!(drain(&mut order), ["write"]);
    order.decide(transaction, LogicalTime(31));
    assert_eq!(drain(&mut order), ["transaction"]);
}

#[test]
fn two_transactions_over_the_same_rows_follow_their_times() {
    let mut order = RowOrder::default();
    let first = order.insert(LogicalTime(10), false, vec![row("x"), row("y")], "first");
    let second = order.insert(LogicalTime(11), false, vec![row("y"), row("x")], "second");
    order.decide(second, LogicalTime(40));
    assert_eq!(drain(&mut order), Vec::<&str>::new());
    order.decide(first, LogicalTime(50));
    assert_eq!(drain(&mut order), ["second", "first"]);
}

#[test]
fn blockers_reach_through_decided_work() {
    let mut order = RowOrder::default();
    let hidden = order.insert(LogicalTime(10), false, vec![row("y")], "hidden");
    order.insert(LogicalTime(20), true, vec![row("x"), row("y")], "both");
    let later = order.insert(LogicalTime(90), false, vec![row("x")], "later");
    assert_eq!(order.blockers(&[row("x")], LogicalTime(50)), [hidden]);
    assert_eq!(order.blockers(&[row("x")], LogicalTime(95)), [hidden, later]);
    assert_eq!(order.blockers(&[row("z")], LogicalTime(95)), []);
}
