//! What a write replaced: carried where its protocol asks for it and nowhere else, waited for, and compared.

use super::versions::World;
use super::{PARTITION, config};
use crate::AppendFsync;
use crate::evaluate::shown_kind;
use ensue_protocol::NAMES;
use ensue_store::entry::{Change, Entry};
use ensue_store::layout;
use ensue_store::view::View;
use ensue_types::{
    DatacenterId, Incarnation, KeyspaceId, LogicalTime, Now, OperationId, Position, Previous, Stamp,
};
use ensue_wire::{Address, Message};
use std::collections::BTreeMap;

pub(super) const HERE: DatacenterId = DatacenterId(0);
pub(super) const OTHER: DatacenterId = DatacenterId(1);

/// A partition of this protocol that has been asked by the other datacenter for its stream.
pub(super) fn partition(protocol: &str) -> World {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    asked(World::under(protocol, BTreeMap::new(), now, u64::MAX).started())
}

fn asked(mut world: World) -> World {
    let from = Address::Partition { datacenter: OTHER, partition: PARTITION };
    let resume =
        Message::StreamResume { incarnation: Incarnation(1), received: Position::before(Incarnation(1)) };
    world.message(from, resume);
    world
}

/// The entries sent to the other datacenter since the last call.
pub(super) fn sent(world: &mut World) -> Vec<Entry> {
    let mut entries = Vec::new();
    while let Some(envelope) = world.partition.cx.outbox.next() {
        if let Message::StreamEntries { entries: sent, .. } = envelope.message {
            entries.extend(sent.iter().map(|bytes| layout::decode_entry(bytes).expect("well formed")));
        }
    }
    entries
}

fn of(datacenter: DatacenterId, position: u64) -> Previous {
    let (incarnation, partition) = (Incarnation(1), PARTITION);
    let position = Position(Position::before(incarnation).0 + position);
    Previous::Operation(OperationId { datacenter, incarnation, partition, position })
}

const NOTHING: Previous = Previous::Nothing { forgotten: Stamp::ZERO };

fn conflicts(world: &mut World) -> i64 {
    let metrics = world.partition.metrics();
    metrics.into_iter().find(|(name, _)| name == "conflicts_0").map_or(0, |(_, count)| count)
}

/// The protocols that ask for what writes replaced.
fn asking() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().filter(|name| {
        let protocol = ensue_protocol::by_name(name, Default::default());
        protocol.expect("every listed name is known").needs().previous_versions
    })
}

#[test]
fn what_a_write_replaced_is_carried_only_where_it_is_asked_for() {
    let asking: Vec<&str> = asking().collect();
    assert!(!asking.is_empty() && asking.len() < NAMES.len());
    for name in NAMES {
        let mut world = partition(name);
        for line in ["SET x 1", "SET x 2", "SET y 1", "HSET h f 1 g 2 f 3", "DEL x", "INCR n"] {
            world.run(line);
        }
        let carried: Vec<Vec<Previous>> = sent(&mut world).into_iter().map(|entry| entry.previous).collect();
        let expected = match asking.contains(&name) {
            // The second `f` of one write replaces its own, and an addition replaces nothing.
            true => vec![
                vec![NOTHING],
                vec![of(HERE, 1)],
                vec![NOTHING],
                vec![NOTHING; 2],
                vec![of(HERE, 2)],
                vec![],
            ],
            false => vec![vec![]; 6],
        };
        assert_eq!(carried, expected, "{name}");
    }
}

/// An entry as the other datacenter writes it, over what its partition holds.
pub(super) fn written_elsewhere(world: &mut World, elsewhere: &mut World, line: &str) {
    elsewhere.run(line);
    for mut entry in sent(elsewhere) {
        entry.stamp.datacenter = OTHER;
        for previous in &mut entry.previous {
            if let Previous::Operation(operation) = previous {
                // What the other one wrote itself is its own, and not of the first.
                operation.datacenter = OTHER;
            }
        }
        let (incarnation, first) = (entry.position.incarnation(), entry.position);
        let entries = vec![layout::encode_entry(&entry)];
        let from = Address::Partition { datacenter: OTHER, partition: PARTITION };
        world.message(from, Message::StreamEntries { incarnation, first, entries });
    }
}

