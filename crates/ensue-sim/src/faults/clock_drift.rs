//! A machine's clock runs faster or slower from now on, until the faults end or it drifts otherwise.

use super::text::{Place, Words};
use super::{Effect, Kind};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockDrift {
    pub place: Place,
    /// Microseconds a second, either way.
    pub ppm: i64,
}

impl Kind for ClockDrift {
    const NAME: &'static str = "clock-drift";
    const WEIGHT: u64 = 1;

    fn possible(options: &Options) -> bool {
        options.clock.bound_ms > 0
    }

    fn draw(random: &mut Random, options: &Options) -> ClockDrift {
        ClockDrift { place: Place::draw(random, options.shape), ppm: random.around_zero(2_000) }
    }

    fn parse(words: &mut Words) -> Result<ClockDrift, String> {
        let place = words.place()?;
        words.expect("ppm")?;
        Ok(ClockDrift { place, ppm: words.number()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        world.drift_clock(self.place.process(world.options.shape), self.ppm);
        Effect::Done
    }
}

impl fmt::Display for ClockDrift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ppm {}", self.place, self.ppm)
    }
}
