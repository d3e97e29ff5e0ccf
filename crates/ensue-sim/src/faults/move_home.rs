//! The home of keys moves to a datacenter: operators everywhere say so, of whom the one at the present home is heard.

use super::text::Words;
use super::{Effect, Kind, draw_datacenter};
use crate::random::Random;
use crate::world::World;
use crate::world::options::Options;
use ensue_types::DatacenterId;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveHome {
    pub to: DatacenterId,
}

impl Kind for MoveHome {
    const NAME: &'static str = "move-home";
    const WEIGHT: u64 = 1;

    fn possible(options: &Options) -> bool {
        options.faults.moves_homes && !options.homes.is_empty()
    }

    fn draw(random: &mut Random, options: &Options) -> MoveHome {
        MoveHome { to: draw_datacenter(random, options) }
    }

    fn parse(words: &mut Words) -> Result<MoveHome, String> {
        Ok(MoveHome { to: words.datacenter()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        world.have_home_moved(self.to);
        Effect::Done
    }
}

impl fmt::Display for MoveHome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.to)
    }
}
