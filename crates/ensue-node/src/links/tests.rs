//! What the cores of a datacenter say together of their links, and whether that is as it should be.

use super::*;
use crate::config::DatacenterTopology;
use ensue_types::CoreId;

fn report(datacenter: u8, up: u32, refused: u32, since_s: u64, reason: &str) -> LinkReport {
    LinkReport { datacenter: DatacenterId(datacenter), links: 2, up, refused, since_s, reason: reason.into() }
}

fn together(reports: &[LinkReport]) -> BTreeMap<DatacenterId, Linked> {
    let texts: Vec<String> = reports.iter().map(line).collect();
    gather(texts.iter().map(String::as_str))
}

/// State, since when, why.
#[track_caller]
fn check(reports: &[LinkReport], state: &str, since_s: u64, reason: &str) {
    let linked = together(reports).remove(&DatacenterId(1)).unwrap();
    assert_eq!((linked.state(), linked.since_s, linked.reason.as_str()), (state, since_s, reason));
}

#[test]
fn cores_speak_together() {
    check(&[report(1, 2, 0, 10, ""), report(1, 2, 0, 20, "")], "up", 20, "");
    check(&[report(1, 2, 0, 10, ""), report(1, 0, 0, 20, "a\nb")], "partial", 20, "a b");
    check(
        &[report(1, 0, 0, 30, "first"), report(1, 2, 0, 90, ""), report(1, 0, 0, 20, "second")],
        "partial",
        20,
        "first",
    );
    check(&[report(1, 0, 0, 30, "gone"), report(1, 0, 1, 20, "not alike")], "refused", 20, "not alike");
    check(&[report(1, 0, 0, 30, "gone")], "down", 30, "gone");
    assert!(gather(["nonsense\n1\t2\n"]).is_empty());
}

#[test]
fn who_replicates_to_nobody_is_not_ready() {
    let datacenter = |name: &str| DatacenterTopology {
        replicas: Vec::new(),
        name: name.into(),
        cores: 1,
        nodes: vec![1],
        placement: vec![CoreId(0); 4],
    };
    let datacenters = ["lisbon", "oslo"].map(datacenter).into();
    let topology = Topology { datacenter: DatacenterId(0), partitions: 4, datacenters };
    let ready = |linked: &[LinkReport], metrics: &[(&str, i64)]| {
        let metric =
            |name: &str| metrics.iter().find(|(known, _)| *known == name).map_or(0, |(_, value)| *value);
        shortcomings(&topology, &together(linked), usize::from(topology.partitions), metric).join("; ")
    };
    let up = [report(1, 2, 0, 10, "")];
    assert_eq!(ready(&up, &[("linked_oslo", 4)]), "");
    assert_eq!(ready(&up, &[("linked_oslo", 3)]), "not every partition replicates to oslo yet");
    let refused = [report(1, 0, 1, 10, "partitions: 4 here, 8 there")];
    assert_eq!(ready(&refused, &[]), "the link to oslo is refused: partitions: 4 here, 8 there");
    assert_eq!(ready(&refused, &[("dead_oslo_partitions", 4)]), "", "nobody waits for the dead");
    assert_eq!(ready(&refused, &[("retired_oslo_partitions", 4)]), "", "nor for one that was removed");
    let quarantined = [("linked_oslo", 4), ("refused_oslo_partitions", 2)];
    assert!(ready(&up, &quarantined).starts_with("2 partitions refuse oslo"));
    assert_eq!(ready(&up, &[("linked_oslo", 4), ("stopped", 1)]), "1 partitions do not serve");
    for unserved in ["declared_dead", "rejoin", "joining", "catching_up", "loading"] {
        assert_ne!(ready(&up, &[("linked_oslo", 4), (unserved, 1)]), "", "{unserved}");
    }
}
