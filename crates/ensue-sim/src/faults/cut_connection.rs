//! One connection between two cores breaks and does not come back for a while; of one datacenter or of two.

use super::text::{Place, Words, show_us};
use super::{Effect, Kind, duration_us};
use crate::world::network::Break;
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutConnection {
    pub between: (Place, Place),
    pub how: Break,
    pub lasts_us: u64,
}

impl Kind for CutConnection {
    const NAME: &'static str = "cut-connection";
    const WEIGHT: u64 = 3;

    fn possible(options: &Options) -> bool {
        options.shape.processes() > 1
    }

    fn draw(random: &mut Random, options: &Options) -> CutConnection {
        let between = Place::draw_two(random, options.shape);
        CutConnection { between, how: Break::draw(random), lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<CutConnection, String> {
        let between = (words.place()?, words.place()?);
        Ok(CutConnection { between, how: words.choice(&Break::NAMES)?, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        let shape = world.options.shape;
        let (a, b) = (self.between.0.site(shape), self.between.1.site(shape));
        if shape.process(a) == shape.process(b) {
            return Effect::Nothing;
        }
        world.cut(a, b, self.how);
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        let shape = world.options.shape;
        world.heal(self.between.0.site(shape), self.between.1.site(shape));
    }
}

impl fmt::Display for CutConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (a, b) = self.between;
        write!(f, "{a} {b} {} for {}", self.how, show_us(self.lasts_us))
    }
}
