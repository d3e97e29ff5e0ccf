//! Two cores of one datacenter are cut from each other; each still talks to everyone else.

use super::text::{Place, Words, show_us};
use super::{Effect, Kind, draw_datacenter, duration_us};
use crate::world::network::Break;
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use ensue_types::CoreId;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    pub between: (Place, Place),
    pub how: Break,
    pub lasts_us: u64,
}

impl Kind for Split {
    const NAME: &'static str = "split";
    const WEIGHT: u64 = 3;

    fn possible(options: &Options) -> bool {
        options.shape.cores > 1 && !options.shape.one_process
    }

    fn draw(random: &mut Random, options: &Options) -> Split {
        let datacenter = draw_datacenter(random, options);
        let cores = u64::from(options.shape.cores);
        let a = random.below(cores);
        let b = (a + random.between(1, cores - 1)) % cores;
        let place = |core: u64| Place { datacenter, core: CoreId(core as u16) };
        let how = Break::draw(random);
        Split { between: (place(a), place(b)), how, lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<Split, String> {
        let between = (words.place()?, words.place()?);
        Ok(Split { between, how: words.choice(&Break::NAMES)?, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        let shape = world.options.shape;
        world.cut(self.between.0.site(shape), self.between.1.site(shape), self.how);
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        let shape = world.options.shape;
        world.heal(self.between.0.site(shape), self.between.1.site(shape));
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (a, b) = self.between;
        write!(f, "{a} {b} {} for {}", self.how, show_us(self.lasts_us))
    }
}
