//! A connection breaks and comes back at once; each end still gets some of what was on its way.

use super::text::{Place, Words};
use super::{Effect, Kind};
use crate::random::Random;
use crate::seed::Options;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flap {
    pub between: (Place, Place),
}

impl Kind for Flap {
    const NAME: &'static str = "flap";
    const WEIGHT: u64 = 2;

    fn possible(options: &Options) -> bool {
        options.shape.processes() > 1
    }

    fn draw(random: &mut Random, options: &Options) -> Flap {
        Flap { between: Place::draw_two(random, options.shape) }
    }

    fn parse(words: &mut Words) -> Result<Flap, String> {
        Ok(Flap { between: (words.place()?, words.place()?) })
    }

    fn strike(&self, world: &mut World) -> Effect {
        let shape = world.options.shape;
        world.flap(self.between.0.site(shape), self.between.1.site(shape));
        Effect::Done
    }
}

impl fmt::Display for Flap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.between.0, self.between.1)
    }
}
