//! Faults in an order that seeds hardly ever draw.

use super::{Plan, World};
use ensue_store::disk::FileName;

const SECOND: u64 = 1_000_000;

/// A group of three of which nothing goes wrong by itself; the first node leads.
fn world(seed: u64, always: bool) -> World {
    let plan = Plan {
        seed,
        replicas: 3,
        spares: 0,
        always,
        lease: false,
        crashes: false,
        power: false,
        directories: false,
        cuts: false,
        lasts_us: 0,
    };
    let mut world = World::new(plan);
    world.begin();
    world.wait(3 * SECOND);
    assert_eq!(world.leader(), Some(0));
    world
}

impl World {
    fn wait(&mut self, microseconds: u64) {
        self.run_until(self.now + microseconds)
            .unwrap_or_else(|words| panic!("seed {}: {words}", self.plan.seed));
    }

    /// How many replicas have said this to their operators.
    fn said(&self, words: &str) -> usize {
        self.troubles.iter().filter(|(_, said)| said.contains(words)).count()
    }

    /// The oldest segment of a node, when there are several.
    fn closed_segment(&mut self, node: usize) -> FileName {
        loop {
            let contents = self.nodes[node].disk.contents();
            let mut segments = contents.keys().filter(|file| matches!(file, FileName::Segment(_)));
            if let (Some(oldest), Some(_), Some(_)) = (segments.next(), segments.next(), segments.next()) {
                return *oldest;
            }
            self.wait(SECOND / 10);
        }
    }

    fn leader(&self) -> Option<u16> {
        self.group().map(|group| group.leader)
    }
}

/// The owner and one follower, which alone acknowledged the last writes, lose their power. The third stands for
/// election, cut off from the owner before, and has the vote of the follower: nobody may count on what the owner said
/// of itself before.
#[test]
fn a_leader_by_the_vote_of_who_lost_its_power_begins_a_new_epoch() {
    let mut led = 0;
    for seed in 0..40 {
        let mut world = world(seed, false);
        world.cut(0, 1, 20 * SECOND);
        world.wait(SECOND / 8);
        for node in [0, 2] {
            world.crash(node, 1_000);
            world.lose_power(node);
        }
        world.wait(4 * SECOND);
        led += u64::from(world.leader() == Some(1) && world.acknowledged.epoch > 0);
        world.finish().unwrap_or_else(|words| panic!("seed {seed}: {words}"));
    }
    assert!(led > 3, "{led}");
}

/// A follower that lags takes a directory in which an owner has cut a segment, whose checksum nobody knows since: it
/// gets that file anew, and stays who it is.
#[test]
fn a_replica_that_lags_behind_a_cut_file_stays_a_member() {
    let mut replaced = 0;
    for seed in 0..20 {
        let mut world = world(seed, seed % 2 == 0);
        for _ in 0..6 {
            world.crash(2, SECOND);
            world.wait(SECOND / 5);
            let leader = world.leader().expect("two are left");
            if let Some(replica) = &mut world.node(leader).replica {
                replica.hand_over();
            }
            world.wait(3 * SECOND);
        }
        replaced += world.said("is fetched anew");
        let report = world.finish().unwrap_or_else(|words| panic!("seed {seed}: {words}"));
        assert_eq!(report.given_up, 0, "seed {seed}: {:?}", world.troubles);
    }
    assert!(replaced > 3, "{replaced}");
}

/// A bit rots in a segment of the owner while a follower that is to be sent it is down: the follower keeps what it has,
/// and says so; the owner makes way for the third replica.
#[test]
fn a_replica_that_is_sent_damaged_bytes_keeps_its_own_and_tells_the_sender() {
    let mut found = 0;
    for seed in 0..20 {
        let mut world = world(seed, false);
        world.attended = true;
        world.crash(2, SECOND);
        world.wait(SECOND / 2);
        let is_segment = |file: &&FileName| matches!(file, FileName::Segment(_));
        let here = world.nodes[2].disk.contents();
        let there = world.nodes[0].disk.contents();
        let new =
            there.keys().filter(is_segment).rfind(|file| !here.contains_key(file) && there[file].len() > 8);
        let Some(new) = new else { continue };
        world.node(0).disk.rot(*new, 3);
        world.wait(5 * SECOND);
        found += u64::from(world.said("is not what was written, and is not taken") > 0);
        let report = world.finish().unwrap_or_else(|words| panic!("seed {seed}: {words}"));
        assert_eq!(report.given_up, 0, "seed {seed}: {:?}", world.troubles);
    }
    assert!(found > 3, "{found}");
}

