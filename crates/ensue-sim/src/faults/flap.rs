//! A connection breaks and comes back at once, once or several times in a row.

use super::text::{Place, Words, show_us};
use super::{Effect, Kind};
use crate::world::network::Break;
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flap {
    pub between: (Place, Place),
    pub how: Break,
    pub times: u64,
    pub every_us: u64,
}

impl Kind for Flap {
    const NAME: &'static str = "flap";
    const WEIGHT: u64 = 4;

    fn possible(options: &Options) -> bool {
        options.shape.processes() > 1
    }

    fn draw(random: &mut Random, options: &Options) -> Flap {
        Flap {
            between: Place::draw_two(random, options.shape),
            how: Break::draw(random),
            times: random.skewed(1, 12),
            every_us: random.skewed(500, 60_000),
        }
    }

    fn parse(words: &mut Words) -> Result<Flap, String> {
        let between = (words.place()?, words.place()?);
        let how = words.choice(&Break::NAMES)?;
        words.expect("times")?;
        let times = words.number()?;
        words.expect("every")?;
        Ok(Flap { between, how, times, every_us: words.time_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        let shape = world.options.shape;
        let (a, b) = (self.between.0.site(shape), self.between.1.site(shape));
        if shape.process(a) == shape.process(b) {
            return Effect::Nothing;
        }
        for number in 0..self.times {
            world.flap_at(world.now() + number * self.every_us, a, b, self.how);
        }
        Effect::Done
    }
}

impl fmt::Display for Flap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (a, b) = self.between;
        write!(f, "{a} {b} {} times {} every {}", self.how, self.times, show_us(self.every_us))
    }
}
