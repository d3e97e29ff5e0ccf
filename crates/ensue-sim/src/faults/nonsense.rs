//! A core says, between what it really says, what cannot be. Whoever hears it must refuse it and go on.

use super::text::{Place, Words, show_us};
use super::{Effect, Kind, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonsense {
    pub place: Place,
    pub lasts_us: u64,
}

impl Kind for Nonsense {
    const NAME: &'static str = "nonsense";
    const WEIGHT: u64 = 3;

    fn possible(options: &Options) -> bool {
        options.shape.processes() > 1
    }

    fn draw(random: &mut Random, options: &Options) -> Nonsense {
        Nonsense { place: Place::draw(random, options.shape), lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<Nonsense, String> {
        Ok(Nonsense { place: words.place()?, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        world.talk_nonsense(self.place.site(world.options.shape), true);
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        world.talk_nonsense(self.place.site(world.options.shape), false);
    }
}

impl fmt::Display for Nonsense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}", self.place, show_us(self.lasts_us))
    }
}
