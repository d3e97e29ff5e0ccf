//! Everything that one datacenter sends to another takes longer for a while; the way back does not.

use super::text::{Words, draw_two_datacenters, show_us};
use super::{Effect, Kind, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use ensue_types::DatacenterId;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelaySpike {
    pub from: DatacenterId,
    pub to: DatacenterId,
    pub by_us: u64,
    pub lasts_us: u64,
}

impl DelaySpike {
    fn set(&self, world: &mut World, by_us: u64) {
        for (from, to) in world.pairs(self.from, self.to) {
            world.network.lag(from, to, by_us);
        }
    }
}

impl Kind for DelaySpike {
    const NAME: &'static str = "delay-spike";
    const WEIGHT: u64 = 3;

    fn possible(options: &Options) -> bool {
        options.shape.datacenters > 1
    }

    fn draw(random: &mut Random, options: &Options) -> DelaySpike {
        let (from, to) = draw_two_datacenters(random, options.shape);
        DelaySpike { from, to, by_us: random.skewed(5_000, 900_000), lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<DelaySpike, String> {
        let (from, to) = (words.datacenter()?, words.datacenter()?);
        words.expect("by")?;
        Ok(DelaySpike { from, to, by_us: words.time_us()?, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        self.set(world, self.by_us);
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        self.set(world, 0);
    }
}

impl fmt::Display for DelaySpike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} by {} for {}", self.from, self.to, show_us(self.by_us), show_us(self.lasts_us))
    }
}
