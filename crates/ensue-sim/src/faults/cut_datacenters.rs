//! Every connection between two datacenters breaks, and none comes back for a while.

use super::text::{Words, draw_two_datacenters, show_us};
use super::{Effect, Kind, duration_us};
use crate::world::network::Break;
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use ensue_types::DatacenterId;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutDatacenters {
    pub between: (DatacenterId, DatacenterId),
    pub how: Break,
    pub lasts_us: u64,
}

impl Kind for CutDatacenters {
    const NAME: &'static str = "cut";
    const WEIGHT: u64 = 3;

    fn possible(options: &Options) -> bool {
        options.shape.datacenters > 1
    }

    fn draw(random: &mut Random, options: &Options) -> CutDatacenters {
        let between = draw_two_datacenters(random, options.shape);
        CutDatacenters { between, how: Break::draw(random), lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<CutDatacenters, String> {
        let between = (words.datacenter()?, words.datacenter()?);
        Ok(CutDatacenters { between, how: words.choice(&Break::NAMES)?, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        world.cut_datacenters(self.between.0, self.between.1, self.how);
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        world.heal_datacenters(self.between.0, self.between.1);
    }
}

impl fmt::Display for CutDatacenters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (a, b) = self.between;
        write!(f, "{a} {b} {} for {}", self.how, show_us(self.lasts_us))
    }
}
