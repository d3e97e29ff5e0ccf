//! A machine's clock jumps, forward or back, and stays within the bound around true time.

use super::text::{Place, Words};
use super::{Effect, Kind};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockJump {
    pub place: Place,
    pub by_ms: i64,
}

impl Kind for ClockJump {
    const NAME: &'static str = "clock-jump";
    const WEIGHT: u64 = 2;

    fn possible(options: &Options) -> bool {
        options.clock.bound_ms > 0
    }

    fn draw(random: &mut Random, options: &Options) -> ClockJump {
        let place = Place::draw(random, options.shape);
        ClockJump { place, by_ms: random.around_zero(options.clock.jump_ms) }
    }

    fn parse(words: &mut Words) -> Result<ClockJump, String> {
        Ok(ClockJump { place: words.place()?, by_ms: words.difference_ms()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        world.jump_clock(self.place.process(world.options.shape), self.by_ms);
        Effect::Done
    }
}

impl fmt::Display for ClockJump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}ms", self.place, self.by_ms)
    }
}
