//! A clean stop.

use super::World;
use crate::{AppendFsync, Input};
use ensue_store::disk::{DiskOp, FileName};
use ensue_types::SessionId;

/// The next start would look for what is missing.
#[test]
fn a_clean_stop_is_over_when_the_superblock_says_so() {
    let mut world = World::new(AppendFsync::Always);
    world.calm_down();
    world.increment(SessionId(1));
    world.calm_down();
    world.give(Input::Shutdown);
    let mut is_marked = false;
    while !world.stopped {
        let op = world.carry_out().expect("the stop comes to its end");
        is_marked |= matches!(op, DiskOp::Replace { file: FileName::Superblock, .. });
    }
    assert!(is_marked);
}
