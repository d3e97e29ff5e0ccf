//! Whatever the order of arrival, repetition, restarts and collections: every datacenter ends with the same, every put
//! is gone that a removal had observed or that a put has overwritten, and no other one. What its view hid neither had
//! observed, not even what loses to what it showed.

use crate::arrivals::shuffled;
use crate::cell::{Cell, Content, Write};
use crate::compact::RowRef;
use crate::image;
use crate::keyspace::{Collected, Keyspace};
use crate::row::Row;
use crate::siblings::Sibling;
use crate::undominated::Undominated;
use crate::view::View;
use bytes::Bytes;
use ensue_types::{
    Carried, Causes, Column, DatacenterId, Decimal, Effect, EpochSum, Incarnation, KeyspaceId, LogicalTime,
    Opaque, OperationId, Over, PartitionId, Position, RowEffect, Seen, Source, Stamp,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const DATACENTERS: usize = 3;
const COLUMNS: [Column; 2] = [Column::Text, Column::Field(Bytes::from_static(b"f"))];

/// A write as other datacenters get it; without changes it is a flush.
#[derive(Clone, Debug)]
struct Sent {
    write: Write,
    changes: Vec<RowEffect>,
    /// The puts that its removal, or its put, is to end, by definition.
    ends: BTreeSet<Stamp>,
}

/// What a view hides: the unsettled writes of a datacenter after its first ones.
type Hidden = (usize, u64);

#[derive(Clone, Debug)]
enum Step {
    Put {
        at: usize,
        column: usize,
        hidden: Hidden,
    },
    Remove {
        at: usize,
        column: usize,
        hidden: Hidden,
    },
    /// A put and its removal by one write, or a removal and then a put.
    Both {
        at: usize,
        column: usize,
        is_left: bool,
    },
    Add {
        at: usize,
    },
    Flush {
        at: usize,
    },
    /// Some write of another datacenter arrives, not always the next.
    Deliver {
        at: usize,
        place: usize,
    },
    /// A clock goes on: the next write there stamps above many others.
    Tick {
        at: usize,
        by: u64,
    },
    /// What every reader sees is folded.
    Settle {
        at: usize,
    },
    Checkpoint {
        at: usize,
    },
    Restart {
        at: usize,
    },
    Collect {
        at: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let (at, column) = (0..DATACENTERS, 0..COLUMNS.len());
    let hidden = (0..DATACENTERS, 0..12_u64);
    prop_oneof![
        8 => (at.clone(), column.clone(), hidden.clone())
            .prop_map(|(at, column, hidden)| Step::Put { at, column, hidden }),
        5 => (at.clone(), column.clone(), hidden)
            .prop_map(|(at, column, hidden)| Step::Remove { at, column, hidden }),
        1 => (at.clone(), column, any::<bool>())
            .prop_map(|(at, column, is_left)| Step::Both { at, column, is_left }),
        2 => at.clone().prop_map(|at| Step::Add { at }),
        1 => at.clone().prop_map(|at| Step::Flush { at }),
        12 => (at.clone(), any::<usize>()).prop_map(|(at, place)| Step::Deliver { at, place }),
        2 => (at.clone(), 1..9_u64).prop_map(|(at, by)| Step::Tick { at, by }),
        2 => at.clone().prop_map(|at| Step::Settle { at }),
        1 => at.clone().prop_map(|at| Step::Checkpoint { at }),
        1 => at.clone().prop_map(|at| Step::Restart { at }),
        2 => at.prop_map(|at| Step::Collect { at }),
    ]
}

struct Datacenter {
    rows: Keyspace,
    checkpoint: Keyspace,
    /// Everything merged here since the checkpoint.
    log: Vec<Sent>,
    /// What has come, by origin and place.
    applied: BTreeSet<(usize, usize)>,
    clock: u64,
}

struct World {
    datacenters: Vec<Datacenter>,
    streams: Vec<Vec<Sent>>,
    versions: bool,
    /// Up to this time every reader sees everything that is here.
    floor: u64,
}

fn key() -> Bytes {
    Bytes::from_static(b"k")
}

fn give(rows: &mut Keyspace, sent: &Sent) {
    for change in &sent.changes {
        rows.apply(change, None, &sent.write);
    }
    if sent.changes.is_empty() {
        rows.flush(&sent.write);
    }
}

/// A keyspace as its checkpoint brings it back.
fn restarted(rows: &Keyspace) -> Keyspace {
    let mut again = Keyspace::new(rows.keeps_versions());
    again.restore_bounds(rows.bounds());
    for flush in rows.flushes().iter().chain(rows.last_flush()) {
        let item = Bytes::from(image::flush_item(KeyspaceId(0), flush));
        let image = image::decode_write(image::FLUSH, &item).expect("what was written");
        again.restore_image(image::FLUSH, image);
    }
    for row in rows.rows_from(0, usize::MAX).0.map(RowRef::whole) {
        for (column, cell) in row.all_cells() {
            for (kind, item) in image::column_items(KeyspaceId(0), row.key(), &column, &cell) {
                let image = image::decode_write(kind, &Bytes::from(item)).expect("what was written");
                again.restore_image(kind, image);
            }
        }
    }
    again
}

impl World {
    fn new(versions: bool) -> World {
        let empty = || Datacenter {
            rows: Keyspace::new(versions),
            checkpoint: Keyspace::new(versions),
            log: Vec::new(),
            applied: BTreeSet::new(),
            clock: 0,
        };
        let datacenters = (0..DATACENTERS).map(|_| empty()).collect();
        World { datacenters, streams: vec![Vec::new(); DATACENTERS], versions, floor: 0 }
    }

    fn write(&mut self, at: usize) -> Write {
        let here = &mut self.datacenters[at];
        here.clock += 1;
        let (datacenter, partition) = (DatacenterId(at as u8), PartitionId(0));
        let time = LogicalTime(here.clock);
        let position = Position(1 + self.streams[at].len() as u64);
        let operation = OperationId { datacenter, incarnation: Incarnation(1), partition, position };
        Write { stamp: Stamp { time, datacenter, partition }, at: time, operation, dependencies: None }
    }

    fn send(&mut self, at: usize, sent: Sent) {
        self.streams[at].push(sent);
        let place = self.streams[at].len() - 1;
        self.arrive(at, at, place);
    }

    fn arrive(&mut self, at: usize, from: usize, place: usize) {
        let sent = self.streams[from][place].clone();
        let here = &mut self.datacenters[at];
        if here.applied.insert((from, place)) {
            here.clock = here.clock.max(sent.write.stamp.time.0);
            give(&mut here.rows, &sent);
            here.rows.check_invariants();
            here.log.push(sent);
        }
    }

    fn applied(&self, at: usize) -> Vec<&Sent> {
        self.datacenters[at].applied.iter().map(|&(from, place)| &self.streams[from][place]).collect()
    }

    fn put_effect(&self, write: &Write, column: usize, seen: Seen, over: Over) -> RowEffect {
        let value = Bytes::from(format!(
            "{}{}",
            write.stamp.time.0,
            ["a", "b", "c"][usize::from(write.stamp.datacenter.0)]
        ));
        RowEffect { key: key(), column: COLUMNS[column].clone(), effect: Effect::Put { value, seen, over } }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Put { at, column, hidden } => self.put(at, column, hidden),
            Step::Remove { at, column, hidden } => self.remove(at, column, hidden),
            Step::Both { at, column, is_left } => self.both(at, column, is_left),
            Step::Add { at } => {
                let write = self.write(at);
                self.datacenters[at].rows.expect_write(&key());
                let row = self.datacenters[at].rows.row(&key()).map(RowRef::whole);
                let cell = row.as_ref().and_then(|row| row.cell(&COLUMNS[0]));
                let open = cell.and_then(|cell| cell.state().open_epoch(DatacenterId(at as u8)));
                let before = open.unwrap_or(EpochSum { epoch: write.stamp, sum: Decimal::ZERO });
                let sum = Decimal(before.sum.0 + Decimal::from_integer(1).0);
                let effect = Effect::Add { epoch_sum: EpochSum { sum, ..before } };
                let changes = vec![RowEffect { key: key(), column: COLUMNS[0].clone(), effect }];
                self.send(at, Sent { write, changes, ends: BTreeSet::new() });
            }
            Step::Flush { at } => {
                let write = self.write(at);
                self.send(at, Sent { write, changes: Vec::new(), ends: BTreeSet::new() });
            }
            Step::Deliver { at, place } => self.deliver(at, place),
            Step::Tick { at, by } => self.datacenters[at].clock += by,
            Step::Settle { at } => {
                let floor = self.datacenters.iter().map(|one| one.clock).min().unwrap_or_default();
                self.floor = self.floor.max(floor);
                let floor = LogicalTime(self.floor);
                let settled = move |source: &Source| source.stamp.time <= floor;
                self.datacenters[at].rows.settle(&settled, usize::MAX);
            }
            Step::Checkpoint { at } => {
                let here = &mut self.datacenters[at];
                (here.checkpoint, here.log) = (here.rows.clone(), Vec::new());
            }
            Step::Restart { at } => self.restart(at),
            Step::Collect { at } => self.collect(at),
        }
    }

    /// Whether a view that hides something shows a write.
    fn shows(&self, (hides, after): Hidden) -> impl Fn(Stamp) -> bool + use<> {
        let after = LogicalTime(self.floor.max(after));
        let of = DatacenterId(hides as u8);
        move |stamp: Stamp| stamp.datacenter != of || stamp.time <= after
    }

    fn put(&mut self, at: usize, column: usize, hidden: Hidden) {
        self.datacenters[at].rows.expect_write(&key());
        let is_shown = self.shows(hidden);
        let visible = |source: &Source| is_shown(source.stamp);
        let view = if self.versions { View::Visibility(&visible) } else { View::Newest };
        let name = &COLUMNS[column];
        let rows = &self.datacenters[at].rows;
        let seen = rows.seen(&key(), name, view);
        let (_, over) = rows.beneath(&key(), name, view, DatacenterId(at as u8));
        let applied = self.applied(at);
        let stamps = puts(&applied, name).map(|put| put.write.stamp);
        let mut ends: BTreeSet<Stamp> = stamps.filter(|put| !self.versions || is_shown(*put)).collect();
        ends.retain(|put| put.datacenter != DatacenterId(at as u8));
        let write = self.write(at);
        let changes = vec![self.put_effect(&write, column, seen, over)];
        self.send(at, Sent { write, changes, ends });
    }

    fn remove(&mut self, at: usize, column: usize, hidden: Hidden) {
        self.datacenters[at].rows.expect_write(&key());
        let is_shown = self.shows(hidden);
        let visible = |source: &Source| is_shown(source.stamp);
        let view = if self.versions { View::Visibility(&visible) } else { View::Newest };
        let name = &COLUMNS[column];
        let rows = &self.datacenters[at].rows;
        let row = rows.row(&key()).map(RowRef::whole);
        let cell = row.as_ref().and_then(|row| row.cell(name));
        let shown = cell.as_deref().and_then(|cell| cell.at(view));
        if !shown.is_some_and(|shown| shown.state.is_live()) {
            return;
        }
        let observed = rows.observed(&key(), name, view).expect("no siblings");
        let seen = rows.seen(&key(), name, view);
        let applied = self.applied(at);
        let stamps = puts(&applied, name).map(|put| put.write.stamp);
        let ends = stamps.filter(|put| !self.versions || is_shown(*put)).collect();
        let write = self.write(at);
        let effect = Effect::Remove { observed, seen };
        let changes = vec![RowEffect { key: key(), column: name.clone(), effect }];
        self.send(at, Sent { write, changes, ends });
    }

    fn both(&mut self, at: usize, column: usize, is_left: bool) {
        self.datacenters[at].rows.expect_write(&key());
        let name = &COLUMNS[column];
        let write = self.write(at);
        if !is_left {
            // Its put is seen by nobody else, nor by the removal: it goes with it.
            let seen = self.datacenters[at].rows.seen(&key(), name, View::Newest);
            let put = self.put_effect(&write, column, seen, None);
            self.datacenters[at].rows.apply(&put, None, &write);
        }
        let rows = &self.datacenters[at].rows;
        let mut observed = rows.observed(&key(), name, View::Newest).expect("no siblings");
        observed.leave_out(write.stamp);
        let seen = rows.seen(&key(), name, View::Newest);
        let ends = puts(&self.applied(at), name).map(|put| put.write.stamp).collect();
        let effect = Effect::Remove { observed, seen: seen.clone() };
        let mut changes = vec![RowEffect { key: key(), column: name.clone(), effect }];
        if is_left {
            changes.push(self.put_effect(&write, column, seen, None));
        }
        self.send(at, Sent { write, changes, ends });
    }

    fn deliver(&mut self, at: usize, place: usize) {
        let all =
            (0..DATACENTERS).flat_map(|from| (0..self.streams[from].len()).map(move |place| (from, place)));
        let missing: Vec<_> = all.filter(|one| !self.datacenters[at].applied.contains(one)).collect();
        if let Some(&(from, place)) = missing.get(place % missing.len().max(1)) {
            self.arrive(at, from, place);
        }
    }

    fn deliver_everything_to(&mut self, at: usize) {
        for from in 0..DATACENTERS {
            (0..self.streams[from].len()).for_each(|place| self.arrive(at, from, place));
        }
    }

    fn restart(&mut self, at: usize) {
        let here = &mut self.datacenters[at];
        let mut rows = restarted(&here.checkpoint);
        here.log.iter().for_each(|sent| give(&mut rows, sent));
        rows.check_invariants();
        assert_eq!(looked_at(&rows), looked_at(&here.rows), "as it was");
        assert_eq!(made_by(&rows), made_by(&here.rows), "made by the same writes");
        here.rows = rows;
    }

    /// What the rules of collecting ask for: what is to go has been applied everywhere, every view shows it from now
    /// on, and whatever the others had written before is here.
    fn collect(&mut self, at: usize) {
        let spent = self.datacenters[at].rows.take_spent();
        let flushed = self.datacenters[at].rows.take_flushed();
        let before = self.datacenters[at].applied.clone();
        let stamps = spent.iter().map(|one| one.stamp).chain(flushed);
        let latest = stamps.map(|stamp| stamp.time.0).max().unwrap_or_default();
        for other in 0..DATACENTERS {
            for &(from, place) in &before {
                self.arrive(other, from, place);
            }
            let other = &mut self.datacenters[other];
            other.clock = other.clock.max(latest);
        }
        self.floor = self.floor.max(latest);
        self.deliver_everything_to(at);
        let here = &mut self.datacenters[at];
        for one in spent {
            match here.rows.collect(&one) {
                Collected::Removed | Collected::Changed => {}
                Collected::Later => assert!(self.versions, "there is no history"),
            }
            here.rows.check_invariants();
        }
        if let Some(flush) = flushed {
            while here.rows.sweep_hidden(flush, 1, &|_| false) {}
            here.rows.check_invariants();
            assert!(here.rows.last_flush().is_none_or(|last| last.stamp > flush), "everybody has it");
        }
        (here.checkpoint, here.log) = (here.rows.clone(), Vec::new());
    }
}

fn puts<'a>(sent: &'a [&'a Sent], column: &'a Column) -> impl Iterator<Item = &'a Sent> {
    let is_put = |change: &RowEffect| matches!(change.effect, Effect::Put { .. });
    sent.iter().copied().filter(move |one| one.changes.iter().any(|c| is_put(c) && c.column == *column))
}

