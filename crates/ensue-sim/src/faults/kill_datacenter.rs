//! `kill -9` of every process of a datacenter at once; all start again after a while.

use super::text::{Words, show_us};
use super::{Effect, Kind, draw_datacenter, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use ensue_types::DatacenterId;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KillDatacenter {
    pub datacenter: DatacenterId,
    pub lasts_us: u64,
}

impl Kind for KillDatacenter {
    const NAME: &'static str = "kill-datacenter";
    const WEIGHT: u64 = 1;

    fn draw(random: &mut Random, options: &Options) -> KillDatacenter {
        let datacenter = draw_datacenter(random, options);
        KillDatacenter { datacenter, lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<KillDatacenter, String> {
        Ok(KillDatacenter { datacenter: words.datacenter()?, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        for process in world.options.shape.processes_of(self.datacenter) {
            world.kill(process);
        }
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        for process in world.options.shape.processes_of(self.datacenter) {
            world.start(process);
        }
    }
}

impl fmt::Display for KillDatacenter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}", self.datacenter, show_us(self.lasts_us))
    }
}
