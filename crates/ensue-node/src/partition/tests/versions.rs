//! A partition whose keyspace keeps versions, started again: no reader sees more than before, and none sees less.

use super::{PARTITION, config};
use crate::AppendFsync;
use crate::config::NodeConfig;
use crate::partition::Partition;
use bytes::Bytes;
use ensue_store::compact::RowRef;
use ensue_store::disk::{DiskDone, DiskOp, FileName};
use ensue_store::entry::{Change, Entry};
use ensue_store::keyspace::Keyspace;
use ensue_store::layout;
use ensue_store::testing::{Files, carry_out};
use ensue_store::view::View;
use ensue_types::{
    Causes, Column, Context, CoreId, DatacenterId, Dependency, Effect, Incarnation, KeyspaceId, LogicalTime,
    Now, Opaque, Position, RequestId, RowEffect, Source, Stamp, TimeVector,
};
use ensue_wire::{Address, AtValues, Envelope, Message};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const OTHER: DatacenterId = DatacenterId(1);

fn of_session(causes: Causes, line: &str) -> (Address, Message) {
    let args = line.split(' ').map(|word| Bytes::from(word.to_owned())).collect();
    let (request, keyspace) = (RequestId::default(), KeyspaceId(0));
    let (context, commands) = (Context { causes, ..Context::default() }, vec![args]);
    let from = Address::Core { datacenter: DatacenterId(0), core: CoreId(0) };
    (from, Message::Execute { request, keyspace, context, commands, together: false })
}

/// A partition with its files.
pub(super) struct World {
    pub(super) partition: Partition,
    pub(super) now: Now,
    pub(super) files: Files,
}

impl World {
    pub(super) fn new(files: Files, now: Now, checkpoint_bytes: u64) -> World {
        let mut world = World::under("eventual", files, now, checkpoint_bytes);
        *world.partition.keyspaces.keyspace(KeyspaceId(0)) = Keyspace::new(true);
        world.started()
    }

    /// A partition that has not begun to read its files.
    pub(super) fn under(protocol: &str, files: Files, now: Now, checkpoint_bytes: u64) -> World {
        let mut config = config(AppendFsync::Always);
        config.tuning.checkpoint_bytes = checkpoint_bytes;
        World::configured(config, protocol, files, now)
    }

    pub(super) fn configured(config: NodeConfig, protocol: &str, files: Files, now: Now) -> World {
        let protocol = || ensue_protocol::by_name(protocol, Default::default()).expect("it is known");
        let protocols = Arc::new((0..ensue_types::limits::KEYSPACES).map(|_| protocol()).collect::<Vec<_>>());
        World { partition: Partition::new(PARTITION, Arc::new(config), protocols, now), now, files }
    }

    pub(super) fn started(mut self) -> World {
        self.partition.start();
        self.work();
        self
    }

    /// Ends the turn, and carries out what the disk is asked until it is asked nothing more.
    pub(super) fn work(&mut self) {
        self.partition.on_turn_end();
        while self.next_op().is_some() {}
    }

    /// Carries out the next operation of the disk; says which it was.
    pub(super) fn next_op(&mut self) -> Option<DiskOp> {
        let op = self.partition.cx.disk_ops.pop_front()?;
        let done = carry_out(&mut self.files, op.clone());
        self.partition.on_disk(self.now, done);
        self.partition.on_turn_end();
        Some(op)
    }

    pub(super) fn message(&mut self, from: Address, message: Message) {
        self.hear(from, message);
        self.work();
    }

    /// A message arrives, and its turn goes on.
    pub(super) fn hear(&mut self, from: Address, message: Message) {
        let to = Address::Partition { datacenter: DatacenterId(0), partition: PARTITION };
        let time = LogicalTime::from_ms(self.now.wall_ms);
        self.partition.on_message(self.now, Envelope { from, to, time, message });
    }

    pub(super) fn run(&mut self, line: &str) {
        self.run_after(Causes::Nothing, line);
    }

    /// The same, and its turn goes on.
    pub(super) fn hear_command(&mut self, line: &str) {
        let (from, execute) = of_session(Causes::Nothing, line);
        self.hear(from, execute);
    }

    /// Runs a command of a session with this past.
    pub(super) fn run_after(&mut self, causes: Causes, line: &str) {
        let (from, execute) = of_session(causes, line);
        self.message(from, execute);
    }

