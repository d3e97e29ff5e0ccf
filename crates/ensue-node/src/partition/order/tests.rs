//! The turns of work in rows.

use super::{Moment, RowName, RowOrder};
use bytes::Bytes;
use ensue_types::{KeyspaceId, LogicalTime, PartitionId};

fn row(name: &'static str) -> RowName {
    (KeyspaceId(0), Bytes::from_static(name.as_bytes()))
}

fn at(time: u64) -> Moment {
    Moment::first_of(LogicalTime(time))
}

fn drain(order: &mut RowOrder<&'static str>) -> Vec<&'static str> {
    std::iter::from_fn(|| order.pop_ready().map(|(_, work)| work)).collect()
}

#[test]
fn a_later_write_waits_for_an_undecided_transaction() {
    let mut order = RowOrder::default();
    let transaction = order.insert(at(10), false, vec![row("x")], "transaction");
    order.insert(at(20), true, vec![row("x")], "write");
    assert_eq!(drain(&mut order), Vec::<&str>::new());
    order.decide(transaction, at(15));
    assert_eq!(drain(&mut order), ["transaction", "write"]);
    assert!(order.is_idle());
}

#[test]
fn a_denial_lets_earlier_writes_pass() {
    let mut order = RowOrder::default();
    let transaction = order.insert(at(10), false, vec![row("x")], "transaction");
    order.insert(at(20), true, vec![row("x")], "write");
    order.not_before(transaction, LogicalTime(30));
    assert_eq!(drain(&mut order), ["write"]);
    order.decide(transaction, at(31));
    assert_eq!(drain(&mut order), ["transaction"]);
}

#[test]
fn two_transactions_over_the_same_rows_follow_their_times() {
    let mut order = RowOrder::default();
    let first = order.insert(at(10), false, vec![row("x"), row("y")], "first");
    let second = order.insert(at(11), false, vec![row("y"), row("x")], "second");
    order.decide(second, at(40));
    assert_eq!(drain(&mut order), Vec::<&str>::new());
    order.decide(first, at(50));
    assert_eq!(drain(&mut order), ["second", "first"]);
}

#[test]
fn blockers_reach_through_decided_work() {
    let mut order = RowOrder::default();
    let hidden = order.insert(at(10), false, vec![row("y")], "hidden");
    order.insert(at(20), true, vec![row("x"), row("y")], "both");
    let later = order.insert(at(90), false, vec![row("x")], "later");
    assert_eq!(order.blockers(&[row("x")], LogicalTime(50)), [hidden]);
    assert_eq!(order.blockers(&[row("x")], LogicalTime(95)), [hidden, later]);
    assert_eq!(order.blockers(&[row("z")], LogicalTime(95)), []);
}

#[test]
fn equal_times_of_two_partitions_follow_their_stamps() {
    let mut order = RowOrder::default();
    let transaction = order.insert(at(10), false, vec![row("x")], "drawn by partition 3");
    let own = Moment { time: LogicalTime(20), drawn_by: PartitionId(0) };
    order.insert(own, true, vec![row("x")], "drawn by partition 0");
    order.decide(transaction, Moment { time: LogicalTime(20), drawn_by: PartitionId(3) });
    assert_eq!(drain(&mut order), ["drawn by partition 0", "drawn by partition 3"]);
}

#[test]
fn what_waits_is_counted_and_keeps_its_rows_busy() {
    let mut order = RowOrder::default();
    let key = |name: &'static str| Bytes::from_static(name.as_bytes());
    assert!(order.is_idle() && !order.is_busy(KeyspaceId(0), &key("x")));
    let one = order.insert(at(10), false, vec![row("x"), row("y")], "one");
    let other = order.insert(at(20), false, vec![row("y")], "other");
    assert!(!order.is_idle());
    assert_eq!(order.len(), 2);
    assert!(order.is_busy(KeyspaceId(0), &key("x")) && order.is_busy(KeyspaceId(0), &key("y")));
    assert!(!order.is_busy(KeyspaceId(0), &key("z")) && !order.is_busy(KeyspaceId(1), &key("x")));
    order.remove(one);
    assert_eq!(order.len(), 1);
    assert!(!order.is_busy(KeyspaceId(0), &key("x")) && order.is_busy(KeyspaceId(0), &key("y")));
    order.remove(other);
    assert!(order.is_idle() && order.len() == 0);
}
