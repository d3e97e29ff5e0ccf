//! How a partition writes its rows aside.

use super::versions::World;
use super::{World as OfANode, config};
use crate::AppendFsync;
use ensue_types::{Now, SessionId};
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

const ONE: SessionId = SessionId(1);

/// A node that begins no checkpoint by itself, and a client of it.
fn node() -> OfANode {
    let mut config = config(AppendFsync::EverySecond);
    config.tuning.checkpoint_bytes = u64::MAX;
    config.directives = vec![("enable-debug-command".into(), "yes".into())];
    let mut world = OfANode::with(config);
    world.calm_down();
    world.connect(ONE);
    world
}

fn pass_s(world: &mut OfANode, seconds: u64) {
    for _ in 0..seconds {
        world.now.monotonic_us += 1_000_000;
        world.now.wall_ms += 1_000;
        world.give(crate::Input::Timer);
        world.give(crate::Input::TurnEnd);
        world.calm_down();
    }
}

#[test]
fn a_checkpoint_is_written_when_an_operator_asks_for_it() {
    let mut world = node();
    assert_eq!(world.words(ONE, "SET k v"), "+OK|");
    pass_s(&mut world, 5);
    assert_eq!(world.words(ONE, "LASTSAVE"), ":1700000000|", "since the start");
    assert_eq!(world.words(ONE, "BGSAVE"), "+Background saving started|");
    assert_eq!(world.words(ONE, "BGSAVE"), "-ERR Background save already in progress|");
    assert_eq!(world.words(ONE, "SAVE"), "-ERR Background save already in progress|");
    assert_eq!(world.words(ONE, "BGSAVE SCHEDULE"), "+Background saving scheduled|");
    let pending = world.words(ONE, "INFO persistence");
    assert!(pending.contains("|rdb_bgsave_in_progress:1|rdb_last_save_time:1700000000|"), "{pending}");
    pass_s(&mut world, 2);
    let saved = world.words(ONE, "LASTSAVE");
    assert_ne!(saved, ":1700000000|");
    let info = world.words(ONE, "INFO persistence");
    let last = format!("|rdb_bgsave_in_progress:0|rdb_last_save_time{saved}");
    assert!(info.contains(&last), "{last} in {info}");
    pass_s(&mut world, 5);
    assert_eq!(world.words(ONE, "LASTSAVE"), saved, "one was asked for");
    assert_eq!(world.words(ONE, "SAVE"), "+OK|");
    assert_eq!(
        world.words(ONE, "BGREWRITEAOF"),
        "-ERR Background append only file rewriting already in progress|"
    );
    pass_s(&mut world, 2);
    assert_ne!(world.words(ONE, "LASTSAVE"), saved);
    let started = "+Background append only file rewriting started|";
    assert_eq!(world.words(ONE, "BGREWRITEAOF"), started);
}

#[test]
fn strings_are_made_for_a_test() {
    let mut world = node();
    assert_eq!(world.words(ONE, "SET key:1 mine"), "+OK|");
    assert_eq!(world.words(ONE, "DEBUG POPULATE 1100"), "+OK|");
    for (command, answer) in [
        ("DBSIZE", ":1100|"),
        ("GET key:0", "$7|value:0|"),
        ("GET key:1", "$4|mine|"),
        ("GET key:1099", "$10|value:1099|"),
        ("DEBUG POPULATE 2 p 3", "+OK|"),
        ("GET p:1", "$3|val|"),
        ("DEBUG POPULATE 1 q 9", "+OK|"),
        ("GET q:0", "$9|value:0\0\0|"),
        ("DEBUG POPULATE 0", "+OK|"),
        ("DEBUG POPULATE x", "-ERR value is out of range, must be positive|"),
        ("DEBUG POPULATE -1", "-ERR value is out of range, must be positive|"),
        ("DEBUG POPULATE 1 p x", "-ERR value is out of range, must be positive|"),
        ("DBSIZE", ":1103|"),
    ] {
        assert_eq!(world.words(ONE, command), answer, "{command}");
    }
}
