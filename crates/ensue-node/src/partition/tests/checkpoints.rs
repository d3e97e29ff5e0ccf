//! How a partition writes its rows aside.

use super::versions::World;
use ensue_types::Now;
use std::collections::BTreeMap;

/// How many turns pass until a partition with these rows is no longer walked for a checkpoint.
fn turns_of_a_checkpoint(rows: usize, value: &str) -> usize {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let mut world = World::new(BTreeMap::new(), now, 1);
    (0..rows).for_each(|number| world.run(&format!("SET key:{number} {value}")));
    world.now.monotonic_us += 1_000_000;
    world.partition.on_timer(world.now);
    // Nothing that the disk is asked for is carried out: only turns pass.
    let mut turns = 0;
    while turns == 0 || world.partition.cx.is_checkpointing() {
        world.partition.on_turn_end();
        turns += 1;
        assert!(turns < 100, "it comes to its end");
    }
    turns
}

/// Between two of them commands are served.
#[test]
fn a_checkpoint_of_many_rows_takes_several_turns() {
    assert!(turns_of_a_checkpoint(4_000, "x") >= 4);
}

#[test]
fn a_checkpoint_of_large_rows_takes_several_turns() {
    assert!(turns_of_a_checkpoint(100, &"x".repeat(50_000)) >= 4, "of 5 MB");
}
