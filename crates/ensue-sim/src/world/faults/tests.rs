//! Which faults excuse a datacenter.

use crate::rules::Rules;
use crate::world::World;
use crate::world::options::Options;
use crate::world::shape::{Shape, Site};
use ensue_types::DatacenterId;

/// Seed 40002301 of pocc: what was late by more than the time that was left was answered `UNAVAILABLE` in the place of
/// `BLOCKED`. Seed 80061128 of eiger: the votes and the answers of a write transaction went over a link that took a
/// third of the timeout.
#[test]
fn a_slow_link_excuses_where_a_request_takes_longer_than_its_client_waits() {
    let shape = Shape { replicas: 1, datacenters: 2, cores: 2, partitions: 2, one_process: false };
    let timeout_us = 100_000;
    let cases = [
        ("pocc", 10_000, true),
        ("pocc", 9_000, false),
        ("cure", 16_000, false),
        ("eiger", 17_000, true),
        ("eiger", 16_000, false),
    ];
    for (protocol, by_us, excused) in cases {
        let mut options = Options::calm(shape, 1_000, Rules::default());
        options.protocol = ensue_protocol::find(protocol).expect("it is registered");
        options.tuning.request_timeout_ms = timeout_us / 1_000;
        let mut world = World::new(options);
        while world.step(100_000).is_some() {}
        assert!(world.healthy_since(DatacenterId(0)).is_some(), "it has started");
        world.slow_link(Site(0), Site(1), by_us, 5_000);
        let is_excused = world.healthy_since(DatacenterId(0)).is_none();
        assert_eq!(is_excused, excused, "{protocol} by {by_us} us");
    }
}
