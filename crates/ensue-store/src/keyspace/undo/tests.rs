//! What was changed and taken back again is as it was, whatever the rows hold.

use super::*;
use crate::cell::Write;
use crate::view::View;
use ensue_types::{
    Carried, Causes, DatacenterId, Decimal, Effect, EpochSum, Incarnation, OperationId, PartitionId,
    Position, RowEffect, Seen, Stamp,
};
use proptest::prelude::*;
use std::sync::Arc;

/// A change: the number of its key, of its column, and what it does.
type Draft = (u8, u16, u8);

fn drafts(most: usize) -> impl Strategy<Value = Vec<Draft>> {
    // Few keys; of columns so many that a row may become large.
    prop::collection::vec((0_u8..3, prop_oneof![0_u16..4, 0_u16..400], 0_u8..8), 0..most)
}

fn write(time: u64, carries: bool) -> Write {
    write_of(DatacenterId(0), time, carries)
}

fn write_of(datacenter: DatacenterId, time: u64, carries: bool) -> Write {
    let stamp = Stamp { time: LogicalTime(time), datacenter, partition: PartitionId(0) };
    let operation = OperationId {
        datacenter,
        partition: PartitionId(0),
        incarnation: Incarnation(1),
        position: Position(time),
    };
    let dependencies = carries.then(|| Arc::new(Carried::new(Causes::default())));
    Write { stamp, at: LogicalTime(time), operation, dependencies }
}

fn change(rows: &Keyspace, (key, column, kind): Draft, stamp: Stamp) -> RowEffect {
    let key = Bytes::from(format!("key{key}"));
    let column = match (kind, column) {
        (0 | 1 | 6, _) => Column::Text,
        (2, 0) => Column::Deadline,
        (2 | 3 | 7, number) => Column::Field(number.to_string().into()),
        (_, number) => Column::Member(number.to_string().into()),
    };
    let seen: Seen = rows.seen(&key, &column, View::Newest);
    let (_, over) = rows.beneath(&key, &column, View::Newest, stamp.datacenter);
    let effect = match kind {
        1 => Effect::Add { epoch_sum: EpochSum { epoch: stamp, sum: Decimal(7) } },
        3 | 5 => Effect::Delete { seen },
        6 | 7 => {
            let mut observed = rows.observed(&key, &column, View::Newest).expect("no siblings");
            observed.leave_out(stamp);
            Effect::Remove { observed, seen }
        }
        _ if column == Column::Deadline => {
            Effect::Put { value: 99_u64.to_le_bytes().to_vec().into(), seen, over }
        }
        _ => Effect::Put { value: "value".into(), seen, over },
    };
    RowEffect { key, column, effect }
}

/// All that anybody can see of the rows, and what is counted of them.
fn image(rows: &Keyspace) -> String {
    let mut cells: Vec<String> = Vec::new();
    for row in rows.rows() {
        let row = row.whole();
        let all = row.all_cells().map(|(column, cell)| format!("{:?} {column:?} {cell:?}", row.key()));
        cells.extend(all);
        cells.push(format!("{:?} {:?} {} {:?}", row.key(), row.since(), row.unsettled(), row.kind()));
    }
    cells.sort();
    // How many bytes they take depends on whether they are compact, which they need not be again.
    let counted = (rows.cells(), rows.versions(), rows.unsettled_locations(), rows.rows_count());
    format!("{counted:?} {:?} {:?} {cells:#?}", rows.spent, rows.expiries)
}

proptest! {
    #[test]
    fn what_is_taken_back_is_as_if_it_had_never_been(
        before in drafts(400),
        taken_back in drafts(200),
        versions: bool,
        read: bool,
    ) {
        let mut rows = Keyspace::new(versions);
        let carries = versions;
        let mut time = 1;
        for draft in before {
            let write = write_of(DatacenterId((time % 3) as u8), time, carries);
            let change = change(&rows, draft, write.stamp);
            rows.apply(&change, None, &write);
            time += 1;
        }
        if read {
            // Past states are kept.
            rows.mark(b"key1", 1_000);
        }
        rows.take_versions_come();
        let as_it_was = image(&rows);
        rows.note_written(true);
        let write = write(time, false);
        let mut kept = Vec::new();
        for draft in taken_back {
            let change = change(&rows, draft, write.stamp);
            kept.push(rows.keep(&change.key, &change.column));
            rows.apply(&change, None, &write);
        }
        for kept in kept.into_iter().rev() {
            rows.take_back(kept);
        }
        prop_assert_eq!(as_it_was, image(&rows));
        prop_assert_eq!(rows.take_versions_come(), 0);
        rows.check_invariants();
    }
}

#[test]
fn a_total_that_was_taken_back_goes_on_from_where_it_was() {
    let mut rows = Keyspace::new(false);
    let add = |sum| RowEffect {
        key: "n".into(),
        column: Column::Text,
        effect: Effect::Add { epoch_sum: EpochSum { epoch: write(1, false).stamp, sum: Decimal(sum) } },
    };
    rows.apply(&add(5), None, &write(1, false));
    let kept = rows.keep(&"n".into(), &Column::Text);
    rows.apply(&add(7), None, &write(2, false));
    rows.take_back(kept);
    rows.apply(&add(6), None, &write(2, false));
    let row = rows.row(b"n").expect("it is there").whole().into_owned();
    let content = row.cell(&Column::Text).expect("it has a text").state().content();
    assert_eq!(content, crate::cell::Content::Number(Decimal(6)));
}

#[test]
fn the_order_of_a_sorted_set_is_as_it_was() {
    let mut rows = Keyspace::new(false);
    let put = |name: u32, score: u32| RowEffect {
        key: "z".into(),
        column: Column::Scored(name.to_string().into()),
        effect: Effect::Put { value: score.to_string().into(), seen: Seen::new(), over: None },
    };
    for name in 0..600 {
        rows.apply(&put(name, name * 7 % 41), None, &write(u64::from(name) + 1, false));
    }
    rows.keep_order(b"z");
    let members = |rows: &Keyspace| {
        let row = rows.row(b"z").expect("it is there").whole().into_owned();
        let ordered = row.ordered(crate::view::View::Newest).expect("the order is kept");
        ordered.members(0..ordered.len())
    };
    let as_it_was = members(&rows);
    let delete = RowEffect { effect: Effect::Delete { seen: Seen::new() }, ..put(6, 0) };
    let mut kept = Vec::new();
    for change in [put(5, 1_000), delete, put(700, 3), put(5, 0), put(6, 9)] {
        kept.push(rows.keep(&change.key, &change.column));
        rows.apply(&change, None, &write(1_000, false));
    }
    assert_eq!(members(&rows).len(), 601);
    assert_ne!(members(&rows), as_it_was);
    for kept in kept.into_iter().rev() {
        rows.take_back(kept);
    }
    assert_eq!(members(&rows), as_it_was);
}
