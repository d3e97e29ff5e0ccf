//! Whose messages are taken, over which link.

use super::*;
use crate::config::DatacenterTopology;
use ensue_types::{Incarnation, KeyspaceId, LogicalTime, PartitionId, Position, RequestId};

/// Three datacenters of two cores; partition `p` is on core `p % 2`.
fn topology() -> Topology {
    let placement: Vec<CoreId> = (0..4).map(|partition| CoreId(partition % 2)).collect();
    let datacenter = |name: &str| DatacenterTopology {
        replicas: Vec::new(),
        name: name.into(),
        cores: 2,
        nodes: vec![1, 1],
        placement: placement.clone(),
    };
    let datacenters = ["dc1", "dc2", "dc3"].map(datacenter).into();
    Topology { datacenter: DatacenterId(0), partitions: 4, datacenters }
}

fn partition(datacenter: u8, partition: u16) -> Address {
    Address::Partition { datacenter: DatacenterId(datacenter), partition: PartitionId(partition) }
}

fn sessions(datacenter: u8, core: u16) -> Address {
    Address::Core { datacenter: DatacenterId(datacenter), core: CoreId(core) }
}

fn entries() -> Message {
    Message::StreamEntries { incarnation: Incarnation(1), first: Position(1), entries: Vec::new() }
}

fn read() -> Message {
    Message::ReadFirst { request: RequestId::default(), keyspace: KeyspaceId(0), commands: Vec::new() }
}

fn dead(datacenter: u8) -> Message {
    let datacenter = DatacenterId(datacenter);
    Message::DatacenterFailed { datacenter, received: Position(1), time: LogicalTime::ZERO, ended: None }
}

fn passed_on(origin: u8) -> Message {
    Message::PassedOn { origin: DatacenterId(origin), entries: Vec::new() }
}

/// Over the link of core 0 of dc1 with a core of that datacenter.
fn over_link(peer: (u8, u16), from: Address, to: Address, message: Message) -> Result<(), NotTheirs> {
    let envelope = Envelope { from, to, time: LogicalTime::ZERO, message };
    let peer = CoreName { datacenter: DatacenterId(peer.0), core: CoreId(peer.1) };
    admit(&topology(), CoreId(0), peer, &envelope)
}

#[test]
fn a_peer_speaks_for_its_own_partitions_to_ours() {
    assert_eq!(over_link((1, 0), partition(1, 2), partition(0, 2), entries()), Ok(()));
    let refused = [
        ((2, 0), partition(1, 2), partition(0, 2), "another datacenter's stream"),
        ((1, 1), partition(1, 2), partition(0, 2), "a partition of another of its cores"),
        ((1, 0), partition(0, 2), partition(0, 2), "our own stream"),
        ((1, 0), partition(1, 2), partition(0, 0), "to another partition than its counterpart"),
        ((1, 0), partition(1, 9), partition(0, 9), "of a partition that is none"),
        ((1, 0), sessions(1, 0), partition(0, 2), "of a core, not a partition"),
    ];
    for (peer, from, to, what) in refused {
        assert!(matches!(over_link(peer, from, to, entries()), Err(NotTheirs::From(_))), "{what}");
    }
    for (to, what) in [
        (partition(2, 2), "to a third, through us"),
        (partition(0, 1), "to another core"),
        (sessions(0, 1), "to another core's sessions"),
        (sessions(7, 0), "to nowhere"),
    ] {
        assert!(matches!(over_link((1, 0), partition(1, 2), to, entries()), Err(NotTheirs::To(_))), "{what}");
    }
}

#[test]
fn commands_stay_within_a_datacenter_and_streams_do_not() {
    assert_eq!(over_link((0, 1), sessions(0, 1), partition(0, 0), read()), Ok(()));
    assert_eq!(over_link((1, 0), sessions(1, 0), partition(0, 0), read()), Err(NotTheirs::OnlyWithin));
    assert_eq!(over_link((1, 0), partition(1, 0), partition(0, 0), read()), Err(NotTheirs::OnlyWithin));
    let copies = || Message::BackupAsk { number: 1, words: Vec::new() };
    assert_eq!(over_link((0, 1), sessions(0, 1), sessions(0, 0), copies()), Ok(()));
    assert_eq!(over_link((1, 1), sessions(1, 1), sessions(0, 0), copies()), Err(NotTheirs::OnlyWithin));
    assert_eq!(over_link((0, 1), partition(0, 1), partition(0, 0), entries()), Err(NotTheirs::OnlyBetween));
}

