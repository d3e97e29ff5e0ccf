//! One direction between two datacenters carries few messages a second: they queue up behind each other.

use super::text::{Words, draw_two_datacenters, show_us};
use super::{Effect, Kind, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use ensue_types::DatacenterId;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Narrow {
    pub from: DatacenterId,
    pub to: DatacenterId,
    /// Messages of a connection are this far apart.
    pub spacing_us: u64,
    pub lasts_us: u64,
}

impl Narrow {
    fn set(&self, world: &mut World, spacing_us: u64) {
        for (from, to) in world.pairs(self.from, self.to) {
            world.network.narrow(from, to, spacing_us);
        }
    }
}

impl Kind for Narrow {
    const NAME: &'static str = "narrow";
    const WEIGHT: u64 = 2;

    fn possible(options: &Options) -> bool {
        options.shape.datacenters > 1
    }

    fn draw(random: &mut Random, options: &Options) -> Narrow {
        let (from, to) = draw_two_datacenters(random, options.shape);
        Narrow { from, to, spacing_us: random.skewed(200, 5_000), lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<Narrow, String> {
        let (from, to) = (words.datacenter()?, words.datacenter()?);
        words.expect("spacing")?;
        Ok(Narrow { from, to, spacing_us: words.time_us()?, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        self.set(world, self.spacing_us);
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        self.set(world, 0);
    }
}

impl fmt::Display for Narrow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (spacing, lasts) = (show_us(self.spacing_us), show_us(self.lasts_us));
        write!(f, "{} {} spacing {spacing} for {lasts}", self.from, self.to)
    }
}
