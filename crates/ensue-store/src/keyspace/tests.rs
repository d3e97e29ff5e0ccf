//! A keyspace with versions against one without: what a view shows is what a keyspace holds that was only ever given
//! the writes which the view shows, in any order, whatever has been settled or restarted in between.

use super::*;
use crate::cell::{Content, Write};
use crate::compact::RowRef;
use crate::image;
use crate::row::Kind;
use ensue_types::{
    Carried, Causes, DatacenterId, EpochSum, Incarnation, KeyspaceId, Opaque, OperationId, PartitionId,
    Position, Source, Stamp, Vector,
};
use proptest::prelude::*;

const DATACENTERS: usize = 3;
const KEY: &[u8] = b"row";

/// One write. It carries how much of every datacenter a reader must have seen before it sees the write.
#[derive(Clone, Debug)]
struct Event {
    write: Write,
    /// Nothing for a flush.
    change: Option<RowEffect>,
}

/// A reader that has seen so much of each datacenter.
#[derive(Clone, Copy, Debug)]
struct Cut([u8; DATACENTERS]);

impl Visibility for Cut {
    fn is_visible(&self, source: &Source, _since: LogicalTime) -> bool {
        let Vector { times, .. } = source.carried().times().expect("every version carries times");
        times.entries().zip(self.0).all(|((_, needed), seen)| needed <= LogicalTime(seen.into()))
    }
}

impl Cut {
    fn join(self, other: Cut) -> Cut {
        let mut joined = self;
        for (mine, theirs) in joined.0.iter_mut().zip(other.0) {
            *mine = theirs.max(*mine);
        }
        joined
    }
}

/// What a write does, in numbers from which `events` makes effects that fit together.
#[derive(Clone, Debug)]
struct Draft {
    datacenter: u8,
    kind: u8,
    column: u8,
    number: i64,
    needs: [u8; DATACENTERS],
    seen: [u8; DATACENTERS],
}

#[derive(Clone, Debug)]
enum Step {
    /// The next event arrives, or one that was here before arrives again.
    Arrive {
        again: Option<usize>,
    },
    Settle {
        cut: [u8; DATACENTERS],
        budget: usize,
    },
    Restart,
}

fn cut() -> impl Strategy<Value = [u8; DATACENTERS]> {
    prop::array::uniform3(0_u8..6)
}

fn drafts() -> impl Strategy<Value = Vec<Draft>> {
    let draft = (0..DATACENTERS as u8, 0_u8..20, 0_u8..8, -4_i64..5, cut(), prop::array::uniform3(0_u8..4));
    let draft = draft.prop_map(|(datacenter, kind, column, number, needs, seen)| Draft {
        datacenter,
        kind,
        column,
        number,
        needs,
        seen,
    });
    prop::collection::vec(draft, 1..14)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => Just(Step::Arrive { again: None }),
        1 => any::<usize>().prop_map(|index| Step::Arrive { again: Some(index) }),
        3 => (cut(), 0_usize..4).prop_map(|(cut, budget)| Step::Settle { cut, budget }),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..40)
}

fn column(number: u8) -> Column {
    match number {
        0..=3 => Column::Text,
        4 => Column::Deadline,
        5 => Column::Member(Bytes::from_static(b"m")),
        _ => Column::Field(Bytes::from_static(b"f")),
    }
}

fn source_of(draft: &Draft, time: usize) -> Write {
    let datacenter = DatacenterId(draft.datacenter);
    let at = LogicalTime(time as u64);
    let times = draft.needs.iter().map(|&needed| LogicalTime(needed.into())).collect();
    Write {
        stamp: Stamp { time: at, datacenter, partition: PartitionId(0) },
        at,
        operation: OperationId {
            datacenter,
            incarnation: Incarnation(0),
            partition: PartitionId(0),
            position: Position(time as u64),
        },
        dependencies: Some(Arc::new(Carried::new(Vector { times, ..Vector::default() }.into()))),
    }
}

