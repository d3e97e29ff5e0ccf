//! A datacenter hears all the others and is heard by none.

use super::text::{Words, show_us};
use super::{Effect, Kind, draw_datacenter, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use ensue_types::DatacenterId;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unheard {
    pub datacenter: DatacenterId,
    pub lasts_us: u64,
}

impl Kind for Unheard {
    const NAME: &'static str = "unheard";
    const WEIGHT: u64 = 2;

    fn possible(options: &Options) -> bool {
        options.shape.datacenters > 1
    }

    fn draw(random: &mut Random, options: &Options) -> Unheard {
        Unheard { datacenter: draw_datacenter(random, options), lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<Unheard, String> {
        Ok(Unheard { datacenter: words.datacenter()?, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        for other in (0..world.options.shape.datacenters).map(DatacenterId) {
            for (from, to) in world.pairs(self.datacenter, other) {
                if other != self.datacenter {
                    world.mute(from, to, self.lasts_us);
                }
            }
        }
        Effect::Done
    }
}

impl fmt::Display for Unheard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}", self.datacenter, show_us(self.lasts_us))
    }
}
