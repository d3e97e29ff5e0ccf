//! A datacenter is lost for good, and what only it had is lost with it.

use super::text::Words;
use super::{Effect, Kind, draw_datacenter};
use crate::random::Random;
use crate::seed::Options;
use crate::world::World;
use ensue_types::DatacenterId;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoseDatacenter {
    pub datacenter: DatacenterId,
}

impl Kind for LoseDatacenter {
    const NAME: &'static str = "lose-datacenter";
    const WEIGHT: u64 = 1;

    /// Only where the seed says so: the end of such a run is checked less.
    fn possible(options: &Options) -> bool {
        options.shape.datacenters > 1 && options.faults.loses_datacenter
    }

    fn draw(random: &mut Random, options: &Options) -> LoseDatacenter {
        LoseDatacenter { datacenter: draw_datacenter(random, options) }
    }

    fn parse(words: &mut Words) -> Result<LoseDatacenter, String> {
        Ok(LoseDatacenter { datacenter: words.datacenter()? })
    }

    /// One datacenter always stays.
    fn strike(&self, world: &mut World) -> Effect {
        let survivors = world.survivors();
        if survivors.len() < 2 || !survivors.contains(&self.datacenter) {
            return Effect::Nothing;
        }
        world.lose(self.datacenter);
        Effect::Done
    }
}

impl fmt::Display for LoseDatacenter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.datacenter)
    }
}