/// Additions go on from the datacenter's last one; puts and deletes have seen some addition of each datacenter.
fn events(drafts: &[Draft]) -> Vec<Event> {
    let mut added: Vec<(Column, SeenSum)> = Vec::new();
    let mut events = Vec::new();
    for (index, draft) in drafts.iter().enumerate() {
        let write = source_of(draft, 10 + index);
        let column = column(draft.column);
        let seen = |added: &[(Column, SeenSum)]| -> Seen {
            let of = |(datacenter, back): (usize, &u8)| {
                let mut own = added.iter().rev().filter(|(counter, seen_sum)| {
                    *counter == column && usize::from(seen_sum.datacenter.0) == datacenter
                });
                back.checked_sub(1).and_then(|back| own.nth(usize::from(back))).map(|(_, seen_sum)| *seen_sum)
            };
            draft.seen.iter().enumerate().filter_map(of).collect()
        };
        let effect = match draft.kind {
            0 => None,
            1..=7 if column == Column::Deadline => {
                let value = Bytes::copy_from_slice(&draft.number.unsigned_abs().to_le_bytes());
                Some(Effect::Put { value, seen: Vec::new(), over: None })
            }
            1..=7 => Some(Effect::Put {
                value: Bytes::from(draft.number.to_string()),
                seen: seen(&added),
                over: None,
            }),
            8..=11 => Some(Effect::Delete { seen: seen(&added) }),
            _ => {
                let datacenter = DatacenterId(draft.datacenter);
                let last = added
                    .iter()
                    .rev()
                    .find(|(c, seen_sum)| *c == column && seen_sum.datacenter == datacenter);
                let before = last.map(|(_, seen)| seen.epoch_sum).filter(|_| draft.kind < 19);
                let before = before.unwrap_or(EpochSum { epoch: write.stamp, sum: Decimal::ZERO });
                let sum = Decimal(before.sum.0 + Decimal::from_integer(draft.number).0);
                let epoch_sum = EpochSum { epoch: before.epoch, sum };
                added.push((column.clone(), SeenSum { datacenter, epoch_sum, stamp: write.stamp }));
                Some(Effect::Add { epoch_sum })
            }
        };
        let key = Bytes::from_static(KEY);
        let change = effect.map(|effect| RowEffect { key, column, effect });
        events.push(Event { write, change });
    }
    events
}

fn give(keyspace: &mut Keyspace, event: &Event) {
    match &event.change {
        Some(change) => drop(keyspace.apply(change, None, &event.write)),
        None => keyspace.flush(&event.write),
    }
}

/// Writes a keyspace into a checkpoint's items and reads them into a new one, as a restart does.
fn restarted(keyspace: &Keyspace) -> Keyspace {
    let number = KeyspaceId(1);
    let mut items = Vec::new();
    for flush in keyspace.flushes() {
        items.push((image::FLUSH, image::flush_item(number, flush)));
    }
    for row in keyspace.rows().map(RowRef::whole) {
        for (column, cell) in row.all_cells() {
            items.extend(image::column_items(number, row.key(), &column, &cell));
        }
    }
    let mut again = Keyspace::new(true);
    again.restore_bounds(keyspace.bounds());
    for (kind, bytes) in items {
        let image = image::decode_write(kind, &Bytes::from(bytes)).expect("what was written");
        assert_eq!(image.keyspace, number);
        again.restore_image(kind, image);
    }
    again
}

/// All that a reader can tell of the row, and whether it is stale.
fn looked_at(keyspace: &Keyspace, view: View<'_>) -> (Vec<String>, bool) {
    let Some(row) = keyspace.row(KEY).map(RowRef::whole) else { return (Vec::new(), false) };
    let mut found = Vec::new();
    let mut stale = false;
    for number in [0, 4, 5, 6] {
        let column = column(number);
        let Some(cell) = row.cell(&column) else { continue };
        let shown = cell.at(view).expect("no past time");
        stale |= shown.stale;
        let content = shown.state.content();
        if content != Content::Nothing {
            found.push(format!("{column:?} {content:?}"));
        }
    }
    for kind in [Kind::Text, Kind::Hash, Kind::Set] {
        if row.has_live(kind, view) {
            found.push(format!("live {kind:?}"));
        }
    }
    if let Some(kind) = row.kind_at(view, 0).expect("no past time") {
        found.push(format!("is {kind:?}"));
    }
    if let Some(deadline) = row.deadline_at(view).expect("no past time") {
        found.push(format!("until {deadline}"));
    }
    (found, stale)
}

