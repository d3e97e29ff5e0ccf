//! A keyspace whose settled strings are compact, and whose settled columns are packed, against one whose rows are all
//! whole: nothing tells them apart.

use super::{RowRef, VALUE_MAX};
use crate::cell::{Cell, Write};
use crate::image;
use crate::keyspace::{Keyspace, Spent};
use crate::packed;
use crate::row::Kind;
use crate::view::View;
use bytes::Bytes;
use ensue_types::{
    Carried, Causes, Column, DatacenterId, Decimal, Effect, EpochSum, HereSince, Incarnation, KeyspaceId,
    LogicalTime, OperationId, PartitionId, Position, RowEffect, Seen, SeenSum, Stamp, Vector,
};
use proptest::prelude::*;
use std::borrow::Cow;
use std::sync::Arc;

/// What happens to the keyspace.
#[derive(Clone, Debug)]
enum Step {
    Write {
        key: u8,
        kind: u8,
        column: u8,
        number: u16,
        stamp: u64,
    },
    /// A string with a deadline, by one write.
    Dated {
        key: u8,
        deadline: u64,
        stamp: u64,
    },
    Flush {
        stamp: u64,
    },
    Settle {
        until: u64,
    },
    Mark {
        key: u8,
    },
    Sweep,
    ForgetDependencies,
    Collect,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let write = (0..5u8, 0..10u8, 0..8u8, 0..2_000u16, 1..200u64)
        .prop_map(|(key, kind, column, number, stamp)| Step::Write { key, kind, column, number, stamp });
    prop_oneof![
        24 => write,
        6 => (0..5u8, 0..200u64, 1..200u64)
            .prop_map(|(key, deadline, stamp)| Step::Dated { key, deadline, stamp }),
        1 => (1..200u64).prop_map(|stamp| Step::Flush { stamp }),
        4 => (1..300u64).prop_map(|until| Step::Settle { until }),
        2 => (0..5u8).prop_map(|key| Step::Mark { key }),
        2 => Just(Step::Sweep),
        2 => Just(Step::ForgetDependencies),
        2 => Just(Step::Collect),
        1 => Just(Step::Restart),
    ]
}

fn deadline_of(ms: u64) -> Bytes {
    Bytes::copy_from_slice(&ms.to_le_bytes())
}

fn key(number: u8) -> Bytes {
    Bytes::from(format!("key{number}"))
}

/// Two keyspaces to which the same happens.
struct Pair {
    compact: Keyspace,
    whole: Keyspace,
    time: u64,
}

fn keyspace(keeps_versions: bool, keeps_whole: bool) -> Keyspace {
    let mut rows = Keyspace::new(keeps_versions);
    rows.keeps_whole = keeps_whole;
    rows
}

/// Writes a keyspace into a checkpoint's items and reads them into a new one, as a restart does.
fn restarted(from: &Keyspace, keeps_whole: bool, at: LogicalTime) -> Keyspace {
    let mut items = Vec::new();
    for flush in from.flushes().iter().chain(from.last_flush()) {
        items.push((image::FLUSH, image::flush_item(KeyspaceId(1), flush)));
    }
    for row in from.rows_from(0, usize::MAX).0.map(RowRef::whole) {
        for (column, cell) in row.all_cells() {
            items.extend(image::column_items(KeyspaceId(1), row.key(), &column, &cell));
        }
    }
    let mut again = keyspace(from.keeps_versions(), keeps_whole);
    again.restore_bounds(from.bounds());
    for (kind, bytes) in items {
        again.restore_image(kind, image::decode_write(kind, &Bytes::from(bytes)).expect("what was written"));
    }
    again.forget_past(at);
    again
}

impl Pair {
    fn both<T: PartialEq + std::fmt::Debug>(
        &mut self,
        mut act: impl FnMut(&mut Keyspace) -> T,
    ) -> Result<T, TestCaseError> {
        let (one, other) = (act(&mut self.compact), act(&mut self.whole));
        prop_assert_eq!(&one, &other);
        Ok(one)
    }

    fn write(&mut self, stamp: u64) -> Write {
        self.time += 1;
        let (datacenter, partition) = (DatacenterId((stamp % 3) as u8), PartitionId((stamp % 2) as u16));
        let (incarnation, position) = (Incarnation((stamp % 5) as u16), Position(self.time));
        let carried: Causes =
            Vector { times: [LogicalTime(stamp)].into_iter().collect(), ..Vector::default() }.into();
        let keeps = self.compact.keeps_versions() && stamp % 2 == 0;
        Write {
            stamp: Stamp { time: LogicalTime(stamp), datacenter, partition },
            at: LogicalTime(self.time),
            operation: OperationId { datacenter, incarnation, partition, position },
            dependencies: keeps.then(|| Arc::new(Carried::new(carried))),
        }
    }

