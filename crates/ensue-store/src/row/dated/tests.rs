//! The fields that have expired are those that a walk finds, in every view, whatever happened to them.

use crate::cell::Write;
use crate::keyspace::Keyspace;
use crate::row::Row;
use crate::view::View;
use bytes::Bytes;
use ensue_types::{
    Carried, Causes, Column, DatacenterId, Decimal, Effect, EpochSum, FieldDeadline, Incarnation,
    LogicalTime, OperationId, PartitionId, Position, RowEffect, Seen, Source, Stamp,
};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;

const KEY: &[u8] = b"row";

#[derive(Clone, Debug)]
enum Step {
    /// A datacenter writes to a field, or to its deadline.
    Write {
        datacenter: u8,
        field: u8,
        kind: u8,
        ms: u64,
    },
    /// Every reader sees the writes up to this one.
    Settle(u64),
    Collect,
    Flush,
}

fn step() -> impl Strategy<Value = Step> {
    let write = (0..2u8, 0..6u8, 0..10u8, 0..20u64);
    let write = write.prop_map(|(datacenter, field, kind, ms)| Step::Write { datacenter, field, kind, ms });
    prop_oneof![
        20 => write,
        2 => (0..60u64).prop_map(Step::Settle),
        2 => Just(Step::Collect),
        1 => Just(Step::Flush),
    ]
}

struct World {
    keyspace: Keyspace,
    time: u64,
    settled: u64,
}

impl World {
    fn write(&mut self, datacenter: u8) -> Write {
        self.time += 1;
        let (time, datacenter, partition) =
            (LogicalTime(self.time), DatacenterId(datacenter), PartitionId(0));
        let operation =
            OperationId { datacenter, incarnation: Incarnation(0), partition, position: Position(self.time) };
        let dependencies = self.keyspace.keeps_versions().then(|| Arc::new(Carried::new(Causes::default())));
        Write { stamp: Stamp { time, datacenter, partition }, at: time, operation, dependencies }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Write { datacenter, field, kind, ms } => {
                let write = self.write(*datacenter);
                let name = Bytes::from(format!("field{field}"));
                let (column, deadline) = (Column::Field(name.clone()), Column::FieldDeadline(name.clone()));
                let put = |value| Effect::Put { value, seen: Seen::new(), over: None };
                let remove = |column: &Column| {
                    let observed = self.keyspace.observed(KEY, column, View::Newest);
                    let observed = observed.unwrap_or_default();
                    Effect::Remove { observed, seen: self.keyspace.seen(KEY, column, View::Newest) }
                };
                let (column, effect) = match kind {
                    0..=2 => (column, put(Bytes::from_static(b"7"))),
                    3 => (column.clone(), remove(&column)),
                    4 => {
                        (column, Effect::Add { epoch_sum: EpochSum { epoch: write.stamp, sum: Decimal(3) } })
                    }
                    5 => (deadline.clone(), remove(&deadline)),
                    6 => (deadline, put(FieldDeadline { ms: *ms, of: write.operation }.to_bytes())),
                    _ => {
                        let row = self.keyspace.row(KEY).map(|row| row.whole().into_owned());
                        let of = row.and_then(|row| row.field_put_by(&name, View::Newest).ok());
                        let of = of.unwrap_or_default();
                        (deadline, put(FieldDeadline { ms: *ms, of }.to_bytes()))
                    }
                };
                self.keyspace.apply(
                    &RowEffect { key: Bytes::from_static(KEY), column, effect },
                    None,
                    &write,
                );
            }
            Step::Settle(until) => {
                self.settled = self.settled.max(*until);
                self.keyspace.settle(&within(self.settled), 1_000);
            }
            Step::Collect => {
                for spent in self.keyspace.take_spent() {
                    self.keyspace.collect(&spent);
                }
            }
            Step::Flush => {
                let write = self.write(0);
                self.keyspace.flush(&write);
            }
        }
    }
}

fn within(until: u64) -> impl Fn(&Source) -> bool {
    move |source: &Source| source.operation.position.0 <= until
}

