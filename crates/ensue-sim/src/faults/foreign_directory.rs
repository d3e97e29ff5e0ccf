//! The directories of a datacenter are exchanged for those of another cluster, as by a wrong mount. After a while an
//! operator puts the right ones back.

use super::text::{Words, show_us};
use super::{Effect, Kind, draw_datacenter, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use ensue_types::DatacenterId;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignDirectory {
    pub datacenter: DatacenterId,
    pub lasts_us: u64,
}

impl Kind for ForeignDirectory {
    const NAME: &'static str = "foreign-directory";
    const WEIGHT: u64 = 1;

    fn possible(options: &Options) -> bool {
        options.shape.datacenters > 1 && options.faults.loses_directories
    }

    fn draw(random: &mut Random, options: &Options) -> ForeignDirectory {
        let datacenter = draw_datacenter(random, options);
        ForeignDirectory { datacenter, lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<ForeignDirectory, String> {
        Ok(ForeignDirectory { datacenter: words.datacenter()?, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        if !world.may_become_sick(self.datacenter) || !world.is_known_to_all(self.datacenter) {
            return Effect::Nothing;
        }
        world.exchange_directories(self.datacenter);
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        world.put_back_directories(self.datacenter);
    }
}

impl fmt::Display for ForeignDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}", self.datacenter, show_us(self.lasts_us))
    }
}
