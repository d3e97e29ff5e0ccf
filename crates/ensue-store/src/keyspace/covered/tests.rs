//! What was forgotten of counters takes no memory in later rows, and is covered all the same. That every order of
//! arrival ends the same is tested with removals (`undominated`).

use super::*;
use crate::cell::{Content, Write};
use crate::keyspace::Collected;
use bytes::Bytes;
use ensue_types::{Incarnation, LogicalTime, OperationId, PartitionId, Position};

const COLUMNS: [Column; 2] = [Column::Text, Column::Field(Bytes::from_static(b"f"))];

fn write(datacenter: u8, time: u64) -> Write {
    let (datacenter, partition) = (DatacenterId(datacenter), PartitionId(0));
    let position = Position(time);
    let operation = OperationId { datacenter, incarnation: Incarnation(1), partition, position };
    let time = LogicalTime(time);
    Write { stamp: Stamp { time, datacenter, partition }, at: time, operation, dependencies: None }
}

fn change(key: &'static str, column: &Column, effect: Effect) -> RowEffect {
    RowEffect { key: Bytes::from_static(key.as_bytes()), column: column.clone(), effect }
}

/// An addition to a counter, and its removal.
fn counter_of_a_while() -> [(RowEffect, Write); 2] {
    let (added, removed) = (write(0, 10), write(0, 20));
    let epoch_sum = EpochSum { epoch: added.stamp, sum: Decimal::from_integer(5) };
    let seen = SeenSum { datacenter: DatacenterId(0), epoch_sum, stamp: added.stamp };
    let removal = Effect::Remove { observed: Default::default(), seen: vec![seen] };
    let of = |effect| change("counter", &Column::Text, effect);
    [(of(Effect::Add { epoch_sum }), added), (of(removal), removed)]
}

fn give(rows: &mut Keyspace, (change, write): &(RowEffect, Write)) {
    rows.apply(change, None, write);
    rows.check_invariants();
}

fn collect(rows: &mut Keyspace) {
    for spent in rows.take_spent() {
        assert_ne!(rows.collect(&spent), Collected::Later);
    }
    rows.begin_forgetting_covered();
    rows.forget_covered(usize::MAX);
    rows.check_invariants();
}

/// A value that is put now, as its writer sends it.
fn put(rows: &Keyspace, key: &'static str, column: &Column, by: Write) -> (RowEffect, Write) {
    let (seen, over) = rows.beneath(key.as_bytes(), column, View::Newest, by.stamp.datacenter);
    let value = Bytes::from(by.stamp.time.0.to_string());
    (change(key, column, Effect::Put { value, seen, over }), by)
}

fn covered(sent: &(RowEffect, Write)) -> Option<Stamp> {
    let Effect::Put { seen, .. } = &sent.0.effect else { return None };
    cell::of_every(seen)
}

fn content(rows: &Keyspace, key: &str, column: &Column) -> Content {
    let row = rows.row(key.as_bytes()).expect("it was put").whole();
    row.cell(column).expect("it was put").state().content()
}

fn is_whole(rows: &Keyspace, key: &str) -> bool {
    matches!(rows.row(key.as_bytes()), Some(RowRef::Whole(_)))
}

#[test]
fn where_all_has_come_a_value_takes_no_more_than_before() {
    let mut rows = Keyspace::new(false);
    counter_of_a_while().iter().for_each(|sent| give(&mut rows, sent));
    collect(&mut rows);
    assert_eq!((rows.bytes(), rows.rows_count()), (0, 0));
    for (column, base) in COLUMNS.iter().zip([30, 60]) {
        let mut empty = Keyspace::new(false);
        for time in [base, base + 10] {
            let sent = put(&rows, "key", column, write(0, time));
            assert_eq!(covered(&sent), Some(write(0, 20).stamp), "who puts over it covers as much");
            give(&mut rows, &sent);
            let sent = put(&empty, "key", column, write(0, time));
            give(&mut empty, &sent);
            assert!(!is_whole(&rows, "key"));
            assert_eq!(rows.bytes(), empty.bytes());
        }
        let seen = rows.seen(b"key", column, View::Newest);
        assert_eq!(cell::of_every(&seen), Some(write(0, 20).stamp), "and so does who removes it");
        let observed = rows.observed(b"key", column, View::Newest).expect("no siblings");
        give(&mut rows, &(change("key", column, Effect::Remove { observed, seen }), write(0, base + 20)));
        collect(&mut rows);
        assert_eq!((rows.bytes(), rows.rows_count()), (0, 0));
        assert_eq!(rows.bounds().collected, write(0, 20).stamp, "no other addition was deleted");
    }
}

#[test]
fn where_something_may_come_it_is_remembered_until_that_has_come() {
    for column in &COLUMNS {
        let (mut writer, mut other) = (Keyspace::new(false), Keyspace::new(false));
        counter_of_a_while().iter().for_each(|sent| give(&mut writer, sent));
        collect(&mut writer);
        let sent = put(&writer, "key", column, write(0, 30));
        // Of another key: its removal has not come.
        give(&mut other, &sent);
        collect(&mut other);
        assert!(is_whole(&other, "key"));
        counter_of_a_while().iter().for_each(|sent| give(&mut other, sent));
        collect(&mut other);
        assert!(!is_whole(&other, "key"));
        assert_eq!(other.rows_count(), 1);
        assert_eq!(covered(&put(&other, "key", column, write(1, 31))), Some(write(0, 20).stamp));
    }
}

#[test]
fn what_comes_late_is_covered() {
    let (mut writer, mut other) = (Keyspace::new(false), Keyspace::new(false));
    let [added, removed] = counter_of_a_while();
    give(&mut writer, &added);
    give(&mut writer, &removed);
    collect(&mut writer);
    for time in [30, 40] {
        let sent = put(&writer, "counter", &Column::Text, write(0, time));
        give(&mut writer, &sent);
        give(&mut other, &sent);
    }
    give(&mut other, &added);
    assert_eq!(content(&other, "counter", &Column::Text), Content::Bytes(Bytes::from_static(b"40")));
    give(&mut other, &removed);
    collect(&mut other);
    assert_eq!(content(&other, "counter", &Column::Text), Content::Bytes(Bytes::from_static(b"40")));
}

#[test]
fn some_are_looked_at_a_turn_and_a_hot_value_is_noted_once() {
    let (mut writer, mut other) = (Keyspace::new(false), Keyspace::new(false));
    counter_of_a_while().iter().for_each(|sent| give(&mut writer, sent));
    collect(&mut writer);
    let keys = ["a", "b", "c", "d", "e"];
    for (time, key) in (30..).zip(keys.repeat(20)) {
        let sent = put(&writer, key, &Column::Text, write(0, time));
        give(&mut writer, &sent);
        give(&mut other, &sent);
    }
    assert_eq!(other.covering.columns.len(), keys.len());
    counter_of_a_while().iter().for_each(|sent| give(&mut other, sent));
    for spent in other.take_spent() {
        other.collect(&spent);
    }
    other.begin_forgetting_covered();
    for left in [3, 1, 0, 0] {
        other.forget_covered(2);
        assert_eq!(keys.iter().filter(|key| is_whole(&other, key)).count(), left);
    }
}