/// By definition: the puts of a place that no removal is to end, no flush is above, and no later one of the same
/// datacenter has replaced.
fn alive(sent: &[&Sent], column: &Column) -> BTreeMap<Stamp, Bytes> {
    let flushed = sent.iter().filter(|one| one.changes.is_empty()).map(|one| one.write.stamp).max();
    let removals = || sent.iter().filter(|one| one.changes.iter().any(|c| c.column == *column));
    let mut last: BTreeMap<DatacenterId, &Sent> = BTreeMap::new();
    for put in puts(sent, column) {
        let known = last.entry(put.write.stamp.datacenter).or_insert(put);
        *known = if put.write.stamp > known.write.stamp { put } else { known };
    }
    let is_alive = |put: &&&Sent| {
        let stamp = put.write.stamp;
        flushed.is_none_or(|flush| stamp > flush) && !removals().any(|one| one.ends.contains(&stamp))
    };
    let value = |put: &Sent| match put.changes.last().map(|change| &change.effect) {
        Some(Effect::Put { value, .. }) => value.clone(),
        _ => unreachable!("only what puts is looked for"),
    };
    last.values().filter(is_alive).map(|put| (put.write.stamp, value(put))).collect()
}

/// What each place shows.
fn looked_at(rows: &Keyspace) -> Vec<Option<String>> {
    let shown = |column: &Column| {
        let row = rows.row(&key()).map(RowRef::whole)?;
        let cell = row.cell(column)?;
        match cell.state().content() {
            Content::Nothing => None,
            Content::Bytes(bytes) => Some(format!("{bytes:?}")),
            Content::Number(number) => Some(format!("number {number}")),
        }
    };
    COLUMNS.iter().map(shown).collect()
}

