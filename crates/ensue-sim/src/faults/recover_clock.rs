//! A machine's clock runs very far ahead, is set right, and an operator gives its datacenter times that the others
//! believe.

use super::text::{Place, Words, show_us};
use super::{Effect, Kind, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoverClock {
    pub place: Place,
    pub ahead_ms: i64,
    pub lasts_us: u64,
}

impl Kind for RecoverClock {
    const NAME: &'static str = "recover-clock";
    const WEIGHT: u64 = 6;

    fn possible(options: &Options) -> bool {
        options.clock.recovers
    }

    fn draw(random: &mut Random, options: &Options) -> RecoverClock {
        // Beyond the bound below which times stay as they are.
        let least_ms = 3 * options.tuning.clock_ahead_ms_max;
        let ahead_ms = random.between(least_ms.min(options.clock.wild_ms), options.clock.wild_ms) as i64;
        let place = Place::draw(random, options.shape);
        RecoverClock { place, ahead_ms, lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<RecoverClock, String> {
        let (place, ahead_ms) = (words.place()?, words.difference_ms()?);
        Ok(RecoverClock { place, ahead_ms, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        let process = self.place.process(world.options.shape);
        if world.options.clock.recovers && world.is_another_ahead(process) {
            return Effect::Nothing;
        }
        world.wild_clock(process, self.ahead_ms, self.lasts_us);
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        let shape = world.options.shape;
        world.drift_clock(self.place.process(shape), 0);
        world.recover_clock(shape.datacenter(self.place.site(shape)));
    }
}

impl fmt::Display for RecoverClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}ms for {}", self.place, self.ahead_ms, show_us(self.lasts_us))
    }
}
