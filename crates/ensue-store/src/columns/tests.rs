//! A large row says without a walk what a walk through it says, of every view that is no past time.

use super::{LARGE, Large};
use crate::cell::{Keep, Write};
use crate::compact::RowRef;
use crate::keyspace::{Collected, Keyspace};
use crate::row::{Kind, Row};
use crate::view::View;
use bytes::Bytes;
use ensue_types::{
    Carried, Causes, Column, DatacenterId, Decimal, Effect, EpochSum, Incarnation, LogicalTime, OperationId,
    PartitionId, Position, RowEffect, Seen, Source, Stamp, TimeVector, Vector,
};
use proptest::prelude::*;
use std::borrow::Cow;
use std::sync::Arc;

const KEY: &[u8] = b"row";

/// What happens to the row.
#[derive(Clone, Debug)]
enum Step {
    /// A datacenter puts, deletes, or adds, to a column of this number.
    Write {
        datacenter: u8,
        column: usize,
        kind: u8,
    },
    /// Whoever looks has seen so many of each datacenter's writes.
    Settle([u64; 2]),
    /// Every datacenter has so many of each.
    Summarise([u64; 2]),
    Collect,
    /// A flush of the first datacenter.
    Flush,
}

fn step() -> impl Strategy<Value = Step> {
    let write = (0..2u8, 0..700usize, 0..8u8).prop_map(|(datacenter, column, kind)| Step::Write {
        datacenter,
        column,
        kind,
    });
    prop_oneof![
        20 => write,
        2 => prop::array::uniform2(0..900u64).prop_map(Step::Settle),
        2 => prop::array::uniform2(0..900u64).prop_map(Step::Summarise),
        1 => Just(Step::Collect),
        1 => Just(Step::Flush),
    ]
}

/// A keyspace, and how much of each datacenter there is.
struct World {
    keyspace: Keyspace,
    written: [u64; 2],
    time: u64,
    settled: [u64; 2],
}

impl World {
    fn write(&mut self, datacenter: u8) -> Write {
        self.time += 1;
        self.written[usize::from(datacenter)] += 1;
        let (time, datacenter, partition) =
            (LogicalTime(self.time), DatacenterId(datacenter), PartitionId(0));
        let position = Position(self.written[usize::from(datacenter.0)]);
        let operation = OperationId { datacenter, incarnation: Incarnation(0), partition, position };
        let times: TimeVector = self.written.iter().map(|&number| LogicalTime(number)).collect();
        let carried: Causes = Vector { times, ..Vector::default() }.into();
        let dependencies = self.keyspace.keeps_versions().then(|| Arc::new(Carried::new(carried)));
        Write { stamp: Stamp { time, datacenter, partition }, at: time, operation, dependencies }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Write { datacenter, column, kind } => {
                let write = self.write(*datacenter);
                let name = Bytes::from(format!("column{column}"));
                // Now and then one of another kind.
                let column = if column % 97 == 96 { Column::Member(name) } else { Column::Field(name) };
                let value = Bytes::from_static(b"7");
                let effect = match kind {
                    0..=4 => Effect::Put { value, seen: Seen::new(), over: None },
                    5 | 6 => Effect::Delete { seen: Seen::new() },
                    _ => Effect::Add { epoch_sum: EpochSum { epoch: write.stamp, sum: Decimal(3) } },
                };
                let change = RowEffect { key: Bytes::from_static(KEY), column, effect };
                self.keyspace.apply(&change, None, &write);
            }
            Step::Settle(to) => {
                for (settled, to) in self.settled.iter_mut().zip(to) {
                    *settled = (*settled).max(*to);
                }
                let settled = self.settled;
                self.keyspace.settle(&within(settled), 10_000);
            }
            Step::Summarise(to) => {
                let has = |one: &OperationId| one.position.0 <= to[usize::from(one.datacenter.0)];
                self.keyspace.summarise(&has);
            }
            Step::Collect => {
                for spent in self.keyspace.take_spent() {
                    assert_ne!(self.keyspace.collect(&spent), Collected::Later, "{spent:?}");
                }
            }
            Step::Flush => {
                let write = self.write(0);
                self.keyspace.flush(&write);
            }
        }
    }
}

fn within(seen: [u64; 2]) -> impl Fn(&Source) -> bool {
    move |source| source.operation.position.0 <= seen[usize::from(source.operation.datacenter.0)]
}