/// The writes that who reads each place depends on.
fn made_by(rows: &Keyspace) -> Vec<BTreeSet<Stamp>> {
    let mut rows = rows.clone();
    rows.expect_write(&key());
    let row = rows.row(&key()).map(RowRef::whole);
    let stamps = |cell: &Cell| cell.state().sources().map(|source| source.stamp).collect();
    let made_by =
        |column| row.as_ref().and_then(|row| row.cell(column)).as_deref().map(stamps).unwrap_or_default();
    COLUMNS.iter().map(made_by).collect()
}

fn run(steps: &[Step], versions: bool) -> World {
    let mut world = World::new(versions);
    steps.iter().for_each(|step| world.take(step));
    (0..DATACENTERS).for_each(|at| world.deliver_everything_to(at));
    world
}

/// Who finds nothing has seen every removal that it takes.
#[test]
fn removals_that_did_not_know_of_each_other_are_all_seen() {
    let mut world = World::new(false);
    for at in 0..2 {
        world.take(&Step::Put { at, column: 0, hidden: (0, 0) });
        world.take(&Step::Remove { at, column: 0, hidden: (0, 0) });
    }
    world.deliver_everything_to(2);
    let removals: BTreeSet<Stamp> = world.streams[..2].iter().map(|stream| stream[1].write.stamp).collect();
    assert_eq!(looked_at(&world.datacenters[2].rows), [None, None]);
    assert_eq!(made_by(&world.datacenters[2].rows)[0], removals);
}

