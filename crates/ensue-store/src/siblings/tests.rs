//! Whatever the order of arrival, repetition and restarts: every datacenter ends with the same siblings, those that no
//! write replaced, and shows their fold.

use crate::arrivals::shuffled;
use crate::cell::{Content, Write};
use crate::compact::RowRef;
use crate::fold::{self, Failed, Fold, Folded, Handlers};
use crate::image;
use crate::keyspace::{Collected, Keyspace};
use bytes::Bytes;
use ensue_types::{
    Column, DatacenterId, Decimal, Effect, EpochSum, Incarnation, KeyspaceId, LogicalTime, OperationId,
    PartitionId, Position, Previous, RowEffect, Stamp,
};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;

const DATACENTERS: usize = 3;
/// One key a handler, each with a text and a field.
const COLUMNS: [Column; 2] = [Column::Text, Column::Field(Bytes::from_static(b"f"))];

/// Those that are built in, one that shows the order in which it is given values, and one that fails on some.
const NAMES: [&str; 7] = ["newest", "union", "max", "min", "concat-sorted", "in-order", "particular"];

#[derive(Debug)]
struct ByName;

impl Handlers for ByName {
    fn of(&self, key: &[u8]) -> &dyn Fold {
        static ALL: std::sync::OnceLock<Vec<Arc<dyn Fold>>> = std::sync::OnceLock::new();
        let all = ALL.get_or_init(|| {
            let built_in = fold::NAMES.iter().filter_map(|name| fold::by_name(name));
            let own: [Arc<dyn Fold>; 2] =
                [Arc::new(InOrder { is_particular: false }), Arc::new(InOrder { is_particular: true })];
            built_in.chain(own).collect()
        });
        all.iter().find(|one| one.name().as_bytes() == key).expect("keys are names").as_ref()
    }
}

#[derive(Debug)]
struct InOrder {
    is_particular: bool,
}

impl Fold for InOrder {
    fn name(&self) -> &str {
        if self.is_particular { "particular" } else { "in-order" }
    }

    fn fold(&self, siblings: &[Folded]) -> Result<Option<Bytes>, Failed> {
        let values: Vec<&[u8]> =
            fold::counted(siblings).filter_map(|(_, value)| value).map(|v| &v[..]).collect();
        if self.is_particular && values.iter().any(|value| value.contains(&b',')) {
            return Err(Failed("a comma".into()));
        }
        Ok((!values.is_empty()).then(|| values.join(&b'|').into()))
    }
}

fn empty() -> Keyspace {
    Keyspace::new(false).with_siblings(Arc::new(ByName))
}

/// A write as other datacenters get it; without a change it is a flush.
#[derive(Clone, Debug)]
struct Sent {
    write: Write,
    change: Option<RowEffect>,
    previous: Option<Previous>,
}

#[derive(Clone, Debug)]
enum Step {
    Put {
        at: usize,
        key: usize,
        column: usize,
        value: u8,
    },
    Delete {
        at: usize,
        key: usize,
        column: usize,
    },
    Add {
        at: usize,
        key: usize,
    },
    Flush {
        at: usize,
    },
    /// The next writes of another datacenter arrive, as many of them as are ready.
    Deliver {
        at: usize,
        from: usize,
        count: usize,
    },
    /// A datacenter writes a checkpoint. It began before these last writes.
    Checkpoint {
        at: usize,
        before: usize,
    },
    /// A datacenter restarts from its checkpoint, and merges its log since that began.
    Restart {
        at: usize,
    },
    /// What every datacenter has and is dead is collected.
    Collect {
        at: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let (at, key, column) = (0..DATACENTERS, 0..NAMES.len(), 0..COLUMNS.len());
    prop_oneof![
        8 => (at.clone(), key.clone(), column.clone(), any::<u8>())
            .prop_map(|(at, key, column, value)| Step::Put { at, key, column, value }),
        2 => (at.clone(), key.clone(), column).prop_map(|(at, key, column)| Step::Delete { at, key, column }),
        2 => (at.clone(), key).prop_map(|(at, key)| Step::Add { at, key }),
        1 => at.clone().prop_map(|at| Step::Flush { at }),
        8 => (at.clone(), at.clone(), 1_usize..4).prop_map(|(at, from, count)| Step::Deliver { at, from, count }),
        2 => (at.clone(), 0_usize..12).prop_map(|(at, before)| Step::Checkpoint { at, before }),
        2 => at.clone().prop_map(|at| Step::Restart { at }),
        1 => at.prop_map(|at| Step::Collect { at }),
    ]
}

struct Datacenter {
    rows: Keyspace,
    checkpoint: Keyspace,
    /// Everything merged here since the checkpoint began, in the order in which it came.
    log: Vec<Sent>,
    /// How much has been merged since something was collected.
    since_collecting: usize,
    /// How much of each datacenter's stream has come.
    received: [usize; DATACENTERS],
}

struct World {
    datacenters: Vec<Datacenter>,
    streams: Vec<Vec<Sent>>,
    clock: u64,
}

impl Datacenter {
    fn new() -> Datacenter {
        Datacenter {
            rows: empty(),
            checkpoint: empty(),
            log: Vec::new(),
            since_collecting: 0,
            received: [0; DATACENTERS],
        }
    }

