//! A machine's clock runs very far ahead, is set right, and an operator gives its datacenter times that the others
//! believe.

use super::text::{Place, Words};
use super::{Effect, Kind, WildClock, duration_us};
use crate::random::Random;
use crate::world::World;
use crate::world::options::Options;
use std::fmt;

/// A wild clock, and what the operator does when it is right again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoverClock(WildClock);

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
        RecoverClock(WildClock { place, ahead_ms, lasts_us: duration_us(random, options) })
    }

    fn parse(words: &mut Words) -> Result<RecoverClock, String> {
        WildClock::parse(words).map(RecoverClock)
    }

    fn strike(&self, world: &mut World) -> Effect {
        self.0.strike(world)
    }

    fn lift(&self, world: &mut World) {
        self.0.lift(world);
        let shape = world.options.shape;
        world.recover_clock(shape.datacenter(self.0.place.site(shape)));
    }
}

impl fmt::Display for RecoverClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