/// Of removals of one datacenter the last had seen what those before it had, and they may come in any order.
#[test]
fn of_the_removals_of_a_datacenter_the_last_is_seen() {
    let mut world = World::new(false);
    for _ in 0..2 {
        world.take(&Step::Put { at: 0, column: 0, hidden: (0, 0) });
        world.take(&Step::Remove { at: 0, column: 0, hidden: (0, 0) });
    }
    [0, 3, 2, 1].into_iter().for_each(|place| world.arrive(1, 0, place));
    let last = world.streams[0][3].write.stamp;
    for at in 0..2 {
        assert_eq!(looked_at(&world.datacenters[at].rows), [None, None]);
        assert_eq!(made_by(&world.datacenters[at].rows)[0], [last].into());
    }
}

/// What stands beside a value counts against the limit of memory.
#[test]
fn puts_that_may_come_back_and_removals_are_counted_with_their_bytes() {
    let mut world = World::new(false);
    (0..DATACENTERS).for_each(|at| world.take(&Step::Put { at, column: 0, hidden: (0, 0) }));
    (0..2).for_each(|at| world.deliver_everything_to(at));
    let counted = |world: &World, at: usize| {
        let cells = world.datacenters[at].rows.whole_rows().flat_map(Row::all_cells);
        let cells = cells.map(|(_, cell)| cell.state().undominated.as_ref().map(|beside| beside.bytes()));
        cells.collect::<Vec<_>>()
    };
    // Two puts lose to the third; each has a value of two bytes.
    let two_puts = (size_of::<Undominated>() + 2 * (size_of::<Sibling>() + 2)) as u64;
    assert_eq!(counted(&world, 0), [Some(two_puts)]);
    assert_eq!(counted(&world, 2), [], "it has heard of no other");
    world.take(&Step::Remove { at: 0, column: 0, hidden: (0, 0) });
    world.take(&Step::Remove { at: 1, column: 0, hidden: (0, 0) });
    world.deliver_everything_to(2);
    let two_removals = size_of::<Undominated>() + 3 * size_of::<Stamp>() + 2 * size_of::<Source>();
    assert_eq!(counted(&world, 2), [Some(two_removals as u64)]);
}

