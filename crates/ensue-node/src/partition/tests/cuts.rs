//! A read of one cut through partitions of two cores.

use super::{World, config};
use crate::config::DatacenterTopology;
use crate::{AppendFsync, Input};
use bytes::Bytes;
use ensue_types::{CoreId, DatacenterId, PartitionId, SessionId};
use ensue_wire::Message;

/// A key of a partition.
fn key(partition: PartitionId) -> Bytes {
    let mut names = (0..).map(|number: u32| Bytes::from(number.to_string()));
    names.find(|name| ensue_types::partition_of(name, 2) == partition).expect("there is one")
}

#[test]
fn slices_that_were_asked_for_while_a_core_was_away_are_asked_for_again() {
    let mut config = config(AppendFsync::Always);
    let placement = vec![CoreId(0), CoreId(1)];
    config.topology.partitions = 2;
    for datacenter in &mut config.topology.datacenters {
        *datacenter = DatacenterTopology { cores: 2, placement: placement.clone(), ..datacenter.clone() };
    }
    config.protocols = vec!["orbe-clock".into()];
    let mut world = World::with(config);
    world.calm_down();

    let session = SessionId(1);
    let (address, local_address) = (String::new(), String::new());
    world.give(Input::ClientConnected { session, address, local_address });
    let words = [Bytes::from_static(b"MGET"), key(PartitionId(0)), key(PartitionId(1))];
    world.give(Input::ClientCommands { session, commands: vec![words.into_iter().collect()] });
    world.give(Input::TurnEnd);
    let asked = |world: &World| {
        world.sent.iter().filter(|message| matches!(message, Message::ReadSlice { .. })).count()
    };
    assert_eq!(asked(&world), 1, "lost: the other core is not there yet");
    world.give(Input::LinkUp { datacenter: DatacenterId(1), core: CoreId(1) });
    assert_eq!(asked(&world), 1, "another datacenter's core");
    world.give(Input::LinkUp { datacenter: DatacenterId(0), core: CoreId(1) });
    assert_eq!(asked(&world), 2);
}