#[test]
fn of_others_streams_only_the_end_of_a_thirds_is_passed_on() {
    let said = |message| over_link((1, 0), partition(1, 0), partition(0, 0), message);
    assert_eq!(said(passed_on(2)), Ok(()));
    for origin in [0, 1] {
        assert_eq!(said(passed_on(origin)), Err(NotTheirs::OtherStream), "the stream of {origin}");
    }
    assert_eq!(said(dead(2)), Ok(()));
    assert_eq!(said(dead(0)), Ok(()), "that we are dead, ourselves must hear");
    assert_eq!(said(dead(1)), Err(NotTheirs::OtherStream));
}

#[test]
fn commands_at_the_home_of_keys_go_between_cores_of_two_datacenters() {
    let ready = || Message::HomeReady { boot: 1 };
    assert_eq!(over_link((1, 1), sessions(1, 1), sessions(0, 0), ready()), Ok(()));
    assert_eq!(over_link((0, 1), sessions(0, 1), sessions(0, 0), ready()), Err(NotTheirs::OnlyBetween));
    let refused = [
        ((1, 0), partition(1, 0), sessions(0, 0), "of a partition"),
        ((1, 0), sessions(1, 0), partition(0, 0), "to a partition"),
        ((1, 0), sessions(1, 1), sessions(0, 0), "of another of its cores"),
    ];
    for (peer, from, to, what) in refused {
        assert!(matches!(over_link(peer, from, to, ready()), Err(NotTheirs::From(_))), "{what}");
    }
}

/// The same over a link of a cluster in which every partition is on both cores of dc1 and dc2.
fn over_replicated(peer: (u8, u16), from: Address, to: Address, message: Message) -> Result<(), NotTheirs> {
    let mut topology = topology();
    for datacenter in &mut topology.datacenters[..2] {
        datacenter.replicas =
            (0..4).map(|partition| vec![CoreId(partition % 2), CoreId(1 - partition % 2)]).collect();
    }
    let envelope = Envelope { from, to, time: LogicalTime::ZERO, message };
    let peer = CoreName { datacenter: DatacenterId(peer.0), core: CoreId(peer.1) };
    admit(&topology, CoreId(0), peer, &envelope)
}

#[test]
fn a_replicated_partition_speaks_from_each_core_that_has_it() {
    for core in [0, 1] {
        assert_eq!(
            over_replicated((1, core), partition(1, 3), partition(0, 3), entries()),
            Ok(()),
            "core {core}"
        );
    }
    // One that is not replicated speaks from its core only.
    let from_elsewhere = over_replicated((2, 0), partition(2, 3), partition(0, 3), entries());
    assert_eq!(from_elsewhere, Err(NotTheirs::From(Place(partition(2, 3)))));
}

#[test]
fn replicas_speak_within_a_datacenter_and_owners_to_all() {
    let replica = || Message::Replica { partition: PartitionId(1), bytes: bytes::Bytes::new() };
    let leads = || Message::Leads { partition: PartitionId(1), term: 3 };
    assert_eq!(over_replicated((0, 1), sessions(0, 1), sessions(0, 0), replica()), Ok(()));
    assert_eq!(over_replicated((0, 1), sessions(0, 1), sessions(0, 0), leads()), Ok(()));
    assert_eq!(over_replicated((1, 1), sessions(1, 1), sessions(0, 0), leads()), Ok(()));
    let abroad = over_replicated((1, 1), sessions(1, 1), sessions(0, 0), replica());
    assert_eq!(abroad, Err(NotTheirs::OnlyWithin));
    let without = over_replicated((2, 1), sessions(2, 1), sessions(0, 0), leads());
    assert_eq!(without, Err(NotTheirs::From(Place(sessions(2, 1)))), "a datacenter without replicas");
    let as_partition = over_replicated((1, 1), partition(1, 1), sessions(0, 0), leads());
    assert_eq!(as_partition, Err(NotTheirs::From(Place(partition(1, 1)))));
}
