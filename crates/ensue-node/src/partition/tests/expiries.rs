//! Rows whose deadline has passed: which datacenter deletes them, when, and that they are counted.

use super::{World, config, receive_columns};
use crate::{AppendFsync, Input, NodeConfig, Trace};
use ensue_types::{Column, CoreId, DatacenterId, Position, SessionId};

/// A partition that waits for no other datacenter: the only one is dead.
pub(super) fn alone(before: impl Fn(&mut World)) -> World {
    alone_with(config(AppendFsync::Always), before)
}

fn alone_with(mut config: NodeConfig, before: impl Fn(&mut World)) -> World {
    config.tuning.checkpoint_bytes = u64::MAX;
    let mut world = World::with(config);
    world.calm_down();
    before(&mut world);
    world.run(SessionId(1), "CAUSAL DEAD dc2");
    world.calm_down();
    let shown = String::from_utf8(std::mem::take(&mut world.replies)).expect("text");
    let digest = shown.lines().nth(2).expect("the first bulk string of the array");
    world.run(SessionId(1), &format!("CAUSAL DEAD dc2 CONFIRM {digest} FORCE"));
    world.calm_down();
    assert_eq!(world.replies, b"+OK\r\n");
    world
}

/// Time passes, timer by timer.
pub(super) fn pass_ms(world: &mut World, ms: u64) {
    const STEP_MS: u64 = 100;
    for _ in 0..ms / STEP_MS {
        world.now.monotonic_us += 1_000 * STEP_MS;
        world.now.wall_ms += STEP_MS;
        world.give(Input::Timer);
        world.give(Input::TurnEnd);
        world.calm_down();
    }
}

/// What `INFO` says of the rows that were deleted.
fn expired(world: &mut World) -> String {
    world.replies.clear();
    world.run(SessionId(2), "INFO stats");
    world.calm_down();
    let text = String::from_utf8_lossy(&world.replies).into_owned();
    text.lines().find(|line| line.starts_with("expired_keys:")).expect("a line of the section").to_owned()
}

#[test]
fn a_row_whose_deadline_has_passed_is_deleted_and_counted() {
    let mut world = alone(|_| ());
    world.run(SessionId(3), "SET x 1 PX 5000");
    world.calm_down();
    pass_ms(&mut world, 4_000);
    assert_eq!(expired(&mut world), "expired_keys:0");
    pass_ms(&mut world, 4_000);
    assert_eq!(expired(&mut world), "expired_keys:1");
    pass_ms(&mut world, 4_000);
    assert_eq!(expired(&mut world), "expired_keys:1", "once");
}

#[test]
fn a_field_whose_deadline_has_passed_is_deleted_and_counted() {
    let mut world = alone(|_| ());
    let told = |world: &mut World| {
        world.replies.clear();
        world.run(SessionId(2), "INFO stats");
        world.calm_down();
        let text = String::from_utf8_lossy(&world.replies).into_owned();
        let line = text.lines().find(|line| line.starts_with("expired_subkeys:"));
        line.expect("a line of the section").to_owned()
    };
    world.run(SessionId(3), "HSETEX h PX 5000 FIELDS 2 f 1 g 2");
    world.run(SessionId(3), "HPEXPIRE h 9000 FIELDS 1 f");
    world.run(SessionId(3), "HSET h g 3");
    world.calm_down();
    pass_ms(&mut world, 8_000);
    assert_eq!(told(&mut world), "expired_subkeys:0", "one deadline was extended, and one removed");
    pass_ms(&mut world, 4_000);
    assert_eq!(told(&mut world), "expired_subkeys:1");
    pass_ms(&mut world, 8_000);
    assert_eq!(told(&mut world), "expired_subkeys:1", "once");
    let removed = world.traces.iter().filter_map(|trace| match trace {
        Trace::TombstonesCollected { count, .. } => Some(*count),
        _ => None,
    });
    // The field and both deadlines: nothing but the other field is left.
    assert_eq!(removed.sum::<u64>(), 3);
    world.replies.clear();
    world.run(SessionId(3), "HGETALL h");
    world.calm_down();
    assert_eq!(world.replies, b"*2\r\n$1\r\ng\r\n$1\r\n3\r\n");
}

