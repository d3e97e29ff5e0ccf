//! A read of one cut through partitions of two cores.

use super::{World, config};
use crate::config::DatacenterTopology;
use crate::{AppendFsync, Input};
use bytes::Bytes;
use ensue_types::{Causes, CoreId, DatacenterId, LogicalTime, PartitionId, Reply, SessionId};
use ensue_wire::{Address, AtValues, Envelope, Message};

/// A key of a partition.
fn key(partition: PartitionId) -> Bytes {
    let mut names = (0..).map(|number: u32| Bytes::from(number.to_string()));
    names.find(|name| ensue_types::partition_of(name, 2) == partition).expect("there is one")
}

/// A core that owns the first of two partitions, of so many datacenters, and a client that reads a key of each.
fn reading_two_partitions(datacenters: usize) -> World {
    let mut config = config(AppendFsync::Always);
    let placement = vec![CoreId(0), CoreId(1)];
    config.topology.partitions = 2;
    config.topology.datacenters.truncate(datacenters);
    for datacenter in &mut config.topology.datacenters {
        *datacenter = DatacenterTopology { cores: 2, placement: placement.clone(), ..datacenter.clone() };
    }
    config.protocols = vec!["pocc".into()];
    let mut world = World::with(config);
    world.calm_down();
    world.give(Input::LinkUp { datacenter: DatacenterId(0), core: CoreId(1) });

    let session = SessionId(1);
    let (address, local_address) = (String::new(), String::new());
    world.give(Input::ClientConnected { session, address, local_address });
    let words = [Bytes::from_static(b"MGET"), key(PartitionId(0)), key(PartitionId(1))];
    world.give(Input::ClientCommands { session, commands: vec![words.into_iter().collect()] });
    world.give(Input::TurnEnd);
    world
}

/// The reads whose slices were asked for, by number.
fn asked(world: &World) -> Vec<u64> {
    let asked = world.sent.iter().filter_map(|message| match message {
        Message::ReadSnapshotPart { read, .. } => Some(*read),
        _ => None,
    });
    asked.collect()
}

/// The other partition's answer.
fn answer(world: &mut World, read: u64, values: Option<AtValues>) {
    let datacenter = DatacenterId(0);
    let from = Address::Partition { datacenter, partition: PartitionId(1) };
    let to = Address::Partition { datacenter, partition: PartitionId(0) };
    let time = LogicalTime::from_ms(world.now.wall_ms);
    world.give(Input::Message(Envelope {
        from,
        to,
        time,
        message: Message::SnapshotPartRead { read, values },
    }));
    world.give(Input::TurnEnd);
    world.calm_down();
}

#[test]
fn slices_that_were_asked_for_over_an_earlier_link_are_asked_for_again() {
    let mut world = reading_two_partitions(2);
    assert_eq!(asked(&world).len(), 1, "lost with the link that it went over");
    world.give(Input::LinkUp { datacenter: DatacenterId(1), core: CoreId(1) });
    assert_eq!(asked(&world).len(), 1, "another datacenter's core");
    world.give(Input::LinkUp { datacenter: DatacenterId(0), core: CoreId(1) });
    assert_eq!(asked(&world).len(), 2);
}

#[test]
fn a_slice_of_a_cut_that_was_given_up_does_not_count_for_the_next() {
    let mut world = reading_two_partitions(1);
    world.give(Input::LinkUp { datacenter: DatacenterId(0), core: CoreId(1) });
    let first = *asked(&world).last().expect("a slice was asked for");
    let values = || AtValues { replies: vec![Reply::bulk("1")], seen: Causes::Nothing };

    // Asked twice, the other partition answers twice: the first time the versions are gone.
    answer(&mut world, first, None);
    let second = *asked(&world).last().expect("a new cut was drawn");
    answer(&mut world, first, Some(values()));
    assert_eq!(world.answered, 0, "the new cut lacks a slice");
    answer(&mut world, second, Some(values()));
    assert_eq!(world.answered, 1);
}
