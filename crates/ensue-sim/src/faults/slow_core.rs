//! Every input takes a core long: what comes meanwhile waits its turn.

use super::text::{Place, Words, show_us};
use super::{Effect, Kind, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowCore {
    pub place: Place,
    pub cost_us: u64,
    pub lasts_us: u64,
}

impl Kind for SlowCore {
    const NAME: &'static str = "slow-core";
    const WEIGHT: u64 = 3;

    fn draw(random: &mut Random, options: &Options) -> SlowCore {
        let place = Place::draw(random, options.shape);
        SlowCore { place, cost_us: random.skewed(20, 3_000), lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<SlowCore, String> {
        let place = words.place()?;
        words.expect("cost")?;
        Ok(SlowCore { place, cost_us: words.time_us()?, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        world.slow_core(self.place.site(world.options.shape), self.cost_us);
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        world.slow_core(self.place.site(world.options.shape), 0);
    }
}

impl fmt::Display for SlowCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cost {} for {}", self.place, show_us(self.cost_us), show_us(self.lasts_us))
    }
}