/// So does what the writes carry that made it.
#[test]
fn what_puts_and_removals_carry_is_counted() {
    let mut world = World::new(false);
    (0..DATACENTERS).for_each(|at| world.take(&Step::Put { at, column: 0, hidden: (0, 0) }));
    world.deliver_everything_to(0);
    world.take(&Step::Remove { at: 0, column: 0, hidden: (0, 0) });
    let carried = Arc::new(Carried::new(Causes::Extension(Opaque(vec![7; 10]))));
    let mut rows = Keyspace::new(false);
    let puts = world.streams.iter().map(|stream| &stream[0]);
    for (sent, writes) in puts.chain([&world.streams[0][1]]).zip([1, 2, 3, 2]) {
        let mut sent = sent.clone();
        sent.write.dependencies = Some(carried.clone());
        give(&mut rows, &sent);
        assert_eq!(rows.dependency_bytes(), writes * carried.bytes(), "the removal is the tombstone, too");
    }
    assert!(carried.bytes() > 0);
}

fn undominated(rows: &Keyspace) -> Vec<Stamp> {
    let row = rows.row(&key()).map(RowRef::whole).expect("it was written");
    let cell = row.cell(&COLUMNS[0]).expect("it was written");
    cell.state().undominated().iter().map(|one| one.base.stamp).collect()
}

