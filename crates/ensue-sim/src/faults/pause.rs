//! A process takes no input for up to seconds, then all of it in a burst; its connections stay up.

use super::text::{Place, Words, show_us};
use super::{Effect, Kind};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    pub place: Place,
    pub lasts_us: u64,
}

impl Kind for Pause {
    const NAME: &'static str = "pause";
    const WEIGHT: u64 = 3;

    fn draw(random: &mut Random, options: &Options) -> Pause {
        Pause { place: Place::draw(random, options.shape), lasts_us: random.skewed(1_000, 4_000_000) }
    }

    fn parse(words: &mut Words) -> Result<Pause, String> {
        Ok(Pause { place: words.place()?, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        let process = self.place.process(world.options.shape);
        if !world.is_alive(process) {
            return Effect::Nothing;
        }
        world.pause(process, self.lasts_us);
        Effect::Done
    }
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}", self.place, show_us(self.lasts_us))
    }
}