    /// The next entry of the other datacenter's stream, which depends on these.
    pub(super) fn receive_after(
        &mut self,
        position: u64,
        key: &str,
        effect: Option<Effect>,
        on: &[Dependency],
    ) {
        self.receive_with(position, key, effect, on.to_vec().into());
    }

    /// The next entry of the other datacenter's stream.
    pub(super) fn receive(&mut self, position: u64, key: &str, effect: Option<Effect>) {
        self.receive_with(position, key, effect, Causes::Extension(Opaque(vec![b'v', position as u8])));
    }

    fn receive_with(&mut self, position: u64, key: &str, effect: Option<Effect>, dependencies: Causes) {
        let entries = vec![self.entry(position, key, effect, dependencies)];
        let (incarnation, first) = (Incarnation(1), Position(position));
        let from = Address::Partition { datacenter: OTHER, partition: PARTITION };
        self.message(from, Message::StreamEntries { incarnation, first, entries });
    }

    /// An entry of the other datacenter's stream.
    pub(super) fn entry(
        &self,
        position: u64,
        key: &str,
        effect: Option<Effect>,
        dependencies: Causes,
    ) -> Bytes {
        let keyspace = KeyspaceId(0);
        let change = match effect {
            Some(effect) => {
                let (key, column) = (Bytes::from(key.to_owned()), Column::Text);
                let effects = vec![RowEffect { key, column, effect }];
                Change::Effects { keyspace, transaction: None, effects }
            }
            None => Change::Flush { keyspace, effects: Vec::new() },
        };
        let time = LogicalTime(LogicalTime::from_ms(self.now.wall_ms).0 + position);
        let entry = Entry {
            position: Position(position),
            stamp: Stamp { time, datacenter: OTHER, partition: PARTITION },
            dependencies,
            change,
            previous: Vec::new(),
        };
        layout::encode_entry(&entry)
    }

    /// What a power failure leaves just when a checkpoint has been named: what was synced. The log is synced beside the
    /// other operations, here when nothing else is left to do.
    fn files_when_a_checkpoint_is_named(mut self) -> Files {
        let mut synced = self.files.clone();
        self.now.monotonic_us += 1_000;
        self.partition.on_timer(self.now);
        loop {
            self.partition.on_turn_end();
            let syncs = |op: &DiskOp| matches!(op, DiskOp::Sync { file: FileName::Segment(_) });
            let next = self.partition.cx.disk_ops.iter().position(|op| !syncs(op)).unwrap_or(0);
            let op = self.partition.cx.disk_ops.remove(next).expect("a checkpoint comes to its end");
            let done = carry_out(&mut self.files, op);
            match done {
                DiskDone::Synced { file } => drop(synced.insert(file, self.files[&file].clone())),
                DiskDone::Replaced { file } => {
                    synced.insert(file, self.files[&file].clone());
                    return synced;
                }
                _ => {}
            }
            self.partition.on_disk(self.now, done);
        }
    }

    pub(super) fn checkpoint(&mut self) -> bool {
        for _ in 0..3 {
            self.now.monotonic_us += 1_000_000;
            self.now.wall_ms += 1_000;
            self.partition.on_timer(self.now);
            self.work();
        }
        self.files.keys().any(|file| matches!(file, FileName::Checkpoint(_)))
    }

    fn restarted(self, checkpoint_bytes: u64) -> World {
        World::new(self.files, self.now, checkpoint_bytes)
    }

    fn rows(&self) -> &Keyspace {
        self.partition.keyspaces.rows(KeyspaceId(0)).expect("it is there")
    }

    /// Nothing of the log is kept for the other datacenter, as if it had synced all of it.
    pub(super) fn let_go_of_the_stream(&mut self) {
        let end = self.partition.cx.position;
        self.partition.cx.journal.move_stream_floor(end, end);
    }

    /// What a reader sees who sees so much of the other datacenter's stream, with all that is to be remembered of it.
    fn seen(&self, through: u64) -> Vec<String> {
        let visibility = |source: &Source| {
            source.operation.datacenter != OTHER || source.operation.position.number() <= through
        };
        let rows = self.rows();
        let mut seen = vec![format!("versions {}", rows.versions()), format!("floor {:?}", rows.floor())];
        for row in rows.rows().map(RowRef::whole) {
            for (column, cell) in row.all_cells() {
                let shown = cell.at(View::Visibility(&visibility)).expect("no past time");
                let sources: Vec<Source> = shown.state.sources().collect();
                let content = shown.state.content();
                let key = row.key();
                seen.push(format!("{key:?} {column:?} {content:?} {sources:?} {}", shown.stale));
            }
        }
        seen.sort_unstable();
        seen
    }

