//! `kill -9` of the process of a core, which starts again after a while.

use super::text::{Place, Words, show_us};
use super::{Effect, Kind, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kill {
    pub place: Place,
    pub lasts_us: u64,
}

impl Kind for Kill {
    const NAME: &'static str = "kill";
    const WEIGHT: u64 = 3;

    fn draw(random: &mut Random, options: &Options) -> Kill {
        Kill { place: Place::draw(random, options.shape), lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<Kill, String> {
        Ok(Kill { place: words.place()?, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        let process = self.place.process(world.options.shape);
        if !world.is_alive(process) {
            return Effect::Nothing;
        }
        world.kill(process);
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        world.start(self.place.process(world.options.shape));
    }
}

impl fmt::Display for Kill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}", self.place, show_us(self.lasts_us))
    }
}
