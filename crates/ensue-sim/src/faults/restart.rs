//! A process is asked to stop, exits cleanly, and starts again after a while.

use super::text::{Place, Words, show_us};
use super::{Effect, Kind, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restart {
    pub place: Place,
    pub lasts_us: u64,
}

impl Kind for Restart {
    const NAME: &'static str = "restart";
    const WEIGHT: u64 = 3;

    fn draw(random: &mut Random, options: &Options) -> Restart {
        Restart { place: Place::draw(random, options.shape), lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<Restart, String> {
        Ok(Restart { place: words.place()?, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        let process = self.place.process(world.options.shape);
        if !world.is_alive(process) {
            return Effect::Nothing;
        }
        world.shut_down(process);
        Effect::Lasts(self.lasts_us)
    }

    /// A process that has not exited by then is killed, as a supervisor does.
    fn lift(&self, world: &mut World) {
        let process = self.place.process(world.options.shape);
        if world.is_stopping(process) {
            world.kill(process);
        }
        world.start(process);
    }
}

impl fmt::Display for Restart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}", self.place, show_us(self.lasts_us))
    }
}
