//! A clean stop.

use super::{PARTITION, World};
use crate::{AppendFsync, Input, Trace};
use ensue_store::disk::{DiskDone, DiskOp, FileName};
use ensue_types::SessionId;

fn marks(op: &DiskOp) -> bool {
    matches!(op, DiskOp::Replace { file: FileName::Superblock, .. })
}

/// A node that begins to stop, with an increment that is not synced yet.
fn stopping() -> World {
    let mut world = World::new(AppendFsync::EverySecond);
    world.calm_down();
    world.increment(SessionId(1));
    world.calm_down();
    world.give(Input::Shutdown);
    world
}

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
        is_marked |= marks(&op);
    }
    assert!(is_marked);
}

/// A mark that came first would be believed after a power failure that takes what was not synced.
#[test]
fn a_clean_stop_is_marked_when_everything_is_synced() {
    let mut world = stopping();
    let mut is_synced = false;
    while !world.asked.iter().any(marks) {
        let op = world.carry_out().expect("the stop comes to its end");
        is_synced |= matches!(op, DiskOp::Sync { file: FileName::Segment(_) });
    }
    assert!(is_synced);
}

/// There is no room for the witness: what it could not say, the superblock says. Without room for the log, or with a
/// disk that fails, the next start reads what is there.
#[test]
fn a_stop_that_the_disk_refuses_is_not_a_clean_one_but_for_the_witness() {
    let segment = FileName::Segment(0);
    for (file, full, is_clean, is_full, has_failed) in [
        (FileName::Witness, true, true, false, false),
        (segment, true, false, true, false),
        (segment, false, false, false, true),
        (FileName::Witness, false, false, false, true),
    ] {
        let mut world = stopping();
        let (op, file, reason) = ("overwrite", Some(file), "refused".to_owned());
        world.give(Input::Disk { partition: PARTITION, done: DiskDone::Failed { op, file, full, reason } });
        assert_eq!(world.stopped, !is_clean, "{file:?}, full: {full}");
        let mut is_marked = world.asked.iter().any(marks);
        while !world.stopped {
            is_marked |= marks(&world.carry_out().expect("the stop comes to its end"));
        }
        assert_eq!(is_marked, is_clean, "{file:?}, full: {full}");
        let traced = |is: fn(&Trace) -> bool| world.traces.iter().any(is);
        assert_eq!(traced(|trace| matches!(trace, Trace::DiskFull { .. })), is_full, "{file:?}");
        assert_eq!(traced(|trace| matches!(trace, Trace::PartitionStopped { .. })), has_failed, "{file:?}");
    }
}