#[test]
fn a_conflict_is_a_write_that_meets_what_its_writer_did_not_replace() {
    for name in asking() {
        let (mut world, mut elsewhere) = (partition(name), partition(name));
        let mut counted = |world: &mut World, line: &str| {
            let before = conflicts(world);
            written_elsewhere(world, &mut elsewhere, line);
            conflicts(world) - before
        };
        assert_eq!(counted(&mut world, "SET x 1"), 0, "{name}: nothing is here");
        assert_eq!(counted(&mut world, "SET x 2"), 0, "{name}: it replaced what is here");
        world.run("SET x 3");
        assert_eq!(counted(&mut world, "SET x 4"), 1, "{name}: it did not know of the local write");
        world.run("HSET h f 1 g 1");
        assert_eq!(counted(&mut world, "HSET h k 1"), 0, "{name}: another field");
        assert_eq!(counted(&mut world, "HSET h f 2 g 2"), 1, "{name}: two fields of one key");
        world.run("SET gone 1");
        world.run("DEL gone");
        assert_eq!(counted(&mut world, "SET gone 2"), 1, "{name}: it did not know of the delete");
        world.run("INCR n");
        assert_eq!(counted(&mut world, "INCR n"), 0, "{name}: additions go together");
        world.run("SET flushed 1");
        world.run("FLUSHDB");
        assert_eq!(counted(&mut world, "SET flushed 2"), 0, "{name}: what was flushed is not here");
    }
}

/// What a flush deletes by name stands under the flush's own stamp: who writes over it says that all up to there is
/// known.
#[test]
fn a_counter_that_a_flush_deleted_is_replaced_as_what_was_flushed() {
    for name in asking() {
        let mut world = partition(name);
        for line in ["INCR n", "SET x 1", "FLUSHDB", "SET n 1", "SET x 2"] {
            world.run(line);
        }
        let entries = sent(&mut world);
        let [_, _, flush, counter, text] = &entries[..] else { panic!("{name}: one entry a command") };
        let flushed = vec![Previous::Nothing { forgotten: flush.stamp }];
        assert_eq!((&counter.previous, &text.previous), (&flushed, &flushed), "{name}");
    }
}

/// A partition may hold more counters than an entry names.
#[test]
fn a_flush_of_more_counters_than_fit_into_an_entry_takes_several() {
    const BYTES_MAX: usize = 4_000;
    for name in NAMES.into_iter().filter(|name| *name != "tardis") {
        let mut configured = config(AppendFsync::Always);
        configured.tuning.checkpoint_bytes = u64::MAX;
        configured.tuning.entry_bytes_max = BYTES_MAX;
        let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
        let mut world = asked(World::configured(configured, name, BTreeMap::new(), now).started());
        (0..150).for_each(|number| world.run(&format!("INCR counter{number}")));
        world.run("SET x 1");
        assert_eq!(sent(&mut world).len(), 151, "{name}");
        world.run("FLUSHDB");
        let entries = sent(&mut world);
        assert!(entries.len() > 2, "{name}: {} entries", entries.len());
        let longest = entries.iter().map(layout::encoded_entry_bytes).max();
        assert!(longest.is_some_and(|bytes| bytes < BYTES_MAX + 200), "{name}: {longest:?}");
        let (flush, others) = entries.split_last().expect("there are some");
        assert!(matches!(flush.change, Change::Flush { .. }), "{name}");
        assert!(others.iter().all(|entry| matches!(entry.change, Change::Effects { .. })), "{name}");
        let rows = world.partition.keyspaces.rows(KeyspaceId(0)).expect("it is there");
        let shown = rows.rows().filter_map(|row| shown_kind(row, LogicalTime::ZERO, View::Newest));
        assert_eq!(shown.count(), 0, "{name}");
    }
}