/// What made the columns.
fn made_by(keyspace: &Keyspace, view: View<'_>) -> Vec<(Column, Source)> {
    let rows: Vec<_> = keyspace.rows().map(RowRef::whole).collect();
    let sources = rows.iter().flat_map(|row| row.all_cells()).flat_map(|(column, cell)| {
        let shown = cell.at(view).expect("no past time");
        let sources: Vec<Source> = shown.state.sources().collect();
        sources.into_iter().map(move |source| (column.clone().into_owned(), source))
    });
    sources.collect()
}

/// What a keyspace without versions holds that was given only these events, the last one first.
fn reference(events: &[&Event]) -> Keyspace {
    let mut keyspace = Keyspace::new(false);
    events.iter().rev().for_each(|event| give(&mut keyspace, event));
    keyspace
}

fn check(keyspace: &Keyspace, arrived: &[Event], settled: Cut, view: Cut) -> Result<(), TestCaseError> {
    let cut = settled.join(view);
    let shown: Vec<&Event> =
        arrived.iter().filter(|e| cut.is_visible(&e.write.source(), e.write.at)).collect();
    let reference = reference(&shown);
    let (expected, _) = looked_at(&reference, View::Newest);
    let (found, stale) = looked_at(keyspace, View::Visibility(&cut));
    prop_assert_eq!(&found, &expected, "{:?}", cut);
    let made = made_by(keyspace, View::Visibility(&cut));
    prop_assert_eq!(&made, &made_by(&reference, View::Newest), "{:?}", cut);
    if arrived.iter().all(|event| event.change.is_some()) {
        let newer = |event: &&Event| {
            let column = &event.change.as_ref().expect("no flush").column;
            let row = keyspace.row(KEY).expect("it was written").whole();
            let cell = row.cell(column).expect("it was written");
            let newest = cell.at(View::Visibility(&cut)).expect("no past time").state.newest();
            !cut.is_visible(&event.write.source(), event.write.at) && event.write.stamp > newest
        };
        prop_assert_eq!(stale, arrived.iter().filter(newer).count() > 0, "{:?}", cut);
    }
    Ok(())
}

/// The keyspace's own counts, and its queue, say what its rows say.
/// A keyspace with versions, and what a write of datacenter 0 at a time did to the one text column.
fn with_writes(writes: &[(u64, Effect)]) -> Keyspace {
    let mut keyspace = Keyspace::new(true);
    for (time, effect) in writes {
        let draft = Draft { datacenter: 0, kind: 0, column: 0, number: 0, needs: [1; 3], seen: [0; 3] };
        let write = Write { dependencies: None, ..source_of(&draft, *time as usize) };
        let effect = effect.clone();
        keyspace.apply(
            &RowEffect { key: Bytes::from_static(KEY), column: Column::Text, effect },
            None,
            &write,
        );
    }
    keyspace
}

const EVERYTHING: &dyn Visibility = &(everything as fn(&Source) -> bool);
const FLUSHED_AT: LogicalTime = LogicalTime(6);
const FLUSHES: &dyn Visibility = &(flushes as fn(&Source) -> bool);

fn everything(_: &Source) -> bool {
    true
}

fn flushes(source: &Source) -> bool {
    source.stamp.time == FLUSHED_AT
}

#[test]
fn what_is_not_settled_is_not_collected() {
    let put = Effect::Put { value: Bytes::from_static(b"1"), seen: Vec::new(), over: None };
    let mut keyspace = with_writes(&[(1, put), (2, Effect::Delete { seen: Vec::new() })]);
    let spent = keyspace.take_spent().pop().expect("a tombstone");
    assert_eq!(keyspace.collect(&spent), Collected::Later);
    keyspace.settle(EVERYTHING, 1);
    assert_eq!(keyspace.collect(&spent), Collected::Removed);
    assert_eq!((keyspace.rows_count(), keyspace.cells(), keyspace.bytes()), (0, 0, 0));
}

