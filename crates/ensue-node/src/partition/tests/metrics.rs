//! What a node says of its partitions, and that it stops when they are closed.

use super::*;

#[test]
fn a_partition_that_serves_is_counted_as_one() {
    let mut world = World::new(AppendFsync::EverySecond);
    world.calm_down();
    world.run(SessionId(1), "INFO");
    world.calm_down();
    let told = String::from_utf8(world.replies).expect("INFO is text");
    for line in ["ensue_stopped:0", "ensue_catching_up:0", "ensue_disk_full:0"] {
        assert!(told.contains(line), "{line} in\n{told}");
    }
}

#[test]
fn a_node_has_stopped_when_its_log_is_closed_and_not_before() {
    let mut world = World::new(AppendFsync::EverySecond);
    world.calm_down();
    world.increment(SessionId(1));
    assert!(!world.stopped);
    world.give(Input::Shutdown);
    world.give(Input::TurnEnd);
    let mut carried_out = 0;
    while !world.stopped {
        world.carry_out().expect("it asks its disk until it has stopped");
        carried_out += 1;
    }
    assert!(carried_out > 1, "the write is synced, and the clean end is marked");
    assert!(world.asked.is_empty());
}