    fn all_views(&self) -> Vec<Vec<String>> {
        (0..7).map(|through| self.seen(through)).collect()
    }
}

pub(super) fn put(value: &'static str) -> Option<Effect> {
    Some(Effect::Put { value: Bytes::from_static(value.as_bytes()), seen: Vec::new(), over: None })
}

/// Local writes and writes of the other datacenter, the first of which are settled before the rest comes.
fn history(checkpoint_bytes: u64) -> World {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let mut world = World::new(BTreeMap::new(), now, checkpoint_bytes);
    world.run("SET a 1");
    world.run("INCRBY n 5");
    world.receive(1, "a", put("2"));
    world.receive(2, "b", put("3"));
    let first_two =
        |source: &Source| source.operation.datacenter != OTHER || source.operation.position.number() <= 2;
    let rows = world.partition.keyspaces.keyspace(KeyspaceId(0));
    rows.raise_floor(&TimeVector::uniform(2, LogicalTime(2)));
    assert_eq!(rows.settle(&first_two, usize::MAX), 0);
    world.receive(3, "a", put("4"));
    world.receive(4, "b", Some(Effect::Delete { seen: Vec::new() }));
    world.run("INCRBY n 7");
    world
}

#[test]
fn a_restart_by_the_log_keeps_versions_apart() {
    let world = history(u64::MAX);
    let before: Vec<_> = world.all_views().into_iter().map(without_settled).collect();
    let again = world.restarted(u64::MAX);
    let after: Vec<_> = again.all_views().into_iter().map(without_settled).collect();
    // Readers that see all that was settled: what was settled is a version again, until it is settled again.
    assert_eq!(before[2..], after[2..]);
    assert_eq!(again.rows().versions(), 7, "one a write");
}

/// Without what settling changes: how much is a version.
fn without_settled(seen: Vec<String>) -> Vec<String> {
    seen.into_iter().filter(|line| !line.starts_with("versions") && !line.starts_with("floor")).collect()
}

#[test]
fn a_restart_by_a_checkpoint_changes_nothing_for_any_reader() {
    let mut world = history(1);
    // The log is kept for the other datacenter, which has synced nothing; this is about the checkpoint's rows.
    world.let_go_of_the_stream();
    assert!(world.checkpoint());
    let before = world.all_views();
    let again = world.restarted(u64::MAX);
    assert_eq!(before, again.all_views());
}

#[test]
fn a_flush_that_some_do_not_see_is_not_seen_by_them_after_a_restart() {
    for checkpoint_bytes in [1, u64::MAX] {
        let mut world = history(checkpoint_bytes);
        world.receive(5, "", None);
        if checkpoint_bytes == 1 {
            assert!(world.checkpoint());
        }
        let shows = |world: &World, through| world.seen(through).iter().any(|line| line.contains("Bytes("));
        assert!(shows(&world, 4) && !shows(&world, 5));
        let mut again = world.restarted(u64::MAX);
        assert!(shows(&again, 4) && !shows(&again, 5));
        // A write that the flush covers and that comes after it is seen only by those who do not see the flush.
        assert_eq!(again.rows().flushes().len(), 1);
        let everything = |_: &Source| true;
        assert_eq!(again.partition.keyspaces.keyspace(KeyspaceId(0)).settle(&everything, usize::MAX), 0);
        assert!(!shows(&again, 4) && again.rows().flushes().is_empty());
    }
}

/// The answer to the share of a snapshot at this cut.
fn part(world: &mut World, snapshot: TimeVector) -> Option<AtValues> {
    let commands = vec![["GET", "a"].map(|word| Bytes::from_static(word.as_bytes())).into_iter().collect()];
    let from = Address::Partition { datacenter: DatacenterId(0), partition: PARTITION };
    world.message(from, Message::ReadSnapshotPart { read: 7, keyspace: KeyspaceId(0), snapshot, commands });
    let read =
        std::iter::from_fn(|| world.partition.cx.outbox.next()).find_map(|envelope| match envelope.message {
            Message::SnapshotPartRead { values, .. } => Some(values),
            _ => None,
        });
    read.expect("the slice was answered")
}

