//! One direction of one connection is cut, of one datacenter or of two; what was sent comes later.

use super::text::{Place, Words, show_us};
use super::{Effect, Kind, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MuteConnection {
    pub from: Place,
    pub to: Place,
    pub lasts_us: u64,
}

impl Kind for MuteConnection {
    const NAME: &'static str = "mute-connection";
    const WEIGHT: u64 = 3;

    fn possible(options: &Options) -> bool {
        options.shape.processes() > 1
    }

    fn draw(random: &mut Random, options: &Options) -> MuteConnection {
        let (from, to) = Place::draw_two(random, options.shape);
        MuteConnection { from, to, lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<MuteConnection, String> {
        Ok(MuteConnection { from: words.place()?, to: words.place()?, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        let shape = world.options.shape;
        if self.from.process(shape) == self.to.process(shape) {
            return Effect::Nothing;
        }
        world.mute(self.from.site(shape), self.to.site(shape), self.lasts_us);
        Effect::Done
    }
}

impl fmt::Display for MuteConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} for {}", self.from, self.to, show_us(self.lasts_us))
    }
}
