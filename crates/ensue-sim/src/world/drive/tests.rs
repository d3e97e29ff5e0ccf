//! What a partition says is judged by what its disk was when it said it.

use crate::rules::Rules;
use crate::world::network::Break;
use crate::world::options::Options;
use crate::world::shape::{Shape, Site};
use crate::world::{Happening, World};
use bytes::Bytes;
use ensue_node::Trace;
use ensue_store::disk::{DiskOp, FileName};
use ensue_types::{DatacenterId, PartitionId};

#[test]
fn a_process_that_dies_at_once_had_a_reason_to_stop_all_the_same() {
    let shape = Shape { replicas: 1, datacenters: 1, cores: 1, partitions: 1, one_process: true };
    let (site, partition, file) = (Site(0), PartitionId(0), FileName::Segment(0));
    for fails in [true, false] {
        let mut world = World::new(Options::calm(shape, 1_000, Rules::default()));
        let disk = world.disk(DatacenterId(0), partition);
        disk.run(DiskOp::Append { file, bytes: Bytes::from_static(b"text") });
        disk.run(DiskOp::Sync { file });
        if fails {
            disk.fail_next_sync();
        }
        disk.sync_done(file);
        world.trace(site, Trace::PartitionStopped { partition, reason: String::new() });
        world.lose_power(shape.process(site));
        let happening = world.step(0);
        assert!(
            matches!(happening, Some(Happening::Trace { is_excused, .. }) if is_excused == fails),
            "{happening:?}"
        );
    }
}

#[test]
fn without_room_a_partition_may_stop_before_it_is_ready_and_not_after() {
    let shape = Shape { replicas: 1, datacenters: 1, cores: 1, partitions: 1, one_process: true };
    let (site, partition) = (Site(0), PartitionId(0));
    for ready in [true, false] {
        let mut world = World::new(Options::calm(shape, 1_000, Rules::default()));
        world.disk(DatacenterId(0), partition).fill(0, false);
        if ready {
            world.trace(site, Trace::PartitionReady { partition, records: 0 });
            world.step(0);
        }
        world.trace(site, Trace::PartitionStopped { partition, reason: String::new() });
        let happening = world.step(0);
        assert!(
            matches!(happening, Some(Happening::Trace { is_excused, .. }) if is_excused != ready),
            "{happening:?}"
        );
    }
}

#[test]
fn after_everything_was_healed_nothing_strikes_again() {
    let shape = Shape { replicas: 1, datacenters: 2, cores: 1, partitions: 1, one_process: true };
    let (a, b) = (Site(0), Site(1));
    for healed in [true, false] {
        let mut world = World::new(Options::calm(shape, 1_000, Rules::default()));
        world.flap_at(500_000, a, b, Break::Prompt);
        world.restart_at(500_000, shape.process(b));
        if healed {
            world.heal_everything();
        }
        while world.step(499_999).is_some() {}
        let boot = world.boot_of(b);
        assert!(world.network.is_up(a, b));
        while world.step(500_000).is_some() {}
        assert_eq!((world.network.is_up(a, b), world.boot_of(b) == boot), (healed, healed));
    }
}