/// What a view shows, by a walk, and whether what the row says by itself is the same.
fn check(row: &Row, view: View<'_>) -> Result<(), TestCaseError> {
    for kind in [Kind::Text, Kind::Hash, Kind::Set] {
        let is_live = |(column, cell): &(Cow<'_, Column>, Cow<'_, crate::cell::Cell>)| {
            Kind::of(column) == Some(kind) && cell.at(view).is_some_and(|shown| shown.state.is_live())
        };
        let live = row.cells().filter(is_live).count();
        prop_assert_eq!(row.live_count_at(kind, view), Ok(live), "{:?}", kind);
        prop_assert_eq!(row.has_live(kind, view), live > 0);
    }
    let newest = row.cells().filter_map(|(column, cell)| {
        let shown = cell.at(view)?;
        shown.state.is_live().then(|| (shown.state.newest_shown(), column))
    });
    prop_assert_eq!(row.kind_at(view, 0), Ok(newest.max().and_then(|(_, column)| Kind::of(&column))));
    let kinds: Vec<_> = row.cells().map(|(column, _)| Kind::of(&column)).collect();
    prop_assert_eq!(row.is_mixed(), kinds.iter().any(|kind| *kind != kinds[0]));
    let Some(summary) = row.summary(view) else {
        prop_assert!(!row.is_large());
        return Ok(());
    };
    let open: Vec<Source> = summary
        .open
        .iter()
        .flat_map(|cell| cell.at(view).expect("no past").state.sources().collect::<Vec<_>>())
        .chain(summary.recent)
        .collect();
    for (column, cell) in row.cells() {
        let shown = cell.at(view).expect("no past");
        prop_assert!(shown.since <= summary.since);
        for source in shown.state.sources() {
            let stands_for = |latest: &Source| {
                let times = |source: &Source| source.carried().times().expect("times").times.clone();
                latest.operation.datacenter == source.operation.datacenter
                    && latest.operation.position >= source.operation.position
                    && latest.stamp >= source.stamp
                    && times(latest).covers(&times(&source))
            };
            let known = open.contains(&source) || summary.latest.iter().any(stands_for);
            prop_assert!(known, "{:?} of {:?} is missed", source, column);
        }
    }
    Ok(())
}