    fn take(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::Write { key: named, kind, column, number: value, stamp } => {
                let write = self.write(stamp);
                let name = Bytes::from(vec![b'f'; usize::from(column)]);
                // Of the last two keys, mostly of one kind.
                let column = match (named, column) {
                    (_, 1) => Column::Deadline,
                    (3, 0) | (0..3, 2..) => Column::Text,
                    (0..4, _) => Column::Field(name),
                    (_, 0) => Column::Member(name),
                    _ => Column::Scored(name),
                };
                let length = if value > 1_900 { VALUE_MAX + 1 } else { usize::from(value % 4) };
                let number = i128::from(value);
                let value = Bytes::from(vec![b'1'; if column == Column::Deadline { 8 } else { length }]);
                let sum = match number {
                    0..1_000 => Decimal(number * Decimal::ONE.0),
                    _ => Decimal(i128::MIN / number),
                };
                let epoch_sum =
                    EpochSum { epoch: Stamp { time: LogicalTime(stamp / 50), ..write.stamp }, sum };
                let seen = SeenSum { datacenter: write.stamp.datacenter, epoch_sum, stamp: write.stamp };
                let effect = match kind {
                    0 | 4 => Effect::Add { epoch_sum },
                    1 | 2 => Effect::Delete { seen: Seen::new() },
                    3 => Effect::Put { value, seen: vec![seen], over: None },
                    _ => Effect::Put { value, seen: Seen::new(), over: None },
                };
                let change = RowEffect { key: key(named), column, effect };
                self.both(|rows| rows.previous(&change.key, &change.column))?;
                self.compact.expect_write(&change.key);
                self.both(|rows| rows.seen(&change.key, &change.column, View::Newest))?;
                self.both(|rows| rows.observed(&change.key, &change.column, View::Newest))?;
                let by = write.stamp.datacenter;
                self.both(|rows| rows.beneath(&change.key, &change.column, View::Newest, by))?;
                self.both(|rows| rows.apply(&change, None, &write))?;
            }
            Step::Dated { key: number, deadline, stamp } => {
                let write = self.write(stamp);
                let bytes = |length| Bytes::from(vec![b'1'; length]);
                for (column, value) in [(Column::Text, bytes(3)), (Column::Deadline, deadline_of(deadline))] {
                    let effect = Effect::Put { value, seen: Seen::new(), over: None };
                    let change = RowEffect { key: key(number), column, effect };
                    self.compact.expect_write(&change.key);
                    let by = write.stamp.datacenter;
                    self.both(|rows| rows.beneath(&change.key, &change.column, View::Newest, by))?;
                    self.both(|rows| rows.observed(&change.key, &change.column, View::Newest))?;
                    self.both(|rows| rows.apply(&change, None, &write))?;
                }
            }
            Step::Flush { stamp } => {
                let write = self.write(stamp);
                self.both(|rows| rows.flush(&write))?;
            }
            Step::Settle { until } => {
                self.both(|rows| rows.settle(&HereSince(LogicalTime(until)), 100))?;
            }
            Step::Mark { key: number } => self.both(|rows| rows.mark(&key(number), 1))?,
            Step::Sweep => drop(self.both(|rows| rows.sweep_marks(2))?),
            Step::ForgetDependencies => {
                self.both(|rows| rows.forget_dependencies(&|one, _, _| one.position.0 % 3 > 0, 1_000))?;
            }
            Step::Collect => {
                self.compact.expect_all_writes();
                for spent in self.both(spent_in_order)? {
                    self.both(|rows| rows.collect(&spent))?;
                }
                for expiry in self.both(Keyspace::take_expiries)? {
                    self.both(|rows| rows.expires(&expiry))?;
                }
            }
            Step::Restart => {
                let at = LogicalTime(self.time);
                self.compact = restarted(&self.compact, false, at);
                self.whole = restarted(&self.whole, true, at);
            }
        }
        Ok(())
    }

    /// Compares all that is known, as it is and as it would be if what a flush hides were written to.
    fn check(&mut self) -> Result<(), TestCaseError> {
        self.compact.check_invariants();
        self.whole.check_invariants();
        let hides = self.compact.clone();
        self.check_shown()?;
        self.compact.expect_all_writes();
        self.compact.check_invariants();
        self.check_known()?;
        self.compact = hides;
        Ok(())
    }

    /// What readers may see.
    fn check_shown(&mut self) -> Result<(), TestCaseError> {
        let last = |rows: &mut Keyspace| rows.last_flush().map(|flush| flush.stamp);
        self.both(last)?;
        for number in 0..5 {
            let shown = |rows: &mut Keyspace| {
                let row = rows.row(&key(number)).map(RowRef::whole)?;
                let live = row.all_cells().filter(|(_, cell)| cell.state().is_live());
                let live: Vec<String> = live.map(|(column, cell)| known_of(&column, &cell)).collect();
                (!live.is_empty()).then_some(live)
            };
            self.both(shown)?;
        }
        Ok(())
    }

    fn check_known(&mut self) -> Result<(), TestCaseError> {
        self.both(|rows| (rows.cells(), rows.versions(), rows.rows_count(), rows.absent_since()))?;
        self.both(|rows| (rows.bounds(), rows.dependency_bytes()))?;
        let at = LogicalTime(self.time / 2);
        for number in 0..5 {
            // All that is known of it, to the last field; of what is not there, since when it is not if it has come
            // after the last flush.
            self.both(|rows| {
                let row = rows.row(&key(number))?.whole();
                let since = |since: LogicalTime| since.max(rows.absent_since());
                let known = |(column, cell): (Cow<'_, Column>, Cow<'_, Cell>)| match cell.state().is_live() {
                    true => known_of(&column, &cell),
                    false => format!("{:?} {}", since(cell.since()), known_of(&column, &cell)),
                };
                let cells: Vec<String> = row.all_cells().map(known).collect();
                Some(format!("{:?} {:?} {} {cells:?}", row.key(), since(row.since()), row.unsettled()))
            })?;
            for view in [
                View::Newest,
                View::At(at),
                View::At(LogicalTime(self.time)),
                View::Visibility(&HereSince(at)),
            ] {
                self.both(|rows| {
                    let row = rows.row(&key(number))?;
                    let kinds = [Kind::Text, Kind::Hash, Kind::Set, Kind::SortedSet];
                    let counts = kinds.map(|kind| (row.live_count_at(kind, view), row.has_live(kind, view)));
                    let shown = (row.kind_at(view, 0), row.deadline_at(view), row.is_newest(view));
                    Some((
                        counts,
                        shown,
                        row.kind(),
                        row.sole_kind(),
                        row.columns_count(),
                        row.key().to_vec(),
                    ))
                })?;
            }
        }
        Ok(())
    }
}

