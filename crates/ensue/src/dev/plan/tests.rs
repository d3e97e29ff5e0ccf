//! Tests of the ports.

use super::*;
use clap::Parser;
use std::collections::BTreeSet;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: DevArgs,
}

fn plan(flags: &str) -> anyhow::Result<Plan> {
    Plan::new(&Line::try_parse_from(format!("dev {flags}").split_whitespace())?.args)
}

#[test]
fn the_default_is_three_datacenters_from_port_7001_on() {
    let plan = plan("").unwrap();
    let expected = [("dc1/0", 7001), ("dc2/0", 7002), ("dc3/0", 7003)];
    assert_eq!(plan.addresses(), expected.map(|(name, port)| (name.to_string(), port)));
    let lines: Vec<String> = plan.node_lines().iter().map(ToString::to_string).collect();
    assert_eq!(lines[1], "dc2 127.0.0.1:17002 cores 1");
}

#[test]
fn no_port_is_used_twice() {
    let plan = plan("--datacenters 4 --nodes 3 --cores 2").unwrap();
    let mut ports = BTreeSet::from([18_000]);
    for (_, port) in plan.addresses() {
        assert!(ports.insert(port));
    }
    for line in plan.node_lines() {
        for core in 0..2 {
            assert!(ports.insert(line.port + core));
        }
    }
    for (datacenter, node) in (0..4).flat_map(|datacenter| (0..3).map(move |node| (datacenter, node))) {
        assert!(ports.insert(plan.metrics_port(datacenter, node)));
        let config = &plan.configs(usize::from(datacenter))[usize::from(node)];
        assert_eq!(config.metrics_port, plan.metrics_port(datacenter, node));
    }
    assert_eq!(ports.len(), 1 + 12 + 24 + 12);
    for datacenter in 0..4 {
        for config in plan.configs(datacenter) {
            assert_eq!(config.cluster().unwrap().own, DatacenterId(datacenter as u8));
        }
    }
}

#[test]
fn metrics_are_served_70_ports_higher_and_can_be_left_out() {
    assert_eq!(plan("").unwrap().metrics_port(1, 0), 7072);
    assert_eq!(plan("--set metrics-port=0").unwrap().configs(1)[0].metrics_port, 0);
}

#[test]
fn a_keyspace_may_have_a_protocol_of_its_own() {
    let plan = plan("--protocol cure --keyspace 1=pocc --keyspace 15=orbe-dm").unwrap();
    let protocols = &plan.configs(2)[0].protocols;
    assert_eq!((protocols[0].as_str(), protocols[1].as_str()), ("cure", "pocc"));
    assert_eq!((protocols[14].as_str(), protocols[15].as_str()), ("cure", "orbe-dm"));
}

#[test]
fn partitions_may_be_on_several_nodes() {
    let plan = plan("--nodes 3 --replicas 3").unwrap();
    let configs = plan.configs(2);
    for config in &configs {
        assert_eq!(config.cluster().unwrap().own_datacenter().replicas, 3);
    }
    assert!(configs[0].dir != configs[1].dir && configs[1].dir != configs[2].dir, "each has its own files");
}

#[test]
fn what_cannot_be_is_refused() {
    for flags in [
        "--datacenters 0",
        "--datacenters 17",
        "--partitions 0",
        "--nodes 0",
        "--nodes 2 --replicas 3",
        "--nodes 3 --replicas 2",
        "--delay soon",
        "--protocol x",
        "--keyspace 1=x",
        "--keyspace 16=pocc",
        "--keyspace pocc",
        "--port 60000",
    ] {
        assert!(plan(flags).is_err(), "{flags}");
    }
}
