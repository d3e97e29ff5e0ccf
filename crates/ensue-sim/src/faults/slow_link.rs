//! One direction of one connection takes longer for a while: a spike of delay, and disorder between connections.

use super::text::{Place, Words, show_us};
use super::{Effect, Kind, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowLink {
    pub from: Place,
    pub to: Place,
    pub by_us: u64,
    pub lasts_us: u64,
}

impl Kind for SlowLink {
    const NAME: &'static str = "slow-link";
    const WEIGHT: u64 = 4;

    fn draw(random: &mut Random, options: &Options) -> SlowLink {
        let (from, to) = Place::draw_two(random, options.shape);
        SlowLink { from, to, by_us: random.skewed(500, 300_000), lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<SlowLink, String> {
        let (from, to) = (words.place()?, words.place()?);
        words.expect("by")?;
        Ok(SlowLink { from, to, by_us: words.time_us()?, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        let shape = world.options.shape;
        world.slow_link(self.from.site(shape), self.to.site(shape), self.by_us, self.lasts_us);
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        let shape = world.options.shape;
        world.network.lag(self.from.site(shape), self.to.site(shape), 0);
    }
}

impl fmt::Display for SlowLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (by, lasts) = (show_us(self.by_us), show_us(self.lasts_us));
        write!(f, "{} {} by {by} for {lasts}", self.from, self.to)
    }
}
