//! Entries of a stream that no sender of ours makes: they are not logged, they hold up their own stream alone, and
//! they are counted.

use super::*;
use ensue_branch::{Commit, Note, StateId, Write};
use ensue_types::{Causes, EpochSum, Opaque, OperationId, Previous, SeenSum, TimeVector, Vector};

const OTHER: DatacenterId = DatacenterId(1);

/// The second of two partitions has the key `a`, the first has `b`.
fn world() -> World {
    let mut config = config(AppendFsync::Always);
    config.topology.partitions = 2;
    for datacenter in &mut config.topology.datacenters {
        datacenter.cores = 2;
        datacenter.placement = vec![CoreId(0), CoreId(1)];
    }
    config.protocols = ["eiger", "cure", "tardis"].map(str::to_owned).to_vec();
    config.protocols.resize(usize::from(ensue_types::limits::KEYSPACES), "cops-cd".to_owned());
    let mut world = World::with(config);
    world.give(Input::LinkUp { datacenter: OTHER, core: CoreId(0) });
    world.calm_down();
    world
}

fn entry(now: Now, keyspace: u8, key: &'static str) -> Entry {
    let row = RowEffect {
        key: Bytes::from_static(key.as_bytes()),
        column: Column::Text,
        effect: Effect::Put { value: Bytes::from_static(b"1"), seen: Vec::new(), over: None },
    };
    Entry {
        position: Position(1),
        stamp: Stamp { time: LogicalTime::from_ms(now.wall_ms), datacenter: OTHER, partition: PARTITION },
        dependencies: Causes::Nothing,
        change: Change::Effects { keyspace: KeyspaceId(keyspace), transaction: None, effects: vec![row] },
        previous: Vec::new(),
    }
}

fn send(world: &mut World, entry: &Entry) {
    let entries = vec![layout::encode_entry(entry)];
    let message = Message::StreamEntries { incarnation: Incarnation(1), first: Position(1), entries };
    let from = Address::Partition { datacenter: OTHER, partition: PARTITION };
    let to = Address::Partition { datacenter: DatacenterId(0), partition: PARTITION };
    let time = LogicalTime::from_ms(world.now.wall_ms);
    world.give(Input::Message(Envelope { from, to, time, message }));
    world.give(Input::TurnEnd);
    world.calm_down();
}

fn nowhere() -> OperationId {
    let (incarnation, partition) = (Incarnation(1), PartitionId(7));
    OperationId { datacenter: OTHER, incarnation, partition, position: Position(1) }
}

fn effects_of(entry: &mut Entry) -> &mut Vec<RowEffect> {
    match &mut entry.change {
        Change::Effects { effects, .. } => effects,
        _ => panic!("it has effects"),
    }
}