/// A put that loses is remembered for when the winner is removed, and a later put of its datacenter has replaced it.
#[test]
fn an_earlier_put_of_a_datacenter_that_comes_after_a_later_one_does_not_replace_it() {
    let mut world = World::new(false);
    (0..2).for_each(|_| world.take(&Step::Put { at: 1, column: 0, hidden: (0, 0) }));
    world.take(&Step::Tick { at: 0, by: 9 });
    world.take(&Step::Put { at: 0, column: 0, hidden: (0, 0) });
    world.take(&Step::Remove { at: 0, column: 0, hidden: (0, 0) });
    for (from, place) in [(0, 0), (1, 1), (1, 0)] {
        world.arrive(2, from, place);
    }
    assert_eq!(undominated(&world.datacenters[2].rows), [world.streams[1][1].write.stamp]);
    world.arrive(2, 0, 1);
    assert_eq!(looked_at(&world.datacenters[2].rows)[0], Some("b\"2b\"".to_string()));
}

/// What was noted to be forgotten is not all that there is when the time has come: a put that overwrites comes before
/// what it has overwritten.
#[test]
fn what_a_put_has_overwritten_since_a_note_is_not_forgotten_with_it() {
    let mut world = World::new(false);
    for _ in 0..2 {
        world.take(&Step::Put { at: 0, column: 0, hidden: (0, 0) });
        world.arrive(1, 0, world.streams[0].len() - 1);
        world.take(&Step::Put { at: 1, column: 0, hidden: (0, 0) });
    }
    world.arrive(2, 1, 0);
    let spent = world.datacenters[2].rows.take_spent();
    assert_eq!(spent.len(), 1);
    world.arrive(2, 1, 1);
    assert_eq!(world.datacenters[2].rows.collect(&spent[0]), Collected::Changed);
    world.arrive(2, 0, 1);
    assert_eq!(undominated(&world.datacenters[2].rows), [], "it was overwritten");
}

/// The last two writes of the first datacenter are a put and its removal, and come when what was noted at the third one
/// has lost the writes of the second. The note does not forget that removal.
fn check_what_comes_after_a_discard(world: &mut World, discarded: usize) {
    let rows = &mut world.datacenters[2].rows;
    let spent = rows.take_spent();
    assert_eq!(rows.discard(&|source| source.stamp.datacenter == DatacenterId(1)).len(), discarded);
    (2..4).for_each(|place| world.arrive(2, 0, place));
    let rows = &mut world.datacenters[2].rows;
    assert_eq!(rows.settle(&|_: &Source| true, usize::MAX), 0);
    let removal = spent.iter().find(|one| one.changes.is_some()).expect("the removal was noted");
    assert_eq!(rows.collect(removal), Collected::Changed);
    let row = rows.row(&key()).map(RowRef::whole).expect("the second removal is not forgotten");
    assert!(row.cell(&COLUMNS[0]).is_some_and(|cell| cell.state().removed().is_some()));
}

