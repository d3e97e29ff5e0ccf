//! `kill -9` of every process of every datacenter at once; all start again after a while.

use super::text::{Words, show_us};
use super::{Effect, Kind, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::shape::ProcessId;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KillEverything {
    pub lasts_us: u64,
}

impl Kind for KillEverything {
    const NAME: &'static str = "kill-everything";
    const WEIGHT: u64 = 1;

    fn draw(random: &mut Random, options: &Options) -> KillEverything {
        KillEverything { lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<KillEverything, String> {
        Ok(KillEverything { lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        for process in 0..world.options.shape.processes() {
            world.kill(ProcessId(process));
        }
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        for process in 0..world.options.shape.processes() {
            world.start(ProcessId(process));
        }
    }
}

impl fmt::Display for KillEverything {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "for {}", show_us(self.lasts_us))
    }
}
