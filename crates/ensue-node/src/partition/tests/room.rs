//! A disk that has no room for a checkpoint, or for what must be done before the log goes on.

use super::{PARTITION, World, versions};
use crate::{AppendFsync, Input};
use ensue_store::disk::{DiskDone, DiskOp, FileName};
use ensue_store::superblock::Superblock;
use ensue_types::{Incarnation, Now, SessionId, limits};
use std::collections::BTreeMap;

const FIRST: FileName = FileName::Checkpoint(1);

impl World {
    fn pass_us(&mut self, us: u64) {
        self.now.monotonic_us += us;
        self.give(Input::Timer);
        self.give(Input::TurnEnd);
    }

    fn asks(&self, op: impl Fn(&DiskOp) -> bool) -> bool {
        self.asked.iter().any(op)
    }

    /// There is no room for the oldest append to such a file; what was asked for before it is carried out.
    fn refuse_append(&mut self, to: impl Fn(FileName) -> bool) {
        loop {
            match self.asked.front() {
                Some(DiskOp::Append { file, .. }) if to(*file) => break,
                _ => self.carry_out().expect("the append is asked for"),
            };
        }
        let Some(DiskOp::Append { file, .. }) = self.asked.pop_front() else { panic!("an append") };
        let (file, reason) = (Some(file), "no room".to_owned());
        let done = DiskDone::Failed { op: "append", file, full: true, reason };
        self.give(Input::Disk { partition: PARTITION, done });
        self.give(Input::TurnEnd);
    }
}

fn appends(file: FileName) -> impl Fn(&DiskOp) -> bool {
    move |op| matches!(op, DiskOp::Append { file: to, .. } if *to == file)
}

fn deletes_first(op: &DiskOp) -> bool {
    matches!(op, DiskOp::Delete { file } if *file == FIRST)
}

fn is_segment(file: FileName) -> bool {
    matches!(file, FileName::Segment(_))
}

#[test]
fn a_checkpoint_that_found_no_room_is_tried_again_after_a_while() {
    let mut world = World::new(AppendFsync::Always);
    world.calm_down();
    world.increment(SessionId(1));
    world.calm_down();
    world.pass_us(1_000_000);
    world.refuse_append(|file| file == FIRST);
    assert!(world.asks(deletes_first), "what was written of it goes");
    world.calm_down();
    world.pass_us(limits::FULL_DISK_RETRY_US / 2);
    assert!(!world.asks(appends(FIRST)), "{:?}", world.asked);
    world.pass_us(limits::FULL_DISK_RETRY_US / 2);
    assert!(world.asks(appends(FIRST)));
    world.calm_down();
}

#[test]
fn a_log_without_room_takes_that_of_a_checkpoint_under_way() {
    let mut world = World::new(AppendFsync::Always);
    world.calm_down();
    world.increment(SessionId(1));
    world.pass_us(1_000_000);
    assert!(world.asks(appends(FIRST)));
    // A checkpoint begins by deleting what an earlier attempt may have left.
    world.asked.retain(|op| !deletes_first(op));
    world.refuse_append(is_segment);
    assert!(world.asks(deletes_first), "{:?}", world.asked);
}

#[test]
fn a_checkpoint_that_is_being_named_is_kept_when_the_log_has_no_room() {
    let mut world = World::new(AppendFsync::Always);
    world.calm_down();
    world.increment(SessionId(1));
    world.calm_down();
    world.pass_us(1_000_000);
    let named = |op: &DiskOp| matches!(op, DiskOp::Replace { file: FileName::Superblock, .. });
    while !world.asks(named) {
        world.carry_out().expect("the checkpoint comes to its end");
    }
    world.increment(SessionId(2));
    world.asked.retain(|op| !named(op));
    world.refuse_append(is_segment);
    assert!(!world.asks(deletes_first), "{:?}", world.asked);
}

fn replaces_superblock(op: &DiskOp) -> bool {
    matches!(op, DiskOp::Replace { file: FileName::Superblock, .. })
}

/// A partition that has begun its first checkpoint.
fn checkpointing() -> versions::World {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let mut world = versions::World::new(BTreeMap::new(), now, 1);
    world.run("SET x 1");
    pass_us(&mut world, 1_000_000);
    world
}

fn pass_us(world: &mut versions::World, us: u64) {
    world.now.monotonic_us += us;
    world.partition.on_timer(world.now);
    world.partition.on_turn_end();
}

