//! The next sync of a partition's disk fails, and drops what it should have made durable (trap 55). The process is
//! started again after a while.

use super::text::{Home, Words, show_us};
use super::{Effect, Kind, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedSync {
    pub home: Home,
    pub lasts_us: u64,
}

impl Kind for FailedSync {
    const NAME: &'static str = "failed-sync";
    const WEIGHT: u64 = 2;

    fn draw(random: &mut Random, options: &Options) -> FailedSync {
        FailedSync { home: Home::draw(random, options.shape), lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<FailedSync, String> {
        Ok(FailedSync { home: words.home()?, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        world.disk(self.home.datacenter, self.home.partition).fail_next_sync();
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        self.home.revive(world);
    }
}

impl fmt::Display for FailedSync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}", self.home, show_us(self.lasts_us))
    }
}
