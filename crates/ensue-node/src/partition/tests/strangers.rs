//! What no node of ours sends: it is answered or refused, and the partition goes on.

use super::versions::World;
use crate::{AppendFsync, Input, Trace};
use ensue_store::entry::{Change, Entry};
use ensue_store::layout;
use ensue_types::{Causes, CoreId, DatacenterId, KeyspaceId, LogicalTime, Now, Position, Reply, Stamp};
use ensue_wire::{Address, Envelope, Message};
use std::collections::BTreeMap;

/// The answer to one command that a session's core asks for.
fn answer(world: &mut World, line: &str) -> Reply {
    world.run(line);
    let replies =
        std::iter::from_fn(|| world.partition.cx.outbox.next()).find_map(|envelope| match envelope.message {
            Message::Executed { replies, .. } => Some(replies),
            _ => None,
        });
    let [reply] = &replies.expect("it was answered")[..] else { panic!("one command, one answer") };
    reply.clone()
}

#[test]
fn a_command_without_its_subcommand_is_an_error() {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let mut world = World::new(BTreeMap::new(), now, u64::MAX);
    let reply = answer(&mut world, "causal");
    assert_eq!(reply, Reply::error("ERR wrong number of arguments for 'causal' command"));
    assert_eq!(answer(&mut world, "SET a 1"), Reply::OK);
}

/// What a survivor says to the one partition of a datacenter that has three.
fn says(world: &mut super::World, message: Message) {
    let from = Address::Partition { datacenter: DatacenterId(1), partition: super::PARTITION };
    let to = Address::Partition { datacenter: DatacenterId(0), partition: super::PARTITION };
    world.give(Input::Message(Envelope { from, to, time: LogicalTime::ZERO, message }));
    world.give(Input::TurnEnd);
    world.calm_down();
}

/// The survivor has this much of the stream of the third, who is dead, and passes on its first entry.
fn pass_on(received: Position) -> super::World {
    let mut config = super::config(AppendFsync::Always);
    config.topology.datacenters.push(config.topology.datacenters[1].clone());
    let mut world = super::World::with(config);
    world.give(Input::LinkUp { datacenter: DatacenterId(1), core: CoreId(0) });
    world.calm_down();
    let dead = DatacenterId(2);
    says(
        &mut world,
        Message::DatacenterFailed { datacenter: dead, received, time: LogicalTime::ZERO, ended: None },
    );
    let entry = Entry {
        position: Position(1),
        stamp: Stamp { time: LogicalTime::from_ms(1), datacenter: dead, partition: super::PARTITION },
        dependencies: Causes::Nothing,
        change: Change::Effects { keyspace: KeyspaceId(0), transaction: None, effects: Vec::new() },
        previous: Vec::new(),
    };
    world.traces.clear();
    says(&mut world, Message::PassedOn { origin: dead, entries: vec![layout::encode_entry(&entry)] });
    world
}

#[test]
fn the_end_of_a_dead_stream_is_taken_from_whom_it_was_asked_of() {
    let settled = |trace: &Trace| matches!(trace, Trace::StreamSettled { end, .. } if *end == Position(1));
    let world = pass_on(Position(1));
    assert!(world.traces.iter().any(settled), "{:?}", world.traces);
    // Nothing is lacking here, and nothing was asked for: the stream is at its end.
    let world = pass_on(Position(0));
    let what = "entries of another's stream that were not asked for";
    assert_eq!(world.traces, vec![Trace::Refused { what }]);
}
