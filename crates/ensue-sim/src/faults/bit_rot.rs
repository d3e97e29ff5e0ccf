//! One bit of what is durable on a partition's disk is read wrongly for a while, and then as it was written: damage
//! must be found or not be met, never be served, and nothing be cut for it (trap 57).

use super::text::{Home, Words, show_us};
use super::{Effect, Kind, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitRot {
    pub home: Home,
    /// Chooses the bit.
    pub chance: u64,
    /// Whether the process is killed and started at once, so that it reads.
    pub restart: bool,
    pub lasts_us: u64,
}

impl Kind for BitRot {
    const NAME: &'static str = "bit-rot";
    const WEIGHT: u64 = 1;

    fn draw(random: &mut Random, options: &Options) -> BitRot {
        let home = Home::draw(random, options.shape);
        let (chance, restart) = (random.below(1 << 32), random.chance(700));
        BitRot { home, chance, restart, lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<BitRot, String> {
        let home = words.home()?;
        words.expect("bit")?;
        let chance = words.number()?;
        let restart = words.choice(&[("restart", true), ("later", false)])?;
        Ok(BitRot { home, chance, restart, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        let random = &mut Random::stream(self.chance, "bit");
        if world.disk(self.home.datacenter, self.home.partition).rot(random).is_none() {
            return Effect::Nothing;
        }
        let process = world.process_of(self.home.datacenter, self.home.partition);
        if self.restart && world.is_alive(process) {
            world.kill(process);
            world.start(process);
        }
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        world.disk(self.home.datacenter, self.home.partition).restore();
        self.home.revive(world);
    }
}

impl fmt::Display for BitRot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = if self.restart { "restart" } else { "later" };
        write!(f, "{} bit {} {when} for {}", self.home, self.chance, show_us(self.lasts_us))
    }
}