fn play(steps: &[Step], keeps_versions: bool) -> Result<(), TestCaseError> {
    let keyspace = Keyspace::new(keeps_versions);
    let mut world = World { keyspace, written: [0; 2], time: 0, settled: [0; 2] };
    for column in 0..LARGE + 20 {
        world.take(&Step::Write { datacenter: (column % 2) as u8, column, kind: 0 });
    }
    for (number, step) in steps.iter().enumerate() {
        // What may be collected has to be settled; that is the caller's to know.
        if matches!(step, Step::Collect) && keeps_versions {
            continue;
        }
        world.take(step);
        if number % 8 == 0 || number + 1 == steps.len() {
            world.keyspace.check_invariants();
            let Some(RowRef::Whole(row)) = world.keyspace.row(KEY) else { continue };
            check(row, View::Newest)?;
            let [one, other] = world.written;
            for seen in [[one / 2, other], [one, other / 3], [0, 0]] {
                let seen = [seen[0].max(world.settled[0]), seen[1].max(world.settled[1])];
                check(row, View::Visibility(&within(seen)))?;
            }
            let (cells, next) = row.cells_from(0, (usize::MAX, usize::MAX));
            prop_assert_eq!((cells.count(), next), (row.columns_count(), None));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_summary_misses_nothing(steps in prop::collection::vec(step(), 1..160), keeps_versions: bool) {
        play(&steps, keeps_versions)?;
    }
}

#[test]
fn what_is_settled_is_known_without_a_walk() {
    let mut world = World { keyspace: Keyspace::new(false), written: [0; 2], time: 0, settled: [0; 2] };
    for number in 0..4 * LARGE {
        world.take(&Step::Write { datacenter: (number % 2) as u8, column: number % (LARGE + 10), kind: 0 });
    }
    let open = |world: &World| {
        let Some(RowRef::Whole(row)) = world.keyspace.row(KEY) else { panic!("a large row is not compact") };
        let summary = row.summary(View::Newest).expect("a large row");
        (summary.latest.len(), summary.recent.len() + summary.open.len())
    };
    assert_eq!(open(&world), (0, LARGE + 10), "each column is shown by its last write");
    world.take(&Step::Summarise([u64::MAX, 0]));
    assert_eq!(open(&world), (1, (LARGE + 10) / 2), "one datacenter's are still one by one");
    world.take(&Step::Summarise([u64::MAX, u64::MAX]));
    assert_eq!(open(&world), (2, 0));
    world.take(&Step::Write { datacenter: 0, column: 3, kind: 5 });
    assert_eq!(open(&world), (2, 1), "a tombstone is seen too");
}

#[test]
fn writes_that_are_all_shown_are_not_walked_again_by_each() {
    let mut world = World { keyspace: Keyspace::new(false), written: [0; 2], time: 0, settled: [0; 2] };
    let mut large = Large::default();
    let mut writes = 0;
    for round in 0..4 {
        for number in 0..LARGE + 20 {
            let column = Column::Field(Bytes::from(format!("column{number}")));
            for datacenter in [0, 1] {
                let write = world.write(datacenter);
                // A base and both sums: three writes make each column.
                let effect = match (round, datacenter) {
                    (0, 0) => Effect::Put { value: Bytes::from_static(b"7"), seen: Seen::new(), over: None },
                    _ => Effect::Add { epoch_sum: EpochSum { epoch: write.stamp, sum: Decimal(3) } },
                };
                large.entry(&column, LogicalTime::ZERO).apply(&effect, &write, Keep::default());
                large.note(&column, Some(write.operation));
                writes += 1;
            }
        }
    }
    let all_shown = large.recent().count();
    assert!(all_shown > 2 * large.len(), "{all_shown}");
    assert!(large.looked_for > 0);
    assert!(large.looked_for < 8, "{writes} writes looked {} times for those replaced", large.looked_for);
}

/// A command that looks at all of a row and changes nothing (LPUSH of a hash) leaves its operation to the next write,
/// which may have looked at one column (HSET of that hash).
#[test]
fn who_only_looked_stands_for_nothing() {
    for has_looked in [false, true] {
        let mut world = World { keyspace: Keyspace::new(false), written: [0; 2], time: 0, settled: [0; 2] };
        for column in 0..LARGE + 20 {
            world.take(&Step::Write { datacenter: 0, column, kind: 0 });
        }
        let looks = world.write(1);
        world.keyspace.observe(KEY, &looks);
        let later = Stamp { time: LogicalTime(looks.stamp.time.0 + 1), ..looks.stamp };
        let writes = Write { stamp: if has_looked { looks.stamp } else { later }, ..looks };
        let column = Column::Field(Bytes::from_static(b"column3"));
        let value = Bytes::from_static(b"8");
        let effect = Effect::Put { value, seen: Seen::new(), over: None };
        let change = RowEffect { key: Bytes::from_static(KEY), column, effect };
        world.keyspace.apply(&change, None, &writes);
        let Some(RowRef::Whole(row)) = world.keyspace.row(KEY) else { panic!("a large row is not compact") };
        let summary = row.summary(View::Newest).expect("a large row");
        let known = (summary.latest.len(), summary.recent.len() + summary.open.len());
        assert_eq!(known, if has_looked { (1, 1) } else { (0, LARGE + 20) }, "has looked: {has_looked}");
    }
}

#[test]
fn past_states_are_looked_for_where_there_can_be_some() {
    const COLUMNS: u64 = 10_000;
    let mut keyspace = Keyspace::new(false);
    let write = |time: u64| {
        let (at, datacenter, partition) = (LogicalTime(time), DatacenterId(0), PartitionId(0));
        let incarnation = Incarnation(0);
        let operation = OperationId { datacenter, incarnation, partition, position: Position(time) };
        Write { stamp: Stamp { time: at, datacenter, partition }, at, operation, dependencies: None }
    };
    let put = |keyspace: &mut Keyspace, time: u64, number: u64| {
        let column = Column::Field(Bytes::from(format!("field{number}")));
        let effect = Effect::Put { value: Bytes::from_static(b"7"), seen: Seen::new(), over: None };
        let change = RowEffect { key: Bytes::from_static(KEY), column: column.clone(), effect };
        keyspace.apply(&change, None, &write(time));
        column
    };
    (1..=COLUMNS).for_each(|number| drop(put(&mut keyspace, number, number)));
    keyspace.mark(KEY, 1);
    let column = put(&mut keyspace, COLUMNS + 1, 5);
    let row = |keyspace: &Keyspace| keyspace.row(KEY).expect("it is there").whole().into_owned();
    assert!(row(&keyspace).settled(&column).is_none(), "it has a past");
    assert_eq!(row(&keyspace).forget_history().looked_at, 1);
    assert_eq!(keyspace.sweep_marks(2), 0);
    assert!(row(&keyspace).settled(&column).is_some());
    keyspace.check_invariants();
}
