//! A process is killed, and starts with a configuration that has one datacenter more at its end.

use super::text::{Place, Words};
use super::{Effect, Kind};
use crate::random::Random;
use crate::world::World;
use crate::world::options::Options;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnDatacenter {
    pub place: Place,
}

impl Kind for LearnDatacenter {
    const NAME: &'static str = "learn-datacenter";
    const WEIGHT: u64 = 1;

    fn possible(options: &Options) -> bool {
        options.faults.joins
    }

    fn draw(random: &mut Random, options: &Options) -> LearnDatacenter {
        LearnDatacenter { place: Place::draw(random, options.shape) }
    }

    fn parse(words: &mut Words) -> Result<LearnDatacenter, String> {
        Ok(LearnDatacenter { place: words.place()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        if world.learn(self.place.process(world.options.shape)) { Effect::Done } else { Effect::Nothing }
    }
}

impl fmt::Display for LearnDatacenter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.place)
    }
}