    fn take(&mut self, sent: Sent) {
        give(&mut self.rows, &sent);
        self.log.push(sent);
        self.since_collecting += 1;
    }

    /// Nothing is collected while rows are written aside.
    fn write_checkpoint(&mut self, before: usize) {
        let before = before.min(self.since_collecting).min(self.log.len());
        self.log.drain(..self.log.len() - before);
        self.checkpoint = self.rows.clone();
    }

    /// What was collected since the checkpoint comes back.
    fn restart(&mut self) {
        let mut rows = restarted(&self.checkpoint);
        self.log.iter().for_each(|sent| give(&mut rows, sent));
        assert_eq!(looked_at(&rows), looked_at(&self.rows), "as it was");
        self.rows = rows;
    }
}

fn give(rows: &mut Keyspace, sent: &Sent) {
    match &sent.change {
        Some(change) => drop(rows.apply(change, sent.previous.as_ref(), &sent.write)),
        None => rows.flush(&sent.write),
    }
}

/// A keyspace as its checkpoint brings it back.
fn restarted(rows: &Keyspace) -> Keyspace {
    let mut again = empty();
    again.restore_bounds(rows.bounds());
    for row in rows.rows().map(RowRef::whole) {
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
    fn new() -> World {
        World {
            datacenters: (0..DATACENTERS).map(|_| Datacenter::new()).collect(),
            streams: vec![Vec::new(); DATACENTERS],
            clock: 0,
        }
    }

    /// Stamps rise over all, as if every datacenter's clock knew the others: then a write's is above all that stands
    /// where it is taken.
    fn write(&mut self, at: usize) -> Write {
        self.clock += 1;
        let (datacenter, partition) = (DatacenterId(at as u8), PartitionId(0));
        let time = LogicalTime(self.clock);
        let position = Position(1 + self.streams[at].len() as u64);
        let operation = OperationId { datacenter, incarnation: Incarnation(1), partition, position };
        Write { stamp: Stamp { time, datacenter, partition }, at: time, operation, dependencies: None }
    }

    fn send(&mut self, at: usize, write: Write, change: Option<RowEffect>) {
        let rows = &self.datacenters[at].rows;
        let asks = change.as_ref().filter(|change| change.effect.is_base());
        let previous = asks.map(|change| rows.previous(&change.key, &change.column));
        let sent = Sent { write, change, previous };
        self.datacenters[at].take(sent.clone());
        self.streams[at].push(sent);
        self.datacenters[at].received[at] = self.streams[at].len();
    }

    fn change(
        &mut self,
        at: usize,
        key: usize,
        column: usize,
        effect: impl Fn(Vec<ensue_types::SeenSum>) -> Effect,
    ) {
        let key = Bytes::from_static(NAMES[key].as_bytes());
        let column = COLUMNS[column].clone();
        let seen = self.datacenters[at].rows.seen(&key, &column, crate::view::View::Newest);
        let write = self.write(at);
        self.send(at, write, Some(RowEffect { key, column, effect: effect(seen) }));
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Put { at, key, column, value } => {
                let value = match value % 5 {
                    0 => format!("{value}"),
                    1 => format!("{},{}", value / 8, value % 8),
                    2 => format!("{}\n{}", value / 8, value % 8),
                    3 => format!("-{}.5", value / 5),
                    _ => format!("w{value}"),
                };
                self.change(at, key, column, |seen| Effect::Put {
                    value: Bytes::from(value.clone()),
                    seen,
                    over: None,
                });
            }
            Step::Delete { at, key, column } => {
                self.change(at, key, column, |seen| Effect::Delete { seen });
            }
            Step::Add { at, key } => {
                let write = self.write(at);
                let key = Bytes::from_static(NAMES[key].as_bytes());
                let rows = &self.datacenters[at].rows;
                let row = rows.row(&key).map(RowRef::whole);
                let cell = row.as_ref().and_then(|row| row.cell(&Column::Text));
                let open = cell.and_then(|cell| cell.state().open_epoch(DatacenterId(at as u8)));
                let before = open.unwrap_or(EpochSum { epoch: write.stamp, sum: Decimal::ZERO });
                let epoch_sum =
                    EpochSum { sum: Decimal(before.sum.0 + Decimal::from_integer(1).0), ..before };
                let change = RowEffect { key, column: Column::Text, effect: Effect::Add { epoch_sum } };
                self.send(at, write, Some(change));
            }
            Step::Flush { at } => {
                let write = self.write(at);
                self.send(at, write, None);
            }
            Step::Deliver { at, from, count } => drop((0..count).find(|_| !self.deliver(at, from))),
            Step::Checkpoint { at, before } => self.datacenters[at].write_checkpoint(before),
            Step::Restart { at } => self.datacenters[at].restart(),
            Step::Collect { at } => self.collect(at),
        }
    }

    /// The next write of a stream, if what it replaced is here.
    fn deliver(&mut self, at: usize, from: usize) -> bool {
        let here = &mut self.datacenters[at];
        let Some(sent) = self.streams[from].get(here.received[from]).cloned() else { return false };
        let named = sent.previous.as_ref().map_or(&[][..], |previous| previous.operations());
        let is_here =
            |one: &OperationId| one.position.0 as usize <= here.received[usize::from(one.datacenter.0)];
        if !named.iter().all(is_here) {
            return false;
        }
        here.take(sent);
        here.received[from] += 1;
        true
    }

    /// What the rules of collecting ask for, said for the whole world: everybody has everything up to the tombstone,
    /// and up to the flush that may have made it one, and what others wrote before they had it is here.
    fn collect(&mut self, at: usize) {
        while (0..DATACENTERS).any(|from| self.deliver(at, from)) {}
        if (0..DATACENTERS).any(|from| self.datacenters[at].received[from] < self.streams[from].len()) {
            return;
        }
        let spent = self.datacenters[at].rows.take_spent();
        let all_have = |stamp: Stamp| {
            let late = |sent: &Sent, place: usize, from: usize| {
                sent.write.stamp <= stamp && self.datacenters.iter().any(|d| d.received[from] <= place)
            };
            let mut streams = self.streams.iter().enumerate();
            streams
                .all(|(from, stream)| stream.iter().enumerate().all(|(place, sent)| !late(sent, place, from)))
        };
        let flushed = self.datacenters[at].rows.flushed();
        let ready: Vec<_> = spent.into_iter().filter(|one| all_have(one.stamp.max(flushed))).collect();
        for one in ready {
            let here = &mut self.datacenters[at];
            match here.rows.collect(&one) {
                Collected::Removed => here.since_collecting = 0,
                Collected::Changed => {}
                Collected::Later => panic!("there is no history"),
            }
        }
    }

    fn deliver_everything(&mut self) {
        while (0..DATACENTERS).any(|at| (0..DATACENTERS).any(|from| self.deliver(at, from))) {}
    }
}

/// What stands at each place, and what is shown. Where no value stands, tombstones may be collected, and do not count.
fn looked_at(rows: &Keyspace) -> BTreeSet<(Bytes, Column, Vec<String>, String)> {
    let mut all = BTreeSet::new();
    for row in rows.rows().map(RowRef::whole) {
        for (column, cell) in row.all_cells().filter(|(_, cell)| !cell.is_dead()) {
            let state = cell.state();
            let bases = state.siblings().iter().map(|one| &one.base).chain([&state.base]);
            let standing = bases.filter(|_| cell.state().holds_a_value());
            let standing = standing.map(|base| format!("{} {:?}", base.stamp, base.value)).collect();
            let shown = match state.content() {
                Content::Nothing => "nothing".to_owned(),
                Content::Bytes(bytes) => format!("{bytes:?}"),
                Content::Number(number) => format!("{:?}", Bytes::from(number.to_string())),
            };
            all.insert((row.key().clone(), column.into_owned(), standing, shown));
        }
    }
    all
}

/// By definition: the writes of a place that no other had as its previous; those below a flush show nothing.
fn expected(streams: &[Vec<Sent>], key: &[u8], column: &Column) -> (BTreeSet<Stamp>, Option<Bytes>) {
    let flushed =
        streams.iter().flatten().filter(|sent| sent.change.is_none()).map(|sent| sent.write.stamp).max();
    let here: Vec<&Sent> = streams
        .iter()
        .flatten()
        .filter(|sent| {
            sent.change.as_ref().is_some_and(|c| c.key == key && c.column == *column && c.effect.is_base())
        })
        .collect();
    let replaced = |one: &Sent| {
        let by = |other: &&Sent| {
            let previous = other.previous.as_ref().expect("every base says it");
            previous.operations().contains(&one.write.operation) || one.write.stamp <= previous.forgotten()
        };
        here.iter().any(by)
    };
    let mut standing: Vec<Folded> = here
        .iter()
        .filter(|one| !replaced(one))
        .map(|one| {
            let value = match &one.change.as_ref().expect("looked for").effect {
                Effect::Put { value, .. } if flushed.is_none_or(|flush| one.write.stamp > flush) => {
                    Some(value.clone())
                }
                _ => None,
            };
            let deletes = value.is_none();
            Folded { stamp: one.write.stamp, value, deletes }
        })
        .collect();
    let values = standing.iter().filter(|one| one.value.is_some()).map(|one| one.stamp).collect();
    standing.sort_by_key(|one| one.stamp);
    let newest = || standing.last().and_then(|one| one.value.clone());
    let shown = if standing.len() == 1 { Ok(newest()) } else { ByName.of(key).fold(&standing) };
    (values, shown.unwrap_or_else(|_| newest()))
}

fn stamps(rows: &Keyspace, key: &[u8], column: &Column) -> (BTreeSet<Stamp>, Option<Bytes>) {
    let row = rows.row(key).map(RowRef::whole);
    let Some(cell) = row.as_ref().and_then(|row| row.cell(column)) else { return (BTreeSet::new(), None) };
    let state = cell.state();
    let bases = state.siblings().iter().map(|one| &one.base).chain([&state.base]);
    let values = bases.filter(|base| base.value.is_some()).map(|base| base.stamp).collect();
    match state.content() {
        Content::Nothing => (values, None),
        Content::Bytes(bytes) => (values, Some(bytes)),
        Content::Number(number) => (values, Some(Bytes::from(number.to_string()))),
    }
}

fn run(steps: &[Step]) -> World {
    let mut world = World::new();
    steps.iter().for_each(|step| world.take(step));
    world.deliver_everything();
    world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn every_datacenter_ends_with_the_same(
        steps in proptest::collection::vec(step(), 1..60),
        order in proptest::collection::vec(any::<usize>(), 1..40),
    ) {
        let world = run(&steps);
        let first = looked_at(&world.datacenters[0].rows);
        for datacenter in &world.datacenters {
            prop_assert_eq!(&looked_at(&datacenter.rows), &first);
            for row in datacenter.rows.rows().map(RowRef::whole) {
                for (_, cell) in row.all_cells() {
                    prop_assert!(cell.state().siblings().len() < DATACENTERS);
                }
            }
        }
        // In an order that no datacenter may see, everything twice.
        if world.streams.iter().any(|stream| !stream.is_empty()) {
            let mut rows = empty();
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
    fn what_stands_is_what_nobody_replaced_and_shows_as_its_fold(
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let without_counters: Vec<Step> =
            steps.into_iter().filter(|step| !matches!(step, Step::Add { .. })).collect();
        let world = run(&without_counters);
        for key in NAMES {
            for column in &COLUMNS {
                let expected = expected(&world.streams, key.as_bytes(), column);
                for datacenter in &world.datacenters {
                    prop_assert_eq!(&stamps(&datacenter.rows, key.as_bytes(), column), &expected, "{}", key);
                }
            }
        }
    }
}

/// Three values in conflict; who overwrites their fold replaces all three, wherever it comes first.
#[test]
fn a_write_replaces_everything_that_it_saw() {
    let mut world = World::new();
    let put = |world: &mut World, at: usize, value: &'static str| {
        world.change(at, 1, 0, |seen| Effect::Put {
            value: Bytes::from_static(value.as_bytes()),
            seen,
            over: None,
        });
    };
    for (at, value) in ["tea", "milk", "eggs"].into_iter().enumerate() {
        put(&mut world, at, value);
    }
    world.deliver_everything();
    let shown = |world: &World, at: usize| stamps(&world.datacenters[at].rows, b"union", &Column::Text);
    for at in 0..DATACENTERS {
        let (stamps, value) = shown(&world, at);
        assert_eq!((stamps.len(), value.as_deref()), (3, Some(&b"eggs,milk,tea"[..])));
    }
    put(&mut world, 2, "eggs,tea");
    put(&mut world, 0, "eggs,milk,rice,tea");
    world.deliver_everything();
    for at in 0..DATACENTERS {
        let (stamps, value) = shown(&world, at);
        assert_eq!((stamps.len(), value.as_deref()), (2, Some(&b"eggs,milk,rice,tea"[..])));
    }
}

/// The value that lost to a delete is kept, and its row with it, until something replaces it.
#[test]
fn what_lost_to_a_delete_is_not_collected() {
    let mut world = World::new();
    world.change(0, 0, 0, |seen| Effect::Put { value: Bytes::from_static(b"1"), seen, over: None });
    world.change(1, 0, 0, |seen| Effect::Delete { seen });
    world.deliver_everything();
    world.collect(0);
    let rows = &mut world.datacenters[0].rows;
    let (values, shown) = stamps(rows, b"newest", &Column::Text);
    assert_eq!((values.len(), shown), (1, None));
    world.change(0, 0, 0, |seen| Effect::Delete { seen });
    world.deliver_everything();
    world.collect(0);
    assert_eq!(world.datacenters[0].rows.rows_count(), 0);
}

/// A delete and a put that did not know of each other, and an addition after both: it counts with the put, and makes no
/// value of the delete.
#[test]
fn what_is_added_after_a_delete_is_no_value_beside_a_put() {
    let mut world = World::new();
    world.change(0, 3, 0, |seen| Effect::Delete { seen });
    world.change(2, 3, 0, |seen| Effect::Put { value: Bytes::from_static(b"10"), seen, over: None });
    world.deliver_everything();
    world.take(&Step::Add { at: 1, key: 3 });
    world.deliver_everything();
    for at in 0..DATACENTERS {
        let shown = stamps(&world.datacenters[at].rows, b"min", &Column::Text).1;
        assert_eq!(shown.as_deref(), Some(&b"11"[..]), "dc{}", at + 1);
    }
}

/// A writer that has restarted still knows that it had seen the tombstones that it had collected: where they are not
/// collected yet, its writes replace them. Else they stood there alone beside what follows, and counted what had been
/// added before it.
#[test]
fn a_restarted_writer_replaces_what_it_had_collected() {
    let mut world = World::new();
    world.change(0, 3, 0, |seen| Effect::Delete { seen });
    world.deliver_everything();
    world.collect(1);
    world.datacenters[1].write_checkpoint(0);
    world.datacenters[1].restart();
    world.change(1, 3, 0, |seen| Effect::Put { value: Bytes::from_static(b"10"), seen, over: None });
    world.deliver_everything();
    world.take(&Step::Add { at: 2, key: 3 });
    world.deliver_everything();
    world.change(1, 3, 0, |seen| Effect::Delete { seen });
    world.deliver_everything();
    for at in 0..DATACENTERS {
        let shown = stamps(&world.datacenters[at].rows, b"min", &Column::Text).1;
        assert_eq!(shown, None, "dc{}", at + 1);
    }
}