/// The owner's files are damaged, and it starts again: it gets the partition back, which cannot be read here, and
/// leaves it to another one for good.
#[test]
fn an_owner_that_cannot_read_its_files_makes_way() {
    let mut left = 0;
    for seed in 0..20 {
        let mut world = world(seed, seed % 2 == 0);
        world.attended = true;
        let file = world.closed_segment(0);
        world.node(0).disk.spoil(file);
        world.crash(0, SECOND / 10);
        world.wait(4 * SECOND);
        // Unless a checkpoint has taken the place of the segment, or its start needs it.
        if world.said("read of") == 2 {
            left += 1;
            assert!(world.leader().is_some_and(|leader| leader != 0), "seed {seed}");
        }
        world.finish().unwrap_or_else(|words| panic!("seed {seed}: {words}"));
    }
    assert!(left > 5, "{left}");
}

/// A partition has stopped: its owner makes way if its own files are not what was written, and only then.
#[test]
fn an_owner_makes_way_if_its_files_are_not_what_was_written() {
    for seed in 0..20 {
        let mut world = world(seed, seed % 2 == 0);
        world.attended = true;
        let is_damaged = seed % 4 < 2;
        if is_damaged {
            let file = world.closed_segment(0);
            world.node(0).disk.rot(file, 3);
        }
        world.give(0, super::Replica::on_partition_stopped).expect("it only reads");
        world.wait(SECOND);
        assert_eq!(world.leader() == Some(0), !is_damaged, "seed {seed}: {:?}", world.troubles);
        assert_eq!(world.troubles.len(), if is_damaged { 2 } else { 0 }, "seed {seed}: {:?}", world.troubles);
        world.finish().unwrap_or_else(|words| panic!("seed {seed}: {words}"));
    }
}

/// The disks of all three are full at about the same time, and the operator makes room: all start with what they have.
#[test]
fn replicas_whose_disks_were_full_start_again() {
    for seed in 0..40 {
        let mut world = world(seed, seed % 2 == 0);
        world.attended = true;
        for (node, room) in [(0, 700 + seed as usize * 7), (1, 700), (2, 705)] {
            world.node(node).disk.make_room(Some(room));
        }
        world.wait(4 * SECOND);
        assert!(world.said("append of") >= 2, "seed {seed}: {:?}", world.troubles);
        let refused = world.said("are not those that were written");
        assert_eq!(refused, 0, "seed {seed}: {:?}", world.troubles);
        let report = world.finish().unwrap_or_else(|words| panic!("seed {seed}: {words}"));
        assert_eq!((report.given_up, report.epochs), (0, 0), "seed {seed}");
    }
}

/// A bit rots in the journal of a replica that starts again within the boot of its machine: it does not take that for
/// the torn end of its last write, and vote without what it acknowledged.
#[test]
fn a_replica_does_not_start_with_a_damaged_journal() {
    let mut refused = 0;
    for seed in 0..20 {
        let mut world = world(seed, seed % 2 == 0);
        world.attended = true;
        world.crash(2, SECOND / 10);
        let is_damaged = seed % 4 > 0;
        if is_damaged {
            world.node(2).disk.rot_journal();
        }
        world.wait(SECOND);
        let damaged =
            world.said("is damaged: whole records follow") + world.said("no journal of this replica");
        assert_eq!(damaged, usize::from(is_damaged), "seed {seed}: {:?}", world.troubles);
        refused += world.said("is damaged: whole records follow");
        world.finish().unwrap_or_else(|words| panic!("seed {seed}: {words}"));
    }
    assert!(refused > 5, "{refused}");
}
