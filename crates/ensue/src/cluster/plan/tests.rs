//! Plans of datacenters in which replicas stand anyhow.

use super::super::group::Member;
use super::*;

/// A datacenter whose partitions have their replicas on these nodes, the owner first.
fn datacenter(nodes: u16, places: &[&[u16]]) -> Datacenter {
    let group = |(partition, nodes): (usize, &&[u16])| Group {
        partition: partition as u16,
        owner: nodes[0],
        reached: (0..64).collect(),
        members: nodes
            .iter()
            .map(|node| Member { node: *node, votes: true, is_heard: true, has: 1 })
            .collect(),
        ..Group::default()
    };
    Datacenter { name: "dc1".into(), nodes, groups: places.iter().enumerate().map(group).collect() }
}

/// What the nodes have when a plan is carried out.
fn after(datacenter: &Datacenter, plan: &Plan) -> Datacenter {
    let mut after = datacenter.clone();
    for step in &plan.moves {
        let group = &mut after.groups[usize::from(step.partition)];
        assert!(group.votes(step.from) && !group.votes(step.to), "{step:?} of {group:?}");
        group
            .members
            .iter_mut()
            .filter(|member| member.node == step.from)
            .for_each(|member| member.node = step.to);
    }
    after
}

#[test]
fn a_drained_node_has_nothing_and_the_others_share_it() {
    let before = datacenter(5, &[&[0, 1, 2], &[1, 2, 0], &[2, 0, 1], &[0, 2, 1]]);
    let plan = Plan::drain(&before, 0).expect("there are two other nodes");
    let then = after(&before, &plan);
    let counts: Vec<usize> = (0..5).map(|node| then.replicas_on(node)).collect();
    assert_eq!(counts, [0, 4, 4, 2, 2]);
}

#[test]
fn a_node_is_not_drained_where_no_other_can_take_its_replicas() {
    let full = datacenter(3, &[&[0, 1, 2]]);
    let refused = Plan::drain(&full, 1).expect_err("every node has one");
    assert!(refused.to_string().contains("start another node first"), "{refused}");
}

#[test]
fn a_node_that_cannot_be_reached_gets_nothing() {
    let mut before = datacenter(5, &[&[0, 1, 2], &[1, 2, 0]]);
    before.groups[1].reached.retain(|node| *node != 4);
    let plan = Plan::drain(&before, 0).expect("node 3 is left");
    assert!(plan.moves.iter().all(|step| step.to == 3), "{plan:?}");
    assert!(
        plan.text(Paint::off())
            .starts_with("node 4 cannot be reached by the owner of every partition, and gets nothing\n")
    );
    let plan = Plan::balance(&before).expect("it has nothing to lose");
    assert!(!plan.moves.is_empty() && plan.moves.iter().all(|step| step.to == 3), "{plan:?}");
    assert!(plan.text(Paint::off()).starts_with("node 4 cannot be reached"), "{plan:?}");
}

#[test]
fn nothing_is_balanced_while_a_node_with_replicas_cannot_be_reached() {
    let mut before = datacenter(5, &[&[0, 1, 2], &[1, 2, 0]]);
    before.groups[1].reached.retain(|node| *node != 2);
    let refused = Plan::balance(&before).expect_err("nobody knows what it has when it is back");
    assert!(refused.to_string().starts_with("node 2 has 2 replicas and cannot be reached"), "{refused}");
    // It is the one that is drained, so that it gets nothing needs no word.
    let drained = Plan::drain(&before, 2).expect("there are two others");
    assert!(!drained.text(Paint::off()).contains("cannot be reached"), "{drained:?}");
}

#[test]
fn one_move_is_refused_where_it_makes_no_sense_and_is_nothing_where_it_is_done() {
    let before = datacenter(4, &[&[0, 1, 2]]);
    assert_eq!(
        Plan::of_one(&before, 0, 0, 3).expect("a move").moves,
        [Move { partition: 0, from: 0, to: 3 }]
    );
    assert_eq!(Plan::of_one(&before, 0, 3, 0).expect("it has moved").moves, []);
    for (partition, from, to) in [(0, 0, 1), (0, 3, 3), (0, 0, 4), (0, 4, 0), (1, 0, 3)] {
        assert!(Plan::of_one(&before, partition, from, to).is_err(), "{partition} {from} {to}");
    }
}

/// Numbers that look drawn by chance, the same ones each time.
fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[test]
fn a_balanced_datacenter_has_no_node_with_two_more_than_another() {
    for seed in 0..500 {
        let nodes = 3 + (mix(seed) % 6) as u16;
        let partitions = 1 + mix(seed + 1_000) % 40;
        let drawn = (0..partitions).map(|partition| {
            let mut left: Vec<u16> = (0..nodes).collect();
            let draws = (0..3).map(|draw| mix(seed << 20 | partition << 4 | draw));
            draws.map(|draw| left.remove((draw % left.len() as u64) as usize)).collect::<Vec<_>>()
        });
        let drawn: Vec<Vec<u16>> = drawn.collect();
        let places: Vec<&[u16]> = drawn.iter().map(Vec::as_slice).collect();
        let before = datacenter(nodes, &places);
        let balance = |datacenter: &Datacenter| Plan::balance(datacenter).expect("all are reached");
        let then = after(&before, &balance(&before));
        let counts: Vec<usize> = (0..nodes).map(|node| then.replicas_on(node)).collect();
        let (least, most) = (counts.iter().min().expect("nodes"), counts.iter().max().expect("nodes"));
        assert!(most - least <= 1, "seed {seed}: {counts:?}");
        assert!(balance(&then).moves.is_empty(), "seed {seed}");
    }
}