/// A sibling has lost its tail: the next incarnation begins, which the superblock has to say.
fn begin_incarnation(world: &mut versions::World) {
    let partition = &mut world.partition;
    partition.cx.incarnation = Incarnation(2);
    partition.durability.begin_incarnation(&mut partition.cx);
}

/// A partition whose first checkpoint is on disk, and about to be named.
fn naming() -> versions::World {
    let mut world = checkpointing();
    while !world.partition.cx.disk_ops.iter().any(replaces_superblock) {
        world.next_op().expect("the checkpoint comes to its end");
    }
    world
}

/// The next replacement of the superblock is refused for want of room.
fn refuse_superblock(world: &mut versions::World) {
    while !world.partition.cx.disk_ops.front().is_some_and(replaces_superblock) {
        world.next_op().expect("it is replaced");
    }
    world.partition.cx.disk_ops.pop_front();
    let (file, reason) = (Some(FileName::Superblock), "no room".to_owned());
    world.partition.on_disk(world.now, DiskDone::Failed { op: "replace", file, full: true, reason });
    world.partition.on_turn_end();
}

fn named(world: &versions::World) -> (u64, u16) {
    let superblock = Superblock::decode(&world.files[&FileName::Superblock]).expect("it is whole");
    (superblock.checkpoint, superblock.incarnation.0)
}

/// A sibling has lost its tail, so the superblock is replaced while it is replaced to name a checkpoint. An answer does
/// not say which of two replacements it is about.
#[test]
fn a_checkpoint_that_is_named_stays_when_the_next_superblock_finds_no_room() {
    let mut world = naming();
    begin_incarnation(&mut world);
    let replacements = |world: &versions::World| {
        world.partition.cx.disk_ops.iter().filter(|op| replaces_superblock(op)).count()
    };
    assert_eq!(replacements(&world), 1, "one is under way");
    while named(&world).0 == 0 {
        world.next_op().expect("the checkpoint is named");
    }
    refuse_superblock(&mut world);
    assert!(!world.partition.cx.disk_ops.iter().any(deletes_first), "{:?}", world.partition.cx.disk_ops);
    world.work();
    assert_eq!(named(&world), (1, 1));
    pass_us(&mut world, limits::FULL_DISK_RETRY_US);
    world.work();
    assert_eq!(named(&world), (1, 2), "it is tried again");
}

#[test]
fn a_checkpoint_waits_for_its_name_while_the_superblock_is_replaced_for_another_reason() {
    let mut world = checkpointing();
    begin_incarnation(&mut world);
    refuse_superblock(&mut world);
    world.work();
    assert_eq!(named(&world), (0, 1), "neither has room");
    pass_us(&mut world, limits::FULL_DISK_RETRY_US);
    world.work();
    pass_us(&mut world, limits::FULL_DISK_RETRY_US);
    world.work();
    let (checkpoint, incarnation) = named(&world);
    assert!(checkpoint > 0 && incarnation == 2, "the checkpoint is named behind the incarnation");
}

/// The log has found room all the while, so its reserve was never given up.
#[test]
fn writes_are_taken_again_when_what_found_no_room_was_not_of_the_log() {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let mut world = versions::World::new(BTreeMap::new(), now, u64::MAX);
    let partition = &mut world.partition;
    partition.durability.begin_incarnation(&mut partition.cx);
    partition.cx.disk_ops.clear();
    let (file, reason) = (Some(FileName::Superblock), "no room".to_owned());
    partition.on_disk(now, DiskDone::Failed { op: "replace", file, full: true, reason });
    assert!(partition.cx.is_out_of_room());

    world.now.monotonic_us += limits::FULL_DISK_RETRY_US;
    world.partition.on_timer(world.now);
    world.work();
    assert!(!world.partition.cx.is_out_of_room());
}

#[test]
fn a_checkpoint_without_room_does_not_end_a_clean_stop() {
    let mut world = World::new(AppendFsync::EverySecond);
    world.calm_down();
    world.increment(SessionId(1));
    world.pass_us(1_000_000);
    assert!(world.asks(appends(FIRST)));
    world.increment(SessionId(2));
    world.give(Input::Shutdown);
    world.give(Input::TurnEnd);
    world.refuse_append(|file| file == FIRST);
    let mut carried_out = Vec::new();
    while !world.stopped {
        carried_out.push(world.carry_out().expect("it asks its disk until it has stopped"));
    }
    assert!(carried_out.iter().any(replaces_superblock), "the clean end is marked: {carried_out:?}");
}