/// The writer has collected a tombstone; who has not must not take it for something that the writer never knew.
#[test]
fn what_a_writer_has_forgotten_it_had_known() {
    let put = Effect::Put { value: Bytes::from_static(b"1"), seen: Vec::new(), over: None };
    let change = |effect| RowEffect { key: Bytes::from_static(KEY), column: Column::Text, effect };
    let mut keyspace = with_writes(&[(1, put.clone()), (2, Effect::Delete { seen: Vec::new() })]);
    keyspace.settle(EVERYTHING, usize::MAX);
    let here = keyspace.clone();
    let spent = keyspace.take_spent().pop().expect("a tombstone");
    assert_eq!(keyspace.collect(&spent), Collected::Removed);
    let tombstone = spent.stamp;
    let previous = keyspace.previous(KEY, &Column::Text);
    assert_eq!(previous, Previous::Nothing { forgotten: tombstone });
    let (put, never) = (change(put), Previous::Nothing { forgotten: Stamp::ZERO });
    let met = |previous: &Previous, operation: OperationId| {
        let write = Write {
            stamp: Stamp { time: LogicalTime(9), ..Stamp::ZERO },
            at: LogicalTime(9),
            operation,
            dependencies: None,
        };
        here.conflicts(&put, previous, &write).len()
    };
    let write = OperationId { position: Position(9), ..OperationId::default() };
    assert_eq!(met(&previous, write), 0);
    assert_eq!(met(&never, write), 1);
    // What is here is compared with what was replaced, unless it is that very write, merged before.
    let Previous::Operation(delete) = here.previous(KEY, &Column::Text) else {
        panic!("a tombstone is here")
    };
    assert_eq!(met(&Previous::Operation(delete), write), 0);
    assert_eq!(met(&Previous::Operation(write), write), 1);
    assert_eq!(met(&never, delete), 0);
}

#[test]
fn a_deadline_is_noted_until_it_is_replaced() {
    let put =
        |bytes: &[u8]| Effect::Put { value: Bytes::copy_from_slice(bytes), seen: Vec::new(), over: None };
    let mut keyspace = with_writes(&[(1, put(b"1"))]);
    let draft = Draft { datacenter: 0, kind: 0, column: 4, number: 0, needs: [1; 3], seen: [0; 3] };
    let mut set = |time: usize, effect: Effect| {
        let change = RowEffect { key: Bytes::from_static(KEY), column: Column::Deadline, effect };
        keyspace.apply(&change, None, &source_of(&draft, time));
        keyspace.take_expiries()
    };
    let first = set(2, put(&5_u64.to_le_bytes()));
    let second = set(3, put(&9_u64.to_le_bytes()));
    let third = set(4, Effect::Delete { seen: Vec::new() });
    let deadlines =
        |expiries: &[Expiry]| expiries.iter().map(|expiry| expiry.deadline_ms).collect::<Vec<_>>();
    assert_eq!([deadlines(&first), deadlines(&second), deadlines(&third)], [vec![5], vec![9], vec![]]);
    assert!(!keyspace.expires(&first[0]) && !keyspace.expires(&second[0]));
}

