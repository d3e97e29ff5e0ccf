//! A process that dies again and again soon after each start.

use super::text::{Place, Words, show_us};
use super::{Effect, Kind};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashLoop {
    pub place: Place,
    pub times: u64,
    pub every_us: u64,
}

impl Kind for CrashLoop {
    const NAME: &'static str = "crash-loop";
    const WEIGHT: u64 = 1;

    fn draw(random: &mut Random, options: &Options) -> CrashLoop {
        CrashLoop {
            place: Place::draw(random, options.shape),
            times: random.between(2, 6),
            every_us: random.skewed(100, 30_000),
        }
    }

    fn parse(words: &mut Words) -> Result<CrashLoop, String> {
        let place = words.place()?;
        words.expect("times")?;
        let times = words.number()?;
        words.expect("every")?;
        Ok(CrashLoop { place, times, every_us: words.time_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        let process = self.place.process(world.options.shape);
        if !world.is_alive(process) {
            return Effect::Nothing;
        }
        for number in 0..self.times {
            world.restart_at(world.now() + number * self.every_us, process);
        }
        Effect::Done
    }
}

impl fmt::Display for CrashLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} times {} every {}", self.place, self.times, show_us(self.every_us))
    }
}
