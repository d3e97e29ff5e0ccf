//! Faults in an order that seeds hardly ever draw.

use super::{Plan, World};

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
