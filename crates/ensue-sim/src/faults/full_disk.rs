//! The disk of a partition is full for a while, but for a few bytes (trap 56).

use super::text::{Home, Words, show_us};
use super::{Effect, Kind, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullDisk {
    pub home: Home,
    /// Bytes that still fit: the append that meets the end is a partial one.
    pub room: u64,
    /// Others take what the partition gives up.
    pub crowded: bool,
    pub lasts_us: u64,
}

impl Kind for FullDisk {
    const NAME: &'static str = "full-disk";
    const WEIGHT: u64 = 3;

    fn draw(random: &mut Random, options: &Options) -> FullDisk {
        let home = Home::draw(random, options.shape);
        let (room, crowded) = (random.skewed(1, 4_000), random.chance(200));
        FullDisk { home, room, crowded, lasts_us: 3 * duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<FullDisk, String> {
        let home = words.home()?;
        words.expect("room")?;
        let room = words.number()?;
        let crowded = words.choice(&[("crowded", true), ("alone", false)])?;
        Ok(FullDisk { home, room, crowded, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        if world.disk(self.home.datacenter, self.home.partition).is_full() {
            return Effect::Nothing;
        }
        world.fill_disk(self.home.datacenter, self.home.partition, self.room, self.crowded);
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        world.free_disk(self.home.datacenter, self.home.partition);
        // It stopped if there was no room to begin in.
        self.home.revive(world);
    }
}

impl fmt::Display for FullDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let crowded = if self.crowded { "crowded" } else { "alone" };
        write!(f, "{} room {} {crowded} for {}", self.home, self.room, show_us(self.lasts_us))
    }
}