/// All that is known of a column, but since when it has not been there, and had not been in its past states: what is
/// hidden by several flushes is taken to be hidden by the last.
fn known_of(column: &Column, cell: &Cell) -> String {
    let since = cell.state().is_live().then(|| cell.since());
    format!("{column:?} {since:?} {:?} {} {:?}", cell.state(), cell.has_history(), cell.versions())
}

/// What a flush hid is noted when it is written to.
fn spent_in_order(rows: &mut Keyspace) -> Vec<Spent> {
    let mut spent = rows.take_spent();
    spent.sort_by_key(|spent| format!("{spent:?}"));
    spent
}

fn count_packed(rows: &Keyspace) -> usize {
    rows.rows().filter(|row| matches!(row, RowRef::Packed(_))).count()
}

fn count_compact(rows: &Keyspace) -> usize {
    rows.rows().filter(|row| matches!(row, RowRef::Compact(_))).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn nothing_tells_a_compact_row_from_a_whole_one(
        steps in prop::collection::vec(step(), 1..80),
        keeps_versions: bool,
    ) {
        let (compact, whole) = (keyspace(keeps_versions, false), keyspace(keeps_versions, true));
        let mut pair = Pair { compact, whole, time: 100 };
        for step in &steps {
            pair.take(step)?;
            pair.check()?;
            prop_assert_eq!(count_compact(&pair.whole) + count_packed(&pair.whole), 0);
        }
    }
}

