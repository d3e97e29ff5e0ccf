//! Which messages of replicated partitions a node hears.

use super::*;
use crate::config::{DatacenterTopology, Topology};
use ensue_types::{Breaking, LogicalTime};
use ensue_wire::Message;

const ELSEWHERE: DatacenterId = DatacenterId(1);
const FIRST: PartitionId = PartitionId(0);

/// A node of a datacenter without replicas, beside one whose partitions are on three cores.
fn node() -> (Node, Now) {
    let here = DatacenterTopology {
        name: "dc1".into(),
        cores: 1,
        nodes: vec![1],
        placement: vec![CoreId(0)],
        replicas: Vec::new(),
    };
    let there = DatacenterTopology {
        name: "dc2".into(),
        cores: 3,
        nodes: vec![1; 3],
        placement: vec![CoreId(0)],
        replicas: vec![vec![CoreId(0), CoreId(1), CoreId(2)]],
    };
    let topology = Topology { datacenter: DatacenterId(0), partitions: 1, datacenters: vec![here, there] };
    let config = NodeConfig::new(topology, CoreId(0), &ensue_protocol::REGISTRY, vec!["eiger".into()]);
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    (Node::new(config, now).expect("the protocol is known"), now)
}

fn is_heard(node: &Node, from: Address, core: u16) -> bool {
    let to = Address::Partition { datacenter: DatacenterId(0), partition: FIRST };
    let envelope = Envelope { from, to, time: LogicalTime(1), message: Message::AskTime };
    !node.is_of_a_former_owner(CoreName { datacenter: ELSEWHERE, core: CoreId(core) }, &envelope)
}

#[test]
fn what_a_former_owner_has_said_is_not_heard_when_another_one_is_known() {
    let (mut node, now) = node();
    let partition = Address::Partition { datacenter: ELSEWHERE, partition: FIRST };
    let owner =
        |core, term| Input::Owner { datacenter: ELSEWHERE, partition: FIRST, core: CoreId(core), term };
    assert!(is_heard(&node, partition, 2), "nobody is known to own it");
    node.on_input(now, owner(2, 3));
    assert!(is_heard(&node, partition, 2) && !is_heard(&node, partition, 0));
    node.on_input(now, owner(1, 4));
    assert!(is_heard(&node, partition, 1) && !is_heard(&node, partition, 2));
    let sessions = Address::Core { datacenter: ELSEWHERE, core: CoreId(2) };
    assert!(is_heard(&node, sessions, 2), "its sessions own nothing");
    let _broken = Breaking::only(Some(Rule::HearOnlyTheOwner));
    assert!(is_heard(&node, partition, 2), "the rule is broken");
}
