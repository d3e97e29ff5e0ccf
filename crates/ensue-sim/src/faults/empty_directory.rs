//! The directories of a datacenter are lost: its processes are killed and start with empty ones. It takes everything
//! back from the others, or an operator gives it up after a while.

use super::text::{Words, show_us};
use super::{Effect, Kind, draw_datacenter};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use ensue_types::DatacenterId;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmptyDirectory {
    pub datacenter: DatacenterId,
    /// The operator's patience.
    pub lasts_us: u64,
}

impl Kind for EmptyDirectory {
    const NAME: &'static str = "empty-directory";
    const WEIGHT: u64 = 1;

    fn possible(options: &Options) -> bool {
        options.shape.datacenters > 1 && options.faults.loses_directories
    }

    fn draw(random: &mut Random, options: &Options) -> EmptyDirectory {
        let datacenter = draw_datacenter(random, options);
        EmptyDirectory { datacenter, lasts_us: random.between(1_000, 10_000) * 1_000 }
    }

    fn parse(words: &mut Words) -> Result<EmptyDirectory, String> {
        Ok(EmptyDirectory { datacenter: words.datacenter()?, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        // If nobody has heard of its first life, a datacenter gives the states of branches that it lost with it their
        // names again.
        let may_be_first = world.options.promises().branches && !world.is_known_to_all(self.datacenter);
        if !world.may_become_sick(self.datacenter) || may_be_first {
            return Effect::Nothing;
        }
        world.wipe(self.datacenter);
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        if !world.has_recovered(self.datacenter) {
            world.give_up(self.datacenter);
        }
    }
}

impl fmt::Display for EmptyDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}", self.datacenter, show_us(self.lasts_us))
    }
}