fn check(row: &Row, view: View<'_>, at_ms: u64) -> Result<(), TestCaseError> {
    let mut walked = BTreeSet::new();
    for (column, cell) in row.cells() {
        let Column::Field(name) = column.as_ref() else { continue };
        let state = cell.at(view).expect("no past state").state;
        let of = if state.base.value.is_some() { state.base.operation } else { OperationId::default() };
        let deadline = row.cell(&Column::FieldDeadline(name.clone()));
        let deadline = deadline.map(|cell| cell.at(view).expect("no past state").state.content());
        let deadline = match deadline {
            Some(crate::cell::Content::Bytes(bytes)) => FieldDeadline::of_bytes(&bytes),
            _ => None,
        };
        if state.is_live() && deadline.is_some_and(|deadline| deadline.of == of && deadline.ms <= at_ms) {
            walked.insert(name.clone());
        }
    }
    let fields = row.cells().filter(|(column, _)| matches!(column.as_ref(), Column::Field(_)));
    let live = fields.filter(|(_, cell)| cell.at(view).is_some_and(|shown| shown.state.is_live())).count();
    let kind = (live > walked.len()).then_some(crate::row::Kind::Hash);
    prop_assert_eq!(row.live_count_at(crate::row::Kind::Hash, view), Ok(live));
    let expired = row.expired_fields(view, at_ms).expect("no past state");
    prop_assert_eq!(row.expired_count(view, at_ms), Ok(walked.len()));
    prop_assert_eq!(row.latest_expired(view, at_ms), Ok(expired.values().copied().max()));
    prop_assert!(expired.into_keys().eq(walked));
    prop_assert_eq!(row.kind_at(view, at_ms), Ok(kind));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_expired_are_those_of_a_walk(
        steps in prop::collection::vec(step(), 1..60),
        keeps_versions in any::<bool>(),
        columns_max in 1_u16..20,
        at_ms in 0_u64..20,
    ) {
        let keyspace = Keyspace::new(keeps_versions).with_columns_max(columns_max);
        let mut world = World { keyspace, time: 0, settled: 0 };
        for step in &steps {
            world.take(step);
            world.keyspace.check_invariants();
            let Some(row) = world.keyspace.row(KEY) else { continue };
            let row = row.whole();
            check(&row, View::Newest, at_ms)?;
            if keeps_versions {
                let half = within(world.settled.max(world.time / 2));
                check(&row, View::Visibility(&half), at_ms)?;
            }
            let has_any = row.cells().any(|(column, _)| matches!(column.as_ref(), Column::FieldDeadline(_)));
            prop_assert_eq!(row.has_field_deadlines(), has_any);
        }
    }
}

/// Whoever deletes expired fields one by one asks after each of them whether the row still shows one.
#[test]
fn deleting_some_of_many_expired_fields_looks_at_each_a_few_times() {
    const FIELDS: usize = 10_000;
    for keeps_versions in [false, true] {
        let keyspace = Keyspace::new(keeps_versions);
        let mut world = World { keyspace, time: 0, settled: 0 };
        let name = |number: usize| Bytes::from(format!("field{number}"));
        let key = Bytes::from_static(KEY);
        for number in 0..FIELDS {
            let put = |value| Effect::Put { value, seen: Seen::new(), over: None };
            let write = world.write(0);
            let deadline = FieldDeadline { ms: number as u64 % 7, of: write.operation }.to_bytes();
            let field =
                RowEffect { key: key.clone(), column: Column::Field(name(number)), effect: put("7".into()) };
            world.keyspace.apply(&field, None, &write);
            let column = Column::FieldDeadline(name(number));
            world.keyspace.apply(
                &RowEffect { key: key.clone(), column, effect: put(deadline) },
                None,
                &write,
            );
        }
        world.keyspace.settle(&within(world.time), usize::MAX);
        let looked_at = |world: &World| {
            let row = world.keyspace.row(KEY).expect("it is there").whole().into_owned();
            row.dated.as_ref().map_or(0, |dated| dated.looked_at.get())
        };
        let before = looked_at(&world);
        for number in 0..FIELDS / 10 {
            for column in [Column::Field(name(number)), Column::FieldDeadline(name(number))] {
                let observed = world.keyspace.observed(KEY, &column, View::Newest).unwrap_or_default();
                let effect =
                    Effect::Remove { observed, seen: world.keyspace.seen(KEY, &column, View::Newest) };
                let write = world.write(0);
                world.keyspace.apply(&RowEffect { key: key.clone(), column, effect }, None, &write);
            }
            let row = world.keyspace.row(KEY).expect("it is there");
            assert_eq!(row.kind_at(View::Newest, 7), Ok(None), "all others have expired, too");
            assert_eq!(row.kind_at(View::Newest, 5), Ok(Some(crate::row::Kind::Hash)));
        }
        let looked_at = looked_at(&world) - before;
        assert!(looked_at < 2 * FIELDS, "{looked_at} looks for a tenth of {FIELDS} fields");
        world.keyspace.check_invariants();
    }
}