/// The same when the state was made anew in between, because a write has turned out never to have been.
#[test]
fn a_note_of_before_a_write_was_discarded_does_not_forget_what_came_after() {
    let mut world = World::new(true);
    world.take(&Step::Put { at: 1, column: 0, hidden: (2, 0) });
    for _ in 0..2 {
        world.take(&Step::Put { at: 0, column: 0, hidden: (2, 0) });
        world.take(&Step::Remove { at: 0, column: 0, hidden: (2, 0) });
    }
    for (from, place) in [(0, 0), (0, 1), (1, 0)] {
        world.arrive(2, from, place);
    }
    check_what_comes_after_a_discard(&mut world, 1);
}

/// What is left counts its changes on from those that went with what was discarded.
#[test]
fn a_note_of_a_removal_that_was_discarded_does_not_forget_what_came_after() {
    let mut world = World::new(true);
    for at in [1, 0, 0] {
        world.take(&Step::Put { at, column: 0, hidden: (2, 0) });
        world.take(&Step::Remove { at, column: 0, hidden: (2, 0) });
    }
    for (from, place) in [(1, 0), (1, 1), (0, 0), (0, 1)] {
        world.arrive(2, from, place);
    }
    let rows = &mut world.datacenters[2].rows;
    let spent = rows.take_spent();
    let looked_at: Vec<Collected> = spent.iter().map(|one| rows.collect(one)).collect();
    assert!(looked_at.contains(&Collected::Changed), "a second removal has come since: noted again");
    check_what_comes_after_a_discard(&mut world, 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]

    #[test]
    fn every_datacenter_ends_with_the_same(
        steps in proptest::collection::vec(step(), 1..60),
        order in proptest::collection::vec(any::<usize>(), 1..40),
        versions in any::<bool>(),
    ) {
        let world = run(&steps, versions);
        let first = looked_at(&world.datacenters[0].rows);
        for datacenter in &world.datacenters {
            prop_assert_eq!(&looked_at(&datacenter.rows), &first);
            for (_, cell) in datacenter.rows.whole_rows().flat_map(Row::all_cells) {
                prop_assert!(cell.state().undominated().len() < DATACENTERS);
            }
        }
        // In an order that no datacenter may see, everything twice.
        if world.streams.iter().any(|stream| !stream.is_empty()) {
            let mut rows = Keyspace::new(versions);
            for (place, sent) in shuffled(&world.streams, &order).iter().enumerate() {
                if place % 5 == order[0] % 5 {
                    rows = restarted(&rows);
                }
                give(&mut rows, sent);
            }
            prop_assert_eq!(looked_at(&rows), first);
        }
    }

    #[test]
    fn a_write_ends_what_it_had_observed_and_nothing_else(
        steps in proptest::collection::vec(step(), 1..60),
        versions in any::<bool>(),
    ) {
        let is_counter = |step: &Step| matches!(step, Step::Add { .. });
        let steps: Vec<Step> = steps.into_iter().filter(|step| !is_counter(step)).collect();
        let world = run(&steps, versions);
        for (place, column) in COLUMNS.iter().enumerate() {
            let all: Vec<&Sent> = world.streams.iter().flatten().collect();
            let expected = alive(&all, column).into_iter().last().map(|(_, value)| format!("{value:?}"));
            for datacenter in &world.datacenters {
                prop_assert_eq!(&looked_at(&datacenter.rows)[place], &expected);
            }
        }
    }

    /// When everything has been collected, nothing is left beside what is shown.
    #[test]
    fn what_everybody_has_is_forgotten(steps in proptest::collection::vec(step(), 1..40)) {
        let mut world = run(&steps, false);
        for at in (0..DATACENTERS).chain(0..DATACENTERS) {
            world.collect(at);
            world.collect(at);
        }
        for datacenter in &world.datacenters {
            for (_, cell) in datacenter.rows.whole_rows().flat_map(Row::all_cells) {
                prop_assert!(cell.state().undominated.is_none() && cell.state().is_live(), "{:?}", cell);
            }
        }
    }
}