/// A change to the entry that puts 1 at `b` in the first keyspace, and why the result is refused.
type Spoilt = (fn(&mut Entry), &'static str);

const SPOILT: &[Spoilt] = &[
    (|entry| entry.position = Position(2), "a stream entry that is not what it says"),
    (|entry| entry.stamp.datacenter = DatacenterId(0), "a stream entry that is not what it says"),
    (|entry| entry.stamp.partition = PartitionId(1), "a stamp of another partition"),
    (|entry| entry.stamp.time = LogicalTime::MAX, "a time that no clock shows"),
    (
        |entry| entry.dependencies = Causes::Extension(Opaque(vec![99; 4])),
        "dependencies that the protocol cannot read",
    ),
    (|entry| effects_of(entry)[0].key = Bytes::from_static(b"a"), "a key of another partition"),
    (
        |entry| {
            let epoch_sum = EpochSum { epoch: Stamp::ZERO, sum: ensue_types::Decimal::ZERO };
            effects_of(entry)[0].effect = Effect::Add { epoch_sum };
        },
        "an addition in another datacenter's name",
    ),
    (
        |entry| {
            let epoch_sum = EpochSum { epoch: Stamp::ZERO, sum: ensue_types::Decimal::ZERO };
            let seen = SeenSum { datacenter: DatacenterId(0), epoch_sum, stamp: Stamp::ZERO };
            effects_of(entry)[0].effect = Effect::Delete { seen: vec![seen, seen] };
        },
        "additions seen of nobody",
    ),
    (
        |entry| entry.previous = vec![Previous::Operation(nowhere())],
        "a partition that the cluster does not have",
    ),
    (
        |entry| {
            let named = OperationId { datacenter: DatacenterId(0), partition: PARTITION, ..nowhere() };
            let effects = std::mem::take(effects_of(entry));
            entry.change = Change::Effects { keyspace: KeyspaceId(0), transaction: Some(named), effects };
        },
        "a part of a transaction that is none of its datacenter's",
    ),
    (
        |entry| {
            let participants = vec![PARTITION, PartitionId(1), PARTITION];
            entry.change = Change::Transaction { keyspace: KeyspaceId(0), begun_as: None, participants };
        },
        "participants that are not a set",
    ),
    (
        |entry| {
            let (keyspace, begun_as) = (KeyspaceId(0), Some(nowhere()));
            let participants = vec![PARTITION, PartitionId(1)];
            entry.change = Change::Transaction { keyspace, begun_as, participants };
        },
        "a transaction that was begun elsewhere",
    ),
    (
        |entry| {
            let participants = vec![PARTITION, PartitionId(1)];
            entry.change = Change::Transaction { keyspace: KeyspaceId(1), begun_as: None, participants };
        },
        "a write transaction of a protocol that has none",
    ),
    (|entry| entry.change = Change::Lost { after: Position(0) }, "a loss that begins no incarnation"),
    (
        |entry| {
            let effects = std::mem::take(effects_of(entry));
            entry.change = Change::Effects { keyspace: KeyspaceId(2), transaction: None, effects };
        },
        "rows of a keyspace that has branches here",
    ),
    (|entry| entry.change = branch(0, 1, OTHER), "states of a keyspace that has no branches here"),
    (|entry| entry.change = branch(2, 1, DatacenterId(0)), "a state that another datacenter made"),
    (|entry| entry.change = branch(2, StateId::COUNTER_MAX, OTHER), "a state far above all that are known"),
    (
        |entry| {
            let note = Bytes::from_static(b"nonsense");
            entry.change = Change::Branch { keyspace: KeyspaceId(2), note };
        },
        "a note of a branching keyspace that cannot be read",
    ),
];

fn branch(keyspace: u8, counter: u64, site: DatacenterId) -> Change {
    let id = StateId::new(counter, site, Incarnation(1));
    let write = Write { key: Bytes::from_static(b"k"), value: None };
    let note = Note::Commit(Commit { id, parents: vec![StateId::ROOT], writes: vec![write] }).encode();
    Change::Branch { keyspace: KeyspaceId(keyspace), note }
}

#[test]
fn an_entry_that_cannot_be_is_not_logged_and_holds_up_its_stream_alone() {
    for (spoil, why) in SPOILT {
        let mut world = world();
        let good = entry(world.now, 0, "b");
        let mut bad = good.clone();
        spoil(&mut bad);
        world.traces.clear();
        send(&mut world, &bad);
        assert_eq!(world.traces, [Trace::Refused { what: why }], "{bad:?}");
        world.now.monotonic_us += 1_000_000;
        world.give(Input::Timer);
        world.give(Input::TurnEnd);
        world.calm_down();
        assert_eq!(acknowledged(&world), (0, 0), "{why}");
        let resumes = world.sent.iter().rev().any(
            |message| matches!(message, Message::StreamResume { received, .. } if *received == Position(0)),
        );
        assert!(resumes, "it is asked to go on: {why}");
        // What the sender then says rightly is taken, and clients are served.
        send(&mut world, &good);
        assert_eq!(acknowledged(&world), (1, 1), "{why}");
        world.run(SessionId(1), "GET b");
        world.calm_down();
        assert!(world.replies.ends_with(b"$1\r\n1\r\n"), "{why}: {:?}", world.replies);
    }
}

#[test]
fn what_a_datacenter_said_that_was_refused_is_counted_in_its_name() {
    let mut world = world();
    let mut bad = entry(world.now, 0, "a");
    send(&mut world, &bad);
    bad.stamp.partition = PartitionId(1);
    send(&mut world, &bad);
    let from = Address::Partition { datacenter: OTHER, partition: PARTITION };
    let to = Address::Partition { datacenter: DatacenterId(0), partition: PARTITION };
    let message = Message::Heartbeat { end: Position(u64::MAX) };
    world.give(Input::Message(Envelope { from, to, time: LogicalTime::ZERO, message }));
    // The other core does not answer: what this one has is told when that is over.
    world.run(SessionId(1), "INFO");
    world.give(Input::LinkDown { datacenter: DatacenterId(0), core: CoreId(1) });
    world.calm_down();
    let told = String::from_utf8(world.replies).expect("INFO is text");
    assert!(told.contains("ensue_refused_dc2_messages:3"), "{told}");
}

/// A past that names a time which no clock of ours has come to would block whoever reads it, for ever.
#[test]
fn a_past_far_ahead_is_waited_for_like_a_stamp_far_ahead() {
    let mut world = world();
    let mut entry = entry(world.now, 1, "b");
    let ahead = world.now.wall_ms + 2 * ensue_types::limits::CLOCK_AHEAD_MS_MAX;
    let past = |ms: u64| {
        let times = TimeVector::from_iter([LogicalTime::from_ms(ms)]);
        Causes::from(Vector { times, ..Vector::default() })
    };
    entry.dependencies = past(ahead);
    send(&mut world, &entry);
    assert_eq!(acknowledged(&world), (0, 0));
    entry.dependencies = past(world.now.wall_ms);
    send(&mut world, &entry);
    assert_eq!(acknowledged(&world), (1, 1));
}
