//! The next write to a partition's disk fails after a share of its bytes. The process is started again after a while.

use super::text::{Home, Words, show_us};
use super::{Effect, Kind, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedWrite {
    pub home: Home,
    /// So many of a thousand bytes get through.
    pub share: u64,
    pub lasts_us: u64,
}

impl Kind for FailedWrite {
    const NAME: &'static str = "failed-write";
    const WEIGHT: u64 = 1;

    fn draw(random: &mut Random, options: &Options) -> FailedWrite {
        let home = Home::draw(random, options.shape);
        FailedWrite { home, share: random.between(0, 1_000), lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<FailedWrite, String> {
        let home = words.home()?;
        words.expect("after")?;
        Ok(FailedWrite { home, share: words.number()?, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        world.disk(self.home.datacenter, self.home.partition).fail_next_write(self.share);
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        self.home.revive(world);
    }
}

impl fmt::Display for FailedWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after {} for {}", self.home, self.share, show_us(self.lasts_us))
    }
}
