//! One direction between two datacenters is cut: nothing arrives, nobody notices, and what was sent comes later.

use super::text::{Words, draw_two_datacenters, show_us};
use super::{Effect, Kind, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use ensue_types::DatacenterId;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mute {
    pub from: DatacenterId,
    pub to: DatacenterId,
    pub lasts_us: u64,
}

impl Kind for Mute {
    const NAME: &'static str = "mute";
    const WEIGHT: u64 = 3;

    fn possible(options: &Options) -> bool {
        options.shape.datacenters > 1
    }

    fn draw(random: &mut Random, options: &Options) -> Mute {
        let (from, to) = draw_two_datacenters(random, options.shape);
        Mute { from, to, lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<Mute, String> {
        Ok(Mute { from: words.datacenter()?, to: words.datacenter()?, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        for (from, to) in world.pairs(self.from, self.to) {
            world.mute(from, to, self.lasts_us);
        }
        Effect::Done
    }
}

impl fmt::Display for Mute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} for {}", self.from, self.to, show_us(self.lasts_us))
    }
}
