//! The next read of a partition's disk fails: when it starts, or while it reads its log again for one that lags. The
//! process may be killed for it; it is started again after a while.

use super::text::{Home, Words, show_us};
use super::{Effect, Kind, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedRead {
    pub home: Home,
    /// Whether the process is killed and started at once, so that it reads.
    pub restart: bool,
    pub lasts_us: u64,
}

impl Kind for FailedRead {
    const NAME: &'static str = "failed-read";
    const WEIGHT: u64 = 1;

    fn draw(random: &mut Random, options: &Options) -> FailedRead {
        let home = Home::draw(random, options.shape);
        FailedRead { home, restart: random.chance(700), lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<FailedRead, String> {
        let home = words.home()?;
        let restart = words.choice(&[("restart", true), ("later", false)])?;
        Ok(FailedRead { home, restart, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        world.disk(self.home.datacenter, self.home.partition).fail_next_read();
        let process = world.process_of(self.home.datacenter, self.home.partition);
        if self.restart && world.is_alive(process) {
            world.kill(process);
            world.start(process);
        }
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        self.home.revive(world);
    }
}

impl fmt::Display for FailedRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = if self.restart { "restart" } else { "later" };
        write!(f, "{} {when} for {}", self.home, show_us(self.lasts_us))
    }
}