#[test]
fn a_string_is_compact_until_more_is_known_of_it_and_again_when_that_is_gone() {
    let (compact, whole) = (keyspace(true, false), keyspace(true, true));
    let mut pair = Pair { compact, whole, time: 100 };
    let put = |stamp| Step::Write { key: 0, kind: 5, column: 7, number: 3, stamp };
    let mut counts = Vec::new();
    let settle = Step::Settle { until: 1_000 };
    // All of one datacenter; the last carries something.
    for step in [put(1), settle.clone(), put(7), settle.clone(), put(10), settle, Step::ForgetDependencies] {
        pair.take(&step).expect("the same in both");
        counts.push(count_compact(&pair.compact));
    }
    assert_eq!(counts, [0, 1, 0, 1, 0, 0, 1]);
    let mut plain = Pair { compact: keyspace(false, false), whole: keyspace(false, true), time: 100 };
    plain.take(&put(1)).expect("the same in both");
    assert_eq!(count_compact(&plain.compact), 1);
    assert!(plain.compact.bytes() < plain.whole.bytes());
}

#[test]
fn a_string_with_a_deadline_by_the_same_write_is_compact() {
    let mut pair = Pair { compact: keyspace(false, false), whole: keyspace(false, true), time: 100 };
    let dated = |stamp| Step::Dated { key: 0, deadline: 150, stamp };
    let put = |stamp| Step::Write { key: 0, kind: 5, column: 7, number: 3, stamp };
    let mut counts = Vec::new();
    // All of one datacenter; the third is a value alone, under the deadline of another write.
    for step in [dated(1), dated(4), put(7), dated(10)] {
        pair.take(&step).expect("the same in both");
        pair.check().expect("the same in both");
        counts.push(count_compact(&pair.compact));
    }
    assert_eq!(counts, [1, 1, 0, 1]);
    assert!(pair.compact.bytes() * 3 < pair.whole.bytes(), "{:?}", pair.compact.bytes());
}

#[test]
fn a_string_of_two_datacenters_is_compact_again_when_a_removal_can_bring_none_back() {
    let mut pair = Pair { compact: keyspace(false, false), whole: keyspace(false, true), time: 100 };
    let put = |stamp| Step::Write { key: 0, kind: 5, column: 7, number: 3, stamp };
    let mut counts = Vec::new();
    // Of datacenters 1, 1, 2 and 2.
    for step in [put(1), put(4), put(5), Step::Collect, put(8)] {
        pair.take(&step).expect("the same in both");
        pair.check().expect("the same in both");
        counts.push(count_compact(&pair.compact));
    }
    assert_eq!(counts, [1, 1, 0, 1, 1]);
}

/// A put of a field by the first datacenter, as long as the number says.
fn put_field(time: u64, name: u64, length: usize) -> (RowEffect, Write) {
    let stamp = Stamp { time: LogicalTime(time), datacenter: DatacenterId(0), partition: PartitionId(0) };
    let operation = OperationId { position: Position(time), ..OperationId::default() };
    let value = Bytes::from(vec![b'v'; length]);
    let effect = Effect::Put { value, seen: Seen::new(), over: None };
    let column = Column::Field(Bytes::from(format!("field{name}")));
    let change = RowEffect { key: key(0), column, effect };
    (change, Write { stamp, at: stamp.time, operation, dependencies: None })
}

#[test]
fn a_hash_is_packed_until_it_has_more_than_is_looked_through_quickly() {
    for (length, packed_columns) in [(8, packed::COLUMNS_MAX), (1_000, 7)] {
        let (mut rows, mut whole) = (keyspace(false, false), keyspace(false, true));
        for name in 0..200 {
            let (change, write) = put_field(name + 1, name, length);
            assert_eq!(rows.apply(&change, None, &write), whole.apply(&change, None, &write));
            rows.check_invariants();
            let is_packed = count_packed(&rows) == 1;
            assert_eq!(is_packed, name < packed_columns as u64 + u64::from(length > 8), "{length} {name}");
        }
        let cells = |rows: &Keyspace| {
            let row = rows.row(&key(0)).expect("it was put").whole();
            let cells: Vec<_> = row.cells_in_order().collect();
            format!("{cells:?}")
        };
        assert_eq!(cells(&rows), cells(&whole));
    }
}

#[test]
fn a_settled_hash_takes_little_beside_its_names_and_values() {
    let mut rows = keyspace(false, false);
    for time in 0..100 {
        let (change, write) = put_field(1 << 40 | time, time % 10, 10);
        rows.apply(&change, None, &write);
    }
    let names_and_values = 10 * (6 + 10) + 4;
    let beside = rows.bytes() - names_and_values;
    assert!(beside <= 180, "{beside} bytes beside names and values");
}
