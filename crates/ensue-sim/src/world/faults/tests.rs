//! Which faults excuse a datacenter.

use crate::rules::Rules;
use crate::world::World;
use crate::world::disk::Harm;
use crate::world::options::Options;
use crate::world::shape::{Shape, Site};
use ensue_types::{DatacenterId, PartitionId};

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

/// Seed 306 of `eiger` with `--retiring`: a partition had listed its files while one was missing, and stopped for that
/// after the file had been put back.
#[test]
fn files_that_are_put_back_are_read_by_a_new_process() {
    let shape = Shape { replicas: 1, datacenters: 2, cores: 1, partitions: 1, one_process: false };
    let home = (DatacenterId(0), PartitionId(0));
    let mut in_time = 0;
    for after_us in 0..40 {
        let mut world = World::new(Options::calm(shape, 1_000, Rules::default()));
        while world.step(5_000_000).is_some() {}
        let process = world.process_of(home.0, home.1);
        world.kill(process);
        assert!(world.disk(home.0, home.1).harm(Harm::DeleteNewest), "something of it is known to be synced");
        world.start(process);
        let heal_at = world.now() + after_us;
        while world.step(heal_at).is_some() {}
        let is_noticed = world.has_stopped(home.0, home.1);
        in_time += u32::from(!is_noticed);
        world.heal_everything();
        while world.step(20_000_000).is_some() {}
        assert!(
            !world.has_stopped(home.0, home.1),
            "healed after {after_us} us, noticed before: {is_noticed}"
        );
        assert!(world.healthy_since(home.0).is_some(), "healed after {after_us} us");
    }
    assert!(in_time > 0, "some files are put back before the partition has noticed");
}