/// The protocols whose pasts are times.
pub(super) fn versioned() -> impl Iterator<Item = &'static str> {
    ensue_protocol::NAMES.into_iter().filter(|name| {
        let protocol = ensue_protocol::by_name(name, Default::default());
        protocol.expect("every listed name is known").needs().snapshot_vectors
    })
}

/// What was folded is not told apart any more, in a checkpoint neither: a cut below it is drawn again.
#[test]
fn a_restart_answers_no_cut_below_what_was_folded() {
    for name in versioned() {
        let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
        let mut world = World::under(name, BTreeMap::new(), now, 1).started();
        world.run("SET a 1");
        world.now.monotonic_us += 1_000_000;
        world.now.wall_ms += 1_000;
        world.run("SET a 2");
        let time = LogicalTime::from_ms(world.now.wall_ms + 1);
        let (received, floor) = (TimeVector::uniform(2, time), TimeVector::uniform(1, time));
        let from = Address::Partition { datacenter: DatacenterId(0), partition: PARTITION };
        let end = Position(0);
        let other = Address::Partition { datacenter: OTHER, partition: PARTITION };
        world.now.wall_ms += 10;
        world.message(other, Message::Heartbeat { end });
        world.message(from, Message::Stable { received, floor: floor.clone(), globally_stable: Vec::new() });
        assert!(part(&mut world, TimeVector::default()).is_none(), "{name}");
        assert!(part(&mut world, floor.clone()).is_some(), "{name}");
        // The log is kept for the other datacenter; this is about the checkpoint's rows.
        world.let_go_of_the_stream();
        assert!(world.checkpoint());
        let mut again = World::under(name, world.files, world.now, u64::MAX).started();
        assert!(part(&mut again, TimeVector::default()).is_none(), "{name}: after a restart");
        assert!(part(&mut again, floor).is_some(), "{name}: after a restart");
    }
}

/// The others' times are not in a checkpoint: they are logged behind its start, and durable before it counts.
#[test]
fn a_restart_by_a_checkpoint_knows_what_was_stable() {
    for name in versioned() {
        let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
        let mut world = World::under(name, BTreeMap::new(), now, 1).started();
        let received = TimeVector::uniform(2, LogicalTime::from_ms(world.now.wall_ms));
        let from = Address::Partition { datacenter: DatacenterId(0), partition: PARTITION };
        let floor = TimeVector::default();
        world.message(
            from,
            Message::Stable { received: received.clone(), floor, globally_stable: Vec::new() },
        );
        world.run("SET a 1");
        // The log is kept for the other datacenter; this is about what is behind the checkpoint's start.
        world.let_go_of_the_stream();
        let now = world.now;
        let files = world.files_when_a_checkpoint_is_named();
        let again = World::under(name, files, now, u64::MAX).started();
        let stable = again.partition.others.stable_time.times.stable();
        assert!(stable.covers_but(DatacenterId(0), &received), "{name}: {stable:?} after a restart");
    }
}

/// The bound up to which the clock may have shown times is not in a checkpoint either.
#[test]
fn a_restart_by_a_checkpoint_shows_no_time_again() {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let mut world = World::under("eventual", BTreeMap::new(), now, 1).started();
    world.run("SET a 1");
    // The log is kept for the other datacenter; this is about what is behind the checkpoint's start.
    world.let_go_of_the_stream();
    let (now, bound) = (world.now, world.partition.cx.journal.bound());
    assert!(bound > world.partition.cx.clock.latest());
    let again = World::under("eventual", world.files_when_a_checkpoint_is_named(), now, u64::MAX).started();
    assert!(again.partition.cx.clock.latest() >= bound, "a time below {bound} may have been shown");
}

/// Seed 700085 of `eventual`. The wall leaps between two turns; a process that is killed in the second one must not
/// forget it.
#[test]
fn what_is_said_at_a_time_rests_on_a_bound_of_the_clock_above_it() {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let mut world = World::under("eventual", BTreeMap::new(), now, u64::MAX).started();
    let said = |world: &mut World| {
        std::iter::from_fn(|| world.partition.cx.outbox.next()).map(|envelope| envelope.time).max()
    };
    said(&mut world);
    let bound = world.partition.cx.journal.bound();
    world.now.monotonic_us += 10_000_000;
    world.now.wall_ms += 3_600_000;
    world.partition.cx.now = world.now;
    world.partition.on_turn_end();
    assert!(said(&mut world).is_none_or(|time| time < bound), "the new bound is not in the log");
    world.work();
    assert!(said(&mut world).is_some_and(|time| time > bound));
}
