//! Tests of what is left for clients.

use super::*;
use crate::config::{Config, NodeLine};

/// Two datacenters of one node with two cores each: four partitions and two peers a core.
fn cluster() -> Cluster {
    let line = |name: &str, port| NodeLine {
        datacenter: name.into(),
        host: "127.0.0.1".into(),
        port,
        cores: Some(2),
    };
    let nodes = vec![line("dc1", 20_000), line("dc2", 30_000)];
    Config { datacenter: "dc1".into(), nodes, partitions: 4, ..Config::default() }.cluster().unwrap()
}

#[test]
fn clients_get_what_partitions_and_peers_leave() {
    let needed = 4 * 6 + 2 * (2 + 64 + 8) + 64;
    assert_eq!(room(needed + 100, &cluster()).unwrap(), 100);
    assert_eq!([10_000, 100, 99].map(|wanted| clients_max(100, wanted)), [100, 100, 99]);
    let error = room(needed, &cluster()).unwrap_err().to_string();
    assert!(error.contains(&format!("may have {needed} file descriptors, and needs {needed} ")), "{error}");
}

#[test]
fn the_limit_is_raised_and_shared() {
    let share = share_of(1);
    let limit = getrlimit(Resource::Nofile);
    assert_eq!(limit.current, limit.maximum);
    assert!(share_of(3) <= share / 3 + 1);
}
