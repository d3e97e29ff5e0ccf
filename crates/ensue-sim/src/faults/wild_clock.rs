//! A machine's clock runs far ahead of what its peers may believe, and is right again after a while.
//!
//! Its logical time stays where the clock was. Peers take nothing of it until true time has come near.

use super::text::{Place, Words, show_us};
use super::{Effect, Kind, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WildClock {
    pub place: Place,
    pub ahead_ms: i64,
    pub lasts_us: u64,
}

impl Kind for WildClock {
    const NAME: &'static str = "wild-clock";
    const WEIGHT: u64 = 1;

    fn possible(options: &Options) -> bool {
        options.clock.wild_ms > 0
    }

    fn draw(random: &mut Random, options: &Options) -> WildClock {
        let ahead_ms = random.between(options.tuning.clock_ahead_ms_max, options.clock.wild_ms) as i64;
        let place = Place::draw(random, options.shape);
        WildClock { place, ahead_ms, lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<WildClock, String> {
        let (place, ahead_ms) = (words.place()?, words.difference_ms()?);
        Ok(WildClock { place, ahead_ms, lasts_us: words.duration_us()? })
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
        world.drift_clock(self.place.process(world.options.shape), 0);
    }
}

impl fmt::Display for WildClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}ms for {}", self.place, self.ahead_ms, show_us(self.lasts_us))
    }
}