/// A late value below what a flush has hidden, which had seen an addition that comes later still, loses as it would
/// have without the flush: else the addition would count where the flush came later.
#[test]
fn what_a_flush_hid_is_still_above_what_comes_late() {
    let epoch =
        Stamp { time: LogicalTime::from_ms(1), datacenter: DatacenterId(2), partition: PartitionId(0) };
    let epoch_sum = EpochSum { epoch, sum: Decimal::from_integer(3) };
    let seen = vec![SeenSum { datacenter: DatacenterId(2), epoch_sum, stamp: epoch }];
    let text = |effect: Effect| RowEffect { key: Bytes::from_static(KEY), column: Column::Text, effect };
    let draft = Draft { datacenter: 0, kind: 0, column: 0, number: 0, needs: [1; 3], seen: [0; 3] };
    let write = |time| Write { dependencies: None, ..source_of(&draft, time) };
    let value =
        |bytes: &'static [u8], seen| Effect::Put { value: Bytes::from_static(bytes), seen, over: None };
    let addition = Write { stamp: epoch, ..write(1) };
    let shown = |flush_first: bool| {
        let mut keyspace = Keyspace::new(false);
        keyspace.apply(&text(value(b"7", Vec::new())), None, &write(5));
        if flush_first {
            keyspace.flush(&write(6));
        }
        keyspace.apply(&text(value(b"4", seen.clone())), None, &write(4));
        keyspace.apply(&text(Effect::Add { epoch_sum }), None, &addition);
        if !flush_first {
            keyspace.flush(&write(6));
        }
        keyspace.row(KEY).and_then(|row| row.whole().cell(&Column::Text).map(|cell| cell.state().content()))
    };
    assert_eq!(shown(true), shown(false));
}

/// A flush that came after a later one had settled hides nothing, but deletes additions by name, as it does where it
/// came before the later one.
#[test]
fn a_flush_below_a_settled_one_is_not_discarded_either() {
    let epoch =
        Stamp { time: LogicalTime::from_ms(1), datacenter: DatacenterId(2), partition: PartitionId(0) };
    let epoch_sum = EpochSum { epoch, sum: Decimal::from_integer(3) };
    let seen = vec![SeenSum { datacenter: DatacenterId(2), epoch_sum, stamp: epoch }];
    let text = |effect: Effect| RowEffect { key: Bytes::from_static(KEY), column: Column::Text, effect };
    let draft = Draft { datacenter: 0, kind: 0, column: 0, number: 0, needs: [1; 3], seen: [0; 3] };
    let write = |time| Write { dependencies: None, ..source_of(&draft, time) };
    let (early, late) = (write(5), write(6));
    let shown = |late_first: bool| {
        let mut keyspace = Keyspace::new(true);
        if late_first {
            keyspace.flush(&late);
            keyspace.settle(EVERYTHING, 0);
        }
        keyspace.apply(
            &text(Effect::Add { epoch_sum }),
            None,
            &Write { stamp: epoch, at: epoch.time, ..write(1) },
        );
        keyspace.apply(&text(Effect::Delete { seen: seen.clone() }), None, &early);
        keyspace.flush(&early);
        if !late_first {
            keyspace.flush(&late);
        }
        let discarded = keyspace.discard(&|source| source.stamp == early.stamp);
        let total = keyspace
            .row(KEY)
            .and_then(|row| row.whole().cell(&Column::Text).map(|cell| cell.state().content()));
        (discarded.len(), total)
    };
    assert_eq!(shown(false), shown(true));
    assert_eq!(shown(true).0, 0);
}

#[test]
fn what_a_write_carries_is_known_to_its_value_and_to_its_version() {
    let put = Effect::Put { value: Bytes::from_static(b"1"), seen: Vec::new(), over: None };
    let epoch_sum = EpochSum { epoch: Stamp::ZERO, sum: Decimal::from_integer(1) };
    for effect in [put, Effect::Add { epoch_sum }] {
        let mut keyspace = with_writes(&[(1, effect.clone()), (2, effect.clone())]);
        let row = keyspace.row(KEY).expect("written").whole();
        let stamp = row.cell(&Column::Text).expect("written").state().newest();
        let change = RowEffect { key: Bytes::from_static(KEY), column: Column::Text, effect };
        let carried = Arc::new(Carried::new(Causes::Extension(Opaque(vec![77; 9]))));
        let bytes = keyspace.bytes();
        keyspace.carry(&[change], stamp, &carried);
        assert_eq!(keyspace.bytes(), bytes + 9);
        let row = keyspace.row(KEY).expect("written").whole();
        let cell = row.cell(&Column::Text).expect("written");
        assert_eq!(
            cell.state().sources().map(|s| s.dependencies).collect::<Vec<_>>(),
            [Some(carried.clone())]
        );
        let versions = cell.versions().expect("not settled").unsettled();
        let carries: Vec<_> = versions.map(|version| version.source.dependencies.clone()).collect();
        assert_eq!(carries, [None, Some(carried)]);
    }
}

