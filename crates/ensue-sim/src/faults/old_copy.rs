//! The directories of a datacenter are copied, and after a while its processes are killed and start with the copy.
//! Whoever knows better tells them.

use super::text::{Words, show_us};
use super::{Effect, Kind, draw_datacenter, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use ensue_types::DatacenterId;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldCopy {
    pub datacenter: DatacenterId,
    /// The age of the copy.
    pub lasts_us: u64,
}

impl Kind for OldCopy {
    const NAME: &'static str = "old-copy";
    const WEIGHT: u64 = 1;

    fn possible(options: &Options) -> bool {
        options.shape.datacenters > 1 && options.faults.loses_directories
    }

    fn draw(random: &mut Random, options: &Options) -> OldCopy {
        let datacenter = draw_datacenter(random, options);
        OldCopy { datacenter, lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<OldCopy, String> {
        Ok(OldCopy { datacenter: words.datacenter()?, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        if !world.may_become_sick(self.datacenter) {
            return Effect::Nothing;
        }
        world.copy_directories(self.datacenter);
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        world.restore_directories(self.datacenter);
    }
}

impl fmt::Display for OldCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}", self.datacenter, show_us(self.lasts_us))
    }
}
