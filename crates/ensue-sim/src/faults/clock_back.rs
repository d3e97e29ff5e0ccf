//! A process dies and finds its machine's clock set back when it starts again.

use super::text::{Place, Words, show_us};
use super::{Effect, Kind, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockBack {
    pub place: Place,
    pub by_ms: i64,
    pub lasts_us: u64,
}

impl Kind for ClockBack {
    const NAME: &'static str = "clock-back";
    const WEIGHT: u64 = 2;

    fn possible(options: &Options) -> bool {
        options.clock.bound_ms > 0
    }

    fn draw(random: &mut Random, options: &Options) -> ClockBack {
        ClockBack {
            place: Place::draw(random, options.shape),
            by_ms: -(random.between(1, 2 * options.clock.bound_ms) as i64),
            lasts_us: duration_us(random, options).min(20_000),
        }
    }

    fn parse(words: &mut Words) -> Result<ClockBack, String> {
        Ok(ClockBack {
            place: words.place()?,
            by_ms: words.difference_ms()?,
            lasts_us: words.duration_us()?,
        })
    }

    fn strike(&self, world: &mut World) -> Effect {
        let process = self.place.process(world.options.shape);
        if !world.is_alive(process) {
            return Effect::Nothing;
        }
        world.kill(process);
        world.jump_clock(process, self.by_ms);
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        world.start(self.place.process(world.options.shape));
    }
}

impl fmt::Display for ClockBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}ms for {}", self.place, self.by_ms, show_us(self.lasts_us))
    }
}
