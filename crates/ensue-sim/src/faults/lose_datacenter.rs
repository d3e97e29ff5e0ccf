//! A datacenter is lost for good, and what only it had is lost with it. After a while an operator declares it dead.

use super::text::{Words, show_us};
use super::{Effect, Kind, draw_datacenter, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use ensue_types::DatacenterId;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoseDatacenter {
    pub datacenter: DatacenterId,
    pub declared_us: u64,
}

impl Kind for LoseDatacenter {
    const NAME: &'static str = "lose-datacenter";
    const WEIGHT: u64 = 1;

    /// Only where the seed says so: the end of such a run is checked less.
    fn possible(options: &Options) -> bool {
        options.shape.datacenters > 1 && options.faults.loses_datacenter
    }

    fn draw(random: &mut Random, options: &Options) -> LoseDatacenter {
        let datacenter = draw_datacenter(random, options);
        LoseDatacenter { datacenter, declared_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<LoseDatacenter, String> {
        Ok(LoseDatacenter { datacenter: words.datacenter()?, declared_us: words.duration_us()? })
    }

    /// One datacenter always stays that has its directories.
    fn strike(&self, world: &mut World) -> Effect {
        if !world.may_become_sick(self.datacenter) {
            return Effect::Nothing;
        }
        world.lose(self.datacenter);
        Effect::Lasts(self.declared_us)
    }

    fn lift(&self, world: &mut World) {
        world.declare_dead(self.datacenter);
    }
}

impl fmt::Display for LoseDatacenter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}", self.datacenter, show_us(self.declared_us))
    }
}
