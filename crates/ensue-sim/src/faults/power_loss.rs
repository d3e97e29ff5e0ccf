//! The power of the process of a core fails, and comes back after a while: what was not synced may be gone.

use super::text::{Place, Words, show_us};
use super::{Effect, Kind, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerLoss {
    pub place: Place,
    pub lasts_us: u64,
}

impl Kind for PowerLoss {
    const NAME: &'static str = "power-loss";
    const WEIGHT: u64 = 3;

    fn possible(options: &Options) -> bool {
        options.power_may_fail()
    }

    fn draw(random: &mut Random, options: &Options) -> PowerLoss {
        PowerLoss { place: Place::draw(random, options.shape), lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<PowerLoss, String> {
        Ok(PowerLoss { place: words.place()?, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        let process = self.place.process(world.options.shape);
        if !world.is_alive(process) {
            return Effect::Nothing;
        }
        world.lose_power(process);
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        world.start(self.place.process(world.options.shape));
    }
}

impl fmt::Display for PowerLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}", self.place, show_us(self.lasts_us))
    }
}
