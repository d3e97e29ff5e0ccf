//! Each connection of a datacenter is late by another time: what is sent over two of them arrives in any order.

use super::text::{Words, show_us};
use super::{Effect, Kind, draw_datacenter, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use ensue_types::DatacenterId;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shuffle {
    pub datacenter: DatacenterId,
    /// No direction is late by more.
    pub by_us: u64,
    /// Which direction is how late.
    pub number: u64,
    pub lasts_us: u64,
}

impl Shuffle {
    fn set(&self, world: &mut World, by_us: u64) {
        let shape = world.options.shape;
        let random = &mut Random::stream(self.number, "shuffle");
        for other in (0..shape.datacenters).map(DatacenterId).filter(|&other| other != self.datacenter) {
            for (a, b) in world.pairs(self.datacenter, other) {
                world.network.lag(a, b, random.between(0, by_us));
                world.network.lag(b, a, random.between(0, by_us));
            }
        }
    }
}

impl Kind for Shuffle {
    const NAME: &'static str = "shuffle";
    const WEIGHT: u64 = 4;

    fn possible(options: &Options) -> bool {
        options.shape.datacenters > 1
    }

    fn draw(random: &mut Random, options: &Options) -> Shuffle {
        Shuffle {
            datacenter: draw_datacenter(random, options),
            by_us: random.skewed(2_000, 250_000),
            number: random.below(1_000_000),
            lasts_us: duration_us(random, options),
        }
    }

    fn parse(words: &mut Words) -> Result<Shuffle, String> {
        let datacenter = words.datacenter()?;
        words.expect("by")?;
        let by_us = words.time_us()?;
        words.expect("number")?;
        Ok(Shuffle { datacenter, by_us, number: words.number()?, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        self.set(world, self.by_us);
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        self.set(world, 0);
    }
}

impl fmt::Display for Shuffle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (by, lasts) = (show_us(self.by_us), show_us(self.lasts_us));
        write!(f, "{} by {by} number {} for {lasts}", self.datacenter, self.number)
    }
}