#[test]
fn a_round_tells_of_tombstones_only_when_it_removed_some() {
    let mut world = alone(|_| ());
    world.run(SessionId(3), "SET x 1 PX 5000");
    world.calm_down();
    pass_ms(&mut world, 16_000);
    let removed = world.traces.iter().filter_map(|trace| match trace {
        Trace::TombstonesCollected { count, .. } => Some(*count),
        _ => None,
    });
    // The text and the deadline: in the round after the one in which the deadline had passed.
    assert_eq!(removed.collect::<Vec<u64>>(), [2]);
}

/// The datacenter that wrote it will never delete it.
#[test]
fn a_deadline_of_another_datacenter_is_left_to_it_for_a_while() {
    let mut world = alone(|world| {
        world.give(Input::LinkUp { datacenter: DatacenterId(1), core: CoreId(0) });
        let deadline_ms = world.now.wall_ms + 5_000;
        let columns = [(Column::Text, &b"1"[..]), (Column::Deadline, &deadline_ms.to_le_bytes())];
        receive_columns(world, Position(1), &columns);
        world.calm_down();
    });
    // The deadline, and thirty intervals of a second.
    pass_ms(&mut world, 34_000);
    assert_eq!(expired(&mut world), "expired_keys:0");
    pass_ms(&mut world, 4_000);
    assert_eq!(expired(&mut world), "expired_keys:1");
}

/// Its home alone decides when a row with a home has ended.
#[test]
fn a_deadline_of_a_key_with_a_home_elsewhere_is_left_to_its_home() {
    let mut config = config(AppendFsync::Always);
    let (keyspace, datacenter) = (ensue_types::KeyspaceId(0), DatacenterId(1));
    config.homes = vec![crate::Home { keyspace, pattern: "x".into(), datacenter }];
    let mut world = alone_with(config, |world| {
        world.give(Input::LinkUp { datacenter: DatacenterId(1), core: CoreId(0) });
        let deadline_ms = world.now.wall_ms + 5_000;
        let columns = [(Column::Text, &b"1"[..]), (Column::Deadline, &deadline_ms.to_le_bytes())];
        receive_columns(world, Position(1), &columns);
        world.calm_down();
    });
    pass_ms(&mut world, 60_000);
    assert_eq!(expired(&mut world), "expired_keys:0");
    world.replies.clear();
    world.run(SessionId(4), "EXISTS x");
    world.calm_down();
    assert_eq!(world.replies, b":0\r\n", "it is gone for readers");
}

#[test]
fn as_tests_ask_for_it_a_row_is_deleted_only_after_a_command_has_missed_it() {
    let directives = vec![("enable-debug-command".into(), "yes".into())];
    let mut world = alone_with(NodeConfig { directives, ..config(AppendFsync::Always) }, |_| ());
    world.run(SessionId(3), "DEBUG SET-ACTIVE-EXPIRE 0");
    world.calm_down();
    world.run(SessionId(3), "SET x 1 PX 5000");
    world.calm_down();
    pass_ms(&mut world, 10_000);
    assert_eq!(expired(&mut world), "expired_keys:0");
    world.run(SessionId(3), "GET x");
    world.calm_down();
    pass_ms(&mut world, 4_000);
    assert_eq!(expired(&mut world), "expired_keys:1");
}

/// Deadlines are kept in lists, each of a quarter of a second: one is due from its beginning on.
#[test]
fn a_row_is_deleted_at_the_first_look_after_its_deadline() {
    let mut world = alone(|_| ());
    assert_eq!((world.now.wall_ms + 5_120) % 256, 0, "a list begins with it");
    world.run(SessionId(3), "SET x 1 PX 5120");
    world.calm_down();
    world.now.monotonic_us += 5_200_000;
    world.now.wall_ms += 5_200;
    world.give(Input::Timer);
    world.give(Input::TurnEnd);
    world.calm_down();
    assert_eq!(expired(&mut world), "expired_keys:1");
}
