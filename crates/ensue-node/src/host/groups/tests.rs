//! What is told of a group, and of which core of a node a replica is.

use super::*;
use crate::config::DatacenterTopology;
use ensue_replica::MemberReport;
use ensue_types::DatacenterId;

fn topology() -> Topology {
    let there = DatacenterTopology {
        name: "dc1".into(),
        cores: 6,
        nodes: vec![2, 2, 2],
        placement: vec![CoreId(0); 4],
        replicas: vec![vec![CoreId(0), CoreId(2), CoreId(4)]; 4],
    };
    Topology { datacenter: DatacenterId(0), partitions: 4, datacenters: vec![there] }
}

#[test]
fn a_group_is_told_by_nodes_and_not_by_cores() {
    let member = |node, votes, has| MemberReport { node, votes, is_heard: true, has };
    let members = vec![member(0, true, 12), member(5, false, 7)];
    let report = Report { leader: 0, term: 3, committed: 12, changes: true, members };
    let text = told(&topology(), PartitionId(2), &report, |core| core != CoreId(2));
    let expected = "partition:2\r\nowner:0\r\nterm:3\r\ncommitted:12\r\nchanging:yes\r\nreached:0,2\r\n\
                    node0:core=0,vote=yes,heard=yes,has=12\r\nnode2:core=5,vote=no,heard=yes,has=7\r\n";
    assert_eq!(text, expected);
}

#[test]
fn a_partition_has_one_core_on_each_node() {
    let topology = topology();
    let core = |node, partition| topology.core_on(DatacenterId(0), node, PartitionId(partition));
    assert_eq!(core(1, 3), Some(CoreId(2)), "where the configuration puts it");
    let elsewhere = Topology {
        datacenters: vec![DatacenterTopology { replicas: Vec::new(), ..topology.datacenters[0].clone() }],
        ..topology.clone()
    };
    assert_eq!(
        elsewhere.core_on(DatacenterId(0), 1, PartitionId(3)),
        Some(CoreId(3)),
        "by its number elsewhere"
    );
    assert_eq!(core(3, 0), None, "there is no such node");
}

#[test]
fn what_a_node_owns_is_spread_over_the_others_when_it_goes() {
    let order =
        |first, partition| super::order_of_owners(first, 4, PartitionId(partition)).collect::<Vec<_>>();
    assert_eq!(order(2, 2), [2, 3, 0, 1]);
    // Node 0 is to own these, and goes.
    let next: Vec<usize> = [0, 4, 8, 12].map(|partition| order(0, partition)[1]).into();
    assert_eq!(next, [1, 2, 3, 1]);
    for partition in 0..40 {
        let mut nodes = order(usize::from(partition % 4), partition);
        nodes.sort_unstable();
        assert_eq!(nodes, [0, 1, 2, 3]);
    }
    assert_eq!(super::order_of_owners(0, 1, PartitionId(7)).collect::<Vec<_>>(), [0]);
}

#[test]
fn questions_without_an_answer_do_not_pile_up() {
    let mut asked = Asked::default();
    let first = asked.note(SessionId(1), 7);
    let numbers: Vec<u64> =
        (0..2 * WAITING_MAX as u64).map(|errand| asked.note(SessionId(2), errand)).collect();
    assert_eq!(asked.answered(first), None);
    let last = *numbers.last().expect("many");
    assert_eq!(asked.answered(last), Some((SessionId(2), 2 * WAITING_MAX as u64 - 1)));
    assert_eq!(asked.answered(last), None, "once");
    assert!(asked.waiting.len() < WAITING_MAX);
}
