//! A datacenter is cut off from all the others.

use super::text::{Words, show_us};
use super::{Effect, Kind, draw_datacenter, duration_us};
use crate::world::network::Break;
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use ensue_types::DatacenterId;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isolate {
    pub datacenter: DatacenterId,
    pub how: Break,
    pub lasts_us: u64,
}

impl Isolate {
    fn others(&self, world: &World) -> Vec<DatacenterId> {
        let all = (0..world.options.shape.datacenters).map(DatacenterId);
        all.filter(|&other| other != self.datacenter).collect()
    }
}

impl Kind for Isolate {
    const NAME: &'static str = "isolate";
    const WEIGHT: u64 = 2;

    fn possible(options: &Options) -> bool {
        options.shape.datacenters > 1
    }

    fn draw(random: &mut Random, options: &Options) -> Isolate {
        let datacenter = draw_datacenter(random, options);
        Isolate { datacenter, how: Break::draw(random), lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<Isolate, String> {
        let datacenter = words.datacenter()?;
        Ok(Isolate { datacenter, how: words.choice(&Break::NAMES)?, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        for other in self.others(world) {
            world.cut_datacenters(self.datacenter, other, self.how);
        }
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        for other in self.others(world) {
            world.heal_datacenters(self.datacenter, other);
        }
    }
}

impl fmt::Display for Isolate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} for {}", self.datacenter, self.how, show_us(self.lasts_us))
    }
}
