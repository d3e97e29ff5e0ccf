//! The directory of one partition of a datacenter is lost while its process is down, which starts with an empty one;
//! the other partitions keep theirs. It takes everything back from the other datacenters, or an operator gives its
//! datacenter up after a while.

use super::text::{Home, Words, show_us};
use super::{Effect, Kind};
use crate::random::Random;
use crate::world::World;
use crate::world::options::Options;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmptyPartition {
    pub home: Home,
    /// The operator's patience.
    pub lasts_us: u64,
}

impl Kind for EmptyPartition {
    const NAME: &'static str = "empty-partition";
    const WEIGHT: u64 = 1;

    /// No seed draws it by itself: the worlds in which directories are lost on request do, some of them.
    fn possible(_options: &Options) -> bool {
        false
    }

    fn draw(random: &mut Random, options: &Options) -> EmptyPartition {
        let home = Home::draw(random, options.shape);
        EmptyPartition { home, lasts_us: random.between(1_000, 10_000) * 1_000 }
    }

    fn parse(words: &mut Words) -> Result<EmptyPartition, String> {
        Ok(EmptyPartition { home: words.home()?, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        // Of a directory that nobody has met nobody knows that it is lost (docs/limits.md).
        let datacenter = self.home.datacenter;
        if !world.may_become_sick(datacenter) || !world.is_known_to_all(datacenter) {
            return Effect::Nothing;
        }
        world.wipe_partition(self.home.datacenter, self.home.partition);
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        if !world.has_recovered(self.home.datacenter) {
            world.give_up(self.home.datacenter);
        }
    }
}

impl fmt::Display for EmptyPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}", self.home, show_us(self.lasts_us))
    }
}