#[test]
fn settling_goes_on_where_it_stopped() {
    let mut keyspace = Keyspace::new(true);
    let draft = Draft { datacenter: 0, kind: 0, column: 0, number: 0, needs: [1; 3], seen: [0; 3] };
    for time in 1..=5 {
        let effect = Effect::Put { value: Bytes::new(), seen: Vec::new(), over: None };
        let change = RowEffect { key: Bytes::from(vec![time as u8]), column: Column::Text, effect };
        keyspace.apply(&change, None, &source_of(&draft, time));
    }
    let nothing = |_: &Source| false;
    assert_eq!(keyspace.settle(&nothing, 3), 5);
    assert_eq!(keyspace.settle(EVERYTHING, 0), 5);
    assert_eq!(keyspace.settle(EVERYTHING, 2), 3);
    assert_eq!(keyspace.settle(EVERYTHING, 2), 1);
    assert_eq!(keyspace.settle(EVERYTHING, 2), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_view_shows_what_its_writes_make(
        drafts in drafts(),
        order in any::<u64>(),
        steps in steps(),
        views in prop::collection::vec(cut(), 3),
    ) {
        let mut coming = events(&drafts);
        let mut keyspace = Keyspace::new(true);
        let mut arrived: Vec<Event> = Vec::new();
        let mut settled = Cut([0; DATACENTERS]);
        let mut random = crate::memory_disk::Random(order);
        for step in steps {
            match step {
                Step::Arrive { again: None } if !coming.is_empty() => {
                    let event = coming.swap_remove(random.below(coming.len()));
                    give(&mut keyspace, &event);
                    arrived.push(event);
                }
                Step::Arrive { again: Some(index) } if !arrived.is_empty() => {
                    give(&mut keyspace, &arrived[index % arrived.len()]);
                }
                Step::Arrive { .. } => {}
                Step::Settle { cut, budget } => {
                    settled = settled.join(Cut(cut));
                    let left = keyspace.settle(&settled, budget);
                    prop_assert_eq!(left, keyspace.versions());
                }
                Step::Restart => {
                    let again = restarted(&keyspace);
                    // Even a view below what is settled, as long as no flush has gone on to hide what comes later.
                    if arrived.iter().all(|event| event.change.is_some()) {
                        prop_assert_eq!(again.versions(), keyspace.versions());
                        for view in views.iter().map(|view| Cut(*view)) {
                            let (before, after) = (View::Visibility(&view), View::Visibility(&view));
                            prop_assert_eq!(looked_at(&again, after), looked_at(&keyspace, before));
                            prop_assert_eq!(made_by(&again, after), made_by(&keyspace, before));
                        }
                    }
                    keyspace = again;
                }
            }
            keyspace.check_invariants();
            for view in &views {
                check(&keyspace, &arrived, settled, Cut(*view))?;
            }
            let everything: Vec<&Event> = arrived.iter().collect();
            let newest = looked_at(&keyspace, View::Newest);
            prop_assert_eq!(newest, looked_at(&reference(&everything), View::Newest));
        }
        prop_assert_eq!(keyspace.settle(&Cut([u8::MAX; DATACENTERS]), usize::MAX), 0);
        keyspace.check_invariants();
        for view in views {
            check(&keyspace, &arrived, Cut([u8::MAX; DATACENTERS]), Cut(view))?;
        }
    }
}

fn write_of(datacenter: u8, time: usize) -> Write {
    let draft = Draft { datacenter, kind: 0, column: 0, number: 0, needs: [0; 3], seen: [0; 3] };
    source_of(&draft, time)
}

/// A write of the row's text.
fn text(datacenter: u8, time: usize, effect: Effect) -> Event {
    let change = RowEffect { key: Bytes::from_static(KEY), column: Column::Text, effect };
    Event { write: write_of(datacenter, time), change: Some(change) }
}

#[test]
fn a_tombstone_is_not_collected_when_an_addition_it_had_not_seen_came_late() {
    let mut keyspace = Keyspace::new(false);
    give(
        &mut keyspace,
        &text(0, 1, Effect::Put { value: Bytes::from_static(b"1"), seen: Vec::new(), over: None }),
    );
    give(&mut keyspace, &text(0, 20, Effect::Delete { seen: Vec::new() }));
    let spent = keyspace.take_spent();
    assert_eq!(spent.len(), 1);
    let epoch_sum = EpochSum { epoch: write_of(1, 10).stamp, sum: Decimal::from_integer(5) };
    give(&mut keyspace, &text(1, 10, Effect::Add { epoch_sum }));
    let before = looked_at(&keyspace, View::Newest);
    assert_eq!(keyspace.collect(&spent[0]), Collected::Changed);
    assert_eq!(looked_at(&keyspace, View::Newest), before);
    assert!(!before.0.is_empty(), "the addition shows");
}

/// A value is discarded as it was written, whether the flush that hides it had settled before it came, after, or not at
/// all: survivors list the same (`ensue sim --seed 3 --protocol pocc --losing-directories`).
#[test]
fn a_flushed_value_is_discarded_as_it_was_written() {
    let draft = Draft { datacenter: 0, kind: 0, column: 0, number: 0, needs: [1; 3], seen: [0; 3] };
    let write = |time| Write { dependencies: None, ..source_of(&draft, time) };
    let (earlier, lost, flush) = (write(4), write(5), write(6));
    let mut over = Observed::default();
    over.see(earlier.stamp);
    let put = |over| {
        let effect = Effect::Put { value: Bytes::from_static(b"1"), seen: Vec::new(), over };
        RowEffect { key: Bytes::from_static(KEY), column: Column::Text, effect }
    };
    let change = put(Some(Box::new(over)));
    for order in ["put", "flush put", "flush settle put", "put flush settle"] {
        let mut keyspace = Keyspace::new(true);
        keyspace.apply(&put(None), None, &earlier);
        for step in order.split(' ') {
            match step {
                "put" => drop(keyspace.apply(&change, None, &lost)),
                "flush" => keyspace.flush(&flush),
                _ => drop(keyspace.settle(FLUSHES, 9)),
            }
        }
        keyspace.check_invariants();
        let is_shown = keyspace.row(KEY).is_some_and(|row| row.kind().is_some());
        assert_eq!(is_shown, order == "put", "{order}");
        let gone = keyspace.discard(&|source| source.stamp == lost.stamp);
        let effects: Vec<_> = gone.into_iter().map(|(_, _, version)| version.effect).collect();
        assert_eq!(effects, [Some(change.effect.clone())], "{order}");
        keyspace.check_invariants();
    }
}

/// What stood behind a value was noted, and is gone when that is looked at (`ensue sim --seed 8016 --protocol pocc
/// --losing`): a settled column of a large row stays what it is, and is counted as that.
#[test]
fn a_settled_column_is_not_touched_by_a_note_of_what_is_gone() {
    let mut keyspace = Keyspace::new(true).with_columns_max(1);
    let columns = [&b"one"[..], b"two", b"three"].map(|name| Column::Field(Bytes::from_static(name)));
    for (column, time) in columns.iter().zip(1..) {
        let effect = Effect::Put { value: Bytes::from_static(b"1"), seen: Vec::new(), over: None };
        let change = RowEffect { key: Bytes::from_static(KEY), column: column.clone(), effect };
        let dependencies = keyspace.carried(&Causes::Nothing);
        keyspace.apply(&change, None, &Write { dependencies, ..write_of(0, time) });
        keyspace.settle(&everything, 9);
    }
    assert!(keyspace.row(KEY).is_some_and(RowRef::is_large));
    assert!(keyspace.forget_dependencies(&|_, _, _| true, 9));
    assert_eq!(keyspace.dependency_bytes(), 0);
    let column = columns[1].clone();
    let noted = Spent { key: Bytes::from_static(KEY), column, stamp: write_of(0, 2).stamp, changes: Some(3) };
    assert_eq!(keyspace.collect(&noted), Collected::Changed);
    keyspace.check_invariants();
}

/// A write that carries nothing is told from one of which it is forgotten what it carried, after a restart, too.
#[test]
fn what_is_forgotten_is_not_taken_for_nothing_after_a_restart() {
    let mut keyspace = Keyspace::new(true);
    let names = [&b"forgotten"[..], b"nothing"];
    for (name, time) in names.iter().zip(1..) {
        let effect = Effect::Put { value: Bytes::from_static(b"1"), seen: Vec::new(), over: None };
        let change = RowEffect { key: Bytes::from_static(name), column: Column::Text, effect };
        let dependencies = keyspace.carried(&Causes::Nothing);
        keyspace.apply(&change, None, &Write { dependencies, ..write_of(0, time) });
    }
    keyspace.settle(&everything, 9);
    let first = write_of(0, 1).stamp;
    assert!(keyspace.forget_dependencies(&|_, stamp, _| stamp == first, 9));
    for keyspace in [&keyspace, &restarted(&keyspace)] {
        let carries = |name: &[u8]| {
            let row = keyspace.row(name).expect("it is there").whole();
            let cell = row.cell(&Column::Text).expect("it is there");
            cell.state().sources().all(|source| source.dependencies.is_some())
        };
        assert_eq!(names.map(carries), [false, true]);
    }
}

#[test]
fn what_a_collected_tombstone_depended_on_is_no_longer_counted() {
    let mut keyspace = Keyspace::new(true);
    let put = Effect::Put { value: Bytes::from_static(b"1"), seen: Vec::new(), over: None };
    for (effect, time) in [(put, 1), (Effect::Delete { seen: Vec::new() }, 2)] {
        let change = RowEffect { key: Bytes::from_static(KEY), column: Column::Text, effect };
        let dependencies = keyspace.carried(&Causes::Extension(Opaque(vec![7; 9])));
        keyspace.apply(&change, None, &Write { dependencies, ..write_of(0, time) });
    }
    keyspace.settle(EVERYTHING, 9);
    assert!(keyspace.dependency_bytes() > 0, "the tombstone has some");
    let spent = keyspace.take_spent();
    let collected: Vec<Collected> = spent.iter().map(|spent| keyspace.collect(spent)).collect();
    assert!(collected.contains(&Collected::Removed), "{collected:?}");
    assert_eq!((keyspace.dependency_bytes(), keyspace.bytes()), (0, 0));
    keyspace.check_invariants();
}

#[test]
fn rows_with_counters_are_noted_and_found_again_after_a_restart() {
    let mut keyspace = Keyspace::new(true);
    let put = Effect::Put { value: Bytes::from_static(b"1"), seen: Vec::new(), over: None };
    for (key, column) in [("a", Column::Escrow(Bytes::from_static(b"counter"))), ("b", Column::Text)] {
        let key = Bytes::from_static(key.as_bytes());
        let write = Write { dependencies: keyspace.carried(&Causes::Nothing), ..write_of(0, 1) };
        keyspace.apply(&RowEffect { key, column, effect: put.clone() }, None, &write);
    }
    let (none, key) = (Bytes::new(), Bytes::from_static(b"a"));
    for keyspace in [&mut restarted(&keyspace), &mut keyspace] {
        assert_eq!(keyspace.take_escrows(0, &none, 9), [key.clone()].into());
        assert_eq!(keyspace.take_escrows(9, &key, 9), [key.clone()].into(), "it has changed");
        assert!(keyspace.take_escrows(9, &key, 9).is_empty());
        assert_eq!(keyspace.escrow_after(&none, 1), key);
        assert_eq!(keyspace.escrow_after(&none, 2), none);
        keyspace.forget_escrow(&key);
        assert!(keyspace.take_escrows(9, &none, 9).is_empty());
    }
}
