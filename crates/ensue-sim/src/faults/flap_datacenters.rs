//! Every connection between two datacenters breaks at once, and all come back.

use super::text::{Words, draw_two_datacenters};
use super::{Effect, Kind};
use crate::world::network::Break;
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use ensue_types::DatacenterId;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlapDatacenters {
    pub between: (DatacenterId, DatacenterId),
    pub how: Break,
}

impl Kind for FlapDatacenters {
    const NAME: &'static str = "flap-datacenters";
    const WEIGHT: u64 = 2;

    fn possible(options: &Options) -> bool {
        options.shape.datacenters > 1
    }

    fn draw(random: &mut Random, options: &Options) -> FlapDatacenters {
        FlapDatacenters { between: draw_two_datacenters(random, options.shape), how: Break::draw(random) }
    }

    fn parse(words: &mut Words) -> Result<FlapDatacenters, String> {
        let between = (words.datacenter()?, words.datacenter()?);
        Ok(FlapDatacenters { between, how: words.choice(&Break::NAMES)? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        for (a, b) in world.pairs(self.between.0, self.between.1) {
            world.flap(a, b, self.how);
        }
        Effect::Done
    }
}

impl fmt::Display for FlapDatacenters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.between.0, self.between.1, self.how)
    }
}
